"""Replays of code whose privacy is known, and of released libraries: what is said and shown.

Usage: python -m reports.replay.run [PART ...] [--again CASE ...] [--data DIR]   (resumes)

`honest`: the generators of honest/, each at exactly its claim, 20 whole replays of at most 160 fits
each; `leaky`: the same code with one mistake, 3 whole replays each (hours). `coins`: 1,000 whole
replays of five mechanisms whose release alone decides (an hour).
`planted`: faults in code that a library could have, one at a time.
`six`: the published PATE-GANs. `own`: this project's generators. `released`: every method of the
libraries that have an environment (`dpaudit env create LIBRARY`; hours, most of them fits; needs
--data). `reproduced`: what the programs for maintainers in reports/bugs/reproductions print (needs
the environments of the bugs). Each writes results/PART.json after every case; the tables of
README.md are made from all.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

from scipy.stats import beta

from dpaudit.errors import ReplayError
from dpaudit.formatting import clipped
from dpaudit.replaying.record import ReplayRecord
from dpaudit.replaying.run import replays_of
from dpaudit.results.verdict import Verdict
from dpaudit.versions import versions
from reports import markdown
from reports.command import StudyParser, start, write_json
from reports.replay.honest.case import Case
from reports.replay.honest.cases import every_case
from reports.replay.kept import (
    ReplayStoppedError,
    findings_table,
    spent,
    stopped_after,
    value_of,
)
from reports.replay.own import GENERATORS, own_case
from reports.replay.planted import FAULTS, Fault, Planted, lines_of
from reports.replay.planted import SCHEMA as PLANTED
from reports.replay.planted import table as planted_table
from reports.replay.released import SETTINGS, released_case
from reports.replay.reproduced import PROGRAMS, reproduced, reproduced_table
from reports.replay.six import CASES, replayed
from reports.replay.unheard import MECHANISMS, SCHEMA, Mechanism, table
from reports.third_party.run import TABLES

SEEDS: Final = 20
"""Whole replays of each honest generator."""
WHOLE: Final = 200
"""Whole replays of each mechanism that the coins decide."""
QUICK: Final = 1
MINUTES: Final = 20
"""Minutes after which the replays of a case are stopped; those that ended count."""
MOST_FITS: Final = 300
"""Fits in which a large leak is to be shown."""
HONEST_FITS: Final = 160
"""Fits that may look for a leak in honest code."""
LEAKY_SEEDS: Final = 3
"""Whole replays of each leaky generator."""
VERDICTS: Final = tuple(
    map(str, (Verdict.VIOLATION, Verdict.OVERSPENT, Verdict.CONSISTENT, Verdict.INCONCLUSIVE))
)


def replays(
    subject: object,
    data: Any,
    seeds: int,
    *,
    places: Sequence[str] = (),
    **settings: Any,
) -> dict[str, Any]:
    """What whole replays of one generator say.

    Args:
        subject: The generator.
        data: Its table.
        seeds: How many replays.
        places: Places that are to be named, such as "lib.py:88": any of them will do.
        settings: Of the replays.
    """
    records: list[ReplayRecord] = []
    error = ""
    try:
        with stopped_after(MINUTES):
            for record in replays_of(subject, data, range(seeds), **settings):
                records.append(record)
    except (ReplayError, ReplayStoppedError) as failure:
        error = clipped(str(failure), 200)
    if not records:
        return {"replays": 0, "error": error}
    verdicts = Counter(str(one.verdict) for one in records)
    first = records[0].to_document()
    above = [one for one in records if one.proved is None or one.proved > one.claim.value]
    won = [one for one in records if one.verdict is Verdict.VIOLATION]
    return {
        "replays": len(records),
        "verdicts": {word: verdicts[word] for word in VERDICTS},
        **{name: first[name] for name in ("claim", "spent", "spent_unlimited", "spent_note")},
        "above": len(above),
        "read": sum(one.reading is not None for one in won),
        "played": sum(one.guesses is not None for one in records),
        "shown_in": [one.fits for one in won],
        "named": sum(bool(set(places) & named_places(one)) for one in records),
        "said": dict(Counter(str(one.reasons[0]) for one in records if one.reasons)),
        "fits": median(one.fits for one in records),
        "seconds": round(median(one.seconds for one in records), 2),
        **({"error": error} if error else {}),
    }


def named_places(record: ReplayRecord) -> set[str]:
    """What a record names: in reasons, where the worlds part, seeds, noise, the ledger."""
    parted = set() if record.parting is None else {str(record.parting.place)}
    said = set(re.findall(r"[\w.]+\.py:\d+|model\.\w+", " ".join(record.reasons)))
    places = (*record.fixed_seeds, *record.few_seeds, *record.fresh_noise)
    lost = {one.place for one in record.not_followed}
    return said | parted | lost | set(places) | {line.place for line in record.ledger}


def known_case(case: Case, seeds: int, *, leaky: bool) -> dict[str, Any]:
    """What whole replays of an honest generator, or of its twin, say."""
    make = case.twin if leaky else case.generator
    assert make is not None
    places = sorted(case.fault_places) if leaky else []
    settings: dict[str, Any] = {
        "schema": case.schema,
        "epsilon": case.epsilon,
        "delta": case.delta,
        "places": places,
        "fits": None if leaky else HONEST_FITS,
    }
    with tempfile.TemporaryDirectory() as folder:
        if case.other is None:
            settings |= {"target": case.target, "neighbours": case.neighbours}
        else:
            settings["neighbours_file"] = str(Path(folder) / "other.csv")
            case.other.to_csv(settings["neighbours_file"], index=False)
        found = replays(make(), case.table, seeds, **settings)
    shows = case.twin_shows if leaky else case.epsilon
    is_large = leaky and case.released and shows is not None and shows >= 2 * case.epsilon
    return {
        "case": f"{case.family}: {case.name}",
        "family": case.family,
        "disputable": case.disputable,
        "meant": bool(places),
        "large": is_large,
        **found,
    }


def coin_case(mechanism: Mechanism, seeds: int) -> dict[str, Any]:
    """What whole replays of a mechanism that only its release can refute say."""
    found = replays(mechanism, table(), seeds, schema=SCHEMA, target="row:19", **mechanism.claimed)
    return {"mechanism": mechanism.name, **found}


def planted_case(fault: Fault | None, seeds: int) -> dict[str, Any]:
    """What whole replays of the synthesizer with a fault say, and whether they name its line."""
    lines = [] if fault is None else [f"planted.py:{line}" for line in lines_of(fault.name)]
    subject = Planted(None if fault is None else fault.name)
    found = replays(subject, planted_table(), seeds, places=lines, schema=PLANTED, target="row:59")
    return {"fault": "none" if fault is None else fault.what, "meant": bool(lines), **found}


def counts_table(first: str, cases: Sequence[Mapping[str, Any]], group: str) -> str:
    """One row for each group of cases: how often each verdict was said.

    Args:
        first: The head of the first column.
        cases: The cases.
        group: The field by which they are grouped.
    """
    alone = len({one[group] for one in cases}) == len(cases)
    heads = (first, *(() if alone else ("cases",)), "replays", *VERDICTS, "place named")
    rows = []
    for name in dict.fromkeys(one[group] for one in cases):
        own = [one for one in cases if one[group] == name]
        done = [one for one in own if one["replays"]]
        meant = [one for one in done if one.get("meant")]
        named = f"{sum(one['named'] for one in meant)} of {sum(one['replays'] for one in meant)}"
        row = [name, *(() if alone else (len(own),)), sum(one["replays"] for one in own)]
        row += [sum(one["verdicts"][word] for one in done) for word in VERDICTS]
        row.append(named if meant else "–")
        if alone:
            row.append(_said(own[0]))
        row += [f"{median(one[key] for one in done):.3g}" for key in _TIMES] if done else ["–"] * 2
        rows.append(row)
    return markdown.table((*heads, *(("spent; said most often",) if alone else ()), *_TIMES), rows)


_TIMES: Final = ("fits", "seconds")


def _said(one: Mapping[str, Any]) -> str:
    """What the steps spend, and the reason that was given most often."""
    if not one["replays"]:
        return str(one["error"])
    reasons = sorted(one["said"], key=lambda reason: -one["said"][reason])
    return "; ".join([f"{spent(one)} of {value_of(one['claim']):.3g}", *reasons[:1]])


def honest_table(cases: Sequence[dict[str, Any]]) -> str:
    """Honest generators by family, and the rate of violations over all."""
    return counts_table("honest", cases, "family") + _rate(cases) + _listed(cases, "violation")


def leaky_table(cases: Sequence[dict[str, Any]]) -> str:
    """Leaky twins by family, those that are called consistent, and the large leaks."""
    large = [one for one in cases if one["large"] and one["replays"]]
    shown = sum(one["verdicts"]["violation"] for one in large)
    few = sum(fits <= MOST_FITS for one in large for fits in one["shown_in"])
    said = (
        f"\nOf {len(large)} leaks of at least twice the claim that stand in what is released, "
        f"{shown} of {sum(one['replays'] for one in large)} replays are a violation, {few} in at "
        f"most {MOST_FITS} fits.\n"
    )
    return counts_table("leaky", cases, "family") + said + _listed(cases, "consistent")


def coins_table(cases: Sequence[dict[str, Any]]) -> str:
    """Mechanisms at exactly their claims whose release alone decides."""
    return counts_table("only the release decides", cases, "mechanism") + _rate(cases)


def _rate(cases: Sequence[Mapping[str, Any]]) -> str:
    """How many whole replays end in a violation, with its limit."""
    count = sum(one["replays"] for one in cases)
    wrong = sum(one["verdicts"]["violation"] for one in cases if one["replays"])
    limit = float(beta.ppf(0.99, wrong + 1, count - wrong)) if count > wrong else 1.0
    return (
        f"\n{wrong} of {count} whole replays at exactly the claim end in a violation: with 99 % "
        f"confidence at most {100 * limit:.2f} % do, where 5 % may.\n"
    )


def _listed(cases: Sequence[Mapping[str, Any]], word: str) -> str:
    """The cases that end in a verdict, and how often."""
    found = [
        f"{one['case']} ({one['verdicts'][word]} of {one['replays']}"
        f"{', disputable' if one['disputable'] else ''})"
        for one in cases
        if one["replays"] and one["verdicts"][word]
    ]
    return f"\nCalled {word}: {'; '.join(found) or 'none'}.\n"


TABLE_OF: Final[Mapping[str, Callable[[Sequence[dict[str, Any]]], str]]] = {
    "honest": honest_table,
    "leaky": leaky_table,
    "coins": coins_table,
    "planted": lambda cases: counts_table("planted", cases, "fault"),
    "six": lambda cases: findings_table("published PATE-GAN", cases),
    "own": lambda cases: findings_table("generator", cases),
    "released": lambda cases: findings_table("method, defaults", cases),
    "reproduced": reproduced_table,
}
"""The table of each part."""


def page(results: Path) -> str:
    """The tables of README.md."""
    files = {part: results / f"{part}.json" for part in TABLE_OF}
    return "\n".join(
        make(json.loads(files[part].read_text())["cases"])
        for part, make in TABLE_OF.items()
        if files[part].exists()
    )


def _name(one: Mapping[str, Any]) -> str:
    """The name of a case in the results: their first field."""
    return str(next(iter(one.values())))


def _cases(part: str, data: Path | None, *, quick: bool) -> dict[str, Callable[[], dict[str, Any]]]:
    """What makes each case of a part, by name."""
    seeds, whole = (QUICK, QUICK) if quick else (SEEDS, WHOLE)
    if part in ("honest", "leaky"):
        leaky = part == "leaky"
        seeds = min(seeds, LEAKY_SEEDS) if leaky else seeds
        return {
            f"{one.family}: {one.name}": partial(known_case, one, seeds, leaky=leaky)
            for one in every_case()
            if not leaky or one.twin is not None
        }
    others: dict[str, dict[str, Callable[[], dict[str, Any]]]] = {
        "coins": {one.name: partial(coin_case, one, whole) for one in MECHANISMS},
        "planted": {
            "none" if fault is None else fault.what: partial(planted_case, fault, seeds)
            for fault in (None, *FAULTS)
        },
        "six": {one.name: partial(replayed, one) for one in CASES},
        "own": {one.name: partial(own_case, one, quick=quick) for one in GENERATORS},
        "released": {str(one): partial(released_case, one, data, quick=quick) for one in SETTINGS},
        "reproduced": {name: partial(reproduced, name) for name in PROGRAMS},
    }
    return others[part]


def main(given: Sequence[str] | None = None) -> None:
    """Runs what the results lack; writes the page's tables if they are its own."""
    parser = StudyParser(__file__, __doc__, parts=tuple(TABLE_OF), tables=TABLES)
    parser.add_argument(
        "--again", nargs="+", metavar="CASE", help="make only cases that begin so, done or not"
    )
    options = parser.parse_args(given)
    run, again = parser.run_of(options), tuple(options.again or ())
    for part in run.parts:
        made = _cases(part, run.data, quick=run.quick)
        path = run.out / f"{part}.json"
        found: list[dict[str, Any]] = json.loads(path.read_text())["cases"] if path.exists() else []
        names = list(made)
        for name, make in made.items():
            done = any(_name(one) == name for one in found)
            if not name.startswith(again) if again else done:
                continue
            one = make()
            found = [*(other for other in found if _name(other) != name), one]
            found.sort(key=lambda one: names.index(_name(one)))
            write_json(path, {"versions": versions(), "cases": found})
            if run.is_whole:
                markdown.replace_table(run.home / "README.md", page(run.out))
            print(name, flush=True)


if __name__ == "__main__":
    start(main)
