"""The Clopper-Pearson lower bound on epsilon, and the statistic that orders outcomes."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import scipy

from dpaudit.bounds.inputs import Counts, FloatArray, check_confidence, check_delta


def clopper_pearson(
    false_negatives: int,
    false_positives: int,
    n_in: int,
    n_out: int,
    *,
    delta: float,
    confidence: float,
) -> float:
    """A lower bound on epsilon from simultaneous upper limits on both error rates.

    An (ε, δ)-DP mechanism forces e^ε·FPR + FNR ≥ 1 − δ and FPR + e^ε·FNR ≥ 1 − δ on every
    attack (Kairouz, Oh and Viswanath 2015, Theorem 2.1). Each rate gets an exact upper limit
    (Clopper and Pearson 1934) at level (1 − confidence)/2; both hold at once with probability
    `confidence`. The two ratios then hold together, so taking the larger one needs no further
    correction (Nasr et al. 2021, whose estimator this is). The attack's threshold must have been
    fixed before the trials were scored.

    Args:
        false_negatives: Trials of the "in" world that the attack guessed "out".
        false_positives: Trials of the "out" world that the attack guessed "in".
        n_in: Scored trials of the "in" world, at least 1.
        n_out: Scored trials of the "out" world, at least 1.
        delta: δ of the claim, in [0, 1).
        confidence: One-sided confidence, in (0, 1).

    Returns:
        The bound, at least 0.

    Raises:
        SettingsError: If an argument is out of range.
    """
    counts = Counts(false_negatives, false_positives, n_in, n_out)
    check_delta(delta)
    check_confidence(confidence)
    tail = (1.0 - confidence) / 2.0
    fn_upper = upper_limit(counts.false_negatives, counts.n_in, tail)
    fp_upper = upper_limit(counts.false_positives, counts.n_out, tail)
    return max(0.0, float(statistic(fn_upper, fp_upper, delta)))


def event_bound(
    likely: int, rare: int, draws: int, *, delta: float, confidence: float
) -> tuple[float, float]:
    """An interval for the epsilon of an event: log((P(event) - delta) / Q(event)).

    Exact limits on both probabilities (Clopper and Pearson 1934), each with half of the error
    probability. The lower end bounds the mechanism's epsilon from below (Dwork and Roth 2014,
    Definition 2.4).

    Args:
        likely: Outputs in the event, of the input that makes it likelier.
        rare: Outputs in it, of the other input.
        draws: Outputs of each input.
        delta: Delta of the claim.
        confidence: Confidence of each end.
    """
    tail = (1.0 - confidence) / 2.0
    least = 1.0 - upper_limit(draws - likely, draws, tail)
    most = upper_limit(likely, draws, tail)
    other = 1.0 - upper_limit(draws - rare, draws, tail), upper_limit(rare, draws, tail)
    low = math.log((least - delta) / other[1]) if least > delta else 0.0
    high = math.log((most - delta) / other[0]) if most > delta and other[0] > 0 else math.inf
    return max(0.0, low), high if most > delta else 0.0


def upper_limit(errors: int, n: int, alpha: float) -> float:
    """The Clopper-Pearson upper limit on a rate after so many errors in n trials.

    Args:
        errors: Errors, at most n.
        n: Trials.
        alpha: Probability that the limit lies below the true rate, at most.

    Returns:
        The limit, in (0, 1].
    """
    return 1.0 if errors == n else float(scipy.special.betainccinv(errors + 1, n - errors, alpha))


def interval(successes: int, n: int, alpha: float) -> tuple[float, float]:
    """The Clopper-Pearson interval for a rate after so many successes in n trials.

    Args:
        successes: Successes, at most n.
        n: Trials.
        alpha: Probability that each end misses the true rate, at most.

    Returns:
        Both ends, in [0, 1].
    """
    return 1.0 - upper_limit(n - successes, n, alpha), upper_limit(successes, n, alpha)


def upper_limits(n: int, alpha: float) -> FloatArray:
    """Clopper-Pearson upper limits on a rate, for every count of n trials.

    Args:
        n: Trials.
        alpha: Probability that the limit lies below the true rate, at most.

    Returns:
        The limit after k errors at position k; shape (n + 1,), increasing, the last one 1.
    """
    errors = np.arange(n)
    limits = np.asarray(scipy.special.betainccinv(errors + 1, n - errors, alpha), dtype=np.float64)
    return np.append(limits, 1.0)


def statistic(
    fn_upper: npt.ArrayLike, fp_upper: npt.ArrayLike, delta: float
) -> FloatArray | np.float64:
    """Log of the larger privacy ratio at the given error rates, not clipped at 0.

    max{ln((1 − δ − fn)/fp), ln((1 − δ − fp)/fn)}: negative where the rates are compatible with
    perfect privacy, −inf where both numerators vanish. It decreases in either rate, so an outcome
    with fewer errors never ranks lower.

    Args:
        fn_upper: Upper limits on the false-negative rate, in (0, 1].
        fp_upper: Upper limits on the false-positive rate, in (0, 1]; broadcast with fn_upper.
        delta: δ of the claim, in [0, 1).

    Returns:
        The statistic, in the broadcast shape.
    """
    fn = np.asarray(fn_upper, dtype=np.float64)
    fp = np.asarray(fp_upper, dtype=np.float64)
    ratio = np.maximum((1.0 - delta - fn) / fp, (1.0 - delta - fp) / fn)
    with np.errstate(divide="ignore"):
        log_ratio: FloatArray | np.float64 = np.log(np.maximum(ratio, 0.0))
    return log_ratio
