"""Laws of additive noise: densities, distribution functions, and tilted draws.

A step adds a linear combination of independent draws to every element. `law_of` identifies its law
(sums of Gaussians, a difference of exponentials, shares that add up to Laplace noise) or returns
None.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_REACH: Final = 60.0
"""A discrete law is tabulated up to this many scales; exp(-60) lies beyond."""
_WIDEST_TABLE: Final = 200_000
_NEAR: Final = 1e-12
"""Below this, in units of the scale, the density of a sum equals that at 0."""
_MOST_SHARES: Final = 64
"""The law of a sum of Laplace draws of one scale is known up to this many draws."""
_MOST_SHAPE: Final = 5.0
"""For gamma draws of a fractional shape it is known up to this shape: Bessel functions overflow."""
_ROUNDED: Final = 1e-12
"""Rounding error of bounded noise beyond an end, in units of its range."""
_CELLS: Final = 401
_RARE: Final = 3.0
"""In a tilt, noise that is impossible in the other world counts with a loss larger by this much."""
_WIDEST_TAILS: Final = 2.0
"""A tilt makes the tails of Laplace noise this many times as wide at most."""
_LOST: Final = 1e-10
"""The largest relative rounding error allowed in the density of a sum."""


class Drawn(NamedTuple):
    """Drawn noise.

    Attributes:
        value: The noise.
        log_weights: log p(value) - log q(value) of each element, where q is the density it was
            drawn from.
    """

    value: FloatArray
    log_weights: FloatArray


class Tilt(NamedTuple):
    """How far drawn noise is moved towards outcomes where the worlds differ most.

    Attributes:
        shift: The value before noise in the world that is drawn from, minus that in the other.
        power: How far; 0 draws from the law itself.
        wider: How many times as wide the noise is in the other world; only laws whose tilt is one
            of the loss need it.
    """

    shift: FloatArray
    power: float
    wider: FloatArray | float = 1.0


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
    """Whether the law is continuous and symmetric about 0."""
    even_tails: ClassVar[bool] = False
    """Whether a number beyond a limit shows as much as the number itself: exponential tails."""

    scale: FloatArray

    @abstractmethod
    def log_density(self, noise: FloatArray) -> FloatArray:
        """Log density (or probability) of each element's noise."""

    @abstractmethod
    def cdf(self, noise: FloatArray) -> FloatArray:
        """Probability that the noise is at most this, element by element."""

    @abstractmethod
    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        """Draws of the noise."""

    def drawn(self, tilt: Tilt, rng: np.random.Generator) -> Drawn:
        """Noise moved along its tilt.

        Args:
            tilt: How far.
            rng: Draws.

        Returns:
            The noise, and the log weight that corrects for the tilt. Weight that moved noise cannot
            reach is lost, which only makes a bound smaller.
        """
        moved = tilt.power * tilt.shift
        if self.whole:
            moved = np.rint(moved)
        value = self.sample(rng, moved.shape) + moved
        with np.errstate(invalid="ignore"):
            ratio = self.log_density(value) - self.log_density(value - moved)
        ratio = np.where(
            np.isnan(ratio), -np.inf, ratio
        )  # such as a gamma draw that is 0 by rounding
        return Drawn(value, np.asarray(np.broadcast_to(ratio, value.shape)))

    def widened(self, times: float, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        """Noise that is this many times as wide, where the law allows it."""
        value = self.sample(rng, shape)
        return np.where(np.isfinite(self.log_density(times * value)), times * value, value)

    def element(self, place: int, size: int) -> NoiseLaw:
        """The law of one element."""
        fields = {
            name: np.asarray(np.broadcast_to(value, (size,))[place])
            if isinstance(value, np.ndarray)
            else value
            for name, value in vars(self).items()
        }
        return type(self)(**fields)

    @property
    def width(self) -> float:
        """The largest scale."""
        return float(np.max(self.scale)) if self.scale.size else 0.0

    @property
    def has_cdf(self) -> bool:
        """Whether `cdf` is known, so that selections have a probability."""
        return True


@dataclass(frozen=True)
class Gaussian(NoiseLaw):
    """N(0, scale²). Its exponential tilt is a shift."""

    name = "gaussian"
    symmetric = True

    def log_density(self, noise: FloatArray) -> FloatArray:
        return np.asarray(
            -0.5 * (noise / self.scale) ** 2 - np.log(self.scale) - 0.5 * math.log(2 * math.pi)
        )

    def cdf(self, noise: FloatArray) -> FloatArray:
        return np.asarray(special.ndtr(noise / self.scale))

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        return np.asarray(rng.standard_normal(shape) * self.scale)


@dataclass(frozen=True)
class Laplace(NoiseLaw):
    """exp(-|z| / scale) / (2 scale). Its exponential tilt has three exponential pieces."""

    name = "laplace"
    symmetric = True
    even_tails = True

    def log_density(self, noise: FloatArray) -> FloatArray:
        return np.asarray(-np.abs(noise) / self.scale - np.log(2 * self.scale))

    def cdf(self, noise: FloatArray) -> FloatArray:
        below = 0.5 * np.exp(-np.abs(noise) / self.scale)
        return np.where(noise < 0, below, 1.0 - below)

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        return np.asarray(rng.laplace(size=shape) * self.scale)

    def drawn(self, tilt: Tilt, rng: np.random.Generator) -> Drawn:
        """q(z) in proportion to p(z) (p(z) / p'(z + shift))^tilt: the exponential tilt of the loss.

        In units of the scale, with d = |shift|, z towards the side where the loss is large and r
        for 1 / wider, the loss is r |z + d| - |z| and a constant. Its slope is r + 1 between -d and
        0, and r - 1 beyond. If that is positive, the loss has no limit, and neither has its tilt:
        then the tails are at most `_WIDEST_TAILS` times as wide.
        """
        shift = tilt.shift
        gap, ratio = np.abs(shift) / self.scale, 1.0 / np.asarray(tilt.wider)
        strength = np.minimum(min(tilt.power, 50.0), _strongest(tilt.wider))
        # weights of z < -d, -d <= z < 0 and z >= 0 under exp(-|z| + strength * (loss - r d))
        slope = 1.0 + strength * (1.0 - ratio)  # beyond: exp(-|z| slope)
        rate = 1.0 + strength * (1.0 + ratio)  # between: exp(z rate)
        low, high = np.exp(-rate * gap) / slope, 1.0 / slope
        middle = -np.expm1(-rate * gap) / rate
        total = low + middle + high
        pick = rng.random(shift.shape) * total
        tail = rng.exponential(size=shift.shape) / slope
        uniform = rng.random(shift.shape)
        between = np.log(np.exp(-rate * gap) + uniform * -np.expm1(-rate * gap)) / rate
        noise = np.where(pick < low, -gap - tail, np.where(pick < low + middle, between, tail))
        loss = ratio * np.abs(noise + gap) - np.abs(noise)
        side = np.where(shift < 0, -1.0, 1.0)
        weights = np.log(total / 2.0) - strength * (loss - ratio * gap)
        return Drawn(np.asarray(side * noise * self.scale), weights)


@dataclass(frozen=True)
class Gumbel(NoiseLaw):
    """The standard Gumbel law, scaled; `sign` -1 for its mirror image."""

    name = "gumbel"
    sign: float = 1.0

    def log_density(self, noise: FloatArray) -> FloatArray:
        z = self.sign * noise / self.scale
        return np.asarray(-z - np.exp(-z) - np.log(self.scale))

    def cdf(self, noise: FloatArray) -> FloatArray:
        below = np.exp(-np.exp(-self.sign * noise / self.scale))
        return np.asarray(below if self.sign > 0 else 1.0 - below)

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        return np.asarray(self.sign * rng.gumbel(size=shape) * self.scale)


@dataclass(frozen=True)
class GammaDifference(NoiseLaw):
    """The difference of two gamma draws of one shape: the sum of `shape` Laplace draws of a scale.

    In units of the scale the density is |z|^(a - 1/2) K_(a - 1/2)(|z|) / (sqrt(pi) Gamma(a)
    2^(a - 1/2)), K being the modified Bessel function; for a whole shape that is a
    polynomial times exp(-|z|), with positive coefficients.
    """

    name = "sum of laplace"
    symmetric = True
    shape: FloatArray

    def log_density(self, noise: FloatArray) -> FloatArray:
        z, shapes = np.broadcast_arrays(np.abs(noise) / self.scale, self.shape)
        found = np.empty(z.shape)
        for shape in np.unique(shapes):
            at = shapes == shape
            found[at] = _log_gamma_difference(z[at], float(shape))
        return found - np.log(self.scale)

    @property
    def has_cdf(self) -> bool:
        return bool(np.all(self.shape == np.rint(self.shape)))

    def cdf(self, noise: FloatArray) -> FloatArray:
        """As for every law; for whole shapes only."""
        z, shapes = np.broadcast_arrays(np.abs(noise) / self.scale, self.shape)
        above = np.zeros(z.shape)
        for shape in np.unique(shapes):
            at = shapes == shape
            for power, log_factor in enumerate(_polynomial(int(shape))):
                tail = special.gammaincc(power + 1, z[at])
                above[at] += np.exp(log_factor + special.gammaln(power + 1)) * tail
        return np.where(noise < 0, above, 1.0 - above)

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        own = np.broadcast_to(self.shape, shape)
        return np.asarray((rng.gamma(own) - rng.gamma(own)) * self.scale)


def _polynomial(count: int) -> FloatArray:
    """Log coefficients of z^0, z^1, ... in the density of so many Laplace draws, over exp(-z)."""
    left = np.arange(count - 1, -1, -1)
    return np.asarray(
        special.gammaln(count + left)
        - special.gammaln(count - left)
        - special.gammaln(left + 1)
        - special.gammaln(count)
        - (count + left) * math.log(2)
    )


def _log_gamma_difference(z: FloatArray, shape: float) -> FloatArray:
    """Log density at z >= 0 of the difference of two gamma draws of scale 1."""
    if shape == np.rint(shape):
        powers = special.xlogy(np.arange(shape)[:, None], z.ravel())
        terms = _polynomial(int(shape))[:, None] + powers
        return np.asarray(special.logsumexp(terms, axis=0).reshape(z.shape) - z)
    order = shape - 0.5
    near = z < (_NEAR if shape > 1 else np.finfo(float).tiny)
    away = np.where(near, 1.0, z)
    constant = -special.gammaln(shape) - 0.5 * math.log(math.pi)
    found = order * np.log(away / 2) + np.log(special.kve(order, away)) - away + constant
    middle = math.inf if order <= 0 else special.gammaln(order) - math.log(2) + constant
    return np.where(near, middle, found)


@dataclass(frozen=True)
class LaplaceSum(NoiseLaw):
    """The sum of Laplace draws of different scales: a sum of Laplace densities (partial fractions).

    Attributes:
        scale: The largest scale, of each element.
        others: The other ones.
    """

    name = "sum of laplace"
    symmetric = True
    others: tuple[FloatArray, ...]

    @property
    def _scales(self) -> list[FloatArray]:
        return [self.scale, *self.others]

    def _terms(self) -> list[FloatArray]:
        """The factor of each Laplace density."""
        squares = [one**2 for one in self._scales]
        return [
            np.prod([own / (own - other) for other in squares if other is not own], axis=0)
            for own in squares
        ]

    @property
    def lost(self) -> float:
        """The relative rounding error of the density at 0, where it is largest."""
        parts = [term / scale for term, scale in zip(self._terms(), self._scales, strict=True)]
        sizes = np.sum(np.abs(parts), axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = 8.0 * len(parts) * np.finfo(float).eps * sizes / np.abs(np.sum(parts, axis=0))
        return float(np.max(np.nan_to_num(found, nan=np.inf), initial=0.0))

    def log_density(self, noise: FloatArray) -> FloatArray:
        far = np.abs(noise)
        found = sum(
            term / (2 * scale) * np.exp(-far * (1 / scale - 1 / self.scale))
            for term, scale in zip(self._terms(), self._scales, strict=True)
        )
        return np.asarray(np.log(found) - far / self.scale)

    def cdf(self, noise: FloatArray) -> FloatArray:
        far = np.abs(noise)
        above = sum(
            term / 2 * np.exp(-far / scale)
            for term, scale in zip(self._terms(), self._scales, strict=True)
        )
        return np.where(noise < 0, above, 1.0 - above)

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        return np.asarray(sum(rng.laplace(size=shape) * scale for scale in self._scales))

    def element(self, place: int, size: int) -> LaplaceSum:
        scale, *others = (np.asarray(np.broadcast_to(one, (size,))[place]) for one in self._scales)
        return LaplaceSum(scale, tuple(others))


@dataclass(frozen=True)
class Logistic(NoiseLaw):
    """The logistic law."""

    name = "logistic"
    symmetric = True

    def log_density(self, noise: FloatArray) -> FloatArray:
        return np.asarray(stats.logistic.logpdf(noise, scale=self.scale))

    def cdf(self, noise: FloatArray) -> FloatArray:
        return np.asarray(special.expit(noise / self.scale))

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        return np.asarray(rng.logistic(size=shape) * self.scale)


class _OneSided(NoiseLaw):
    """A law on one side of 0: of two values before noise, one has answers that the other has not.

    Attributes:
        sign: -1 if the noise lies below 0.
    """

    sign: float

    @abstractmethod
    def _below(self, reach: FloatArray, rng: np.random.Generator) -> Drawn:
        """Sizes of noise that the other world lacks, up to this one, and their log probability."""

    def drawn(self, tilt: Tilt, rng: np.random.Generator) -> Drawn:
        """Draws what is impossible in the other world, where there is such noise."""
        made = super().drawn(tilt, rng)
        reach = np.maximum(-self.sign * tilt.shift, 0.0)
        if tilt.power == 0 or not np.any(reach):
            return made
        alone = self._below(reach, rng)
        return Drawn(
            np.where(reach > 0, self.sign * alone.value, made.value),
            np.where(reach > 0, alone.log_weights, made.log_weights),
        )


@dataclass(frozen=True)
class Gamma(_OneSided):
    """The gamma law, on one side of 0; shape 1 is the exponential law."""

    name = "gamma"
    shape: FloatArray
    sign: float = 1.0

    def _below(self, reach: FloatArray, rng: np.random.Generator) -> Drawn:
        share = special.gammainc(self.shape, reach / self.scale)
        sizes = special.gammaincinv(self.shape, rng.random(reach.shape) * share) * self.scale
        with np.errstate(divide="ignore"):
            return Drawn(np.asarray(sizes), np.log(share))

    def log_density(self, noise: FloatArray) -> FloatArray:
        z = self.sign * noise / self.scale
        with np.errstate(divide="ignore", invalid="ignore"):
            inside = (
                (self.shape - 1) * np.log(z) - z - special.gammaln(self.shape) - np.log(self.scale)
            )
        return np.where(z > 0, inside, -np.inf)

    def cdf(self, noise: FloatArray) -> FloatArray:
        z = np.maximum(self.sign * noise / self.scale, 0.0)
        below = special.gammainc(self.shape, z)
        return np.asarray(below if self.sign > 0 else 1.0 - below)

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        return np.asarray(self.sign * rng.gamma(np.broadcast_to(self.shape, shape)) * self.scale)


class _Tabulated(NoiseLaw):
    """A law of whole numbers, tilted by a table of its probabilities."""

    whole = True

    def drawn(self, tilt: Tilt, rng: np.random.Generator) -> Drawn:
        reach = math.ceil(_REACH * self.width + float(np.max(np.abs(tilt.shift), initial=0.0)))
        if 2 * reach + 1 > _WIDEST_TABLE or tilt.shift.size > 10_000:
            return super().drawn(tilt, rng)
        grid = np.arange(-reach, reach + 1, dtype=float)

        def alike(count: int, moved: float, scale: float, ratio: float) -> Drawn:
            law, other = type(self)(np.asarray(scale)), type(self)(np.asarray(scale * ratio))
            log_p = law.log_density(grid)
            strength = min(tilt.power, _strongest(ratio**2))  # the square: also for Gaussian tails
            log_q = log_p + strength * (log_p - other.log_density(grid + moved))
            weights = np.exp(log_q - np.max(log_q))
            weights /= weights.sum()
            found = rng.choice(len(grid), size=count, p=weights)
            return Drawn(grid[found], log_p[found] - np.log(weights[found]))

        return _each_kind(alike, np.rint(tilt.shift), self.scale, tilt.wider)


@dataclass(frozen=True)
class DiscreteLaplace(_Tabulated):
    """P(k) in proportion to exp(-|k| / scale): the two-sided geometric law."""

    name = "discrete laplace"
    even_tails = True

    def log_density(self, noise: FloatArray) -> FloatArray:
        value = -np.abs(noise) / self.scale + np.log(np.tanh(0.5 / self.scale))
        return np.where(np.abs(noise - np.rint(noise)) < 1e-9, value, -np.inf)

    def cdf(self, noise: FloatArray) -> FloatArray:
        k, ratio = np.floor(noise + 1e-9), np.exp(-1.0 / self.scale)
        low = ratio ** -np.minimum(k, 0.0) / (1 + ratio)
        high = 1.0 - ratio ** (np.maximum(k, 0.0) + 1) / (1 + ratio)
        return np.asarray(np.where(k < 0, low, high))

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        p = np.broadcast_to(-np.expm1(-1.0 / self.scale), shape)
        return np.asarray(rng.geometric(p) - rng.geometric(p), dtype=float)


@dataclass(frozen=True)
class DiscreteGaussian(_Tabulated):
    """P(k) in proportion to exp(-k² / (2 scale²)) (Canonne, Kamath and Steinke 2020)."""

    name = "discrete gaussian"

    def _log_total(self) -> FloatArray:
        scales, back = np.unique(np.ravel(self.scale), return_inverse=True)
        totals = [
            math.log(float(np.sum(np.exp(-0.5 * (_whole(scale) / scale) ** 2)))) for scale in scales
        ]
        return np.asarray(np.asarray(totals)[back].reshape(np.shape(self.scale)))

    def log_density(self, noise: FloatArray) -> FloatArray:
        value = -0.5 * (noise / self.scale) ** 2 - self._log_total()
        return np.where(np.abs(noise - np.rint(noise)) < 1e-9, value, -np.inf)

    def cdf(self, noise: FloatArray) -> FloatArray:
        grid = _whole(self.width)
        found = np.empty(np.shape(noise))
        scales = np.broadcast_to(self.scale, np.shape(noise))
        for place in np.ndindex(*np.shape(noise)):
            mass = np.exp(-0.5 * (grid / scales[place]) ** 2)
            found[place] = mass[grid <= noise[place] + 1e-9].sum() / mass.sum()
        return found

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        scales, found = np.broadcast_to(self.scale, shape), np.empty(shape)
        for scale in np.unique(scales):
            mass = np.exp(-0.5 * (_whole(scale) / scale) ** 2)
            at = scales == scale
            found[at] = rng.choice(_whole(scale), size=int(at.sum()), p=mass / mass.sum())
        return found


def _whole(scale: float) -> FloatArray:
    reach = math.ceil(12.0 * float(scale)) + 1
    return np.arange(-reach, reach + 1, dtype=float)


@dataclass(frozen=True)
class Geometric(_OneSided):
    """The geometric law on 1, 2, ... with success probability `shape`, on one side of 0."""

    name = "geometric"
    whole = True
    even_tails = True
    shape: FloatArray
    sign: float = 1.0

    def _below(self, reach: FloatArray, rng: np.random.Generator) -> Drawn:
        fails = np.log1p(-self.shape)
        share = -np.expm1(np.floor(reach) * fails)
        sizes = np.ceil(np.log1p(-rng.random(reach.shape) * share) / fails)
        with np.errstate(divide="ignore"):
            return Drawn(np.maximum(sizes, 1.0), np.log(share))

    def log_density(self, noise: FloatArray) -> FloatArray:
        k = self.sign * noise
        with np.errstate(divide="ignore"):
            value = (k - 1) * np.log1p(-self.shape) + np.log(self.shape)
        return np.where((k >= 1) & (np.abs(k - np.rint(k)) < 1e-9), value, -np.inf)

    def cdf(self, noise: FloatArray) -> FloatArray:
        k = np.floor(self.sign * noise + 1e-9)
        below = 1.0 - (1.0 - self.shape) ** np.maximum(k, 0.0)
        return np.asarray(below if self.sign > 0 else 1.0 - below)

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        return np.asarray(
            self.sign * rng.geometric(np.broadcast_to(self.shape, shape)), dtype=float
        )


@dataclass(frozen=True)
class Staircase(NoiseLaw):
    """The staircase law (Geng and Viswanath 2014); `scale` is its sensitivity."""

    name = "staircase"
    epsilon: float = 1.0
    gamma: float = 0.5

    def log_density(self, noise: FloatArray) -> FloatArray:
        b = math.exp(-self.epsilon)
        top = (1 - b) / (2 * self.scale * (self.gamma + b * (1 - self.gamma)))
        z = np.abs(noise) / self.scale
        step = np.floor(z) + (z - np.floor(z) >= self.gamma)
        return np.asarray(np.log(top) - self.epsilon * step)

    def cdf(self, noise: FloatArray) -> FloatArray:
        z = np.abs(noise) / self.scale
        b, level = math.exp(-self.epsilon), np.floor(z)
        whole = self.gamma + b * (1 - self.gamma)  # of a level's mass, in units of its first step
        inner = np.minimum(z - level, self.gamma) + b * np.maximum(z - level - self.gamma, 0.0)
        inside = 1.0 - b**level + (1 - b) * b**level * inner / whole  # chance of |noise| below z
        return np.asarray(np.where(noise < 0, 0.5 - inside / 2, 0.5 + inside / 2))

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        b = math.exp(-self.epsilon)
        sign = rng.integers(0, 2, size=shape) * 2 - 1
        level = rng.geometric(1 - b, size=shape) - 1
        inner = rng.random(shape) < self.gamma / (self.gamma + (1 - self.gamma) * b)
        place = rng.random(shape)
        z = np.where(
            inner, level + self.gamma * place, level + self.gamma + (1 - self.gamma) * place
        )
        return np.asarray(sign * z * self.scale)


class Bounded(NoiseLaw):
    """A law of bounded noise, with no mass beyond its ends."""

    @property
    @abstractmethod
    def ends(self) -> tuple[FloatArray, FloatArray]:
        """The least and the largest noise."""

    def is_inside(self, noise: FloatArray) -> NDArray[np.bool_]:
        """Whether this noise can occur, up to rounding."""
        low, high = self.ends
        slack = _ROUNDED * (high - low)
        return np.asarray((noise >= low - slack) & (noise <= high + slack))

    def drawn(self, tilt: Tilt, rng: np.random.Generator) -> Drawn:
        """Draws from p (p / p')^power on cells; noise impossible in the other world is rare."""
        if tilt.power == 0:
            return super().drawn(tilt, rng)

        def alike(count: int, moved: float, *fields: float) -> Drawn:
            law = type(self)(*(np.asarray(one) for one in fields))
            return law._drawn_alike(count, moved, tilt.power, rng)

        return _each_kind(alike, tilt.shift, *vars(self).values())

    def _drawn_alike(
        self, count: int, moved: float, power: float, rng: np.random.Generator
    ) -> Drawn:
        low, high = (float(end) for end in self.ends)
        kinks = np.array([0.0, -moved, low - moved, high - moved])
        edges = np.unique(np.clip([*np.linspace(low, high, _CELLS), *kinks], low, high))
        middles, widths = 0.5 * (edges[1:] + edges[:-1]), np.diff(edges)
        log_p = self.log_density(middles)
        most = abs(moved) / float(self.scale) + _RARE
        gain = np.minimum(log_p - self.log_density(middles + moved), most)
        heights = np.exp(log_p + power * gain - np.max(log_p + power * gain))
        chances = heights * widths / np.sum(heights * widths)
        cells = rng.choice(len(widths), size=count, p=chances)
        found = edges[cells] + rng.random(count) * widths[cells]
        return Drawn(found, self.log_density(found) - np.log(chances[cells] / widths[cells]))


@dataclass(frozen=True)
class Uniform(Bounded):
    """The uniform law from -scale to scale."""

    name = "uniform"
    symmetric = True

    @property
    def ends(self) -> tuple[FloatArray, FloatArray]:
        return -self.scale, self.scale

    def log_density(self, noise: FloatArray) -> FloatArray:
        return np.where(self.is_inside(noise), -np.log(2 * self.scale), -np.inf)

    def cdf(self, noise: FloatArray) -> FloatArray:
        return np.asarray(np.clip(0.5 + 0.5 * noise / self.scale, 0.0, 1.0))

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        return np.asarray(rng.uniform(-1.0, 1.0, size=shape) * self.scale)


@dataclass(frozen=True)
class BoundedLaplace(Bounded):
    """Laplace noise conditional on lying between two ends, one on each side of 0."""

    name = "bounded laplace"
    low: FloatArray
    high: FloatArray

    @property
    def ends(self) -> tuple[FloatArray, FloatArray]:
        return self.low, self.high

    def log_density(self, noise: FloatArray) -> FloatArray:
        mass = -np.expm1(self.low / self.scale) - np.expm1(-self.high / self.scale)
        inside = -np.abs(noise) / self.scale - np.log(mass * self.scale)
        return np.where(self.is_inside(noise), inside, -np.inf)

    def cdf(self, noise: FloatArray) -> FloatArray:
        plain = Laplace(self.scale)
        below = plain.cdf(self.low)
        share = (plain.cdf(noise) - below) / (plain.cdf(self.high) - below)
        return np.asarray(np.clip(share, 0.0, 1.0))

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        below, above = -np.expm1(self.low / self.scale), -np.expm1(-self.high / self.scale)
        positive = rng.random(shape) * (below + above) < above
        far = -np.log1p(-rng.random(shape) * np.where(positive, above, below))
        return np.asarray(np.where(positive, far, -far) * self.scale)


class Share(NamedTuple):
    """One draw per element of a step.

    Attributes:
        law: As `listening.marks` names it.
        factor: What the draw is multiplied by.
        scale: Its scale.
        shape: Its second parameter; of bounded Laplace noise, the lower end.
        other: Its third parameter: the upper end; of staircase noise, gamma.
    """

    law: str
    factor: FloatArray
    scale: FloatArray
    shape: FloatArray
    other: FloatArray = np.ones(())


def _each_kind(
    alike: Callable[..., Drawn], shift: FloatArray, *others: FloatArray | float
) -> Drawn:
    """Noise of many elements; those that move alike, by a law of the same fields, in one draw.

    Args:
        alike: Draws so many of one kind, given its move and its fields.
        shift: How far each element moves.
        others: The fields, broadcast to the elements.
    """
    fields = [np.broadcast_to(one, shift.shape).ravel() for one in (shift, *others)]
    kinds, back = np.unique(np.stack(fields), axis=1, return_inverse=True)
    values, log_weights = np.empty(shift.size), np.empty(shift.size)
    for kind, given in enumerate(kinds.T):
        at = np.flatnonzero(back.ravel() == kind)
        values[at], log_weights[at] = alike(len(at), *given)
    return Drawn(values.reshape(shift.shape), log_weights.reshape(shift.shape))


def _strongest(wider: FloatArray | float) -> Any:
    """The tilt that makes tails `_WIDEST_TAILS` times as wide, where they are wider than others."""
    return (1.0 - 1.0 / _WIDEST_TAILS) / np.maximum(1.0 / np.asarray(wider) - 1.0, 1e-9)


def law_of(shares: Sequence[Share]) -> NoiseLaw | None:
    """The law of a sum of independent draws.

    Args:
        shares: The draws, of arrays of one shape.

    Returns:
        The law; None if it is not known here.
    """
    kinds = {share.law for share in shares}
    if kinds == {"gaussian"}:
        return Gaussian(np.sqrt(sum((one.factor * one.scale) ** 2 for one in shares)))
    if kinds <= {"gamma", "exponential", "laplace"}:
        return _of_gammas(shares)
    if kinds == {"geometric"} and len(shares) == 2:
        return _of_geometrics(*shares)
    if len(shares) != 1:
        return None
    (one,) = shares
    size = np.abs(one.factor) * one.scale
    if not np.all(size > 0):
        return None
    sign = _sign(one.factor)
    if one.law == "logistic":
        return Logistic(size)
    if one.law == "uniform":
        return Uniform(size)
    if one.law == "bounded_laplace":
        ends = np.sort([one.factor * one.shape, one.factor * one.other], axis=0)
        return BoundedLaplace(size, ends[0], ends[1]) if np.all(ends[0] < ends[1]) else None
    if one.law == "gumbel" and sign is not None:
        return Gumbel(size, sign)
    if not np.all(np.abs(one.factor) == 1):
        return None  # integers times a factor
    if one.law == "discrete_laplace":
        return DiscreteLaplace(one.scale)
    if one.law == "discrete_gaussian":
        return DiscreteGaussian(one.scale)
    if one.law == "geometric" and sign is not None:
        return Geometric(one.scale, one.shape, sign)
    if one.law == "staircase" and np.ptp(one.shape) == 0 and np.ptp(one.other) == 0:
        return Staircase(one.scale, float(np.max(one.shape)), float(np.max(one.other)))
    return None


def _of_gammas(shares: Sequence[Share]) -> NoiseLaw | None:
    """The law of gamma, exponential and Laplace draws (Laplace is a difference of exponentials).

    The shapes of draws with one scale add up. Sums of several scales are known if the draws of each
    scale form one Laplace draw.
    """
    groups: list[tuple[FloatArray, list[Share]]] = []
    for one in shares:
        size = np.abs(one.factor) * one.scale
        if not np.all(size > 0):
            return None
        alike = (own for scale, own in groups if np.allclose(size, scale, rtol=1e-12, atol=0.0))
        own = next(alike, None)
        if own is None:
            groups.append((size, [one]))
        else:
            own.append(one)
    laws = [_of_one_scale(size, own) for size, own in groups]
    if len(laws) == 1:
        return laws[0]
    if not all(isinstance(law, Laplace) for law in laws):
        return None
    scales = np.sort([size for size, _ in groups], axis=0)[::-1]
    if np.any(scales[1:] == scales[:-1]):
        return None
    found = LaplaceSum(scales[0], tuple(scales[1:]))
    return found if found.lost < _LOST else None


def _of_one_scale(scale: FloatArray, shares: Sequence[Share]) -> NoiseLaw | None:
    """Gammas of both signs with equal shapes are Laplace noise, or a sum of Laplace draws."""
    totals: dict[float, Any] = {}
    for one in shares:
        sign = _sign(one.factor)
        signs = (1.0, -1.0) if one.law == "laplace" else (sign,)
        shape = one.shape if one.law == "gamma" else np.ones_like(one.shape)
        for own in signs:
            if own is None:
                return None
            totals[own] = totals.get(own, 0.0) + shape
    if len(totals) == 1:
        ((sign, shape),) = totals.items()
        return Gamma(scale, shape, sign)
    total = totals[1.0]
    if not np.allclose(total, totals[-1.0], rtol=1e-9):
        return None
    whole = np.rint(total)
    if np.allclose(total, whole, rtol=1e-9) and np.all(whole >= 1):
        if np.all(whole == 1):
            return Laplace(scale)
        return GammaDifference(scale, whole) if np.max(whole) <= _MOST_SHARES else None
    return GammaDifference(scale, total) if np.max(total) <= _MOST_SHAPE else None


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
