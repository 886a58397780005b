"""`dpaudit synthesize`: fits a generator and writes its synthetic table with its claim."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from dpaudit.cli import options
from dpaudit.cli.console import ExitCode, guard, messages, results, write_named
from dpaudit.errors import GeneratorError, InputError, TrialError
from dpaudit.model.setting import Option
from dpaudit.results.phrases import PUBLIC_SCHEMA


@dataclass(frozen=True, kw_only=True)
class SynthesizeOptions:
    """What is written.

    Attributes:
        out: CSV file to write; the claim goes to FILE.claim.json.
        seed: Seed, for experiments only: noise from a known seed protects nothing. Default: the
            system's entropy.
    """

    out: Annotated[Path, Option("FILE")]
    seed: Annotated[int | None, Option("S")] = None


@guard
@options.reads_tables
@options.takes_settings()
def synthesize(
    *,
    generator: options.GeneratorName,
    data: options.Data,
    schema: options.SchemaFile = None,
    parameter: options.Parameters = None,
    epsilon: options.OwnEpsilon = None,
    delta: options.OwnDelta = None,
    asked: SynthesizeOptions,
    rows: options.Rows = None,
    quiet: options.Quiet = False,
) -> None:
    """Fits a generator and writes synthetic rows as CSV and its claim as JSON."""
    from dpaudit.model.encoding import check_rows
    from dpaudit.model.tables import load
    from dpaudit.plugins.adapt import check_table, train
    from dpaudit.plugins.foreign import refusing
    from dpaudit.plugins.named import named_generator
    from dpaudit.plugins.release import accept
    from dpaudit.results.document import to_document

    out, seed = asked.out, asked.seed
    table = load(data, schema)
    n_rows = len(table.data) if rows is None else rows
    check_rows(n_rows, table.schema)
    if not os.path.isdir(out.parent):
        raise InputError(f"folder {out.parent} does not exist: make it, or give another `out`")
    parameters = options.built_with(parameter, epsilon, delta)
    named = named_generator(generator, parameters, {"schema": table.schema})
    given = table.schema.handed(table.data)
    check_table(named.generator, given)
    try:
        with refusing("fit or sample raises", as_error=TrialError):
            model = train(named.generator, given, seed=seed)
            synthetic = accept(model.sample(n_rows, seed=seed), table.schema, n_rows)
    except TrialError as error:
        raise GeneratorError(f"{named.name} gave no synthetic table: {error}") from None
    claim = getattr(model, "claim", None) or getattr(named.generator, "claim", None)
    document: dict[str, Any] = {
        "claim": to_document(claim),
        "generator": {"name": named.name, "parameters": named.parameters},
        "rows": n_rows,
        "schema_inferred": table.schema.inferred,
        "seed": seed,
    }
    claim_file = out.with_name(f"{out.name}.claim.json")
    write_named(out, table.schema.handed(synthetic).to_csv(index=False), option="out")
    write_named(claim_file, json.dumps(document, indent=2) + "\n", option="out")
    results().print(f"{out}\n{claim_file}")
    notes = messages(quiet=quiet)
    if seed is not None:
        notes.print("note: noise came from a seed, so this table is for experiments only")
    if table.schema.inferred:
        notes.print(
            "note: bounds and categories were read off the table, which the claim does not cover; "
            f"{PUBLIC_SCHEMA}"
        )
    if claim is None:
        notes.print(f"note: {named.name} states no privacy claim")
    raise typer.Exit(ExitCode.PASS)
