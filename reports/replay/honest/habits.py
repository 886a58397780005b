"""One noisy histogram in the many ways in which people write code, and their mistakes."""

# ruff: noqa: D102 (overridden methods: their class says what they do)

from __future__ import annotations

import logging
import math
import random
import tempfile
import time
from collections import Counter
from functools import cache, lru_cache
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy import stats

from reports.replay.honest.exact import DELTA, gaussian_epsilon
from reports.replay.honest.models import Levels, Rng, cells_case, shares

FAMILY: Final = "ways of writing"
CHECKS: Final = "compared with the truth"
STATE: Final = "what else a model keeps"
SOURCES: Final = "sources of random numbers"
LOG: Final = logging.getLogger("honest")
LOG.addHandler(logging.NullHandler())
SIGMA: Final = 1.5


class ComparedForLog(Levels):
    """The largest error is logged."""

    def learn(self, counts: Any, rng: Rng) -> Any:
        noisy = counts + rng.laplace(0.0, 1.0, size=4)
        self.report(float(np.abs(noisy - counts).max()))
        return noisy

    def report(self, error: float) -> None:
        """To the log, which stays where the data are."""
        LOG.debug("largest error %.2f", error)


class ErrorIsKept(ComparedForLog):
    """The error is part of the model."""

    def report(self, error: float) -> None:
        self.error = error  # fault: log


class CheckedForBias(Levels):
    """A warning if most noisy counts are too high."""

    def learn(self, counts: Any, rng: Rng) -> Any:
        noisy = counts + rng.laplace(0.0, 1.0, size=4)
        biased = bool((noisy > counts).all())
        if biased:
            LOG.info("all counts are too high")
        return self.finish(noisy, counts, biased)

    def finish(self, noisy: Any, counts: Any, biased: bool) -> Any:
        """The noisy counts."""
        return noisy


class CorrectedForBias(CheckedForBias):
    """Then they are brought down to where they should be."""

    def finish(self, noisy: Any, counts: Any, biased: bool) -> Any:
        return noisy - (noisy - counts).min() if biased else noisy  # fault: biased


class UtilityInFile(Levels):
    """A utility report in a file that is deleted."""

    def learn(self, counts: Any, rng: Rng) -> Any:
        noisy = np.asarray([rng.laplace(count, 1.0) for count in counts])
        with tempfile.TemporaryFile("w+", encoding="utf-8") as file:
            file.write(f"true {counts.tolist()}\nerror {np.abs(counts - noisy).mean()}\n")
            self.read(file)
        return noisy

    def read(self, file: Any) -> None:
        """Nobody reads it."""


class UtilityInModel(UtilityInFile):
    """Its first line is the model's description."""

    def read(self, file: Any) -> None:
        file.seek(0)
        self.description = file.readline().strip()  # fault: file


