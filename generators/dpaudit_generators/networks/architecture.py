"""The layers of a perceptron, the distribution of its first weights, and how it is trained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


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
