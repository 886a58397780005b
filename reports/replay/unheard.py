"""Mechanisms at exactly their claims, which replay cannot hear: only what they release decides.

Their coins come from a hash of the seed, so a replay is left with the coin game.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Final

import numpy as np
import pandas as pd

from dpaudit.model.schema import Schema

DELTA: Final = 0.05
SCHEMA: Final = Schema.from_document(
    {"columns": [{"name": "x", "kind": "continuous", "lower": 0.0, "upper": 100.0}]}
)


def table() -> pd.DataFrame:
    """Twenty records, of which the last alone has 100."""
    return pd.DataFrame({"x": np.append(np.linspace(0.0, 10.0, 19), 100.0)})


@dataclass(frozen=True)
class Mechanism:
    """A generator that releases one number.

    Attributes:
        name: In the tables.
        claimed: Its claim, exactly.
        release: From whether the record is there and a uniform number to what is released.
    """

    name: str
    claimed: Mapping[str, Any]
    release: Callable[[bool, float], float]

    def fit(self, data: pd.DataFrame, *, seed: int) -> Released:
        """Releases the number."""
        digest = hashlib.sha256(f"{self.name} {seed}".encode()).digest()
        uniform = (int.from_bytes(digest[:6], "big") + 0.5) / 2**48
        return Released(self.release(bool((data["x"] > 50.0).any()), uniform))


@dataclass(frozen=True)
class Released:
    """A model that is one number.

    Attributes:
        value: The number.
    """

    value: float

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Rows that all hold it."""
        del seed
        return pd.DataFrame({"x": np.full(n, self.value)})


def response(is_in: bool, uniform: float) -> float:
    """Randomised response at epsilon 1."""
    return 20.0 if is_in == (uniform < 1.0 / (1.0 + math.exp(-1.0))) else 10.0


def revealed(is_in: bool, uniform: float) -> float:
    """The truth with chance delta, else randomised response."""
    if uniform < DELTA:
        return 40.0 if is_in else 0.0
    return response(is_in, (uniform - DELTA) / (1.0 - DELTA))


def laplace(is_in: bool, uniform: float) -> float:
    """A bit with Laplace noise of scale 1."""
    noise = math.copysign(math.log(1.0 - 2.0 * abs(uniform - 0.5)), 0.5 - uniform)
    return float(np.clip(50.0 + is_in + noise, 0.0, 100.0))


def seldom(is_in: bool, uniform: float) -> float:
    """The truth with chance delta, else nothing."""
    return 100.0 * is_in if uniform < DELTA else 50.0


def gaussian(is_in: bool, uniform: float) -> float:
    """A bit with Gaussian noise of scale 1."""
    return 50.0 + is_in + NormalDist().inv_cdf(uniform)


MECHANISMS: Final = (
    Mechanism("randomised response, ε 1", {"epsilon": 1.0}, response),
    Mechanism("the truth with chance δ, (1, .05)", {"epsilon": 1.0, "delta": DELTA}, revealed),
    Mechanism("the truth with chance δ, (0.001, .05)", {"epsilon": 0.001, "delta": DELTA}, seldom),
    Mechanism("Laplace, ε 1", {"epsilon": 1.0}, laplace),
    Mechanism("Gaussian, μ 1", {"mu": 1.0}, gaussian),
)
