"""Secret sub-samples: Poisson, of a fixed size, by permutation and by pandas."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pandas as pd

from dpaudit.model.claim import Neighbours
from reports.replay.honest.bases import CountsModel, Rng
from reports.replay.honest.case import CELLS, CELLS_SCHEMA, Case, cells_table

DELTA = 1e-5
RATE = 0.25


class Sampled(CountsModel):
    """Noisy counts of a sub-sample.

    Attributes:
        scale: Of the noise.
    """

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale

    def fit(self, data: pd.DataFrame, *, seed: int) -> Sampled:
        """Draws a sub-sample and counts it."""
        rng = np.random.default_rng(seed)
        self.noisy = self._noisy(self._drawn(data["a"].to_numpy(), rng), rng)
        return self

    def _drawn(self, values: Any, rng: Rng) -> Any:
        return values[rng.random(len(values)) < RATE]

    def _noisy(self, values: Any, rng: Rng) -> Any:
        counts = np.bincount(values, minlength=CELLS)
        return counts + rng.laplace(scale=self.scale, size=CELLS)  # fault: sampled


class RateNotApplied(Sampled):
    """The twin: the rate is in the claim only."""

    def _drawn(self, values: Any, rng: Rng) -> Any:
        return values  # fault: sampled


class Reversed(Sampled):
    """Another twin: who should stay out is in."""

    def _drawn(self, values: Any, rng: Rng) -> Any:
        return values[rng.random(len(values)) > RATE]  # fault: sampled


class CoinsKept(Sampled):
    """Another twin: the model keeps the coins, and so the number of records."""

    def _drawn(self, values: Any, rng: Rng) -> Any:
        self.drawn = rng.random(len(values)) < RATE  # fault: sampled
        return values[self.drawn]


class ByBinomial(Sampled):
    """The coins as binomial draws."""

    def _drawn(self, values: Any, rng: Rng) -> Any:
        return values[rng.binomial(1, RATE, size=len(values)) == 1]


class InPython(Sampled):
    """One coin after another in plain Python."""

    def _drawn(self, values: Any, rng: Rng) -> Any:
        own = random.Random(int(rng.integers(2**31)))
        return np.array([v for v in values.tolist() if own.random() < RATE], dtype=int)


class SizeFirst(Sampled):
    """A binomial size, then a choice of that many: the same as coins."""

    def _drawn(self, values: Any, rng: Rng) -> Any:
        size = rng.binomial(len(values), RATE)
        return rng.choice(values, size=size, replace=False)


class GaussianSampled(Sampled):
    """Gaussian noise."""

    def _noisy(self, values: Any, rng: Rng) -> Any:
        counts = np.bincount(values, minlength=CELLS)
        return counts + rng.normal(0.0, self.scale, CELLS)  # fault: gaussian-sampled


class GaussianNotSampled(GaussianSampled):
    """The twin: everybody is in."""

    def _drawn(self, values: Any, rng: Rng) -> Any:
        return values  # fault: gaussian-sampled


class Steps(Sampled):
    """Eight Gaussian steps with a sub-sample for each, of which an average is released."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> Steps:
        """Averages eight steps."""
        rng, values = np.random.default_rng(seed), data["a"].to_numpy()
        self.noisy = np.zeros(CELLS)
        for _ in range(8):
            counts = np.bincount(self._drawn(values, rng), minlength=CELLS)
            noisy = counts + rng.normal(0.0, self.scale, CELLS)  # fault: steps
            self.noisy = self.noisy + noisy / 8
        return self


class StepsOfAll(Steps):
    """The twin: everybody is in every step."""

    def _drawn(self, values: Any, rng: Rng) -> Any:
        return values  # fault: steps


