"""The subject of a probe: a generator, rebuilt under other settings, and its trainings."""

from __future__ import annotations

import copy
import dataclasses
import inspect
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dpaudit.external.generator import WorkerGenerator
from dpaudit.formatting import listed
from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.encoding import table_of
from dpaudit.model.schema import Schema
from dpaudit.plugins.adapt import train
from dpaudit.plugins.named import NamedGenerator, named_generator
from dpaudit.plugins.protocols import BatchGenerator, Generator, Job, Model, World, trains_many
from dpaudit.plugins.registry import GENERATORS, resolve
from dpaudit.plugins.release import accept, accept_stack, accept_values
from dpaudit.probe.catalogue import ProbeSettings
from dpaudit.seeds import Stream, seeded_globals

SCHEMA = "schema"
_MISSING = "missing"


class Maker(NamedTuple):
    """Rebuilds a generator.

    Attributes:
        asked: The generator as the caller gave it.
        takes: Names of the settings that it can be built with, such as "schema".
        make: Builds it from a schema, a table under it, and changed settings.
    """

    asked: NamedGenerator
    takes: frozenset[str]
    make: Callable[[Schema, pd.DataFrame, Mapping[str, Any]], Generator]


def maker(
    generator: object,
    parameters: Mapping[str, Any],
    schema: Schema,
    data: pd.DataFrame,
    *,
    target: int = 0,
    worker_memory: float | None = None,
) -> Maker:
    """The maker for a generator given by name or as an object.

    A name is built as an audit builds it, with the target that it may need. A dataclass is copied
    with its fields changed; any other object is used as it is.

    Args:
        generator: A name or an object.
        parameters: Parameters of a generator given by name.
        schema: The table's schema.
        data: The table.
        target: Position of the target.
        worker_memory: As for `named_generator`.

    Returns:
        The maker.

    Raises:
        RegistryError: If it cannot be found or built, or is not a generator.
    """
    if isinstance(generator, str):
        name = generator

        def built(schema: Schema, data: pd.DataFrame, given: Mapping[str, Any]) -> NamedGenerator:
            offered = {SCHEMA: schema, "target": data.iloc[[target]].reset_index(drop=True)}
            return named_generator(name, given, offered, worker_memory=worker_memory)

        def named(schema: Schema, data: pd.DataFrame, changes: Mapping[str, Any]) -> Generator:
            return built(schema, data, {**parameters, **changes}).generator

        asked = built(schema, data, parameters)
        if isinstance(asked.generator, WorkerGenerator):  # its constructor is not visible here
            return Maker(asked, frozenset({SCHEMA, *parameters}), named)
        value = resolve(name, GENERATORS)
        known = inspect.signature(value).parameters if inspect.isclass(value) else ()
        return Maker(asked, frozenset(known), named)

    asked = named_generator(generator, parameters, {})
    ready: Any = asked.generator
    fields = {f.name for f in dataclasses.fields(ready)} if dataclasses.is_dataclass(ready) else ()

    def copied(schema: Schema, data: pd.DataFrame, changes: Mapping[str, Any]) -> Generator:
        del data
        fresh = {SCHEMA: schema} if SCHEMA in fields else {}
        made: Generator = dataclasses.replace(ready, **fresh, **changes) if fields else ready
        return made

    return Maker(asked, frozenset(fields), copied)


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A generator, a table, and the settings of the run.

    Attributes:
        maker: Builds the generator.
        data: The table, canonical.
        schema: Its schema.
        claim: The claim under test.
        settings: Every choice of the run.
        target: Position of the record that the caller named; None without one.
    """

    maker: Maker
    data: pd.DataFrame
    schema: Schema
    claim: PrivacyClaim
    settings: ProbeSettings
    target: int | None = None

    @property
    def rows(self) -> int:
        """Synthetic records requested of each model."""
        return len(self.data) if self.settings.rows is None else self.settings.rows

    def build(
        self, schema: Schema | None = None, data: pd.DataFrame | None = None, **changes: Any
    ) -> Generator:
        """Builds the generator for another schema, a table under it, or changed settings.

        Args:
            schema: The schema; the subject's by default.
            data: The table; the subject's by default.
            changes: Settings to change, by name.

        Returns:
            The generator.
        """
        return self.maker.make(
            self.schema if schema is None else schema, self.data if data is None else data, changes
        )


class Fit(NamedTuple):
    """One training.

    Attributes:
        dropped: Positions of the records that it lacks.
        seed: Seed of the training; None means the system's entropy.
        sample_seed: Seed of its sample, likewise.
    """

    dropped: tuple[int, ...]
    seed: int | None
    sample_seed: int | None


class Trainer:
    """Does all trainings of one probe and counts them.

    Args:
        subject: What is probed.
        probe: Id of the probe, which names the random streams.

    Attributes:
        subject: What is probed.
        fits: Models trained so far.
        variation: What varied in the tables so far.
    """

    def __init__(self, subject: Subject, probe: str) -> None:
        self.subject, self._probe = subject, probe
        self.fits, self.variation = 0, Variation()

    def stream(self, role: str, number: int = 0) -> Stream:
        """A random stream of this probe, named by role and number."""
        return Stream(self.subject.settings.seed, f"probe/{self._probe}", role, number)

    def fit_of(self, number: int, dropped: Sequence[int] = (), *, seeded: bool = True) -> Fit:
        """The training with a number, with random streams of its own.

        Args:
            number: Names the streams.
            dropped: Positions of the records that it lacks.
            seeded: Whether the training and the sample get seeds.

        Returns:
            The training.
        """
        if not seeded:
            return Fit(tuple(dropped), None, None)
        streams = self.stream("fit", number), self.stream("sample", number)
        return Fit(tuple(dropped), *(stream.seed() for stream in streams))

    def tables(
        self,
        generator: Generator,
        data: pd.DataFrame,
        fits: Sequence[Fit],
        *,
        schema: Schema | None = None,
        rows: int | None = None,
    ) -> list[pd.DataFrame]:
        """One synthetic table, canonical, for each training.

        Args:
            generator: What is trained.
            data: The whole table.
            fits: The trainings.
            schema: The table's schema; the subject's by default.
            rows: Synthetic records asked of each model; the subject's by default.

        Returns:
            The tables, in the order of the trainings.

        Raises:
            TrialError: If a model's output is not a table of that many records.
            Exception: Whatever the generator raises.
        """
        schema = self.subject.schema if schema is None else schema
        rows = self.subject.rows if rows is None else rows
        self.fits += len(fits)
        tables = (
            self._together(generator, data, fits, schema, rows)
            if trains_many(generator)
            else [
                accept(model.sample(rows, seed=fit.sample_seed), schema, rows)
                for fit in fits
                for model in self._alone(generator, data, fit)
            ]
        )
        for fit, table in zip(fits, tables, strict=True):
            seeded = None not in (fit.seed, fit.sample_seed)
            self.variation.add(table, (fit.seed, fit.sample_seed) if seeded else object())
        return tables

    def _together(
        self,
        generator: BatchGenerator,
        data: pd.DataFrame,
        fits: Sequence[Fit],
        schema: Schema,
        rows: int,
    ) -> list[pd.DataFrame]:
        """`tables` for a generator that trains many models at once."""
        tables: dict[int, pd.DataFrame] = {}
        for chunk in _chunks(generator, fits):
            mine = [fits[position] for position in chunk]
            with _globals(mine[0]):
                batch = generator.fit_many(self._given(data), [_job(fit) for fit in mine])
                raw = batch.sample_many(rows, [fit.sample_seed for fit in mine])
            stack = accept_stack(raw, schema, rows, models=len(mine))
            for position, values in zip(chunk, stack, strict=True):
                accept_values(values, schema)
                tables[position] = table_of(values, schema)
        return [tables[position] for position in range(len(fits))]

    def models(
        self, generator: Generator, data: pd.DataFrame, fits: Sequence[Fit]
    ) -> Iterator[Model]:
        """Trains and yields the models, one after another.

        Args:
            generator: What is trained.
            data: The whole table.
            fits: The trainings.

        Yields:
            The models, in the order of the trainings.
        """
        self.fits += len(fits)
        if not trains_many(generator):
            for fit in fits:
                yield from self._alone(generator, data, fit)
            return
        models: dict[int, Model] = {}
        for chunk in _chunks(generator, fits):
            mine = [fits[position] for position in chunk]
            with _globals(mine[0]):
                batch = generator.fit_many(self._given(data), [_job(fit) for fit in mine])
            models |= {position: batch[i] for i, position in enumerate(chunk)}
        yield from (models[position] for position in range(len(fits)))

    def _alone(self, generator: Generator, data: pd.DataFrame, fit: Fit) -> Iterator[Model]:
        """Yields one model, to be sampled while it controls the global streams."""
        kept = np.delete(np.arange(len(data)), list(fit.dropped))
        with _globals(fit):
            fresh = copy.deepcopy(generator)  # some generators train in place
            rows = self._given(data.iloc[kept].reset_index(drop=True))
            yield train(fresh, rows, seed=fit.seed)

    def _given(self, data: pd.DataFrame) -> pd.DataFrame:
        """A copy of a table as the generator receives it."""
        given: pd.DataFrame = self.subject.schema.handed(data.copy())
        return given


def _chunks(generator: BatchGenerator, fits: Sequence[Fit]) -> Iterator[list[int]]:
    """Positions of fits that are trained together."""
    groups: dict[Hashable, list[int]] = {}
    for position, fit in enumerate(fits):
        groups.setdefault(generator.batch_key(_job(fit)), []).append(position)
    most = max(1, generator.models_at_once)
    for group in groups.values():
        for start in range(0, len(group), most):
            yield group[start : start + most]


def _job(fit: Fit) -> Job:
    return Job(World.IN, 0, fit.dropped, fit.seed)


def _globals(fit: Fit) -> AbstractContextManager[None]:
    return nullcontext() if fit.seed is None else seeded_globals(fit.seed)


class Variation:
    """The parts of one probe's synthetic tables that varied.

    A constant satisfies any claim, so it is no alarm; but a broken generator whose output is
    constant or entirely missing would pass every check of dependence. Such a probe does not apply.
    """

    def __init__(self) -> None:
        self._first: pd.DataFrame | None = None
        self._same = True
        self._seeds: set[object] = set()
        self._rows = 0
        self._values: dict[str, set[object]] = {}

    def add(self, table: pd.DataFrame, seeds: object) -> None:
        """Records a table.

        Args:
            table: The synthetic table.
            seeds: The source of its randomness; equal for fits that must give equal tables.
        """
        if self._first is None:
            self._first = table
        elif self._same:
            self._same = self._first.equals(table)
        self._seeds.add(seeds)
        self._rows += len(table)
        for name in table.columns:
            seen = self._values.setdefault(str(name), set())
            if len(seen) < 2:
                some = table[name].drop_duplicates().head(2)
                seen.update(
                    _MISSING if gone else v for v, gone in zip(some, some.isna(), strict=True)
                )

    def still(self) -> list[str]:
        """Columns that have one value, or are missing, in every row of every table."""
        if self._rows < 2:
            return []
        return [name for name, seen in self._values.items() if len(seen) < 2]

    def missing(self) -> list[str]:
        """Columns that are missing in every row of every table."""
        return [name for name in self.still() if self._values[name] == {_MISSING}]

    def nothing_in(self, columns: Sequence[str]) -> str | None:
        """Why some columns allow no conclusion.

        Args:
            columns: Their names.

        Returns:
            The reason in words; None if one of them varies.
        """
        if self._first is None:
            return None
        if self._same and len(self._seeds) > 1:
            seeds = len(self._seeds)
            return (
                f"{seeds} fits with seeds of their own gave one table: a constant follows nothing"
            )
        still = self.still()
        if not set(columns) <= set(still):
            return None
        what = "missing" if set(columns) <= set(self.missing()) else "the same value"
        return f"{listed(columns)}: {what} in every row of every fit, which follows nothing"
