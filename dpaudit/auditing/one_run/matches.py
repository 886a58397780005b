"""An attack on canaries copied in whole or in part: rows that share their rare values."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.model.column import Kind
from dpaudit.model.encoding import values_of_table
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FloatArray, GameView, IntArray

_MARK: Final = 0.005
"""Largest difference between matching numbers, as a share of the column's range."""
_AT_ONCE: Final = 2**22
"""Comparisons of rows with canaries held in memory at once."""


class CanaryMatches:
    """Scores each canary by the rarest combination of its values in one synthetic row.

    A row equals a canary in a column if the category is the same, or the number is within 0.5 % of
    the column's range (an integer with a range below 200 must be the same). The surprise of a value
    is minus the log of its share among the known records; the score of a row is the sum over the
    columns in which it equals the canary. The canary's score is that of the best synthetic row
    minus that of the best known record: the part that only the canary explains.

    The score of a unit is the mean over its rows, plus the mean over pairs of rows that follow each
    other in it, which are compared with pairs that follow each other in a synthetic table (in one
    of its units, if it has them) and in a known unit.
    """

    def features(self, table: pd.DataFrame, game: GameView) -> FloatArray:
        """Scores [m] of the canaries; larger means "in"."""
        schema = game.schema
        of_canaries, of_known = schema.owners(game.target), schema.owners(game.others)
        canaries, known, drawn = (
            values_of_table(rows, schema) for rows in (game.target, game.others, table)
        )
        marks = _marks(schema)
        surprise = np.zeros(canaries.shape)
        for place, mark in enumerate(marks):
            for of_one, value in zip(surprise, canaries[:, place], strict=True):
                of_one[place] = _surprise(known[:, place], value, mark)
        own = _best(drawn, canaries, surprise, marks) - _best(known, canaries, surprise, marks)
        scores = _means(own, of_canaries, len(np.bincount(of_canaries)))
        pairs, owners = pairs_in_order(canaries, of_canaries)
        if len(pairs):
            of_pairs, _ = pairs_in_order(surprise, of_canaries)
            seen, _ = pairs_in_order(drawn, _released_owners(table, schema))
            before, _ = pairs_in_order(known, of_known)
            twice = np.concatenate([marks, marks])
            own = _best(seen, pairs, of_pairs, twice) - _best(before, pairs, of_pairs, twice)
            scores += _means(own, owners, len(scores))
        return scores


def pairs_in_order(values: FloatArray, owners: IntArray) -> tuple[FloatArray, IntArray]:
    """The pairs of rows that follow each other in a unit, in the order of the table.

    Args:
        values: Values [n, d] of the rows.
        owners: The unit of each row [n].

    Returns:
        Values [p, 2 d] of the pairs, and the unit of each.
    """
    order = np.argsort(owners, kind="stable")
    values, owners = values[order], owners[order]
    follows = owners[1:] == owners[:-1]
    return np.hstack([values[:-1], values[1:]])[follows], owners[1:][follows]


def _released_owners(table: pd.DataFrame, schema: Schema) -> IntArray:
    """The unit of each synthetic row; one for all if the generator does not release it."""
    unit = schema.unit
    if unit is None or unit.column not in table.columns:
        return np.zeros(len(table), dtype=np.int64)
    return unit.codes(table)


def _means(values: FloatArray, owners: IntArray, number: int) -> FloatArray:
    """The mean value of each owner; 0 of those that have none."""
    counts = np.bincount(owners, minlength=number)
    means: FloatArray = np.bincount(owners, values, number) / np.maximum(counts, 1)
    return means


def _marks(schema: Schema) -> FloatArray:
    """Largest difference from a canary's value in each column; shape (d,)."""
    marks = np.zeros(len(schema.columns))
    for place, column in enumerate(schema.columns):
        if column.kind.numeric:
            lower, upper = column.bounds
            mark = _MARK * (upper - lower)
            marks[place] = np.floor(mark) if column.kind is Kind.INTEGER else mark
    return marks


def _equal(
    values: FloatArray, value: FloatArray | np.float64, mark: FloatArray | np.float64
) -> npt.NDArray[np.bool_]:
    """Whether values match; missing values equal one another."""
    missing = np.isnan(value)
    equal: npt.NDArray[np.bool_] = np.where(
        missing, np.isnan(values), np.abs(values - np.where(missing, 0.0, value)) <= mark
    )
    return equal


def _surprise(known: FloatArray, value: np.float64, mark: np.float64) -> float:
    """Minus the log of the share of known values that equal a canary's, which counts itself."""
    return float(np.log((len(known) + 1.0) / (_equal(known, value, mark).sum() + 1.0)))


def _best(
    rows: FloatArray, canaries: FloatArray, surprise: FloatArray, marks: FloatArray
) -> FloatArray:
    """The largest surprise that one row shares with each canary; shape (m,)."""
    best = np.zeros(len(canaries))
    step = max(1, _AT_ONCE // max(1, rows.size))
    for start in range(0, len(canaries) if len(rows) else 0, step):
        some = slice(start, start + step)
        shared = np.zeros((len(canaries[some]), len(rows)))
        for place, mark in enumerate(marks):
            equal = _equal(rows[None, :, place], canaries[some, place, None], mark)
            shared += surprise[some, place, None] * equal
        best[some] = shared.max(axis=1)
    return best
