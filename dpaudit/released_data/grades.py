"""Scores as grades: how much likelier a row with such a score is in train than another one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression

from dpaudit.formatting import rounded
from dpaudit.plugins.protocols import BoolArray, FloatArray, IntArray

_PSEUDO: Final = 2.0
"""Rows that each grade is taken to hold beforehand, at the share of all rows."""
_DRAWS: Final = 9_999


@dataclass(frozen=True, kw_only=True)
class Grades:
    """Grades of scores, that never fall with the score.

    Attributes:
        lowest: The least score of each grade but the first, ascending; shape (grades - 1,).
        log_odds: Log odds of membership in each grade, less those of all rows; shape (grades,).
    """

    lowest: FloatArray
    log_odds: FloatArray

    def of(self, scores: FloatArray) -> IntArray:
        """The grade of each score."""
        return np.searchsorted(self.lowest, scores, side="right").astype(np.int64)


def fit_grades(scores: FloatArray, inside: BoolArray) -> Grades:
    """Grades by isotonic regression of membership on the score.

    Args:
        scores: Scores [n].
        inside: Whether each row is in train; shape (n,), both values occur.

    Returns:
        The grades.
    """
    values, place = np.unique(scores, return_inverse=True)
    counts = np.bincount(place).astype(np.float64)
    members = np.bincount(place, weights=inside)
    fitted = isotonic_regression(members / counts, weights=counts).x
    starts = np.flatnonzero(np.diff(fitted, prepend=-1.0) > 0.0)  # of each run of equal shares
    rows_of, members_of = np.add.reduceat(counts, starts), np.add.reduceat(members, starts)
    share = inside.mean()
    odds = (members_of + _PSEUDO * share) / (rows_of - members_of + _PSEUDO * (1.0 - share))
    return Grades(lowest=values[starts[1:]], log_odds=np.log(odds) - np.log(share / (1.0 - share)))


def gain(scores: FloatArray, inside: BoolArray, parts: BoolArray) -> float:
    """How much better than chance grades of one part predict the other, both ways.

    Args:
        scores: Scores [n].
        inside: Whether each row is in train; shape (n,).
        parts: Which of two parts each row is in; both values of `inside` occur in each.

    Returns:
        The gain of the log likelihood, summed over all rows.
    """
    total = 0.0
    for part in (parts, ~parts):
        grades = fit_grades(scores[part], inside[part])
        share = inside[part].mean()
        odds = grades.log_odds[grades.of(scores[~part])] + np.log(share / (1.0 - share))
        likelihood = np.where(inside[~part], -np.logaddexp(0.0, -odds), -np.logaddexp(0.0, odds))
        chance = np.where(inside[~part], np.log(share), np.log(1.0 - share))
        total += float((likelihood - chance).sum())
    return total


class GuessOrder(NamedTuple):
    """Guesses in the order in which they are looked at.

    Attributes:
        order: Positions of the rows, the surest guess first; shape (n,).
        inside: Whether each is guessed in; in this order.
    """

    order: IntArray
    inside: BoolArray


def guesses(scores: FloatArray, grades: Grades) -> GuessOrder:
    """Guesses by the sign of the log odds, the surest first, in a grade by the score."""
    odds = grades.log_odds[grades.of(scores)]
    outward = np.where(odds > 0.0, scores, -scores)
    order = np.lexsort((-outward, -np.abs(odds)))
    return GuessOrder(order, odds[order] > 0.0)


def p_value(
    scores: FloatArray,
    inside: BoolArray,
    grades: Grades,
    rng: np.random.Generator,
    *,
    draws: int = _DRAWS,
) -> float:
    """Probability, if the scores say nothing of membership, of members graded as high.

    A Monte Carlo permutation test of the sum of the members' log odds. It is exact if any rows
    were as likely as any others to be the ones in train, given how many are.

    Args:
        scores: Scores [n].
        inside: Whether each row is in train; shape (n,).
        grades: Grades fixed without these rows' membership.
        rng: For the permutations.
        draws: How many.

    Returns:
        The p-value, at least 1/(1 + draws).
    """
    of_each = grades.of(scores)
    rows = np.bincount(of_each, minlength=len(grades.log_odds))
    seen = float(np.bincount(of_each[inside], minlength=len(rows)) @ grades.log_odds)
    drawn = rng.multivariate_hypergeometric(rows, int(inside.sum()), size=draws)
    slack = 1e-9 * (1.0 + abs(seen))
    as_high = int((drawn @ grades.log_odds >= seen - slack).sum())
    return (1 + as_high) / (1 + draws)


def p_text(value: float) -> str:
    """A p-value with its sign: "= 0.62", or "<= 0.0001", the least that permutations give."""
    return "<= 0.0001" if value <= 1.0 / (1 + _DRAWS) else f"= {rounded(value)}"
