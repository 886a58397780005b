"""Units of released tables: rows of train and hold-out that one coin dealt together."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.errors import DataError
from dpaudit.model.column import Unit
from dpaudit.plugins.protocols import BoolArray, FloatArray, IntArray
from dpaudit.released_data.scores import MembershipScores

BEST_ROW: Final = ", best row"
"""After the name of an attack: a unit's score is the largest of its rows, not their mean."""


class Owners(NamedTuple):
    """The unit of each row, numbered over both tables.

    Attributes:
        column: The column that names it.
        train: The units of the rows of train; shape (n,).
        holdout: The units of the rows of the hold-out, none of which is in train; shape (h,).
    """

    column: str
    train: IntArray
    holdout: IntArray

    @property
    def all(self) -> IntArray:
        """The units of all rows, those of train first."""
        return np.concatenate([self.train, self.holdout])


def owners_of(unit: Unit, train: pd.DataFrame, holdout: pd.DataFrame) -> Owners:
    """The units of train and hold-out.

    Args:
        unit: The unit.
        train: The train table.
        holdout: The hold-out.

    Raises:
        DataError: If the unit's column is missing in a table, or missing in a row, if all rows
            belong to one unit or a unit has too many, or if a unit is in both tables.
    """
    for name, table in (("train", train), ("holdout", holdout)):
        if unit.column not in table:
            raise DataError(
                f"the {name} table lacks the unit's column {unit.column!r}: give the file that "
                "`dpaudit split` wrote"
            )
    both = pd.concat([train[[unit.column]], holdout[[unit.column]]], ignore_index=True)
    if problems := unit.problems(both):
        raise DataError(f"train and holdout: {problems[0]}; correct the tables or the unit")
    codes = unit.codes(both)
    found = Owners(unit.column, codes[: len(train)], codes[len(train) :])
    shared = np.intersect1d(found.train, found.holdout)
    if len(shared):
        raise DataError(
            f"{len(shared):,} units of {unit.column!r} have rows in both train and holdout: deal "
            "units, not rows (`dpaudit split --unit`)"
        )
    return found


class Grouped(NamedTuple):
    """Rows in groups, one for each unit.

    Attributes:
        of: The unit of each row, from 0 without gaps; shape (n,).
    """

    of: IntArray

    @staticmethod
    def by(owners: IntArray) -> Grouped:
        """The groups of rows with equal numbers, in the order in which these appear."""
        return Grouped(pd.factorize(owners)[0])

    @property
    def first(self) -> IntArray:
        """The first row of each group; shape (u,)."""
        return np.unique(self.of, return_index=True)[1]

    @property
    def sizes(self) -> IntArray:
        """Rows of each group; shape (u,)."""
        return np.bincount(self.of)

    def mean(self, values: FloatArray) -> FloatArray:
        """The mean value of each group's rows; shape (u,)."""
        means: FloatArray = np.bincount(self.of, values) / self.sizes
        return means

    def ranked(self, values: npt.NDArray[np.floating], rank: int) -> FloatArray:
        """The smallest value of each group's rows (rank 0), or the next ones; shape (u,).

        Infinite where a group has too few rows.
        """
        order = np.lexsort((values, self.of))
        place = np.cumsum(self.sizes) - self.sizes + rank
        has = rank < self.sizes
        found = np.full(len(self.sizes), np.inf)
        found[has] = values[order[place[has]]]
        return found

    def any(self, holds: BoolArray, *, least: int = 1) -> BoolArray:
        """Which groups have at least so many rows of which something holds; shape (u,)."""
        enough: BoolArray = np.bincount(self.of, holds) >= least
        return enough

    def drawn(self, rng: np.random.Generator) -> IntArray:
        """A random row of each group; shape (u,)."""
        order = rng.permutation(len(self.of))
        return np.sort(order[np.unique(self.of[order], return_index=True)[1]])


class ComparedUnits(NamedTuple):
    """The units of the rows that are compared.

    Attributes:
        train: Those of the compared rows of train.
        holdout: Those of the compared rows of the hold-out.
    """

    train: Grouped
    holdout: Grouped


def unit_scores(scores: MembershipScores, rows: Grouped) -> MembershipScores:
    """Scores of units by each attack: the mean of their rows, and their best row.

    Where each unit has one row these are the scores of the rows.

    Args:
        scores: Scores of the rows.
        rows: The rows of each unit.
    """

    def of_units(by_attack: dict[str, FloatArray]) -> dict[str, FloatArray]:
        found = {name: rows.mean(of) for name, of in by_attack.items()}
        if rows.sizes.max() > 1:
            found |= {name + BEST_ROW: -rows.ranked(-of, 0) for name, of in by_attack.items()}
        return found

    return MembershipScores(seen=of_units(scores.seen), if_copied=of_units(scores.if_copied))
