"""An attack on all canaries at once: estimates their coins from synthetic marginals.

If a generator measures marginals with too little noise, a canary appears as an excess in its cells,
whatever the synthetic rows look like. The attacker knows every record except the canaries, and so
the count of each cell without them. As in the counts of MAMA-MIA (Golob et al. 2024), a cell is
more informative, the fewer records are expected in it; as in linear reconstruction (Dinur and
Nissim 2003), the coins of all canaries that share a cell are estimated together, so one is not
confused with another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy

from dpaudit.model.column import Kind
from dpaudit.model.encoding import values_of_table
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FloatArray, GameView

BINS: Final = 10
"""Number of equal bins between the bounds of a number, as in query-based attacks."""
MOST_MARGINALS: Final = 2_000
"""Largest number of marginals counted; for wider tables, evenly spaced pairs from their list."""

Codes = npt.NDArray[np.int64]
_PRIOR: Final = 0.25
"""Variance of a fair coin."""
_LEAST_VARIANCE: Final = 0.05
"""Least variance of a count: a cell expected to be empty proves nothing if the model is inexact."""
_HALVINGS: Final = 40


class CanaryMarginals:
    """Scores each canary by the log odds of its coin, from one- and two-way marginals.

    The counts of all cells are modelled as independent and normal. The mean is the count of known
    records and included canaries, at the scale of the training table. The variance is that of
    drawing synthetic rows, plus one for each marginal estimated from its residuals (Paule and
    Mandel 1982). So a marginal that the generator does not preserve has little weight. The result
    orders the guesses; no bound relies on it.
    """

    def features(self, table: pd.DataFrame, game: GameView) -> FloatArray:
        """Scores [m] of the canaries; larger means "in", 0 means no information."""
        m = _number(game)
        information, evidence = np.zeros((m, m)), np.zeros(m)
        scale = _scale(game, len(table))
        for counts in _counts(game, table):
            residual = scale * counts.drawn - counts.known - counts.canaries / 2.0
            sampling = counts.variance(scale)
            beyond = extra_variance(residual, sampling + counts.squares * _PRIOR)
            weight = 1.0 / (sampling + beyond)
            information += counts.shared(weight)
            evidence += counts.held @ (weight * residual)
        covariance = np.linalg.inv(information + np.eye(m) / _PRIOR)
        scores: FloatArray = (covariance @ evidence) / np.diag(covariance)
        return scores


def interference(game: GameView) -> float:
    """The share of a canary's information in marginals that is lost to the unknown coins of others.

    A canary adds its rows to their cells, and so does another canary in the same cell. This
    compares the precision (inverse variance) of the estimate of a coin with its precision if all
    other coins were known. Both are means over canaries, for a generator that preserves all one-
    and two-way marginals without noise.

    Args:
        game: The game; nothing is trained.

    Returns:
        The share, from 0 (no cell is shared) to 1.
    """
    m = _number(game)
    information = np.zeros((m, m))
    scale = _scale(game, game.n_rows)
    for counts in _counts(game, game.target.iloc[:0]):
        information += counts.shared(1.0 / counts.variance(scale))
    covariance = np.linalg.inv(information + np.eye(m) / _PRIOR)
    kept = (1.0 / np.diag(covariance) - 1.0 / _PRIOR).mean() / np.diag(information).mean()
    return float(np.clip(1.0 - kept, 0.0, 1.0))


@dataclass(frozen=True, kw_only=True)
class _Counts:
    """The nonempty cells of one marginal.

    Attributes:
        known: Known records in each; shape (cells,).
        canaries: Rows of canaries in each, included or not; shape (cells,).
        drawn: Synthetic rows in each; shape (cells,).
        held: Rows of each canary in each; sparse, shape (m, cells).
    """

    known: FloatArray
    canaries: FloatArray
    drawn: FloatArray
    held: scipy.sparse.csr_array

    @property
    def squares(self) -> FloatArray:
        """The sum of the squares of the canaries' rows in each; shape (cells,)."""
        return np.asarray(self.held.multiply(self.held).sum(axis=0), dtype=np.float64)

    def variance(self, scale: float) -> FloatArray:
        """Variance of each count from drawing synthetic rows, at the scale of the table."""
        expected = scale * (self.known + self.canaries / 2.0)
        variance: FloatArray = np.maximum(expected, _LEAST_VARIANCE)
        return variance

    def shared(self, weight: FloatArray) -> FloatArray:
        """The sum over cells of the rows of each pair of canaries times the weight; (m, m)."""
        shared = scipy.sparse.csr_array(self.held * weight[None, :]) @ self.held.T
        return np.asarray(shared.todense(), dtype=np.float64)


