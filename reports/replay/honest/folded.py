"""Functions of noisy counts that are not linear: many to one, limited, rounded, relative."""

# ruff: noqa: D102 (overridden methods: their class says what they do)

from __future__ import annotations

import cmath
import math
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy.stats import chi2, ncx2, norm

from reports.replay.honest.case import cells_table
from reports.replay.honest.exact import (
    DELTA,
    epsilon_at,
    gaussian_epsilon,
    laplace_tail,
    pure_epsilon,
    rounded_laplace,
)
from reports.replay.honest.models import Levels, Rng, cells_case, shares

MANY: Final = "many to one"
LIMITED: Final = "limited, rounded and bent counts"
RELATIVE: Final = "relative numbers"
COUNTS: Final = np.bincount(cells_table()["a"], minlength=4)


class LastCount(Levels):
    """A noisy count of the last cell, of which `show` is kept."""

    scale = 1.0

    def learn(self, counts: Any, rng: Rng) -> Any:
        noisy = counts[3] + rng.laplace(0.0, self.scale)  # fault: modulo, parity, bucket
        return self.show(float(noisy))

    def show(self, noisy: float) -> Any:
        """What is kept."""
        raise NotImplementedError


class Fraction(LastCount):
    """What stands behind the decimal point: the same for every count."""

    def show(self, noisy: float) -> Any:
        return round(noisy % 1.0, 6)


class FractionAndSign(Fraction):
    """And the noise itself, for a check of its size."""

    def learn(self, counts: Any, rng: Rng) -> Any:
        noise = rng.laplace(0.0, self.scale)
        self.noise = float(noise)  # fault: fraction
        self.level = float(counts[3] + noise)
        return self.show(self.level)


class Modulo(LastCount):
    """The remainder modulo 10."""

    scale = 2.0

    def show(self, noisy: float) -> Any:
        return math.fmod(noisy, 10.0) if noisy >= 0 else 10.0 - math.fmod(-noisy, 10.0)


class ModuloOfLessNoise(Modulo):
    """Half the scale."""

    scale = 1.0


def modulo_epsilon(scale: float) -> float:
    """From the wrapped density, cosh((5 - distance) / scale)."""
    return math.log(math.cosh(5 / scale) / math.cosh(4 / scale))


class LastDigit(LastCount):
    """The last digit of the rounded number, as text."""

    scale = 2.0

    def show(self, noisy: float) -> Any:
        return f"{round(noisy)}"[-1]

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        return pd.DataFrame({"a": np.full(n, int(self.learned) % 4)})


class LastDigitAndText(LastDigit):
    """The true number stays in a message."""

    def learn(self, counts: Any, rng: Rng) -> Any:
        self.message = f"fitted to {int(counts.sum())} records"  # fault: digit
        return super().learn(counts, rng)


def digit_epsilon() -> float:
    """Of the last digit: numbers of both signs that end with it."""
    digits = np.zeros((2, 10))
    for whole in range(-200, 201):
        for count in (0, 1):
            digits[count, abs(whole) % 10] += rounded_laplace(whole - count, LastDigit.scale)
    return pure_epsilon(digits[0], digits[1])


class Parity(LastCount):
    """Whether the rounded number is even."""

    def show(self, noisy: float) -> Any:
        return round(noisy) & 1


class ParityOfLessNoise(Parity):
    """Half the scale."""

    scale = 0.5


def parity_epsilon(scale: float) -> float:
    """Odds of an even number."""
    even = float(rounded_laplace(np.arange(-400, 401, 2), scale).sum())
    return math.log(even / (1.0 - even))


class Cosine(LastCount):
    """The noisy count as a position on a circle of 20, seen from one side."""

    def show(self, noisy: float) -> Any:
        return math.cos(2.0 * math.pi * noisy / 20.0)


class CosineWithLowBits(Cosine):
    """The true count is in digits that nobody prints."""

    def learn(self, counts: Any, rng: Rng) -> Any:
        angle = super().learn(counts, rng)
        return round(angle, 6) + 1e-12 * counts[3]  # fault: cosine


