"""One number of the study: how often one rule flags one mechanism falsely."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from scipy.stats import beta

from dpaudit.seeds import Stream

NOMINALS = (0.05, 0.01)
INTERVAL = 0.99
TOLERANCES = {0.05: 0.015, 0.01: 0.01}
"""By how much the upper limit of a simulated rate may exceed each nominal rate.

Of 3,000 draws at a true 5 % that limit is near 6.1 %, and within 6.5 % six times in seven.
"""


class Shown(StrEnum):
    """What a cell, or several, show of a rule."""

    HOLDS = "yes"
    NOT_SHOWN = "not shown"
    FAILS = "**no**"


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A false-violation rate: how often the rule's bound lies above the true epsilon.

    Attributes:
        rule: The rule.
        ours: Whether it may enter a verdict of dpaudit.
        where: Mechanism, its epsilon and the threshold, in words.
        n: Trials of either world, pairs, or canaries; of bets and preset weights, all trials.
        nominal: The rate that the rule admits.
        rate: The rate found.
        low: Lower end of its 99 % interval.
        high: Upper end; equal to the lower one where all outcomes were enumerated.
        draws: Simulated audits; 0 where all outcomes were enumerated.
    """

    rule: str
    ours: bool
    where: str
    n: int
    nominal: float
    rate: float
    low: float
    high: float
    draws: int

    def record(self) -> dict[str, Any]:
        """As written to the JSON."""
        return asdict(self)


def shown(cells: Iterable[Mapping[str, Any]]) -> Shown:
    """What cells show of the rule that they all have.

    Args:
        cells: Their records.

    Returns:
        FAILS if a rate is above its nominal one, where it was simulated with 99 % confidence;
        HOLDS if none is: each enumerated one within the nominal rate, the upper limit of each
        simulated one within that and its tolerance; else NOT_SHOWN.
    """
    every = list(cells)
    if any(cell["low"] > cell["nominal"] for cell in every):
        return Shown.FAILS
    within = (
        cell["high"] <= cell["nominal"] + (TOLERANCES[cell["nominal"]] if cell["draws"] else 0.0)
        for cell in every
    )
    return Shown.HOLDS if all(within) else Shown.NOT_SHOWN


def enumerated(rule: str, *, ours: bool, where: str, n: int, nominal: float, rate: float) -> Cell:
    """A cell whose rate was summed over all outcomes."""
    rate = round(rate, 6)
    return Cell(
        rule=rule, ours=ours, where=where, n=n, nominal=nominal,
        rate=rate, low=rate, high=rate, draws=0,
    )  # fmt: skip


def simulated(
    rule: str, *, ours: bool, where: str, n: int, nominal: float, violations: int, draws: int
) -> Cell:
    """A cell whose rate was simulated, with its Clopper-Pearson interval."""
    tail = (1.0 - INTERVAL) / 2.0
    low = float(beta.ppf(tail, violations, draws - violations + 1)) if violations else 0.0
    high = float(beta.isf(tail, violations + 1, draws - violations)) if violations < draws else 1.0
    return Cell(
        rule=rule, ours=ours, where=where, n=n, nominal=nominal,
        rate=round(violations / draws, 6), low=round(low, 6), high=round(high, 6), draws=draws,
    )  # fmt: skip


def stream(*names: object) -> np.random.Generator:
    """The random numbers of one part of the study, by name."""
    return Stream(root=3, audit="calibration", role="/".join(map(str, names))).rng()
