"""What every generator here that trains many models at once needs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Generic, TypeVar

import numpy as np

from dpaudit.model.currencies import Claim
from dpaudit.plugins.protocols import IntArray, Job, World

C = TypeVar("C", bound=Claim)
M = TypeVar("M")
_SYSTEM: Final = "noise drawn from the operating system's entropy"
_SEEDED: Final = "noise drawn from a seed, for audits: it hides nothing from who knows the seed"


@dataclass(frozen=True, eq=False)
class TrainedTogether(Generic[M]):
    """Models that were trained together; each is bit-identical to training alone.

    Attributes:
        models: The models, in the order of their jobs.
    """

    models: tuple[M, ...]

    def __len__(self) -> int:
        return len(self.models)

    def __getitem__(self, index: int) -> M:
        return self.models[index]


def whole_table(seed: int | None) -> Job:
    """The job of training one model on all records.

    Args:
        seed: Its seed; None means the operating system's entropy.
    """
    return Job(World.IN, 0, (), seed)


def kept_rows(job: Job, n_rows: int) -> IntArray:
    """Row numbers of the records that a job trains on.

    Args:
        job: The job.
        n_rows: Number of rows of the table it was given.
    """
    return np.delete(np.arange(n_rows), list(job.dropped_rows))


def claim_of_model(claim: C, *, seed: int | None) -> C:
    """A generator's claim as a fitted model states it: its source says where noise came from.

    Args:
        claim: The generator's.
        seed: That the model was trained from; None means the operating system's entropy.
    """
    noise = _SYSTEM if seed is None else _SEEDED
    return replace(claim, source=f"{claim.source}; {noise}")
