"""Several steps in a row: noise on noise, two stages, coarse choices, pads, tests of stability."""

# ruff: noqa: D102 (overridden methods: their class says what they do)

from __future__ import annotations

import hashlib
import math
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy.stats import binom, norm

from reports.replay.honest.case import NUMBERS_SCHEMA, Case, cells_table, numbers_table
from reports.replay.honest.exact import (
    DELTA,
    epsilon_at,
    laplace_pdf,
    laplace_tail,
    pure_epsilon,
    rounded_laplace,
)
from reports.replay.honest.models import Levels, Rng, cells_case, levels_case, levels_table

LATER: Final = "later noise protects"
STAGES: Final = "two stages"
CHOICES: Final = "coarse functions of choices"
PADS: Final = "masked by a secret"
TESTS: Final = "smooth sensitivity and tests"


class RoundedWithMoreNoise(Levels):
    """Counts are noisy and rounded where they are made, and noisy again when published."""

    def learn(self, counts: Any, rng: Rng) -> Any:
        collected = np.rint(counts + rng.laplace(0.0, 1.0, size=4))
        return self.publish(collected, rng)

    def publish(self, collected: Any, rng: Rng) -> Any:
        """Adds more noise."""
        return collected + rng.laplace(0.0, 2.0, size=4)


class CollectedIsKept(RoundedWithMoreNoise):
    """What was collected stays in the model."""

    def publish(self, collected: Any, rng: Rng) -> Any:
        self.collected = collected.astype(int)  # fault: rounded again
        return collected + rng.laplace(0.0, 2.0, size=4)


class LimitedWithMoreNoise(Levels):
    """A noisy count is limited and gets Gaussian noise."""

    def learn(self, counts: Any, rng: Rng) -> Any:
        limited = np.clip(counts[3] + self.first(rng), 0.0, 5.0)
        return float(limited + rng.normal(0.0, 2.0))

    def first(self, rng: Rng) -> Any:
        """The first noise."""
        return rng.laplace(0.0, 0.5)


class LimitedWithMoreNoiseOfOneSeed(LimitedWithMoreNoise):
    """The second noise is the first one's, whose generator was made twice."""

    def learn(self, counts: Any, rng: Rng) -> Any:
        limited = np.clip(counts[3] + self.first(np.random.default_rng(1)), 0.0, 5.0)
        return float(limited + 2.0 * np.random.default_rng(1).normal())  # fault: limited


def limited_epsilon() -> float:
    """From the density of the limited number plus Gaussian noise: two atoms and a part between."""
    at = np.linspace(-16.0, 21.0, 7_401)
    between = np.linspace(0.0, 5.0, 1_001)
    weights = np.full(1_001, 0.005)
    weights[[0, -1]] /= 2
    densities = []
    for count in (1.0, 0.0):
        low, high = 1.0 - laplace_tail(-count, 0.5), laplace_tail(5.0 - count, 0.5)
        inner = laplace_pdf(between - count, 0.5) * weights
        masses = np.concatenate([[low], inner * (1 - low - high) / inner.sum(), [high]])
        places = np.concatenate([[0.0], between, [5.0]])
        densities.append(norm.pdf(at[:, None], places, 2.0) @ masses * 0.005)
    return epsilon_at(densities[0], densities[1], DELTA)


class NoisyBit(Levels):
    """A noisy bit, by randomised response, that gets Laplace noise."""

    scale = 1.0

    def learn(self, counts: Any, rng: Rng) -> Any:
        seen = bool(counts[3] > 0)
        bit = seen if rng.random() < math.exp(2.0) / (1.0 + math.exp(2.0)) else not seen
        return float(bit + rng.laplace(0.0, self.scale))  # fault: bit


class NoisyBitOfLessNoise(NoisyBit):
    """Half the scale."""

    scale = 0.4


def bit_epsilon(scale: float) -> float:
    """Odds of the mixture beyond 1, where the densities differ most."""
    kept = math.exp(2.0) / (1.0 + math.exp(2.0))
    factor = math.exp(1.0 / scale)
    return math.log((kept * factor + 1.0 - kept) / ((1.0 - kept) * factor + kept))


class ShuffledNoise(Levels):
    """Discrete noise, then one more count that no record moves, then a coin that drops units."""

    def learn(self, counts: Any, rng: Rng) -> Any:
        keep = 1.0 - math.exp(-1.0)
        noisy = counts + rng.geometric(keep, size=4) - rng.geometric(keep, size=4)
        noisy = self.corrected(np.maximum(noisy, 0.0), counts)
        return rng.binomial(noisy.astype(int), 0.5)

    def corrected(self, noisy: Any, counts: Any) -> Any:
        """Not at all."""
        return noisy


