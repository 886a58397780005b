"""Default audits of generators with planted leaks: which are proved?

Usage: python -m reports.detection.run [a] [b] [--models N ...] [--jobs N]   (resumes)

Each leak is audited with default settings at a claim of epsilon 1, with the named numbers of shadow
models (default: 400). Writes results/detection.json after every audit, and the tables of README.md.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import dpaudit
from dpaudit.versions import versions
from reports import markdown
from reports.command import StudyParser, start, write_json
from reports.detection import planted_a, planted_b
from reports.detection.leak import SCHEMA, Certainty, Leak, Planted, training_table

CLAIM: Final = 1.0
HALVES: Final = {"a": planted_a.LEAKS, "b": planted_b.LEAKS}
MODELS: Final = (400,)
QUICK_MODELS, QUICK_LEAKS = 20, 1


def audited(leak: Leak, models: int, jobs: int | None) -> dict[str, Any]:
    """One audit: what it proved, and by which attack."""
    begun = time.perf_counter()
    with TemporaryDirectory() as folder:
        record = dpaudit.audit(
            Planted(leak=leak, epsilon=CLAIM),
            training_table(),
            schema=SCHEMA,
            target="row:0",
            shadow_models=models,
            jobs=jobs,
            out=Path(folder) / "run",
        )
    first = record.leaks[0] if record.leaks else None
    return {
        "leak": leak.name,
        "family": leak.family,
        "certainty": leak.certainty.value,
        "models": models,
        "proved": record.proved,
        "verdict": record.verdict.value,
        "attack": record.attack,
        "feature": f"{first.feature} ({first.column})" if first else None,
        "seconds": round(time.perf_counter() - begun, 1),
    }


def is_proved(row: dict[str, Any]) -> bool:
    """Whether an audit proved more than the claim."""
    return row["proved"] is not None and row["proved"] > CLAIM


def summary(rows: Iterable[dict[str, Any]]) -> list[tuple[str, int, str, str]]:
    """For each half and number of models: how many leaks of each certainty are proved."""
    groups: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["half"], row["models"]), []).append(row)

    def share(own: list[dict[str, Any]], certainty: Certainty) -> str:
        chosen = [row for row in own if row["certainty"] == certainty.value]
        return f"{sum(map(is_proved, chosen))} of {len(chosen)}"

    return [
        (half, models, share(own, Certainty.SURE), share(own, Certainty.NOISY))
        for (half, models), own in sorted(groups.items())
    ]


def page(rows: list[dict[str, Any]]) -> str:
    """The results as two Markdown tables."""
    heads = ("half", "shadow models", "deterministic leaks proved", "statistical leaks proved")
    each = ("half", "family", "leak", "certainty", "models", "proved", "attack", "first feature")
    lines = [
        (
            row["half"],
            row["family"],
            row["leak"],
            row["certainty"],
            row["models"],
            markdown.number(row["proved"]) if is_proved(row) else f"*{row['proved'] or 0:.2f}*",
            row["attack"] or "–",
            row["feature"] or "–",
        )
        for row in rows
    ]
    return markdown.table(heads, summary(rows)) + "\n" + markdown.table(each, lines)


def main(given: Sequence[str] | None = None) -> None:
    """Makes the audits that the results lack; writes the page's tables if they are its own."""
    parser = StudyParser(__file__, __doc__, parts=tuple(HALVES), has_jobs=True)
    parser.add_argument("--models", type=int, nargs="+", default=MODELS, help="shadow models")
    options = parser.parse_args(given)
    run = parser.run_of(options)
    path = run.out / "detection.json"
    rows: list[dict[str, Any]] = json.loads(path.read_text())["audits"] if path.exists() else []
    done = {(row["half"], row["leak"], row["models"]) for row in rows}
    for models in [QUICK_MODELS] if run.quick else options.models:
        for half in run.parts:
            for leak in HALVES[half][: QUICK_LEAKS if run.quick else None]:
                if (half, leak.name, models) in done:
                    continue
                rows.append({"half": half} | audited(leak, models, run.jobs))
                write_json(path, {"versions": versions(), "claim": CLAIM, "audits": rows})
                if run.is_whole:
                    markdown.replace_table(run.home / "README.md", page(rows))
                print(rows[-1], flush=True)


if __name__ == "__main__":
    start(main)
