"""Mechanisms that answer by failing, exactly as often as their epsilon allows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

import numpy as np
from scipy.special import expit

from dpaudit.errors import RowCountError
from reports.calibration import honest
from reports.calibration.mechanisms import BoolArray, FloatArray

RARE: Final = 0.1
"""Probability of a rare failure without the target."""


class Failure(NamedTuple):
    """How a trial failed.

    Attributes:
        error: Why, as a run folder has it.
        rows: Synthetic rows that came; None if there was no table.
    """

    error: str
    rows: int | None = None


class Shown(NamedTuple):
    """What trials show.

    Attributes:
        scores: The score of each; shape (n,).
        failures: How each failed; None where it finished.
    """

    scores: FloatArray
    failures: Sequence[Failure | None]


def short_by(missing: int) -> Failure:
    """The failure of a table that lacks rows."""
    rows = honest.RECORDS - missing
    return Failure(str(RowCountError(rows, honest.RECORDS)), rows)


EXCEPTION: Final = Failure("ArithmeticError")


class How(StrEnum):
    """How a mechanism answers."""

    EXCEPTION = "an exception"
    ROW = "a missing row"
    RARE_EXCEPTION = "a rare exception"
    RARE_ROW = "a rare missing row"
    ROWS = "one missing row or two"
    EITHER = "an exception or a score"


@dataclass(frozen=True)
class Failing:
    """Whether the target is there shows in how trials end, and, of one kind, in their scores too.

    Attributes:
        how: How it answers: by randomised response; where failures are rare, by one that is
            e^epsilon times as probable with the target; or by one of three outcomes, of which a
            failure is e^epsilon times as probable with it, and a low score without it.
        epsilon: Its true epsilon.
    """

    how: How
    epsilon: float

    def shown(self, member: BoolArray, rng: np.random.Generator) -> Shown:
        """Draws what every trial shows; `member` says whether its world is "in"."""
        noise, drawn = rng.normal(size=len(member)), rng.random(len(member))
        yes = drawn < np.where(member, expit(self.epsilon), expit(-self.epsilon))
        rare = drawn < RARE * np.where(member, math.exp(self.epsilon), 1.0)
        match self.how:
            case How.EXCEPTION:
                return Shown(noise, [EXCEPTION if one else None for one in yes])
            case How.ROW:
                return Shown(noise, [short_by(1) if one else None for one in yes])
            case How.RARE_EXCEPTION:
                return Shown(noise, [EXCEPTION if one else None for one in rare])
            case How.RARE_ROW:
                return Shown(noise, [short_by(1) if one else None for one in rare])
            case How.ROWS:
                return Shown(noise, [short_by(2 if one else 1) for one in yes])
            case How.EITHER:
                low = drawn > 1.0 - RARE * np.where(member, 1.0, math.exp(self.epsilon))
                scores = np.where(low, 0.0, 1.0)
                return Shown(scores, [EXCEPTION if one else None for one in rare])
