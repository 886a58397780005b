"""Replays of code whose privacy is known, and of released libraries: what is said and proved.

Usage: python -m reports.replay.run [PART ...] [--again CASE ...] [--data DIR]   (resumes)

`honest`: whole replays through `dpaudit.replay`, 20 counted replays each, of mechanisms at exactly
their claims (20 minutes). `planted`: faults in code that a library could have, one at a time (ten
minutes). `six`: the published PATE-GANs (a few minutes). `own`: this project's generators (a
quarter of an hour). `released`: every method of the libraries
that have an environment (`dpaudit env create LIBRARY`; hours, most of them fits; needs --data).
`reproduced`: what the programs for maintainers in reports/bugs/reproductions print (five minutes;
needs the environments of the bugs). Each writes results/PART.json after every case; the tables of
README.md are made from all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from scipy.stats import beta

from dpaudit.formatting import percent
from dpaudit.replaying.record import ReplayRecord
from dpaudit.replaying.run import replays_of
from dpaudit.versions import versions
from reports import markdown
from reports.command import StudyParser, start, write_json
from reports.replay.mechanisms import MECHANISMS, SCHEMA, Mechanism, table
from reports.replay.own import GENERATORS, own_case, own_table
from reports.replay.planted import FAULTS, Fault, Planted, lines_of
from reports.replay.planted import SCHEMA as PLANTED
from reports.replay.planted import table as planted_table
from reports.replay.released import SETTINGS, released_case
from reports.replay.reproduced import PROGRAMS, reproduced, reproduced_table
from reports.replay.six import CASES, replayed, six_table
from reports.third_party.run import TABLES

WHOLE: Final = 60
"""Whole replays of each mechanism."""
QUICK: Final = 2
PARTS: Final = ("honest", "planted", "six", "own", "released", "reproduced")
COUNTED: Final = 20
CLOSE: Final = 0.05
"""How far from the claim, as a share of it, a computed epsilon still counts as at it."""


def case(mechanism: Mechanism, whole: int) -> dict[str, Any]:
    """What whole replays of one mechanism say."""
    records = list(
        replays_of(
            mechanism, table(), range(whole), schema=SCHEMA, replays=COUNTED, target="row:39"
        )
    )
    proved = [np.inf if one.proved is None else one.proved for one in records]
    return {
        "mechanism": mechanism.name,
        "epsilon": round(mechanism.epsilon, 4),
        "delta": mechanism.delta,
        "replays": whole,
        "verdicts": {
            word: sum(one.verdict == word for one in records)
            for word in ("consistent", "inconclusive", "violation")
        },
        "proved": round(float(np.median(proved)), 4),
        "above": sum(one > mechanism.epsilon * (1 + 1e-9) for one in proved),
        "computed": records[0].computed,
        "seconds": round(float(np.median([one.seconds for one in records])), 2),
    }


def planted_case(fault: Fault | None, whole: int) -> dict[str, Any]:
    """What whole replays of the synthesizer with a fault say, and whether they name its line."""
    subject = Planted(None if fault is None else fault.name)
    records = list(
        replays_of(
            subject, planted_table(), range(whole), schema=PLANTED, replays=5, target="row:59"
        )
    )
    meant = set() if fault is None else {f"planted.py:{line}" for line in lines_of(fault.name)}
    return {
        "fault": "none" if fault is None else fault.what,
        "replays": whole,
        "verdicts": {
            word: sum(one.verdict == word for one in records)
            for word in ("consistent", "inconclusive", "violation")
        },
        "proved": records[0].proved,
        "meant": sorted(meant),
        "named": sum(bool(meant & named_lines(one)) for one in records),
        "said": records[0].reasons[0],
        "fits": records[0].fits,
        "seconds": round(float(np.median([one.seconds for one in records])), 2),
    }


def named_lines(record: ReplayRecord) -> set[str]:
    """The lines that a record names: reasons, where the worlds part, fixed seeds, the ledger."""
    parted = set() if record.parting is None else {str(record.parting.place)}
    said = set(re.findall(r"[\w.]+\.py:\d+", " ".join(record.reasons)))
    return said | parted | set(record.fixed_seeds) | {line.place for line in record.ledger}


def page(results: Path) -> str:
    """The tables of README.md."""
    made = {
        "honest": honest_table,
        "planted": planted_table_of,
        "six": six_table,
        "own": own_table,
        "released": released_table,
        "reproduced": reproduced_table,
    }
    files = {part: results / f"{part}.json" for part in made}
    return "\n".join(
        make(json.loads(files[part].read_text())["cases"])
        for part, make in made.items()
        if files[part].exists()
    )


def planted_table_of(cases: Sequence[dict[str, Any]]) -> str:
    """What is said of each fault."""
    rows = [
        (
            one["fault"],
            f"{one['verdicts']['violation']} of {one['replays']}",
            one["verdicts"]["inconclusive"],
            "–" if not one["meant"] else f"{one['named']} of {one['replays']}",
            "no limit" if one["proved"] is None else f"{one['proved']:.3g}",
            one["said"],
            f"{one['fits']} in {one['seconds']:.1f} s",
        )
        for one in cases
    ]
    heads = ("planted", "violation", "inconclusive", "line named", "proved", "first reason")
    return markdown.table((*heads, "fits"), rows)


def released_table(cases: Sequence[dict[str, Any]]) -> str:
    """What is said of each method of a library, and of its costliest line."""
    return markdown.table(
        ("method, defaults", "verdict", "proved of", "computed", "why", "widest line", "fits"),
        [_released_row(one) for one in cases],
    )


def _released_row(one: Mapping[str, Any]) -> tuple[object, ...]:
    if "error" in one:
        return one["method"], "–", "–", "–", one["error"], "–", "–"
    found = one["result"]
    proved = "no limit" if found["proved"] is None else f"{found['proved']:.3g}"
    computed = "–" if found["computed"] is None else _beside(found["computed"], found["claim"])
    widest = "–"
    for line in found["ledger"][:1]:
        widest = f"{line['place']} ({line['law']}, {percent(round(line['share'], 2))})"
    parted = "" if found["parting"] is None else f"; {found['parting']['place'] or 'rows'}"
    return (
        one["method"],
        found["verdict"],
        f"{proved} of {found['claim']['epsilon']:g}",
        computed,
        found["reasons"][0] + ("" if parted[2:] in found["reasons"][0] else parted),
        widest,
        f"{found['fits']} in {found['seconds']:.0f} s",
    )


def _beside(computed: float, claim: Mapping[str, Any]) -> str:
    """The cost of the steps that were seen, and whether it is below, at or above the claim."""
    share = computed / claim["epsilon"]
    where = "below" if share < 1 - CLOSE else "at" if share < 1 + CLOSE else "above"
    return f"{computed:.3g} ({where})"


def honest_table(cases: Sequence[dict[str, Any]]) -> str:
    """What is proved of mechanisms at their claims, and the rate of violations over all."""
    rows = [
        (
            one["mechanism"],
            f"{one['epsilon']:.3g}",
            one["replays"],
            f"{one['proved']:.3g} ({100 * one['proved'] / one['epsilon']:.0f} %)",
            "–" if one["computed"] is None else f"{one['computed']:.3g}",
            one["verdicts"]["violation"],
            one["verdicts"]["inconclusive"],
            f"{one['seconds']:.1f}",
        )
        for one in cases
    ]
    heads = (
        "mechanism",
        "true ε",
        "whole replays",
        "proved, median",
        "computed",
        "violation",
        "inconclusive",
        "seconds",
    )
    count = sum(one["replays"] for one in cases)
    wrong = sum(one["verdicts"]["violation"] for one in cases)
    limit = float(beta.ppf(0.99, wrong + 1, count - wrong)) if count > wrong else 1.0
    said = (
        f"\n{wrong} of {count} whole replays at exactly the claim end in a violation: with 99 % "
        f"confidence at most {100 * limit:.2f} % do, where 5 % may.\n"
    )
    return markdown.table(heads, rows) + said


def _name(one: Mapping[str, Any]) -> str:
    """The name of a case in the results: their first field."""
    return str(next(iter(one.values())))


def main(given: Sequence[str] | None = None) -> None:
    """Runs what the results lack; writes the page's tables if they are its own."""
    parser = StudyParser(__file__, __doc__, parts=PARTS, tables=TABLES)
    parser.add_argument(
        "--again", nargs="+", metavar="CASE", help="make only cases that begin so, done or not"
    )
    options = parser.parse_args(given)
    run, again = parser.run_of(options), tuple(options.again or ())
    whole = QUICK if run.quick else WHOLE
    cases: dict[str, dict[str, Callable[[], dict[str, Any]]]] = {
        "honest": {one.name: partial(case, one, whole) for one in MECHANISMS},
        "planted": {
            "none" if fault is None else fault.what: partial(planted_case, fault, whole // 3 + 1)
            for fault in (None, *FAULTS)
        },
        "six": {one.name: partial(replayed, one) for one in CASES},
        "own": {one.name: partial(own_case, one, quick=run.quick) for one in GENERATORS},
        "released": {
            str(one): partial(released_case, one, run.data, quick=run.quick) for one in SETTINGS
        },
        "reproduced": {name: partial(reproduced, name) for name in PROGRAMS},
    }
    for part in run.parts:
        path = run.out / f"{part}.json"
        found: list[dict[str, Any]] = json.loads(path.read_text())["cases"] if path.exists() else []
        names = list(cases[part])
        for name, make in cases[part].items():
            done = any(_name(one) == name for one in found)
            if not name.startswith(again) if again else done:
                continue
            made = make()
            found = [*(one for one in found if _name(one) != name), made]
            found.sort(key=lambda one: names.index(_name(one)))
            write_json(path, {"versions": versions(), "counted": COUNTED, "cases": found})
            if run.is_whole:
                markdown.replace_table(run.home / "README.md", page(run.out))
            print(name, flush=True)


if __name__ == "__main__":
    start(main)
