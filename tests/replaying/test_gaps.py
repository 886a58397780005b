"""Numbers drawn from gaps that a choice picks: what they spend is their densities' ratio."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpaudit.replaying.orders import costliest_outcomes
from dpaudit.replaying.transcript import ChoiceStep, Pair, Site, Transcript
from dpaudit.results.verdict import Verdict
from listened import CELLS, TABLE, Released, replayed, same_rows

Draw = Callable[[Any, Any, int], float]
"""A number from the ends of gaps, their probabilities and a seed."""


def by_choice(ends: Any, chances: Any, seed: int) -> float:
    rng = np.random.default_rng(seed)
    gap = rng.choice(len(chances), p=chances)
    return float(rng.uniform(ends[gap], ends[gap + 1]))


def by_search(ends: Any, chances: Any, seed: int) -> float:
    rng = np.random.default_rng(seed)
    gap = np.searchsorted(np.cumsum(chances), rng.random())
    return float(ends[gap] + (ends[gap + 1] - ends[gap]) * rng.random())


def by_python(ends: Any, chances: Any, seed: int) -> float:
    rng = random.Random(seed)
    [gap] = rng.choices(range(len(chances)), weights=chances)
    return round(rng.uniform(float(ends[gap]), float(ends[gap + 1])), 3)


def by_gumbel_noise(ends: Any, chances: Any, seed: int) -> float:
    rng = np.random.default_rng(seed)
    with np.errstate(divide="ignore"):
        scores = np.log(chances)
    gap = np.argmax(scores + rng.gumbel(size=len(scores)))
    return float(rng.uniform(ends[gap], ends[gap + 1]))


def by_a_loop(ends: Any, chances: Any, seed: int) -> float:
    rng = np.random.default_rng(seed)
    left, gap = rng.random(), 0
    while left >= chances[gap] and gap < len(chances) - 1:
        left, gap = left - chances[gap], gap + 1
    return float(rng.uniform(ends[gap], ends[gap + 1]))


def of_the_gap(ends: Any, chances: Any, seed: int) -> float:
    rng = np.random.default_rng(seed)
    gap = rng.choice(len(chances), p=chances)
    rng.uniform(ends[gap], ends[gap + 1])
    return float(ends[gap])


class Median:
    """The exponential mechanism over the gaps between sorted values, whose ends are private."""

    proof = "composition"

    def __init__(self, draw: Draw, rate: float = 0.5) -> None:
        self.draw, self.rate = draw, rate

    def gaps(self, values: Any) -> tuple[Any, Any]:
        ends = np.r_[0.0, np.sort(values), float(CELLS)]
        scores = -np.abs(np.arange(len(ends) - 1) - len(values) / 2)
        weights = np.diff(ends) * np.exp(self.rate * scores)
        return ends, weights / weights.sum()

    def fit(self, data: pd.DataFrame, *, seed: int) -> Released:
        return Released([self.draw(*self.gaps(data["a"].to_numpy()), seed)], same_rows)

    def spent(self, neighbours: str) -> float:
        """The largest ratio of the densities at numbers inside the cells, as they are defined."""
        out = TABLE["a"].to_numpy().copy()
        out[-1] = 0  # the replacement that the seed draws
        out = out[:-1] if neighbours == "add-remove" else out
        logs = []
        for values in (TABLE["a"].to_numpy(), out):
            ends, chances = self.gaps(values)
            own = [
                sum(
                    chance / (high - low)
                    for low, high, chance in zip(ends, ends[1:], chances, strict=False)
                    if low < number < high
                )
                for number in np.arange(CELLS) + 0.5
            ]
            logs.append(np.log(own))
        return float(np.max(np.abs(logs[0] - logs[1])))


@pytest.mark.usefixtures("worlds")
@pytest.mark.parametrize("draw", [by_choice, by_search, by_python, by_gumbel_noise])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_a_median_spends_the_ratio_of_its_densities(draw: Draw, neighbours: str) -> None:
    generator = Median(draw)
    spent = generator.spent(neighbours)
    settings: dict[str, Any] = {"neighbours": neighbours, "coins": False}
    record = replayed(generator, epsilon=spent * 1.0001, **settings)
    assert record.verdict is Verdict.CONSISTENT, str(record)
    assert record.spent == pytest.approx(spent, rel=1e-6)
    record = replayed(generator, epsilon=spent * 0.98, **settings)
    assert record.verdict is Verdict.VIOLATION, str(record)
    assert record.proved == 0.0


@pytest.mark.usefixtures("worlds")
@pytest.mark.parametrize("draw", [by_a_loop, of_the_gap])
@pytest.mark.parametrize("rate", [0.5, 1.0])
def test_what_is_said_of_the_gap_itself_refutes_no_proof(draw: Draw, rate: float) -> None:
    """At the larger rate, the gaps that the record moves are so rare that no replay picks one."""
    for neighbours in ("add-remove", "replace-one"):
        record = replayed(Median(draw, rate), neighbours=neighbours, coins=False)
        assert record.verdict is Verdict.INCONCLUSIVE, str(record)


def test_outcomes_are_ordered_by_place_or_by_comparison_the_costliest_first() -> None:
    site = Site("code.py", 1, "fit")
    chances = np.array([0.5, 0.25, 0.25]), np.array([0.1, 0.25, 0.65])
    place, compared = ("choose", site, 1), ("choose", site, 2)
    given: dict[str, Any] = {"site": site, "places": np.array([1]), "toss": None}
    never = Pair(*(np.append(own, 0.0) for own in chances))
    tables = (Pair(*chances),)
    transcript = Transcript(
        choices=[
            ChoiceStep(**given, tables=(never,), key=place),
            ChoiceStep(**given, tables=tables, key=compared, sides=(False, False)),
            ChoiceStep(**given, tables=tables, key=("choose", site, 3), is_late=True),
        ]
    )
    assert costliest_outcomes(transcript) == [
        {"chosen": {place: (0,)}},
        {"chosen": {compared: (True,)}},
        {"chosen": {place: (2,)}},
        {"chosen": {compared: (False, False)}},
        {"chosen": {place: (1,)}},
        {"chosen": {compared: (False, True)}},
    ]
