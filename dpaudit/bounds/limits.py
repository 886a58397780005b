"""Exact lower limits on the level of a trade-off function: mu, rho, or the factor of a curve."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from dpaudit.bounds._checks import check_confidence
from dpaudit.bounds._region import RejectionRegion
from dpaudit.bounds._worst_case import Boundary, certified
from dpaudit.bounds.clopper_pearson import upper_limits
from dpaudit.bounds.counts import Counts
from dpaudit.bounds.trade_off import TradeOff

# Outcomes are ranked alike whatever the confidence, so that more of it never raises a limit.
_REFERENCE_CONFIDENCE = 0.95
# Ties survive the rounding of a trade-off function; a larger region only lowers a limit.
_TIE_SLACK = 1e-9
_MOST_LEVEL = 1e6
_ROOT_STEPS = 60
_ROOT_TOLERANCE = 1e-4
_LEAST_SCALE = 1e-3
# How far below the estimated root the certificate is tried, as shares of it.
_STEPS_DOWN = (2e-3, 4e-3, 8e-3, 0.015, 0.03, 0.06, 0.12, 0.25, 0.5)


def level_limit(counts: Counts, trade_off: TradeOff, *, confidence: float) -> float:
    """A lower limit on the level by inverting the exact unconditional test.

    As `dpaudit.bounds.exact` for epsilon: outcomes are ranked by the smallest level that allows
    their 95 % Clopper-Pearson limits; p(level) is the largest probability, over the boundary of
    the trade-off function of that level, of an outcome that ranks at least as high as the one
    observed; the limit is where p first exceeds 1 − confidence (Buehler 1957). The attack's
    threshold must have been fixed before the trials were scored.

    Args:
        counts: Errors of the attack.
        trade_off: The family.
        confidence: One-sided confidence, in (0, 1).

    Returns:
        The limit, at least 0: a level at which p is certified to be within 1 − confidence, usually
        0.2 % below the root.

    Raises:
        SettingsError: If `confidence` is out of range.
    """
    check_confidence(confidence)
    alpha = 1.0 - confidence
    region = ranked_region(counts, trade_off)
    if region.is_full:
        return 0.0
    n = max(counts.n_in, counts.n_out)

    def reaches(level: float) -> bool:
        return Boundary.of(trade_off, level, n=n).rejected_at_most(region) > alpha

    root = smallest(reaches, low=0.0, start=1.0)
    for share in _STEPS_DOWN:
        level = root * (1.0 - share)
        if level > 0.0 and certified(region, trade_off, level, alpha=alpha):
            return level
    return 0.0


def ranked_region(counts: Counts, trade_off: TradeOff) -> RejectionRegion:
    """The outcomes that rank at least as high as this one."""
    level = _statistic(counts, trade_off, _REFERENCE_CONFIDENCE)
    region = region_at_least(level, counts.n_in, counts.n_out, trade_off)
    most_fn = region.most_fn.copy()
    upto = slice(0, counts.false_positives + 1)
    most_fn[upto] = np.maximum(most_fn[upto], counts.false_negatives)  # whatever rounding says
    return RejectionRegion(most_fn, counts.n_in)


def region_at_least(level: float, n_in: int, n_out: int, trade_off: TradeOff) -> RejectionRegion:
    """The outcomes whose rank is at least this level, ties included."""
    tail = (1.0 - _REFERENCE_CONFIDENCE) / 2.0
    fn_upper, fp_upper = upper_limits(n_in, tail), upper_limits(n_out, tail)
    if level == -math.inf:
        return RejectionRegion(np.full(n_out + 1, n_in, dtype=np.int64), n_in)
    limit = trade_off.least_fnr(fp_upper, level) + _TIE_SLACK
    most_fn = np.searchsorted(fn_upper, limit, side="right").astype(np.int64) - 1
    return RejectionRegion(np.minimum.accumulate(most_fn), n_in)


@lru_cache(maxsize=16)
def rejecting_region(
    level: float, n_in: int, n_out: int, trade_off: TradeOff, confidence: float
) -> RejectionRegion:
    """The outcomes whose limit exceeds a level, to within what `level_limit` falls short of it."""
    alpha = 1.0 - confidence
    beyond = level / (1.0 - _STEPS_DOWN[0])
    boundary = Boundary.of(trade_off, beyond, n=max(n_in, n_out))
    best = _statistic(Counts(0, 0, n_in, n_out), trade_off, _REFERENCE_CONFIDENCE)

    def unlikely(rank: float) -> bool:
        region = region_at_least(rank, n_in, n_out, trade_off)
        return boundary.rejected_at_most(region) < alpha

    if not unlikely(best):
        return RejectionRegion(np.full(n_out + 1, -1, dtype=np.int64), n_in)
    reach = 1.0
    while unlikely(best - reach) and reach < _MOST_LEVEL:  # ranks of few trials are negative
        reach *= 2.0
    rank = smallest(unlikely, low=best - reach, start=best)
    return region_at_least(rank, n_in, n_out, trade_off)


def smallest(holds: Callable[[float], bool], *, low: float, start: float) -> float:
    """The smallest number above `low` of which something holds that holds of all larger ones.

    Args:
        holds: What must hold.
        low: Where the search begins.
        start: The first number that is tried; doubled until it holds.

    Returns:
        A number of which it holds, to within a ten-thousandth of it; a million if of none below.
    """
    high = start
    while not holds(high):
        if high >= _MOST_LEVEL:
            return high
        low, high = high, 2.0 * high
    for _ in range(_ROOT_STEPS):
        if high - low <= _ROOT_TOLERANCE * max(abs(high), _LEAST_SCALE):
            break
        middle = (low + high) / 2.0
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _statistic(counts: Counts, trade_off: TradeOff, confidence: float) -> float:
    tail = (1.0 - confidence) / 2.0
    fn_upper = upper_limits(counts.n_in, tail)[counts.false_negatives]
    fp_upper = upper_limits(counts.n_out, tail)[counts.false_positives]
    return float(trade_off.level(fn_upper, fp_upper))
