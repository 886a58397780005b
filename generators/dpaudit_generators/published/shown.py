"""The student's training set in sums: the labelled records that PATE's proof lets one publish.

Papernot et al. 2017, section 2.2: the proof covers the answers to the student's queries, and
whatever is made of them. So the records that the student is trained on may be public with their
noisy labels; of a deviation that puts private records among them, the sums tell.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import torch
from torch import Tensor

from dpaudit.plugins.protocols import BoolArray, FloatArray, IntArray
from dpaudit_generators.published.trainee import Shown, stretches

_GRID: Final = 2.0**16  # sums of its multiples are exact, in whatever order
_LARGEST: Final = 2.0**10


class _Sums(NamedTuple):
    counts: IntArray
    records: FloatArray
    hints: FloatArray
    iterations: IntArray


class ShownRecords:
    """Sums over what the students of M models are trained on.

    Args:
        models: Their number M.
        width: Columns of a record.
        hints: Columns of a condition.
        iterations: Most iterations of a training.
    """

    def __init__(self, models: int, *, width: int, hints: int, iterations: int) -> None:
        self._most, self._width = iterations, width
        self._sums = _Sums(
            np.zeros((models, stretches(iterations), 2), dtype=np.int64),
            np.zeros((models, 2, width)),
            np.zeros((models, hints)),
            np.zeros(models, dtype=np.int64),
        )

    def add(
        self,
        records: Tensor,
        labels: Tensor,
        *,
        iteration: int,
        hints: Tensor | None = None,
        going: BoolArray | slice = slice(None),
    ) -> None:
        """Adds labelled records.

        Args:
            records: Those of some models [m, n, at least width].
            labels: Their labels 0 or 1 [m, n].
            iteration: The iteration, counted from 0.
            hints: Conditions that they are shown with [m, n, hints]; None for none.
            going: Which models are meant: a slice of m, or a mark for each of M = m models.
        """
        sums, stretch = self._sums, iteration * stretches(self._most) // self._most
        chosen: Tensor | slice = slice(None)
        if isinstance(going, np.ndarray):
            chosen = torch.from_numpy(np.flatnonzero(going))
        rows, ones = records[chosen, :, : self._width], labels[chosen].double()
        weights = torch.stack([1.0 - ones, ones], dim=1)  # [m, 2, n]
        grid = _on_grid(rows)
        for label in (0, 1):
            sums.records[going, label] += (grid * weights[:, label, :, None]).sum(1).numpy()
        sums.counts[going, stretch] += weights.sum(2).long().numpy()
        sums.iterations[going] = iteration + 1
        if hints is not None and hints.shape[-1]:
            sums.hints[going] += _on_grid(hints[chosen]).sum(1).numpy()

    def of(self, model: int) -> Shown:
        """What one model's student was trained on."""
        sums = self._sums
        return Shown(
            counts=sums.counts[model].copy(),
            records=sums.records[model] / _GRID,
            hints=sums.hints[model] / _GRID,
            iterations=int(sums.iterations[model]),
        )


def _on_grid(values: Tensor) -> Tensor:
    return values.clamp(-_LARGEST, _LARGEST).mul(_GRID).round_().double()
