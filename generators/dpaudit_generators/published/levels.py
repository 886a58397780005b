"""Numbers of few distinct values as categories: a one-hot code says which one."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from dpaudit.model.column import Column, Kind
from dpaudit.plugins.protocols import FloatArray

MOST: Final = 10
"""Most distinct values of a column that is one-hot."""


class Levels(NamedTuple):
    """The values that a number may take, ascending places between its bounds in [0, 1]."""

    places: tuple[float, ...]

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.places)

    def encode(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Says which level is nearest.

        Args:
            values: Values [n].

        Returns:
            Zeros [n], because nothing but the level matters, and one-hot codes [n, size].
        """
        nearest = np.abs(values[:, None] - np.array(self.places)).argmin(axis=1)
        return np.zeros(len(values)), np.eye(self.size)[nearest]

    def decode(self, places: FloatArray, slots: npt.NDArray[np.float32] | FloatArray) -> FloatArray:
        """Turns codes back into values.

        Args:
            places: Not read.
            slots: One number for each level, [..., size]; the largest names the level.

        Returns:
            Values [...].
        """
        del places
        found: FloatArray = np.array(self.places)[slots.argmax(axis=-1)]
        return found


def levels_of(values: FloatArray) -> Levels | None:
    """The distinct values of a column.

    Args:
        values: Values [n] in [0, 1], none of them missing.

    Returns:
        Its levels; None if there are none, or more than `MOST`.
    """
    distinct = np.unique(values)
    return Levels(tuple(map(float, distinct))) if 0 < len(distinct) <= MOST else None


def public_levels(column: Column) -> Levels | None:
    """The values that whole numbers may take within public bounds.

    Args:
        column: A numeric column.

    Returns:
        Its levels; None if it is continuous, or has more than `MOST`.
    """
    lower, upper = column.bounds
    steps = int(upper - lower)
    if column.kind is not Kind.INTEGER or steps != upper - lower or steps >= MOST:
        return None
    return Levels(tuple(step / steps for step in range(steps + 1)))
