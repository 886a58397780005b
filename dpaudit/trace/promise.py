"""Which noise a promised table of probabilities stands for."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from scipy.optimize import brentq

from dpaudit.account import Mechanism, VoteTable
from dpaudit.account.mechanism import wrong_at
from dpaudit.trace.collected import Trace

_EXACT: Final = 1e-9
_CLIPPED: Final = 2e-6
"""Probabilities nearer to 0 or 1 may have been clipped (`VoteTable.quantised`)."""
_WIDEST: Final = 1e9
"""Votes: noise of a larger scale decides nothing."""


class Promise(NamedTuple):
    """A noise.

    Attributes:
        mechanism: Which.
        scale: Standard deviation of normal noise, scale of Laplace noise, in votes.
    """

    mechanism: Mechanism
    scale: float

    def table(self, teachers: int) -> VoteTable:
        """The probabilities that this noise gives."""
        make = {
            Mechanism.GAUSSIAN: VoteTable.gaussian,
            Mechanism.LAPLACE: VoteTable.laplace,
            Mechanism.NOISY_MAX: VoteTable.noisy_max,
        }[self.mechanism]
        return make(teachers, self.scale)


def promise_of(trace: Trace) -> Promise | None:
    """The noise that a training promised.

    By its table of probabilities; without one by `gamma`, as PATE has it.

    Returns:
        The noise; None if nothing was promised, or no known noise.
    """
    if trace.promised is not None:
        return _fitted(trace.promised)
    gamma = trace.constants.get("gamma", 0.0)
    return Promise(Mechanism.NOISY_MAX, 1.0 / gamma) if gamma > 0 else None


def teachers_of(trace: Trace) -> int | None:
    """The number k of teachers, if it is known."""
    if trace.promised is not None:
        return trace.promised.teachers
    told = trace.constants.get("teachers", 0.0)
    return int(told) if told >= 1 and told == int(told) else None


def _fitted(table: VoteTable) -> Promise | None:
    k = table.teachers
    wrong = table.probabilities[: k // 2 + 1]
    margins = k / 2 - np.arange(k // 2 + 1)
    telling = (margins > 0) & (wrong > _CLIPPED) & (wrong < 0.5)
    if not telling.any():
        return None
    first = int(np.flatnonzero(telling)[0])  # the widest margin tells most
    best: tuple[float, Promise] | None = None
    for mechanism in Mechanism:

        def excess(log_x: float, mechanism: Mechanism = mechanism) -> float:
            return float(wrong_at(mechanism, np.exp(np.array(log_x))) - wrong[first])

        lowest, highest = np.log(margins[first] / _WIDEST), np.log(1e3)
        if excess(lowest) <= 0.0 or excess(highest) >= 0.0:
            continue
        x = np.exp(brentq(excess, lowest, highest, xtol=1e-15, rtol=1e-14))
        scale = float(margins[first] / x)
        off = np.abs(wrong_at(mechanism, np.asarray(margins / scale, dtype=np.float64)) - wrong)[
            telling
        ].max()
        if off < _EXACT and (best is None or off < best[0]):
            best = (float(off), Promise(mechanism, scale))
    return None if best is None else best[1]
