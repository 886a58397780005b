"""What exposes single records: facts of a table that hold of one record alone.

Whoever reads bounds, categories, missing values or the format of numbers off the table reads such a
fact off one record, so that the output may change when that record leaves. The facts are read off
the table alone: nothing is trained.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dpaudit.model.column import Column, as_numbers
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import BoolArray, FloatArray, IntArray


class Fact(StrEnum):
    """What holds of one record alone, in one column."""

    MAXIMUM = "sole maximum"
    """Every other value is smaller."""
    MINIMUM = "sole minimum"
    """Every other value is larger."""
    DIFFERENT = "only value that differs"
    """All others have one and the same value, or none at all."""
    CATEGORY = "only one of its category"
    """The others share at least two other categories."""
    MISSING = "only missing value"
    """All others have a value."""
    DECIMALS = "only value with decimals"
    """All other numbers are whole."""


class Exposure(NamedTuple):
    """A fact that holds of one record alone.

    Attributes:
        fact: The fact.
        column: The column that it is about.
    """

    fact: Fact
    column: str


class Holders(NamedTuple):
    """The records that hold a fact, each alone: one, or several that each have a lone category.

    Attributes:
        exposure: The fact and its column.
        rows: Their positions [m] in the table.
        weight: What it counts for each of them, in (0, 1].
    """

    exposure: Exposure
    rows: IntArray
    weight: float


def find_holders(data: pd.DataFrame, schema: Schema) -> tuple[Holders, ...]:
    """Finds every fact that holds of one record alone.

    A fact counts 1. A sole extreme counts by how far it stands out: its distance from the next
    value in standard deviations of all other values, at most 1. So a slight maximum, which every
    column of real numbers has, counts little.

    Args:
        data: The table [n], canonical.
        schema: Its schema.

    Returns:
        The facts, in the order of the columns.
    """
    return tuple(
        Holders(Exposure(fact, column.name), rows, weight)
        for column in schema.columns
        for fact, rows, weight in _of_column(column, data[column.name])
    )


def exposure_scores(holders: tuple[Holders, ...], rows: int) -> FloatArray:
    """How exposed each record [n] is: the sum of its facts' weights; 0 for most."""
    scores = np.zeros(rows)
    for one in holders:
        scores[one.rows] += one.weight  # a fact's holders differ, so none is added twice
    return scores


def exposures_of(row: int, holders: tuple[Holders, ...]) -> tuple[Exposure, ...]:
    """The facts of one record: those that count most first, then in the order of the columns."""
    own = [one for one in holders if row in one.rows]
    return tuple(one.exposure for one in sorted(own, key=lambda one: -one.weight))


class _Found(NamedTuple):
    fact: Fact
    rows: IntArray
    weight: float = 1.0


def _of_column(column: Column, values: pd.Series[Any]) -> Iterator[_Found]:
    missing = np.asarray(values.isna(), dtype=bool)
    if len(values) > 1 and missing.sum() == 1:
        yield _Found(Fact.MISSING, np.flatnonzero(missing))
    present = np.flatnonzero(~missing)
    if len(present) == 1:
        if len(values) > 1:
            yield _Found(Fact.DIFFERENT, present)
    elif column.kind.numeric:
        yield from _of_numbers(as_numbers(values)[present], present)
    elif len(present):
        yield from _of_categories(column.codes(values)[present], present)


def _of_numbers(numbers: FloatArray, rows: IntArray) -> Iterator[_Found]:
    """The facts of at least two numbers [m], which stand in some rows [m]."""
    lowest, highest = numbers.min(), numbers.max()
    if lowest == highest:
        return
    scaled = numbers / 2 - lowest / 2  # halves: the difference of two numbers may be too large
    scaled /= scaled.max()
    for fact, heights in ((Fact.MAXIMUM, scaled), (Fact.MINIMUM, 1 - scaled)):
        top = int(heights.argmax())
        others = np.delete(heights, top)
        gap, spread = heights[top] - others.max(), others.std()
        if not gap > 0:
            continue
        if spread == 0:
            yield _Found(Fact.DIFFERENT, rows[[top]])
        else:
            yield _Found(fact, rows[[top]], min(1.0, float(gap / spread)))
    fractional: BoolArray = numbers != np.rint(numbers)
    if fractional.sum() == 1:
        yield _Found(Fact.DECIMALS, rows[fractional])


def _of_categories(codes: IntArray, rows: IntArray) -> Iterator[_Found]:
    """The facts of at least two categories [m] by their codes, which stand in some rows [m]."""
    _, places, counts = np.unique(codes, return_inverse=True, return_counts=True)
    alone = rows[counts[places] == 1]
    if len(counts) > 1 and len(alone):
        yield _Found(Fact.DIFFERENT if len(counts) == 2 else Fact.CATEGORY, alone)
