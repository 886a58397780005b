"""A red flag for a table whose rows are training rows with small changes; it needs no hold-out.

Some training rows are set aside and stand for rows that the generator never saw. For each of them,
and for each synthetic row, the nearest of the other training rows is found, and how much nearer it
is than any third row is to that one. If synthetic rows were drawn from the population, both kinds
of rows would follow single training rows equally closely, whatever the scales and the density. A
generator may draw from a smoother population, so this is a heuristic. `reports/resemblance` counts
its false alarms on honest generators.

The distance of two rows is that of Aryal et al. 2017, with logarithms: the sum over columns of the
logarithm of the number of training rows whose values lie between theirs, ends included. A rare
value in common counts much and a frequent one little; outliers and units do not matter.
"""

from __future__ import annotations

from typing import Annotated, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.model.encoding import values_of_table
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import BoolArray, FloatArray, IntArray
from dpaudit.released_data.rows import row_keys
from dpaudit.results.document import Limits

FLAGGED: Final = 0.35
"""The flag is raised where the shares of synthetic and of real rows differ by at least this."""
_MOST_ASKED: Final = 100
"""Largest number of rows of each kind; a table of few columns and rows takes a second."""
_LEAST_ASKED: Final = 40
_SET_ASIDE: Final = 5
"""At most one training row in so many is set aside: synthetic rows that follow it are missed."""
_MOST_COLUMNS: Final = 50

Counts = npt.NDArray[np.float32]
Share = Annotated[float, Limits(0.0, 1.0)]


class Resemblance(NamedTuple):
    """How many rows lie far closer to one training row than training rows lie to each other.

    Attributes:
        synthetic: The share of synthetic rows, at the closeness that separates best. Rows with the
            same nearest training row count as one.
        train: The share of training rows that are that close to another training row.
    """

    synthetic: Share
    train: Share

    @property
    def flagged(self) -> bool:
        """Whether the difference is too large for honest generators."""
        return self.synthetic - self.train >= FLAGGED


def find_resemblance(
    train: pd.DataFrame, synthetic: pd.DataFrame, schema: Schema, rng: np.random.Generator
) -> Resemblance | None:
    """Compares distances from synthetic rows to training rows with those between training rows.

    Args:
        train: The training table.
        synthetic: The synthetic table.
        schema: Their schema.
        rng: Draws the rows of both tables, and the columns of a wide one.

    Returns:
        The shares; None if there are too few rows, or too few different ones.
    """
    real, synthetic_values = (values_of_table(of, schema) for of in (train, synthetic))
    columns = np.sort(rng.permutation(real.shape[1])[:_MOST_COLUMNS])
    distinct = np.unique(row_keys(synthetic_values), return_index=True)[1]
    drawn = synthetic_values[rng.permutation(distinct)[:_MOST_ASKED]][:, columns]
    order = rng.permutation(len(real))
    aside = min(_MOST_ASKED, len(real) // _SET_ASIDE)
    if min(len(drawn), aside) < _LEAST_ASKED:
        return None
    numeric = np.array([schema.columns[place].kind.numeric for place in columns])
    known = _KnownRows.of(real[order[aside:]][:, columns], numeric)
    own, _ = known.leads(real[order[:aside]][:, columns])
    theirs, nearest = known.leads(drawn)
    _, group, sizes = np.unique(nearest, return_inverse=True, return_counts=True)
    if len(sizes) < _LEAST_ASKED:
        return None
    best = Resemblance(0.0, 0.0)
    for lead in np.unique(theirs[theirs > 0.0]):
        share = float(((theirs >= lead) / sizes[group]).sum() / len(sizes))
        here = Resemblance(min(1.0, share), float((own >= lead).mean()))
        best = max(best, here, key=lambda shares: shares.synthetic - shares.train)
    return best


class _KnownRows(NamedTuple):
    """The training rows that are not set aside, by the ranks of their values.

    Attributes:
        ordered: The values of each column, ascending; missing ones are infinite; shape (d, n).
        below: How many rows have a smaller value than each; shape (d, n).
        upto: How many have a value that is not larger; shape (d, n).
        numeric: Whether each column holds numbers; categories are equal or far apart.
    """

    ordered: FloatArray
    below: Counts
    upto: Counts
    numeric: BoolArray

    @staticmethod
    def of(rows: FloatArray, numeric: BoolArray) -> _KnownRows:
        """The ranks of rows [n, d]."""
        columns = np.where(np.isnan(rows), np.inf, rows).T
        ordered = np.sort(columns, axis=1)
        return _KnownRows(ordered, *_ranks(ordered, columns), numeric)

    def leads(self, rows: FloatArray) -> tuple[FloatArray, IntArray]:
        """How much nearer each row's nearest known row is than that one's own; and which it is.

        Args:
            rows: Other rows [m, d]. Numbers are moved to the nearest known one: where real values
                are heaped, as at round numbers, no gap between heaps makes a row look close.

        Returns:
            Leads [m], positive if nearer, and positions [m] of the nearest known rows.
        """
        below, upto = _ranks(self.ordered, self._moved(np.where(np.isnan(rows), np.inf, rows).T))
        leads, nearest = np.empty(len(rows)), np.empty(len(rows), dtype=np.int64)
        for place in range(len(rows)):
            apart = self._distances(below[:, place], upto[:, place])
            row = nearest[place] = apart.argmin()
            others = self._distances(self.below[:, row], self.upto[:, row], itself=1)
            others[row] = np.inf
            leads[place] = others.min() - apart[row]
        return leads, nearest

    def _moved(self, columns: FloatArray) -> FloatArray:
        moved = columns.copy()
        for place in np.flatnonzero(self.numeric):
            values, asked = self.ordered[place], columns[place]
            above = np.clip(values.searchsorted(asked), 1, len(values) - 1)
            with np.errstate(invalid="ignore"):  # of infinite differences
                low = asked - values[above - 1] <= values[above] - asked
            moved[place] = np.where(low, values[above - 1], values[above])
        return moved

    def _distances(self, below: Counts, upto: Counts, *, itself: int = 0) -> Counts:
        """Distances of a row with these ranks to all known rows; `itself`: 1 if it is known."""
        total = np.zeros(self.below.shape[1], dtype=np.float32)
        for place, numeric in enumerate(self.numeric):
            if numeric:
                between = np.maximum(self.upto[place], upto[place])
                between -= np.minimum(self.below[place], below[place])
            else:
                equal = (self.below[place] == below[place]) & (upto[place] > below[place])
                between = np.where(equal, upto[place] - below[place], np.float32(len(total)))
            with np.errstate(divide="ignore"):  # of the row itself
                total += np.log(between - itself)
        return total


def _ranks(ordered: FloatArray, columns: FloatArray) -> tuple[Counts, Counts]:
    pairs = [*zip(ordered, columns, strict=True)]
    below = [values.searchsorted(asked, side="left") for values, asked in pairs]
    upto = [values.searchsorted(asked, side="right") for values, asked in pairs]
    return np.array(below, dtype=np.float32), np.array(upto, dtype=np.float32)
