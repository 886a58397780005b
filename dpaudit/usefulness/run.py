"""Measures the utility of a generator and of uninformed baselines: the entry point."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dpaudit.errors import DpauditError, RegistryError, TrialError
from dpaudit.model.claim import Promise
from dpaudit.model.column import MISSING, Kind
from dpaudit.model.encoding import check_rows, table_of
from dpaudit.model.schema import Schema
from dpaudit.model.tables import load
from dpaudit.plugins.foreign import refusing
from dpaudit.plugins.named import NamedGenerator, check_table, named_generator
from dpaudit.plugins.protocols import Generator
from dpaudit.seeds import rng_of
from dpaudit.usefulness.experiment import Experiment, Repeat, check_installed
from dpaudit.usefulness.report import UtilityReport, summarise
from dpaudit.usefulness.settings import UtilitySettings
from dpaudit.usefulness.task import HeldOut, check_classes, choose, left_out, split, task_of

NOISE, CONSTANT, GENERATOR = "noise", "constant", "generator"
"""Names of the random streams of each source of tables."""


class UtilityProgress(NamedTuple):
    """The progress of a measurement.

    Attributes:
        source: What is measured: "real", "noise", "constant" or "generator".
        done: Tables measured so far.
        total: Tables to measure.
    """

    source: str
    done: int
    total: int


def utility(
    generator: object,
    data: pd.DataFrame | str | Path,
    *,
    schema: Schema | str | Path | None = None,
    parameters: Mapping[str, Any] | None = None,
    test: pd.DataFrame | str | Path | None = None,
    label: str | None = None,
    positive: str | None = None,
    test_share: float = UtilitySettings.test_share,
    repeats: int = UtilitySettings.repeats,
    rows: int | None = None,
    classifiers: Sequence[str] | None = None,
    fidelity: bool = False,
    confidence: float = UtilitySettings.confidence,
    seed: int = UtilitySettings.seed,
    on_progress: Callable[[UtilityProgress], None] | None = None,
) -> UtilityReport:
    """Measures the utility of a generator's synthetic tables, compared with noise and real data.

    Args:
        generator: As for `dpaudit.audit`.
        data: A table, a file, or "sample:NAME".
        schema: A schema or its file; inferred if None, and the report says so.
        parameters: Parameters of a generator given by name.
        test: A table or file of further real rows, to test on; by default a part of `data` that the
            generator does not see.
        label: As in `UtilitySettings`, like every argument below except `on_progress`.
        positive: The value to predict, as text.
        test_share: Share of the table that is held out.
        repeats: Models to train.
        rows: Synthetic rows to train classifiers on.
        classifiers: Names of the classifiers.
        fidelity: Whether to compare columns and pairs of columns too.
        confidence: Confidence of intervals and tests.
        seed: Root of every random stream.
        on_progress: Called after every table measured.

    Returns:
        The report.

    Raises:
        InputError: If an argument is unusable, or the generator fails at once.
        TrialError: If all but one of the generator's models fail.
    """
    settings = UtilitySettings(
        label=label,
        positive=positive,
        test_share=test_share,
        repeats=repeats,
        rows=rows,
        classifiers=classifiers,
        fidelity=fidelity,
        confidence=confidence,
        seed=seed,
    )
    return run_utility(
        generator,
        data,
        settings,
        schema=schema,
        parameters=parameters,
        test=test,
        on_progress=on_progress,
    )


def run_utility(
    generator: object,
    data: pd.DataFrame | str | Path,
    settings: UtilitySettings,
    *,
    schema: Schema | str | Path | None = None,
    parameters: Mapping[str, Any] | None = None,
    test: pd.DataFrame | str | Path | None = None,
    on_progress: Callable[[UtilityProgress], None] | None = None,
) -> UtilityReport:
    """Measures utility under given settings; see `utility`.

    Args:
        generator: As for `dpaudit.audit`.
        data: A table, a file, or "sample:NAME".
        settings: Every choice.
        schema: A schema or its file; inferred if None.
        parameters: Parameters of a generator given by name.
        test: Further real rows to test on.
        on_progress: Called after every table measured.

    Returns:
        The report.

    Raises:
        InputError: If an argument is unusable, or the generator fails at once.
        TrialError: If all but one of the generator's models fail.
    """

    def report(source: str, done: int, total: int) -> None:
        if on_progress is not None:
            on_progress(UtilityProgress(source, done, total))

    table = load(data, schema)
    tested = None if test is None else load(test, table.schema)
    experiment = prepare(
        table.data, table.schema, settings, test=None if tested is None else tested.data
    )
    known = table.schema
    if known.label is None:  # a generator that draws records given the label must know the label
        known = replace(known, label=experiment.task.label)
    named = named_generator(generator, parameters or {}, {"schema": known})
    check_table(named.generator, experiment.train)

    # The generator comes first, so its errors show before anything else is trained.
    repeats = settings.repeats
    scored, failures = _repeats(named.name, named.generator, experiment, GENERATOR, repeats, report)
    real = experiment.real
    report("real", 1, 1)
    uniform = UniformRows(table.schema)
    noise, _ = _repeats(NOISE, uniform, experiment, NOISE, repeats, report)
    constant = experiment.repeat(EqualRows(table.schema), source=CONSTANT, number=0)
    report(CONSTANT, 1, 1)
    positive = experiment.task.examples(experiment.test).positive
    return UtilityReport(
        generator=named.name,
        parameters=named.parameters,
        claim=_claim_of(named),
        source=table.source,
        test_source=None if tested is None else tested.source,
        schema_inferred=table.schema.inferred,
        label=experiment.task.label,
        positive=experiment.task.positive,
        prevalence=float(positive.mean()),
        train_rows=len(experiment.train),
        test_rows=len(experiment.test),
        positive_test_rows=int(positive.sum()),
        rows=experiment.rows,
        repeats=len(scored),
        failures=tuple(failures),
        guesses=sum(repeat.guesses for repeat in scored),
        classifiers=experiment.classifiers,
        left_out=() if settings.classifiers else left_out(experiment.classifiers),
        confidence=settings.confidence,
        seed=settings.seed,
        scores=summarise(
            scored, noise=noise, constant=constant, real=real, confidence=settings.confidence
        ),
    )


def prepare(
    data: pd.DataFrame,
    schema: Schema,
    settings: UtilitySettings,
    *,
    test: pd.DataFrame | None = None,
) -> Experiment:
    """Checks everything that can be checked beforehand, and prepares an experiment.

    Args:
        data: The table.
        schema: Its schema.
        settings: Every choice.
        test: Real rows to test on; None to hold out a part of the table.

    Returns:
        The experiment; nothing is trained yet.

    Raises:
        InputError: If the settings do not fit the tables.
    """
    if settings.fidelity:
        check_installed()
    classifiers = choose(settings.classifiers)
    task = task_of(schema, label=settings.label, positive=settings.positive)
    if test is None:
        parts = split(data, task, share=settings.test_share, seed=settings.seed)
    else:
        parts = HeldOut(data, test)
    for what, part in (("the table", parts.train), ("the test table", parts.test)):
        check_classes(int(task.examples(part).positive.sum()), len(part), task, what=what)
    experiment = Experiment(
        task=task,
        train=parts.train,
        test=parts.test,
        rows=len(parts.train) if settings.rows is None else settings.rows,
        classifiers=classifiers,
        fidelity=settings.fidelity,
        seed=settings.seed,
    )
    check_rows(experiment.rows + experiment.held_out_rows, schema)
    return experiment


def _repeats(
    name: str,
    generator: Generator,
    experiment: Experiment,
    source: str,
    repeats: int,
    report: Callable[[str, int, int], None],
) -> tuple[list[Repeat], list[str]]:
    """The measurements of a generator over its repeats, and the reasons for failures."""
    repeats_done: list[Repeat] = []
    failures: list[str] = []
    for number in range(repeats):
        try:
            repeat = experiment.repeat(generator, source=source, number=number)
        except DpauditError as error:
            if number == 0:
                raise RegistryError(f"{name} fails on this table: {error}") from error
            failures.append(str(error))
        else:
            repeats_done.append(repeat)
        report(source, number + 1, repeats)
    if len(repeats_done) < 2:
        raise TrialError(f"{name} failed {len(failures)} of {repeats} times: {failures[0]}")
    return repeats_done, failures


def _claim_of(named: NamedGenerator) -> str | None:
    with refusing(f"{named.name}: its claim cannot be read"):
        claim = getattr(named.generator, "claim", None)
    return claim.in_words if isinstance(claim, Promise) else None


@dataclass(frozen=True)
class UniformRows:
    """Draws every value uniformly from its range in the schema; learns nothing.

    A missing category counts as one more category; a number that may be missing is missing with
    probability 1/2.
    """

    schema: Schema

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> UniformRows:
        """Ignores the table."""
        del data, seed
        return self

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        """Draws `n` rows."""
        rng = rng_of(seed, "uniform-rows")
        values = np.empty((n, len(self.schema.columns)))
        for numbers, column in zip(values.T, self.schema.columns, strict=True):
            if not column.kind.numeric:
                lowest = MISSING if column.missing else 0
                numbers[:] = rng.integers(lowest, len(column.categories), n)
                continue
            lower, upper = column.bounds
            if column.kind is Kind.INTEGER:
                numbers[:] = rng.integers(int(lower), int(upper), n, endpoint=True)
            else:
                numbers[:] = np.clip(lower + (upper - lower) * rng.random(n), lower, upper)
            if column.missing:
                numbers[rng.random(n) < 0.5] = np.nan
        return table_of(values, self.schema)


@dataclass(frozen=True)
class EqualRows:
    """The same row again and again: middles of bounds, first categories; learns nothing.

    Classifiers trained on it score every record alike, as a majority vote does.
    """

    schema: Schema

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> EqualRows:
        """Ignores the table."""
        del data, seed
        return self

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        """Repeats the row `n` times."""
        del seed
        row = [
            float(np.rint(middle)) if column.kind is Kind.INTEGER else middle
            for column in self.schema.columns
            for middle in [sum(column.bounds) / 2 if column.kind.numeric else 0.0]
        ]
        return table_of(np.tile(row, (n, 1)), self.schema)
