"""Noise that is known although nobody released it: its seed, its generator's copies, its cache."""

from __future__ import annotations

import copy
import json
import os
import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpaudit.results.verdict import Verdict
from listened import CELLS, Released, line_of, replayed, same_rows

pytestmark = pytest.mark.usefixtures("worlds")


class Counts:
    """A generator that publishes noisy counts; each case draws the noise in another way."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> Any:
        counts = np.bincount(data["a"], minlength=CELLS)
        released = Released(counts + self.noise(seed), same_rows)
        return self.stored(released, seed)

    def noise(self, seed: int) -> Any:
        return np.random.default_rng(seed).laplace(0.0, 1.0, CELLS)

    def stored(self, released: Any, seed: int) -> Any:
        return released


class OneSeedTwice(Counts):
    def noise(self, seed: int) -> Any:
        first, second = (np.random.default_rng(seed) for _ in range(2))
        return first.exponential(size=CELLS) - second.exponential(size=CELLS)


class CopiedGenerator(Counts):
    def noise(self, seed: int) -> Any:
        first = np.random.default_rng(seed)
        second = copy.deepcopy(first)
        return first.exponential(size=CELLS) - second.exponential(size=CELLS)


@pytest.mark.parametrize("generator", [OneSeedTwice, CopiedGenerator])
def test_a_difference_of_equal_draws_is_no_noise(generator: Any) -> None:
    record = replayed(generator())
    assert record.verdict is Verdict.INCONCLUSIVE, str(record)
    assert any("has been drawn before" in reason for reason in record.reasons)


class SeedOfImport(Counts):
    generator = np.random.default_rng(99)

    def noise(self, seed: int) -> Any:
        return SeedOfImport.generator.laplace(0.0, 1.0, CELLS)


class KeyOfPhilox(Counts):
    def noise(self, seed: int) -> Any:
        return np.random.Generator(np.random.Philox(key=7)).laplace(0.0, 1.0, CELLS)


class SeedOfHandMadeNoise(Counts):
    def noise(self, seed: int) -> Any:
        u = np.random.default_rng(3).random(CELLS) - 0.5
        return -np.sign(u) * np.log(1.0 - 2.0 * np.abs(u))


@pytest.mark.parametrize(
    ("generator", "text"),
    [
        (SeedOfImport, "SeedOfImport.generator.laplace"),
        (KeyOfPhilox, "key=7"),
        (SeedOfHandMadeNoise, "default_rng(3)"),
    ],
)
def test_noise_with_one_seed_in_every_process_is_not_secret(generator: Any, text: str) -> None:
    record = replayed(generator())
    assert record.verdict is Verdict.INCONCLUSIVE, str(record)
    assert record.fixed_seeds == (line_of(generator, text),)


class SeedOfTheTime(Counts):
    def noise(self, seed: int) -> Any:
        return np.random.default_rng(time.time_ns() // 10**8).laplace(0.0, 1.0, CELLS)


def test_a_seed_that_is_made_of_the_time_is_told() -> None:
    record = replayed(SeedOfTheTime())
    assert record.verdict is Verdict.INCONCLUSIVE, str(record)


class SeedOfTheSystem(Counts):
    def noise(self, seed: int) -> Any:
        seed = int.from_bytes(os.urandom(8), "little")
        return np.random.default_rng(seed).laplace(0.0, 1.0, CELLS)


def test_what_noise_with_a_seed_of_the_system_spends_is_known() -> None:
    record = replayed(SeedOfTheSystem())
    assert record.verdict is Verdict.INCONCLUSIVE, str(record)
    assert record.spent == pytest.approx(1.0)
    assert any("not made of `seed`" in reason for reason in record.reasons)


class ShortFloats(Counts):
    """Of so many draws of 32 bits several are equal by chance."""

    def noise(self, seed: int) -> Any:
        rng = np.random.default_rng(seed)
        many = [rng.standard_exponential(64, dtype=np.float32) for _ in range(600)]
        return rng.laplace(0.0, 1.0, CELLS) + 0.0 * len(many)


class ShortFloatsAgain(Counts):
    def noise(self, seed: int) -> Any:
        first, second = (np.random.default_rng(seed) for _ in range(2))
        draws = [rng.standard_exponential(CELLS, dtype=np.float32) for rng in (first, second)]
        return draws[0].astype(float) - draws[1]


def test_short_floats_that_are_equal_by_chance_are_new_noise() -> None:
    for generator, is_known in ((ShortFloats(), False), (ShortFloatsAgain(), True)):
        record = replayed(generator)
        reasons = [reason for reason in record.reasons if "has been drawn before" in reason]
        assert bool(reasons) is is_known, str(record)


class StoredSeed(Counts):
    def stored(self, released: Any, seed: int) -> Any:
        released.parameters = {"random_state": np.int64(seed)}
        return released


class StoredDerivedSeed(Counts):
    def noise(self, seed: int) -> Any:
        return super().noise(seed + 17)

    def stored(self, released: Any, seed: int) -> Any:
        released.seeds = [0, seed + 17]
        return released


class StoredState(Counts):
    def noise(self, seed: int) -> Any:
        generator = np.random.RandomState(seed)
        self.state = generator.get_state()
        return generator.laplace(0.0, 1.0, CELLS)

    def stored(self, released: Any, seed: int) -> Any:
        released.state = self.state
        return released


class StoredStateOfPython(Counts):
    def noise(self, seed: int) -> Any:
        generator = random.Random(seed)
        self.state = generator.getstate()
        return np.array([generator.gauss(0.0, 9.0) for _ in range(CELLS)])

    def stored(self, released: Any, seed: int) -> Any:
        released.state = self.state
        return released


@pytest.mark.parametrize(
    ("generator", "place"),
    [
        (StoredSeed, "model.parameters['random_state']"),
        (StoredDerivedSeed, "model.seeds"),
        (StoredState, "model.state"),
        (StoredStateOfPython, "model.state"),
    ],
)
def test_a_model_that_stores_what_its_noise_is_drawn_from_is_told(
    generator: Any, place: str
) -> None:
    record = replayed(generator(), delta=0.01)
    assert record.verdict is Verdict.INCONCLUSIVE, str(record)
    assert [one.place for one in record.stored] == [place]
    rows = replayed(generator(), delta=0.01, access="rows")
    assert rows.verdict is Verdict.CONSISTENT, str(rows)


class CachedAnswers(Counts):
    """Marked answers of one fit that a later one finds in a cache are numbers."""

    cache: dict[bytes, Any] = {}  # noqa: RUF012 - a cache is shared

    def fit(self, data: pd.DataFrame, *, seed: int) -> Any:
        key = data.to_numpy().tobytes()
        if key not in self.cache:
            counts = np.bincount(data["a"], minlength=CELLS)
            self.cache[key] = counts + self.noise(seed)
        return Released(np.maximum(self.cache[key], 0.0), same_rows)


class CachedOnDisk(Counts):
    """As joblib's memory keeps results between processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fit(self, data: pd.DataFrame, *, seed: int) -> Any:
        path = self.folder / str(len(data))
        if not path.exists():
            counts = np.bincount(data["a"], minlength=CELLS) + self.noise(seed)
            part = self.folder / f"{len(data)}.{os.getpid()}"
            with part.open("w") as file:
                json.dump({"counts": counts.tolist()}, file)
            part.replace(path)
        return Released(np.array(json.loads(path.read_text())["counts"]), same_rows)


