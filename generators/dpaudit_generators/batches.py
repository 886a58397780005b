"""The common base of all generators here: checks of table and settings, batches of models."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import numpy as np
import pandas as pd

from dpaudit.errors import DataError, SettingsError
from dpaudit.model.column import MISSING, OTHER
from dpaudit.model.currencies import Claim
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import IntArray, Job, World

if TYPE_CHECKING:
    from dpaudit.plugins.recorder import Recorder

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


class TableGenerator(ABC, Generic[M]):
    """A generator under a public schema that trains many models at once.

    Attributes:
        schema: The public schema.
    """

    schema: Schema

    def check(self, data: pd.DataFrame) -> None:
        """Refuses a table that does not fit the schema; called once, outside the game.

        Args:
            data: The private table.

        Raises:
            DataError: If it does not.
        """
        require_table(data, self.schema)

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> M:
        """Trains on a table that fits the schema.

        Args:
            data: The private table.
            seed: For audits; None draws everything from the system's entropy.

        Raises:
            DataError: If the table's columns are not the schema's.
        """
        return self.fit_many(data, [whole_table(seed)])[0]

    def batch_key(self, job: Job) -> Hashable:
        """The same for all jobs: models have one shape, whatever their records."""
        del job
        return ()

    def fit_many(self, data: pd.DataFrame, jobs: Sequence[Job]) -> TrainedTogether[M]:
        """Trains a model for each job; each is bit-identical to training alone.

        Args:
            data: The private table; a job may drop rows of it.
            jobs: What to train.

        Raises:
            DataError: If the table's columns are not the schema's.
        """
        require_columns(data, self.schema)
        return self.train(data, jobs)

    @abstractmethod
    def train(self, data: pd.DataFrame, jobs: Sequence[Job]) -> TrainedTogether[M]:
        """As `fit_many`, on a table whose columns are the schema's."""


class TracedGenerator(TableGenerator[M]):
    """A generator whose training can be traced (`dpaudit trace`)."""

    def trace(
        self, data: pd.DataFrame, *, n_rows: int, seed: int, recorder: Recorder
    ) -> pd.DataFrame:
        """Trains and samples as `fit` and `sample` do, and records what happens.

        Args:
            data: The private table.
            n_rows: Number of records to draw.
            seed: Seed of both training and sampling.
            recorder: Takes the records.

        Returns:
            The table of ``fit(data, seed=seed).sample(n_rows, seed=seed)``.

        Raises:
            DataError: If the table's columns are not the schema's.
        """
        require_columns(data, self.schema)
        return self.traced(data, n_rows=n_rows, seed=seed, recorder=recorder)

    @abstractmethod
    def traced(
        self, data: pd.DataFrame, *, n_rows: int, seed: int, recorder: Recorder
    ) -> pd.DataFrame:
        """As `trace`, on a table whose columns are the schema's."""


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
        seed: Seed of the training; None means the operating system's entropy.
    """
    noise = _SYSTEM if seed is None else _SEEDED
    return replace(claim, source=f"{claim.source}; {noise}")


def check_network_settings(
    settings: Any, *, counts: Sequence[str], layers: Sequence[str], rates: Sequence[str]
) -> None:
    """Checks the settings of networks, and turns lists from a command line into tuples.

    Args:
        settings: A frozen dataclass with these attributes, and `betas`.
        counts: Names of whole numbers.
        layers: Names of widths of layers.
        rates: Names of learning rates.

    Raises:
        SettingsError: If a setting is out of range.
    """
    for name in counts:
        count = getattr(settings, name)
        if not _is_count(count):
            raise SettingsError(f"{name} is {count!r}: use a whole number of at least 1")
    for name in layers:
        widths = _sequence(getattr(settings, name))
        if widths is None or not all(map(_is_count, widths)):
            raise SettingsError(
                f"{name} is {getattr(settings, name)!r}: give each layer a width of at least 1"
            )
        object.__setattr__(settings, name, widths)
    for name in rates:
        if not 0.0 < getattr(settings, name) < math.inf:
            raise SettingsError(f"{name} is {getattr(settings, name)!r}: use a number above 0")
    given = settings.betas
    betas = _sequence(given)
    if betas is None or len(betas) != 2 or not all(0.0 <= beta < 1.0 for beta in betas):
        raise SettingsError(f"betas is {given!r}: use two numbers in [0, 1)")
    object.__setattr__(settings, "betas", betas)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _sequence(value: object) -> tuple[Any, ...] | None:
    return tuple(value) if isinstance(value, (list, tuple)) else None


def require_table(data: pd.DataFrame, schema: Schema) -> None:
    """Checks that columns and values of a table fit a schema.

    Raises:
        DataError: If they do not.
    """
    _refuse(schema.problems(data))


def require_columns(data: pd.DataFrame, schema: Schema) -> None:
    """Checks that a table has the columns of a schema, whatever their values.

    Raises:
        DataError: If it does not.
    """
    _refuse(schema.column_problems(data))


def count_codes(codes: IntArray, *, cells: int, missing: bool) -> IntArray:
    """Counts how often each cell of a public domain occurs.

    Args:
        codes: Cells 0, 1, ... of the values [n], `MISSING` or `OTHER`.
        cells: Size of the domain.
        missing: Whether its last cell counts missing values; otherwise these are not counted, like
            values that the schema does not know.

    Returns:
        Counts [cells].
    """
    codes = np.where(codes == MISSING, cells - 1 if missing else OTHER, codes)
    return np.bincount(codes[codes != OTHER], minlength=cells)


def _refuse(problems: Sequence[str]) -> None:
    if problems:
        raise DataError(f"the table does not fit the schema: {'; '.join(problems)}")