def _counts(game: GameView, table: pd.DataFrame) -> Iterator[_Counts]:
    schema = game.schema
    tables = (game.others, game.target, table)
    values = np.concatenate([values_of_table(rows, schema) for rows in tables])
    coded, cells = codes_of(values, schema)
    ends = np.cumsum([len(game.others), len(game.target)])
    owners, m = schema.owners(game.target), _number(game)
    for marginal in marginals_of(schema):
        joint = np.ravel_multi_index(coded[:, marginal].T, [cells[column] for column in marginal])
        occupied, place = np.unique(joint, return_inverse=True)
        parts = np.split(place, ends)
        known, own, drawn = (
            np.bincount(part, minlength=len(occupied)).astype(float) for part in parts
        )
        cells_of = (np.ones(len(owners)), (owners, parts[1]))
        held = scipy.sparse.csr_array(cells_of, shape=(m, len(occupied)))
        yield _Counts(known=known, canaries=own, drawn=drawn, held=held)


def _number(game: GameView) -> int:
    """How many canaries there are."""
    return len(np.bincount(game.schema.owners(game.target)))


def _scale(game: GameView, drawn: int) -> float:
    """Expected training records per synthetic row."""
    return (len(game.others) + len(game.target) / 2.0) / max(1, drawn)


def extra_variance(residual: FloatArray, variance: FloatArray) -> float:
    """The excess variance of residuals, by Paule and Mandel (1982).

    Args:
        residual: Residuals [cells].
        variance: Least variance of each, above 0; same shape.

    Returns:
        The number that, added to every variance, makes the mean squared standardised residual 1; 0
        if it is already at most 1.
    """
    square = residual**2

    def mean(extra: float) -> float:
        return float(np.mean(square / (variance + extra)))

    if mean(0.0) <= 1.0:
        return 0.0
    low, high = 0.0, float(square.max())
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if mean(middle) > 1.0 else (low, middle)
    return high


def codes_of(values: FloatArray, schema: Schema) -> tuple[Codes, tuple[int, ...]]:
    """The cell of each value in its column.

    Args:
        values: Values [n, d], as `dpaudit.model.encoding.values_of_table` gives them.
        schema: The schema.

    Returns:
        Codes [n, d] from 0, and the number of cells of each column. Two cells of each column are
        for missing values and for values outside the schema.
    """
    codes = np.empty(values.shape, dtype=np.int64)
    cells = []
    for place, column in enumerate(schema.columns):
        numbers = values[:, place]
        if column.kind.numeric:
            lower, upper = column.bounds
            whole = column.kind is Kind.INTEGER
            bins = int(min(BINS, upper - lower + 1)) if whole else BINS
            share = (np.clip(numbers, lower, upper) - lower) / (upper - lower + whole)
            missing = np.isnan(share)
            codes[:, place] = np.minimum(np.where(missing, 0.0, share) * bins, bins - 1)
            codes[missing, place] = bins
        else:
            bins = len(column.categories)
            codes[:, place] = np.where(numbers < 0, bins - numbers - 1, numbers)
        cells.append(bins + 2)
    return codes, tuple(cells)


def marginals_of(schema: Schema) -> list[tuple[int, ...]]:
    """The columns, then the pairs of columns, that are counted."""
    columns = len(schema.columns)
    pairs = list(combinations(range(columns), 2))
    left = max(0, MOST_MARGINALS - columns)
    if len(pairs) > left:
        pairs = [pairs[place * len(pairs) // left] for place in range(left)] if left else []
    return [*((place,) for place in range(columns)), *pairs]
