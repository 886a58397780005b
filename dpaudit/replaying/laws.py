"""Laws of additive noise: densities, tails, and the largest privacy loss of a shift.

A step adds a linear combination of independent draws to every element. `law_of` identifies its law
(sums of Gaussians, a difference of exponentials, shares that add up to Laplace noise) or returns
None.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_EQUAL: Final = 1e-12
"""Scales equal up to this relative error, and shifts up to this share of a scale, are equal."""
_WHOLE: Final = 1e-9
"""A number this near to an integer is one."""
_TAIL: Final = 14.0
"""A tail of the discrete Gaussian is summed over this many scales; exp(-98) lies beyond."""


@dataclass(frozen=True)
class NoiseLaw(ABC):
    """The law of the noise of each element of a step, around 0.

    Attributes:
        scale: Its scale; broadcast to the elements.
    """

    name: ClassVar[str]
    whole: ClassVar[bool] = False
    """Whether it has integer values only."""
    symmetric: ClassVar[bool] = False
    """Whether the law is symmetric about 0."""

    scale: FloatArray

    @abstractmethod
    def log_density(self, noise: FloatArray) -> FloatArray:
        """Log density (or probability) of each element's noise; NaN if it is not known."""

    @abstractmethod
    def log_tail(self, noise: FloatArray, *, above: bool) -> FloatArray:
        """Log probability that it is at least this (above), or at most this; NaN if not known."""

    def cdf(self, noise: FloatArray) -> FloatArray:
        """Probability that the noise is at most this, element by element."""
        return np.asarray(np.exp(self.log_tail(noise, above=False)))

    @property
    def has_cdf(self) -> bool:
        """Whether `log_tail` and `cdf` are known, so that selections have a probability."""
        return True

    @property
    def ends(self) -> tuple[FloatArray, FloatArray]:
        """The least and the largest noise; infinite by default."""
        return np.full_like(self.scale, -np.inf), np.full_like(self.scale, np.inf)

    def place(self, scales: FloatArray) -> FloatArray:
        """The possible noise that is nearest to so many scales."""
        wanted = np.asarray(scales * self.scale)
        return np.clip(np.rint(wanted) if self.whole else wanted, *self.ends)

    def element(self, place: Any, size: int) -> NoiseLaw:
        """The law of one element of so many, or of those at an array of places."""
        fields = {
            name: np.asarray(np.broadcast_to(value, (size,))[place])
            if isinstance(value, np.ndarray)
            else value
            for name, value in vars(self).items()
        }
        return type(self)(**fields)

    def largest_loss(self, other: NoiseLaw, shift: FloatArray) -> FloatArray:
        """The largest |log P(answer | in) - log P(answer | out)| over all answers.

        Args:
            other: The law in world "out", of the same class.
            shift: The value before noise in world "in" minus that in world "out".

        Returns:
            One for each element; infinite if there is no limit, as if scales differ.
        """
        small = np.abs(shift) <= _EQUAL * self.scale
        same = self.equals(other)
        loss = np.where(small, 0.0, self._largest_loss(np.where(small, 0.0, shift)))
        return np.asarray(np.where(same, loss, np.inf))

    def _largest_loss(self, shift: FloatArray) -> FloatArray:
        """The same for one law in both worlds; without limit by default."""
        return np.full(np.shape(shift), np.inf)

    def equals(self, other: NoiseLaw) -> NDArray[np.bool_]:
        """Whether the parameters of each element agree."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        same = [np.isclose(own, its, rtol=_EQUAL, atol=0.0) for own, its in pairs]
        return np.asarray(np.all(np.broadcast_arrays(*same), axis=0))


def kind_of(law: NoiseLaw | None) -> object:
    """What two laws have in common that differ in numbers of their elements alone."""
    return type(law), getattr(law, "sign", None)


class _Symmetric(NoiseLaw):
    """A law that is symmetric about 0."""

    symmetric = True

    @abstractmethod
    def _log_above(self, noise: FloatArray) -> FloatArray:
        """Log probability that the noise is at least this, which is at least 0."""

    def log_tail(self, noise: FloatArray, *, above: bool) -> FloatArray:
        side = np.asarray(noise if above else np.negative(noise), dtype=float)
        own = self._log_above(np.abs(side))
        return np.asarray(np.where(side >= 0, own, _log_rest(own)))


class _Concave(_Symmetric):
    """A symmetric law whose log density is concave, with slope 1 / scale in the tails.

    Towards the tails the loss of a shift grows to |shift| / scale.
    """

    def _largest_loss(self, shift: FloatArray) -> FloatArray:
        return np.asarray(np.abs(shift) / self.scale)


def _log_rest(log_chance: FloatArray) -> FloatArray:
    """log(1 - exp(x))."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log1p(-np.exp(np.minimum(log_chance, 0.0))))


