"""Noise in transformed counts: cosines, Fourier, wavelets, trees, strategies, distributions."""

# ruff: noqa: D102 (overridden methods: their class says what they do)

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy.fft import dct, idct
from scipy.ndimage import convolve1d

from reports.replay.honest.exact import (
    DELTA,
    gaussian_epsilon,
    linear_mu,
    matrix_of,
    moved_mu,
    worst_place,
)
from reports.replay.honest.models import Levels, Rng, levels_case

FAMILY: Final = "transformed counts"
BINS: Final = 16
SIGMA: Final = 1.5


def low(counts: Any) -> Any:
    """The four lowest cosine coefficients."""
    return dct(counts, norm="ortho")[:4]


COSINES: Final = matrix_of(low, BINS)
STEEPEST: Final = worst_place(COSINES)
RECORD: Final = float(np.linalg.norm(COSINES[:, STEEPEST]))
"""How far one record moves the four coefficients."""


class LowPass(Levels):
    """Noisy counts, of which the low frequencies are kept."""

    levels = BINS

    def learn(self, counts: Any, rng: Rng) -> Any:
        noisy = counts + rng.normal(0.0, SIGMA, size=BINS)
        spectrum = dct(noisy, norm="ortho")
        spectrum[4:] = 0.0
        return self.finish(idct(spectrum, norm="ortho"), counts)

    def finish(self, smooth: Any, counts: Any) -> Any:
        """The smooth counts."""
        return smooth


class LowPassOfTheTotal(LowPass):
    """They are brought to the number of records, as if it were public."""

    def finish(self, smooth: Any, counts: Any) -> Any:
        return smooth - smooth.mean() + counts.mean()  # fault: low pass


class NoisyCosines(Levels):
    """Noise on four coefficients, for the distance that a record moves them."""

    levels = BINS
    moved = RECORD

    def learn(self, counts: Any, rng: Rng) -> Any:
        coefficients = dct(counts, norm="ortho")[:4]
        coefficients += rng.normal(0.0, SIGMA * self.moved, size=4)  # fault: cosines
        return coefficients


class NoisyCosinesOneByOne(NoisyCosines):
    """For how far it moves any one of them."""

    moved = float(np.abs(COSINES).max())


class FourierPerturbation(Levels):
    """Laplace noise on real and imaginary parts of the lowest Fourier coefficients."""

    levels = BINS

    def learn(self, counts: Any, rng: Rng) -> Any:
        lowest = np.fft.rfft(counts, norm="ortho")[:3]
        scale = self.scale()
        return lowest + rng.laplace(0, scale, 3) + 1j * rng.laplace(0, scale, 3)  # fault: fourier

    def scale(self) -> float:
        """The most that a record moves real and imaginary parts together."""
        lowest = np.fft.rfft(np.eye(BINS), norm="ortho")[:, :3]
        return float((np.abs(lowest.real) + np.abs(lowest.imag)).sum(axis=1).max())

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        p = np.maximum(np.fft.irfft(self.learned, n=BINS, norm="ortho"), 0.0) + 0.01
        drawn = np.random.default_rng(seed).choice(BINS, size=n, p=p / p.sum())
        return pd.DataFrame({"a": drawn})


class FourierOfRealParts(FourierPerturbation):
    """Imaginary parts are forgotten."""

    def scale(self) -> float:
        lowest = np.fft.rfft(np.eye(BINS), norm="ortho")[:, :3]
        return float(np.abs(lowest.real).sum(axis=1).max())


def fourier_moved() -> tuple[int, float]:
    """The bin that moves the coefficients most, and how far."""
    lowest = np.fft.rfft(np.eye(BINS), norm="ortho")[:, :3]
    moved = (np.abs(lowest.real) + np.abs(lowest.imag)).sum(axis=1)
    return int(moved.argmax()), float(moved.max())


