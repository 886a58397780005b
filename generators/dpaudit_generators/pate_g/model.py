"""A trained PATE-G: a generator network for all columns but the label, and the student."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.encoding import encode, table_of, values_of
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FloatArray
from dpaudit.seeds import rng_of
from dpaudit_generators.batches import TrainedTogether
from dpaudit_generators.gan.conditional import sample_encoded, selu_layers
from dpaudit_generators.networks.perceptron import Weights, flat


def features_of(schema: Schema) -> Schema:
    """The schema of all columns but the label."""
    others = tuple(column for column in schema.columns if column.name != schema.label)
    return replace(schema, columns=others, label=None)


@dataclass(frozen=True, kw_only=True, eq=False)
class PateGModel:
    """A trained PATE-G.

    Attributes:
        schema: The public schema, with its label.
        weights: The generator's weights, W1, b1, W2, b2, ..., with a leading axis of one; it makes
            all columns but the label.
        student: Those of the student, a network from these columns to logits of the classes.
        claim: What is promised to the labelled table; None if its rows were not protected.
        released_numbers: What `released_facts` of the generator names.
    """

    schema: Schema
    weights: Weights
    student: Weights
    claim: PrivacyClaim | None = None
    released_numbers: tuple[float, ...] = ()

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

    def parameters(self) -> FloatArray:
        """All weights of generator and student, flat."""
        return flat([*self.weights, *self.student])

    def released(self) -> FloatArray:
        """What `released_facts` of the generator names."""
        return np.array(self.released_numbers, dtype=np.float64)

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        """Draws `n` synthetic records with the scale and the types of the input."""
        return table_of(PateGBatch((self,)).sample_many(n, [seed])[0], self.schema)

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

        return selu_layers(self.student, rows[:, Head(features_of(self.schema)).order])[1]


@dataclass(frozen=True, eq=False)
class PateGBatch(TrainedTogether[PateGModel]):
    """PATE-Gs that were trained together.

    Attributes:
        models: The models, in the order of their jobs.
    """

    def sample_many(self, n: int, seeds: Sequence[int | None]) -> FloatArray:
        """Draws records of all models: all other columns first, then their label.

        Args:
            n: Number of records of each model.
            seeds: One for each model; None means the system's entropy.

        Returns:
            Values [M, n, d], as `dpaudit.model.encoding.values_of` gives them.
        """
        schema = self.models[0].schema
        features = features_of(schema)
        assert schema.label is not None
        place = schema.names.index(schema.label)
        weights = [model.weights for model in self.models]
        encoded = sample_encoded(weights, features, [()] * len(weights), n, seeds=seeds)
        return np.stack(
            [
                np.insert(values_of(rows, features), place, model.labels(rows, seed=seed), axis=1)
                for rows, model, seed in zip(encoded, self.models, seeds, strict=True)
            ]
        )
