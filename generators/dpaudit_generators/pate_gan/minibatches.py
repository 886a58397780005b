"""Which records each step of each teacher sees."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpaudit_generators.pate import IndexArray


def minibatches(
    cell: IndexArray, *, steps: int, batch: int, rng: np.random.Generator
) -> IndexArray:
    """Row numbers of all minibatches of one teacher, drawn with replacement from its cell.

    Args:
        cell: The teacher's row numbers; if empty the batches are row -1, a row of padding.
        steps: Number of minibatches.
        batch: Their size; a constant, so that no shape depends on the size of the cell.
        rng: The teacher's own stream.

    Returns:
        Row numbers, shape [steps, batch].
    """
    if len(cell) == 0:
        return np.full((steps, batch), -1, dtype=np.int64)
    return cell[rng.integers(len(cell), size=(steps, batch))]


def all_minibatches(
    owned: Sequence[IndexArray], *, steps: int, batch: int, rngs: Sequence[np.random.Generator]
) -> IndexArray:
    """Minibatches of all teachers, each from its own stream; shape [steps, k, batch]."""
    return np.stack(
        [
            minibatches(cell, steps=steps, batch=batch, rng=rng)
            for cell, rng in zip(owned, rngs, strict=True)
        ],
        axis=1,
    )
