"""The public constants of a training, what goes into it, and what comes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dpaudit.errors import SettingsError
from dpaudit_generators.batches import check_network_settings
from dpaudit_generators.networks.model import Float32Array, Weights
from dpaudit_generators.pate import IndexArray

if TYPE_CHECKING:
    from dpaudit_generators.marginals import TreeModel

_COUNTS: Final = (
    *("rounds", "teacher_steps", "student_steps", "generator_steps", "batch", "noise_width"),
)
_LAYERS: Final = ("generator_hidden", "student_hidden", "teacher_hidden")


PUBLISHED: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "rounds": 1000,
        "student_steps": 5,
        "generator_steps": 1,
        "noise_width": 29,
        "generator_hidden": (29, 14),
        "student_hidden": (29, 14),
        "teacher_hidden": (),
        "replay": False,
        "learning_rate": 1e-4,
        "betas": (0.9, 0.999),
    }
)
"""The networks of the published average-case audit, with 29 columns and 5 teachers.

("The Elusive Pursuit of Reproducing PATE-GAN", TMLR 2025.)
"""


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """Sizes, numbers of steps and rates: constants that do not depend on any private table.

    The defaults are for small budgets; `PUBLISHED` is another choice. Widths that are one less than
    a multiple of 16 cost least: with its bias, a layer then fills whole vectors of the processor.

    Attributes:
        rounds: How often teachers train and labels are released.
        teacher_steps: Steps of every teacher in a round.
        student_steps: Steps of the student in a round.
        generator_steps: Steps of the generator in a round.
        batch: Records in a minibatch of any network.
        noise_width: Dimension of the generator's normal noise.
        generator_hidden: Widths of the generator's hidden layers.
        student_hidden: Widths of the student's hidden layers.
        teacher_hidden: Widths of a teacher's hidden layers; none makes it a logistic regression.
        replay: Whether the student draws its minibatches with replacement from all labels released
            so far; else it takes those of the round in order, repeatedly if there are too few.
        learning_rate: Learning rate of every network (Adam).
        betas: Adam's decay rates of the two moments. Less momentum than Adam's usual .9, because
            the opponent moves (Radford et al. 2016).

    Raises:
        SettingsError: If a setting is out of range.
    """

    rounds: int = 5
    teacher_steps: int = 5
    student_steps: int = 10
    generator_steps: int = 5
    batch: int = 64
    noise_width: int = 15
    generator_hidden: Sequence[int] = (63,)
    student_hidden: Sequence[int] = (31,)
    teacher_hidden: Sequence[int] = (15,)
    replay: bool = True
    learning_rate: float = 1e-3
    betas: Sequence[float] = (0.5, 0.999)

    def __post_init__(self) -> None:
        check_network_settings(self, counts=_COUNTS, layers=_LAYERS, rates=("learning_rate",))
        if not isinstance(self.replay, bool):
            raise SettingsError(f"replay is {self.replay!r}: use true or false")


class Trained(NamedTuple):
    """The networks of one trained model.

    Attributes:
        generator: Makes records; empty if noisy marginals do.
        student: The critic that the generator learnt from; public, as post-processing of released
            labels, unless a training shows it private records.
        ones: Share of 1 among the labels released in each round; empty if it is not kept.
    """

    generator: Weights
    student: Weights
    ones: tuple[float, ...] = ()


class Records(NamedTuple):
    """The private records of one model.

    Attributes:
        rows: Encoded records in the head's order of columns, [n, width]; models may share them.
        owned: Row numbers of each of k teachers; a dropped record has none.
    """

    rows: Float32Array
    owned: Sequence[IndexArray]


class Trainee(NamedTuple):
    """What one model is trained on.

    Attributes:
        records: Its private records and which teachers have them.
        proportions: Released proportions of the label's classes, or none.
        labels: Number of labels that its budget pays for, at most that of the plan.
        seed: Its seed; None draws everything from the system's entropy.
        start: The noisy marginals that records are drawn from; None if a network makes them.
    """

    records: Records
    proportions: Sequence[float]
    labels: int
    seed: int | None
    start: TreeModel | None = None
