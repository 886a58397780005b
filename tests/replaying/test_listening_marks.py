"""Marks of arrays that have memory in common: what is written to one is read from the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

from dpaudit.results.verdict import Verdict
from listened import CELLS, replayed

pytestmark = pytest.mark.usefixtures("worlds")


def scale_rows(noise: Any) -> None:
    for row, scale in zip(noise.reshape(2, 2), (1.0, 0.1), strict=True):
        row *= scale


def scale_part(noise: Any) -> None:
    np.multiply(noise[2:], 0.1, out=noise[2:])


def scale_part_of_part(noise: Any) -> None:
    part = noise[1:][1:]
    part /= 10.0


def write_flat(noise: Any) -> None:
    noise.flat[CELLS - 1] = 0.0


def write_memory(noise: Any) -> None:
    memoryview(noise)[CELLS - 1] = 0.0


def write_plain(noise: Any) -> None:
    np.asarray(noise)[CELLS - 1] = 0.0


def write_series(noise: Any) -> None:
    pd.Series(noise, copy=False).iloc[CELLS - 1] = 0.0


def write_reshaped(noise: Any) -> None:
    noise.reshape(2, 2)[1] = 0.0


@pytest.mark.parametrize(
    "write",
    [
        scale_rows,
        scale_part,
        scale_part_of_part,
        write_flat,
        write_memory,
        write_plain,
        write_series,
        write_reshaped,
    ],
)
def test_noise_that_is_changed_in_its_memory_is_not_what_was_drawn(
    write: Callable[[Any], None],
) -> None:
    def train(counts: Any, rng: Any) -> Any:
        noise = rng.laplace(size=CELLS)
        write(noise)
        return counts + noise

    assert replayed(train, coins=False).verdict in (Verdict.OVERSPENT, Verdict.INCONCLUSIVE)


def test_rows_of_noise_that_are_scaled_in_place_keep_their_claim() -> None:
    def train(counts: Any, rng: Any) -> Any:
        noise = rng.laplace(size=(2, CELLS))
        for row, scale in zip(noise, (4.0, 4.0 / 3.0), strict=True):
            row *= scale
        return np.stack([counts, counts]) + noise

    record = replayed(train, proof="composition")
    assert record.verdict is Verdict.CONSISTENT, str(record)
    assert record.spent == pytest.approx(1.0)


def test_elements_that_change_places_are_numbers_of_their_own() -> None:
    def train(counts: Any, rng: Any) -> Any:
        noise = rng.laplace(size=CELLS)
        noise[0], noise[1] = noise[1], noise[0]
        noisy = counts + noise
        noisy[2], noisy[3] = noisy[3], noisy[2]
        released = noisy.tolist()
        if len({round(float(number), 6) % 1.0 for number in released}) < CELLS:
            raise ValueError("two numbers have the same noise")
        return released

    record = replayed(train)
    assert record.verdict is Verdict.CONSISTENT, str(record)
    assert record.spent == pytest.approx(1.0)
    assert not record.not_followed


class Counts(NamedTuple):
    """Noisy counts by name."""

    first: Any
    last: Any


class Noted(list[Any]):
    """Noisy counts, and a true one."""

    last: int


def test_named_tuples_of_answers_are_numbers() -> None:
    def train(counts: Any, rng: Any) -> Any:
        noisy = Counts(*(counts[[0, 3]] + rng.laplace(size=2)))
        return noisy, np.mean(noisy)

    assert replayed(train).verdict is Verdict.CONSISTENT


def test_an_attribute_of_a_list_of_answers_is_compared() -> None:
    def train(counts: Any, rng: Any) -> Any:
        noisy = Noted(counts + rng.laplace(size=CELLS))
        noisy.last = int(counts[3])
        return noisy

    assert replayed(train, coins=False).verdict is Verdict.INCONCLUSIVE