class ShuffledTruth(ShuffledNoise):
    """Small cells are taken as they are: coins follow."""

    def corrected(self, noisy: Any, counts: Any) -> Any:
        return np.where(counts <= 1, counts, noisy)  # fault: thinned


def thinned_epsilon() -> float:
    """Of the last cell: discrete Laplace noise, cut at 0, thinned by fair coins."""
    wholes = np.arange(0, 400)
    out = np.arange(0, 60)
    tables = []
    for count in (1, 0):
        chance = np.exp(-np.abs(wholes - count)) * math.tanh(0.5)
        chance[0] = np.exp(-(count + np.arange(400.0))).sum() * math.tanh(0.5)
        tables.append(binom.pmf(out[:, None], wholes, 0.5) @ chance)
    return pure_epsilon(tables[0], tables[1])


class NoisyLimit:
    """A noisy limit, from how many are large, and a sum that is clipped at it, with its noise."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> NoisyLimit:
        """Half of epsilon for each."""
        rng = np.random.default_rng(seed)
        x = data["x"].to_numpy()
        large = (x > 0.5).sum() + rng.laplace(0.0, 2.0)
        self.limit = self.limit_of(float(large), x)
        noise = rng.laplace(0.0, 2.0 * self.limit)
        self.total = float(np.minimum(x, self.limit).sum() + noise)  # fault: limit
        return self

    def limit_of(self, large: float, x: Any) -> float:
        """Between a quarter and 1."""
        return min(max(large / 4.0, 0.25), 1.0)

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Rows around the mean, below the limit."""
        mean = min(max(self.total / n, 0.01), self.limit)
        drawn = np.random.default_rng(seed).exponential(mean, size=n)
        return pd.DataFrame({"x": np.clip(drawn, 0.0, self.limit)})


class LargestValueAsLimit(NoisyLimit):
    """The largest value is the limit."""

    def limit_of(self, large: float, x: Any) -> float:
        return float(x.max())


class FollowUp(Levels):
    """A second question about the cell that the first answer points at."""

    second = 2.0

    def learn(self, counts: Any, rng: Rng) -> Any:
        first = counts + rng.laplace(0.0, 2.0, size=4)
        cell = 3 if first[3] > 0.5 else int(first[:3].argmax())
        again = counts[cell] + rng.laplace(0.0, self.second)  # fault: again
        return {"counts": first, "cell": cell, "again": float(again)}

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        p = np.maximum(self.learned["counts"], 0.0) + 0.01
        drawn = np.random.default_rng(seed).choice(4, size=n, p=p / p.sum())
        return pd.DataFrame({"a": drawn})


class FollowUpWithAllOfIt(FollowUp):
    """It has the whole budget once more."""

    second = 1.0


BINS: Final = 16
LAST: Final = 14