class FixedSize(Sampled):
    """A quarter of the records, without replacement; one record is replaced."""

    def _drawn(self, values: Any, rng: Rng) -> Any:
        return values[rng.choice(len(values), size=len(values) // 4, replace=False)]


class ByPermutation(FixedSize):
    """The same by the head of a permutation."""

    def _drawn(self, values: Any, rng: Rng) -> Any:
        return values[rng.permutation(len(values))[: len(values) // 4]]


class ByShuffle(FixedSize):
    """The same by shuffling a copy."""

    def _drawn(self, values: Any, rng: Rng) -> Any:
        shuffled = values.copy()
        rng.shuffle(shuffled)
        return shuffled[: len(values) // 4]


class ByPandas(FixedSize):
    """The same by `DataFrame.sample`."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> ByPandas:
        """Draws a sub-sample and counts it."""
        drawn = data.sample(n=len(data) // 4, random_state=seed)
        self.noisy = self._noisy(drawn["a"].to_numpy(), np.random.default_rng([seed, 1]))
        return self


class InPythonFixed(FixedSize):
    """The same by `random.sample`."""

    def _drawn(self, values: Any, rng: Rng) -> Any:
        own = random.Random(int(rng.integers(2**31)))
        return values[own.sample(range(len(values)), len(values) // 4)]


class ChosenByData(FixedSize):
    """The twin: the quarter with the largest values."""

    def _drawn(self, values: Any, rng: Rng) -> Any:
        return np.sort(values)[-(len(values) // 4) :]  # fault: sampled


class PublicBatches(CountsModel):
    """One epoch over four batches of a permutation that is released with the noisy counts."""

    sigma = 2.0

    def fit(self, data: pd.DataFrame, *, seed: int) -> PublicBatches:
        """Counts every batch."""
        rng, values = np.random.default_rng(seed), data["a"].to_numpy()
        self.order = rng.permutation(len(values))
        self.noisy_batches = []
        for batch in np.array_split(self.order, 4):
            counts = np.bincount(values[batch], minlength=CELLS)
            noisy = counts + rng.normal(0.0, self.sigma, CELLS)  # fault: batches
            self.noisy_batches.append(noisy)
        self.noisy = np.sum(self.noisy_batches, axis=0)
        return self


class BatchesNoiseOfMean(PublicBatches):
    """The twin: the noise of a mean on a sum."""

    sigma = 0.5


def _case(name: str, generator: Any, twin: Any, marker: str, **known: Any) -> Case:
    return Case(
        name=name,
        family="sub-samples",
        generator=generator,
        table=cells_table(),
        schema=CELLS_SCHEMA,
        target="row:39",
        twin=twin,
        twin_marker=f"# fault: {marker}",
        **known,
    )


AMPLIFIED = math.log(1.0 + RATE * math.expm1(1.0))
POISSON: dict[str, Any] = {
    "epsilon": AMPLIFIED,
    "spends": AMPLIFIED,
    "released": True,
    "twin_spends": 1.0,
    "twin_shows": 1.0,
    "note": "log(1 + q (e - 1)), which the upper tail of the noisy count reaches",
}
SHOWN: dict[str, Any] = {"twin_spends": math.inf, "twin_shows": math.inf}
FIXED: dict[str, Any] = {
    "epsilon": AMPLIFIED,
    "released": True,
    "neighbours": Neighbours.REPLACE_ONE,
    "note": "log(1 + m / n (e - 1)): two counts move by one, noise has scale 2 (Balle et al. 2018)",
}


def _fixed(name: str, kind: type[FixedSize]) -> Case:
    return _case(name, lambda: kind(2.0), lambda: ChosenByData(2.0), "sampled", **FIXED)


CASES = (
    _case("Poisson, Laplace", Sampled, RateNotApplied, "sampled", **POISSON),
    _case("Poisson by binomial draws", ByBinomial, RateNotApplied, "sampled", **POISSON),
    _case("Poisson in Python", InPython, RateNotApplied, "sampled", **POISSON),
    _case("Poisson, size first", SizeFirst, CoinsKept, "sampled", **(POISSON | SHOWN)),
    _case(
        "Poisson, coins reversed",
        Sampled,
        Reversed,
        "sampled",
        **(POISSON | {"twin_spends": 0.82796, "twin_shows": 0.82796}),
    ),
    _case(
        "Poisson, Gaussian",
        GaussianSampled,
        GaussianNotSampled,
        "gaussian-sampled",
        epsilon=2.708,
        delta=DELTA,
        spends=2.708,
        twin_spends=4.377179,
        twin_shows=4.377179,
        released=True,
        note="the target is alone in its cell: a mixture of two Gaussian densities against one",
    ),
    _case(
        "Poisson, eight Gaussian steps",
        lambda: Steps(2.0),
        lambda: StepsOfAll(0.5),
        "steps",
        epsilon=1.83,
        delta=DELTA,
        spends=1.83,
        twin_spends=39.382815,
        twin_shows=39.382815,
        note="composed by a privacy loss distribution; the average of the steps shows less. "
        "The twin has a quarter of the noise and no sub-samples",
    ),
    _fixed("a quarter by choice", FixedSize),
    _fixed("a quarter by permutation", ByPermutation),
    _fixed("a quarter by shuffling", ByShuffle),
    _fixed("a quarter by pandas", ByPandas),
    _fixed("a quarter by random.sample", InPythonFixed),
    _case(
        "public batches of a permutation",
        PublicBatches,
        BatchesNoiseOfMean,
        "batches",
        epsilon=2.943226,
        delta=DELTA,
        neighbours=Neighbours.REPLACE_ONE,
        spends=2.943226,
        twin_spends=15.456157,
        released=True,
        note="two counts of one batch move by one: mu is the root of 2, divided by sigma",
    ),
)