class Buffers:
    """Noise is drawn into a buffer before the counts are known."""

    def __init__(self) -> None:
        self._buffer = np.empty(4)

    def fit(self, data: pd.DataFrame, *, seed: int) -> Buffers:
        """Two histograms, of cells and of halves."""
        rng = np.random.default_rng(seed)
        rng.standard_normal(out=self._buffer)
        self._buffer *= SIGMA
        counts = np.bincount(data["a"], minlength=4)
        self.cells = counts + self._buffer
        halves = counts.reshape(2, 2).sum(axis=1)
        self.refill(rng)
        self.halves = halves + self._buffer[:2]
        self._buffer[:] = 0.0
        return self

    def refill(self, rng: Rng) -> None:
        """Draws again."""
        rng.standard_normal(out=self._buffer)
        self._buffer *= SIGMA

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Draws cells."""
        p = shares(self.cells + np.repeat(self.halves, 2) / 2, 4)
        return pd.DataFrame({"a": np.random.default_rng(seed).choice(4, size=n, p=p)})


class BuffersUsedTwice(Buffers):
    """The buffer is still full."""

    def refill(self, rng: Rng) -> None:
        self.ready = True  # fault: buffer


class InPlace(Levels):
    """Noise is added to the array of counts itself."""

    def learn(self, counts: Any, rng: Rng) -> Any:
        cells = self.cells(counts)
        counts[cells] += rng.laplace(scale=1.0, size=4)[cells]  # fault: in place
        return counts

    def cells(self, counts: Any) -> Any:
        """All of them."""
        return slice(None)


class InPlaceWhereFilled(InPlace):
    """Those that somebody is in."""

    def cells(self, counts: Any) -> Any:
        return counts > 0


class PandasColumns:
    """Noise as a column of a data frame, indexed by public levels."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> PandasColumns:
        """Groups and adds."""
        frame = self.counted(data)
        frame["noise"] = np.random.default_rng(seed).laplace(0.0, 1.0, size=len(frame))
        frame["n"] = frame["n"].add(frame["noise"]).clip(lower=0.0)
        self.frame = frame.drop(columns="noise")
        return self

    def counted(self, data: pd.DataFrame) -> pd.DataFrame:
        """Counts of the four levels."""
        counts = data.groupby("a").size().reindex(range(4), fill_value=0)
        return counts.astype(float).to_frame("n")

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Draws levels of the frame."""
        drawn = self.frame.sample(
            n, replace=True, weights=self.frame["n"] + 0.01, random_state=seed
        )
        return pd.DataFrame({"a": drawn.index.to_numpy()})


class PandasColumnsOfSeenLevels(PandasColumns):
    """Counts of the levels that occur."""

    def counted(self, data: pd.DataFrame) -> pd.DataFrame:
        return data["a"].value_counts(sort=False).astype(float).to_frame("n")  # fault: pandas


class Dictionaries:
    """Counts by Python's own counter, and a dictionary of noisy ones."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> Dictionaries:
        """Key by key."""
        rng = np.random.default_rng(seed)
        counter = Counter(data["a"].tolist())
        self.noisy = {key: counter[key] + float(rng.laplace()) for key in self.keys(counter)}
        return self

    def keys(self, counter: Counter[int]) -> Any:
        """Public keys."""
        return range(4)

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Draws keys."""
        keys = list(self.noisy)
        p = shares(list(self.noisy.values()), len(keys))
        return pd.DataFrame({"a": np.random.default_rng(seed).choice(keys, size=n, p=p)})


class DictionariesWithSeen(Dictionaries):
    """A set of what was seen, to say what is new."""

    def keys(self, counter: Counter[int]) -> Any:
        self.seen = {str(key) for key in counter}  # fault: keys
        return range(4)


class InverseByHand(Levels):
    """Laplace noise by its inverse distribution function."""

    scale = 1.0

    def learn(self, counts: Any, rng: Rng) -> Any:
        u = rng.uniform(-0.5, 0.5, size=4)
        return counts - self.scale * np.sign(u) * np.log1p(-2.0 * np.abs(u))  # fault: inverse


class InverseByHandOfLessNoise(InverseByHand):
    """Half the scale."""

    scale = 0.5


class BoxMuller(Levels):
    """Gaussian noise of two uniform numbers."""

    def learn(self, counts: Any, rng: Rng) -> Any:
        radius = SIGMA * np.sqrt(-2.0 * np.log1p(-rng.random(4)))
        angle = 2.0 * math.pi * self.turn(rng)
        return counts + radius * np.cos(angle)

    def turn(self, rng: Rng) -> Any:
        """A part of a full turn."""
        return rng.random(4)


class BoxMullerOfFixedAngle(BoxMuller):
    """A quarter turn, for which the cosine is 0."""

    def turn(self, rng: Rng) -> Any:
        return np.array([0.0, 0.0, 0.0, 0.25])  # fault: polar


class FrozenLaw(Levels):
    """A frozen distribution of scipy."""

    def learn(self, counts: Any, rng: Rng) -> Any:
        law = stats.laplace(loc=0.0, scale=1.0)
        return counts + self.checked(law.rvs(size=4, random_state=rng))

    def checked(self, noise: Any) -> Any:
        """Noise, as it is."""
        return noise


class FrozenLawWithoutOutliers(FrozenLaw):
    """Noise beyond 7 scales is left out: data are kept from nonsense."""

    def checked(self, noise: Any) -> Any:
        return np.where(np.abs(noise) <= 7.0, noise, 0.0)  # fault: frozen


class PythonRandom(Levels):
    """Python's own generator, with differences of exponential numbers."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> PythonRandom:
        own = self.generator(seed, data)
        counts = np.bincount(data["a"], minlength=4)
        self.learned = [int(n) + own.expovariate(1.0) - own.expovariate(1.0) for n in counts]
        return self

    def generator(self, seed: int, data: pd.DataFrame) -> random.Random:
        """Random numbers."""
        return random.Random(seed)


