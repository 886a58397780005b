"""The trainings that a trace compares, on the table and on changed ones, and what they recorded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpaudit.account import VoteTable
from dpaudit.errors import InputError, TargetError, TrialError
from dpaudit.formatting import located
from dpaudit.game.target import farthest
from dpaudit.game.trial import reason_of
from dpaudit.game.worlds import without
from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.encoding import check_rows
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FloatArray, IntArray
from dpaudit.plugins.recorder import NoiseOn, Reader, Stage, Traceable
from dpaudit.plugins.release import accept
from dpaudit.seeds import Stream

MORE_ROWS: Final = 6500
"""The repeated table has at least this many rows, and at least three times those of the table."""
FEW_ROWS: Final = 60
"""The thinned table has at most this many rows, or two for each teacher, and at most half."""
FED_KEPT: Final = 20_000
"""Inputs of the generator network that are kept in each stage: enough to compare distributions."""


ReaderId: TypeAlias = tuple[Reader, int]
"""A reader of private records: its kind, and its number among those of the kind."""


class Reading(NamedTuple):
    """What one reader read.

    Attributes:
        rows: Row numbers, each once, increasing.
        draws: How many were read, repeated ones counted again.
    """

    rows: IntArray
    draws: int


class Charge(NamedTuple):
    """What the accountant charged.

    Attributes:
        queries: For how many labels.
        votes: The latest votes for 1, as many as queries; fewer if fewer were cast since the
            charge before.
        after: Epsilon spent afterwards, by its own reckoning.
        moments: Its log moments in total afterwards, [L], if it has any.
    """

    queries: int
    votes: IntArray
    after: float
    moments: FloatArray | None


class GradientSum(NamedTuple):
    """One step of DP-SGD.

    Attributes:
        rows: Row numbers of the batch [b].
        clipped: Norm of what was clipped of each gradient, afterwards [b].
        added: Norm of all that each record added [b].
        noise: What was added to hide them [p].
    """

    rows: IntArray
    clipped: FloatArray
    added: FloatArray
    noise: FloatArray


@dataclass(kw_only=True)
class Trace:
    """What one training recorded; complete once its `Collector` has finished.

    Attributes:
        claim: What the generator claims.
        data: The table it was trained on.
        synthetic: The table it returned.
        iterations: What each reader read in each iteration.
        constants: Numbers that it treats as public, by name.
        scaling: Numbers that each column is scaled with, by column.
        label_counts: Records of each class; None if not recorded.
        renewed: For each teacher and iteration but its first: whether its training started from
            other parameters than it ended with before.
        promised: The accounted mechanism.
        ones: Votes for 1 of every query [T].
        labels: Labels released [T].
        noise: Draws, by what they hide.
        charges: What the accountant charged, in order.
        sums: The steps of DP-SGD, in order.
        fed: The first inputs of the generator network, by stage.
        unrounded: Numeric columns before rounding [n, numeric].
    """

    claim: PrivacyClaim | None
    data: pd.DataFrame
    synthetic: pd.DataFrame = field(init=False)
    iterations: Sequence[Mapping[ReaderId, Reading]] = field(init=False)
    constants: dict[str, float] = field(default_factory=dict)
    scaling: dict[str, tuple[float, ...]] = field(default_factory=dict)
    label_counts: tuple[int, ...] | None = None
    renewed: list[bool] = field(default_factory=list)
    promised: VoteTable | None = None
    ones: IntArray = field(init=False)
    labels: IntArray = field(init=False)
    noise: Mapping[NoiseOn, FloatArray] = field(init=False)
    charges: list[Charge] = field(default_factory=list)
    sums: list[GradientSum] = field(default_factory=list)
    fed: Mapping[Stage, FloatArray] = field(init=False)
    unrounded: FloatArray | None = None

    def readings(self, reader: Reader) -> dict[int, Reading]:
        """What each reader of a kind read in all iterations together, by number."""
        rows: dict[int, list[IntArray]] = defaultdict(list)
        draws: dict[int, int] = defaultdict(int)
        for iteration in self.iterations:
            for (kind, index), reading in iteration.items():
                if kind is reader:
                    rows[index].append(reading.rows)
                    draws[index] += reading.draws
        return {
            index: Reading(np.unique(np.concatenate(rows[index])), draws[index])
            for index in sorted(rows)
        }


class Collector:
    """A `Recorder` for one training.

    Raises:
        TrialError: By any method, if what it records is impossible.

    Attributes:
        trace: What it has collected so far; complete after `finish`.
    """

    def __init__(self, data: pd.DataFrame, claim: PrivacyClaim | None = None) -> None:
        """Starts empty, for a training on this table of a generator with this claim."""
        self.trace = Trace(claim=claim, data=data)
        self._iterations: list[dict[ReaderId, list[IntArray]]] = [{}]
        self._last: dict[int, FloatArray] = {}
        self._ones: list[IntArray] = []
        self._labels: list[IntArray] = []
        self._uncharged: list[IntArray] = []
        self._noise: dict[NoiseOn, list[FloatArray]] = defaultdict(list)
        self._fed: dict[Stage, list[FloatArray]] = defaultdict(list)

    def constant(self, name: str, value: float) -> None:
        """Records a number that the training treats as public."""
        self.trace.constants[name] = float(value)

    def scaling(self, column: str, numbers: Sequence[float]) -> None:
        """Records the numbers that a numeric column is scaled with."""
        self.trace.scaling[column] = tuple(float(number) for number in numbers)

    def label_counts(self, counts: Sequence[int]) -> None:
        """Records how many records of each class are to be generated."""
        self.trace.label_counts = tuple(int(count) for count in counts)

    def iteration(self) -> None:
        """Records that a round begins."""
        if self._iterations[-1]:  # records read before the first round belong to it
            self._iterations.append({})

    def read(self, reader: Reader, rows: IntArray, *, index: int = 0) -> None:
        """Records that a reader read private records.

        Raises:
            TrialError: If the table has no such rows.
        """
        numbers = self._known(rows)
        if numbers.size:
            self._iterations[-1].setdefault((Reader(reader), index), []).append(numbers)

    def taught(self, index: int, *, before: FloatArray, after: FloatArray) -> None:
        """Records that a teacher was trained in this iteration."""
        if index in self._last:
            self.trace.renewed.append(not np.array_equal(self._last[index], before, equal_nan=True))
        self._last[index] = np.array(after)

    def losses(self, own: float, others: float) -> None:
        """Ignores the losses: no check needs them."""

    def promised(self, table: VoteTable) -> None:
        """Records the mechanism that the accountant charges for."""
        self.trace.promised = table

    def voted(self, ones: IntArray, labels: IntArray) -> None:
        """Records that labels were released.

        Raises:
            TrialError: If votes and labels do not match, or labels are not 0 or 1.
        """
        votes, released = (np.array(given, dtype=np.int64).ravel() for given in (ones, labels))
        if (
            votes.shape != released.shape
            or np.any(votes < 0)
            or not np.isin(released, (0, 1)).all()
        ):
            raise TrialError("recorded labels that are not 0 or 1, one for each count of votes")
        self._ones.append(votes)
        self._labels.append(released)
        self._uncharged.append(votes)

    def noise(self, draws: FloatArray, *, on: NoiseOn) -> None:
        """Records draws of noise."""
        self._noise[NoiseOn(on)].append(np.array(draws, dtype=np.float64).ravel())

    def charged(
        self, queries: int, *, before: float, after: float, moments: FloatArray | None
    ) -> None:
        """Records what the accountant charged for the latest labels."""
        del before
        latest = _join(self._uncharged, np.int64)
        copied = None if moments is None else np.array(moments, dtype=np.float64).ravel()
        votes = latest[max(0, latest.size - queries) :]
        self.trace.charges.append(Charge(int(queries), votes, float(after), copied))
        self._uncharged.clear()

    def summed(
        self, rows: IntArray, *, clipped: FloatArray, added: FloatArray, noise: FloatArray
    ) -> None:
        """Records a step of DP-SGD.

        Raises:
            TrialError: If the table has no such rows, or there is not one norm for each.
        """
        numbers = self._known(rows)
        norms = [np.array(given, dtype=np.float64).ravel() for given in (clipped, added)]
        if any(norm.shape != numbers.shape for norm in norms):
            raise TrialError("recorded norms of gradients that are not one for each row")
        drawn = np.array(noise, dtype=np.float64).ravel()
        self.trace.sums.append(GradientSum(numbers, norms[0], norms[1], drawn))

    def fed(self, stage: Stage, inputs: FloatArray) -> None:
        """Records random inputs of the generator network."""
        kept = sum(part.size for part in self._fed[Stage(stage)])
        numbers = np.array(inputs, dtype=np.float64).ravel()[: FED_KEPT - kept]
        self._fed[Stage(stage)].append(numbers)

    def output(self, unrounded: FloatArray) -> None:
        """Records the sampled table's numeric columns before rounding."""
        self.trace.unrounded = np.array(unrounded, dtype=np.float64)

    def finish(self, synthetic: pd.DataFrame) -> Trace:
        """The trace of the training, which returned this table."""
        self.trace.synthetic = synthetic
        self.trace.iterations = [
            {part: _reading(rows) for part, rows in iteration.items()}
            for iteration in self._iterations
        ]
        self.trace.ones = _join(self._ones, np.int64)
        self.trace.labels = _join(self._labels, np.int64)
        self.trace.noise = {on: _join(self._noise[on], np.float64) for on in NoiseOn}
        self.trace.fed = {stage: _join(self._fed[stage], np.float64) for stage in Stage}
        return self.trace

    def _known(self, rows: IntArray) -> IntArray:
        """Row numbers, flat, once they are known to be of the table."""
        numbers = np.array(rows, dtype=np.int64).ravel()
        if numbers.size and not 0 <= numbers.min() <= numbers.max() < len(self.trace.data):
            raise TrialError(
                f"recorded rows {numbers.min()} to {numbers.max()} of a table of "
                f"{len(self.trace.data)}"
            )
        return numbers


