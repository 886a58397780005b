"""Integers compared with a threshold are Bernoulli draws: exact samplers make them so."""

from __future__ import annotations

import math
import random
import secrets
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpaudit
from dpaudit.results.verdict import Verdict

pytestmark = pytest.mark.usefixtures("worlds")

SCHEMA = dpaudit.Schema.from_document(
    {"columns": [{"name": "x", "kind": "integer", "lower": 0, "upper": 40}]}
)
STEP = 0.4
"""How far one record moves the log-odds of a bit."""


def table() -> pd.DataFrame:
    """Twenty records."""
    return pd.DataFrame({"x": np.arange(20)})


def chance(data: pd.DataFrame, strength: float = STEP) -> float:
    """The probability of a bit."""
    return 1.0 / (1.0 + math.exp(strength * (19.5 - len(data))))


def from_array(data: pd.DataFrame, p: float, seed: int) -> int:
    words = np.random.default_rng(seed).integers(0, 2**40, size=1)
    return int((words < int(p * 2**40))[0])


def from_shifted_array(data: pd.DataFrame, p: float, seed: int) -> int:
    words = np.random.default_rng(seed).integers(-(2**31), 2**31, size=1)
    return int((int(p * 2**32) - 2**31 > words)[0])


def from_raw_words(data: pd.DataFrame, p: float, seed: int) -> int:
    words = np.random.PCG64(seed).random_raw(1)
    return int((words <= np.uint64(int(p * 2.0**64)))[0])


def from_one_raw_word(data: pd.DataFrame, p: float, seed: int) -> int:
    return int(np.random.PCG64(seed).random_raw() < int(p * 2.0**64))


def from_bits(data: pd.DataFrame, p: float, seed: int) -> int:
    return int(random.Random(seed).getrandbits(53) < p * 2**53)


def from_randrange(data: pd.DataFrame, p: float, seed: int) -> int:
    return int(random.Random(seed).randrange(10**6) <= int(p * 10**6) - 1)


def from_randint(data: pd.DataFrame, p: float, seed: int) -> int:
    return int(random.Random(seed).randint(1, 10**6) <= int(p * 10**6))


def from_secrets(data: pd.DataFrame, p: float, seed: int) -> int:
    return int(int(p * 10**6) > secrets.randbelow(10**6))


SOURCES = (
    *(
        pytest.param(from_array, marks=pytest.mark.ci),
        from_shifted_array,
        from_raw_words,
        from_one_raw_word,
    ),
    *(from_bits, from_randrange, from_randint, from_secrets),
)


class Bit:
    """Releases one bit, whose probability depends on the number of records."""

    def __init__(self, draw: Callable[..., int], strength: float = STEP) -> None:
        self.draw, self.strength = draw, strength

    def fit(self, data: pd.DataFrame, *, seed: int) -> Any:
        """Draws the bit."""
        drawn = self.draw(data, chance(data, self.strength), seed)
        self.bit = drawn
        return self

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Rows that say the bit."""
        return pd.DataFrame({"x": [self.bit] * n})


def replayed(generator: Bit, epsilon: float) -> Any:
    return dpaudit.replay(
        generator, table(), schema=SCHEMA, target="row:19", epsilon=epsilon, delta=0.0, replays=3
    )


@pytest.mark.parametrize("draw", SOURCES, ids=lambda one: str(one.__name__))
def test_a_bit_costs_the_ratio_of_its_probabilities(draw: Callable[..., int]) -> None:
    with_it, without = chance(table()), chance(table().head(19))
    true = max(math.log(with_it / without), math.log((1 - without) / (1 - with_it)))
    record = replayed(Bit(draw), true * (1 + 1e-4))
    assert record.verdict is Verdict.CONSISTENT, str(record)
    assert record.proved is not None
    ratios = (math.log(with_it / without), math.log((1 - without) / (1 - with_it)))
    assert min(abs(record.proved - one) for one in ratios) < 1e-4
    assert [line.law for line in record.ledger] == ["choice"]
    assert not record.not_followed


def test_a_bit_that_costs_more_than_it_claims_is_a_violation() -> None:
    record = replayed(Bit(from_bits, strength=3.0), 1.0)
    assert record.verdict is Verdict.VIOLATION, str(record)


@pytest.mark.parametrize("draw", SOURCES, ids=lambda one: str(one.__name__))
def test_a_bit_that_depends_on_no_record_costs_nothing(draw: Callable[..., int]) -> None:
    record = replayed(Bit(draw, strength=0.0), 0.01)
    assert record.verdict is Verdict.CONSISTENT, str(record)
    assert record.proved == 0.0
    assert not record.ledger