class Wavelet:
    """Haar differences of sums, level by level, each with a fifth of epsilon."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> Wavelet:
        """Halves the table until single bins are left."""
        rng = np.random.default_rng(seed)
        sums = np.bincount(data["a"], minlength=BINS).astype(float)
        self.details = []
        while len(sums) > 1:
            left, right = sums[::2], sums[1::2]
            noise = rng.laplace(scale=5.0, size=len(left))
            self.details.append(left - right + noise)
            sums = left + right
        self.total = float(sums[0] + self.last(noise, rng))
        return self

    def last(self, noise: Any, rng: Rng) -> float:
        """Noise of the total."""
        return float(rng.laplace(scale=5.0))

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Builds the counts again, and draws."""
        sums = np.array([self.total])
        for detail in self.details[::-1]:
            sums = np.stack([(sums + detail) / 2, (sums - detail) / 2], axis=1).ravel()
        p = np.maximum(sums, 0.0) + 0.01
        drawn = np.random.default_rng(seed).choice(BINS, size=n, p=p / p.sum())
        return pd.DataFrame({"a": drawn})


class WaveletWithNoiseReused(Wavelet):
    """The total has the noise of the coarsest difference."""

    def last(self, noise: Any, rng: Rng) -> float:
        return float(noise[0])  # fault: wavelet


def tree() -> Any:
    """Sums of a binary tree over the bins, from the root down: 31 rows."""
    return np.concatenate([np.kron(np.eye(2**level), np.ones(BINS >> level)) for level in range(5)])


class Tree(Levels):
    """Noisy sums of a binary tree, made consistent by least squares."""

    levels = BINS
    scales = (5.0,) * 5

    def learn(self, counts: Any, rng: Rng) -> Any:
        noisy = []
        for level, scale in enumerate(self.scales):
            sums = counts.reshape(2**level, -1).sum(axis=1)
            noisy.append(sums + rng.laplace(0.0, scale, size=sums.shape))  # fault: tree
        return np.linalg.lstsq(tree(), np.concatenate(noisy), rcond=None)[0]


class TreeOfBareLeaves(Tree):
    """The leaves have the noise of a histogram alone."""

    scales = (5.0, 5.0, 5.0, 5.0, 1.0)


class GaussianTree(Tree):
    """The same with Gaussian noise."""

    sigma = 4.0

    def learn(self, counts: Any, rng: Rng) -> Any:
        answers = tree() @ counts
        answers += rng.normal(0.0, self.sigma, size=31)
        return np.linalg.pinv(tree()) @ self.trusted(answers, counts)

    def trusted(self, answers: Any, counts: Any) -> Any:
        """The answers, as they are."""
        return answers


class GaussianTreeWithKnownRoot(GaussianTree):
    """The root is taken for known."""

    def trusted(self, answers: Any, counts: Any) -> Any:
        return np.append(counts.sum(), answers[1:])  # fault: gaussian tree


def known_root_mu() -> float:
    """Mu of the estimate if the root has no noise."""
    return moved_mu(np.linalg.pinv(tree())[:, 1:], np.eye(BINS)[7], GaussianTree.sigma)


def strategy() -> Any:
    """A strategy for ranges: cumulated counts, at half weight, and the counts."""
    return np.vstack([0.5 * np.tril(np.ones((BINS, BINS))), np.eye(BINS)])


class MatrixMechanism(Levels):
    """Ranges by a strategy, and the counts that fit its noisy answers best."""

    levels = BINS

    def learn(self, counts: Any, rng: Rng) -> Any:
        queries = strategy()
        noise = rng.standard_normal(len(queries)) * self.moved(queries) * SIGMA
        return np.linalg.lstsq(queries, queries @ counts + noise, rcond=None)[0]  # fault: strategy

    def moved(self, queries: Any) -> float:
        """How far one record moves the answers."""
        return float(np.linalg.norm(queries, axis=0).max())


class MatrixMechanismByLargestEntry(MatrixMechanism):
    """How far it moves any one answer."""

    def moved(self, queries: Any) -> float:
        return float(np.abs(queries).max())


