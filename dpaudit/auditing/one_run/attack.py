"""The attacks of a one-run audit: no fitting, a score for each canary, guesses in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy

from dpaudit.auditing.settings import CANARY_ATTACKS
from dpaudit.bounds import Guarantee, GuessesInTurn, auc
from dpaudit.bounds.table import Observed, proved
from dpaudit.game.features import FeatureMaker
from dpaudit.model.column import Kind
from dpaudit.model.encoding import encode, values_of_table
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import BoolArray, FloatArray, GameView, IntArray

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

    If a generator measures marginals with too little noise, a canary appears as an excess in its
    cells, whatever the synthetic rows look like. The attacker knows every record except the
    canaries, and so the count of each cell without them. As in the counts of MAMA-MIA (Golob et al.
    2024), a cell is more informative, the fewer records are expected in it; as in linear
    reconstruction (Dinur and Nissim 2003), the coins of all canaries that share a cell are
    estimated together, so one is not confused with another.

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


_CLOSEST, _MATCHES, _MARGINALS = CANARY_ATTACKS
FARTHEST: Final = 10.0
"""Encoded values are clipped here: a generator may return any finite number."""


class ClosestRecord:
    """Scores each canary by minus its distance to the nearest synthetic record.

    Euclidean on the encoded tables (`dpaudit.model.encoding`), so numbers count by their share of
    the schema's range and categories by whether they differ. The distance to known records is not
    subtracted: canaries are chosen far from them, and in simulations the correction lost power. Of
    a unit the nearest row counts.
    """

    def features(self, table: pd.DataFrame, game: GameView) -> FloatArray:
        """Scores [m] of the canaries, at most 0; larger means "in"."""
        from sklearn.neighbors import NearestNeighbors

        synthetic = np.clip(encode(table, game.schema), -FARTHEST, FARTHEST)
        nearest = NearestNeighbors(n_neighbors=1).fit(synthetic)
        distances, _ = nearest.kneighbors(encode(game.target, game.schema))
        owners = game.schema.owners(game.target)
        scores = np.full(owners.max() + 1, -np.inf)
        np.maximum.at(scores, owners, -distances[:, 0])
        return scores


def in_then_out(scores: FloatArray) -> GuessesInTurn:
    """Guesses "in" for the higher half, highest score first; then "out" for the rest, lowest first.

    This suits scores of unknown scale: a generator that memorises shows clearly what it was trained
    on, and less clearly what it was not. Equal scores get equal guesses; otherwise, if more than
    half of the canaries are memorised, some of those would be guessed "out". Canaries with the
    median score come last, as "in" unless more scores lie above them than below.
    """
    best = np.argsort(-scores, kind="stable")
    ordered = scores[best]
    middle = ordered[(len(scores) - 1) // 2]
    above, tied = best[ordered > middle], best[ordered == middle]
    below = best[ordered < middle][::-1]
    inside = np.arange(len(scores)) < len(above)
    inside[len(above) + len(below) :] = len(above) <= len(below)
    return GuessesInTurn(np.concatenate([above, below, tied]), inside)


def surest_first(scores: FloatArray) -> GuessesInTurn:
    """Guesses each coin by the sign of its log odds, the largest odds first."""
    order = np.argsort(-np.abs(scores), kind="stable")
    return GuessesInTurn(order, scores[order] > 0.0)


class CanaryAttack(NamedTuple):
    """One attack on the canaries; fixed before any training.

    Attributes:
        name: Its name in results.
        scorer: Scores the canaries from the synthetic table.
        guess: Turns the scores, and nothing else, into guesses.
    """

    name: str
    scorer: FeatureMaker
    guess: Callable[[FloatArray], GuessesInTurn]


ATTACKS: Final = (
    CanaryAttack(_CLOSEST, ClosestRecord(), in_then_out),
    CanaryAttack(_MATCHES, CanaryMatches(), in_then_out),
    CanaryAttack(_MARGINALS, CanaryMarginals(), surest_first),
)
"""The attacks of every one-run audit."""


class Guessed(NamedTuple):
    """The result of the guesses of one attack.

    Attributes:
        attack: Its name.
        right: Whether each guess is right, in the order of the guesses; shape (m,).
        coins: Which canaries were in, in the order of the table; shape (m,).
        scores: Their scores; shape (m,).
    """

    attack: str
    right: BoolArray
    coins: BoolArray
    scores: FloatArray

    @property
    def auc(self) -> float:
        """AUC of the scores of all canaries; 0.5 if all coins fell alike."""
        return auc(self.scores, self.coins) if 0 < self.coins.sum() < len(self.coins) else 0.5

    def bound(self, guarantee: Guarantee, *, confidence: float) -> float:
        """Lower bound on the level of a guarantee, valid for all numbers of guesses it tries."""
        return proved(guarantee.bounds(Observed.IN_TURN, self.right, confidence=confidence))


def guess(features: FloatArray, coins: BoolArray) -> tuple[Guessed, ...]:
    """Guesses every coin, by each attack.

    Args:
        features: Scores of the attacks, one after another; shape (attacks * m,).
        coins: Which canaries [m] were in; only compared with the guesses.

    Returns:
        The guesses of each attack, in the order of `ATTACKS`.
    """
    guessed = []
    for attack, scores in zip(ATTACKS, features.reshape(len(ATTACKS), len(coins)), strict=True):
        order, inside = attack.guess(scores)
        guessed.append(Guessed(attack.name, coins[order] == inside, coins, scores))
    return tuple(guessed)
