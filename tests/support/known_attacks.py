"""Attacks whose error rates, and so the epsilon that they can show, are known."""

from __future__ import annotations

import math
from typing import NamedTuple

DELTA = 1e-5


class Attack(NamedTuple):
    """Error rates of an attack."""

    fpr: float
    fnr: float


PERFECT = Attack(0.0, 0.0)


def randomised_response(epsilon: float) -> Attack:
    rate = (1.0 - DELTA) / (1.0 + math.exp(epsilon))
    return Attack(rate, rate)


def laplace(epsilon: float) -> Attack:
    """A count with Laplace noise, cut at the count of the "in" world."""
    return Attack(0.5 * math.exp(-epsilon), 0.5)
