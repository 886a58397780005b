"""Searches of small synthesizers with a planted defect, of their honest twins, and of libraries.

Usage: python -m reports.search.run [broken] [honest] [released]   (resumes; hours)

`broken`: at most 400 pairs or a minute. `honest`: 2,000 pairs or 15 minutes, which should show
nothing. `released`: methods of libraries with everything public, a minute or 30 pairs, whichever is
more; needs their environments (`dpaudit env create LIBRARY`). Each writes results/PART.json after
every case; the tables of README.md are made from them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dpaudit.errors import DpauditError
from dpaudit.formatting import clipped
from dpaudit.results.verdict import Verdict
from dpaudit.searching.record import SearchRecord
from dpaudit.searching.run import search
from dpaudit.versions import today, versions
from reports import markdown
from reports.command import StudyParser, start, write_json
from reports.replay.kept import ReplayStoppedError, stopped_after
from reports.replay.released import METHODS, MOST_OF_AN_ERROR, REPLACED, schema_of
from reports.search import planted, reported
from reports.third_party.run import CASES, Case

PARTS: Final = ("broken", "honest", "released")
PAIRS: Final = {"broken": 400, "honest": 2_000, "released": 2_000}
SECONDS: Final = {"broken": 60.0, "honest": 900.0, "released": 60.0}
MINUTES: Final = 20
"""Minutes after which the search of a library is stopped: its row then says so."""
QUICK: Final = 30
SYNTHESIZERS: Final = (*planted.DEFECTS, *reported.REPORTED)
WHAT: Final = {
    name: defect.what for name, defect in (*planted.DEFECTS.items(), *reported.REPORTED.items())
}


def searched(part: str, name: str, *, quick: bool) -> dict[str, Any]:
    """What a search says of a synthesizer, or of a method of a library."""
    most = QUICK if quick else PAIRS[part]
    if part == "released":
        return {"method": name, **searched_method(name, most)}
    is_honest = part == "honest"
    if name in reported.REPORTED:
        schema = reported.REPORTED[name].schema
        subject: object = reported.ReportedSynthesizer(name, honest=is_honest)
    else:
        schema, subject = planted.SCHEMA, planted.Synthesizer(name, honest=is_honest)
    record = search(subject, schema, seconds=SECONDS[part], records=0, pairs=most)
    return {"defect": name, **kept(record)}


def searched_method(method: str, most: int) -> dict[str, Any]:
    """What a search says of a library's method with everything public; the error if it fails."""
    library, _, _ = method.partition(":")
    claim: Mapping[str, Any] = CASES.get(method, Case()).claim
    if library in REPLACED:
        claim = {"epsilon": 1.0, "neighbours": "replace-one"}
    try:
        with stopped_after(MINUTES):
            record = search(
                method,
                schema_of(method),
                seconds=SECONDS["released"],
                pairs=most,
                parameters={"defaults": "public"},
                **claim,
            )
    except (DpauditError, ReplayStoppedError) as error:
        return {"date": today(), "error": clipped(str(error), MOST_OF_AN_ERROR)}
    return {"date": today(), **kept(record)}


def kept(record: SearchRecord) -> dict[str, Any]:
    """What results keep of a search: nothing of the machine that made it."""
    document = record.to_document()
    names = ("verdict", "pairs", "seconds", "findings", "unconfirmed")
    of_search = {name: document[name] for name in names}
    for pair in of_search["findings"]:
        del pair["reproduce"]
    if record.costliest is not None:
        of_search["costliest_said"] = record.costliest.said
    return of_search


def broken_table(cases: Sequence[Mapping[str, Any]]) -> str:
    """The worst finding of each defect, and its pair."""
    heads = ("defect", "finding", "smallest pair", "spends", "replay says", "pairs", "seconds")
    return markdown.table(heads, map(_broken_row, cases))


def released_table(cases: Sequence[Mapping[str, Any]]) -> str:
    """What was found of each method, and how many pairs were tried."""
    heads = ("method, everything public", "verdict", "finding", "smallest pair", "spends")
    rows = [(f"`{case['method']}`", *_released_cells(case)) for case in cases]
    return markdown.table((*heads, "pairs", "seconds"), rows)


def _released_cells(case: Mapping[str, Any]) -> tuple[object, ...]:
    if "error" in case:
        return "–", case["error"].replace("|", "\\|"), "–", "–", "–", "–"
    _, finding, pair, spends, _, *tried = _broken_row({"defect": "", **case})
    return case["verdict"], finding, pair, spends, *tried


def _broken_row(case: Mapping[str, Any]) -> tuple[object, ...]:
    what = WHAT.get(case["defect"], "")
    tried = (case["pairs"], f"{case['seconds']:.0f}")
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


TABLE_OF: Final = {
    "broken": broken_table,
    "honest": honest_table,
    "released": released_table,
}


def main(given: Sequence[str] | None = None) -> None:
    """Runs what the results lack; writes the page's tables if they are its own."""
    parser = StudyParser(__file__, __doc__, parts=PARTS)
    run = parser.run_of(parser.parse_args(given))
    for part in run.parts:
        path = run.out / f"{part}.json"
        cases = json.loads(path.read_text())["cases"] if path.exists() else []
        for name in METHODS if part == "released" else SYNTHESIZERS:
            if all(next(iter(case.values())) != name for case in cases):
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
