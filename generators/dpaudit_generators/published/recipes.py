"""The deviations of published PATE-GANs, one switch each, and the recipes of their networks.

Switches are choices that affect the claim (Ganev, Annamalai and De Cristofaro 2025, "The Elusive
Pursuit of Reproducing PATE-GAN", Table 2 and appendix E; those below the empty line are not in
Table 2). Each has the name of the finding by which `dpaudit trace` reports it. Without switches the
generator satisfies its claim.

Recipes are the others, sizes and training settings (Table 3 there, and the public code); sizes are
functions of the number d of columns.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

from dpaudit.errors import SettingsError
from dpaudit.formatting import did_you_mean
from dpaudit_generators.networks.model import (
    Activation,
    Architecture,
    Descent,
    Optimiser,
    Shortcut,
    Start,
)


class Switch(StrEnum):
    """One deviation from a correct PATE-GAN."""

    NO_PATE = "no-pate"
    """One critic reads real records and the generator learns from it: no votes, no accountant."""
    PARTITION_ALL_ROWS = "partition-all-rows"
    """Every teacher (every step of a single critic) draws from all records."""
    PARTITION_LAST_ONLY = "partition-last-only"
    """k parts are built, but every teacher trains on the last."""
    PARTITION_RESHUFFLED = "partition-reshuffled"
    """Records are dealt anew in every iteration."""
    ACCOUNTANT_MISSING_LOG = "accountant-missing-log"
    """min(cap, t) where min(cap, log t) is correct."""
    ACCOUNTANT_EXPONENT_SLIP = "accountant-exponent-slip"
    """q exp(2 g (l - 1) + 1), cut off at 0, where q exp(2 g l) is correct."""
    BOUNDS_FROM_DATA = "bounds-from-data"
    """The numbers that scale a numeric column are read off the table."""
    NOISE_GAUSSIAN_ON_LABELS = "noise-gaussian-on-labels"
    """Normal noise on labels that are 0 or 1, thresholded at 1/2, instead of noise on counts."""
    NOISE_SCALE_INVERTED = "noise-scale-inverted"
    """Laplace noise of scale gamma where the accountant assumes 1 / gamma."""
    DELTA_XOR = "delta-xor"
    """10 XOR 5 = 15 instead of 1 / delta = 10 ** 5."""
    DELTA_MULTIPLIED = "delta-multiplied"
    """10 ** delta instead of 1 / delta."""
    LABELS_COPIED = "labels-copied"
    """Records are generated given the labels of the training table, one by one."""
    TEACHERS_REFITTED = "teachers-refitted"
    """Teachers are logistic regressions fitted from scratch in every iteration."""
    OUTPUT_NOT_INVERTED = "output-not-inverted"
    """Numbers stay in [0, 1]."""
    INTEGERS_TRUNCATED = "integers-truncated"
    """Whole numbers are rounded down."""

    PARTITION_BY_POSITION = "partition-by-position"
    """Contiguous parts, so removing a record moves others from one teacher to the next."""
    TEACHERS_FROM_ROWS = "teachers-from-rows"
    """k = max(1, n // 1000)."""
    BATCH_FROM_ROWS = "batch-from-rows"
    """The batch is at most n // k."""
    STUDENT_SEES_REAL_ROWS = "student-sees-real-rows"
    """The student is trained on real records as well."""
    GENERATOR_SEES_REAL_ROWS = "generator-sees-real-rows"
    """The generator is trained on real records as well."""
    CONDITIONS_FROM_DATA = "conditions-from-data"
    """Records are generated given one-hot values of real records."""
    QUERIES_NOT_ACCOUNTED = "queries-not-accounted"
    """Labels of a batch are not charged if at least half of them are 1."""
    DELTA_IGNORED = "delta-ignored"
    """1 / (n sqrt n) instead of delta."""
    BUDGET_EXCEEDED = "budget-exceeded"
    """The budget is checked only after it is spent."""
    ONE_NOISE_CHARGED_AS_TWO = "one-noise-charged-as-two"
    """One Laplace draw on the count of ones, charged as PATE's noisy argmax with two."""
    SAMPLING_NOISE_DIFFERS = "sampling-noise-differs"
    """Trained with uniform inputs, sampled with normal ones."""
    OUTPUT_SHIFTED = "output-shifted"
    """Numbers are scaled back by their upper bound instead of the range."""
    PENALTY_FROM_TEACHERS = "penalty-from-teachers"
    """The gradient penalty of a single critic (`no-pate`) has weight k instead of 10."""


EQUAL_PARTS: Final = frozenset(
    {Switch.PARTITION_ALL_ROWS, Switch.PARTITION_RESHUFFLED, Switch.PARTITION_LAST_ONLY}
)
"""Switches that give all teachers equally many records, a number that depends on the table."""


def switches_named(names: str | Iterable[str]) -> frozenset[Switch]:
    """The switches of these names.

    Args:
        names: The names, or one text with commas between them.

    Raises:
        SettingsError: If one of them is not the name of a switch.
    """
    listed = names.split(",") if isinstance(names, str) else names
    wanted = [stripped for name in listed if (stripped := name.strip())]
    known = [str(switch) for switch in Switch]
    for name in wanted:
        if name not in known:
            raise SettingsError(
                f"there is no switch {name!r}{did_you_mean(name, known)}: use {', '.join(known)}"
            )
    return frozenset(map(Switch, wanted))


class Span(StrEnum):
    """The interval that numbers are scaled to."""

    UNIT = "unit"
    """From the bounds to [0, 1]."""
    SYMMETRIC = "symmetric"
    """From the bounds to [-1, 1]."""
    MIXTURE = "mixture"
    """From four deviations about a component's mean to [-1, 1]; a one-hot code says which one.

    Of a column with few distinct values, a one-hot code says which of these it is.
    """


class Inputs(StrEnum):
    """The distribution of the generator network's inputs."""

    UNIT = "uniform on [0, 1)"
    SYMMETRIC = "uniform on [-1, 1)"
    NORMAL = "standard normal"


class Loss(StrEnum):
    """What the student and the generator minimise."""

    CROSS_ENTROPY = "cross-entropy"
    """Cross-entropy: the student's with noisy labels, the generator's with label 1."""
    MEAN = "mean"
    """The mean of the student's outputs, those for label 1 negated (a Wasserstein critic)."""
    MEANS = "means"
    """The mean output for label 0 less that for label 1 (a Wasserstein critic)."""


class Larger(StrEnum):
    """Which contiguous parts get the records that are left over."""

    FIRST = "first"
    LAST = "last"


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The hyperparameters of one implementation on one table; none is a deviation.

    Attributes:
        batch: Records in a minibatch.
        noise_width: Number of random inputs of the generator network.
        inputs: Distribution of these inputs.
        span: Interval that numeric columns are scaled to.
        generator: The generator network.
        temperature: Temperature of the softmax with Gumbel noise that makes one-hot columns; 0 for
            a softmax without noise.
        teacher: The network of a teacher, if teachers are networks.
        student: The network of the student; a single critic has its hidden layers.
        start: Distribution of the first weights of all networks.
        teacher_steps: Minibatches of each teacher in an iteration.
        teacher_turns: Steps on each minibatch: 1 for real and generated records together, 2 for one
            after the other.
        replacement: Whether minibatches of real records are drawn with replacement.
        rounds: How often an iteration goes through student and generator.
        student_steps: Steps of the student in a round, each with a batch of labels.
        moments: Number L of the accountant's moments 1..L.
        loss: What the student and the generator minimise.
        optimiser: How weights are updated.
        rate: Learning rate.
        betas: Decay rates of Adam; the second is also that of RMSprop.
        decay: L2 penalty on weights.
        clip: Largest weight of the student; 0 for no limit.
        norm: Largest norm of a gradient step of student and generator; larger ones are shrunk to
            it. 0 for no limit.
        penalty: Weight of the student's gradient penalty; 0 for none.
        larger: Which contiguous parts get the records that are left over.
    """

    batch: int
    noise_width: int
    inputs: Inputs
    span: Span = Span.UNIT
    generator: Architecture
    temperature: float = 0.0
    teacher: Architecture
    student: Architecture
    start: Start = Start.GLOROT
    teacher_steps: int = 5
    teacher_turns: int = 1
    replacement: bool = True
    rounds: int = 1
    student_steps: int = 5
    moments: int = 100
    loss: Loss = Loss.CROSS_ENTROPY
    optimiser: Optimiser = Optimiser.ADAM
    rate: float = 1e-4
    betas: tuple[float, float] = (0.9, 0.999)
    decay: float = 0.0
    clip: float = 0.0
    norm: float = 0.0
    penalty: float = 0.0
    larger: Larger = Larger.FIRST

    @property
    def descent(self) -> Descent:
        """How a network is trained that has no limits."""
        return Descent(self.rate, self.betas, self.optimiser, self.decay)


Recipes: TypeAlias = "staticmethod[[int], Recipe]"
"""A function from the number d of columns to a recipe, as a class attribute."""

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
    """One critic instead of teachers and student."""
    return Recipe(
        batch=128,
        noise_width=max(1, d // 4),
        inputs=Inputs.SYMMETRIC,
        generator=Architecture(
            hidden=(d, d), activation=Activation.TANH, output=Activation.SIGMOID
        ),
        teacher=_LOGISTIC,
        student=Architecture(hidden=(d, d)),
        start=Start.HE,
        betas=(0.5, 0.999),
    )


def turing(d: int) -> Recipe:
    """`original` with another number of inputs."""
    recipe = original(d)
    return Recipe(**{**vars(recipe), "noise_width": max(1, (d + 1) // 4)})


def updated(d: int) -> Recipe:
    """One step of a clipped critic in an iteration; RMSprop."""
    return Recipe(
        batch=64,
        noise_width=d,
        inputs=Inputs.SYMMETRIC,
        generator=Architecture(
            hidden=(4 * d, 4 * d), activation=Activation.TANH, output=Activation.SIGMOID
        ),
        teacher=_LOGISTIC,
        student=Architecture(hidden=(d,)),
        start=Start.HE,
        student_steps=1,
        moments=20,
        loss=Loss.MEAN,
        optimiser=Optimiser.RMSPROP,
        betas=(0.0, 0.9),
        clip=0.01,
    )


def synthcity(d: int) -> Recipe:
    """Ten rounds of one step of a penalised critic in an iteration; numbers scaled by mixtures."""
    del d
    return Recipe(
        batch=200,
        noise_width=100,
        inputs=Inputs.NORMAL,
        span=Span.MIXTURE,
        generator=Architecture(hidden=(100, 100), shortcut=Shortcut.APPENDED),
        temperature=0.2,
        teacher=_LOGISTIC,
        student=Architecture(hidden=(100, 100), activation=Activation.HARDLY_LEAKY, dropout=0.1),
        start=Start.BY_INPUTS,
        rounds=10,
        student_steps=1,
        loss=Loss.MEANS,
        decay=1e-3,
        norm=1.0,
        penalty=10.0,
    )


def borealis(d: int) -> Recipe:
    """Small networks; teachers take real and generated records in turn."""
    # The label is not counted; where the others divide by four, this has one number more.
    width = max(1, (d - 1) // 4 + ((d - 1) % 4 == 0))
    return Recipe(
        batch=64,
        noise_width=width,
        inputs=Inputs.UNIT,
        generator=Architecture(hidden=(2 * width,)),
        teacher=Architecture(hidden=(max(1, (d - 1) // 2),)),
        student=Architecture(hidden=(max(1, (d - 1) // 2),)),
        start=Start.GLOROT_BIASED,
        teacher_turns=2,
        replacement=False,
        larger=Larger.LAST,
    )


def smartnoise(d: int) -> Recipe:
    """Normalised layers; teachers with three layers."""
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
            shortcut=Shortcut.ADDED,
            normalised=True,
        ),
        teacher=critic,
        student=critic,
    )
