"""Code that a replay cannot follow: it must end INCONCLUSIVE, or refuse, with a reason, and soon.

All but the last are honest if their hidden noise is random; none may be called CONSISTENT.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import math
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats
from scipy.stats import sampling

from dpaudit.model.claim import PrivacyClaim
from reports.replay.honest.bases import CountsModel
from reports.replay.honest.case import CELLS, CELLS_SCHEMA, cells_table

CLAIM: Final = PrivacyClaim(epsilon=1.0)


class Hidden(CountsModel):
    """Counts with Laplace noise of scale 1 that a replay does not hear."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> Hidden:
        """Adds noise to counts."""
        self.noisy = np.bincount(data["a"], minlength=CELLS) + self._noise(seed)
        return self

    def _noise(self, seed: int) -> Any:
        raise NotImplementedError


def inverted(uniforms: Any) -> Any:
    """Laplace noise of numbers between 0 and 1."""
    u = np.asarray(uniforms, float) - 0.5
    return -np.sign(u) * np.log1p(-2.0 * np.abs(u))


class ThreadPool(Hidden):
    """A thread pool draws noise, each thread with a generator of its own."""

    def _noise(self, seed: int) -> Any:
        with ThreadPoolExecutor(max_workers=2) as pool:
            return np.array(list(pool.map(lambda place: drawn(seed, place), range(CELLS))))


def drawn(seed: int, place: int) -> float:
    """One draw of Laplace noise."""
    return float(np.random.default_rng([seed, place]).laplace())


class SharedThreads(Hidden):
    """Threads draw from one generator and add to counts themselves."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> SharedThreads:
        """Adds noise to counts."""
        rng = np.random.default_rng(seed)
        counts = np.bincount(data["a"], minlength=CELLS)
        with ThreadPoolExecutor(max_workers=4) as pool:
            self.noisy = np.array(list(pool.map(lambda count: count + rng.laplace(), counts)))
        return self


class Subprocess(Hidden):
    """Another Python draws noise."""

    def _noise(self, seed: int) -> Any:
        code = f"import random; r = random.Random({seed}); print([r.random() for _ in range(4)])"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
        return inverted(json.loads(done.stdout))


class Multiprocessing(Hidden):
    """A forked worker draws noise."""

    def _noise(self, seed: int) -> Any:
        context = multiprocessing.get_context("fork")
        reader, writer = context.Pipe(duplex=False)
        worker = context.Process(target=send_noise, args=(writer, seed))
        worker.start()
        noise = reader.recv()
        worker.join()
        return noise


def send_noise(writer: Any, seed: int) -> None:
    """Draws noise and sends it."""
    writer.send(np.random.default_rng(seed).laplace(size=CELLS))
    writer.close()


class Compiled(Hidden):
    """The C library's random numbers."""

    def _noise(self, seed: int) -> Any:
        library = ctypes.CDLL(None)
        library.srandom(seed)
        library.random.restype = ctypes.c_long
        return inverted([(library.random() + 0.5) / 2**31 for _ in range(CELLS)])


class CompiledSampler(Hidden):
    """A compiled sampler of scipy."""

    def _noise(self, seed: int) -> Any:
        law = sampling.NumericalInversePolynomial(stats.laplace(), random_state=seed)
        return law.rvs(CELLS)


class OperatingSystem(Hidden):
    """Bytes of the operating system."""

    def _noise(self, seed: int) -> Any:
        words = np.frombuffer(os.urandom(8 * CELLS), dtype=np.uint64)
        return inverted((words >> np.uint64(11)) * 2.0**-53 + 2.0**-54)


class Hashed(Hidden):
    """A hash of the seed, taken for random."""

    def _noise(self, seed: int) -> Any:
        digests = [hashlib.sha256(f"{seed}/{place}".encode()).digest() for place in range(CELLS)]
        return inverted([(int.from_bytes(one[:6], "big") + 0.5) / 2**48 for one in digests])


class Congruential(Hidden):
    """A congruential generator in plain Python."""

    def _noise(self, seed: int) -> Any:
        state, uniforms = seed * 2 + 1, []
        for _ in range(CELLS):
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            uniforms.append(((state >> 11) + 0.5) / 2**53)
        return inverted(uniforms)


class Clock(Hidden):
    """The time of day is the seed, so no fit can be repeated."""

    def _noise(self, seed: int) -> Any:
        ticks = [time.perf_counter_ns() * 48271 % 2147483647 for _ in range(CELLS)]
        return inverted((np.array(ticks) + 0.5) / 2147483648)


class ClockInModel(Hidden):
    """Noise that is heard, and rows that follow the time of day."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> ClockInModel:
        """Adds noise to counts."""
        rng = np.random.default_rng(seed)
        self.noisy = np.bincount(data["a"], minlength=CELLS) + rng.laplace(size=CELLS)
        self.noisy[0] += math.sin(time.perf_counter_ns())
        return self


class Unreplayable(NamedTuple):
    """A case that a replay cannot follow.

    Attributes:
        name: Unique.
        generator: Makes the generator; None if its module fails.
        file: The file whose import fails, for `FILE:CLASS`; None else.
        why: What the reason must be about.
    """

    name: str
    generator: Callable[[], Any] | None
    file: Path | None
    why: str


TABLE: Final = cells_table()
SCHEMA: Final = CELLS_SCHEMA
TARGET: Final = "row:39"

UNREPLAYABLE: Final = (
    Unreplayable("thread pool", ThreadPool, None, "a thread draws noise"),
    Unreplayable("threads share a generator", SharedThreads, None, "a thread draws noise"),
    Unreplayable("subprocess", Subprocess, None, "no noise was heard, and another process"),
    Unreplayable("forked worker", Multiprocessing, None, "no noise was heard, and another process"),
    Unreplayable("C library", Compiled, None, "no noise was heard"),
    Unreplayable("compiled sampler of scipy", CompiledSampler, None, "no noise was heard"),
    Unreplayable("os.urandom", OperatingSystem, None, "the code is not repeatable"),
    Unreplayable("hash of the seed", Hashed, None, "no noise was heard"),
    Unreplayable("congruential generator", Congruential, None, "no noise was heard"),
    Unreplayable("time of day", Clock, None, "the code is not repeatable"),
    Unreplayable("time of day on top", ClockInModel, None, "the code is not repeatable"),
    Unreplayable(
        "module fails on import",
        None,
        Path(__file__).with_name("broken") / "fails_on_import.py",
        "ends 2 with line 9",
    ),
)