def _only_whole(noise: FloatArray, log_chance: FloatArray) -> FloatArray:
    return np.where(np.abs(noise - np.rint(noise)) < _WHOLE, log_chance, -np.inf)


@dataclass(frozen=True)
class Gaussian(_Symmetric):
    """N(0, scale²)."""

    name = "gaussian"

    def log_density(self, noise: FloatArray) -> FloatArray:
        return np.asarray(
            -0.5 * (noise / self.scale) ** 2 - np.log(self.scale) - 0.5 * math.log(2 * math.pi)
        )

    def _log_above(self, noise: FloatArray) -> FloatArray:
        return np.asarray(scipy.special.log_ndtr(-noise / self.scale))


@dataclass(frozen=True)
class Laplace(_Concave):
    """exp(-|z| / scale) / (2 scale)."""

    name = "laplace"

    def log_density(self, noise: FloatArray) -> FloatArray:
        return np.asarray(-np.abs(noise) / self.scale - np.log(2 * self.scale))

    def _log_above(self, noise: FloatArray) -> FloatArray:
        return np.asarray(-noise / self.scale - math.log(2))


@dataclass(frozen=True)
class Gumbel(NoiseLaw):
    """The standard Gumbel law, scaled; `sign` -1 for its mirror image."""

    name = "gumbel"
    sign: float = 1.0

    def log_density(self, noise: FloatArray) -> FloatArray:
        z = self.sign * noise / self.scale
        with np.errstate(over="ignore"):
            return np.asarray(-z - np.exp(-z) - np.log(self.scale))

    def log_tail(self, noise: FloatArray, *, above: bool) -> FloatArray:
        with np.errstate(over="ignore", divide="ignore"):
            log_below = -np.exp(-self.sign * noise / self.scale)
            if above == (self.sign < 0):
                return np.asarray(log_below)
            return np.asarray(np.log(-np.expm1(log_below)))


@dataclass(frozen=True)
class LaplaceSum(NoiseLaw):
    """A sum of Laplace draws, or of gamma draws that add up to one Laplace draw or more.

    Its loss is that of the draw of the largest scale: the others are added after it, and far out
    they no longer count. No more of the law is known here.

    Attributes:
        scale: The largest scale, of each element.
    """

    name = "sum of laplace"
    symmetric = True

    @property
    def has_cdf(self) -> bool:
        """Not known."""
        return False

    def log_density(self, noise: FloatArray) -> FloatArray:
        return np.full(np.broadcast_shapes(np.shape(noise), self.scale.shape), np.nan)

    def log_tail(self, noise: FloatArray, *, above: bool) -> FloatArray:
        return self.log_density(noise)

    def _largest_loss(self, shift: FloatArray) -> FloatArray:
        return np.asarray(np.abs(shift) / self.scale)


@dataclass(frozen=True)
class Logistic(_Concave):
    """The logistic law."""

    name = "logistic"

    def log_density(self, noise: FloatArray) -> FloatArray:
        z = np.abs(noise) / self.scale
        return np.asarray(-z - 2 * np.log1p(np.exp(-z)) - np.log(self.scale))

    def _log_above(self, noise: FloatArray) -> FloatArray:
        return np.asarray(scipy.special.log_expit(-noise / self.scale))