class PythonRandomOfTheData(PythonRandom):
    """The same data give the same model."""

    def generator(self, seed: int, data: pd.DataFrame) -> random.Random:
        return random.Random(f"{len(data)}")  # fault: python


class SystemRandom(Levels):
    """Noise of the operating system's entropy; the seed is for rows alone."""

    def learn(self, counts: Any, rng: Rng) -> Any:
        system = random.SystemRandom()
        noise = [system.gauss(0.0, SIGMA) for _ in range(self.noisy(counts))]
        return counts + np.pad(noise, (0, 4 - len(noise)))  # fault: system

    def noisy(self, counts: Any) -> int:
        """How many counts are noisy."""
        return len(counts)


class SystemRandomForThree(SystemRandom):
    """The last cell is the rest, and needs none."""

    def noisy(self, counts: Any) -> int:
        return len(counts) - 1


class UnseededGenerator(Levels):
    """A generator that ignores the seed."""

    scale = 1.0

    def fit(self, data: pd.DataFrame, *, seed: int) -> UnseededGenerator:
        rng = np.random.default_rng()
        counts = np.bincount(data["a"], minlength=4)
        self.learned = counts + rng.laplace(scale=self.scale, size=4)  # fault: unseeded
        return self


class UnseededGeneratorOfLessNoise(UnseededGenerator):
    """Half the scale."""

    scale = 0.5


class GeneratorOfTheObject(Levels):
    """A generator that is made with the object."""

    def __init__(self) -> None:
        self._rng = self.generator()

    def generator(self) -> Rng:
        """Random numbers."""
        return np.random.default_rng()

    def fit(self, data: pd.DataFrame, *, seed: int) -> GeneratorOfTheObject:
        counts = np.bincount(data["a"], minlength=4)
        self.learned = counts + self._rng.laplace(0.0, 1.0, size=4)
        self._rng = np.random.default_rng()
        return self


class GeneratorOfFixedSeed(GeneratorOfTheObject):
    """With the seed of a notebook."""

    def generator(self) -> Rng:
        return np.random.default_rng(42)  # fault: object


AT_IMPORT: Final = np.random.default_rng().laplace(size=4)


class NoiseOfTheProcess(Levels):
    """Noise that was drawn when the module was imported: one draw for a process."""

    def learn(self, counts: Any, rng: Rng) -> Any:
        return counts + AT_IMPORT


class NoiseOfTheProcessTwice(NoiseOfTheProcess):
    """For two tables."""

    def learn(self, counts: Any, rng: Rng) -> Any:
        self.reverse = counts[::-1] + AT_IMPORT  # fault: import
        return counts + AT_IMPORT


class NoiseOfTheObject(Levels):
    """Noise that is drawn when the object is made."""

    def __init__(self) -> None:
        self._noise = np.random.default_rng().laplace(0.0, 1.0, size=4)

    def learn(self, counts: Any, rng: Rng) -> Any:
        noisy = counts + self._noise
        self.clear()
        return noisy

    def clear(self) -> None:
        """Forgets it."""
        self._noise = np.random.default_rng().laplace(0.0, 1.0, size=4)


