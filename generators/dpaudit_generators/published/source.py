"""What the generator networks of published PATE-GANs take, and the records that they make."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dpaudit.seeds import rng_of
from dpaudit_generators.networks.source import Streams
from dpaudit_generators.networks.stack import (
    Networks,
    activated,
    in_whole_vectors,
    padded,
    with_ones,
)
from dpaudit_generators.published.recipes import Inputs, Recipe, Span
from dpaudit_generators.published.trainee import Form

_CPU: Final = torch.device("cpu")
_LARGEST: Final = 30.0  # logit of a category; beyond it, no other category is ever drawn
_LARGEST_NOISY: Final = 80.0  # logit with Gumbel noise, over the temperature: floats end at 88


class Feed:
    """Draws the inputs of the generators of M models, from one stream each.

    Args:
        seeds: One for each model; None means the system's entropy.
        purpose: The purpose of the draws.
        form: The form of the records.
        recipe: Fixes the generator's number of inputs, and the span of labels.
        inputs: The distribution of these numbers.
    """

    def __init__(
        self,
        seeds: Sequence[int | None],
        purpose: str,
        *,
        form: Form,
        recipe: Recipe,
        inputs: Inputs,
    ) -> None:
        self._streams = Streams(seeds, purpose, device=_CPU)
        self._choices = [rng_of(seed, f"{purpose}: conditions") for seed in seeds]
        self._form, self._width, self._inputs = form, recipe.noise_width, inputs
        self._temperature = recipe.temperature
        self._lowest = -1.0 if recipe.span is Span.SYMMETRIC else 0.0

    def noise(self, n: int) -> Tensor:
        """Draws random numbers for n records of each model, float32 [M, n, noise width]."""
        if self._inputs is Inputs.NORMAL:
            return self._streams.normal(n, self._width).clone()
        noise = self._streams.uniform(n, self._width).float()
        return noise if self._inputs is Inputs.UNIT else 2.0 * noise - 1.0

    def gumbel(self, n: int) -> Tensor | None:
        """Draws Gumbel noise [M, n, padded(made)]; None if no categories are drawn."""
        if not self._temperature or not self._form.groups:
            return None
        return self._streams.gumbel(n, padded(self._form.made))

    def labels(self, n: int) -> Tensor:
        """Draws labels [M, n, given], independent of data: one-hot, or the ends of the span."""
        drawn = self._streams.uniform(n, 1)
        if self._form.given > 1:
            places = (drawn * self._form.given).long()
            return (places == torch.arange(self._form.given)).float()
        return torch.where(drawn < 0.5, self._lowest, 1.0).float()[..., : self._form.given]

    def conditions(
        self, rows: Sequence[npt.NDArray[np.float32]], n: int
    ) -> tuple[Tensor, list[npt.NDArray[np.int64]]]:
        """Draws conditions from records of each model.

        Args:
            rows: For each model, the rows that they are taken from [n, hints].
            n: Number of conditions.

        Returns:
            The conditions [M, n, hints], and for each model the numbers of their rows [n].
        """
        kinds = self._form.conditions
        start = np.cumsum([0, *(kind.stop - kind.start for kind in kinds)])
        owner = np.repeat(np.arange(len(kinds)), np.diff(start))
        hints = np.zeros((len(rows), n, self._form.hints), dtype=np.float32)
        chosen = []
        for mine, found, rng in zip(hints, rows, self._choices, strict=True):
            chosen.append(rng.integers(len(found), size=n))
            about = rng.integers(len(kinds), size=n)
            mine[:] = np.where(owner == about[:, None], found[chosen[-1]], 0.0)
        return torch.from_numpy(hints), chosen


class PublishedRecordSource:
    """The generator networks of M models, and the functions that turn their outputs into records.

    Args:
        networks: One network per model.
        form: The form of the records.
        recipe: How the generator networks make records.
    """

    def __init__(self, networks: Networks, form: Form, recipe: Recipe) -> None:
        self.networks, self._form = networks, form
        self._output, self._temperature = recipe.generator.output, recipe.temperature
        size = padded(form.made)
        self._numeric = torch.zeros(size)
        self._numeric[: form.made] = 1.0
        self._same_group = torch.zeros(size, size)
        for group in form.groups:
            self._numeric[group] = 0.0
            self._same_group[group, group] = 1.0
        self._grouped = self._same_group.diagonal().clone()
        self._tail = with_ones(torch.zeros(form.width))[form.width :]

    def __call__(
        self, noise: Tensor, given: Tensor, hints: Tensor, gumbel: Tensor | None = None
    ) -> Tensor:
        """Makes records.

        Args:
            noise: Random numbers [M, n, noise width].
            given: Labels that the records must have, [M, n, given].
            hints: Conditions [M, n, hints].
            gumbel: Gumbel noise that draws categories; None for no noise.

        Returns:
            Records with their ones, [M, n, padded(width)].
        """
        sums = self.networks(with_ones(noise, given, hints))
        columns = activated(sums, self._output) * self._numeric
        if self._form.groups:
            columns = columns + self._shares(sums, gumbel)
        tail = self._tail.expand(*columns.shape[:-1], -1)
        return torch.cat([columns[..., : self._form.made], given, tail], dim=-1)

    def _shares(self, sums: Tensor, gumbel: Tensor | None) -> Tensor:
        """The softmax of each group, 0 elsewhere, with one product for all sums over groups."""
        largest = _LARGEST
        if gumbel is not None:
            sums, largest = (sums + gumbel) / self._temperature, _LARGEST_NOISY
        weights = in_whole_vectors(torch.exp, sums.clamp(-largest, largest)) * self._grouped
        totals = torch.bmm(weights, self._same_group.expand(len(sums), -1, -1))
        return weights / (totals + (1.0 - self._grouped))