def _reading(rows: list[IntArray]) -> Reading:
    joined = np.concatenate(rows)
    return Reading(np.unique(joined), joined.size)


def _join(parts: list[NDArray[Any]], dtype: type) -> NDArray[Any]:
    return np.concatenate([np.empty(0, dtype=dtype), *parts])


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
        reseeded: Trained on the table from another seed, at the first call.
        more_without: Trained on the table repeated, without `removed` in its first copy, at the
            first call.
    """

    schema: Schema
    table: Trace
    without: Trace
    removed: int
    more: Trace
    fewer: Trace | str
    exercises: tuple[Trace, ...]
    reseeded: Callable[[], Trace]
    more_without: Callable[[], Trace]

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
    more = f"on the table repeated {repeats} times"
    repeated = pd.concat([data] * repeats, ignore_index=True)
    few = min(len(data) // 2, max(FEW_ROWS, round(2 * table.constants.get("teachers", 0))))
    spread = np.linspace(0, len(data) - 1, max(few, 1)).round().astype(np.int64)
    thinned = f"on {spread.size} of its rows"
    fewer: Trace | str
    try:
        fewer = traced(thinned, generator, data.iloc[spread].reset_index(drop=True))
    except (TrialError, InputError) as error:  # a generator may refuse a small table
        # What the report says of it may be shared, so it has the type of a foreign error alone.
        fewer = f"trained {thinned}: {reason_of(error.__cause__ or error)}"
    offered = getattr(generator, "exercises", None)
    exercises: list[Traceable] = list(offered()) if offered is not None else []
    return Trainings(
        schema=schema,
        table=table,
        without=traced(f"without record {removed}", generator, without(data, (removed,))),
        removed=removed,
        more=traced(more, generator, repeated),
        fewer=fewer,
        exercises=tuple(
            traced(f"in exercise {number} of {len(exercises)}", exercise, data)
            for number, exercise in enumerate(exercises, start=1)
        ),
        reseeded=cache(
            lambda: traced(
                "from another seed", generator, data, Stream(seed, "", "trace/another seed").seed()
            )
        ),
        more_without=cache(
            lambda: traced(
                f"{more} without record {removed}", generator, without(repeated, (removed,))
            )
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
            numbers = column.numbers(data[column.name])
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
    claim = getattr(generator, "claim", None)
    stated = claim if isinstance(claim, PrivacyClaim) else None  # findings are about epsilon
    collector = Collector(data, stated)
    given = generator.trace(data.copy(), n_rows=rows, seed=seed, recorder=collector)
    return collector.finish(accept(given, schema, rows))
