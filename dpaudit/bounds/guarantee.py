"""The error rates that a claim allows of an attack, and the lower limits that follow from errors.

An audit asks the guarantee of its claim for every number: lower limits in the quantity of the claim
(epsilon, mu, rho, or the factor of a privacy curve), thresholds, and what an audit of some size
could prove. There are two kinds, with the same methods.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy

from dpaudit.bounds._region import RejectionRegion
from dpaudit.bounds.clopper_pearson import clopper_pearson, statistic
from dpaudit.bounds.exact import detectable_epsilon, detectable_gaussian, detection_power, exact
from dpaudit.bounds.inputs import Counts, FloatArray, check_power
from dpaudit.bounds.one_run import Prefix, one_run_in_turn_detectable, strongest_prefix
from dpaudit.bounds.one_run_levels import (
    detectable_error,
    detectable_shift,
    refuting,
    strongest_level,
)
from dpaudit.bounds.table import Observed, ValidBound, valid_bounds, valid_levels
from dpaudit.bounds.trade_off import (
    Boundary,
    ConcentratedTradeOff,
    CurveTradeOff,
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
    GaussianClaim,
    NoClaim,
    PrivacyClaim,
)

# e^epsilon overflows beyond this; such a guarantee allows everything.
_LARGEST_EXPONENT = 700.0
# Thresholds tried for a Gaussian leak, and how far they reach beyond the two means.
_CUTS = 401
_TAIL = 4.0


class Detectable(NamedTuple):
    """The smallest leaks that an audit detects with some power, in the quantity of the claim.

    Attributes:
        best: The smallest leak of a mechanism that shows as much at one threshold as its guarantee
            allows; None if no leak is exposed.
        gaussian: The smallest shift of a normal score, if that is another mechanism and the
            quantity measures it.
    """

    best: float | None
    gaussian: float | None


@dataclass(frozen=True)
class EpsilonGuarantee:
    """(ε, δ)-differential privacy at a fixed δ: the error rates it allows, and limits on its ε.

    `TradeOffGuarantee` has the same methods for claims in mu, in rho or by a curve; what both limit
    is called the level.

    Attributes:
        delta: δ of the claim, in [0, 1), as fair-coin bounds need; None of a guarantee whose level
            is not an ε.
    """

    delta: float

    def statistic(self, fn_upper: FloatArray, fp_upper: FloatArray) -> FloatArray | np.float64:
        """The level that upper limits on both error rates prove, not clipped at 0.

        Of ε the log of the larger privacy ratio (Kairouz, Oh and Viswanath 2015, Theorem 2.1).
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
        self, observed: Observed, *given: object, confidence: float
    ) -> dict[ValidBound, float]:
        """Every valid lower limit on the level from observations, by its row in the table."""
        return valid_bounds(observed, *given, delta=self.delta, confidence=confidence)

    def detectable(
        self, claimed: float, failed: Counts, *, confidence: float, power: float
    ) -> Detectable:
        """The smallest leaks for which the exact limit exceeds the claim with a given probability.

        Args:
            claimed: Claimed level.
            failed: Scored trials of both worlds; those that failed are errors.
            confidence: One-sided confidence of the limit.
            power: The probability, in (1 − confidence, 1).

        Returns:
            The leaks: of ε that of randomised response, and that of a Gaussian mechanism at δ.

        Raises:
            SettingsError: If an argument is out of range.
        """
        leak: dict[str, Any] = {
            "claim_epsilon": claimed,
            "delta": self.delta,
            "confidence": confidence,
            "power": power,
            **asdict(failed),
        }
        return Detectable(detectable_epsilon(**leak), detectable_gaussian(**leak))

    def detection_power(
        self, claimed: float, *, n_in: int, n_out: int, confidence: float, fpr: float, tpr: float
    ) -> float:
        """Probability that an attack with these rates makes the exact limit exceed the claim."""
        return detection_power(
            claim_epsilon=claimed,
            n_in=n_in,
            n_out=n_out,
            delta=self.delta,
            confidence=confidence,
            fpr=fpr,
            tpr=tpr,
        )

    def strongest(self, right: npt.ArrayLike, bound: float, *, confidence: float) -> Prefix:
        """The guesses of one training, of those in turn, that carry its bound."""
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
            The leak of randomised response on every coin; for mu and rho also that of a normal
            score of every canary.

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
        """Either error rate, both equal, of the best attack on the worst mechanism of a level."""
        # randomised response that may reveal all
        return (1.0 - self.delta) * float(scipy.special.expit(-level))

    def most_tpr(self, fpr: FloatArray, level: float) -> FloatArray:
        """Largest true-positive rates that a level allows at false-positive rates [m].

        Of ε min(1, e^ε FPR + δ, 1 − e^−ε (1 − FPR − δ)).
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
        trade_off: Its family; the level names the member.
        measures_gaussian: Whether a Gaussian leak is another mechanism than the worst, of level
            mu²/2 (Bun and Steinke 2016, Proposition 1.6).
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
        """How far both rates together are below chance.

        Not the level: a Gaussian leak has nearly the same level at every threshold, so the largest
        one would be due to chance in the trials that it was chosen on.
        """
        below: FloatArray = 1.0 - fn_upper - fp_upper
        return below

    def exact(self, counts: Counts, *, confidence: float) -> float:
        """The lower limit on the level by inverting the exact test, at least 0."""
        return level_limit(counts, self.trade_off, confidence=confidence)

    def clopper_pearson(self, counts: Counts, *, confidence: float) -> float:
        """The lower limit on the level from simultaneous limits on both error rates."""
        return level_clopper_pearson(counts, self.trade_off, confidence=confidence)

    def bounds(
        self, observed: Observed, *given: object, confidence: float
    ) -> dict[ValidBound, float]:
        """The bounds of the table that have a form for levels."""
        return valid_levels(observed, *given, trade_off=self.trade_off, confidence=confidence)

    def strongest(self, right: npt.ArrayLike, bound: float, *, confidence: float) -> Prefix:
        """The better number of guesses."""
        return strongest_level(right, self.trade_off, confidence=confidence).prefix

    def one_run_detectable(
        self, claimed: float, canaries: int, *, confidence: float, power: float
    ) -> Detectable:
        """The smallest leaks that the better number of guesses detects."""
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

        def exposed(level: float) -> bool:
            boundary = Boundary.of(self.trade_off, level, n=max(region.n_in, region.n_out))
            return boundary.rejected_at_most(region) >= power

        best = smallest(exposed, low=claimed, start=2.0 * claimed)
        shift = _gaussian_shift(region, power) if self.measures_gaussian else None
        return Detectable(best, None if shift is None else shift**2 / 2.0)

    def detection_power(
        self, claimed: float, *, n_in: int, n_out: int, confidence: float, fpr: float, tpr: float
    ) -> float:
        """Probability that these rates make the exact limit exceed the claim, by enumeration."""
        region = rejecting_region(claimed, n_in, n_out, self.trade_off, confidence)
        if region.is_empty:
            return 0.0
        return float(region.probability(np.array([fpr]), np.array([1.0 - tpr]))[0])

    def balanced_error(self, level: float) -> float:
        """Either error rate where both are equal: the trade-off function meets the diagonal."""

        def beyond(fpr: float) -> bool:
            return float(self.trade_off.least_fnr(np.array([fpr]), level)[0]) <= fpr

        return smallest(beyond, low=0.0, start=0.5)

    def most_tpr(self, fpr: FloatArray, level: float) -> FloatArray:
        """Largest true-positive rates that a level allows: 1 less the trade-off function."""
        return 1.0 - self.trade_off.least_fnr(fpr, level)


Guarantee: TypeAlias = EpsilonGuarantee | TradeOffGuarantee
"""The error rates that a claim allows of every attack; its parameter is the level."""


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


def _gaussian_shift(region: RejectionRegion, power: float) -> float:
    """The smallest shift of a normal score that is detected with this power."""

    def exposed(shift: float) -> bool:
        cuts = np.linspace(-_TAIL, shift + _TAIL, _CUTS)
        return bool(
            region.probability(scipy.special.ndtr(-cuts), scipy.special.ndtr(cuts - shift)).max()
            >= power
        )

    return smallest(exposed, low=0.0, start=1.0)
