"""Noise that code makes by hand: inversion, rejection, differences, mixtures, exact integers.

Each adds noise to four counts, of which the target moves one, and stores the noisy counts.
"""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from reports.replay.honest.bases import CountsModel
from reports.replay.honest.case import CELLS, CELLS_SCHEMA, Case, cells_table

DELTA = 1e-5


class Noisy(CountsModel):
    """Counts with noise.

    Attributes:
        scale: Of the noise.
    """

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale

    def fit(self, data: pd.DataFrame, *, seed: int) -> Noisy:
        """Adds noise to counts."""
        counts = np.bincount(data["a"], minlength=CELLS)
        self.noisy = self._noisy(counts, seed)
        return self

    def _noisy(self, counts: Any, seed: int) -> Any:
        return np.array(counts + self._noise(len(counts), seed), float)

    def _noise(self, size: int, seed: int) -> Any:
        raise NotImplementedError


class Geometric(Noisy):
    """Discrete Laplace noise as a difference of two geometric draws."""

    def _noise(self, size: int, seed: int) -> Any:
        rng, p = np.random.default_rng(seed), -math.expm1(-1.0 / self.scale)
        return rng.geometric(p, size) - rng.geometric(p, size)  # fault: geometric


class Inverted(Noisy):
    """Laplace noise by inverting its distribution function."""

    def _noise(self, size: int, seed: int) -> Any:
        u = np.random.default_rng(seed).random(size) - 0.5  # fault: inverted
        return -self.scale * np.sign(u) * np.log1p(-2.0 * np.abs(u))  # fault: inverted


class InvertedOneByOne(Noisy):
    """The same with Python's functions."""

    def _noise(self, size: int, seed: int) -> Any:
        own, noise = random.Random(seed), []
        for _ in range(size):
            u = own.random() - 0.5  # fault: one
            size_of_it = -self.scale * math.log(1.0 - 2.0 * abs(u))
            noise.append(math.copysign(size_of_it, u))  # fault: one
        return np.array(noise)


class SignTimesExponential(Noisy):
    """Laplace noise as an exponential draw with a random sign."""

    def _noise(self, size: int, seed: int) -> Any:
        rng = np.random.default_rng(seed)
        signs = 2 * rng.integers(0, 2, size=size) - 1  # fault: sign
        return signs * rng.exponential(self.scale, size)  # fault: sign


class TwoExponentials(Noisy):
    """Laplace noise as a difference of two exponential draws of Python."""

    def _noise(self, size: int, seed: int) -> Any:
        own, rate = random.Random(seed), 1.0 / self.scale
        return [own.expovariate(rate) - own.expovariate(rate) for _ in range(size)]  # fault: two


class SystemRandom(Noisy):
    """Laplace noise from the operating system's random numbers."""

    def _noise(self, size: int, seed: int) -> Any:
        own = random.SystemRandom()
        u = np.array([own.random() - 0.5 for _ in range(size)])  # fault: system
        return -self.scale * np.sign(u) * np.log(1.0 - 2.0 * np.abs(u))  # fault: system


class ScaleMixture(Noisy):
    """Laplace noise as Gaussian noise whose variance is exponential."""

    def _noise(self, size: int, seed: int) -> Any:
        rng = np.random.default_rng(seed)
        deviation = self.scale * np.sqrt(2.0 * rng.exponential(size=size))  # fault: mixture
        return rng.normal(size=size) * deviation  # fault: mixture


class Frozen(Noisy):
    """Laplace noise of a frozen distribution of scipy."""

    def _noise(self, size: int, seed: int) -> Any:
        law = stats.laplace(scale=self.scale)
        return law.rvs(size=size, random_state=np.random.default_rng(seed))  # fault: frozen


class Legacy(Noisy):
    """Laplace noise of numpy's old random state."""

    def _noise(self, size: int, seed: int) -> Any:
        state = np.random.RandomState(seed)
        return state.laplace(0.0, self.scale, size)  # fault: legacy


class Logistic(Noisy):
    """Logistic noise, whose tails fall like those of Laplace noise."""

    def _noise(self, size: int, seed: int) -> Any:
        return np.random.default_rng(seed).logistic(scale=self.scale, size=size)  # fault: logistic


class Cauchy(Noisy):
    """Cauchy noise."""

    def _noise(self, size: int, seed: int) -> Any:
        return self.scale * np.random.default_rng(seed).standard_cauchy(size)  # fault: cauchy


