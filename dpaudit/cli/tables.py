"""`dpaudit schema`, `synthesize`, `split` and `audit-data`: tables as files, and released ones."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from dpaudit.cli import options
from dpaudit.cli.console import (
    ExitCode,
    exit_code,
    guard,
    messages,
    require_folders,
    results,
    show,
    write_named,
    write_pages,
)
from dpaudit.errors import GeneratorError, InputError, TrialError
from dpaudit.model.choices import FailOn
from dpaudit.model.setting import Option, Panel
from dpaudit.results.phrases import PUBLIC_SCHEMA


@guard
@options.reads_tables
def schema(
    data: options.Tables,
    links: options.Links = None,
    unit: options.UnitColumn = None,
) -> None:
    """Prints the schema that is inferred from a table, as JSON.

    Its bounds and categories are those of real records. Replace them by what the documentation of
    the data says and delete the line "inferred": the schema is then public.
    """
    from dpaudit.model.column import Unit
    from dpaudit.model.linked_files import load_given

    assert data is not None  # typer asks for it
    whose = None if unit is None else Unit(column=unit)
    inferred = load_given(data, None, whose, links or ()).schema
    results().print(inferred.to_json())
    if inferred.inferred:
        messages().print(
            "next: save it to a file, replace its bounds and categories by what the documentation "
            'of the data says, delete "inferred", and give the file with --schema'
        )


@dataclass(frozen=True, kw_only=True)
class SplitOptions:
    """How a table is split.

    Attributes:
        to: Folder for train.csv, holdout.csv and coins.json.
        coins: Number of rows (or units) split by a fair coin, chosen at random; the others go to
            train. Default: all.
        unit: Column that says whose rows each row is, such as patient_id: one coin deals all rows
            of a unit, and the bound is per unit. Default: a coin for each row.
        seed: Seed of the split; keep it secret, like the coins. Default: the system's entropy.
    """

    to: Annotated[Path, Option("FOLDER")]
    coins: Annotated[int | None, Option("N")] = None
    unit: Annotated[str | None, Option("COLUMN")] = None
    seed: Annotated[int | None, Option("S")] = None


@guard
@options.takes_settings()
def split(
    *,
    data: options.Data,
    how: SplitOptions,
    separator: options.Separator = None,
    encoding: options.Encoding = None,
) -> None:
    """Splits a table by fair coins, so that a release trained on train.csv can be audited.

    Train on train.csv alone and fix the number of synthetic rows beforehand. Keep holdout.csv and
    coins.json from the people who train. Then run `dpaudit audit-data`.
    """
    from dpaudit.released_data import split as tossed
    from dpaudit.released_data import write_split

    parts = tossed(
        data,
        coins=how.coins,
        unit=how.unit,
        seed=how.seed,
        separator=separator,
        encoding=encoding,
    )
    train, holdout, coin_file = write_split(parts, how.to)
    results().print(f"{train}: {len(parts.train)} rows, for training")
    results().print(f"{holdout}: {len(parts.holdout)} rows, to keep from the people who train")
    results().print(f"{coin_file}: {parts.number} coins, to keep from the people who train")
    messages().print(
        f"then: dpaudit audit-data --synthetic FILE --train {train} --holdout {holdout} --coins "
        f"{coin_file}"
    )


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
    from dpaudit.plugins.foreign import refusing
    from dpaudit.plugins.named import check_table, named_generator, train
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


@dataclass(frozen=True, kw_only=True)
class ReleaseOptions:
    """What is known of a release, and what is asked of it.

    Attributes:
        synthetic: Released synthetic table: CSV, Parquet or Excel.
        train: Real rows that it was trained on.
        holdout: Real rows of the same population that it was not trained on, repeated rows
            included.
        coins: coins.json of `dpaudit split`, for a lower bound on epsilon.
        unit: Column of the units that had a coin each (`dpaudit split --unit`): bound, claim and
            copies are per unit. Default: that of the coin file.
        drop: Column that is left out of all tables.
        separator: What is between the fields of all CSV files: one character, or tab; of one of
            them as in synthetic=tab. Default: found out.
        encoding: Encoding of all CSV files, such as cp1252; of one of them as in synthetic=cp1252.
            Default: found out.
        epsilon: Claimed epsilon, adding or removing one record (or all rows of one unit); needs
            `coins`. Default: no claim.
        delta: Claimed delta. Default: 0.
        secrets: Column whose values are guessed. Default: the first 12.
        anonymeter: Also run Anonymeter's attacks; needs `dpaudit env create anonymeter`.
    """

    synthetic: Annotated[str, Option("FILE", panel=Panel.INPUT)]
    train: Annotated[str, Option("FILE", panel=Panel.INPUT)]
    holdout: Annotated[str | None, Option("FILE", panel=Panel.INPUT)] = None
    coins: Annotated[Path | None, Option("FILE", panel=Panel.INPUT)] = None
    unit: Annotated[str | None, Option("COLUMN", panel=Panel.INPUT)] = None
    drop: Annotated[tuple[str, ...], Option("COLUMN", panel=Panel.INPUT)] = ()
    separator: Annotated[str | None, Option("CHARACTER", panel=Panel.INPUT)] = None
    encoding: Annotated[str | None, Option("NAME", panel=Panel.INPUT)] = None
    epsilon: Annotated[float | None, Option("E", panel=Panel.CLAIM)] = None
    delta: Annotated[float | None, Option("D", panel=Panel.CLAIM)] = None
    secrets: Annotated[Sequence[str] | None, Option("COLUMN", ("--secret",))] = None
    anonymeter: bool = False


@guard
@options.shows_values
@options.takes_settings()
def audit_data(
    *,
    tables: ReleaseOptions,
    schema: options.SchemaFile = None,
    confidence: options.Confidence = 0.95,
    html: options.Html = None,
    markdown: options.Markdown = None,
    fail_on: options.FailOnVerdict = FailOn.INCONCLUSIVE,
    seed: options.Seed = 0,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Audits a released synthetic table: does it reveal who was in the training data?"""
    from dpaudit.auditing.progress_bar import ConsoleProgress
    from dpaudit.released_data import audit_data as audited
    from dpaudit.released_data.result import released_page

    require_folders(html=html, markdown=markdown)
    errors = messages(quiet=quiet)
    with ConsoleProgress(errors, quiet=quiet) as progress:
        result = audited(
            **vars(tables),
            schema=schema,
            confidence=confidence,
            seed=seed,
            on_progress=errors.print,
            on_share=lambda share: progress.show("percent", round(100 * share), 100, lines=0),
        )
        progress.show("percent", 100, 100, lines=0)
    write_pages(released_page(result), html=html, markdown=markdown)
    show(result, json=json, quiet=quiet)
    raise typer.Exit(exit_code(result.finding.verdict, fail_on))
