"""The error rates that a claim allows an attack, and the lower limits that errors prove.

An audit asks the guarantee of its claim for every number: lower limits in the quantity of the claim
(epsilon, delta, mu, rho, or the factor of a privacy curve), thresholds, and what an audit of a
given size could prove. There are two kinds, with the same methods.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy

from dpaudit.bounds.clopper_pearson import clopper_pearson, statistic
from dpaudit.bounds.exact import RejectionRegion, epsilon_rejecting_region, exact
from dpaudit.bounds.inputs import (
    Counts,
    FloatArray,
    check_confidence,
    check_delta,
    check_epsilon,
    check_power,
)
from dpaudit.bounds.one_run import (
    Prefix,
    detectable_error,
    detectable_shift,
    one_run_in_turn_detectable,
    refuting,
    strongest_level,
    strongest_prefix,
)
from dpaudit.bounds.table import Observed, ValidBound, entries_for
from dpaudit.bounds.trade_off import (
    Boundary,
    ConcentratedTradeOff,
    CurveTradeOff,
    DeltaTradeOff,
    GaussianTradeOff,
    TradeOff,
    level_clopper_pearson,
    level_limit,
    rejecting_region,
    smallest,
)
from dpaudit.model.claim import (
    Claim,
    ConcentratedClaim,
    CurveClaim,
    DeltaClaim,
    GaussianClaim,
    NoClaim,
    PrivacyClaim,
)
from dpaudit.model.gaussian import gaussian_epsilon
from dpaudit.model.setting import NumberRange, check_number

# e^epsilon overflows beyond this; such a guarantee allows everything.
_LARGEST_EXPONENT = 700.0
# Randomised response with this much more epsilon than the claim errs with probability < 1e-26.
_CERTAIN_LEAK = 60.0
# Two normal scores this many standard deviations apart are confused with probability < 1e-80.
_CERTAIN_SHIFT = 40.0
# Thresholds tried for a Gaussian leak, and how far they reach beyond the two means.
_CUTS = 401
_TAIL = 4.0
# The first leak to try where nothing is claimed, as for delta 0.
_LEAST_LEVEL = 1e-3


class Detectable(NamedTuple):
    """The smallest leaks that an audit detects with some power, in the quantity of the claim.

    Attributes:
        best: The smallest leak of a mechanism that shows at one threshold all that its guarantee
            allows; None if no leak is detected.
        gaussian: The smallest shift of a normal score; None if the quantity cannot measure it, if
            `best` is that shift already, or if no shift is detected.
    """

    best: float | None
    gaussian: float | None


@dataclass(frozen=True)
class EpsilonGuarantee:
    """(ε, δ)-differential privacy at a fixed δ: the error rates it allows, and limits on its ε.

    `TradeOffGuarantee` has the same methods for claims in mu, in rho or by a curve. The quantity
    that both limit is called the level.

    Attributes:
        delta: δ of the claim, in [0, 1), which fair-coin bounds need.
    """

    delta: float

    def statistic(self, fn_upper: FloatArray, fp_upper: FloatArray) -> FloatArray | np.float64:
        """The level that upper limits on both error rates prove, not clipped at 0.

        For ε, the log of the larger privacy ratio (Kairouz, Oh and Viswanath 2015, Theorem 2.1).
        """
        return statistic(fn_upper, fp_upper, self.delta)

    def threshold_statistic(
        self, fn_upper: FloatArray, fp_upper: FloatArray
    ) -> FloatArray | np.float64:
        """The criterion for a threshold, given upper limits on its error rates: the level."""
        return self.statistic(fn_upper, fp_upper)

    def exact(self, counts: Counts, *, confidence: float) -> float:
        """The lower limit on the level by inverting the exact test, at least 0."""
        return exact(*counts, delta=self.delta, confidence=confidence)

    def clopper_pearson(self, counts: Counts, *, confidence: float) -> float:
        """The lower limit on the level from simultaneous limits on both error rates."""
        return clopper_pearson(*counts, delta=self.delta, confidence=confidence)

    def bounds(
        self, observed: Observed, *observations: Any, confidence: float
    ) -> dict[ValidBound, float]:
        """Every valid lower limit on the level that these observations prove, by key."""
        return {
            entry.key: entry.function(*observations, delta=self.delta, confidence=confidence)
            for entry in entries_for(observed)
            if isinstance(entry.key, ValidBound)
        }

    def detectable(
        self, claimed: float, failed: Counts, *, confidence: float, power: float
    ) -> Detectable:
        """The smallest leaks for which the exact limit exceeds the claim with a given probability.

        Args:
            claimed: Claimed level.
            failed: Scored trials of both worlds, with the failed ones as errors.
            confidence: One-sided confidence of the limit.
            power: The probability, in (1 − confidence, 1).

        Returns:
            The leaks of randomised response and of a Gaussian mechanism, each as its ε at δ.

        Raises:
            SettingsError: If an argument is out of range.
        """
        check_power(power, confidence=confidence)
        region = self._rejecting(claimed, failed.n_in, failed.n_out, confidence).after_errors(
            false_negatives=failed.false_negatives, false_positives=failed.false_positives
        )
        if region.is_empty:
            return Detectable(None, None)

        def beyond_power(epsilon: float) -> float:
            # Kairouz, Oh and Viswanath 2015, Theorem 2.5: randomised response dominates.
            rate = np.array([self.balanced_error(epsilon)])
            return float(region.probability(rate, rate)[0]) - power

        def beyond_power_shifted(mu: float) -> float:
            return _most_rejected(region, mu) - power

        solve = scipy.optimize.brentq
        best = float(solve(beyond_power, claimed, claimed + _CERTAIN_LEAK, xtol=1e-9))
        if self.delta == 0.0:  # every Gaussian leak has infinite ε
            return Detectable(best, None)
        shift = float(solve(beyond_power_shifted, 0.0, _CERTAIN_SHIFT, xtol=1e-6))
        return Detectable(best, gaussian_epsilon(shift, self.delta))

    def detection_power(
        self, claimed: float, *, n_in: int, n_out: int, confidence: float, fpr: float, tpr: float
    ) -> float:
        """Probability that an attack with these rates makes the exact limit exceed the claim."""
        return _rejected(self._rejecting(claimed, n_in, n_out, confidence), fpr=fpr, tpr=tpr)

    def _rejecting(
        self, claimed: float, n_in: int, n_out: int, confidence: float
    ) -> RejectionRegion:
        """The outcomes whose exact limit exceeds the claim."""
        check_epsilon(claimed)
        check_delta(self.delta)
        check_confidence(confidence)
        return epsilon_rejecting_region(claimed, n_in, n_out, self.delta, confidence)

    def strongest(self, right: npt.ArrayLike, bound: float, *, confidence: float) -> Prefix:
        """The first guesses of one training that are the strongest evidence for its bound."""
        return strongest_prefix(right, epsilon=bound)

    def one_run_detectable(
        self, claimed: float, canaries: int, *, confidence: float, power: float
    ) -> Detectable:
        """The smallest leaks that one training detects.

        Args:
            claimed: Claimed level.
            canaries: Canaries, at least 1.
            confidence: One-sided confidence of the limit.
            power: Probability that it exceeds the claim, in (1 − confidence, 1).

        Returns:
            The leak of randomised response on every coin; for rho also that of a normal score of
            every canary, which for mu is used if it is smaller.

        Raises:
            SettingsError: If an argument is out of range.
        """
        least = one_run_in_turn_detectable(
            claim_epsilon=claimed,
            canaries=canaries,
            delta=self.delta,
            confidence=confidence,
            power=power,
        )
        return Detectable(least, None)

    def balanced_error(self, level: float) -> float:
        """The error rate of the best attack with equal rates on the worst mechanism of a level."""
        # randomised response that reveals the world with probability δ
        return (1.0 - self.delta) * float(scipy.special.expit(-level))

    def most_tpr(self, fpr: FloatArray, level: float) -> FloatArray:
        """Largest true-positive rates that a level allows at false-positive rates [m].

        For ε, min(1, e^ε FPR + δ, 1 − e^−ε (1 − FPR − δ)).
        """
        # Kairouz, Oh and Viswanath 2015, Theorem 2.1.
        factor = np.exp(min(level, _LARGEST_EXPONENT))
        steep = np.minimum(1.0, factor * fpr + self.delta)
        most: FloatArray = np.minimum(steep, 1.0 - np.maximum(0.0, 1.0 - fpr - self.delta) / factor)
        return most


@dataclass(frozen=True)
class TradeOffGuarantee:
    """A guarantee that is a trade-off function, with the methods of `EpsilonGuarantee`.

    Attributes:
        trade_off: The family of trade-off functions; the level picks one of them.
        measures_gaussian: Whether a Gaussian leak has a level, mu²/2, and is not the worst
            mechanism of that level (Bun and Steinke 2016, Proposition 1.6).
        delta: None: the level is not an ε.
    """

    trade_off: TradeOff
    measures_gaussian: bool = False
    delta: None = field(default=None, init=False)

    def statistic(self, fn_upper: FloatArray, fp_upper: FloatArray) -> FloatArray | np.float64:
        """The smallest level that allows these rates."""
        return self.trade_off.level(fn_upper, fp_upper)

    def threshold_statistic(
        self, fn_upper: FloatArray, fp_upper: FloatArray
    ) -> FloatArray | np.float64:
        """How far both rates together are below chance; for delta, the level.

        For others it is not the level: a Gaussian leak has nearly the same level at every
        threshold, so chance in the fitting trials would decide which one is largest.
        """
        if isinstance(self.trade_off, DeltaTradeOff):
            return self.statistic(fn_upper, fp_upper)
        below: FloatArray = 1.0 - fn_upper - fp_upper
        return below

    def exact(self, counts: Counts, *, confidence: float) -> float:
        """The lower limit on the level by inverting the exact test, at least 0."""
        return level_limit(counts, self.trade_off, confidence=confidence)

    def clopper_pearson(self, counts: Counts, *, confidence: float) -> float:
        """The lower limit on the level from simultaneous limits on both error rates."""
        return level_clopper_pearson(counts, self.trade_off, confidence=confidence)

    def bounds(
        self, observed: Observed, *observations: Any, confidence: float
    ) -> dict[ValidBound, float]:
        """Every valid lower limit on the level that these observations prove, by key."""
        arguments = (Counts(*observations),) if observed is Observed.COUNTS else observations
        return {
            entry.key: entry.level(*arguments, self.trade_off, confidence=confidence)
            for entry in entries_for(observed)
            if isinstance(entry.key, ValidBound) and entry.level is not None
        }

    def strongest(self, right: npt.ArrayLike, bound: float, *, confidence: float) -> Prefix:
        """The number of guesses, of those tried, that gives the larger limit."""
        return strongest_level(right, self.trade_off, confidence=confidence).prefix

    def one_run_detectable(
        self, claimed: float, canaries: int, *, confidence: float, power: float
    ) -> Detectable:
        """The smallest leaks that one training detects, by the better number of guesses."""
        check_power(power, confidence=confidence)
        tests = refuting(claimed, canaries, self.trade_off, confidence=confidence)
        if not tests:
            return Detectable(None, None)
        error = np.array([detectable_error(tests, power)])
        best = float(self.trade_off.level(error, error)[0])
        shift = detectable_shift(tests, canaries, power)
        if isinstance(self.trade_off, GaussianTradeOff):
            return Detectable(min(best, shift), None)
        return Detectable(best, shift**2 / 2.0 if self.measures_gaussian else None)

    def detectable(
        self, claimed: float, failed: Counts, *, confidence: float, power: float
    ) -> Detectable:
        """The leaks of the worst mechanism at its best threshold, and of a shifted normal score."""
        check_power(power, confidence=confidence)
        false_negatives, false_positives, n_in, n_out = failed
        region = rejecting_region(claimed, n_in, n_out, self.trade_off, confidence).after_errors(
            false_negatives=false_negatives, false_positives=false_positives
        )
        if region.is_empty:
            return Detectable(None, None)

        def is_detected(level: float) -> bool:
            boundary = Boundary.of(self.trade_off, level, n=max(region.n_in, region.n_out))
            return boundary.rejected_at_most(region) >= power

        best = smallest(is_detected, low=claimed, start=max(2.0 * claimed, _LEAST_LEVEL))
        if not self.measures_gaussian:
            return Detectable(best, None)

        def is_shift_detected(shift: float) -> bool:
            return _most_rejected(region, shift) >= power

        return Detectable(best, smallest(is_shift_detected, low=0.0, start=1.0) ** 2 / 2.0)

    def detection_power(
        self, claimed: float, *, n_in: int, n_out: int, confidence: float, fpr: float, tpr: float
    ) -> float:
        """Probability that these rates make the exact limit exceed the claim, by enumeration."""
        region = rejecting_region(claimed, n_in, n_out, self.trade_off, confidence)
        return _rejected(region, fpr=fpr, tpr=tpr)

    def balanced_error(self, level: float) -> float:
        """The error rate where both are equal: where the trade-off function meets the diagonal."""

        def is_past_diagonal(fpr: float) -> bool:
            return float(self.trade_off.least_fnr(np.array([fpr]), level)[0]) <= fpr

        return smallest(is_past_diagonal, low=0.0, start=0.5)

    def most_tpr(self, fpr: FloatArray, level: float) -> FloatArray:
        """Largest true-positive rates that a level allows: 1 minus the trade-off function."""
        return 1.0 - self.trade_off.least_fnr(fpr, level)


Guarantee: TypeAlias = EpsilonGuarantee | TradeOffGuarantee
"""The error rates that a claim allows every attack; its parameter is the level."""


def guarantee_of(claim: Claim) -> Guarantee:
    """The guarantee whose level a claim states."""
    match claim:
        case PrivacyClaim() | NoClaim():
            return EpsilonGuarantee(claim.delta)
        case GaussianClaim():
            return TradeOffGuarantee(GaussianTradeOff())
        case ConcentratedClaim():
            return TradeOffGuarantee(ConcentratedTradeOff(), measures_gaussian=True)
        case CurveClaim():
            return TradeOffGuarantee(CurveTradeOff(claim.points))
        case DeltaClaim():
            return TradeOffGuarantee(DeltaTradeOff(claim.at_epsilon))


def _rejected(region: RejectionRegion, *, fpr: float, tpr: float) -> float:
    """Probability that an attack with these rates, each in [0, 1], has an outcome of a region."""
    for name, rate in (("fpr", fpr), ("tpr", tpr)):
        check_number(name, rate, NumberRange(0, 1))
    if region.is_empty:
        return 0.0
    return float(region.probability(np.array([fpr]), np.array([1.0 - tpr]))[0])


def _most_rejected(region: RejectionRegion, shift: float) -> float:
    """The same for a normal score shifted by so many deviations, at the best threshold.

    Such a shift is mu-GDP (Dong, Roth and Su 2022). A single threshold shows less of its epsilon
    than of that of randomised response.
    """
    cuts = np.linspace(-_TAIL, shift + _TAIL, _CUTS)
    rates = scipy.special.ndtr(-cuts), scipy.special.ndtr(cuts - shift)
    return float(region.probability(*rates).max())
