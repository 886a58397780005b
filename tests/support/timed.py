"""Generators whose rows are harmless and whose trainings may take longer with the target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from time import process_time, sleep
from typing import Any

import numpy as np
import pandas as pd

from dpaudit import PrivacyClaim
from dpaudit.plugins.protocols import Job
from hidden import HiddenModel


@dataclass(frozen=True, kw_only=True)
class Timed:
    """Draws rows without its data, and uses time and memory in proportion to a maximum.

    Attributes:
        computes: Seconds of processor time for each unit of the largest value in column a.
        waits: Seconds of sleep for each.
        fills: Bytes of memory for each.
    """

    computes: float = 0.0
    waits: float = 0.0
    fills: int = 0
    claim: PrivacyClaim = field(default_factory=lambda: PrivacyClaim(epsilon=1.0))

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> HiddenModel:
        del seed
        largest = int(data["a"].max())
        end = process_time() + self.computes * largest
        while process_time() < end:
            pass
        sleep(self.waits * largest)
        np.ones(self.fills * largest // 8).sum()
        return HiddenModel(("a", "b"), 0.0)


class TimedTogether(Timed):
    """The same; trains many at once, so that none has a time of its own."""

    models_at_once = 7

    def batch_key(self, job: Job) -> int:
        return len(job.dropped_rows)

    def fit_many(self, data: pd.DataFrame, jobs: Sequence[Job]) -> Any:
        raise AssertionError("models that are timed train alone")
