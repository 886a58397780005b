"""Inputs of the training of published PATE-GANs, and what its student sees, which is released.

PATE releases the answers to the student's queries, so the records that the student is trained on
may be published with their noisy labels. These facts are released: their number, the share of label
1 in each stretch of the training, and the mean record of each label, column by column. A training
without PATE has a critic in the student's place, which also learns from noisy labels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FloatArray, IntArray
from dpaudit_generators.networks.model import Weights
from dpaudit_generators.published.recipes import Switch
from dpaudit_generators.published.scaling import Scaling

STRETCHES: Final = 16
"""Largest number of stretches of a training whose labels are counted separately."""


class Form(NamedTuple):
    """The layout of records in the networks' matrices: generated columns, then given ones.

    Attributes:
        order: For each column of a record, its column in the scaled matrix, [width]; columns that
            are always 0 are left out.
        made: Number of columns that the generator network makes; the others are given to it.
        groups: Columns of a record that the generator makes one-hot together.
        conditions: Columns of a record that a condition may concern: one of these slices is drawn
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
    """The places of a group's columns among some columns."""
    start, stop = np.searchsorted(columns, [group.start, group.stop])
    return slice(int(start), int(stop))


@dataclass(frozen=True, kw_only=True)
class PublishedSettings:
    """The constants of a training, public unless switches say otherwise.

    Attributes:
        teachers: Number k of teachers.
        batch: Records in a minibatch.
        iterations: Largest number of iterations of the training.
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

    @property
    def deviation(self) -> float:
        """Standard deviation of the Gaussian mechanism (Dwork and Roth 2014, A.1)."""
        return math.sqrt(2.0 * math.log(1.25 * self.inverse)) / self.epsilon


class PublishedTrainee(NamedTuple):
    """What one model is trained on.

    Attributes:
        records: Scaled records in the form's order, [n, width]; models may share them.
        public: Records encoded under the public schema, for the partition, [n, d].
        hints: The part of the records that conditions are drawn from, [n, hints].
        positions: Row numbers in the given table, [n].
        seed: Its seed; None draws everything from the system's entropy.
    """

    records: npt.NDArray[np.float32]
    public: FloatArray
    hints: npt.NDArray[np.float32]
    positions: IntArray
    seed: int | None


def stretches(iterations: int) -> int:
    """How many stretches a training of at most this many iterations has; a public number."""
    return min(iterations, STRETCHES)


class Shown(NamedTuple):
    """Sums over the labelled records that the student of one model was trained on.

    Attributes:
        counts: Numbers of records with label 0 and 1, by stretch of the training, [stretches, 2].
        records: Sums of the records with label 0 and 1, [2, width].
        hints: Sums of the conditions that they were shown with, [hints].
        iterations: Number of the last iteration with labels, counted from 1.
    """

    counts: IntArray
    records: FloatArray
    hints: FloatArray
    iterations: int


TrainedAndShown: TypeAlias = tuple[Weights, Weights, Shown]
"""Generator and student of one model, and what the student, or a single critic, was shown."""

ONE_BY_ONE: Final = 32
"""Up to this many columns of a schema the means are released one by one, else the mean of all."""
_NONE: Final = 0.5
"""Share of label 1 if there are no labels."""


def has_conditions(switches: frozenset[Switch]) -> bool:
    """Whether records are shown to the student with conditions."""
    return Switch.CONDITIONS_FROM_DATA in switches and Switch.NO_PATE not in switches


def released_names(
    schema: Schema, *, iterations: int, switches: frozenset[Switch]
) -> tuple[str, ...]:
    """Names of the released numbers of every model, which depend on no table.

    Args:
        schema: The public schema.
        iterations: Largest number of iterations of a training.
        switches: Deviations.
    """
    own = schema.names if len(schema.names) <= ONE_BY_ONE else ()
    columns = (*own, "all columns")
    names = ["labels", "iterations with labels", "share of 1 among labels"]
    parts = stretches(iterations)
    names += [f"share of 1 among labels, part {part + 1} of {parts}" for part in range(parts)]
    names += [f"mean of {name} where the label is {label}" for label in (0, 1) for name in columns]
    if has_conditions(switches):
        names += [f"mean of conditions about {name}" for name in columns]
    return tuple(names)


def released(
    shown: Shown, *, scaling: Scaling, form: Form, switches: frozenset[Switch]
) -> tuple[float, ...]:
    """The released numbers of one model, in the order of their names.

    Means are of scaled records; for a one-hot column, of the place of its value among all.

    Args:
        shown: Sums over what its student was trained on.
        scaling: How its records are scaled.
        form: The form of its records.
        switches: Deviations.
    """
    counts, code = shown.counts, _code(scaling)[form.order]
    by_label = counts.sum(axis=0)
    facts = [float(by_label.sum()), float(shown.iterations), _share(by_label)]
    facts += [_share(part) for part in counts]
    for sums, n in zip(shown.records, by_label, strict=True):
        facts += _means(sums @ code, int(n))
    if has_conditions(switches):
        places = np.concatenate([np.arange(part.start, part.stop) for part in form.conditions])
        facts += _means(shown.hints @ code[places], int(by_label.sum()))
    return tuple(facts)


def _share(counts: IntArray) -> float:
    """Share of 1, given the numbers of 0 and 1."""
    return float(counts[1] / counts.sum()) if counts.sum() else _NONE


def _means(sums: FloatArray, n: int) -> Sequence[float]:
    """Means of each column and of all, given their sums over n records; 0 if there are none."""
    means = sums / max(n, 1)
    own = means.tolist() if len(means) <= ONE_BY_ONE else []
    return [*own, float(means.mean())]


def _code(scaling: Scaling) -> FloatArray:
    """Turns scaled records into a number for each column of the schema, [width, d]."""
    columns = scaling.schema.columns
    code = np.zeros((scaling.width, len(columns)))
    possible = scaling.possible
    for index, column in enumerate(columns):
        own = scaling.columns_of(column.name)
        if column.kind.numeric:
            code[own[0], index] = 1.0
            own = own[1:]
        own = own[possible[own]]
        code[own, index] = np.linspace(0.0, 1.0, len(own))
    return code
