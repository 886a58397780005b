"""Trained GANs: one that draws records, and one that draws a record for a given label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd

from dpaudit.model.encoding import encode, values_of
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FloatArray
from dpaudit_generators.networks.model import NetworkModel, Weights, logits


class GanModel(NetworkModel):
    """A trained generator network with leaky rectifiers, and its critic."""

    def discriminate(self, rows: pd.DataFrame) -> FloatArray:
        """The critic's output for each row [n]: how real it looks.

        Args:
            rows: A table with the schema's columns.
        """
        from dpaudit_generators.networks.source import Head

        encoded = encode(rows, self.schema).clip(0.0, 1.0)
        return logits(self.critic, encoded[:, Head(self.schema).order])

    @classmethod
    def values_of_many(
        cls, models: Sequence[Self], n: int, seeds: Sequence[int | None]
    ) -> FloatArray:
        """Draws records of many models."""
        from dpaudit_generators.networks.source import Head, sample

        schema = models[0].schema
        weights = [model.weights for model in models]
        rows = sample(weights, Head(schema), [()] * len(weights), n, seeds=seeds)
        return np.stack([values_of(mine.astype(np.float64), schema) for mine in rows])


_ALPHA, _SCALE = 1.6732632423543772, 1.0507009873554805
"""The constants of SELU."""


def selu_layers(weights: Weights, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The last hidden layer [n, h] and the outputs [n, k] of a network with SELU.

    Args:
        weights: W1, b1, W2, b2, ... with a leading axis of one.
        rows: Encoded records [n, width].
    """
    values, outputs = rows, rows
    for layer, (weight, bias) in enumerate(zip(weights[::2], weights[1::2], strict=True)):
        if layer:
            below = _ALPHA * np.expm1(np.minimum(outputs, 0.0))
            values = _SCALE * np.where(outputs > 0.0, outputs, below)
        outputs = values @ weight[0] + bias[0]
    return values, np.asarray(outputs, dtype=np.float64)


@dataclass(frozen=True, kw_only=True, eq=False)
class ConditionalGanModel(NetworkModel):
    """A trained generator network with SELU that takes the label as input, and its critic.

    Attributes:
        proportions: Proportions of the label's classes among the records; empty without a label.
    """

    proportions: tuple[float, ...]

    def discriminate(self, rows: pd.DataFrame) -> FloatArray:
        """The critic's output for each row [n], without clipping and noise.

        Args:
            rows: A table with the schema's columns.
        """
        from dpaudit_generators.networks.source import Head

        head = Head(self.schema, given=len(self.proportions) > 0)
        encoded = encode(rows, self.schema).clip(0.0, 1.0)
        return selu_layers(self.critic, encoded[:, head.order])[1][:, 0]

    def parameters(self) -> FloatArray:
        """All weights of generator and critic, and the proportions, flat."""
        return np.concatenate([super().parameters(), self.proportions])

    @classmethod
    def values_of_many(
        cls, models: Sequence[Self], n: int, seeds: Sequence[int | None]
    ) -> FloatArray:
        """Draws records of many models, a label first and then a record for it."""
        schema = models[0].schema
        proportions = [model.proportions for model in models]
        weights = [model.weights for model in models]
        rows = sample_encoded(weights, schema, proportions, n, seeds=seeds)
        return np.stack([values_of(mine, schema) for mine in rows])


def sample_encoded(
    weights: Sequence[Weights],
    schema: Schema,
    proportions: Sequence[Sequence[float]],
    n: int,
    *,
    seeds: Sequence[int | None],
) -> FloatArray:
    """Draws encoded records [M, n, width] from generator networks with SELU.

    Args:
        weights: The weights of each model.
        schema: The schema of their records.
        proportions: For each model, the proportions of the label's classes, or none.
        n: Number of records of each model.
        seeds: One for each model; None means the system's entropy.
    """
    import torch

    from dpaudit_generators.gan.wgan_training import SeluGenerators
    from dpaudit_generators.networks.source import Head, sample

    head = Head(schema, given=len(proportions[0]) > 0)
    networks = SeluGenerators(weights, rate=0.0, betas=(0.0, 0.0))
    with torch.no_grad():
        rows = sample(weights, head, proportions, n, seeds=seeds, networks=networks)
    return rows.astype(np.float64)
