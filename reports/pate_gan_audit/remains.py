"""What remains in a valid game, explained: one deviation fixed at a time.

Of every implementation whose valid audit (average or worst case) proved a violation, each further
deviation alone is fixed and the valid audit run again: a fix after which nothing is proved names
the leak. Run after the average and the worst case.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import pandas as pd

from dpaudit.model.schema import Schema
from dpaudit.plugins.registry import GENERATORS, build
from reports import cervical
from reports.pate_gan_audit import audits, average, worst
from reports.pate_gan_audit.kept import Record, kept, read
from reports.pate_gan_audit.plan import Plan
from reports.pate_gan_audit.published import SIX
from reports.pate_gan_audit.setting import (
    TEACHERS,
    Game,
    average_schema,
    average_table,
    parameters,
    worst_schema,
    worst_table,
)

MODELS = 200
"""Shadow models of each world."""


class Case(NamedTuple):
    """The average or the worst case.

    Attributes:
        name: Its name.
        table: The table, with the target in it.
        schema: Its public schema.
        target: Row of the target.
        attack: The one attack.
        settings: What `parameters` takes besides.
    """

    name: str
    table: pd.DataFrame
    schema: Schema
    target: int
    attack: str
    settings: dict[str, Any]


def cases(plan: Plan) -> tuple[Case, Case]:
    """Both cases."""
    return (
        Case(
            "average",
            average_table(plan.data),
            average_schema(),
            cervical.TARGET,
            average.ATTACK,
            {
                "iterations": plan.iterations or average.ITERATIONS,
                "teachers": TEACHERS,
                "worst_case": False,
            },
        ),
        Case(
            "worst",
            worst_table(),
            worst_schema(),
            worst.TARGET,
            worst.ATTACK,
            {
                "iterations": plan.iterations or worst.ITERATIONS,
                "teachers": worst.TEACHERS,
                "worst_case": True,
            },
        ),
    )


def run(plan: Plan) -> None:
    """Runs what is not kept yet; implementations that are named whatever their audits found."""
    for case in cases(plan):
        named = plan.chosen(SIX) if plan.names else violating(read(plan.out, case.name))
        for name in named:
            for fix in ("", *fixes(name, case)):
                _audit(plan, case, name, fix)


def violating(records: dict[str, Record]) -> list[str]:
    """The implementations whose valid audit proved a violation."""
    return [name for name in SIX if records.get(f"{name}-valid", {}).get("verdict") == "violation"]


def fixes(name: str, case: Case) -> list[str]:
    """The deviations that are left in a valid game."""
    given = parameters(name, Game.VALID, **case.settings)
    generator = build(name, GENERATORS, given=given, offered={"schema": case.schema})
    return sorted(str(switch) for switch in cast(Any, generator).switches)


def _audit(plan: Plan, case: Case, name: str, fix: str) -> None:
    given = parameters(name, Game.VALID, fixed=fix, **case.settings)
    models = plan.models or MODELS
    question = {
        "generator": name,
        "parameters": given,
        "case": case.name,
        "fix": fix,
        "attack": case.attack,
        "models": models,
        "seed": plan.seed,
    }
    label = f"{case.name}-{name}-{fix or 'nothing'}"
    asked = audits.Asked(
        generator=name,
        table=case.table,
        schema=case.schema,
        parameters=given,
        target=case.target,
        attack=case.attack,
        models=models,
        hold_out=False,
        seed=plan.seed,
        name=f"remains-{label}",
    )
    kept(plan.out / "remains" / f"{label}.json", question, lambda: audits.audit(asked, plan))
