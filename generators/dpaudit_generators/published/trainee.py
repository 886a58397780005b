"""What goes into a training of published PATE-GANs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpaudit.model.encoding import layout
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FloatArray, IntArray
from dpaudit_generators.published.scaling import Scaling
from dpaudit_generators.published.switches import Switch


class Form(NamedTuple):
    """How records lie in the matrices that networks see: what is generated, then what is given.

    Attributes:
        order: Column of the scaled matrix of each column of a record, [width]; one that is always
            0 is in none.
        made: How many columns the generator network makes; the others are given to it.
        groups: Columns of a record that the generator makes one-hot together.
        conditions: Columns of a record, by what a condition may be about: one is drawn for each
            record, and its values are handed to the generator; none if empty.
    """

    order: IntArray
    made: int
    groups: tuple[slice, ...]
    conditions: tuple[slice, ...]

    @property
    def width(self) -> int:
        """Columns of a record."""
        return len(self.order)

    @property
    def given(self) -> int:
        """Columns of a record that are given to the generator."""
        return self.width - self.made

    @property
    def hints(self) -> int:
        """Columns that conditions take."""
        return sum(part.stop - part.start for part in self.conditions)


def form_of(scaling: Scaling, schema: Schema, switches: frozenset[Switch]) -> Form:
    """The form of records of a schema; a table matters by its mixtures alone.

    Args:
        scaling: Of the table.
        schema: The schema; the label that `Switch.LABELS_COPIED` copies is its last column if it
            names none.
        switches: Deviations.
    """
    columns = np.flatnonzero(scaling.possible)
    given = np.zeros(0, dtype=np.int64)
    if Switch.LABELS_COPIED in switches:
        name = schema.label or schema.columns[-1].name
        block = next(block for block in layout(schema) if block.column.name == name)
        given = np.arange(scaling.width)[block.value]
    made = np.setdiff1d(columns, given)
    groups = tuple(_within(made, group) for group in scaling.groups if group.start not in given)
    order = np.concatenate([made, given])
    conditions: tuple[slice, ...] = ()
    if Switch.CONDITIONS_FROM_DATA in switches:
        conditions = groups or tuple(slice(i, i + 1) for i in range(len(order)))
    return Form(order, len(made), groups, conditions)


def _within(columns: IntArray, group: slice) -> slice:
    """Where among columns those of a group are."""
    start, stop = np.searchsorted(columns, [group.start, group.stop])
    return slice(int(start), int(stop))


@dataclass(frozen=True, kw_only=True)
class PublishedSettings:
    """What a training is asked for.

    Attributes:
        teachers: Number k of teachers.
        batch: Records in a minibatch.
        iterations: At most so many.
        gamma: Inverse noise scale.
        epsilon: The budget.
        inverse: What stands for 1 / delta.
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
        hints: What of the records conditions are taken of, [n, hints].
        positions: Row numbers in the table at hand, [n].
        seed: None draws everything from the system's entropy.
    """

    records: npt.NDArray[np.float32]
    public: FloatArray
    hints: npt.NDArray[np.float32]
    positions: IntArray
    seed: int | None
