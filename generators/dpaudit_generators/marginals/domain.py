"""The public cells of a table's columns: equal bins of numbers, categories, and missing values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from dpaudit.model.column import MISSING, OTHER, Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FloatArray, IntArray


class _Cells(NamedTuple):
    """The cells of one column.

    Attributes:
        inner: Edges between the bins of a number.
        left: Smallest value of each cell; a category's position, NaN or `MISSING` where missing.
        width: By how much the values of a cell go beyond that.
        names: What they are called.
    """

    inner: FloatArray
    left: FloatArray
    width: FloatArray
    names: tuple[str, ...]


@dataclass(frozen=True)
class Domain:
    """What each column of a schema is divided into; no table has a say in it.

    Attributes:
        schema: The public schema.
        bins: Equal bins over the bounds of a numeric column; fewer if it has fewer whole numbers.
    """

    schema: Schema
    bins: int

    @cached_property
    def sizes(self) -> IntArray:
        """Number of cells of each column [d]; the last is that of missing values, if any may be."""
        return np.array([len(one.left) for one in self._columns], dtype=np.int64)

    @property
    def names(self) -> tuple[tuple[str, ...], ...]:
        """Names of the cells of each column."""
        return tuple(one.names for one in self._columns)

    def cells(self, values: FloatArray) -> IntArray:
        """The cell of each value; `OTHER` where the schema has no place for it.

        Args:
            values: Values [n, d], as `dpaudit.model.encoding.values_of_table` gives them; a number
                beyond the bounds is in the outermost bin.
        """
        cells = np.empty(values.shape, dtype=np.int64)
        for place, (column, own) in enumerate(zip(self.schema.columns, self._columns, strict=True)):
            given = values[:, place]
            if column.kind.numeric:
                found = own.inner.searchsorted(given, side="right")
                found[np.isnan(given)] = MISSING
            else:
                found = given.astype(np.int64)
            found[found == MISSING] = len(own.left) - 1 if column.missing else OTHER
            cells[:, place] = found
        return cells

    def values(self, cells: IntArray, places: FloatArray) -> FloatArray:
        """A value from each cell.

        Args:
            cells: Cells [n, d].
            places: Where in its bin each number is, [n, d], in [0, 1).

        Returns:
            Values [n, d] as `dpaudit.model.encoding.values_of` gives them.
        """
        slots = cells + (np.cumsum(self.sizes) - self.sizes)
        values: FloatArray = self._left[slots] + places * self._width[slots]
        values[:, self._whole] = np.floor(values[:, self._whole])
        return np.minimum(values, self._upper, out=values)  # rounding errors

    @cached_property
    def _columns(self) -> tuple[_Cells, ...]:
        return tuple(self._cells_of(column) for column in self.schema.columns)

    @cached_property
    def _left(self) -> FloatArray:
        return np.concatenate([one.left for one in self._columns])

    @cached_property
    def _width(self) -> FloatArray:
        return np.concatenate([one.width for one in self._columns])

    @cached_property
    def _whole(self) -> IntArray:
        kinds = np.array([column.kind is Kind.INTEGER for column in self.schema.columns])
        return np.flatnonzero(kinds)

    @cached_property
    def _upper(self) -> FloatArray:
        return np.array([c.bounds.upper if c.kind.numeric else np.inf for c in self.schema.columns])

    def _cells_of(self, column: Column) -> _Cells:
        missing = [f"{column.name} missing"] * column.missing
        if not column.kind.numeric:
            n = len(column.categories)
            left = np.append(np.arange(n, dtype=np.float64), [float(MISSING)] * column.missing)
            names = [f"{column.name} = {category}" for category in column.categories]
            return _Cells(np.empty(0), left, np.zeros(len(left)), (*names, *missing))
        edges = self._edges(column)
        left = np.append(edges[:-1], [np.nan] * column.missing)
        width = np.append(np.diff(edges), [0.0] * column.missing)
        names = [f"{column.name} from {low:g} to {high:g}" for low, high in pairwise(edges)]
        return _Cells(edges[1:-1], left, width, (*names, *missing))

    def _edges(self, column: Column) -> FloatArray:
        """Edges of the bins of a numeric column; whole numbers if its values are."""
        lower, upper = column.bounds
        if column.kind is Kind.CONTINUOUS:
            return np.linspace(lower, upper, self.bins + 1)
        bins = int(min(self.bins, upper - lower + 1))
        return np.floor(np.linspace(lower, upper + 1, bins + 1))
