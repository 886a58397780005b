"""A trained GAN, and many that were trained together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.currencies import CurveClaim
from dpaudit.model.encoding import encode, table_of, values_of
from dpaudit.model.schema import Schema
from dpaudit_generators.batches import TrainedTogether
from dpaudit_generators.networks.perceptron import Weights, flat, logits


@dataclass(frozen=True, kw_only=True, eq=False)
class GanModel:
    """A trained generator network and its critic.

    Attributes:
        schema: The public schema; scales the output back.
        weights: The generator's weights, W1, b1, W2, b2, ..., with a leading axis of one.
        critic: The critic's, in the same form.
        claim: What is promised of this training; None for nothing.
        released_numbers: What `released_facts` of the generator names.
    """

    schema: Schema
    weights: Weights
    critic: Weights
    claim: PrivacyClaim | CurveClaim | None = None
    released_numbers: tuple[float, ...] = ()

    def discriminate(self, rows: pd.DataFrame) -> npt.NDArray[np.float64]:
        """The critic's output for each row [n]: how real it looks.

        Args:
            rows: A table with the schema's columns.
        """
        from dpaudit_generators.networks.rows import Head

        encoded = encode(rows, self.schema).clip(0.0, 1.0)
        return logits(self.critic, encoded[:, Head(self.schema).order])

    def parameters(self) -> npt.NDArray[np.float64]:
        """All weights of generator and critic, flat."""
        return flat([*self.weights, *self.critic])

    def released(self) -> npt.NDArray[np.float64]:
        """What `released_facts` of the generator names."""
        return np.array(self.released_numbers, dtype=np.float64)

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        """Draws `n` synthetic records with the scale and the types of the input."""
        return table_of(GanBatch((self,)).sample_many(n, [seed])[0], self.schema)


@dataclass(frozen=True, eq=False)
class GanBatch(TrainedTogether[GanModel]):
    """GANs that were trained together.

    Attributes:
        models: The models, in the order of their jobs.
    """

    def sample_many(self, n: int, seeds: Sequence[int | None]) -> npt.NDArray[np.float64]:
        """Draws records of all models.

        Args:
            n: Number of records of each model.
            seeds: One for each model; None means the system's entropy.

        Returns:
            Values [M, n, d], as `dpaudit.model.encoding.values_of` gives them.
        """
        from dpaudit_generators.networks.rows import Head
        from dpaudit_generators.networks.source import sample

        schema = self.models[0].schema
        weights = [model.weights for model in self.models]
        rows = sample(weights, Head(schema), [()] * len(weights), n, seeds=seeds)
        return np.stack([values_of(mine.astype(np.float64), schema) for mine in rows])