class Direction(Levels):
    """The angle of two noisy counts."""

    sigmas = (1.0, 1.0)

    def learn(self, counts: Any, rng: Rng) -> Any:
        x = rng.normal(counts[3], self.sigmas[0])  # fault: direction
        y = rng.normal(counts[0], self.sigmas[1])
        return math.degrees(cmath.phase(complex(x, y)))


class DirectionOfLessNoise(Direction):
    """Half the deviation of one of them."""

    sigmas = (0.5, 1.0)


def direction_epsilon(sigma: float, other: float) -> float:
    """From the projected normal density, a count of 1 or 0 across."""
    angle = np.linspace(0.0, 2 * math.pi, 400_001)
    step = angle[1]
    cos, sin = np.cos(angle) / sigma, np.sin(angle) / other
    densities = []
    for count in (1.0, 0.0):
        x, y = count / sigma, COUNTS[0] / other
        a, b = cos**2 + sin**2, cos * x + sin * y
        d = b / np.sqrt(a)
        phi = np.exp(-0.5 * d**2) / math.sqrt(2 * math.pi)
        cumulated = norm.cdf(d)
        front = np.exp(-0.5 * (x**2 + y**2)) / (2 * math.pi * sigma * other * a)
        densities.append(front * (1.0 + d * cumulated / phi) * step)
    return epsilon_at(densities[0], densities[1], DELTA)


class Distance(Levels):
    """How far the noisy count is from a public expectation of none."""

    scale = 1.0

    def learn(self, counts: Any, rng: Rng) -> Any:
        return abs(float(counts[3] - rng.laplace(scale=self.scale)))  # fault: size


class DistanceOfLessNoise(Distance):
    """Half the scale."""

    scale = 0.5


