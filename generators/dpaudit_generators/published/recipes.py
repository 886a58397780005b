"""How large the networks of published PATE-GANs are and how they are trained.

Ganev, Annamalai and De Cristofaro 2025, Table 3, and what the public code does; numbers are given
as functions of d columns, n records and k teachers. What is no deviation of a promise is here; what
is one is a switch.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

from dpaudit_generators.published.scaling import Span


class Inputs(StrEnum):
    """What the generator network makes records of."""

    UNIT = "uniform on [0, 1)"
    SYMMETRIC = "uniform on [-1, 1)"
    NORMAL = "standard normal"


class Activation(StrEnum):
    """What a layer does to its sums."""

    LINEAR = "linear"
    RELU = "relu"
    LEAKY = "leaky relu"
    """Slope 0.2 below 0."""
    TANH = "tanh"
    SIGMOID = "sigmoid"


class Loss(StrEnum):
    """What the student and the generator minimise."""

    CROSS_ENTROPY = "cross-entropy"
    """The student on noisy labels; the generator wants to be labelled 1."""
    MEAN = "mean"
    """The difference of the student's mean outputs on labels 0 and 1 (Wasserstein's critic)."""


class Optimiser(StrEnum):
    """How weights are moved."""

    ADAM = "adam"
    RMSPROP = "rmsprop"


class Larger(StrEnum):
    """Which contiguous parts hold what is left over."""

    FIRST = "first"
    LAST = "last"


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """A perceptron.

    Attributes:
        hidden: Widths of the hidden layers.
        activation: Of the hidden layers.
        output: Of the last layer.
        residual: Whether a hidden layer as wide as what enters it adds that.
        normalised: Whether sums are brought to mean 0 and variance 1 over each record's layer.
    """

    hidden: tuple[int, ...]
    activation: Activation = Activation.RELU
    output: Activation = Activation.LINEAR
    residual: bool = False
    normalised: bool = False


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The hyperparameters of one implementation on one table; none is a deviation.

    Attributes:
        batch: Records in a minibatch.
        noise_width: Numbers that a record is made of.
        inputs: Their distribution.
        span: What numeric columns are scaled to.
        generator: The generator network.
        teacher: A teacher, where teachers are networks.
        student: The student; a single critic takes its hidden layers.
        teacher_steps: Steps of each teacher in an iteration.
        rounds: How often an iteration goes through student and generator.
        student_steps: Steps of the student in a round, each with a batch of labels.
        moments: Moments 1..L of the accountant.
        loss: What the student and the generator minimise.
        optimiser: How weights are moved.
        rate: Learning rate.
        betas: Decay rates of Adam; the second is RMSprop's.
        decay: L2 penalty on weights.
        clip: Largest weight of the student; 0 for none.
        larger: Which contiguous parts hold what is left over.
    """

    batch: int
    noise_width: int
    inputs: Inputs
    span: Span = Span.UNIT
    generator: Architecture
    teacher: Architecture
    student: Architecture
    teacher_steps: int = 5
    rounds: int = 1
    student_steps: int = 5
    moments: int = 100
    loss: Loss = Loss.CROSS_ENTROPY
    optimiser: Optimiser = Optimiser.ADAM
    rate: float = 1e-4
    betas: tuple[float, float] = (0.9, 0.999)
    decay: float = 0.0
    clip: float = 0.0
    larger: Larger = Larger.FIRST


Recipes: TypeAlias = "staticmethod[[int], Recipe]"
"""From the number d of columns to a recipe, as a class attribute."""

_LOGISTIC: Final = Architecture(hidden=())


def paper(d: int) -> Recipe:
    """Jordon, Yoon and van der Schaar 2019, as far as the paper says (Table 3, first column)."""
    half = max(1, d // 2)
    return Recipe(
        batch=64,
        noise_width=d,
        inputs=Inputs.SYMMETRIC,
        generator=Architecture(
            hidden=(d, half), activation=Activation.TANH, output=Activation.SIGMOID
        ),
        teacher=_LOGISTIC,
        student=Architecture(hidden=(d, half)),
    )


def original(d: int) -> Recipe:
    """One critic in place of teachers and student."""
    return Recipe(
        batch=128,
        noise_width=max(1, d // 4),
        inputs=Inputs.SYMMETRIC,
        generator=Architecture(
            hidden=(d, d), activation=Activation.TANH, output=Activation.SIGMOID
        ),
        teacher=_LOGISTIC,
        student=Architecture(hidden=(d, d)),
        betas=(0.5, 0.999),
    )


def turing(d: int) -> Recipe:
    """`original` with other inputs."""
    recipe = original(d)
    return Recipe(**{**vars(recipe), "noise_width": max(1, (d + 1) // 4)})


def updated(d: int) -> Recipe:
    """One step of a clipped critic in an iteration, RMSprop."""
    return Recipe(
        batch=64,
        noise_width=d,
        inputs=Inputs.SYMMETRIC,
        generator=Architecture(
            hidden=(4 * d, 4 * d), activation=Activation.TANH, output=Activation.SIGMOID
        ),
        teacher=_LOGISTIC,
        student=Architecture(hidden=(d,)),
        student_steps=1,
        moments=20,
        loss=Loss.MEAN,
        optimiser=Optimiser.RMSPROP,
        betas=(0.0, 0.9),
        clip=0.01,
    )


def synthcity(d: int) -> Recipe:
    """Ten rounds in an iteration, of one step each; numbers scaled by mixtures."""
    del d
    return Recipe(
        batch=200,
        noise_width=100,
        inputs=Inputs.NORMAL,
        span=Span.MIXTURE,
        generator=Architecture(hidden=(100, 100), residual=True),
        teacher=_LOGISTIC,
        student=Architecture(hidden=(100, 100), activation=Activation.LEAKY),
        rounds=10,
        student_steps=1,
        loss=Loss.MEAN,
        decay=1e-3,
    )


def borealis(d: int) -> Recipe:
    """Small networks; contiguous parts."""
    width = max(1, (d - 1) // 4)
    return Recipe(
        batch=64,
        noise_width=width,
        inputs=Inputs.UNIT,
        generator=Architecture(hidden=(2 * width,)),
        teacher=Architecture(hidden=(max(1, (d - 1) // 2),)),
        student=Architecture(hidden=(max(1, (d - 1) // 2),)),
        larger=Larger.LAST,
    )


def smartnoise(d: int) -> Recipe:
    """Normalised layers; teachers of three layers."""
    critic = Architecture(hidden=(max(1, 2 * d // 3), max(1, d // 3)), activation=Activation.LEAKY)
    return Recipe(
        batch=64,
        noise_width=64,
        inputs=Inputs.UNIT,
        span=Span.SYMMETRIC,
        generator=Architecture(
            hidden=(64, 64),
            activation=Activation.LEAKY,
            output=Activation.LEAKY,
            residual=True,
            normalised=True,
        ),
        teacher=critic,
        student=critic,
    )