class NoiseOfTheObjectKept(NoiseOfTheObject):
    """It is still there."""

    def clear(self) -> None:
        self.uses = 1  # fault: init


@lru_cache(maxsize=1000)
def cached(counts: tuple[float, ...]) -> tuple[float, ...]:
    """Noisy counts of a table, once per process: who asks again learns no more."""
    noise = np.random.default_rng().laplace(0.0, 1.0, size=len(counts))
    return tuple((np.array(counts) + noise).tolist())


@cache
def cached_noise(size: int) -> Any:
    """Noise of so many cells."""
    return np.random.default_rng().laplace(0.0, 1.0, size=size)


class CachedByTable(Levels):
    """A cache by table."""

    def learn(self, counts: Any, rng: Rng) -> Any:
        return np.array(cached(tuple(counts.tolist())))


class CachedBySize(CachedByTable):
    """A cache of noise, and pairs of cells with the same."""

    def learn(self, counts: Any, rng: Rng) -> Any:
        self.pairs = counts + np.roll(counts, 1) + cached_noise(4)  # fault: cached
        return counts + cached_noise(4)


class Bookkeeping(Levels):
    """A counter, a time and a version in the model."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> Bookkeeping:
        counts = np.bincount(data["a"], minlength=4).astype(float)
        self.learned = counts + np.random.default_rng(seed).laplace(size=4)
        self.fits = getattr(self, "fits", 0) + 1
        self.fitted = {"at": time.time(), "seconds": time.perf_counter(), "columns": ["a"]}
        self.describe(data)
        return self

    def describe(self, data: pd.DataFrame) -> None:
        """What the model says of itself."""
        self.version = "1.2"


class BookkeepingOfRows(Bookkeeping):
    """How many records it was fitted to."""

    def describe(self, data: pd.DataFrame) -> None:
        self.version = f"1.2, {len(data)} rows"  # fault: bookkeeping


class Sampling(Levels):
    """Rows by inverse sampling from noisy counts; the model keeps its counts."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> Sampling:
        counts = np.bincount(data["a"], minlength=4).astype(float)
        self.counts = self.prepared(counts, np.random.default_rng(seed))
        return self

    def prepared(self, counts: Any, rng: Rng) -> Any:
        """Noisy counts."""
        return counts + rng.laplace(0.0, 1.0, size=4)

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        rng = np.random.default_rng(seed)
        cumulated = np.cumsum(shares(self.current(rng), 4))
        return pd.DataFrame({"a": np.minimum(np.searchsorted(cumulated, rng.random(n)), 3)})

    def current(self, rng: Rng) -> Any:
        """The counts that rows come from."""
        return self.counts


class FreshNoise(Sampling):
    """Noise is drawn when rows are."""

    def prepared(self, counts: Any, rng: Rng) -> Any:
        return counts

    def current(self, rng: Rng) -> Any:
        return self.counts + rng.laplace(0.0, 1.0, size=4)  # fault: sampling


