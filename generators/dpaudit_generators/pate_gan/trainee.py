"""What goes into the training of one model, and what comes out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from dpaudit_generators.networks.perceptron import Float32Array, Weights
from dpaudit_generators.pate import IndexArray

if TYPE_CHECKING:
    from dpaudit_generators.marginals import TreeModel


class Trained(NamedTuple):
    """The networks of one trained model.

    Attributes:
        generator: Makes records; empty if noisy marginals do.
        student: The critic that the generator learnt from; public, as post-processing of released
            labels, unless a training shows it private records.
        ones: Share of 1 among the labels released in each round; empty where it is not kept.
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
        labels: How many labels its budget pays for, at most those of the plan.
        seed: Its seed; None draws everything from the system's entropy.
        start: The noisy marginals that records are drawn from; None if a network makes them.
    """

    records: Records
    proportions: Sequence[float]
    labels: int
    seed: int | None
    start: TreeModel | None = None
