"""A generator that reports what a PATE-GAN would, with flaws by name, and trains nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from dpaudit.account import VoteTable, epsilon_from_moments, pate_moments
from dpaudit.account.moments import Deviation, algorithm_1_moments
from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.plugins.recorder import NoiseOn, Reader, Recorder, Stage
from dpaudit.trace import TraceReport, trace

SCHEMA = Schema(
    columns=(
        Column(name="age", kind=Kind.INTEGER, lower=50, upper=60),
        Column(name="income", kind=Kind.CONTINUOUS, lower=0, upper=100),
        Column(name="ill", kind=Kind.BINARY, categories=("no", "yes")),
    ),
    label="ill",
)
ORDERS = np.arange(1.0, 51.0)
DELTA = 1e-5
GAUSSIAN = math.sqrt(2 * math.log(1.25 / DELTA))  # at epsilon 1


def table(n: int = 200, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(51, 58, n),
            "income": rng.uniform(5, 90, n),
            "ill": rng.choice(["no", "yes"], n, p=[0.7, 0.3]),
        }
    )


@dataclass(frozen=True, kw_only=True)
class Scripted:
    """Tells what a PATE-GAN would tell, without training anything.

    Its flaws are named by the findings that they should give.
    """

    flaws: frozenset[str] = frozenset()
    epsilon: float = 20.0
    teachers: int = 10
    gamma: float = 0.02
    iterations: int = 30
    batch: int = 64
    shares: tuple[float, ...] = (0.1, 0.5, 0.9)
    """Shares of the teachers that vote 1, one of them in each query."""

    @property
    def claim(self) -> PrivacyClaim:
        return PrivacyClaim(epsilon=self.epsilon, delta=DELTA)

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> Any:
        return data  # no model: a trace does not call fit

    def exercises(self) -> Sequence[Scripted]:
        # Far more noise than privacy: Theorem 3's term is the smallest.
        return [replace(self, gamma=0.5, epsilon=1e6)]

    def trace(
        self, data: pd.DataFrame, *, n_rows: int, seed: int, recorder: Recorder
    ) -> pd.DataFrame:
        return Script(self, data, np.random.default_rng(seed), recorder).run(n_rows)


class Script:
    def __init__(
        self, made: Scripted, data: pd.DataFrame, rng: np.random.Generator, recorder: Recorder
    ) -> None:
        self.made, self.data, self.rng, self.tell = made, data, rng, recorder
        self.n, self.k = len(data), made.teachers
        if self.has("teachers-from-rows"):
            self.k = max(1, self.n // 20)
        self.spent = np.zeros(len(ORDERS))

    def has(self, flaw: str) -> bool:
        return flaw in self.made.flaws

    def run(self, n_rows: int) -> pd.DataFrame:
        made, tell = self.made, self.tell
        pate = not self.has("no-pate")
        tell.constant("teachers", self.k)
        batch = min(made.batch, self.n // self.k) if self.has("batch-from-rows") else made.batch
        tell.constant("batch", batch)
        tell.constant("rate", 1 / self.n if self.has("constant-from-rows") else 1e-4)
        weight = self.k if self.has("penalty-from-teachers") else 10
        tell.constant("gradient_penalty", 7 if self.has("gradient-penalty") else weight)
        if pate:
            tell.constant("gamma", made.gamma)
            tell.promised(VoteTable.noisy_max(self.k, 1 / made.gamma))
        self.bounds()
        counts = self.data["ill"].value_counts()
        tell.label_counts(list(counts) if self.has("labels-copied") else [100, 100])
        parts = self.deal()
        for number in range(made.iterations):
            tell.iteration()
            if self.has("partition-reshuffled"):
                parts = list(np.array_split(self.rng.permutation(self.n), self.k))
            self.read(parts, Reader.TEACHER if pate else Reader.STUDENT)
            for index in range(self.k):
                start = 0.0 if self.has("teachers-refitted") else float(number)
                tell.taught(index, before=np.array([start]), after=np.array([number + 1.0]))
            tell.fed(Stage.TRAINING, self.rng.uniform(-1, 1, (64, 4)))
            if pate:
                self.label()
            else:
                tell.noise(self.rng.laplace(size=64), on=NoiseOn.LABELS)
        self.descend()
        normal = self.has("sampling-noise-differs")
        shape = (max(n_rows, 500), 4)
        fed = self.rng.standard_normal(shape) if normal else self.rng.uniform(-1, 1, shape)
        tell.fed(Stage.SAMPLING, fed)
        return self.sample(n_rows)

    def descend(self) -> None:
        """Steps of DP-SGD, on the records too: their cost is small beside the votes'."""
        rate, clip, steps = 0.2, 0.5, 40
        scale = 0.3 if self.has("gradient-steps-not-accounted") else 10.0
        self.tell.constant("sampling_rate", rate)
        self.tell.constant("clip", clip)
        self.tell.constant("noise_multiplier", scale)
        for step in range(steps):
            rows = np.flatnonzero(self.rng.random(self.n) < rate)
            if self.has("batches-not-sampled"):
                rows = np.arange(step % 5, self.n, 5)
            clipped = np.minimum(self.rng.exponential(size=len(rows)), clip)
            if self.has("gradients-not-clipped"):
                clipped = clipped * 3
            added = clipped + 10 * self.has("gradient-part-not-clipped")
            noise = self.rng.normal(0, clip * scale, 50)
            if self.has("gradient-noise-skipped"):
                noise *= step % 5 == 0
            if self.has("gradient-noise-scale"):
                noise /= math.sqrt(self.made.batch)
            self.tell.summed(rows, clipped=clipped, added=added, noise=noise)

    def bounds(self) -> None:
        for column in SCHEMA.columns[:2]:
            numbers = column.bounds
            if self.has("bounds-from-data"):
                values = self.data[column.name]
                numbers = (float(values.min()), float(values.max()))
            if self.has("private-bounds"):  # no flaw: noise hides what they come from
                numbers = (numbers[0], numbers[1] + float(self.rng.laplace()) + self.n / 100)
            if self.has("mixture-from-data"):
                numbers = (float(self.data[column.name].mean()), 1.0)
            self.tell.scaling(column.name, numbers)

    def deal(self) -> list[Any]:
        if self.has("partition-all-rows"):
            return [np.arange(self.n)] * self.k
        if self.has("partition-last-only"):
            size = self.n // self.k
            return [np.arange(self.n - size, self.n)] * self.k
        if self.has("partition-by-position"):
            return list(np.array_split(np.arange(self.n), self.k))
        owners = np.array([hash(value) % self.k for value in self.data["income"]])
        cells = [np.flatnonzero(owners == index) for index in range(self.k)]
        if self.has("partition-overlapping"):
            cells[1] = np.union1d(cells[0], cells[1])
        if self.has("rows-never-used"):
            cells[0] = cells[0][:0]
        return cells

    def read(self, parts: list[Any], reader: Reader) -> None:
        for index, part in enumerate(parts):
            if len(part):
                self.tell.read(reader, self.rng.choice(part, self.made.batch), index=index)
        real = self.rng.integers(0, self.n, 8)
        for flaw, who in (
            ("student-sees-real-rows", Reader.STUDENT),
            ("generator-sees-real-rows", Reader.GENERATOR),
            ("conditions-from-data", Reader.CONDITIONS),
        ):
            if self.has(flaw):
                self.tell.read(who, real)

    def label(self) -> None:
        gamma, n = self.made.gamma, 64
        ones = np.rint(self.k * self.rng.choice(self.made.shares, n)).astype(np.int64)
        scale = 1 / gamma
        if self.has("noise-scale-inverted"):
            scale = gamma
        if self.has("noise-wrong-scale"):
            scale = 0.8 / gamma
        if any(map(self.has, ("noise-gaussian-on-labels", "sigma-xor", "sigma-multiplied"))):
            inverse = 15.0 if self.has("sigma-xor") else 1 / DELTA
            inverse = 10.0**DELTA if self.has("sigma-multiplied") else inverse
            sigma = math.sqrt(2 * math.log(1.25 * inverse)) / self.made.epsilon
            noise = self.rng.normal(0, sigma, n)
            labels = (ones > self.k / 2) + noise > 0.5
            self.tell.noise(noise, on=NoiseOn.LABELS)
        elif self.has("one-noise-charged-as-two"):
            noise = self.rng.laplace(0, scale, n)
            labels = ones + noise > self.k / 2
            self.tell.noise(noise, on=NoiseOn.VOTES)
        else:
            noise = self.rng.laplace(0, scale, (2, n))
            if self.has("noise-wrong-law"):
                noise = self.rng.normal(0, math.sqrt(2) * scale, (2, n))
            labels = ones + noise[0] > self.k - ones + noise[1]
            self.tell.noise(noise, on=NoiseOn.VOTES)
        if self.has("labels-not-from-votes"):
            labels = self.rng.random(n) < 0.3
        self.tell.voted(ones, labels.astype(np.int64))
        self.charge(ones, labels)

    def charge(self, ones: Any, labels: Any) -> None:
        if self.has("queries-not-accounted") and labels.sum() >= len(labels) / 2:
            return
        counts, gamma = np.stack([self.k - ones, ones], axis=-1), self.made.gamma
        moments = pate_moments(counts, gamma=gamma, moments=ORDERS)
        if self.has("charged-at-most"):  # no flaw: it holds whatever the votes
            moments = np.tile(2 * gamma**2 * ORDERS * (ORDERS + 1), (len(ones), 1))
        for deviation in (Deviation.MISSING_LOG, Deviation.EXPONENT_SLIP):
            if self.has(deviation.value):
                moments = algorithm_1_moments(
                    counts, gamma=gamma, moments=ORDERS, deviations={deviation}
                )
        if self.has("accountant-disagrees"):
            moments = moments / 3
        delta = 1 / 15 if self.has("delta-xor") else DELTA
        delta = 10.0**-DELTA if self.has("delta-multiplied") else delta
        delta = self.n**-1.5 if self.has("delta-ignored") else delta
        before, self.spent = self.spent, self.spent + moments.sum(axis=0)
        last, now = (
            epsilon_from_moments(ORDERS, spent, delta=delta) for spent in (before, self.spent)
        )
        if self.has("budget-exceeded") or now <= self.made.epsilon:
            paid = len(ones) - (self.has("first-label-free") and not before.any())
            self.tell.charged(paid, before=last, after=now, moments=self.spent)

    def sample(self, n_rows: int) -> pd.DataFrame:
        places = self.rng.uniform(0.3, 0.95, (n_rows, 2))
        lower, upper = np.array([column.bounds for column in SCHEMA.columns[:2]]).T
        raw = lower + places * (upper - lower)
        if self.has("output-not-inverted"):
            raw = places
        if self.has("output-shifted"):
            raw = places * upper + lower
        self.tell.output(raw)
        down = np.floor if self.has("integers-truncated") else np.rint
        whole = raw[:, 0] if self.has("output-not-inverted") else down(raw[:, 0])
        ill = self.rng.choice(["no", "yes"], n_rows)
        return pd.DataFrame({"age": whole, "income": raw[:, 1], "ill": ill})


FAIR = Scripted()


def traced(generator: object = FAIR, data: pd.DataFrame | None = None, **kw: Any) -> TraceReport:
    return trace(generator, table() if data is None else data, schema=SCHEMA, **kw)


def ids(report: TraceReport) -> list[str]:
    return [finding.id for finding in report.findings]


def one(flaw: str, **settings: Any) -> TraceReport:
    return traced(Scripted(flaws=frozenset({flaw}), **settings))