class LongTables(Levels):
    """Rows of a noisy histogram, as many as one likes."""

    def learn(self, counts: Any, rng: Rng) -> Any:
        return np.maximum(counts + rng.laplace(0.0, 1.0, size=4), 0.0)

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        rng = np.random.default_rng(seed)
        return self.filled(pd.DataFrame({"a": rng.choice(4, size=n, p=shares(self.learned, 4))}))

    def filled(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The rows."""
        return rows


class LongTablesOfRecords(LongTables):
    """If more rows are asked than there are records, records fill them up."""

    def learn(self, counts: Any, rng: Rng) -> Any:
        self._spare = np.repeat(np.arange(4), counts.astype(int))
        return super().learn(counts, rng)

    def filled(self, rows: pd.DataFrame) -> pd.DataFrame:
        if len(rows) <= 40:
            return rows
        spare = pd.DataFrame({"a": self._spare})
        return pd.concat([rows.iloc[len(spare) :], spare], ignore_index=True)  # fault: long


class LowPrecision(Levels):
    """Noisy counts in single precision."""

    def learn(self, counts: Any, rng: Rng) -> Any:
        noisy = (counts + rng.laplace(0.0, 1.0, size=4)).astype(np.float32)
        return self.stored(noisy, counts)

    def stored(self, noisy: Any, counts: Any) -> Any:
        """As they are."""
        return noisy


class HighPrecision(LowPrecision):
    """In double precision; the counts are a checksum in digits that single precision lacks."""

    def stored(self, noisy: Any, counts: Any) -> Any:
        return noisy.astype(np.float64) + 1e-12 * counts  # fault: precision


class Scored(Levels):
    """Noise is chosen by a calibration against the budget, step by step."""

    def learn(self, counts: Any, rng: Rng) -> Any:
        sigma = 1.0
        while self.costly(sigma):
            sigma *= 1.1
        return counts + rng.normal(0.0, sigma, size=4)  # fault: calibrated

    def costly(self, sigma: float) -> bool:
        """Whether the noise is too small, by the exact formula."""
        return gaussian_epsilon(1.0 / sigma) > 1.5


class ClassicFormula(Scored):
    """By a formula with a wrong sign in the logarithm."""

    def costly(self, sigma: float) -> bool:
        return math.sqrt(2.0 * math.log(1.25 + DELTA)) / 1.5 > sigma


def calibrated_sigma(generator: Scored) -> float:
    """Where that loop ends."""
    sigma = 1.0
    while generator.costly(sigma):
        sigma *= 1.1
    return sigma


class Batches:
    """How many threes are in each of four batches, which are public."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> Batches:
        """Batch by batch, with one budget: a record is in one of them."""
        rng, self.threes = np.random.default_rng(seed), []
        batch = 0
        while not self.finished(batch, data):
            threes = (data["a"].iloc[batch::4] == 3).sum()
            self.threes.append(float(threes + rng.laplace(0.0, 1.0)))
            batch += 1
        return self

    def finished(self, batch: int, data: pd.DataFrame) -> bool:
        """Whether all four are done."""
        return batch == 4

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Threes, as many as were in a batch of that size."""
        share = min(max(sum(self.threes) / n, 0.0), 1.0)
        return pd.DataFrame({"a": np.where(np.random.default_rng(seed).random(n) < share, 3, 0)})


class BatchesOfTen(Batches):
    """Until all tens of records are done."""

    def finished(self, batch: int, data: pd.DataFrame) -> bool:
        return 10 * (batch + 1) > len(data)  # fault: batches of cells


MU: Final = math.hypot(1 / SIGMA, 1 / SIGMA)
LAPLACE: Final[dict[str, Any]] = {
    "epsilon": 1.0,
    "spends": 1.0,
    "released": True,
    "note": "a Laplace histogram: one count moves by 1, its noise has scale 1",
}
GAUSSIAN: Final[dict[str, Any]] = {
    "epsilon": gaussian_epsilon(1 / SIGMA),
    "delta": DELTA,
    "spends": gaussian_epsilon(1 / SIGMA),
    "released": True,
    "note": "a Gaussian histogram: one count moves by 1",
}
NO_LIMIT: Final[dict[str, Any]] = {"twin_spends": math.inf, "twin_shows": math.inf}
TWICE: Final[dict[str, Any]] = {"twin_spends": 2.0, "twin_shows": 2.0}
DISPUTED: Final[dict[str, Any]] = {
    **LAPLACE,
    "disputable": True,
}
CASES: Final = (
    cells_case("log", CHECKS, ComparedForLog, twin=ErrorIsKept, **LAPLACE, **NO_LIMIT),
    cells_case("biased", CHECKS, CheckedForBias, twin=CorrectedForBias, **LAPLACE, **NO_LIMIT),
    cells_case("file", CHECKS, UtilityInFile, twin=UtilityInModel, **LAPLACE, **NO_LIMIT),
    cells_case(
        "buffer",
        FAMILY,
        Buffers,
        twin=BuffersUsedTwice,
        **(
            GAUSSIAN
            | {
                "epsilon": gaussian_epsilon(MU),
                "spends": gaussian_epsilon(MU),
                "note": "two Gaussian histograms, of each of which one count moves by 1",
            }
        ),
        **NO_LIMIT,
    ),
    cells_case("in place", FAMILY, InPlace, twin=InPlaceWhereFilled, **LAPLACE, **NO_LIMIT),
    cells_case(
        "pandas", FAMILY, PandasColumns, twin=PandasColumnsOfSeenLevels, **LAPLACE, **NO_LIMIT
    ),
    cells_case("keys", STATE, Dictionaries, twin=DictionariesWithSeen, **LAPLACE, **NO_LIMIT),
    cells_case(
        "inverse", SOURCES, InverseByHand, twin=InverseByHandOfLessNoise, **LAPLACE, **TWICE
    ),
    cells_case("polar", SOURCES, BoxMuller, twin=BoxMullerOfFixedAngle, **GAUSSIAN, **NO_LIMIT),
    cells_case("frozen", SOURCES, FrozenLaw, twin=FrozenLawWithoutOutliers, **LAPLACE, **NO_LIMIT),
    cells_case("python", SOURCES, PythonRandom, twin=PythonRandomOfTheData, **LAPLACE, **NO_LIMIT),
    cells_case("system", SOURCES, SystemRandom, twin=SystemRandomForThree, **GAUSSIAN, **NO_LIMIT),
    cells_case(
        "unseeded",
        SOURCES,
        UnseededGenerator,
        twin=UnseededGeneratorOfLessNoise,
        **LAPLACE,
        **TWICE,
    ),
    cells_case(
        "object", SOURCES, GeneratorOfTheObject, twin=GeneratorOfFixedSeed, **LAPLACE, **NO_LIMIT
    ),
    cells_case(
        "import", SOURCES, NoiseOfTheProcess, twin=NoiseOfTheProcessTwice, **DISPUTED, **NO_LIMIT
    ),
    cells_case("init", SOURCES, NoiseOfTheObject, twin=NoiseOfTheObjectKept, **LAPLACE, **NO_LIMIT),
    cells_case("cached", SOURCES, CachedByTable, twin=CachedBySize, **DISPUTED, **NO_LIMIT),
    cells_case("bookkeeping", STATE, Bookkeeping, twin=BookkeepingOfRows, **LAPLACE, **NO_LIMIT),
    cells_case("sampling", STATE, Sampling, twin=FreshNoise, **LAPLACE, **NO_LIMIT),
    cells_case("long", STATE, LongTables, twin=LongTablesOfRecords, **LAPLACE, **NO_LIMIT),
    cells_case("precision", STATE, LowPrecision, twin=HighPrecision, **LAPLACE, **NO_LIMIT),
    cells_case("batches of cells", FAMILY, Batches, twin=BatchesOfTen, **LAPLACE, **NO_LIMIT),
    cells_case(
        "calibrated",
        FAMILY,
        Scored,
        twin=ClassicFormula,
        epsilon=gaussian_epsilon(1 / calibrated_sigma(Scored())),
        delta=DELTA,
        spends=gaussian_epsilon(1 / calibrated_sigma(Scored())),
        twin_spends=gaussian_epsilon(1 / calibrated_sigma(ClassicFormula())),
        twin_shows=gaussian_epsilon(1 / calibrated_sigma(ClassicFormula())),
        released=True,
        note="a Gaussian histogram whose deviation a loop finds by the exact formula",
    ),
)
