"""The Clopper-Pearson lower bound on epsilon, and estimates that other tools report.

The estimates `jeffreys`, `joint_beta` and `gdp` are shown for comparison, never in a verdict: none
is a lower bound at its nominal confidence. On randomised response the first exceeds the true ε
slightly too often and the second up to five times too often; the third is valid for Gaussian
mechanisms only.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import numpy.typing as npt
import scipy

from dpaudit.bounds.inputs import (
    Counts,
    FloatArray,
    check_confidence,
    check_delta,
    check_positive_delta,
)
from dpaudit.errors import SettingsError
from dpaudit.model.gaussian import gaussian_epsilon


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


# Gauss-Legendre nodes over the quantiles of one rate: 20 times as many change the estimate by less
# than 1e-3.
_NODES = 400
# Rates that a posterior can distinguish from 0 differ by far less than a factor e^700.
_LARGEST_EPSILON = 700.0


def jeffreys(
    false_negatives: int,
    false_positives: int,
    n_in: int,
    n_out: int,
    *,
    delta: float,
    confidence: float,
) -> float:
    """Estimate, not a proof: the Clopper-Pearson formula with Jeffreys limits.

    Each rate's upper limit is the quantile of Beta(errors + ½, successes + ½) at
    (1 + confidence)/2, and 1 where every trial was an error. Such limits cover on average over
    rates, not at each.

    Args:
        false_negatives: Trials of the "in" world that the attack guessed "out".
        false_positives: Trials of the "out" world that the attack guessed "in".
        n_in: Scored trials of the "in" world, at least 1.
        n_out: Scored trials of the "out" world, at least 1.
        delta: δ of the claim, in [0, 1).
        confidence: Nominal one-sided confidence, in (0, 1).

    Returns:
        The estimate, at least 0.

    Raises:
        SettingsError: If an argument is out of range.
    """
    counts = Counts(false_negatives, false_positives, n_in, n_out)
    check_delta(delta)
    check_confidence(confidence)
    tail = (1.0 - confidence) / 2.0

    def upper_limit(errors: int, n: int) -> float:
        if errors == n:
            return 1.0
        return float(scipy.special.betainccinv(errors + 0.5, n - errors + 0.5, tail))

    fn_upper = upper_limit(counts.false_negatives, counts.n_in)
    fp_upper = upper_limit(counts.false_positives, counts.n_out)
    return max(0.0, float(statistic(fn_upper, fp_upper, delta)))


def joint_beta(
    false_negatives: int,
    false_positives: int,
    n_in: int,
    n_out: int,
    *,
    delta: float,
    confidence: float,
) -> float:
    """Estimate, not a proof: a credible bound from the joint posterior of both error rates.

    The bound is the ε at which the rates allowed by (ε, δ)-DP have posterior probability 1 −
    confidence under independent Jeffreys priors (Zanella-Béguelin et al. 2023). The allowed rates
    are symmetric about chance, so, as published, rates far worse than chance count as evidence too.
    This is the only function here that does so: one more reason to keep it out of verdicts.

    Args:
        false_negatives: Trials of the "in" world that the attack guessed "out".
        false_positives: Trials of the "out" world that the attack guessed "in".
        n_in: Scored trials of the "in" world, at least 1.
        n_out: Scored trials of the "out" world, at least 1.
        delta: δ of the claim, in [0, 1).
        confidence: Posterior probability that ε is larger, in (0, 1).

    Returns:
        The estimate, at least 0, within 1e-3 of the exact integral's.

    Raises:
        SettingsError: If an argument is out of range.
    """
    counts = Counts(false_negatives, false_positives, n_in, n_out)
    check_delta(delta)
    check_confidence(confidence)
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    fn_shape = (counts.false_negatives + 0.5, counts.n_in - counts.false_negatives + 0.5)
    fp_shape = (counts.false_positives + 0.5, counts.n_out - counts.false_positives + 0.5)
    fnr: FloatArray = scipy.special.betaincinv(*fn_shape, (nodes + 1.0) / 2.0)

    def smallest_fpr(fnr: FloatArray, epsilon: float) -> FloatArray:
        steep = 1.0 - delta - np.exp(epsilon) * fnr
        flat = (1.0 - delta - fnr) * np.exp(-epsilon)
        smallest: FloatArray = np.maximum(np.maximum(steep, flat), 0.0)
        return smallest

    def excess(epsilon: float) -> float:
        low = smallest_fpr(fnr, epsilon)
        high = np.maximum(1.0 - smallest_fpr(1.0 - fnr, epsilon), low)
        inside = scipy.special.betainc(*fp_shape, high) - scipy.special.betainc(*fp_shape, low)
        return float(weights @ inside) / 2.0 - (1.0 - confidence)

    if excess(0.0) >= 0.0:
        return 0.0
    return float(scipy.optimize.brentq(excess, 0.0, _LARGEST_EPSILON, xtol=1e-9))


def gdp(
    false_negatives: int,
    false_positives: int,
    n_in: int,
    n_out: int,
    *,
    delta: float,
    confidence: float,
    assume: Literal["gaussian"],
) -> float:
    """Estimate, not a proof: epsilon if the mechanism is Gaussian differentially private.

    One point of a Gaussian trade-off curve determines the whole curve: μ = Φ⁻¹(1 − FPR) − Φ⁻¹(FNR)
    at the Clopper-Pearson limits, turned into ε at δ (Nasr et al. 2023, section 5). Without the
    assumption it is meaningless: on randomised response or Laplace noise it exceeds the true ε in
    most audits.

    Args:
        false_negatives: Trials of the "in" world that the attack guessed "out".
        false_positives: Trials of the "out" world that the attack guessed "in".
        n_in: Scored trials of the "in" world, at least 1.
        n_out: Scored trials of the "out" world, at least 1.
        delta: δ at which ε is reported, in (0, 1).
        confidence: One-sided confidence if the assumption holds, in (0, 1).
        assume: "gaussian": the caller's word that the mechanism is Gaussian.

    Returns:
        The estimate, at least 0.

    Raises:
        SettingsError: If an argument is out of range.
    """
    counts = Counts(false_negatives, false_positives, n_in, n_out)
    check_positive_delta(delta)
    check_confidence(confidence)
    if assume != "gaussian":
        raise SettingsError(f'`assume` is {assume!r}; only "gaussian" is known')
    tail = (1.0 - confidence) / 2.0
    fn_upper = upper_limits(counts.n_in, tail)[counts.false_negatives]
    fp_upper = upper_limits(counts.n_out, tail)[counts.false_positives]
    # No limit is 0; one of 1 makes mu minus infinity.
    return gaussian_epsilon(
        float(-scipy.special.ndtri(fp_upper) - scipy.special.ndtri(fn_upper)), delta
    )
