"""What remains in a valid game, explained: one deviation mended at a time.

Usage: python remains.py DATA_FOLDER [--models 200] [--names ...]

Of every implementation whose valid audit (average or worst case) proved a violation, each further
deviation alone is mended and the valid audit played again: a fix after which nothing is proved
names the leak. Run after average.py and worst.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import audits
import average
import pandas as pd
import worst
from kept import Record, arguments, kept, names, read
from published import SIX
from setting import (
    TARGET,
    TEACHERS,
    Game,
    average_schema,
    average_table,
    parameters,
    worst_schema,
    worst_table,
)

from dpaudit.model.schema import Schema
from dpaudit.plugins.registry import GENERATORS, build


def main(given: list[str] | None = None) -> None:
    """Plays what is not kept yet."""
    parser = arguments(__doc__)
    parser.add_argument("--models", type=int, default=200, help="shadow models of each world")
    parser.add_argument("--names", type=names, help="these, whatever their valid audits found")
    parser.add_argument("--cases", type=names, default=["average", "worst"])
    parser.add_argument("--iterations", type=int, help="1000, and 100 in the worst case, if absent")
    parser.add_argument("--runs", type=Path, default=Path("runs/pate-gan-audit"))
    parser.add_argument("--jobs", type=int)
    asked = parser.parse_args(given)
    for case in asked.cases:
        is_worst = case == "worst"
        table = worst_table() if is_worst else average_table(asked.data)
        schema = worst_schema() if is_worst else average_schema()
        settings: dict[str, Any] = {
            "iterations": asked.iterations or (100 if is_worst else 1000),
            "teachers": worst.TEACHERS if is_worst else TEACHERS,
            "worst_case": is_worst,
        }
        for name in asked.names or violating(read(asked.results, case)):
            for fix in ("", *fixes(name, schema, settings)):
                _play(asked, case, name, fix, table, schema, settings)


def violating(records: dict[str, Record]) -> list[str]:
    """The implementations whose valid audit proved a violation."""
    return [name for name in SIX if records.get(f"{name}-valid", {}).get("verdict") == "violation"]


def fixes(name: str, schema: Schema, settings: dict[str, Any]) -> list[str]:
    """The deviations that are left in a valid game."""
    given = parameters(name, Game.VALID, **settings)
    generator = build(name, GENERATORS, given=given, offered={"schema": schema})
    return sorted(str(switch) for switch in cast(Any, generator).switches)


def _play(
    asked: Any,
    case: str,
    name: str,
    fix: str,
    table: pd.DataFrame,
    schema: Schema,
    settings: dict[str, Any],
) -> None:
    given = parameters(name, Game.VALID, fixed=fix, **settings)
    attack = worst.ATTACK if case == "worst" else average.ATTACK
    question = {
        "generator": name,
        "parameters": given,
        "case": case,
        "fix": fix,
        "attack": attack,
        "models": asked.models,
        "seed": asked.seed,
    }
    label = f"{case}-{name}-{fix or 'nothing'}"
    kept(
        asked.results / "remains" / f"{label}.json",
        question,
        lambda: audits.play(
            name,
            table,
            schema,
            parameters=given,
            target=worst.TARGET if case == "worst" else TARGET,
            attack=attack,
            models=asked.models,
            hold_out=False,
            seed=asked.seed,
            runs=asked.runs,
            name=f"remains-{label}",
            jobs=asked.jobs,
        ),
    )


if __name__ == "__main__":
    main()