@dataclass(frozen=True)
class Gamma(NoiseLaw):
    """The gamma law, on one side of 0; shape 1 is the exponential law."""

    name = "gamma"
    shape: FloatArray
    sign: float = 1.0

    def log_density(self, noise: FloatArray) -> FloatArray:
        z = self.sign * noise / self.scale
        with np.errstate(divide="ignore", invalid="ignore"):
            inside = (
                (self.shape - 1) * np.log(z)
                - z
                - scipy.special.gammaln(self.shape)
                - np.log(self.scale)
            )
        return np.where(z > 0, inside, -np.inf)

    @property
    def ends(self) -> tuple[FloatArray, FloatArray]:
        return _one_sided(0.0, self.sign, self.scale)

    def log_tail(self, noise: FloatArray, *, above: bool) -> FloatArray:
        z = np.maximum(self.sign * noise / self.scale, 0.0)
        part = scipy.special.gammaincc if above == (self.sign > 0) else scipy.special.gammainc
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(part(self.shape, z)))


def _one_sided(least: float, sign: float, scale: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The ends of noise that is at least this, or at most its negative."""
    low, high = sorted((sign * least, sign * math.inf))
    return np.full_like(scale, low), np.full_like(scale, high)


class _Whole(_Symmetric):
    """A symmetric law of whole numbers; a shift by less than one has no common answers."""

    whole = True

    def log_tail(self, noise: FloatArray, *, above: bool) -> FloatArray:
        least = np.ceil((noise if above else np.negative(noise)) - _WHOLE)
        own = self._log_above(np.where(least > 0, least, 1 - least))
        return np.asarray(np.where(least > 0, own, _log_rest(own)))


@dataclass(frozen=True)
class DiscreteLaplace(_Whole):
    """P(k) in proportion to exp(-|k| / scale): the two-sided geometric law."""

    name = "discrete laplace"

    def log_density(self, noise: FloatArray) -> FloatArray:
        return _only_whole(noise, -np.abs(noise) / self.scale + np.log(np.tanh(0.5 / self.scale)))

    def _log_above(self, noise: FloatArray) -> FloatArray:
        return np.asarray(-noise / self.scale - np.log1p(np.exp(-1.0 / self.scale)))

    def _largest_loss(self, shift: FloatArray) -> FloatArray:
        apart = np.abs(shift - np.rint(shift)) > _WHOLE
        return np.asarray(np.where(apart, np.inf, np.abs(shift) / self.scale))


@dataclass(frozen=True)
class DiscreteGaussian(_Whole):
    """P(k) in proportion to exp(-k² / (2 scale²)) (Canonne, Kamath and Steinke 2020)."""

    name = "discrete gaussian"

    def _log_total(self) -> FloatArray:
        scales, back = np.unique(np.ravel(self.scale), return_inverse=True)
        totals = [np.logaddexp(0.0, math.log(2) + _log_sum(1.0, scale)) for scale in scales]
        return np.asarray(np.asarray(totals)[back].reshape(np.shape(self.scale)))

    def log_density(self, noise: FloatArray) -> FloatArray:
        return _only_whole(noise, -0.5 * (noise / self.scale) ** 2 - self._log_total())

    def _log_above(self, noise: FloatArray) -> FloatArray:
        pairs = np.stack([values.ravel() for values in np.broadcast_arrays(noise, self.scale)])
        kinds, back = np.unique(pairs, axis=1, return_inverse=True)
        sums = np.asarray([_log_sum(least, scale) for least, scale in kinds.T])
        shape = np.broadcast_shapes(np.shape(noise), np.shape(self.scale))
        return np.asarray(sums[back].reshape(shape) - self._log_total())


def _log_sum(least: float, scale: float) -> float:
    """Log of the sum of exp(-k² / (2 scale²)) over all k from `least`, at least 0, on."""
    grid = least + np.arange(math.ceil(_TAIL * scale) + 1)
    return float(scipy.special.logsumexp(-0.5 * (grid / scale) ** 2))


@dataclass(frozen=True)
class Geometric(NoiseLaw):
    """The geometric law on 1, 2, ... with success probability `shape`, on one side of 0."""

    name = "geometric"
    whole = True
    shape: FloatArray
    sign: float = 1.0

    def log_density(self, noise: FloatArray) -> FloatArray:
        k = self.sign * noise
        with np.errstate(divide="ignore"):
            value = (k - 1) * np.log1p(-self.shape) + np.log(self.shape)
        return _only_whole(noise, np.where(k > 0.5, value, -np.inf))

    @property
    def ends(self) -> tuple[FloatArray, FloatArray]:
        return _one_sided(1.0, self.sign, self.scale)

    def log_tail(self, noise: FloatArray, *, above: bool) -> FloatArray:
        k = self.sign * noise
        fails = np.log1p(-self.shape)
        if above == (self.sign > 0):
            return np.asarray(np.maximum(np.ceil(k - _WHOLE) - 1, 0.0) * fails)
        return _log_rest(np.maximum(np.floor(k + _WHOLE), 0.0) * fails)


@dataclass(frozen=True)
class BoundedLaplace(NoiseLaw):
    """Laplace noise conditional on lying between two ends, one on each side of 0."""

    name = "bounded laplace"
    low: FloatArray
    high: FloatArray

    @property
    def ends(self) -> tuple[FloatArray, FloatArray]:
        return self.low, self.high

    def log_density(self, noise: FloatArray) -> FloatArray:
        slack = _EQUAL * (self.high - self.low)
        is_inside = (noise >= self.low - slack) & (noise <= self.high + slack)
        inside = -np.abs(noise) / self.scale - np.log(self._mass * self.scale)
        return np.where(is_inside, inside, -np.inf)

    def largest_loss(self, other: NoiseLaw, shift: FloatArray) -> FloatArray:
        """As for every law: at a kink or at an end; infinite if the ends differ."""
        none = np.zeros(np.shape(shift))
        largest, moved = none, none + shift
        for point in (none, -moved, *self.ends, *(end - moved for end in other.ends)):
            inside, outside = self.log_density(point), other.log_density(point + moved)
            possible = np.isfinite(inside) | np.isfinite(outside)
            with np.errstate(invalid="ignore"):
                largest = np.maximum(largest, np.where(possible, np.abs(inside - outside), 0.0))
        if np.all(self.equals(other)):
            return np.asarray(np.where(np.abs(moved) <= _EQUAL * self.scale, 0.0, largest))
        return largest

    def log_tail(self, noise: FloatArray, *, above: bool) -> FloatArray:
        z = (noise if above else np.negative(noise)) / self.scale
        end, start = self.high / self.scale, self.low / self.scale
        if not above:
            end, start = -start, -end
        z = np.clip(z, start, end)
        beyond = np.exp(-np.maximum(z, 0.0)) * -np.expm1(np.maximum(z, 0.0) - end)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(beyond - np.expm1(np.minimum(z, 0.0))) - np.log(self._mass))

    @property
    def _mass(self) -> FloatArray:
        """The mass of exp(-|z|) between both ends."""
        return np.asarray(-np.expm1(self.low / self.scale) - np.expm1(-self.high / self.scale))


class Share(NamedTuple):
    """One draw per element of a step.

    Attributes:
        law: As `listening.marks` names it.
        factor: What the draw is multiplied by.
        scale: Its scale.
        shape: Its second parameter; of bounded Laplace noise, the lower end.
        other: Its third parameter: the upper end.
    """

    law: str
    factor: FloatArray
    scale: FloatArray
    shape: FloatArray
    other: FloatArray = np.ones(())


def law_of(shares: Sequence[Share]) -> NoiseLaw | None:
    """The law of a sum of independent draws.

    Args:
        shares: The draws, of arrays of one shape.

    Returns:
        The law; None if it is not known here, or a scale is not finite.
    """
    if not all(np.isfinite(share.factor * share.scale).all() for share in shares):
        return None
    kinds = {share.law for share in shares}
    if kinds == {"gaussian"}:
        scale = np.sqrt(sum((share.factor * share.scale) ** 2 for share in shares))
        return Gaussian(np.asarray(scale)) if np.all(scale > 0) else None
    if kinds <= {"gamma", "exponential", "laplace"}:
        return _of_gammas(shares)
    if kinds == {"geometric"} and len(shares) == 2:
        return _of_geometrics(*shares)
    if len(shares) != 1:
        return None
    (share,) = shares
    size = np.abs(share.factor) * share.scale
    if not np.all(size > 0):
        return None
    sign = _sign(share.factor)
    if share.law == "logistic":
        return Logistic(size)
    if share.law == "bounded_laplace":
        low, high = np.sort([share.factor * share.shape, share.factor * share.other], axis=0)
        known = np.all((low <= 0) & (high >= 0) & (low < high))
        return BoundedLaplace(size, low, high) if known else None
    if share.law == "gumbel" and sign is not None:
        return Gumbel(size, sign)
    if not np.all(np.abs(share.factor) == 1):
        return None  # integers times a factor
    if share.law == "discrete_laplace":
        return DiscreteLaplace(share.scale)
    if share.law == "discrete_gaussian":
        return DiscreteGaussian(share.scale)
    if share.law == "geometric" and sign is not None:
        return Geometric(share.scale, share.shape, sign)
    return None


def _of_gammas(shares: Sequence[Share]) -> NoiseLaw | None:
    """The law of gamma, exponential and Laplace draws (Laplace is a difference of exponentials).

    The shapes of draws with one scale add up.
    """
    groups: list[tuple[FloatArray, list[Share]]] = []
    for share in shares:
        size = np.abs(share.factor) * share.scale
        if not np.all(size > 0):
            return None
        alike = (own for scale, own in groups if np.allclose(size, scale, rtol=1e-12, atol=0.0))
        own = next(alike, None)
        if own is None:
            groups.append((size, [share]))
        else:
            own.append(share)
    laws = [_of_one_scale(size, own) for size, own in groups]
    if len(laws) == 1:
        return laws[0]
    if not all(isinstance(law, Laplace | LaplaceSum) for law in laws):
        return None
    return LaplaceSum(np.asarray(np.max([size for size, _ in groups], axis=0)))


def _of_one_scale(scale: FloatArray, shares: Sequence[Share]) -> NoiseLaw | None:
    """Gammas of both signs with shape 1 together are Laplace noise; with more, a sum."""
    totals: dict[float, Any] = {}
    for share in shares:
        sign = _sign(share.factor)
        signs = (1.0, -1.0) if share.law == "laplace" else (sign,)
        shape = share.shape if share.law == "gamma" else np.ones_like(share.shape)
        for own in signs:
            if own is None:
                return None
            totals[own] = totals.get(own, 0.0) + shape
    if len(totals) == 1:
        ((sign, shape),) = totals.items()
        return Gamma(scale, shape, sign)
    total = totals[1.0]
    if not np.allclose(total, totals[-1.0], rtol=1e-9) or np.any(total < 1.0 - 1e-9):
        return None
    return Laplace(scale) if np.allclose(total, 1.0, rtol=1e-9) else LaplaceSum(scale)


def _of_geometrics(first: Share, second: Share) -> NoiseLaw | None:
    """The difference of two geometric draws of one parameter is discrete Laplace noise."""
    opposite = np.all(first.factor == -second.factor) and np.all(np.abs(first.factor) == 1)
    if not opposite or not np.array_equal(first.shape, second.shape):
        return None
    return DiscreteLaplace(np.asarray(-1.0 / np.log1p(-first.shape)))


def _sign(factor: FloatArray) -> float | None:
    if np.all(factor > 0):
        return 1.0
    return -1.0 if np.all(factor < 0) else None
