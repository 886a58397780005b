"""Identifies the noise that a promised table of probabilities stands for."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from scipy.optimize import brentq

from dpaudit.account import Mechanism, VoteTable, vote_table
from dpaudit.account.mechanism import wrong_at
from dpaudit.trace.collector import Trace

_EXACT: Final = 1e-9
_CLIPPED: Final = 2e-6
"""Probabilities nearer to 0 or 1 may have been clipped (`VoteTable.quantised`)."""
_SAME: Final = 1e-6
_NARROWEST: Final = 1e3
"""Margin over scale: noise that narrow changes no label."""
_WIDEST: Final = 1e9
"""Votes: noise of a larger scale drowns every vote."""


class Promise(NamedTuple):
    """A mechanism and its scale.

    Attributes:
        mechanism: The mechanism.
        scale: Standard deviation of normal noise, scale of Laplace noise, in votes.
    """

    mechanism: Mechanism
    scale: float

    def table(self, teachers: int) -> VoteTable:
        """The probabilities that this noise gives."""
        return vote_table(self.mechanism, teachers, self.scale)


def promise_of(trace: Trace) -> Promise | None:
    """The noise that a training promised.

    It follows from the promised table of probabilities, or without one from `gamma`, as in PATE.

    Returns:
        The noise; None if nothing was promised, or it is not known which.
    """
    gamma = trace.constants.get("gamma", 0.0)
    if trace.promised is not None:
        return _fitted(trace.promised, gamma)
    return Promise(Mechanism.NOISY_MAX, 1.0 / gamma) if gamma > 0 else None


def teachers_of(trace: Trace) -> int | None:
    """The number k of teachers, if it is known."""
    if trace.promised is not None:
        return trace.promised.teachers
    number = trace.constants.get("teachers", 0.0)
    return int(number) if number >= 1 and number == int(number) else None


def _fitted(table: VoteTable, gamma: float) -> Promise | None:
    """The noise that a table of probabilities comes from.

    Few teachers or much noise leave several candidates: then the one of scale 1 / gamma.
    """
    k = table.teachers
    wrong = table.probabilities[: k // 2 + 1]
    margins = k / 2 - np.arange(k // 2 + 1, dtype=np.float64)
    telling = (margins > 0) & (wrong > _CLIPPED) & (wrong < 0.5)
    if not telling.any():
        return None
    wrong, margins = wrong[telling], margins[telling]
    fitting = []
    for mechanism in Mechanism:
        scale = _scale(
            mechanism, float(margins[0]), float(wrong[0])
        )  # the widest margin is the most informative
        if scale and np.all(np.abs(wrong_at(mechanism, margins / scale) - wrong) < _EXACT):
            fitting.append(Promise(mechanism, scale))
    if len(fitting) == 1:
        return fitting[0]
    alike = [one for one in fitting if abs(one.scale * gamma - 1.0) < _SAME]
    return alike[0] if len(alike) == 1 else None


def _scale(mechanism: Mechanism, margin: float, wrong: float) -> float | None:
    """The scale at which a label contradicts a majority of this margin with this probability."""

    def excess(log_x: float) -> float:
        return float(wrong_at(mechanism, np.exp(np.array(log_x))) - wrong)

    lowest, highest = math.log(margin / _WIDEST), math.log(_NARROWEST)
    if excess(lowest) <= 0.0 or excess(highest) >= 0.0:
        return None
    return float(margin / math.exp(brentq(excess, lowest, highest, xtol=1e-15, rtol=1e-14)))