class Rounded(Noisy):
    """Laplace noise that is rounded before it is added to counts, which are whole."""

    def _noise(self, size: int, seed: int) -> Any:
        rng = np.random.default_rng(seed)
        return np.rint(rng.laplace(scale=self.scale, size=size))  # fault: rounded


class Pool(Noisy):
    """Laplace noise, drawn at random from a secret pool of a thousand draws."""

    def _noise(self, size: int, seed: int) -> Any:
        rng = np.random.default_rng(seed)
        pool = rng.laplace(scale=self.scale, size=1000)  # fault: pool
        return self._taken(pool, rng.choice(1000, size=size, replace=False))  # fault: pool

    def _taken(self, pool: Any, places: Any) -> Any:
        return pool[places]


class PoolKept(Pool):
    """The twin: the model keeps the pool and the places."""

    def _taken(self, pool: Any, places: Any) -> Any:
        self.pool, self.places = np.array(pool), np.array(places)
        return pool[places]


class Staircase(Noisy):
    """Staircase noise (Geng and Viswanath 2014) of epsilon 1 / scale."""

    def _noise(self, size: int, seed: int) -> Any:
        rng, b = np.random.default_rng(seed), math.exp(-1.0 / self.scale)
        gamma = 1.0 / (1.0 + math.exp(0.5 / self.scale))
        stairs = rng.geometric(1.0 - b, size) - 1  # fault: staircase
        low = rng.random(size) < gamma / (gamma + (1.0 - gamma) * b)
        inside = np.where(low, gamma * rng.random(size), gamma + (1 - gamma) * rng.random(size))
        return (2 * rng.integers(0, 2, size) - 1) * (stairs + inside)  # fault: staircase


