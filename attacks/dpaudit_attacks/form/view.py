"""Synthetic tables, the target and the known records: the input of all groups of features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dpaudit.model.column import Kind
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import BoolArray, FeatureName, FloatArray, IntArray
from dpaudit_attacks.columns import ColumnStack, ranges


@dataclass(frozen=True)
class TableView:
    """M synthetic tables of n rows, with the target and the known records.

    Attributes:
        schema: Their schema.
        stack: The tables.
        target: The target: a stack of one table of one row.
        known: The other records that the attacker knows: a stack of one table.
    """

    schema: Schema
    stack: ColumnStack
    target: ColumnStack
    known: ColumnStack

    @property
    def n_tables(self) -> int:
        """Number of tables."""
        return len(self.stack.numbers)

    @property
    def n_rows(self) -> int:
        """Number of rows of each table."""
        return int(self.stack.numbers.shape[-1])

    @cached_property
    def missing(self) -> BoolArray:
        """Where numbers are missing [M, numeric columns, n]."""
        return np.isnan(self.stack.numbers)

    @cached_property
    def present(self) -> IntArray:
        """Number of non-missing numbers of each column [M, numeric columns]."""
        present: IntArray = self.n_rows - self.missing.sum(axis=-1)
        return present

    @cached_property
    def lower(self) -> FloatArray:
        """Lower bound of each numeric column [numeric columns, 1]."""
        return ranges(self.schema)[0]

    @cached_property
    def widths(self) -> FloatArray:
        """Upper minus lower bound of each numeric column [numeric columns, 1]."""
        lower, upper = ranges(self.schema)
        return upper - lower

    @cached_property
    def categories(self) -> IntArray:
        """Number of categories of each non-numeric column [other columns, 1]."""
        sizes = [len(c.categories) for c in self.schema.columns if not c.kind.numeric]
        return np.array(sizes, dtype=np.int64).reshape(-1, 1)

    @cached_property
    def continuous(self) -> FloatArray:
        """Numbers of the continuous columns [M, continuous columns, n]."""
        kinds = [column.kind for column in self.schema.columns if column.kind.numeric]
        return self.stack.numbers[:, [kind is Kind.CONTINUOUS for kind in kinds]]

    @cached_property
    def scaled(self) -> FloatArray:
        """Numbers in widths of their range [M, numeric columns, n]; NaN if missing."""
        scaled: FloatArray = self.stack.numbers / self.widths
        return scaled

    @cached_property
    def away(self) -> FloatArray:
        """Distance of each number from the target's in widths; infinite if either is missing."""
        apart = np.abs(self.stack.numbers - self.target.numbers) / self.widths
        return np.where(np.isnan(apart), np.inf, apart)

    @cached_property
    def alike(self) -> BoolArray:
        """Where a value of a non-numeric column equals the target's [M, other columns, n]."""
        alike: BoolArray = self.stack.slots == self.target.slots
        return alike

    @cached_property
    def both_missing(self) -> BoolArray:
        """Where both a number and the target's are missing [M, numeric columns, n]."""
        return self.missing & np.isnan(self.target.numbers)


class FeatureGroup(NamedTuple):
    """A group of features.

    Attributes:
        names: Gives their names, which follow from the schema.
        values: Computes the features [M, f] of some tables.
        of_target: Whether the features depend on the target.
    """

    names: Callable[[Schema], list[FeatureName]]
    values: Callable[[TableView], FloatArray]
    of_target: bool = False


def numeric_names(schema: Schema) -> list[str]:
    """Names of the numeric columns."""
    return [column.name for column in schema.columns if column.kind.numeric]


def continuous_names(schema: Schema) -> list[str]:
    """Names of the continuous columns."""
    return [column.name for column in schema.columns if column.kind is Kind.CONTINUOUS]


def other_names(schema: Schema) -> list[str]:
    """Names of the columns that are not numeric."""
    return [column.name for column in schema.columns if not column.kind.numeric]


def labelled(columns: Sequence[str], labels: Sequence[str]) -> list[FeatureName]:
    """Names of the same features for several columns, column by column."""
    return [FeatureName(column, label) for column in columns for label in labels]


def flat(features: Sequence[FloatArray | IntArray]) -> FloatArray:
    """Joins features of c columns, each [M, c], into [M, c * features], column by column."""
    stacked = np.stack(features, axis=-1, dtype=np.float64)
    return stacked.reshape(len(stacked), -1)


def at_least(matches: IntArray, columns: int) -> FloatArray:
    """Numbers of rows with at least 1, ..., d matching columns [M, d], from matches [M, n]."""
    enough: BoolArray = matches[..., None] >= np.arange(1, columns + 1)
    return np.asarray(enough.sum(axis=1), dtype=np.float64)
