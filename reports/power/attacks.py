"""Several attacks: scoring all of them, the most promising one, or one with their combination.

Usage: python -m reports.power.attacks [LEAK ...]   (five seconds of CPU time an audit; resumes)

Each simulated audit has 400 models, the default attacks and real synthetic tables, drawn from a
public distribution with a leak written into them; nothing is trained. All rules judge the same
features. Writes results/attacks.json after every few audits, and a table of README.md; the same
numbers every time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any, Final, NamedTuple

import loky
import numpy as np
import pandas as pd

from dpaudit.auditing.games import audit_settings
from dpaudit.auditing.settings import DEFAULT_ATTACKS, AuditSettings
from dpaudit.auditing.two_worlds.attacking import (
    COMBINED,
    Combined,
    FittingScore,
    Part,
    SplitTrials,
    evaluate,
    fit_attack,
    select,
)
from dpaudit.bounds import EpsilonGuarantee
from dpaudit.game.features import SeenTable, features_of_tables
from dpaudit.model.claim import Neighbours
from dpaudit.model.column import Column, Kind
from dpaudit.model.encoding import values_of_table
from dpaudit.model.schema import Schema
from dpaudit.plugins.named import NamedAttack, named_attacks
from dpaudit.plugins.protocols import BoolArray, FloatArray, GameView
from dpaudit.versions import versions
from reports import markdown
from reports.calibration.audits import mapped
from reports.command import StudyParser, start, write_json

MODELS, QUICK_MODELS = 400, 40
CLAIM: Final = 1.0
AT_ONCE: Final = 10
"""Audits between two writes of the results."""
MARK: Final = "<!-- attacks -->"
ROWS: Final = 60
SCHEMA: Final = Schema(
    columns=(
        Column(name="age", kind=Kind.INTEGER, lower=0, upper=99),
        Column(name="income", kind=Kind.CONTINUOUS, lower=0, upper=100),
        Column(name="weight", kind=Kind.CONTINUOUS, lower=40, upper=120),
        Column(name="job", kind=Kind.CATEGORICAL, categories=("a", "b", "c", "d")),
        Column(name="married", kind=Kind.BINARY, categories=(0, 1)),
    )
)
TARGET: Final = {"age": 67, "income": 93.41, "weight": 91.37, "job": "c", "married": 1}
RULES: Final = ("bonferroni", "select, no combination", "select")

Draw = np.random.Generator
Write = Callable[[pd.DataFrame, bool, Draw], pd.DataFrame]
"""Writes a leak into a public table, of a model with or without the target."""


def public_table(rng: Draw) -> pd.DataFrame:
    """Draws a table from the public distribution."""
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, ROWS),
            "income": rng.normal(50, 6, ROWS).round(2),
            "weight": rng.normal(75, 8, ROWS).clip(40, 120).round(2),
            "job": rng.choice(list("abcd"), ROWS, p=[0.4, 0.3, 0.2, 0.1]),
            "married": rng.choice([0, 1], ROWS, p=[0.45, 0.55]),
        }
    )


def _moved(table: pd.DataFrame, answer: float) -> pd.DataFrame:
    """The table with a column whose mean is a noisy answer, and says nothing else."""
    return table.assign(income=table["income"] - table["income"].mean() + 50 + answer)


def _copied(table: pd.DataFrame) -> pd.DataFrame:
    """The table with the target for its first row."""
    return pd.concat([pd.DataFrame([TARGET]), table.iloc[1:]], ignore_index=True)


def _repeated(table: pd.DataFrame, times: int) -> pd.DataFrame:
    """The table with some rows twice."""
    rows = np.arange(len(table))
    rows[1 : 2 * times : 2] = rows[: 2 * times : 2]
    return table.iloc[rows].reset_index(drop=True)


def _response(seen: bool, epsilon: float, rng: Draw) -> float:
    return float(seen == (rng.random() < 1.0 / (1.0 + np.exp(-epsilon))))


class Leak(NamedTuple):
    """A leak.

    Attributes:
        write: Writes it.
        audits: How many are simulated.
        delta: Of the claim.
    """

    write: Write
    audits: int = 40
    delta: float = 1e-5


LEAKS: Final[dict[str, Leak]] = {
    "Gaussian μ 1 in a sum": Leak(lambda t, seen, rng: _moved(t, seen + rng.normal()), 200),
    "Gaussian μ 2 in a sum": Leak(lambda t, seen, rng: _moved(t, 2.0 * seen + rng.normal())),
    "Laplace ε 1 in a sum": Leak(lambda t, seen, rng: _moved(t, seen + rng.laplace()), 60, 0.0),
    "Laplace ε 2 in a sum": Leak(
        lambda t, seen, rng: _moved(t, seen + rng.laplace() / 2.0), delta=0.0
    ),
    "randomised response ε 1": Leak(
        lambda t, seen, rng: _moved(t, _response(seen, 1.0, rng)), 60, 0.0
    ),
    "randomised response ε 2": Leak(
        lambda t, seen, rng: _moved(t, _response(seen, 2.0, rng)), delta=0.0
    ),
    "target copied in 1 of 5": Leak(
        lambda t, seen, rng: _copied(t) if seen and rng.random() < 0.2 else t
    ),
    "row repeated in 1 of 5": Leak(
        lambda t, seen, rng: _repeated(t, 1) if seen and rng.random() < 0.2 else t
    ),
    "target always copied": Leak(lambda t, seen, rng: _copied(t) if seen else t),
    "sum and repeated rows": Leak(
        lambda t, seen, rng: _repeated(
            _moved(t, 0.8 * seen + rng.normal()), int(rng.poisson(4 + 1.8 * seen))
        )
    ),
    "null": Leak(lambda t, seen, rng: t, 60),
}
ATTACKS: Final = named_attacks(DEFAULT_ATTACKS)
VIEW: Final = GameView(
    schema=SCHEMA,
    others=SCHEMA.canonical(public_table(np.random.default_rng(1))),
    target=SCHEMA.canonical(pd.DataFrame([TARGET])),
    n_rows=ROWS,
    neighbours=Neighbours.ADD_REMOVE,
)
WIDTHS: Final = tuple(len(one.feature_names(VIEW)) for one in ATTACKS)


class Simulated(NamedTuple):
    """The features [n, f] of all trials, those of each attack in turn, and memberships [n]."""

    features: FloatArray
    member: BoolArray


def simulate(name: str, number: int, models: int) -> Simulated:
    """Draws the trials of one audit, the fitting part first."""
    rng = np.random.default_rng([list(LEAKS).index(name), number])
    places, fitted = np.arange(models), 2 * audit_settings(shadow_models=models).game.fitted
    member = np.where(places < fitted, places % 2 == 0, rng.random(models) < 0.5)
    values = [
        values_of_table(
            SCHEMA.canonical(LEAKS[name].write(public_table(rng), bool(seen), rng)), SCHEMA
        )
        for seen in member
    ]
    makers = [one.attack for one in ATTACKS]
    features = features_of_tables([SeenTable(table) for table in values], makers, VIEW)
    return Simulated(np.array(features), member)


class Judged(NamedTuple):
    """One audit.

    Attributes:
        corrected: The largest bound of an attack, corrected for their number.
        forecasts: Of each attack and of the combination: the bound that the fitting part promises.
        separations: The same: |AUC - 1/2| there.
        proved: The same: the bound without correction.
    """

    corrected: float
    forecasts: list[float]
    separations: list[float]
    proved: list[float]

    def selected(self, *, combination: bool) -> int:
        """Which candidate an audit selects.

        Args:
            combination: Whether the combination is one.
        """
        found = [FittingScore(*one) for one in zip(self.forecasts, self.separations, strict=True)]
        if combination:
            return select(found[:-1], found[-1])
        return max(range(len(found) - 1), key=found.__getitem__)

    def bounds(self) -> tuple[float, ...]:
        """What each of `RULES` proves."""
        chosen = (self.selected(combination=some) for some in (False, True))
        return (self.corrected, *(self.proved[one] for one in chosen))


def judge(name: str, number: int, models: int) -> Judged:
    """All bounds and forecasts of one audit."""
    audit, delta = simulate(name, number, models), LEAKS[name].delta
    stops = [0, *accumulate(WIDTHS)]
    attacks = [
        *zip(ATTACKS, (slice(*ends) for ends in pairwise(stops)), strict=True),
        (NamedAttack(COMBINED, Combined(ATTACKS, WIDTHS)), slice(0, stops[-1])),
    ]

    def scored(
        attack: NamedAttack, place: slice, settings: AuditSettings
    ) -> tuple[FittingScore, float]:
        fitted = 2 * settings.game.fitted
        fitting, others = (
            Part(audit.features[part, place], audit.member[part])
            for part in (slice(None, fitted), slice(fitted, None))
        )
        guarantee = EpsilonGuarantee(delta)
        rng = np.random.default_rng([number, 3])
        fixed = fit_attack(attack.attack, fitting, settings=settings, guarantee=guarantee, rng=rng)
        trials = SplitTrials(fitting, others, failed_in=0, failed_out=0)
        confidence = settings.attack_confidence
        found = evaluate(fixed, trials, guarantee=guarantee, confidence=confidence)
        return fixed.forecast, found.proved

    every, one = (
        audit_settings(shadow_models=models, multiplicity=rule) for rule in ("bonferroni", "select")
    )
    corrected = max(scored(*attack, every)[1] for attack in attacks[:-1])
    found = [scored(*attack, one) for attack in attacks]
    return Judged(
        round(corrected, 4),
        [round(forecast.bound, 4) for forecast, _ in found],
        [round(forecast.separation, 4) for forecast, _ in found],
        [round(proved, 4) for _, proved in found],
    )


class Task(NamedTuple):
    """Some audits of one leak, by their numbers."""

    leak: str
    numbers: list[int]
    models: int


def run_task(task: Task) -> list[Judged]:
    """Judges some audits."""
    return [judge(task.leak, number, task.models) for number in task.numbers]


def page(cases: dict[str, Any]) -> str:
    """The results as a Markdown table."""
    heads = ("leak", "audits", *RULES, "combination alone", "combination chosen")
    rows = []
    for name, case in cases.items():
        audits = [Judged(**one) for one in case.values()]
        alone = [audit.proved[-1] for audit in audits]
        columns = [*zip(*(audit.bounds() for audit in audits), strict=True), alone]
        chosen = sum(audit.selected(combination=True) == len(ATTACKS) for audit in audits)
        shown = (f"{np.median(own):.2f} ({_share_above(own)})" for own in columns)
        rows.append((name, len(audits), *shown, f"{100 * chosen / len(audits):.0f} %"))
    return markdown.table(heads, rows)


def _share_above(bounds: Sequence[float]) -> str:
    return f"{100 * np.mean(np.array(bounds) > CLAIM):.0f} %"


def main(given: Sequence[str] | None = None) -> None:
    """Runs the audits that the results lack; writes the page's table if they are its own."""
    parser = StudyParser(__file__, __doc__, parts=tuple(LEAKS), has_jobs=True)
    run = parser.run_of(parser.parse_args(given))
    path = run.out / "attacks.json"
    cases: dict[str, Any] = json.loads(path.read_text())["cases"] if path.exists() else {}
    models = QUICK_MODELS if run.quick else MODELS
    tasks = []
    for name in run.parts:
        wanted = range(1 if run.quick else LEAKS[name].audits)
        left = [number for number in wanted if str(number) not in cases.get(name, {})]
        for first in range(0, len(left), AT_ONCE):
            tasks.append(Task(name, left[first : first + AT_ONCE], models))
    with mapped(min(run.jobs or loky.cpu_count(), len(tasks)), run_task) as judged:
        for task, found in zip(tasks, judged(tasks), strict=True):
            case = cases.setdefault(task.leak, {})
            for number, one in zip(task.numbers, found, strict=True):
                case[str(number)] = one._asdict()
            cases = {name: cases[name] for name in LEAKS if name in cases}
            write_json(path, {"versions": versions(), "models": models, "cases": cases})
            print(f"{task.leak}: {len(case)}", flush=True)
    if run.is_whole:
        markdown.replace_table(run.home / "README.md", page(cases), mark=MARK)


if __name__ == "__main__":
    start(main)
