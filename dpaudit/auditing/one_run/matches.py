"""An attack on canaries copied in whole or in part: rows that share their rare values."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.model.column import Kind
from dpaudit.model.encoding import values_of_table
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FloatArray, GameView

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
    """

    def features(self, table: pd.DataFrame, game: GameView) -> FloatArray:
        """Scores [m] of the canaries; larger means "in"."""
        schema = game.schema
        canaries, known, drawn = (
            values_of_table(rows, schema) for rows in (game.target, game.others, table)
        )
        marks = _marks(schema)
        surprise = np.zeros(canaries.shape)
        for place, mark in enumerate(marks):
            for of_one, value in zip(surprise, canaries[:, place], strict=True):
                of_one[place] = _surprise(known[:, place], value, mark)
        scores: FloatArray = _best(drawn, canaries, surprise, marks) - _best(
            known, canaries, surprise, marks
        )
        return scores


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
