"""The student of M models: what it is trained on, and what the generator learns from it.

Papernot et al. 2017, section 2.2: the proof covers the answers to the student's queries, and
whatever is made of them. So the records that the student is trained on may be public, with their
noisy labels. A deviation that puts private records among them shows in the sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import torch
from torch import Tensor

from dpaudit.plugins.protocols import BoolArray, IntArray
from dpaudit_generators.networks.model import Layer, Weights
from dpaudit_generators.networks.source import Streams
from dpaudit_generators.networks.stack import (
    Networks,
    cross_entropy,
    padded,
    steepness,
    with_ones,
)
from dpaudit_generators.published.recipes import Loss, Recipe
from dpaudit_generators.published.trainee import Form, Shown, stretches


class Students:
    """One student of each of M models; each is bit-identical to training alone.

    Args:
        seeds: One for each model; None means the system's entropy.
        form: The form of the records.
        recipe: The hyperparameters.
    """

    def __init__(self, seeds: Sequence[int | None], *, form: Form, recipe: Recipe) -> None:
        self._form, self._recipe = form, recipe
        self._networks = Networks.drawn(
            seeds,
            "student weights",
            recipe.student,
            Layer(form.width + form.hints, 1),
            recipe.descent._replace(clip=recipe.clip, norm=recipe.norm),
            start=recipe.start,
        )
        self._dropout = Dropouts(seeds, recipe.student.dropout)
        self._between = Streams(seeds, "gradient penalty", device=torch.device("cpu"))

    def train(
        self, fakes: Tensor, hints: Tensor, labels: IntArray, real: Tensor | None = None
    ) -> None:
        """Takes one step.

        Args:
            fakes: Generated records with their ones [M, n, padded(width)].
            hints: Their conditions [M, n, hints], which the student sees with them.
            labels: Their noisy labels [M, n].
            real: As many real records, if it sees any; they have label 1 and the same hints.
        """
        rows, target = self._shown(fakes, hints), torch.from_numpy(labels).float()
        other = rows.flip(1)
        if real is not None:
            other = self._shown(real, hints)
            target = torch.cat([target, torch.ones_like(target)], dim=1)
        seen = rows if real is None else torch.cat([rows, other], dim=1)
        n = fakes.shape[1]
        loss = self._loss(self._outputs(seen), target, batch=n)
        if self._recipe.penalty:
            points = rows.lerp(other, self._between.uniform(n, 1).float())
            lengths = steepness(self._outputs, points, self._form.width + self._form.hints)
            loss = loss + self._recipe.penalty / n * (lengths - 1.0).square().sum()
        self._networks.descend(loss)

    def weights(self, models: Sequence[int]) -> list[Weights]:
        """The weights of the students of some models, without padding."""
        return self._networks.weights(models)

    def missed(self, fakes: Tensor, hints: Tensor) -> Tensor:
        """The sum of the generators' losses: the goal is label 1 for each record.

        Args:
            fakes: Generated records with their ones [M, n, padded(width)].
            hints: Their conditions [M, n, hints].
        """
        outputs = self._outputs(self._shown(fakes, hints))
        return self._loss(outputs, torch.ones_like(outputs), batch=fakes.shape[1])

    def _outputs(self, rows: Tensor) -> Tensor:
        """The students' outputs [M, n]."""
        return self._networks(rows, dropout=self._dropout)[..., 0]

    def _shown(self, records: Tensor, hints: Tensor) -> Tensor:
        """Records and their conditions, with ones [M, n, padded(width + hints)]."""
        if not self._form.hints:
            return records
        return with_ones(records[..., : self._form.width], hints)

    def _loss(self, outputs: Tensor, target: Tensor, *, batch: int) -> Tensor:
        """The sum of the students' losses, given outputs and labels [M, n]."""
        match self._recipe.loss:
            case Loss.CROSS_ENTROPY:
                return cross_entropy(outputs, target).sum() / batch
            case Loss.MEAN:
                return ((1.0 - 2.0 * target) * outputs).sum() / batch
            case Loss.MEANS:
                ones = target.sum(dim=1, keepdim=True)  # of zeros and ones: exact in any order
                zeros = target.shape[1] - ones
                return (torch.where(target == 1.0, -1.0 / ones, 1.0 / zeros) * outputs).sum()


