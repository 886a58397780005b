"""Searches of small synthesizers with a planted defect, and of their honest twins.

Usage: python -m reports.search.run [broken] [honest]   (resumes; two hours)

`broken`: at most 400 pairs or a minute. `honest`: 500 pairs or two minutes, which should show
nothing. Each writes results/PART.json after every case; the tables of README.md are made from both.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dpaudit.results.verdict import Verdict
from dpaudit.searching.run import search
from dpaudit.versions import versions
from reports import markdown
from reports.command import StudyParser, start, write_json
from reports.search import planted, reported

PARTS: Final = ("broken", "honest")
PAIRS: Final = {"broken": 400, "honest": 500}
SECONDS: Final = {"broken": 60.0, "honest": 120.0}
QUICK: Final = 30
CASES: Final = (*planted.DEFECTS, *reported.REPORTED)
WHAT: Final = {
    name: defect.what for name, defect in (*planted.DEFECTS.items(), *reported.REPORTED.items())
}


def searched(part: str, name: str, *, quick: bool) -> dict[str, Any]:
    """What a search says of a synthesizer."""
    is_honest = part == "honest"
    if name in reported.REPORTED:
        schema = reported.REPORTED[name].schema
        subject: object = reported.ReportedSynthesizer(name, honest=is_honest)
    else:
        schema, subject = planted.SCHEMA, planted.Synthesizer(name, honest=is_honest)
    record = search(
        subject,
        schema,
        seconds=SECONDS[part],
        records=0,
        pairs=QUICK if quick else PAIRS[part],
    )
    document = record.to_document()
    kept = ("verdict", "pairs", "seconds", "findings", "unconfirmed")
    found = {name: document[name] for name in kept}
    for pair in found["findings"]:
        del pair["reproduce"]
    if record.costliest is not None:
        found["costliest_said"] = record.costliest.said
    return {"defect": name, **found}


def broken_table(cases: Sequence[Mapping[str, Any]]) -> str:
    """The worst finding of each defect, and its pair."""
    heads = ("defect", "finding", "smallest pair", "spends", "replay says", "pairs", "seconds")
    return markdown.table(heads, map(_broken_row, cases))


def _broken_row(case: Mapping[str, Any]) -> tuple[object, ...]:
    what, tried = WHAT[case["defect"]], (case["pairs"], f"{case['seconds']:.0f}")
    if not case["findings"]:
        return what, f"none; {case['costliest_said']}", "–", "–", case["verdict"], *tried
    worst = case["findings"][0]
    spent = "no limit" if worst["spent"] is None else f"{worst['spent']:.4g}"
    return (
        what,
        f"{worst['kind']}: `{worst['place']}`",
        "<br>".join(map(_row, worst["rows"])),
        spent if worst["kind"] == "overspent" else "–",
        worst["verdict"],
        *tried,
    )


def _row(row: Mapping[str, Any]) -> str:
    where = {"both": "", "with": " more", "without": " in its place"}[row["table"]]
    return f"{row['times']} × {tuple(row['values'])}{where}"


def honest_table(cases: Sequence[Mapping[str, Any]]) -> str:
    """How many pairs each honest twin was tried on."""
    heads = ("honest twin of", "verdict", "findings", "pairs", "seconds")
    rows = [
        (
            WHAT[case["defect"]],
            case["verdict"],
            len(case["findings"]) + len(case["unconfirmed"]),
            case["pairs"],
            f"{case['seconds']:.0f}",
        )
        for case in cases
    ]
    clean = sum(case["verdict"] == Verdict.CONSISTENT for case in cases)
    pairs = sum(case["pairs"] for case in cases)
    return markdown.table(heads, rows) + f"\n{clean} of {len(cases)} consistent, {pairs:,} pairs.\n"


TABLE_OF: Final = {"broken": broken_table, "honest": honest_table}


def main(given: Sequence[str] | None = None) -> None:
    """Runs what the results lack; writes the page's tables if they are its own."""
    parser = StudyParser(__file__, __doc__, parts=PARTS)
    run = parser.run_of(parser.parse_args(given))
    for part in run.parts:
        path = run.out / f"{part}.json"
        cases = json.loads(path.read_text())["cases"] if path.exists() else []
        for name in CASES:
            if all(case["defect"] != name for case in cases):
                cases.append(searched(part, name, quick=run.quick))
                write_json(path, {"versions": versions(), "cases": cases})
                print(name, flush=True)
    if run.is_whole:
        markdown.replace_table(run.home / "README.md", page(run.out))


def page(results: Path) -> str:
    """The tables of README.md."""
    files = {part: results / f"{part}.json" for part in PARTS}
    return "\n".join(
        TABLE_OF[part](json.loads(file.read_text())["cases"])
        for part, file in files.items()
        if file.exists()
    )


if __name__ == "__main__":
    start(main)