@pytest.mark.parametrize("where", ["process", pytest.param("disk", marks=pytest.mark.ci)])
def test_noisy_counts_in_a_cache_accuse_nobody(where: str, tmp_path: Path) -> None:
    generator = CachedAnswers() if where == "process" else CachedOnDisk(tmp_path)
    record = replayed(generator, fits=100)
    assert record.verdict is Verdict.INCONCLUSIVE, str(record)
    assert record.proved == 0.0


class RandomSign(Counts):
    """Laplace noise: an exponential draw whose sign is drawn, too."""

    proof = "composition"

    def noise(self, seed: int) -> Any:
        rng = np.random.default_rng(seed)
        return rng.choice([-1.0, 1.0], size=CELLS) * rng.exponential(size=CELLS)


class RandomScale(Counts):
    """Noise of one of two scales, drawn in secret, shows less than the smaller one would."""

    proof = "composition"

    def noise(self, seed: int) -> Any:
        rng = np.random.default_rng(seed)
        return rng.laplace(scale=rng.choice([0.9, 4.0]), size=CELLS)


class RareScale(Counts):
    """The smaller scale is so rare that no replay with draws of its own meets it."""

    proof = "composition"

    def noise(self, seed: int) -> Any:
        rng = np.random.default_rng(seed)
        return rng.laplace(scale=rng.choice([4.0] * 999 + [0.9]), size=CELLS)


@pytest.mark.parametrize("generator", [RandomSign, RandomScale, RareScale])
def test_a_drawn_factor_of_noise_refutes_no_proof(generator: Any) -> None:
    record = replayed(generator())
    assert record.verdict in (Verdict.INCONCLUSIVE, Verdict.OVERSPENT), str(record)