class Quartiles(Levels):
    """Three quartiles, read off a noisy distribution function."""

    levels = BINS

    def learn(self, counts: Any, rng: Rng) -> Any:
        noisy = np.maximum.accumulate(np.cumsum(counts + rng.laplace(size=BINS)))
        return np.searchsorted(noisy, np.array([0.25, 0.5, 0.75]) * self.total(noisy, counts))

    def total(self, noisy: Any, counts: Any) -> float:
        """Where the noisy distribution ends."""
        return float(noisy[-1])


class QuartilesOfKnownTotal(Quartiles):
    """Quarters of the number of records, which is kept."""

    def total(self, noisy: Any, counts: Any) -> float:
        self.records = float(counts.sum())  # fault: quartiles
        return self.records


class SmoothedHistogram(Levels):
    """Noisy counts, smoothed around a circle: what alternates is lost."""

    levels = BINS
    kernel = np.array([0.25, 0.5, 0.25])
    sigma = SIGMA

    def learn(self, counts: Any, rng: Rng) -> Any:
        noisy = counts + self.sigma * rng.normal(size=BINS)  # fault: circle
        return convolve1d(noisy, self.kernel, mode="wrap")


class SmoothedHistogramOfLessNoise(SmoothedHistogram):
    """Half the deviation."""

    sigma = SIGMA / 2


class PowerSpectrum(Levels):
    """How strong each frequency is in noisy counts."""

    levels = BINS

    def learn(self, counts: Any, rng: Rng) -> Any:
        noisy = counts + rng.normal(0.0, SIGMA, size=BINS)
        return self.power(np.fft.rfft(noisy), np.fft.rfft(counts))

    def power(self, noisy: Any, exact: Any) -> Any:
        """Squares."""
        return np.abs(noisy) ** 2


class PowerOverTheTotal(PowerSpectrum):
    """Relative to the total, which is no frequency."""

    def power(self, noisy: Any, exact: Any) -> Any:
        power = np.abs(noisy) ** 2
        power[0] = np.abs(exact[0]) ** 2  # fault: power
        return power


class Blocks(Levels):
    """Noisy counts in blocks of four bins, which are published."""

    levels = BINS

    def learn(self, counts: Any, rng: Rng) -> Any:
        noisy = counts + rng.normal(0.0, SIGMA, size=BINS)
        return self.publish(noisy)

    def publish(self, noisy: Any) -> Any:
        """Sums of blocks."""
        return noisy.reshape(-1, 4).sum(axis=1)


class BlocksAndBins(Blocks):
    """The bins are kept for later."""

    def publish(self, noisy: Any) -> Any:
        self.cache = {"bins": noisy.tolist()}  # fault: blocks
        return noisy.reshape(-1, 4).sum(axis=1)


