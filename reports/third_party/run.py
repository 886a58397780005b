"""Released libraries audited from outside, at their defaults and with public bounds.

Usage: python -m reports.third_party.run [LIBRARY:METHOD ...] --data DIR   (resumes)

Each method is audited twice on the first records of Adult, with epsilon 1 as its own claim: as the
library's README calls it, and with bounds, categories and seeds from a public schema, which is the
control. Needs the environments (`dpaudit env create LIBRARY`). Writes results/audits.json after
every audit, and the table of README.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from dpaudit.auditing.entry import audit_by_keywords
from dpaudit.errors import RegistryError
from dpaudit.external.generator import PREFIX
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.plugins.named import library_named
from dpaudit.versions import versions
from reports import markdown
from reports.command import StudyParser, start, write_json
from reports.data import table_file

TABLES = ("adult",)
QUICK_MODELS = 20
SCHEMA = Schema(
    columns=(
        Column(name="age", kind=Kind.INTEGER, lower=0, upper=120),
        Column(name="sex", kind=Kind.BINARY, categories=("Female", "Male")),
        Column(name="capital_gain", kind=Kind.INTEGER, lower=0, upper=100_000),
    )
)


class Case(NamedTuple):
    """How a method is audited.

    Attributes:
        models: Shadow models: fewer of slow methods.
        records: The first of Adult that are the table.
        claim: What is stated where the library claims nothing.
        defaults: Of the adapter.
        twin: An adapter beside that of the library, in which something is fixed.
    """

    models: int = 50
    records: int = 80
    claim: Mapping[str, float] = {}
    defaults: tuple[str, ...] = ("library", "public")
    twin: str = ""


CASES = {
    "datasynthesizer:independent": Case(models=400),
    "datasynthesizer:correlated": Case(models=400),
    "datasynthesizer, all bins": Case(
        models=400, defaults=("public",), twin="datasynthesizer_all_bins.py:AllBins"
    ),
    "diffprivlib:histogram": Case(models=400),
    "diffprivlib:histogramdd": Case(models=400),
    "diffprivlib:gaussian-nb": Case(models=400),
    "diffprivlib:linear-regression": Case(models=400),
    "privsyn-core:privsyn": Case(models=400),
    "smartnoise-synth:mwem": Case(models=40),
    "smartnoise-synth:mst": Case(models=100),
    "smartnoise-synth:aim": Case(models=40),
    "smartnoise-synth:dpgan": Case(models=400),
    "smartnoise-synth:dpctgan": Case(models=100, records=600),
    "smartnoise-synth:patectgan": Case(models=100),
    "smartnoise-synth:pategan": Case(models=100, records=1100),
    "smartnoise-synth:pategan, 1000 records": Case(models=26, records=1000),
    "synthpriv:dp-copula": Case(models=400),
    "synthpriv:dp-gan": Case(models=100),
    "pac-synth:aggregate-seeded": Case(models=400, records=2000),
    "dpart:independent": Case(models=400),
    "dpart:priv-bayes": Case(models=400),
    "dpart:synthpop": Case(models=400),
    "dp-cgans:dp-cgan": Case(
        models=100, defaults=("library",), claim={"epsilon": 1.0, "delta": 2e-6}
    ),
    "opacus:autoregressive": Case(models=100),
    "opendp:fixed": Case(models=40),
    "opendp:mst": Case(models=40),
    "dpmm:priv-bayes": Case(models=26),
    "dpmm:mst": Case(models=26),
    "dpmm:aim": Case(models=40),
    "ctgan:ctgan": Case(models=26, claim={"epsilon": 1.0, "delta": 1e-5}),
}


def audited(name: str, defaults: str, table: pd.DataFrame, models: int) -> dict[str, Any]:
    """One audit, as a row of the results."""
    case = CASES[name]
    result = audit_by_keywords(
        _twin(name) if case.twin else name.partition(",")[0],
        table.head(case.records),
        schema=SCHEMA,
        jobs=1,  # seconds per model are those of a model alone
        parameters={"defaults": defaults},
        shadow_models=models,
        probe=False,
        **case.claim,  # type: ignore[arg-type]
    )
    leak = result.leaks[0] if result.leaks else None
    trials = sum(result.shadow_models.values())
    return {
        "method": name,
        "defaults": defaults,
        "records": case.records,
        "models": trials,
        "failed": {world.value: count for world, count in result.failures.items()},
        "failed_with": [reason.error for reason in result.failure_reasons],
        "verdict": result.verdict.value,
        "claim": result.claim.in_words,
        "epsilon": result.claimed_epsilon,
        "proved": result.proved,
        "provable": result.max_provable_epsilon,
        "auc": result.auc,
        "attack": result.attack,
        "leak": f"{leak.feature} ({leak.column})" if leak else None,
        "seconds_per_model": round(result.seconds / trials, 2),
        "reason": result.reasons[0],
        "date": result.date,
        "versions": {key: value for key, value in result.versions.items() if ":" in key},
    }


def _twin(name: str) -> str:
    """A twin as a worker of the library's environment."""
    library = library_named(name.partition(",")[0])
    if library is None or library.environment.built is None:
        raise RegistryError(f"{name} needs an environment; `dpaudit env list` says which")
    adapter = library.adapter.with_name(CASES[name].twin)
    return f"{PREFIX}{library.environment.built.python} {adapter}"


HEADS = (
    *("method", "defaults", "claim", "records", "models", "failed in, out", "verdict", "proved of"),
    *("AUC", "attack: feature", "s per model"),
)


def page(rows: Sequence[Mapping[str, Any]]) -> str:
    """The results as a Markdown table."""
    return markdown.table(HEADS, (_line(row) for row in rows))


def _line(row: Mapping[str, Any]) -> Sequence[object]:
    known = row["proved"] is not None
    return (
        row["method"],
        row["defaults"],
        row["claim"],
        row["records"],
        row["models"],
        f"{row['failed']['in']}, {row['failed']['out']}",
        row["verdict"],
        f"{row['proved']:.2f} of {row['provable']:.2f}" if known else "–",
        "–" if row["auc"] is None else f"{row['auc']:.2f}",
        f"{row['attack']}: {row['leak']}" if row["leak"] else row["attack"] or "–",
        f"{row['seconds_per_model']:.1f}",
    )


def main(given: Sequence[str] | None = None) -> None:
    """Makes the audits that the results lack; writes the page's table if it is its own."""
    parser = StudyParser(__file__, __doc__, parts=tuple(CASES), tables=TABLES)
    run = parser.run_of(parser.parse_args(given))
    table = pd.read_csv(table_file("adult", run.data))[list(SCHEMA.names)]
    path = run.out / "audits.json"
    rows = json.loads(path.read_text())["audits"] if path.exists() else []
    done = {(row["method"], row["defaults"]) for row in rows}
    order = [(name, defaults) for name, case in CASES.items() for defaults in case.defaults]
    for name in run.parts:
        for defaults in CASES[name].defaults:
            if (name, defaults) in done:
                continue
            models = QUICK_MODELS if run.quick else CASES[name].models
            rows.append(audited(name, defaults, table, models))
            rows.sort(key=lambda row: order.index((row["method"], row["defaults"])))
            write_json(path, {"versions": versions(), "audits": rows})
            if run.is_whole:
                markdown.replace_table(run.home / "README.md", page(rows))
            print(name, defaults, flush=True)


if __name__ == "__main__":
    start(main)
