"""The student of M models: what it is shown, and what it and the generator learn from it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from dpaudit.plugins.protocols import IntArray
from dpaudit.seeds import rng_of
from dpaudit_generators.networks.draws import Streams
from dpaudit_generators.networks.perceptron import Weights
from dpaudit_generators.networks.slices import logistic, padded, with_ones
from dpaudit_generators.published.networks import Networks
from dpaudit_generators.published.recipes import Loss, Recipe
from dpaudit_generators.published.starts import drawn
from dpaudit_generators.published.trainee import Form


class Students:
    """One student of each of M models; each is bit-identical to training alone.

    Args:
        seeds: One for each model; None means the system's entropy.
        form: The form of the records.
        recipe: The hyperparameters.
    """

    def __init__(self, seeds: Sequence[int | None], *, form: Form, recipe: Recipe) -> None:
        self._form, self._recipe = form, recipe
        layers = recipe.student.layers(form.width + form.hints, 1)
        self._networks = Networks(
            [drawn(recipe.start, layers, rng_of(seed, "student weights")) for seed in seeds],
            recipe.student,
            recipe,
            clip=recipe.clip,
            norm=recipe.norm,
        )
        self._dropout = Dropouts(seeds, recipe.student.dropout)
        self._between = Streams(seeds, "gradient penalty", device=torch.device("cpu"))

    def train(
        self, fakes: Tensor, hints: Tensor, labels: IntArray, real: Tensor | None = None
    ) -> None:
        """Takes one step.

        Args:
            fakes: Generated records with their ones [M, n, padded(width)].
            hints: Their conditions [M, n, hints], which the student is shown with them.
            labels: Their noisy labels [M, n].
            real: As many real records, if it is shown any; they have label 1 and the same hints.
        """
        rows, target = self._shown(fakes, hints), torch.from_numpy(labels).float()
        other = rows.flip(1)
        if real is not None:
            other = self._shown(real, hints)
            target = torch.cat([target, torch.ones_like(target)], dim=1)
        seen = rows if real is None else torch.cat([rows, other], dim=1)
        outputs = self._networks(seen, dropout=self._dropout)
        ends, slopes = [outputs], [self._slope(outputs, target, batch=fakes.shape[1])]
        if self._recipe.penalty:
            n = fakes.shape[1]
            places = self._between.uniform(n, 1).float()
            length = self._networks.steepness(rows.lerp(other, places), dropout=self._dropout)
            ends.append(length)
            slopes.append(2.0 * self._recipe.penalty / n * (length.detach() - 1.0))
        self._networks.descend(ends, slopes)

    def weights(self, models: Sequence[int]) -> list[Weights]:
        """The weights of the students of some models, without padding."""
        return self._networks.weights(models)

    def judge(self, fakes: Tensor, hints: Tensor) -> tuple[Tensor, Tensor]:
        """What the generator learns from: its goal is that each record is labelled 1.

        Args:
            fakes: Generated records with their ones [M, n, padded(width)].
            hints: Their conditions [M, n, hints].

        Returns:
            The student's outputs, and the slope of the loss at these.
        """
        outputs = self._networks(self._shown(fakes, hints), dropout=self._dropout)
        n = fakes.shape[1]
        return outputs, self._slope(outputs, torch.ones(len(fakes), n), batch=n)

    def _shown(self, records: Tensor, hints: Tensor) -> Tensor:
        """Records and their conditions, with ones [M, n, padded(width + hints)]."""
        if not self._form.hints:
            return records
        return with_ones(records[..., : self._form.width], hints)

    def _slope(self, outputs: Tensor, target: Tensor, *, batch: int) -> Tensor:
        """The loss's gradient with respect to outputs [M, n, padded(1)], given labels [M, n]."""
        slope = torch.zeros_like(outputs)
        match self._recipe.loss:
            case Loss.CROSS_ENTROPY:
                chances = logistic(outputs.detach()[..., 0].clone())
                slope[..., 0] = (chances - target) / batch
            case Loss.MEAN:
                slope[..., 0] = (1.0 - 2.0 * target) / batch
            case Loss.MEANS:
                ones = target.sum(dim=1, keepdim=True)  # of zeros and ones: exact in any order
                zeros = target.shape[1] - ones
                slope[..., 0] = torch.where(target == 1.0, -1.0 / ones, 1.0 / zeros)
        return slope


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
