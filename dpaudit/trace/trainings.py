"""The trainings that a trace compares: on the table, and on changed tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import pandas as pd

from dpaudit.errors import InputError, TargetError, TrialError
from dpaudit.formatting import located
from dpaudit.game.target import farthest
from dpaudit.game.trial import reason_of
from dpaudit.game.worlds import without
from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.column import as_numbers
from dpaudit.model.encoding import check_rows
from dpaudit.model.schema import Schema
from dpaudit.plugins.recorder import Traceable
from dpaudit.plugins.release import accept
from dpaudit.seeds import Stream
from dpaudit.trace.collector import Collector, Trace

MORE_ROWS: Final = 6500
"""The repeated table has at least this many rows, and at least three times those of the table."""
FEW_ROWS: Final = 60
"""The thinned table has at most this many rows, or two for each teacher, and at most half."""


@dataclass(frozen=True, kw_only=True)
class Trainings:
    """The recorded trainings of one generator on several tables and under several settings.

    Attributes:
        schema: The public schema.
        table: Trained on the table.
        without: Trained without the record `removed`, from the same seed.
        removed: Row number of that record.
        more: Trained on the table repeated.
        fewer: Trained on a few of its rows; or why that was not possible, in one line.
        exercises: The generator's own exercises, trained on the table.
        train_reseeded: Trains once more on the table, from another seed.
        train_more_without: Trains on the table repeated, without `removed` in its first copy.
    """

    schema: Schema
    table: Trace
    without: Trace
    removed: int
    more: Trace
    fewer: Trace | str
    exercises: tuple[Trace, ...]
    train_reseeded: Callable[[], Trace]
    train_more_without: Callable[[], Trace]

    @cached_property
    def reseeded(self) -> Trace:
        """Trained on the table from another seed; trained on first access."""
        return self.train_reseeded()

    @cached_property
    def more_without(self) -> Trace:
        """Trained on the table repeated, without one record; trained on first access."""
        return self.train_more_without()

    @property
    def charged(self) -> tuple[Trace, ...]:
        """The trainings on the table under any settings: those whose noise and costs count."""
        return (self.table, *self.exercises)


def run_trainings(
    generator: Traceable,
    data: pd.DataFrame,
    schema: Schema,
    *,
    rows: int,
    seed: int,
    name: str,
    on_progress: Callable[[str], None] | None,
) -> Trainings:
    """Trains a generator a few times and collects what it records.

    Args:
        generator: The generator.
        data: The table, canonical.
        schema: Its schema.
        rows: Synthetic records to draw each time.
        seed: Seed of every training but one.
        name: The generator's, for messages.
        on_progress: Called before each training with a line that says what is trained.

    Returns:
        What it recorded.

    Raises:
        SettingsError: If no records are asked for.
        TargetError: If the table has fewer than two rows.
        TrialError: If a training failed or its output is not such a table; says which training.
    """
    check_rows(rows, schema)

    def traced(what: str, which: Traceable, table: pd.DataFrame, own_seed: int = seed) -> Trace:
        if on_progress is not None:
            on_progress(f"training {what}")
        try:
            return _trace(which, table, schema, rows=rows, seed=own_seed)
        except InputError:
            raise
        except Exception as error:
            reason = str(error) if isinstance(error, TrialError) else located(error)
            raise TrialError(f"{name}, trained {what}: {reason}") from error

    removed = most_informative_record(data, schema)
    table = traced("on the table", generator, data)
    repeats = -(-max(3 * len(data), MORE_ROWS) // len(data))
    repeated = pd.concat([data] * repeats, ignore_index=True)
    few = max(FEW_ROWS, round(2 * table.constants.get("teachers", 0)))
    few = min(len(data) // 2, few)
    spread = np.linspace(0, len(data) - 1, max(few, 1)).round().astype(np.int64)
    fewer: Trace | str
    try:
        fewer = traced(
            f"on {spread.size} of its rows", generator, data.iloc[spread].reset_index(drop=True)
        )
    except (TrialError, InputError) as error:  # a generator may refuse a small table
        # What the report says of it may be shared, so it has the type of a foreign error alone.
        fewer = f"trained on {spread.size} of its rows: {reason_of(error.__cause__ or error)}"
    offered = getattr(generator, "exercises", None)
    exercises: list[Traceable] = list(offered()) if offered is not None else []
    return Trainings(
        schema=schema,
        table=table,
        without=traced(f"without record {removed}", generator, without(data, (removed,))),
        removed=removed,
        more=traced(f"on the table repeated {repeats} times", generator, repeated),
        fewer=fewer,
        exercises=tuple(
            traced(f"in exercise {number} of {len(exercises)}", exercise, data)
            for number, exercise in enumerate(exercises, start=1)
        ),
        train_reseeded=lambda: traced(
            "from another seed", generator, data, Stream(seed, "", "trace/another seed").seed()
        ),
        train_more_without=lambda: traced(
            f"on the table repeated {repeats} times without record {removed}",
            generator,
            without(repeated, (removed,)),
        ),
    )


def most_informative_record(data: pd.DataFrame, schema: Schema) -> int:
    """Row number of the record whose removal best reveals dependence on the table.

    It is the record with the most sole extremes of numeric columns. Among several, the one nearest
    to the middle; one in the last tenth of the table only if no other holds any. If no record holds
    an extreme alone, the farthest record.

    Args:
        data: The table, canonical.
        schema: Its schema.

    Returns:
        Its row number, from 0.

    Raises:
        TargetError: If the table has fewer than two rows.
    """
    if len(data) < 2:
        raise TargetError("the table needs at least 2 rows: one of them is removed")
    extremes = np.zeros(len(data), dtype=np.int64)
    for column in schema.columns:
        if column.kind.numeric:
            numbers = as_numbers(data[column.name])
            for extreme in (np.nanmin(numbers), np.nanmax(numbers)):
                holders = np.flatnonzero(numbers == extreme)
                extremes[holders] += holders.size == 1
    early = extremes[: len(data) - len(data) // 10]
    candidates = early if early.any() else extremes
    if not candidates.any():
        return farthest(data, schema)
    most = np.flatnonzero(candidates == candidates.max())
    return int(most[np.argmin(np.abs(most - len(data) / 2))])


def _trace(
    generator: Traceable, data: pd.DataFrame, schema: Schema, *, rows: int, seed: int
) -> Trace:
    collector = Collector(len(data))
    given = generator.trace(data.copy(), n_rows=rows, seed=seed, recorder=collector)
    synthetic = accept(given, schema, rows)
    claim = getattr(generator, "claim", None)
    stated = claim if isinstance(claim, PrivacyClaim) else None  # findings are about epsilon
    return collector.finish(stated, data, synthetic)
