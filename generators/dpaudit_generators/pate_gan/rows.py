"""From the generator's raw outputs to encoded records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import one_hot, softmax

from dpaudit.encoding import layout
from dpaudit.schema import Schema
from dpaudit_generators.pate_gan.networks import forward, torch_rng

_TEMPERATURE: Final = 0.5
"""Of the relaxation that gradients flow through; records themselves are hard."""


class Head:
    """Turns raw outputs into encoded records of a mixed-type table.

    Numbers pass a logistic function. Categories and missing-value indicators are drawn: hard
    values go forward, so that a generated record has the form of a real one and no critic can win
    by spotting fractions, and the gradient of the Gumbel-softmax relaxation goes back (the
    straight-through estimator of Jang, Gu and Poole 2017).

    Given proportions of the label's classes, the label is drawn from them instead, before the rest:
    the generator network is told which class its record is to have.

    Args:
        schema: The schema; fixes every position.
        proportions: Of the label's classes, or none.
    """

    def __init__(self, schema: Schema, proportions: Sequence[float] = ()) -> None:
        blocks = layout(schema)
        self._cumulative = torch.tensor(proportions, dtype=torch.float64).cumsum(0)
        given = [b for b in blocks if proportions and b.column.name == schema.label]
        blocks = tuple(b for b in blocks if b not in given)
        numbers = [block for block in blocks if block.column.kind.numeric]
        optional = [block for block in numbers if block.indicator is not None]
        choices = [block for block in blocks if not block.column.kind.numeric]
        self._numbers = len(numbers)
        self._sizes = [2] * len(optional) + [b.value.stop - b.value.start for b in choices]
        # Row i says which number the i-th indicator belongs to.
        self._belongs = torch.tensor(
            [[float(number is block) for number in numbers] for block in optional]
        ).reshape(len(optional), len(numbers))
        places = [b.value.start for b in numbers]
        places += [b.indicator for b in optional if b.indicator is not None]
        for block in choices + given:
            places += range(block.value.start, block.value.stop)
        self._order = torch.argsort(torch.tensor(places))

    @property
    def inputs(self) -> int:
        """Number of raw outputs that make one record."""
        return self._numbers + sum(self._sizes)

    @property
    def classes(self) -> int:
        """Number of label classes that a record is generated given; 0 without proportions."""
        return len(self._cumulative)

    def labels(self, n: int, rng: torch.Generator) -> Tensor:
        """Labels drawn from the proportions, one-hot, shape [n, classes]."""
        if self.classes == 0:
            return torch.empty(n, 0)
        uniform = torch.rand(n, generator=rng, dtype=torch.float64)
        drawn = torch.bucketize(uniform, self._cumulative, right=True)
        return one_hot(drawn.clamp_max(self.classes - 1), self.classes).to(torch.float32)

    def __call__(self, raw: Tensor, labels: Tensor, rng: torch.Generator) -> Tensor:
        """Draws encoded records.

        Args:
            raw: Raw outputs, shape [n, inputs].
            labels: The labels they are given, shape [n, classes].
            rng: Draws the other categories.

        Returns:
            Encoded records, shape [n, width of the schema].
        """
        numbers = torch.sigmoid(raw[:, : self._numbers])
        choices = raw[:, self._numbers :]
        exponential = torch.empty_like(choices).exponential_(generator=rng).clamp_min(1e-30)
        logits = (choices - exponential.log()) / _TEMPERATURE  # plus Gumbel noise
        drawn = [_hard(part) for part in torch.split(logits, self._sizes, dim=1)]
        optional = len(self._belongs)
        if optional:
            indicators = torch.stack([pair[:, 1] for pair in drawn[:optional]], dim=1)
            missing = indicators @ self._belongs
            numbers = numbers * (1.0 - missing) + 0.5 * missing  # as `encode` writes a gap
            drawn = [indicators, *drawn[optional:]]
        return torch.cat([numbers, *drawn, labels], dim=1)[:, self._order]


def _hard(logits: Tensor) -> Tensor:
    soft = softmax(logits, dim=1)
    hard = one_hot(soft.argmax(dim=1), soft.shape[1]).to(soft.dtype)
    return hard + soft - soft.detach()


def generate(generator: Sequence[Tensor], head: Head, n: int, *, rng: torch.Generator) -> Tensor:
    """Encoded synthetic records [n, width] of a generator network, from normal noise."""
    labels = head.labels(n, rng)
    noise = torch.randn(n, generator[0].shape[1] - head.classes, generator=rng)
    raw = forward(generator, torch.cat([noise, labels], dim=1)[None])[0]
    return head(raw, labels, rng)


def draw(
    weights: Sequence[npt.NDArray[np.float32]], head: Head, n: int, *, seed: int | None
) -> npt.NDArray[np.float32]:
    """As `generate`, of a trained generator; `seed=None` means the system's entropy.

    Args:
        weights: The generator's weights.
        head: The head it was trained with.
        n: Number of records.
        seed: The seed.

    Returns:
        Encoded records, shape [n, width].
    """
    generator = [torch.tensor(weight) for weight in weights]
    with torch.no_grad():
        return generate(generator, head, n, rng=torch_rng(seed, "sample")).numpy()