class Dropouts:
    """Draws factors of the numbers that enter a layer, for one network of each of M models.

    Args:
        seeds: One for each model; None means the system's entropy.
        share: The share that is dropped (Srivastava et al. 2014); the others are scaled up, so that
            the mean stays.
    """

    def __init__(self, seeds: Sequence[int | None], share: float) -> None:
        self._streams = Streams(seeds, "dropout", device=torch.device("cpu"))
        self._share = share

    def __call__(self, n: int, width: int) -> Tensor:
        """Draws factors [M, n, padded(width)]; ones and padding have factor 1."""
        kept = self._streams.uniform(n, width) >= self._share
        factors = torch.ones(*kept.shape[:-1], padded(width))
        factors[..., :width] = kept / (1.0 - self._share)
        return factors


_TO_GRID: Final = 192.0  # added and subtracted again, it leaves float32 a multiple of 2**-16


class ShownRecords:
    """Sums over what the students of M models are trained on.

    Args:
        models: Number M of models.
        width: Columns of a record.
        hints: Columns of a condition.
        iterations: Largest number of iterations of a training.
    """

    def __init__(self, models: int, *, width: int, hints: int, iterations: int) -> None:
        self._most, self._width = iterations, width
        self._counts = np.zeros((models, stretches(iterations), 2), dtype=np.int64)
        self._records = np.zeros((models, 2, width))
        self._hints = np.zeros((models, hints))
        self._iterations = np.zeros(models, dtype=np.int64)

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
            records: Records of some models [m, n, at least width].
            labels: Their labels 0 or 1 [m, n].
            iteration: The iteration, counted from 0.
            hints: Conditions that they are shown with [m, n, hints]; None for none.
            going: These models: a slice of m, or a mark for each of M = m models.
        """
        stretch = iteration * stretches(self._most) // self._most
        chosen: Tensor | slice = slice(None)
        if isinstance(going, np.ndarray):
            chosen = torch.from_numpy(np.flatnonzero(going))
        ones = labels[chosen].double()
        weights = torch.stack([1.0 - ones, ones], dim=1)  # [m, 2, n]
        found = torch.bmm(weights, _on_grid(records[chosen]))
        self._records[going] += found[..., : self._width].numpy()
        self._counts[going, stretch] += weights.sum(2).long().numpy()
        self._iterations[going] = iteration + 1
        if hints is not None and hints.shape[-1]:
            self._hints[going] += _on_grid(hints[chosen]).sum(1).numpy()

    def of(self, model: int) -> Shown:
        """The sums over what one model's student was trained on."""
        return Shown(
            counts=self._counts[model].copy(),
            records=self._records[model].copy(),
            hints=self._hints[model].copy(),
            iterations=int(self._iterations[model]),
        )


def _on_grid(values: Tensor) -> Tensor:
    """Rounds values, so that sums are exact: the same in any order and in any stack of models."""
    return values.add(_TO_GRID).sub_(_TO_GRID).double()


_LEAST: Final = 1e-8  # added to a share before its logarithm is taken


class Likeness:
    """The loss of generated records that are unlike real ones.

    It is the cross-entropy with the categories of as many real records: of each record in the
    column of its condition, or without conditions in all columns. If nothing is a category, it is
    the mean square of all differences.

    Args:
        form: The form of the records.
    """

    def __init__(self, form: Form) -> None:
        self._form = form
        size = padded(form.width)
        self._grouped = torch.zeros(size)
        self._about = torch.zeros(max(1, form.hints), size)
        start = 0
        for part in form.conditions:
            stop = start + part.stop - part.start
            self._about[start:stop, part] = 1.0
            start = stop
        for group in form.groups:
            self._grouped[group] = 1.0

    def slope(self, fakes: Tensor, real: Tensor, hints: Tensor) -> Tensor:
        """The loss's gradient with respect to generated records.

        Args:
            fakes: Generated records with their ones [M, n, padded(width)].
            real: As many real records.
            hints: The conditions of the generated ones [M, n, hints].
        """
        n = fakes.shape[1]
        if not self._form.groups:
            return 2.0 * (fakes - real) / (n * self._form.width)
        about = self._grouped.expand_as(fakes)
        if self._form.hints:
            about = torch.bmm(hints, self._about.expand(len(hints), -1, -1)) * about
        # Sums of zeros and ones are exact in any order.
        counts = about.sum(dim=1, keepdim=True).clamp_min(1.0)
        return -about * real / ((fakes + _LEAST) * counts * n)
