"""Estimates of epsilon that other tools report: shown for comparison, never in a verdict.

None of them is a lower bound at its nominal confidence. On randomised response the first exceeds
the true ε slightly too often and the second up to five times too often; the third is valid for
Gaussian mechanisms only.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import scipy

from dpaudit.bounds.clopper_pearson import statistic, upper_limits
from dpaudit.bounds.inputs import (
    Counts,
    FloatArray,
    check_confidence,
    check_delta,
    check_positive_delta,
)
from dpaudit.errors import SettingsError
from dpaudit.model.gaussian import gaussian_epsilon

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
