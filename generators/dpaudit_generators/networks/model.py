"""Networks without torch: their layers and how they are trained, and what training gives.

Trained networks are used alone or many together, and their weights as one array.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple, Self, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.model.claim import CurveClaim, PrivacyClaim
from dpaudit.model.encoding import table_of
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FloatArray
from dpaudit_generators.batches import TrainedTogether


class Activation(StrEnum):
    """The function that a layer applies to its sums."""

    LINEAR = "linear"
    RELU = "relu"
    LEAKY = "leaky relu"
    """Slope 0.2 below 0."""
    HARDLY_LEAKY = "leaky relu, slope 0.01"
    SELU = "selu"
    """Klambauer et al. 2017."""
    TANH = "tanh"
    SIGMOID = "sigmoid"


class Shortcut(StrEnum):
    """The shortcut of the numbers that enter a hidden layer."""

    NONE = "no shortcut"
    ADDED = "inputs added"
    """They are added to the layer's outputs, if these have the same width."""
    APPENDED = "inputs appended"
    """They follow the layer's outputs. Hidden layers after the first are at least as wide as their
    inputs."""


class Start(StrEnum):
    """The distribution of weights before training."""

    GLOROT = "Glorot-uniform, biases 0"
    GLOROT_BIASED = "Glorot-uniform, biases 0.01"
    HE = "normal of variance 2 / inputs, biases 0"
    BY_INPUTS = "uniform within 1 / sqrt(inputs), biases too"
    """PyTorch's default."""


class Optimiser(StrEnum):
    """How weights are updated."""

    ADAM = "adam"
    RMSPROP = "rmsprop"


class Layer(NamedTuple):
    """Number of inputs and outputs of a layer."""

    inputs: int
    outputs: int


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """A perceptron.

    Attributes:
        hidden: Widths of the hidden layers.
        activation: Activation of the hidden layers.
        output: Activation of the last layer.
        shortcut: The shortcut of the inputs of a hidden layer.
        normalised: Whether sums are scaled to mean 0 and variance 1 over the layer of each record.
        dropout: Share of the numbers entering a hidden layer, except the first, that are dropped at
            random in training; the others are scaled up.
    """

    hidden: Sequence[int]
    activation: Activation = Activation.RELU
    output: Activation = Activation.LINEAR
    shortcut: Shortcut = Shortcut.NONE
    normalised: bool = False
    dropout: float = 0.0

    def layers(self, inputs: int, outputs: int) -> tuple[Layer, ...]:
        """The widths of all layers of a network, the last one included."""
        layers: list[Layer] = []
        appended, entering = self.shortcut is Shortcut.APPENDED, inputs
        for width in self.hidden:
            leaving = max(width, entering) if appended and layers else width
            layers.append(Layer(entering, leaving))
            entering = leaving + (entering if appended else 0)
        return (*layers, Layer(entering, outputs))


class Descent(NamedTuple):
    """How networks are moved down their gradients.

    Attributes:
        rate: Learning rate.
        betas: Decay rates of Adam; the second is also that of RMSprop.
        optimiser: How weights are updated.
        decay: L2 penalty on weights, of Adam.
        clip: Largest weight after a step; 0 for no limit.
        norm: Largest norm of a step's gradient; larger ones are shrunk to it. 0 for no limit.
    """

    rate: float
    betas: Sequence[float]
    optimiser: Optimiser = Optimiser.ADAM
    decay: float = 0.0
    clip: float = 0.0
    norm: float = 0.0


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
