"""A trained PATE-G: a generator network for all columns but the label, and the student."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.model.encoding import encode, values_of
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FloatArray
from dpaudit.seeds import rng_of
from dpaudit_generators.gan.conditional import sample_encoded, selu_layers
from dpaudit_generators.networks.model import NetworkModel


def features_of(schema: Schema) -> Schema:
    """The schema of all columns but the label."""
    others = tuple(column for column in schema.columns if column.name != schema.label)
    return replace(schema, columns=others, label=None)


class PateGModel(NetworkModel):
    """A trained PATE-G.

    The generator network makes all columns but the label. The critic is the student, a network from
    these columns to logits of the classes.
    """

    def probabilities(self, rows: FloatArray) -> FloatArray:
        """The student's probability of each class [n, k].

        Args:
            rows: All columns but the label, encoded in the order of their schema [n, width].
        """
        logits = self._logits(rows)
        each = np.exp(logits - logits.max(axis=1, keepdims=True))
        shares: FloatArray = each / each.sum(axis=1, keepdims=True)
        return shares

    def discriminate(self, rows: pd.DataFrame) -> FloatArray:
        """How real each row looks to the student [n]: log of the summed evidence of all classes.

        Args:
            rows: A table with the schema's columns; the label is not read.
        """
        features = features_of(self.schema)
        encoded = encode(rows[features.names], features).clip(0.0, 1.0)
        return np.asarray(np.logaddexp.reduce(self._logits(encoded), axis=1), dtype=np.float64)

    def labels(self, rows: FloatArray, *, seed: int | None) -> npt.NDArray[np.int64]:
        """Draws the class of each row from the student's probabilities.

        Args:
            rows: As `probabilities` takes them.
            seed: For audits; None means the system's entropy.
        """
        cumulative = self.probabilities(rows).cumsum(axis=1)
        drawn = rng_of(seed, "labels").random((len(rows), 1))
        return np.asarray((drawn >= cumulative[:, :-1]).sum(axis=1), dtype=np.int64)

    def _logits(self, rows: FloatArray) -> FloatArray:
        from dpaudit_generators.networks.rows import Head

        return selu_layers(self.critic, rows[:, Head(features_of(self.schema)).order])[1]

    @classmethod
    def values_of_many(
        cls, models: Sequence[Self], n: int, seeds: Sequence[int | None]
    ) -> FloatArray:
        """Draws records of many models: all other columns first, then their label."""
        schema = models[0].schema
        features = features_of(schema)
        assert schema.label is not None
        place = schema.names.index(schema.label)
        weights = [model.weights for model in models]
        encoded = sample_encoded(weights, features, [()] * len(weights), n, seeds=seeds)
        return np.stack(
            [
                np.insert(values_of(rows, features), place, model.labels(rows, seed=seed), axis=1)
                for rows, model, seed in zip(encoded, models, seeds, strict=True)
            ]
        )
