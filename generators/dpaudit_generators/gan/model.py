"""A trained GAN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
import pandas as pd

from dpaudit.model.encoding import encode, values_of
from dpaudit.plugins.protocols import FloatArray
from dpaudit_generators.networks.model import NetworkModel
from dpaudit_generators.networks.perceptron import logits


class GanModel(NetworkModel):
    """A trained generator network with leaky rectifiers, and its critic."""

    def discriminate(self, rows: pd.DataFrame) -> FloatArray:
        """The critic's output for each row [n]: how real it looks.

        Args:
            rows: A table with the schema's columns.
        """
        from dpaudit_generators.networks.rows import Head

        encoded = encode(rows, self.schema).clip(0.0, 1.0)
        return logits(self.critic, encoded[:, Head(self.schema).order])

    @classmethod
    def values_of_many(
        cls, models: Sequence[Self], n: int, seeds: Sequence[int | None]
    ) -> FloatArray:
        """Draws records of many models, as the base class says."""
        from dpaudit_generators.networks.rows import Head
        from dpaudit_generators.networks.source import sample

        schema = models[0].schema
        weights = [model.weights for model in models]
        rows = sample(weights, Head(schema), [()] * len(weights), n, seeds=seeds)
        return np.stack([values_of(mine.astype(np.float64), schema) for mine in rows])
