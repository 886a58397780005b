"""Tests whether a synthetic table reveals membership: chooses on one part, scores the other."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import scipy

from dpaudit.bounds import (
    auc,
    bonferroni,
    one_run_in_turn,
    one_run_in_turn_detectable,
    upper_limits,
)
from dpaudit.formatting import rounded
from dpaudit.plugins.protocols import BoolArray, FloatArray, IntArray
from dpaudit.released_data.scores import MembershipScores
from dpaudit.results.verdict import Power

_PSEUDO: Final = 2.0
"""Pseudo-count added to each step of a calibration, split by the overall share of members."""
_DRAWS: Final = 9_999
FALSE_POSITIVE_RATES: Final = (0.001, 0.01, 0.1)
"""Nominal rates at which thresholds are set."""
MOST_SCORED: Final = 10_000
"""Largest number of scored rows; the others choose the attack."""
LEAST_ROWS: Final = 5
"""Fewest members and non-members in each part; with fewer nothing is tested."""
MOST_GUESSED: Final = 2_000
"""Largest number of guesses; fixed beforehand, because the cost of the bound is quadratic."""
FALSE_DISCOVERIES: Final = 0.05
"""False discovery rate of the rows reported as riskiest."""
CONTROL_LEVEL: Final = 0.01
"""Largest false-alarm rate of each control."""
_MOST_FITTED: Final = 20_000
_SHARES: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
_SIMULATIONS: Final = 20
_FOUND: Final = 16
_SIMULATED_DRAWS: Final = 999


class RateAtThreshold(NamedTuple):
    """How many rows a threshold flags that was set on other rows.

    Attributes:
        nominal: The false-positive rate that it was set for.
        flagged_members: Train rows that it flags.
        members: Train rows that were scored.
        flagged_others: Hold-out rows that it flags.
        others: Hold-out rows that were scored.
        true_positive_rate_lower: Lower limit on the share of train rows that it flags.
        false_positive_rate_upper: Upper limit on the probability that it flags a row of the
            population that was not trained on. All limits of all thresholds hold together.
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
        p_value: Probability of members' log odds this high if the table is independent of
            membership.
        auc: Probability that a member scores above another row; estimate.
        rates: Rates at fixed thresholds.
        right: Whether each guess of a coin is right, most confident first; shape (scored,).
    """

    attack: str
    p_value: float
    auc: float
    rates: tuple[RateAtThreshold, ...]
    right: BoolArray


def draw_fitting_part(rows: int, rng: np.random.Generator) -> BoolArray:
    """Draws the rows that choose the attack: a random half, or all but `MOST_SCORED`.

    The choice does not depend on membership, so the coins of the scored rows stay fair.
    """
    fitting = np.ones(rows, dtype=np.bool_)
    fitting[rng.permutation(rows)[: min(rows // 2, MOST_SCORED)]] = False
    return fitting


def enough(inside: BoolArray, fitting: BoolArray) -> bool:
    """Whether both parts have enough rows of both kinds."""
    parts = [inside[fitting], inside[~fitting]]
    return all(LEAST_ROWS <= part.sum() <= len(part) - LEAST_ROWS for part in parts)


def choose_attack(
    scores: Mapping[str, FloatArray],
    inside: BoolArray,
    fitting: BoolArray | IntArray,
    rng: np.random.Generator,
) -> str:
    """The attack whose calibration best predicts membership on rows that it was not fitted on.

    Args:
        scores: Scores [n] by attack.
        inside: Whether each row is in train; shape (n,).
        fitting: The rows to choose on; at least two members and two others.
        rng: Splits these rows for cross-validation.

    Returns:
        The name of the attack; on a tie the first.
    """
    inside = inside[fitting]
    parts = np.zeros(len(inside), dtype=np.bool_)
    for kind in (True, False):
        rows = rng.permutation(np.flatnonzero(inside == kind))
        parts[rows[: len(rows) // 2]] = True
    return max(scores, key=lambda name: gain(scores[name][fitting], inside, parts))


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
        scores: Scores [n] by attack, independent of membership.
        inside: Whether each row is in train; shape (n,).
        fitting: Which rows to choose on; shape (n,), `enough`.
        rng: For parts and permutations.
        confidence: Probability that all limits on rates hold together, in (0, 1).

    Returns:
        How well it recognises members.
    """
    name = choose_attack(scores, inside, fitting, rng)
    known, known_inside = scores[name][fitting], inside[fitting]
    asked, asked_inside = scores[name][~fitting], inside[~fitting]
    calibration = fit_calibration(known, known_inside)
    order, inward = guesses(asked, calibration)
    return Recognition(
        attack=name,
        p_value=p_value(asked, asked_inside, calibration, rng),
        auc=auc(asked, asked_inside),
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
    rates = []
    for nominal in FALSE_POSITIVE_RATES:
        # At most this many of the others score strictly above the threshold.
        threshold = descending[int(nominal * len(descending))]
        flagged = scores > threshold
        hits, alarms = int(flagged[inside].sum()), int(flagged[~inside].sum())
        rates.append(
            RateAtThreshold(
                nominal=nominal,
                flagged_members=hits,
                members=members,
                flagged_others=alarms,
                others=others,
                true_positive_rate_lower=(
                    float(scipy.special.betaincinv(hits, members - hits + 1, alpha))
                    if hits
                    else 0.0
                ),
                false_positive_rate_upper=float(upper_limits(others, alpha)[alarms]),
            )
        )
    return tuple(rates)


@dataclass(frozen=True, kw_only=True)
class IsotonicCalibration:
    """Log odds of membership, a step function of the score that never falls.

    Attributes:
        lowest: The least score of each step but the first, ascending; shape (steps - 1,).
        log_odds: Log odds of membership on each step, less those of all rows; shape (steps,).
    """

    lowest: FloatArray
    log_odds: FloatArray

    def steps(self, scores: FloatArray) -> IntArray:
        """The step of each score."""
        return np.searchsorted(self.lowest, scores, side="right").astype(np.int64)


def fit_calibration(scores: FloatArray, inside: BoolArray) -> IsotonicCalibration:
    """Calibrates scores by isotonic regression of membership.

    Args:
        scores: Scores [n].
        inside: Whether each row is in train; shape (n,), both values occur.

    Returns:
        The calibration.
    """
    values, place = np.unique(scores, return_inverse=True)
    counts = np.bincount(place).astype(np.float64)
    members = np.bincount(place, weights=inside)
    fitted = scipy.optimize.isotonic_regression(members / counts, weights=counts).x
    starts = np.flatnonzero(np.diff(fitted, prepend=-1.0) > 0.0)  # where each step begins
    rows_of, members_of = np.add.reduceat(counts, starts), np.add.reduceat(members, starts)
    share = inside.mean()
    odds = (members_of + _PSEUDO * share) / (rows_of - members_of + _PSEUDO * (1.0 - share))
    log_odds = np.log(odds) - np.log(share / (1.0 - share))
    return IsotonicCalibration(lowest=values[starts[1:]], log_odds=log_odds)


def gain(scores: FloatArray, inside: BoolArray, parts: BoolArray) -> float:
    """How much better than chance the calibration on one part predicts membership in the other.

    Args:
        scores: Scores [n].
        inside: Whether each row is in train; shape (n,).
        parts: Which of two parts each row is in; both values of `inside` occur in each.

    Returns:
        The gain of the log likelihood, summed over all rows.
    """
    total = 0.0
    for part in (parts, ~parts):
        calibration = fit_calibration(scores[part], inside[part])
        share = inside[part].mean()
        odds = calibration.log_odds[calibration.steps(scores[~part])] + np.log(
            share / (1.0 - share)
        )
        likelihood = np.where(inside[~part], -np.logaddexp(0.0, -odds), -np.logaddexp(0.0, odds))
        chance = np.where(inside[~part], np.log(share), np.log(1.0 - share))
        total += float((likelihood - chance).sum())
    return total


def guesses(scores: FloatArray, calibration: IsotonicCalibration) -> tuple[IntArray, BoolArray]:
    """Positions of the rows, most confident guess first, and whether each is guessed in.

    The sign of the log odds is the guess; within a step the score decides the order.
    """
    odds = calibration.log_odds[calibration.steps(scores)]
    outward = np.where(odds > 0.0, scores, -scores)
    order = np.lexsort((-outward, -np.abs(odds)))
    return order, odds[order] > 0.0


def p_value(
    scores: FloatArray,
    inside: BoolArray,
    calibration: IsotonicCalibration,
    rng: np.random.Generator,
    *,
    draws: int = _DRAWS,
) -> float:
    """Probability of members' log odds this high if the scores are independent of membership.

    A Monte Carlo permutation test of the sum of the members' log odds. It is exact if all sets of
    rows of this size were equally likely to be in train.

    Args:
        scores: Scores [n].
        inside: Whether each row is in train; shape (n,).
        calibration: Fixed without these rows' membership.
        rng: For the permutations.
        draws: How many.

    Returns:
        The p-value, at least 1/(1 + draws).
    """
    of_each = calibration.steps(scores)
    rows = np.bincount(of_each, minlength=len(calibration.log_odds))
    seen = float(np.bincount(of_each[inside], minlength=len(rows)) @ calibration.log_odds)
    drawn = rng.multivariate_hypergeometric(rows, int(inside.sum()), size=draws)
    slack = 1e-9 * (1.0 + abs(seen))
    as_high = int((drawn @ calibration.log_odds >= seen - slack).sum())
    return (1 + as_high) / (1 + draws)


def p_text(value: float) -> str:
    """A p-value as text: "= 0.62", or "<= 0.0001", the least that permutations can give."""
    return "<= 0.0001" if value <= 1.0 / (1 + _DRAWS) else f"= {rounded(value)}"


def released_bound(right: BoolArray, *, delta: float, confidence: float) -> float:
    """The bound of `one_run_in_turn` from the first guesses.

    The attack was chosen on other rows, so the coins of the scored rows are still fair and
    independent, and the generator is (ε, δ)-DP in each. The number of guesses is fixed beforehand,
    to limit the cost. Every scored coin may be revealed with probability δ, guessed or not, so δ is
    scaled up for the guesses to account for all of them.

    Args:
        right: Whether the guess of each scored row's coin is right, most confident first; shape
            (m,).
        delta: δ of the claim, in [0, 1).
        confidence: One-sided confidence, in (0, 1).

    Returns:
        The bound, at least 0.

    Raises:
        SettingsError: If an argument is out of range.
    """
    guessed, scaled = _guessed(len(right), delta)
    if scaled >= 1.0:
        return 0.0
    return one_run_in_turn(right[:guessed], delta=scaled, confidence=confidence)


def released_power(rows: int, *, claim_epsilon: float, delta: float, confidence: float) -> Power:
    """The upper limit and the power of the bound for this many scored rows.

    Args:
        rows: Scored rows, each with a coin; at least 1.
        claim_epsilon: ε of the claim.
        delta: δ of the claim, in [0, 1).
        confidence: One-sided confidence, in (0, 1).

    Returns:
        The bound if all guesses are right, and the minimum detectable ε (power 0.8) of randomised
        response on each coin.

    Raises:
        SettingsError: If an argument is out of range.
    """
    guessed, scaled = _guessed(rows, delta)
    if scaled >= 1.0:
        return Power(0.0, None)
    return Power(
        released_bound(np.ones(rows, dtype=np.bool_), delta=delta, confidence=confidence),
        one_run_in_turn_detectable(
            claim_epsilon=claim_epsilon, canaries=guessed, delta=scaled, confidence=confidence
        ),
    )


def _guessed(rows: int, delta: float) -> tuple[int, float]:
    """The number of guesses, and δ scaled up so that they account for all scored rows."""
    guessed = min(rows, MOST_GUESSED)
    return guessed, delta * rows / guessed


class RiskyRow(NamedTuple):
    """A train row that stands out.

    Attributes:
        row: Its position among the scored rows.
        p_value: Probability that a row that was not trained on scores this high.
    """

    row: int
    p_value: float


def find_risky_rows(
    scores: Mapping[str, FloatArray], inside: BoolArray, rng: np.random.Generator
) -> tuple[RiskyRow, ...]:
    """Members whose scores are too high for non-members.

    The attack is chosen on a fifth of the rows, which are never named, and applied to the others. A
    member's p-value is its rank among the hold-out rows there. The named rows are chosen by the
    procedure of Benjamini and Hochberg 1995; it controls the false discovery rate although the
    p-values share the hold-out rows (Bates et al. 2023).

    Args:
        scores: Scores [n] by attack, independent of membership.
        inside: Whether each row is in train; shape (n,).
        rng: Splits the rows.

    Returns:
        The rows, smallest p-value first; empty if there are too few rows.
    """
    part = np.ones(len(inside), dtype=np.bool_)
    part[rng.permutation(len(inside))[: len(inside) // 5]] = False
    if not enough(inside, part):
        return ()
    of = scores[choose_attack(scores, inside, ~part, rng)]
    rows, others = np.flatnonzero(part & inside), np.sort(of[part & ~inside])
    above = len(others) - np.searchsorted(others, of[rows], side="left")
    p_values: FloatArray = np.asarray((1.0 + above) / (1.0 + len(others)), dtype=np.float64)
    risky = [
        RiskyRow(int(rows[place]), float(p_values[place]))
        for place in np.flatnonzero(benjamini_hochberg(p_values, rate=FALSE_DISCOVERIES))
    ]
    return tuple(sorted(risky, key=lambda of: (of.p_value, of.row)))


def benjamini_hochberg(p_values: FloatArray, *, rate: float) -> BoolArray:
    """The hypotheses that the step-up procedure of Benjamini and Hochberg rejects.

    Args:
        p_values: One for each hypothesis; shape (n,).
        rate: The false discovery rate, in (0, 1).

    Returns:
        Whether each is rejected.
    """
    order = np.argsort(p_values, kind="stable")
    limits = rate * np.arange(1, len(p_values) + 1) / max(1, len(p_values))
    below = np.flatnonzero(p_values[order] <= limits)
    rejected = np.zeros(len(p_values), dtype=np.bool_)
    rejected[order[: below[-1] + 1 if len(below) else 0]] = True
    return rejected


def phantom_p_value(
    scores: Mapping[str, FloatArray], inside: BoolArray, rng: np.random.Generator
) -> float | None:
    """The p-value of the same test between two halves of the hold-out, where there is no leak.

    Args:
        scores: Scores [n] by attack.
        inside: Whether each row is in train; shape (n,).
        rng: For the halves and the test.

    Returns:
        The p-value; None if there are too few hold-out rows to test.
    """
    others = np.flatnonzero(~inside)
    phantoms = np.zeros(len(others), dtype=np.bool_)
    phantoms[rng.permutation(len(others))[: len(others) // 2]] = True
    fitting = draw_fitting_part(len(others), rng)
    if not enough(phantoms, fitting):
        return None
    of_others = {name: of[others] for name, of in scores.items()}
    chosen = of_others[choose_attack(of_others, phantoms, fitting, rng)]
    calibration = fit_calibration(chosen[fitting], phantoms[fitting])
    return p_value(chosen[~fitting], phantoms[~fitting], calibration, rng)


def detectable_copies(
    scores: MembershipScores,
    inside: BoolArray,
    fitting: BoolArray,
    rng: np.random.Generator,
    *,
    level: float,
) -> float | None:
    """The smallest share of copied train rows that would be detected with probability 0.8.

    Simulated on these scores: membership is redrawn, so an existing leak does not count; the copied
    share of members gets the scores of copies; the attack is chosen anew.

    Args:
        scores: Scores [n] by attack, and those of copies.
        inside: Whether each row is in train; shape (n,).
        fitting: Which rows to choose on; shape (n,). At most `_MOST_FITTED` of them are used.
        rng: Plants copies.
        level: The p-value at which a leak counts as found.

    Returns:
        The first such share of a short list; None if not even copies of half of the rows are.
    """
    known = rng.permutation(np.flatnonzero(fitting))[:_MOST_FITTED]
    if min(inside[known].sum(), (~inside[known]).sum()) < LEAST_ROWS:
        return None
    asked = np.flatnonzero(~fitting)

    def detects(share: float) -> bool:
        detections = 0
        for _ in range(_SIMULATIONS):
            drawn = inside.copy()
            for part in (known, asked):
                drawn[part] = rng.permutation(inside[part])
            copied = drawn & (rng.random(len(inside)) < share)
            planted = {
                name: np.where(copied, scores.if_copied[name], seen)
                for name, seen in scores.seen.items()
            }
            chosen = planted[choose_attack(planted, drawn, known, rng)]
            calibration = fit_calibration(chosen[known], drawn[known])
            p = p_value(chosen[asked], drawn[asked], calibration, rng, draws=_SIMULATED_DRAWS)
            detections += p <= level
        return detections >= _FOUND

    first = bisect_left(_SHARES, True, key=detects)
    return _SHARES[first] if first < len(_SHARES) else None
