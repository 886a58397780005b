"""Whether a synthetic table reveals who was in train: choose on one part, score the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np
from scipy.special import betaincinv

from dpaudit.bounds import bonferroni, upper_limits
from dpaudit.plugins.protocols import BoolArray, FloatArray
from dpaudit.released_data.grades import fit_grades, gain, guesses, p_value

FALSE_POSITIVE_RATES: Final = (0.001, 0.01, 0.1)
"""Nominal rates at which thresholds are set."""
MOST_SCORED: Final = 10_000
"""Rows that are scored at most; all further ones serve the choice of the attack."""
LEAST_ROWS: Final = 5
"""Members and others in each part, at least; with fewer nothing is tested."""


class RateAtThreshold(NamedTuple):
    """How many rows a threshold flags that was set on rows that are not counted here.

    Attributes:
        nominal: The false-positive rate that it was set for.
        flagged_members: Train rows that it flags.
        members: Train rows that were scored.
        flagged_others: Hold-out rows that it flags.
        others: Hold-out rows that were scored.
        true_positive_rate_lower: Lower limit on the share of train rows that it flags.
        false_positive_rate_upper: Upper limit on the probability that it flags a row of the
            population that was not used. All limits of all thresholds hold together.
    """

    nominal: float
    flagged_members: int
    members: int
    flagged_others: int
    others: int
    true_positive_rate_lower: float
    false_positive_rate_upper: float


class Recognition(NamedTuple):
    """How well the members among the scored rows are recognised.

    Attributes:
        attack: The attack that was chosen.
        p_value: Probability of members graded as high if the table says nothing of membership.
        auc: Probability that a member scores above another row; estimate.
        rates: Rates at fixed thresholds.
        right: Whether each guess of a coin is right, the surest first; shape (scored,).
    """

    attack: str
    p_value: float
    auc: float
    rates: tuple[RateAtThreshold, ...]
    right: BoolArray


def parted(rows: int, rng: np.random.Generator) -> BoolArray:
    """Which rows serve the choice of the attack: a half, or all but `MOST_SCORED`, at random.

    It does not depend on who is a member, so that the coins of the scored rows stay fair.
    """
    fitting = np.ones(rows, dtype=np.bool_)
    fitting[rng.permutation(rows)[: min(rows // 2, MOST_SCORED)]] = False
    return fitting


def enough(inside: BoolArray, fitting: BoolArray) -> bool:
    """Whether both parts have enough rows of both kinds."""
    parts = [inside[fitting], inside[~fitting]]
    return all(LEAST_ROWS <= part.sum() <= len(part) - LEAST_ROWS for part in parts)


def choose_attack(
    scores: Mapping[str, FloatArray], inside: BoolArray, rng: np.random.Generator
) -> str:
    """The attack whose grades best predict membership on rows they were not fitted on.

    Args:
        scores: Scores [n] by attack, of the part for choosing.
        inside: Whether each row is in train; shape (n,), at least twice each.
        rng: Parts the rows.

    Returns:
        Its name; the first of equals.
    """
    parts = np.zeros(len(inside), dtype=np.bool_)
    for kind in (True, False):
        rows = rng.permutation(np.flatnonzero(inside == kind))
        parts[rows[: len(rows) // 2]] = True
    return max(scores, key=lambda name: gain(scores[name], inside, parts))


def recognise(
    scores: Mapping[str, FloatArray],
    inside: BoolArray,
    fitting: BoolArray,
    rng: np.random.Generator,
    *,
    confidence: float,
) -> Recognition:
    """Chooses an attack on one part and scores it once on the other.

    Args:
        scores: Scores [n] by attack, that do not depend on who is a member.
        inside: Whether each row is in train; shape (n,).
        fitting: Which rows serve the choice; shape (n,), `enough`.
        rng: For parts and permutations.
        confidence: That all limits on rates hold together, in (0, 1).

    Returns:
        What was found.
    """
    name = choose_attack({of: s[fitting] for of, s in scores.items()}, inside[fitting], rng)
    known, known_inside = scores[name][fitting], inside[fitting]
    asked, asked_inside = scores[name][~fitting], inside[~fitting]
    grades = fit_grades(known, known_inside)
    order, inward = guesses(asked, grades)
    return Recognition(
        attack=name,
        p_value=p_value(asked, asked_inside, grades, rng),
        auc=_auc(asked, asked_inside),
        rates=_rates(known[~known_inside], asked, asked_inside, confidence=confidence),
        right=asked_inside[order] == inward,
    )


def _rates(
    known_others: FloatArray, scores: FloatArray, inside: BoolArray, *, confidence: float
) -> tuple[RateAtThreshold, ...]:
    """Clopper-Pearson limits, with Bonferroni's correction for two at each threshold."""
    alpha = 1.0 - bonferroni(confidence, 2 * len(FALSE_POSITIVE_RATES))
    descending = np.sort(known_others)[::-1]
    members, others = int(inside.sum()), int((~inside).sum())
    found = []
    for nominal in FALSE_POSITIVE_RATES:
        # Of the others so many score strictly above the threshold at most.
        threshold = descending[int(nominal * len(descending))]
        flagged = scores > threshold
        hits, alarms = int(flagged[inside].sum()), int(flagged[~inside].sum())
        found.append(
            RateAtThreshold(
                nominal=nominal,
                flagged_members=hits,
                members=members,
                flagged_others=alarms,
                others=others,
                true_positive_rate_lower=_lower_limit(hits, members, alpha),
                false_positive_rate_upper=float(upper_limits(others, alpha)[alarms]),
            )
        )
    return tuple(found)


def _lower_limit(successes: int, trials: int, alpha: float) -> float:
    if not successes:
        return 0.0
    return float(betaincinv(successes, trials - successes + 1, alpha))


def _auc(scores: FloatArray, inside: BoolArray) -> float:
    from scipy.stats import rankdata

    ranks = rankdata(scores)
    members, others = int(inside.sum()), int((~inside).sum())
    above = ranks[inside].sum() - members * (members + 1) / 2
    return float(above / (members * others))