ALONE: Final = gaussian_epsilon(1 / SIGMA)
CIRCLE: Final = matrix_of(lambda row: convolve1d(row, SmoothedHistogram.kernel, mode="wrap"), BINS)
FOURIER_BIN, FOURIER_MOVED = fourier_moved()
STRATEGY_NORM: Final = float(np.linalg.norm(strategy(), axis=0).max())
CASES: Final = tuple(
    levels_case(name, FAMILY, generator, levels=BINS, twin=twin, **known)
    for name, generator, twin, known in (
        (
            "low pass",
            LowPass,
            LowPassOfTheTotal,
            {
                "place": STEEPEST,
                "epsilon": gaussian_epsilon(linear_mu(COSINES, STEEPEST, SIGMA)),
                "delta": DELTA,
                "spends": ALONE,
                "twin_spends": math.inf,
                "twin_shows": math.inf,
                "note": "four orthonormal rows of Gaussian noise: mu is the norm of their column",
            },
        ),
        (
            "cosines",
            NoisyCosines,
            NoisyCosinesOneByOne,
            {
                "place": STEEPEST,
                "epsilon": ALONE,
                "delta": DELTA,
                "spends": ALONE,
                "twin_spends": gaussian_epsilon(RECORD / NoisyCosinesOneByOne.moved / SIGMA),
                "twin_shows": gaussian_epsilon(RECORD / NoisyCosinesOneByOne.moved / SIGMA),
                "released": True,
                "note": "Gaussian mechanism with the L2 sensitivity of four coefficients",
            },
        ),
        (
            "fourier",
            FourierPerturbation,
            FourierOfRealParts,
            {
                "place": FOURIER_BIN,
                "epsilon": 1.0,
                "spends": 1.0,
                "twin_spends": FOURIER_MOVED / FourierOfRealParts().scale(),
                "twin_shows": FOURIER_MOVED / FourierOfRealParts().scale(),
                "released": True,
                "note": "Laplace mechanism with the L1 sensitivity of real and imaginary parts",
            },
        ),
        (
            "wavelet",
            Wavelet,
            WaveletWithNoiseReused,
            {
                "place": 13,
                "epsilon": 1.0,
                "spends": 1.0,
                "twin_spends": math.inf,
                "twin_shows": math.inf,
                "released": True,
                "note": "one coefficient of each of five levels moves by 1, each costs a fifth",
            },
        ),
        (
            "tree",
            Tree,
            TreeOfBareLeaves,
            {
                "place": 7,
                "epsilon": 1.0,
                "spends": 1.0,
                "twin_spends": 1.8,
                "note": "five Laplace sums move by 1, each costs a fifth; least squares afterwards",
            },
        ),
        (
            "gaussian tree",
            GaussianTree,
            GaussianTreeWithKnownRoot,
            {
                "place": 7,
                "epsilon": gaussian_epsilon(math.sqrt(5) / GaussianTree.sigma),
                "delta": DELTA,
                "spends": gaussian_epsilon(math.sqrt(5) / GaussianTree.sigma),
                "twin_spends": math.inf,
                "twin_shows": gaussian_epsilon(known_root_mu()),
                "note": "least squares of Gaussian answers is sufficient: all of it is shown",
            },
        ),
        (
            "strategy",
            MatrixMechanism,
            MatrixMechanismByLargestEntry,
            {
                "place": 0,
                "epsilon": ALONE,
                "delta": DELTA,
                "spends": ALONE,
                "twin_spends": gaussian_epsilon(STRATEGY_NORM / SIGMA),
                "twin_shows": gaussian_epsilon(STRATEGY_NORM / SIGMA),
                "note": "least squares of Gaussian answers is sufficient: all of it is shown",
            },
        ),
        (
            "quartiles",
            Quartiles,
            QuartilesOfKnownTotal,
            {
                "place": 14,
                "epsilon": 1.0,
                "spends": 1.0,
                "twin_spends": math.inf,
                "twin_shows": math.inf,
                "note": "post-processing of a Laplace histogram; three bins show less",
            },
        ),
        (
            "circle",
            SmoothedHistogram,
            SmoothedHistogramOfLessNoise,
            {
                "place": 5,
                "epsilon": gaussian_epsilon(linear_mu(CIRCLE, 5, SIGMA)),
                "delta": DELTA,
                "spends": ALONE,
                "twin_spends": gaussian_epsilon(2 / SIGMA),
                "twin_shows": gaussian_epsilon(linear_mu(CIRCLE, 5, SIGMA / 2)),
                "note": "a circulant matrix of rank 15: mu is sqrt(15 / 16) of the histogram's",
            },
        ),
        (
            "power",
            PowerSpectrum,
            PowerOverTheTotal,
            {
                "place": 5,
                "epsilon": ALONE,
                "delta": DELTA,
                "spends": ALONE,
                "twin_spends": math.inf,
                "twin_shows": math.inf,
                "note": "post-processing of a Gaussian histogram; without phases it shows less",
            },
        ),
        (
            "blocks",
            Blocks,
            BlocksAndBins,
            {
                "place": 6,
                "epsilon": gaussian_epsilon(1 / (2 * SIGMA)),
                "delta": DELTA,
                "spends": ALONE,
                "twin_spends": ALONE,
                "twin_shows": ALONE,
                "note": "sums of four Gaussian numbers of which one moves: half its mu",
            },
        ),
    )
)
