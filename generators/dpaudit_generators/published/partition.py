"""Which records each teacher draws from: as the proof needs it, and as published."""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise

import numpy as np

from dpaudit.plugins.protocols import FloatArray
from dpaudit.seeds import rng_of
from dpaudit_generators.pate import IndexArray, cells
from dpaudit_generators.published.recipes import Larger
from dpaudit_generators.published.switches import Switch


class Partition:
    """Deals the records of one model to teachers.

    Args:
        rows: Records encoded under the public schema [n, width].
        teachers: Number k of teachers.
        switches: Deviations. If several are about partitions, the first of these counts: all rows,
            reshuffled, last only, by position.
        larger: Which contiguous parts take the records that are left over.
        seed: Seed of the model.
    """

    def __init__(
        self,
        rows: FloatArray,
        *,
        teachers: int,
        switches: Collection[Switch],
        larger: Larger,
        seed: int | None,
    ) -> None:
        self._n, self._k = len(rows), teachers
        self._rng = rng_of(seed, "partition")
        self._again = Switch.PARTITION_RESHUFFLED in switches
        if Switch.PARTITION_ALL_ROWS in switches:
            self._again = False
            self.parts = [np.arange(self._n)] * teachers
        elif self._again:
            self.parts = self._dealt()
        elif Switch.PARTITION_LAST_ONLY in switches:
            self.parts = [self._dealt()[-1]] * teachers
        elif Switch.PARTITION_BY_POSITION in switches:
            self.parts = _contiguous(self._n, teachers, larger)
        else:
            self.parts = list(cells(rows, teachers=teachers, key=self._rng.bytes(32)))

    parts: list[IndexArray]
    """Row numbers of each of k teachers."""

    def next_iteration(self) -> None:
        """Deals the records again if that deviation is on."""
        if self._again:
            self.parts = self._dealt()

    def _dealt(self) -> list[IndexArray]:
        """Random parts of n // k records each; those left over are in none."""
        size = self._n // self._k
        order = self._rng.permutation(self._n)
        return [order[teacher * size : (teacher + 1) * size] for teacher in range(self._k)]


def _contiguous(n: int, k: int, larger: Larger) -> list[IndexArray]:
    if larger is Larger.FIRST:
        return np.array_split(np.arange(n), k)
    bounds = [teacher * n // k for teacher in range(k + 1)]
    return [np.arange(*pair) for pair in pairwise(bounds)]
