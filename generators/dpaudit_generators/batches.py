"""The common base of all generators here: checks of table and settings, batches of models, cells.

Cells of a column are public: equal bins of numbers, categories, and missing values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.errors import DataError, SettingsError
from dpaudit.model.claim import Claim
from dpaudit.model.column import MISSING, OTHER, Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.model.setting import AT_LEAST_1, POSITIVE, check_number
from dpaudit.plugins.protocols import FloatArray, IntArray, Job, World

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


def record_bounds(schema: Schema, recorder: Recorder) -> None:
    """Records that numbers are scaled by the bounds of a schema."""
    for column in schema.columns:
        if column.kind.numeric:
            recorder.scaling(column.name, column.bounds)


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
        check_number(name, getattr(settings, name), AT_LEAST_1, whole=True)
    for name in layers:
        widths = _sequence(getattr(settings, name))
        if widths is None:
            raise SettingsError(f"{name} is {getattr(settings, name)!r}: give each layer's width")
        for layer_width in widths:
            check_number(name, layer_width, AT_LEAST_1, whole=True)
        object.__setattr__(settings, name, widths)
    for name in rates:
        check_number(name, getattr(settings, name), POSITIVE)
    given = settings.betas
    betas = _sequence(given)
    if betas is None or len(betas) != 2 or not all(0.0 <= beta < 1.0 for beta in betas):
        raise SettingsError(f"betas is {given!r}: use two numbers in [0, 1)")
    object.__setattr__(settings, "betas", betas)


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


def _refuse(problems: Sequence[str]) -> None:
    if problems:
        raise DataError(f"the table does not fit the schema: {'; '.join(problems)}")


class _Cells(NamedTuple):
    """The cells of one column.

    Attributes:
        inner: Edges between the bins of a number.
        left: Smallest value of each cell; a category's position, NaN or `MISSING` where missing.
        width: Width of each cell.
        names: Names of the cells.
    """

    inner: FloatArray
    left: FloatArray
    width: FloatArray
    names: tuple[str, ...]


@dataclass(frozen=True)
class Domain:
    """The cells of each column of a schema, independent of any table.

    Attributes:
        schema: The public schema.
        bins: Equal bins over the bounds of a numeric column; fewer if it has fewer whole numbers.
    """

    schema: Schema
    bins: int

    @cached_property
    def sizes(self) -> IntArray:
        """Number of cells of each column [d]; the last one is for missing values, if allowed."""
        return np.array([len(one.left) for one in self._columns], dtype=np.int64)

    @property
    def names(self) -> tuple[tuple[str, ...], ...]:
        """Names of the cells of each column."""
        return tuple(column.names for column in self._columns)

    def cells(self, values: FloatArray) -> IntArray:
        """The cell of each value; `OTHER` for a value that is not in the schema.

        Args:
            values: Values [n, d], as `dpaudit.model.encoding.values_of_table` gives them; a number
                beyond the bounds is in the outermost bin.
        """
        cells = np.empty(values.shape, dtype=np.int64)
        for place, (column, own) in enumerate(zip(self.schema.columns, self._columns, strict=True)):
            given = values[:, place]
            if column.kind.numeric:
                found = own.inner.searchsorted(given, side="right")
                found[np.isnan(given)] = MISSING
            else:
                found = given.astype(np.int64)
            found[found == MISSING] = len(own.left) - 1 if column.missing else OTHER
            cells[:, place] = found
        return cells

    def values(self, cells: IntArray, places: FloatArray) -> FloatArray:
        """A value from each cell.

        Args:
            cells: Cells [n, d].
            places: Where in its bin each number is, [n, d], in [0, 1).

        Returns:
            Values [n, d] as `dpaudit.model.encoding.values_of` gives them.
        """
        slots = cells + (np.cumsum(self.sizes) - self.sizes)
        values: FloatArray = self._left[slots] + places * self._width[slots]
        values[:, self._whole] = np.floor(values[:, self._whole])
        return np.minimum(values, self._upper, out=values)  # rounding errors

    @cached_property
    def _columns(self) -> tuple[_Cells, ...]:
        return tuple(self._cells_of(column) for column in self.schema.columns)

    @cached_property
    def _left(self) -> FloatArray:
        return np.concatenate([one.left for one in self._columns])

    @cached_property
    def _width(self) -> FloatArray:
        return np.concatenate([one.width for one in self._columns])

    @cached_property
    def _whole(self) -> IntArray:
        kinds = np.array([column.kind is Kind.INTEGER for column in self.schema.columns])
        return np.flatnonzero(kinds)

    @cached_property
    def _upper(self) -> FloatArray:
        return np.array([c.bounds.upper if c.kind.numeric else np.inf for c in self.schema.columns])

    def _cells_of(self, column: Column) -> _Cells:
        missing = [f"{column.name} missing"] * column.missing
        if not column.kind.numeric:
            n = len(column.categories)
            left = np.append(np.arange(n, dtype=np.float64), [float(MISSING)] * column.missing)
            names = [f"{column.name} = {category}" for category in column.categories]
            return _Cells(np.empty(0), left, np.zeros(len(left)), (*names, *missing))
        edges = self._edges(column)
        left = np.append(edges[:-1], [np.nan] * column.missing)
        width = np.append(np.diff(edges), [0.0] * column.missing)
        names = [f"{column.name} from {low:g} to {high:g}" for low, high in pairwise(edges)]
        return _Cells(edges[1:-1], left, width, (*names, *missing))

    def _edges(self, column: Column) -> FloatArray:
        """Edges of the bins of a numeric column; whole numbers if its values are."""
        lower, upper = column.bounds
        if column.kind is Kind.CONTINUOUS:
            return np.linspace(lower, upper, self.bins + 1)
        bins = int(min(self.bins, upper - lower + 1))
        return np.floor(np.linspace(lower, upper + 1, bins + 1))


def shares_of(counts: npt.NDArray[Any]) -> FloatArray:
    """Probabilities [cells] from perhaps noisy counts: none below 0; equal ones if none is left."""
    kept = np.maximum(counts, 0).astype(np.float64)
    if not kept.any():
        kept = np.ones_like(kept)
    shares: FloatArray = kept / kept.sum()
    return shares


def schema_of_data(schema: Schema, data: pd.DataFrame) -> Schema:
    """Replaces the bounds of numeric columns by the extremes of a table.

    Several published generators do this, and it leaks: one record can move a bound, and with it the
    range of everything that is released.

    Args:
        schema: The public schema.
        data: The table. A column of missing values keeps its public bounds; a constant one keeps a
            public bound on one side, because a range must not be empty.

    Returns:
        The schema, marked as inferred.
    """
    columns = tuple(
        _narrowed(column, data[column.name]) if column.kind.numeric else column
        for column in schema.columns
    )
    return replace(schema, columns=columns, inferred=True)


def _narrowed(column: Column, values: pd.Series[Any]) -> Column:
    numbers = column.numbers(values)
    numbers = numbers[np.isfinite(numbers)]
    if len(numbers) == 0:
        return column
    lower, upper = float(numbers.min()), float(numbers.max())
    if column.kind is Kind.INTEGER:
        lower, upper = float(np.floor(lower)), float(np.ceil(upper))
    if lower == upper:
        public_lower, public_upper = column.bounds
        lower, upper = (lower, public_upper) if upper < public_upper else (public_lower, upper)
    return replace(column, lower=lower, upper=upper)
