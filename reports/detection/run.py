"""Default audits of generators with planted leaks: which are proved?

Usage: python -m reports.detection.run [a] [b] [c] [d] [--models N ...] [--jobs N]   (resumes)

Each leak is audited with default settings at a claim of epsilon 1, with the named numbers of shadow
models (default: 100, 400 and 1000). The attacks of published toolkits judge the same trials, each
alone; what an attacker proves who is shown the leak itself is computed. Halves c and d have honest
twins, which nothing should prove. Writes results/detection.json after every audit, and the tables
of README.md.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from dpaudit.auditing.entry import run_audit
from dpaudit.auditing.games import audit_settings, build_spec
from dpaudit.auditing.two_worlds.spec import TwoWorldSpec, audited_table
from dpaudit.game.store import RunFolder
from dpaudit.game.trial import Role
from dpaudit.versions import versions
from reports import markdown
from reports.command import StudyParser, start, write_json
from reports.detection import planted_a, planted_b, planted_c, planted_d
from reports.detection.alone import proved_alone
from reports.detection.leak import SCHEMA, Certainty, Leak, Planted, training_table
from reports.detection.perfect import provable, provable_by_fact, shown

CLAIM: Final = 1.0
HALVES: Final = {
    "a": planted_a.LEAKS,
    "b": planted_b.LEAKS,
    "c": planted_c.LEAKS,
    "d": planted_d.LEAKS,
}
MODELS: Final = (100, 400, 1000)
LISTED: Final = 400
"""Shadow models of the audits that the page lists one by one."""
QUICK_MODELS, QUICK_LEAKS = 20, 1


def audited(leak: Leak, models: int, jobs: int | None) -> dict[str, Any]:
    """One audit: what it proved and by which attack, and what others prove."""
    begun = time.perf_counter()
    settings = audit_settings(shadow_models=models, target="row:0", probe=False)
    table = audited_table(training_table(), SCHEMA, settings)
    spec = build_spec(Planted(leak=leak, epsilon=CLAIM), table, settings)
    assert isinstance(spec, TwoWorldSpec)  # the target is named
    with TemporaryDirectory() as parent:
        folder = Path(parent) / "run"
        record = run_audit(spec, folder, jobs=jobs)
        seconds = time.perf_counter() - begun
        with RunFolder(folder, spec=spec.stored_specification, versions=spec.software) as store:
            alone = proved_alone(spec, store.outcomes(Role.AUDIT))
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
        "alone": alone,
        "perfect": provable_by_fact(leak, models) if leak.fact else provable(shown(leak), models),
        "seconds": round(seconds, 1),
    }


def plan(
    halves: Sequence[str], models: Sequence[int], *, quick: bool
) -> Iterator[tuple[str, Leak, int]]:
    """Half, leak and shadow models of every audit: with as many models the deterministic first."""
    for size in [QUICK_MODELS] if quick else models:
        for certainty in Certainty:
            for half in halves:
                leaks = HALVES[half][: QUICK_LEAKS if quick else None]
                yield from ((half, leak, size) for leak in leaks if leak.certainty is certainty)


def _place(row: dict[str, Any]) -> tuple[int, str, int]:
    """Where an audit stands in the results."""
    names = [leak.name for leak in HALVES[row["half"]]]
    return row["models"], row["half"], names.index(row["leak"])


ATTACKERS: Final[dict[str, Callable[[dict[str, Any]], float]]] = {
    "default audit": lambda row: row["proved"] or 0.0,
    "GroundHog alone": lambda row: row["alone"]["groundhog"],
    "target queries alone": lambda row: row["alone"]["query-target"],
    "shown the leak": lambda row: row["perfect"],
}
"""What each attacker proved in an audit; 0 where there was nothing to score."""


def summary(rows: Iterable[dict[str, Any]]) -> list[tuple[object, ...]]:
    """For each certainty, half and number of models: the leaks that each attacker proves."""
    groups: dict[tuple[str, str, int], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["certainty"], row["half"], row["models"]), []).append(row)

    def share(bounds: Iterable[float]) -> str:
        exceed = [bound > CLAIM for bound in bounds]
        return f"{sum(exceed)} of {len(exceed)}"

    return [
        (*group, *(share(map(proved, own)) for proved in ATTACKERS.values()))
        for group, own in sorted(groups.items())
    ]


def page(rows: list[dict[str, Any]]) -> str:
    """The results as two Markdown tables."""
    heads = ("leaks", "half", "shadow models", *ATTACKERS)
    each = ("half", "family", "leak", "certainty", "attack", "first feature", *ATTACKERS)
    lines = [
        (
            row["half"],
            row["family"],
            row["leak"],
            row["certainty"],
            row["attack"] or "–",
            row["feature"] or "–",
            *(_bound(proved(row)) for proved in ATTACKERS.values()),
        )
        for row in rows
        if row["models"] == LISTED
    ]
    return markdown.table(heads, summary(rows)) + "\n" + markdown.table(each, lines)


def _bound(proved: float) -> str:
    """A bound; in italics if it does not exceed the claim."""
    return f"{proved:.2f}" if proved > CLAIM else f"*{proved:.2f}*"


def main(given: Sequence[str] | None = None) -> None:
    """Makes the audits that the results lack; writes the page's tables if they are its own."""
    parser = StudyParser(__file__, __doc__, parts=tuple(HALVES), has_jobs=True)
    parser.add_argument("--models", type=int, nargs="+", default=MODELS, help="shadow models")
    options = parser.parse_args(given)
    run = parser.run_of(options)
    path = run.out / "detection.json"
    rows: list[dict[str, Any]] = json.loads(path.read_text())["audits"] if path.exists() else []
    done = {(row["half"], row["leak"], row["models"]) for row in rows}
    for half, leak, models in plan(run.parts, options.models, quick=run.quick):
        if (half, leak.name, models) in done:
            continue
        rows.append({"half": half} | audited(leak, models, run.jobs))
        rows.sort(key=_place)
        write_json(path, {"versions": versions(), "claim": CLAIM, "audits": rows})
        if run.is_whole:
            markdown.replace_table(run.home / "README.md", page(rows))
        print(half, models, leak.name, flush=True)


if __name__ == "__main__":
    start(main)