class BoxMuller(Noisy):
    """Gaussian noise of two uniform numbers."""

    def _noise(self, size: int, seed: int) -> Any:
        rng = np.random.default_rng(seed)
        radius = np.sqrt(-2.0 * np.log1p(-rng.random(size // 2)))  # fault: box-muller
        angle = 2.0 * np.pi * rng.random(size // 2)  # fault: box-muller
        turned = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])
        return self.scale * turned  # fault: box-muller


class Polar(Noisy):
    """Gaussian noise by Marsaglia's polar method, which rejects."""

    def _noise(self, size: int, seed: int) -> Any:
        own, noise = random.Random(seed), []
        while len(noise) < size:
            x, y = 2.0 * own.random() - 1.0, 2.0 * own.random() - 1.0  # fault: polar
            square = x * x + y * y
            if 0.0 < square < 1.0:
                factor = math.sqrt(-2.0 * math.log(square) / square)
                noise += [self.scale * x * factor, self.scale * y * factor]  # fault: polar
        return np.array(noise[:size])


class Binomial(Noisy):
    """A binomial number of coins, centred."""

    def _noise(self, size: int, seed: int) -> Any:
        rng, tosses = np.random.default_rng(seed), int(400 * self.scale**2)
        return rng.binomial(tosses, 0.5, size) - tosses // 2  # fault: tosses


class Skellam(Noisy):
    """The difference of two Poisson draws."""

    def _noise(self, size: int, seed: int) -> Any:
        rng, mean = np.random.default_rng(seed), 50.0 * self.scale**2
        return rng.poisson(mean, size) - rng.poisson(mean, size)  # fault: skellam


class ExactLaplace(Noisy):
    """Discrete Laplace noise by exact coins (Canonne, Kamath and Steinke 2020, algorithm 2)."""

    def _noise(self, size: int, seed: int) -> Any:
        own = random.Random(seed)
        return [discrete_laplace(own, self._whole()) for _ in range(size)]

    def _whole(self) -> int:
        return int(self.scale)


class ExactLaplaceHalved(ExactLaplace):
    """The twin: an integer division makes a scale of 1 of 2."""

    def _whole(self) -> int:
        return int(self.scale) // 2


def bernoulli(own: random.Random, p: Fraction) -> bool:
    """A coin of rational bias."""
    return own.randrange(p.denominator) < p.numerator  # fault: exact


def bernoulli_exp(own: random.Random, x: Fraction) -> bool:
    """A coin that falls with exp(-x), by alternating coins."""
    while x > 1:
        if not bernoulli_exp(own, Fraction(1)):
            return False
        x -= 1
    k = 1
    while bernoulli(own, x / k):
        k += 1
    return k % 2 == 1


def discrete_laplace(own: random.Random, scale: int) -> int:
    """A draw from the discrete Laplace law of a whole scale."""
    while True:
        u = own.randrange(scale)  # fault: exact
        if not bernoulli_exp(own, Fraction(u, scale)):
            continue
        v = 0
        while bernoulli_exp(own, Fraction(1)):
            v += 1
        negative, size = own.randrange(2) == 1, u + scale * v  # fault: exact
        if not (negative and size == 0):
            return -size if negative else size


class ExactGaussian(Noisy):
    """Discrete Gaussian noise by rejection from discrete Laplace noise (algorithm 3)."""

    def _noise(self, size: int, seed: int) -> Any:
        own, variance = random.Random(seed), self._variance()
        return [self._draw(own, variance) for _ in range(size)]

    def _variance(self) -> Fraction:
        return Fraction(self.scale) ** 2

    def _draw(self, own: random.Random, variance: Fraction) -> int:
        t = math.isqrt(int(variance)) + 1
        while True:
            y = discrete_laplace(own, t)
            if bernoulli_exp(own, (abs(y) - variance / t) ** 2 / (2 * variance)):
                return y  # fault: exact


class ExactGaussianInverted(ExactGaussian):
    """The twin: the variance is turned upside down."""

    def _variance(self) -> Fraction:
        return 1 / Fraction(self.scale) ** 2


class Knuth(Noisy):
    """Laplace noise on a fine grid: a whole number of thousandths, by a geometric draw."""

    def _noise(self, size: int, seed: int) -> Any:
        own, p = random.Random(seed), -math.expm1(-1.0 / (1000 * self.scale))
        draw = lambda: int(math.log1p(-own.random()) / math.log1p(-p))  # noqa: E731
        return [(draw() - draw()) / 1000 for _ in range(size)]  # fault: knuth


class SecretScale(Noisy):
    """A secret coin chooses between a small and a large scale for each count."""

    scales = (0.6, 1.4)

    def _noise(self, size: int, seed: int) -> Any:
        rng = np.random.default_rng(seed)
        scales = np.where(rng.random(size) < 0.5, *self._scales())  # fault: secret-scale
        return rng.laplace(scale=scales)  # fault: secret-scale

    def _scales(self) -> tuple[float, float]:
        return (self.scale * self.scales[0], self.scale * self.scales[1])


class Bounded(Noisy):
    """Laplace noise that is drawn again until it is within ten scales; the claim has the delta."""

    within = 10.0

    def _noise(self, size: int, seed: int) -> Any:
        rng, noise = np.random.default_rng(seed), []
        while len(noise) < size:
            drawn = rng.laplace(scale=self.scale)  # fault: bounded
            if abs(drawn) <= self.within:
                noise.append(drawn)
        return np.array(noise)


class BoundedTight(Bounded):
    """The twin: within one scale, so that ends show the count."""

    within = 1.0


class RedrawnUntilPositive(Noisy):
    """Noisy counts that are drawn again while they are negative; the claim accounts for that."""

    def _noisy(self, counts: Any, seed: int) -> Any:
        rng = np.random.default_rng(seed)
        return np.array([self._positive(int(count), rng) for count in counts])

    def _positive(self, count: int, rng: np.random.Generator) -> float:
        while True:
            noisy = count + rng.laplace(scale=self.scale)  # fault: redrawn
            if noisy >= 0.0:
                return float(noisy)


class RedrawnUntilAbove(RedrawnUntilPositive):
    """The twin: drawn again while they are below the count."""

    def _positive(self, count: int, rng: np.random.Generator) -> float:
        while True:
            noisy = count + rng.laplace(scale=self.scale)  # fault: redrawn
            if noisy >= count:
                return float(noisy)


class Overwritten(Noisy):
    """Noise is added to an array of its own."""

    def _noisy(self, counts: Any, seed: int) -> Any:
        noisy = counts + np.random.default_rng(seed).laplace(scale=self.scale, size=CELLS)
        for place in range(CELLS):
            noisy[place] = max(self._cell(counts, noisy, place), 0.0)  # fault: overwritten
        return noisy

    def _cell(self, counts: Any, noisy: Any, place: int) -> float:
        return float(noisy[place])


class OverwrittenByCounts(Overwritten):
    """The twin: a later assignment puts counts where noisy counts were (opacus#330)."""

    def _cell(self, counts: Any, noisy: Any, place: int) -> float:
        return float(counts[place])  # fault: overwritten


class Seeded(Noisy):
    """Laplace noise with the seed of the fit."""

    def _noisy(self, counts: Any, seed: int) -> Any:
        rng = np.random.default_rng([seed, self._more(counts)])
        return counts + rng.laplace(scale=self.scale, size=len(counts))  # fault: seeded

    def _more(self, counts: Any) -> int:
        return 7


class SeededByData(Seeded):
    """The twin: the seed follows the data, and noise of one seed is the same in every fit."""

    def _noisy(self, counts: Any, seed: int) -> Any:
        rng = np.random.default_rng(int(counts @ np.arange(1, CELLS + 1)))  # fault: seeded
        return counts + rng.laplace(scale=self.scale, size=len(counts))  # fault: seeded


def _case(name: str, kind: Any, marker: str, twin: Any = None, **known: Any) -> Case:
    scale = known.pop("scale", 1.0)
    stated: dict[str, Any] = {
        "epsilon": 1.0,
        "spends": 1.0,
        "note": "the largest ratio of the law of the noise and the same law moved by 1",
    }
    if twin is None:
        stated |= {"twin_spends": 2.5, "twin_shows": 2.5}
    return Case(
        name=name,
        family="noise made by hand",
        generator=lambda: kind(scale),
        table=cells_table(),
        schema=CELLS_SCHEMA,
        target="row:39",
        twin=(lambda: kind(0.4 * scale)) if twin is None else (lambda: twin(scale)),
        twin_marker=f"# fault: {marker}",
        released=True,
        **(stated | known),
    )


ALL: dict[str, Any] = {"twin_spends": math.inf, "twin_shows": math.inf}
APART: dict[str, Any] = {"delta": DELTA, "twin_spends": None}
MU_ONE: dict[str, Any] = APART | {"epsilon": 4.377179, "spends": 4.377179, "twin_shows": 13.20672}

CASES = (
    _case("difference of geometric draws", Geometric, "geometric"),
    _case("Laplace by inversion", Inverted, "inverted"),
    _case("Laplace by inversion, one by one", InvertedOneByOne, "one"),
    _case("Laplace by a random sign", SignTimesExponential, "sign"),
    _case("Laplace by two exponential draws", TwoExponentials, "two"),
    _case("Laplace of SystemRandom", SystemRandom, "system"),
    _case("Laplace by a mixture of Gaussians", ScaleMixture, "mixture"),
    _case("Laplace of scipy, frozen", Frozen, "frozen"),
    _case("Laplace of RandomState", Legacy, "legacy"),
    _case("logistic noise", Logistic, "logistic"),
    _case(
        "Cauchy noise",
        Cauchy,
        "cauchy",
        epsilon=0.962424,
        spends=0.962424,
        twin_spends=2.095187,
        twin_shows=2.095187,
    ),
    _case("Laplace rounded before it is added", Rounded, "rounded", twin_shows=2.5),
    _case("Laplace from a pool", Pool, "pool", PoolKept, **ALL),
    _case("staircase noise", Staircase, "staircase"),
    _case("Gaussian by Box and Muller", BoxMuller, "box-muller", **MU_ONE),
    _case("Gaussian by the polar method", Polar, "polar", **MU_ONE),
    _case(
        "binomial noise",
        Binomial,
        "tosses",
        epsilon=0.34332,
        spends=0.34332,
        twin_shows=0.984059,
        **APART,
    ),
    _case(
        "Skellam noise",
        Skellam,
        "skellam",
        epsilon=0.336075,
        spends=0.336075,
        twin_shows=0.849027,
        **APART,
    ),
    _case(
        "discrete Laplace by exact coins",
        ExactLaplace,
        "exact",
        ExactLaplaceHalved,
        scale=2.0,
        epsilon=0.5,
        spends=0.5,
        twin_spends=1.0,
        twin_shows=1.0,
    ),
    _case(
        "discrete Gaussian by exact coins",
        ExactGaussian,
        "exact",
        ExactGaussianInverted,
        scale=2.0,
        epsilon=2.01134,
        spends=2.01134,
        twin_shows=9.961412,
        **APART,
    ),
    _case("Laplace on a fine grid", Knuth, "knuth"),
    _case(
        "secret scale",
        SecretScale,
        "secret-scale",
        epsilon=1.276274,
        spends=None,
        twin_spends=None,
        twin_shows=2.79433,
    ),
    _case(
        "Laplace within bounds",
        Bounded,
        "bounded",
        BoundedTight,
        delta=4e-5,
        spends=None,
        **ALL,
    ),
    _case(
        "drawn again while negative",
        RedrawnUntilPositive,
        "redrawn",
        RedrawnUntilAbove,
        epsilon=1.489881,
        spends=None,
        **ALL,
    ),
    _case("noise in place", Overwritten, "overwritten", OverwrittenByCounts, **ALL),
    _case("seed of the fit", Seeded, "seeded", SeededByData, **ALL),
)
