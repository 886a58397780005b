"""Which real records each step of a critic reads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np

from dpaudit.plugins.protocols import IntArray
from dpaudit.seeds import rng_of

_COIN: Final = 2**32
"""Values of a coin."""


class BatchSelection(Protocol):
    """Selects the records of every step of one model, in order."""

    def next(self) -> IntArray:
        """Row numbers of the next step's records; perhaps none."""
        ...


class PoissonSelection:
    """Takes each record with a public probability, independently of all else.

    The probability is that of a coin of 32 bits, which is never above the rate.

    Args:
        owned: Row numbers of the model's records.
        rate: The probability.
        seed: Of the model; None draws from the system's entropy.
    """

    def __init__(self, owned: IntArray, *, rate: float, seed: int | None) -> None:
        self._owned, self._below = owned, math.floor(rate * _COIN)
        self._words = rng_of(seed, "batches").bit_generator

    def next(self) -> IntArray:
        """Row numbers of the next step's records."""
        coins = self._words.random_raw(-(-len(self._owned) // 2)).view(np.uint32)
        return self._owned[coins[: len(self._owned)] < self._below]


class DealtSelection:
    """Takes the records in turn: the same batches in every epoch, a flaw under a claim of chance.

    Args:
        owned: Row numbers of the model's records.
        batches: Batches of an epoch.
    """

    def __init__(self, owned: IntArray, *, batches: int) -> None:
        self._owned, self._batches, self._step = owned, batches, -1

    def next(self) -> IntArray:
        """Row numbers of the next step's records."""
        self._step += 1
        return self._owned[self._step % self._batches :: self._batches]


class UniformSelection:
    """Takes a fixed number of records with replacement, as training without privacy does.

    Args:
        owned: Row numbers of the model's records.
        batch: How many.
        seed: Of the model; None draws from the system's entropy.
    """

    def __init__(self, owned: IntArray, *, batch: int, seed: int | None) -> None:
        self._owned, self._batch, self._rng = owned, batch, rng_of(seed, "batches")

    def next(self) -> IntArray:
        """Row numbers of the next step's records."""
        if len(self._owned) == 0:
            return self._owned
        return self._owned[self._rng.integers(len(self._owned), size=self._batch)]


def batches_of_an_epoch(rate: float) -> int:
    """Steps in which a record is expected once, rounded up."""
    return math.ceil(1.0 / rate)


def slots(selected: Sequence[IntArray], *, size: int, part: int) -> tuple[IntArray, IntArray]:
    """A part of the selected rows of M models, in a matrix.

    Args:
        selected: Row numbers of each model.
        size: Columns of the matrix, a public constant: rounding must not depend on other models.
        part: Which part: the first, the second...

    Returns:
        Which models have rows in this part [g], and their rows [g, size], -1 where there are none.
    """
    cut = [rows[part * size : (part + 1) * size] for rows in selected]
    models = [model for model, rows in enumerate(cut) if len(rows)]
    matrix = np.full((len(models), size), -1, dtype=np.int64)
    for mine, model in zip(matrix, models, strict=True):
        mine[: len(cut[model])] = cut[model]
    return np.array(models, dtype=np.int64), matrix