class Half(Levels):
    """In which half the fullest bin is, by the exponential mechanism over all bins."""

    levels = BINS

    def learn(self, counts: Any, rng: Rng) -> Any:
        scores = np.exp(counts - counts.max())
        fullest = rng.choice(BINS, p=scores / scores.sum())
        return self.publish(int(fullest))

    def publish(self, fullest: int) -> Any:
        """The half."""
        return np.repeat(np.eye(2)[fullest // 8], 8)


class HalfAndBin(Half):
    """The bin too."""

    def publish(self, fullest: int) -> Any:
        self.trace = {"fullest": fullest, "scores": BINS}  # fault: half
        return np.repeat(np.eye(2)[fullest // 8], 8)


def half_epsilon(parts: int) -> float:
    """Of which of so many parts of the bins is chosen."""
    counts = np.bincount(levels_table(BINS, LAST)["a"], minlength=BINS).astype(float)
    tables = []
    for one in (counts, counts - np.eye(BINS)[LAST]):
        weights = np.exp(one)
        tables.append((weights / weights.sum()).reshape(parts, -1).sum(axis=1))
    return pure_epsilon(tables[0], tables[1])


class WarmOrCold(Levels):
    """Whether a mode, by Gumbel noise, is an even cell."""

    def learn(self, counts: Any, rng: Rng) -> Any:
        small = np.minimum(counts, 1.0)
        return self.publish(int(np.argmax(self.budget() * small + rng.gumbel(size=4))))

    def budget(self) -> float:
        """The factor of the scores."""
        return 2.0

    def publish(self, mode: int) -> Any:
        """Odd or even."""
        return mode % 2


class WarmOrColdAndPlace(WarmOrCold):
    """The cell is the index of the model."""

    def publish(self, mode: int) -> Any:
        self.index = [mode]  # fault: gumbel
        return mode % 2


def gumbel_epsilon(*, coarse: bool) -> float:
    """Of the cell, or of its parity: weights exp(2) for filled cells, 1 for empty ones."""
    tables = []
    for last in (math.exp(2.0), 1.0):
        weights = np.array([math.exp(2.0)] * 3 + [last])
        p = weights / weights.sum()
        tables.append(np.array([p[0] + p[2], p[1] + p[3]]) if coarse else p)
    return pure_epsilon(tables[0], tables[1])


class OneTimePad(Levels):
    """A bit of a noisy count, encrypted with a fair coin that is thrown away."""

    def learn(self, counts: Any, rng: Rng) -> Any:
        bit = int(round(float(counts[3] + rng.laplace(0.0, 1.0))) > 0)
        pad = int(rng.integers(2))
        return self.encrypted(bit, pad)

    def encrypted(self, bit: int, pad: int) -> int:
        """The bit under the pad."""
        return bit ^ pad


class PadIsKept(OneTimePad):
    """The key is kept, to read it one day."""

    def encrypted(self, bit: int, pad: int) -> int:
        self.key = pad  # fault: pad
        return bit ^ pad


def bit_of_count_epsilon() -> float:
    """Of whether the noisy count is above one half."""
    above = laplace_tail(np.array([-0.5, 0.5]), 1.0)
    return max(pure_epsilon(above[:1], above[1:]), pure_epsilon(1 - above[:1], 1 - above[1:]))


class Masked(Levels):
    """Shares of noisy counts modulo 8: one share is secret."""

    def learn(self, counts: Any, rng: Rng) -> Any:
        noisy = np.rint(counts + rng.laplace(0.0, 1.0, size=4)).astype(int)
        return (noisy + self.mask(rng)) % 8  # fault: mask

    def mask(self, rng: Rng) -> Any:
        """The secret share."""
        return rng.integers(0, 8, size=4)


class MaskedByHalf(Masked):
    """The secret is one of four numbers."""

    def mask(self, rng: Rng) -> Any:
        return rng.integers(0, 4, size=4)


def masked_epsilon() -> float:
    """Of the last cell under a mask of four numbers."""
    tables = np.zeros((2, 8))
    for count in (0, 1):
        for whole in range(-400, 401):
            for pad in range(4):
                tables[count, (whole + pad) % 8] += rounded_laplace(whole - count, 1.0) / 4
    return pure_epsilon(tables[0], tables[1])


class SaltedHash(Levels):
    """A digest of a noisy number and a salt: nobody can search for the number."""

    def learn(self, counts: Any, rng: Rng) -> Any:
        noisy = round(float(counts[3] + rng.laplace()))
        salt = self.salt(rng)
        digest = hashlib.sha256(salt + str(noisy).encode()).digest()
        return np.frombuffer(digest[:4], dtype=np.uint8).astype(float)

    def salt(self, rng: Rng) -> bytes:
        """Sixteen secret bytes."""
        return rng.bytes(16)


class SaltIsKept(SaltedHash):
    """Who has the salt can search."""

    def salt(self, rng: Rng) -> bytes:
        self.secret = rng.bytes(16)  # fault: salt
        return self.secret


MEDIANS: Final = pd.DataFrame(
    {"x": np.concatenate([np.linspace(0.0, 0.1, 19), [0.5] * 11, np.linspace(0.6, 1.0, 11)])}
)
"""Many equal values in the middle: without the last record the median is at their edge."""


class SmoothMedian:
    """A median with Cauchy noise for its smooth sensitivity (Nissim and others 2007)."""

    epsilon = 1.0

    def fit(self, data: pd.DataFrame, *, seed: int) -> SmoothMedian:
        """The median, and how far it could move in distant tables, discounted."""
        x = np.sort(data["x"].to_numpy())
        padded = np.concatenate([np.zeros(len(x)), x, np.ones(len(x))])
        middle = len(x) + (len(x) - 1) // 2
        noise = np.random.default_rng(seed).standard_cauchy()
        spread = 6.0 / self.epsilon * self.sensitivity(padded, middle, len(x) // 2)
        self.median = float(padded[middle] + spread * noise)  # fault: smooth
        return self

    def sensitivity(self, x: Any, middle: int, far: int) -> float:
        """Over tables that differ in k records, with a discount for k."""
        return max(
            math.exp(-k * self.epsilon / 6)
            * max(x[middle + t] - x[middle + t - k - 1] for t in range(k + 2))
            for k in range(far)
        )

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Rows around the median."""
        spread = np.random.default_rng(seed).normal(0.0, 0.1, size=n)
        return pd.DataFrame({"x": np.clip(self.median + spread, 0.0, 1.0)})


class LocalMedian(SmoothMedian):
    """How far it could move in this table's neighbours, where it does not move."""

    def sensitivity(self, x: Any, middle: int, far: int) -> float:
        return float(max(x[middle + 1] - x[middle], x[middle] - x[middle - 1], 1e-3))


class ProposeTestRelease(Levels):
    """The mode, if a noisy distance says that it is stable; else nothing."""

    delta = 0.5 * math.exp(-1.5)

    def learn(self, counts: Any, rng: Rng) -> Any:
        second, first = np.sort(counts)[-2:]
        if self.stable(float(first - second), rng):
            return np.eye(4)[int(counts.argmax())]
        return np.zeros(4)

    def stable(self, gap: float, rng: Rng) -> bool:
        """Whether the noisy distance is above what hides an unstable table but for delta."""
        return bool(gap - 1.0 + rng.laplace(0.0, 1.0) > math.log(0.5 / self.delta))


class TestWithoutNoise(ProposeTestRelease):
    """The distance itself."""

    __test__ = False

    def stable(self, gap: float, rng: Rng) -> bool:
        return gap - 1.0 > math.log(0.5 / self.delta)  # fault: stable


def close_table() -> pd.DataFrame:
    """A fullest cell that is 3 ahead; the target is in it."""
    return pd.DataFrame({"a": [0] * 9 + [1] * 10 + [2] * 7 + [0] * 4})


class RareBranch(Levels):
    """One fit in a hundred is for a test of the pipeline, with much noise."""

    def learn(self, counts: Any, rng: Rng) -> Any:
        if rng.random() < 0.01:
            return self.rehearsal(counts, rng)
        return counts + rng.laplace(0.0, 1.0, size=4)

    def rehearsal(self, counts: Any, rng: Rng) -> Any:
        """Much noise."""
        return counts + rng.laplace(0.0, 5.0, size=4)


class RareTruth(RareBranch):
    """With the counts as they are."""

    def rehearsal(self, counts: Any, rng: Rng) -> Any:
        return counts + 0.0  # fault: rare


def smooth_epsilon(generator: SmoothMedian) -> float:
    """The largest loss between two Cauchy densities, of both tables."""
    places = []
    for table in (MEDIANS, MEDIANS.drop(index=40)):
        x = np.sort(table["x"].to_numpy())
        padded = np.concatenate([np.zeros(len(x)), x, np.ones(len(x))])
        middle = len(x) + (len(x) - 1) // 2
        spread = 6.0 * generator.sensitivity(padded, middle, len(x) // 2)
        places.append((padded[middle], spread))
    at = 0.5 + np.sinh(np.linspace(-15.0, 15.0, 200_001)) / 100
    logs = [np.log(s) - np.log(s**2 + (at - m) ** 2) for m, s in places]
    return float(np.abs(logs[0] - logs[1]).max())


assert np.bincount(cells_table()["a"])[3] == 1
CASES: Final = (
    cells_case(
        "rounded again",
        LATER,
        RoundedWithMoreNoise,
        epsilon=0.5,
        spends=1.0,
        twin=CollectedIsKept,
        twin_spends=1.0,
        twin_shows=1.0,
        note="Laplace noise of scale 2 on whole numbers that a record moves by 1",
    ),
    cells_case(
        "limited",
        LATER,
        LimitedWithMoreNoise,
        epsilon=limited_epsilon(),
        delta=DELTA,
        spends=2.0 + 2.0 * math.log(1.0 - DELTA),
        twin=LimitedWithMoreNoiseOfOneSeed,
        twin_spends=math.inf,
        twin_shows=math.inf,
        note="integral of the density; the Laplace step alone costs 2",
    ),
    cells_case(
        "bit",
        LATER,
        NoisyBit,
        epsilon=bit_epsilon(NoisyBit.scale),
        spends=2.0,
        twin=NoisyBitOfLessNoise,
        twin_spends=2.0,
        twin_shows=bit_epsilon(NoisyBitOfLessNoise.scale),
        note="a mixture of two Laplace densities, in closed form",
    ),
    cells_case(
        "thinned",
        LATER,
        ShuffledNoise,
        epsilon=1.0,
        spends=1.0,
        twin=ShuffledTruth,
        twin_spends=math.inf,
        twin_shows=math.inf,
        note="discrete Laplace noise, thinned by coins: large numbers show all of 1",
    ),
    Case(
        name="limit",
        family=STAGES,
        generator=NoisyLimit,
        table=numbers_table(),
        schema=NUMBERS_SCHEMA,
        target="row:39",
        epsilon=1.0,
        spends=1.0,
        twin=LargestValueAsLimit,
        twin_marker="# fault: limit",
        twin_spends=math.inf,
        twin_shows=math.inf,
        released=True,
        note="the clipped sum moves by the limit, its noise is twice that; the limit costs a half",
    ),
    cells_case(
        "again",
        STAGES,
        FollowUp,
        epsilon=1.0,
        spends=1.0,
        twin=FollowUpWithAllOfIt,
        twin_spends=1.5,
        twin_shows=1.5,
        released=True,
        note="two Laplace answers of one half each; both move if the first is above a half",
    ),
    levels_case(
        "half",
        CHOICES,
        Half,
        levels=BINS,
        place=LAST,
        epsilon=half_epsilon(2),
        spends=half_epsilon(BINS),
        twin=HalfAndBin,
        twin_spends=half_epsilon(BINS),
        twin_shows=half_epsilon(BINS),
        note="chances of two halves under the exponential mechanism",
    ),
    cells_case(
        "gumbel",
        CHOICES,
        WarmOrCold,
        epsilon=gumbel_epsilon(coarse=True),
        spends=gumbel_epsilon(coarse=False),
        twin=WarmOrColdAndPlace,
        twin_spends=gumbel_epsilon(coarse=False),
        twin_shows=gumbel_epsilon(coarse=False),
        note="chances of odd and even cells under the exponential mechanism by Gumbel noise",
    ),
    cells_case(
        "pad",
        PADS,
        OneTimePad,
        epsilon=0.1,
        spends=1.0,
        twin=PadIsKept,
        twin_spends=1.0,
        twin_shows=bit_of_count_epsilon(),
        note="a fair coin hides the bit: it shows 0",
    ),
    cells_case(
        "mask",
        PADS,
        Masked,
        epsilon=0.1,
        spends=1.0,
        twin=MaskedByHalf,
        twin_spends=1.0,
        twin_shows=masked_epsilon(),
        note="a uniform share modulo 8 hides the number: it shows 0",
    ),
    cells_case(
        "salt",
        PADS,
        SaltedHash,
        epsilon=0.1,
        spends=1.0,
        twin=SaltIsKept,
        twin_spends=1.0,
        twin_shows=1.0,
        note="sha256 with 16 secret bytes: shows 0 to who cannot search them; no formula",
    ),
    Case(
        name="smooth",
        family=TESTS,
        generator=SmoothMedian,
        table=MEDIANS,
        schema=NUMBERS_SCHEMA,
        target="row:40",
        epsilon=1.0,
        twin=LocalMedian,
        twin_marker="# fault: smooth",
        twin_shows=smooth_epsilon(LocalMedian()),
        released=True,
        note="smooth sensitivity, beta = epsilon / 6, Cauchy noise: by theorem, not tight",
    ),
    cells_case(
        "stable",
        TESTS,
        ProposeTestRelease,
        table=close_table(),
        target="row:29",
        epsilon=1.0,
        delta=ProposeTestRelease.delta,
        spends=1.0 + 2.0 * math.log(1.0 - ProposeTestRelease.delta),
        twin=TestWithoutNoise,
        twin_spends=math.inf,
        twin_shows=math.inf,
        note="propose, test, release: the distance costs 1, an unstable mode passes with delta",
    ),
    cells_case(
        "rare",
        "rare branches",
        RareBranch,
        epsilon=1.0,
        spends=1.0,
        twin=RareTruth,
        twin_spends=math.inf,
        twin_shows=math.inf,
        released=True,
        note="either branch costs at most 1, and the coin is nobody's",
    ),
)
