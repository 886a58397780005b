"""Trained networks, alone or many that were trained together, and weights as one array."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Self, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.model.claim import CurveClaim, PrivacyClaim
from dpaudit.model.encoding import table_of
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FloatArray
from dpaudit_generators.batches import TrainedTogether


@dataclass(frozen=True, kw_only=True, eq=False)
class NetworkModel(ABC):
    """A generator network and the critic that it learnt from.

    Attributes:
        schema: The public schema; scales the output back.
        weights: The generator's weights, W1, b1, W2, b2, ..., with a leading axis of one.
        critic: The critic's, in the same form.
        claim: The claim of this training; None for no claim.
        released_numbers: The numbers named by the generator's `released_facts`.
    """

    schema: Schema
    weights: Weights
    critic: Weights
    claim: PrivacyClaim | CurveClaim | None = None
    released_numbers: tuple[float, ...] = ()

    @abstractmethod
    def discriminate(self, rows: pd.DataFrame) -> FloatArray:
        """How real each row looks to the critic [n].

        Args:
            rows: A table with the schema's columns.
        """

    @classmethod
    @abstractmethod
    def values_of_many(
        cls, models: Sequence[Self], n: int, seeds: Sequence[int | None]
    ) -> FloatArray:
        """Draws records of many models.

        Args:
            models: The models, all of one shape.
            n: Number of records of each.
            seeds: One for each model; None means the system's entropy.

        Returns:
            Values [M, n, d], as `dpaudit.model.encoding.values_of` gives them.
        """

    def parameters(self) -> FloatArray:
        """All weights of generator and critic, flat."""
        return flat([*self.weights, *self.critic])

    def released(self) -> FloatArray:
        """The numbers named by the generator's `released_facts`."""
        return np.array(self.released_numbers, dtype=np.float64)

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        """Draws `n` synthetic records with the scale and the types of the input."""
        return table_of(self.values_of_many([self], n, [seed])[0], self.schema)


N = TypeVar("N", bound=NetworkModel)


@dataclass(frozen=True, eq=False)
class NetworkBatch(TrainedTogether[N]):
    """Networks that were trained together.

    Attributes:
        models: The models, in the order of their jobs.
    """

    def sample_many(self, n: int, seeds: Sequence[int | None]) -> FloatArray:
        """Draws records of all models; see `NetworkModel.values_of_many`."""
        return self.models[0].values_of_many(self.models, n, seeds)


Float32Array: TypeAlias = npt.NDArray[np.float32]

Weights: TypeAlias = tuple[Float32Array, ...]
"""k networks without padding, W1, b1, W2, b2, ...: W [k, inputs, outputs], b [k, 1, outputs]."""
SLOPE: Final = 0.2
"""Slope of the leaky rectifier of hidden layers below 0."""


def perceptron(
    weights: Weights, rows: FloatArray, activation: Callable[[FloatArray], FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """The last hidden layer [n, h] and the outputs [n, k] of one network.

    Args:
        weights: W1, b1, W2, b2, ... with a leading axis of one.
        rows: Encoded records [n, width].
        activation: The function of hidden layers.
    """
    values = outputs = rows
    for layer, (weight, bias) in enumerate(zip(weights[::2], weights[1::2], strict=True)):
        values = activation(outputs) if layer else rows
        outputs = np.asarray(values @ weight[0] + bias[0], dtype=np.float64)
    return values, outputs


def logits(weights: Weights, rows: FloatArray) -> FloatArray:
    """The output [n] of a critic with leaky rectifiers for each encoded record [n, width]."""
    return perceptron(weights, rows, lambda v: np.where(v < 0, SLOPE * v, v))[1][:, 0]


def flat(weights: Sequence[Float32Array]) -> npt.NDArray[np.float64]:
    """All numbers of some weights, one after the other."""
    return np.concatenate([part.ravel() for part in weights]).astype(np.float64)
