"""Generators whose rows are harmless and whose trainings may take longer with the target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from time import sleep
from typing import Any

import numpy as np
import pandas as pd

from dpaudit import PrivacyClaim
from dpaudit.plugins.protocols import Job
from dpaudit.seeds import rng_of
from hidden import HiddenModel


@dataclass(frozen=True, kw_only=True)
class Timed:
    """Draws rows without its data; may compute, sleep or fill memory in proportion to a maximum.

    Attributes:
        loops: Additions for each unit of the largest value in column a.
        seconds: Seconds of sleep for each.
        bytes: Bytes of memory for each.
    """

    loops: int = 0
    seconds: float = 0.0
    bytes: int = 0
    claim: PrivacyClaim = field(default_factory=lambda: PrivacyClaim(epsilon=1.0))

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> HiddenModel:
        largest = int(data["a"].max())
        total = 0
        for number in range(self.loops * largest):
            total += number
        sleep(self.seconds * largest)
        filled = np.ones(self.bytes * largest // 8)
        # The public parameters do not matter here: rows are drawn from the seed of a sample.
        return HiddenModel(("a", "b"), float(rng_of(seed, "count").normal() + 0 * filled.size))


class TimedTogether(Timed):
    """The same, trained many at once where nobody looks at the clock."""

    models_at_once = 7

    def batch_key(self, job: Job) -> int:
        return len(job.dropped_rows)

    def fit_many(self, data: pd.DataFrame, jobs: Sequence[Job]) -> Any:
        raise AssertionError("models that are timed train alone")
