"""What the training of published PATE-GANs is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FloatArray, IntArray
from dpaudit_generators.pate_gan.trainee import Trained
from dpaudit_generators.published.scaling import Scaling
from dpaudit_generators.published.switches import Switch

STRETCHES: Final = 16
"""Most stretches of a training whose labels are counted apart."""


class Form(NamedTuple):
    """How records lie in the matrices that networks see: generated columns, then given ones.

    Attributes:
        order: For each column of a record, its column in the scaled matrix, [width]; columns that
            are always 0 are left out.
        made: How many columns the generator network makes; the others are given to it.
        groups: Columns of a record that the generator makes one-hot together.
        conditions: Columns of a record that a condition may be about: one of these slices is drawn
            for each record, and its values are handed to the generator. Empty for no conditions.
    """

    order: IntArray
    made: int
    groups: tuple[slice, ...]
    conditions: tuple[slice, ...]

    @property
    def width(self) -> int:
        """Number of columns of a record."""
        return len(self.order)

    @property
    def given(self) -> int:
        """Number of columns of a record that are given to the generator."""
        return self.width - self.made

    @property
    def hints(self) -> int:
        """Number of columns that conditions take."""
        return sum(part.stop - part.start for part in self.conditions)


def form_of(scaling: Scaling, schema: Schema, switches: frozenset[Switch]) -> Form:
    """The form of records of a schema, which depends on a table through its codings only.

    Args:
        scaling: The scaling of the table.
        schema: The schema; if it names no label, `Switch.LABELS_COPIED` copies its last column.
        switches: Deviations.
    """
    columns = np.flatnonzero(scaling.possible)
    given = np.zeros(0, dtype=np.int64)
    if Switch.LABELS_COPIED in switches:
        name = schema.label or schema.columns[-1].name
        given = np.intersect1d(columns, scaling.columns_of(name))
    made = np.setdiff1d(columns, given)
    groups = tuple(_within(made, group) for group in scaling.groups if group.start not in given)
    order = np.concatenate([made, given])
    conditions: tuple[slice, ...] = ()
    if Switch.CONDITIONS_FROM_DATA in switches:
        own = (group for group in scaling.categories if group.start not in given)
        categories = tuple(_within(made, group) for group in own)
        conditions = categories or groups or tuple(slice(i, i + 1) for i in range(len(order)))
    return Form(order, len(made), groups, conditions)


def _within(columns: IntArray, group: slice) -> slice:
    """The places that a group's columns have among some columns."""
    start, stop = np.searchsorted(columns, [group.start, group.stop])
    return slice(int(start), int(stop))


@dataclass(frozen=True, kw_only=True)
class PublishedSettings:
    """The constants of a training, public unless switches say otherwise.

    Attributes:
        teachers: Number k of teachers.
        batch: Records in a minibatch.
        iterations: Most iterations of the training.
        gamma: Inverse noise scale.
        epsilon: The budget.
        inverse: The number used as 1 / delta.
        switches: Deviations.
    """

    teachers: int
    batch: int
    iterations: int
    gamma: float
    epsilon: float
    inverse: float
    switches: frozenset[Switch]


class PublishedTrainee(NamedTuple):
    """What one model is trained on.

    Attributes:
        records: Scaled records in the form's order, [n, width]; models may share them.
        public: Records encoded under the public schema, for the partition, [n, d].
        hints: The part of the records that conditions are drawn from, [n, hints].
        positions: Row numbers in the table that was handed in, [n].
        seed: Its seed; None draws everything from the system's entropy.
    """

    records: npt.NDArray[np.float32]
    public: FloatArray
    hints: npt.NDArray[np.float32]
    positions: IntArray
    seed: int | None


def stretches(iterations: int) -> int:
    """How many stretches a training of at most so many iterations has: it is public."""
    return min(iterations, STRETCHES)


class Shown(NamedTuple):
    """Sums over the labelled records that the student of one model was trained on.

    Attributes:
        counts: How many have label 0 and 1, by stretch of the training, [stretches, 2].
        records: Sums of the records with label 0 and 1, [2, width].
        hints: Sums of the conditions that they were shown with, [hints].
        iterations: Number of the last iteration with labels, counted from 1.
    """

    counts: IntArray
    records: FloatArray
    hints: FloatArray
    iterations: int


class TrainedAndShown(NamedTuple):
    """What the training of one model gives.

    Attributes:
        networks: Its networks; a single critic stands for the student.
        shown: What its student was trained on.
    """

    networks: Trained
    shown: Shown