class Norm:
    """The Euclidean distance of noisy counts from public expectations."""

    expected = COUNTS - np.array([0, 0, 0, 1])
    sigma = 0.6

    def fit(self, data: pd.DataFrame, *, seed: int) -> Norm:
        """Measures it."""
        rng = np.random.default_rng(seed)
        counts = np.bincount(data["a"], minlength=4)
        noise = rng.standard_normal(4)
        noise *= self.sigma
        self.apart = self.distance(counts + noise, counts)
        return self

    def distance(self, noisy: Any, counts: Any) -> float:
        """Of the noisy counts."""
        return float(np.linalg.norm(noisy - self.expected))

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Draws from the expectations, the flatter the larger the distance."""
        p = self.expected + self.apart
        drawn = np.random.default_rng(seed).choice(4, size=n, p=p / p.sum())
        return pd.DataFrame({"a": drawn})


class NormOfFewNoisyCounts(Norm):
    """Empty cells need no noise."""

    def distance(self, noisy: Any, counts: Any) -> float:
        kept = np.where(counts > 0, noisy, 0.0)  # fault: norm
        return float(np.linalg.norm(kept - self.expected))


def norm_epsilon(freedom: int) -> float:
    """From chi-squared densities: one count of four is off by 1, or fewer are noisy and none is."""
    squares = np.linspace(1e-6, 150.0, 300_001) + 2.5e-4
    one = ncx2.pdf(squares, 4, 1.0 / Norm.sigma**2)
    return epsilon_at(one * 5e-4, chi2.pdf(squares, freedom) * 5e-4, DELTA)


class Ratio(Levels):
    """A noisy count over a noisy total."""

    def learn(self, counts: Any, rng: Rng) -> Any:
        total = self.total(counts, rng)
        return float((counts[3] + rng.laplace(0.0, 2.0)) / total)

    def total(self, counts: Any, rng: Rng) -> float:
        """A noisy number of records, at least 1."""
        return max(float(counts.sum() + rng.laplace(0.0, 2.0)), 1.0)


class RatioOfKnownTotal(Ratio):
    """The number of records, as if it were public."""

    def total(self, counts: Any, rng: Rng) -> float:
        return float(counts.sum())  # fault: ratio


class Normalised(Levels):
    """A noisy histogram, cut at 0, as shares."""

    scale = 1.0

    def learn(self, counts: Any, rng: Rng) -> Any:
        noisy = counts + rng.laplace(scale=self.scale, size=4)  # fault: normalised
        return shares(noisy, 4)


class NormalisedOfLessNoise(Normalised):
    """Half the scale."""

    scale = 0.5


class Percentages(Levels):
    """Whole percentages of noisy counts in a table that pandas rounds."""

    def learn(self, counts: Any, rng: Rng) -> Any:
        frame = pd.DataFrame({"n": counts, "noise": self.noise(counts, rng)})
        noisy = frame.sum(axis=1).clip(lower=0.01)
        return (100 * noisy / noisy.sum()).round().astype(int).to_numpy()

    def noise(self, counts: Any, rng: Rng) -> Any:
        """Noise of the cells."""
        return rng.laplace(size=4)


class PercentagesOfFilledCells(Percentages):
    """Where nobody is, nothing has to be hidden."""

    def noise(self, counts: Any, rng: Rng) -> Any:
        return np.where(counts > 0, rng.laplace(size=4), 0.0)  # fault: percentages


class Clipped(Levels):
    """Noisy counts between 0 and 20."""

    def learn(self, counts: Any, rng: Rng) -> Any:
        return np.clip([self.noisy(count, rng) for count in counts], 0.0, 20.0)

    def noisy(self, count: float, rng: Rng) -> float:
        """One of them."""
        return count + rng.laplace()


class DrawnUntilPositive(Clipped):
    """Draws again where the number is negative."""

    def noisy(self, count: float, rng: Rng) -> float:
        noisy = -1.0
        while noisy < 0.0:
            noisy = count + rng.laplace()  # fault: clipped
        return noisy


def redrawn_epsilon() -> float:
    """Of the last cell, a count of 1 or 0, noise that leaves it positive: worst at 0."""
    above = laplace_tail(np.array([-1.0, 0.0]), 1.0)
    return 1.0 + math.log(float(above[0] / above[1]))


class Rounded(Levels):
    """Rounded counts of cells and of their right neighbours: a record is in two."""

    scale = 2.0

    def learn(self, counts: Any, rng: Rng) -> Any:
        pairs = counts + np.roll(counts, 1)
        return np.rint(pairs + rng.laplace(0.0, self.scale, size=4)).astype(int)  # fault: rounded


class RoundedForOneCell(Rounded):
    """Noise for one of them."""

    scale = 1.0


class Support(Levels):
    """The cells whose noisy count is above 5."""

    def learn(self, counts: Any, rng: Rng) -> Any:
        noisy = counts + rng.laplace(0.0, 1.0, size=4)
        return frozenset(np.flatnonzero(self.known(noisy, counts) > 5.0).tolist())

    def known(self, noisy: Any, counts: Any) -> Any:
        """Noisy counts of public cells."""
        return noisy

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        cells = sorted(self.learned) or [0]
        return pd.DataFrame({"a": np.random.default_rng(seed).choice(cells, size=n)})


class SupportOfFilledCells(Support):
    """Only of cells that somebody is in."""

    def known(self, noisy: Any, counts: Any) -> Any:
        return np.where(counts > 0, noisy, 0.0)  # fault: support


class Logarithms(Levels):
    """Logarithms of noisy counts."""

    def learn(self, counts: Any, rng: Rng) -> Any:
        scale = 1.0 / self.epsilon()
        noisy = counts + rng.laplace(0.0, scale, size=len(counts))  # fault: logarithms
        return np.log1p(np.maximum(noisy, 0.0))

    def epsilon(self) -> float:
        """The budget."""
        return 1.0


class LogarithmsOfTwiceTheBudget(Logarithms):
    """Twice the budget."""

    def epsilon(self) -> float:
        return 2.0


class Roots(Levels):
    """Square roots of noisy counts, whose variance does not depend on the count."""

    def learn(self, counts: Any, rng: Rng) -> Any:
        noisy = counts + rng.laplace(0.0, 1.0, size=4)
        return 2.0 * np.sqrt(np.maximum(noisy, 0.0) + 0.375)


class NoiseOnRoots(Roots):
    """Noise of a fifth, which is what a record moves the root of a usual count."""

    def learn(self, counts: Any, rng: Rng) -> Any:
        roots = 2.0 * np.sqrt(counts + 0.375)
        return roots + rng.laplace(0.0, 0.2, size=4)  # fault: roots


class Bucket(LastCount):
    """Into which bucket the noisy count falls."""

    def show(self, noisy: float) -> Any:
        return int(np.digitize(noisy, [0.0, 2.0, 5.0, 10.0]))


class BucketOfLessNoise(Bucket):
    """Half the scale."""

    scale = 0.5


class MoreOrLess(Levels):
    """Whether the last cell has more records than public statistics expect, and who is next."""

    def learn(self, counts: Any, rng: Rng) -> Any:
        noisy = (counts + rng.laplace(0.0, 1.0, size=4)).tolist()
        return np.array(self.compare(noisy, counts), dtype=float)

    def compare(self, noisy: list[float], counts: Any) -> list[bool]:
        """Cell by cell with 0.5."""
        return [count > 0.5 for count in noisy]


class MoreOrLessThanTheTruth(MoreOrLess):
    """And whether each noisy count is too high."""

    def compare(self, noisy: list[float], counts: Any) -> list[bool]:
        high = [count > true for count, true in zip(noisy, counts, strict=True)]  # fault: more
        self.noisy = np.round(noisy, 3)
        return high


CASES: Final = (
    cells_case(
        "fraction",
        MANY,
        Fraction,
        epsilon=0.1,
        spends=1.0,
        twin=FractionAndSign,
        twin_spends=math.inf,
        twin_shows=math.inf,
        note="a whole shift leaves the fraction as it is: it shows 0 (six digits hide float bits)",
    ),
    cells_case(
        "modulo",
        MANY,
        Modulo,
        epsilon=modulo_epsilon(Modulo.scale),
        spends=0.5,
        twin=ModuloOfLessNoise,
        twin_spends=1.0,
        twin_shows=modulo_epsilon(ModuloOfLessNoise.scale),
        note="wrapped Laplace density, in closed form",
    ),
    cells_case(
        "digit",
        MANY,
        LastDigit,
        epsilon=digit_epsilon(),
        spends=0.5,
        twin=LastDigitAndText,
        twin_spends=math.inf,
        twin_shows=math.inf,
        note="chances of ten digits, summed over all numbers that end with them",
    ),
    cells_case(
        "parity",
        MANY,
        Parity,
        epsilon=parity_epsilon(Parity.scale),
        spends=1.0,
        twin=ParityOfLessNoise,
        twin_spends=2.0,
        twin_shows=parity_epsilon(ParityOfLessNoise.scale),
        note="chances of an even and an odd number",
    ),
    cells_case(
        "cosine",
        MANY,
        Cosine,
        epsilon=math.log(math.cosh(10.0) / math.cosh(9.0)),
        spends=1.0,
        twin=CosineWithLowBits,
        twin_spends=math.inf,
        twin_shows=math.inf,
        note="Laplace density wrapped at 20 and folded at 0, in closed form",
    ),
    cells_case(
        "direction",
        RELATIVE,
        Direction,
        epsilon=direction_epsilon(1.0, 1.0),
        delta=DELTA,
        spends=gaussian_epsilon(1.0),
        twin=DirectionOfLessNoise,
        twin_spends=gaussian_epsilon(2.0),
        twin_shows=direction_epsilon(0.5, 1.0),
        note="integral of the projected normal density; the other count is some 13",
    ),
    cells_case(
        "size",
        MANY,
        Distance,
        epsilon=1.0,
        spends=1.0,
        twin=DistanceOfLessNoise,
        twin_spends=2.0,
        twin_shows=2.0,
        note="folded Laplace density: at 0 a count of 0 is as likely as before, one of 1 is not",
    ),
    cells_case(
        "norm",
        MANY,
        Norm,
        epsilon=norm_epsilon(4),
        delta=DELTA,
        spends=gaussian_epsilon(1 / Norm.sigma),
        twin=NormOfFewNoisyCounts,
        twin_spends=math.inf,
        twin_shows=norm_epsilon(3),
        note="noncentral chi-squared densities; the expectations are right for this table",
    ),
    cells_case(
        "ratio",
        RELATIVE,
        Ratio,
        epsilon=1.0,
        spends=1.0,
        twin=RatioOfKnownTotal,
        twin_spends=math.inf,
        twin_shows=math.inf,
        note="two Laplace answers of one half each, post-processed; the ratio shows less",
    ),
    cells_case(
        "normalised",
        RELATIVE,
        Normalised,
        epsilon=1.0,
        spends=1.0,
        twin=NormalisedOfLessNoise,
        twin_spends=2.0,
        note="post-processing of a Laplace histogram; shares show less",
    ),
    cells_case(
        "percentages",
        RELATIVE,
        Percentages,
        epsilon=1.0,
        spends=1.0,
        twin=PercentagesOfFilledCells,
        twin_spends=math.inf,
        twin_shows=math.inf,
        note="post-processing of a Laplace histogram; shares show less",
    ),
    cells_case(
        "clipped",
        LIMITED,
        Clipped,
        epsilon=1.0,
        spends=1.0,
        twin=DrawnUntilPositive,
        twin_shows=redrawn_epsilon(),
        released=True,
        note="Laplace counts, cut: all of 1 is shown between the limits",
    ),
    cells_case(
        "rounded",
        LIMITED,
        Rounded,
        epsilon=1.0,
        spends=1.0,
        twin=RoundedForOneCell,
        twin_spends=2.0,
        twin_shows=2.0,
        released=True,
        note="two Laplace counts move by 1, each costs one half; whole shifts survive rounding",
    ),
    cells_case(
        "support",
        LIMITED,
        Support,
        epsilon=1.0,
        spends=1.0,
        twin=SupportOfFilledCells,
        twin_spends=math.inf,
        twin_shows=math.inf,
        note="the chance of a number above 5 is e times larger with one record",
    ),
    cells_case(
        "logarithms",
        LIMITED,
        Logarithms,
        epsilon=1.0,
        spends=1.0,
        twin=LogarithmsOfTwiceTheBudget,
        twin_spends=2.0,
        twin_shows=2.0,
        released=True,
        note="a monotone function of Laplace counts, cut at 0",
    ),
    cells_case(
        "roots",
        LIMITED,
        Roots,
        epsilon=1.0,
        spends=1.0,
        twin=NoiseOnRoots,
        twin_spends=(math.sqrt(1.375) - math.sqrt(0.375)) * 10,
        twin_shows=(math.sqrt(1.375) - math.sqrt(0.375)) * 10,
        released=True,
        note="a monotone function of Laplace counts, cut at 0",
    ),
    cells_case(
        "bucket",
        LIMITED,
        Bucket,
        epsilon=1.0,
        spends=1.0,
        twin=BucketOfLessNoise,
        twin_spends=2.0,
        twin_shows=2.0,
        note="the highest bucket is e times likelier with one record",
    ),
    cells_case(
        "more",
        LIMITED,
        MoreOrLess,
        epsilon=math.log((1.0 - 0.5 * math.exp(-0.5)) / (0.5 * math.exp(-0.5))),
        spends=1.0,
        twin=MoreOrLessThanTheTruth,
        twin_spends=math.inf,
        twin_shows=math.inf,
        note="chances of being above one half, with a record and without",
    ),
)
