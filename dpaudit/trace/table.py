"""Checks which parts read which private records: each teacher only its own part."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np
from scipy import stats

from dpaudit.formatting import listed, percent
from dpaudit.model.column import Column, Kind
from dpaudit.plugins.protocols import FloatArray, IntArray
from dpaudit.plugins.recorder import Reader, Stage
from dpaudit.trace.catalogue import CheckOutcome, Finding, Passed, Skipped, flaw
from dpaudit.trace.trainings import Reading, Trace, Trainings
from dpaudit.trace.votes import ERROR

_ASSIGNED: Final = (
    "partition-all-rows",
    "partition-last-only",
    "partition-reshuffled",
    "partition-overlapping",
)
_FULLER: Final = 1.2
"""A part that read more than this many times n / k records is larger than a cell."""
_SEEN: Final = 0.9
"""No record moved only counts as shown if this share has a known teacher in both runs."""
_SHOWN: Final = 6
_OWN: Final = {"teachers": "teachers-from-rows", "batch": "batch-from-rows"}
_OTHER: Final = "constant-from-rows"
_PENALTY: Final = "gradient_penalty"
_USUAL_PENALTY: Final = 10.0
_WIDE: Final = 2.0
"""Bounds at least so far apart are not those of numbers left in [0, 1]."""
_ROUNDING: Final = 1e-6
_FEWEST: Final = 100
"""Fewest inputs for which the limiting Kolmogorov-Smirnov distribution is exact enough."""


def readers(trainings: Trainings) -> Iterator[CheckOutcome]:
    """Checks whether only teachers read private records, and whether there are votes."""
    trace = trainings.table
    voted = trace.ones.size > 0
    read = {reader: _rows(trace.readings(reader)) for reader in Reader}
    n = len(trace.data)
    reached = read[Reader.STUDENT]
    if not any(read.values()):
        why = "no reader recorded what it read"
        yield from (Skipped(id_, why) for id_ in ("no-pate", "student-sees-real-rows"))
    elif reached and not voted:
        yield flaw(
            "no-pate",
            f"{reached} of {n} records are read by what the generator learns from, and no "
            f"teacher votes in {len(trace.iterations)} iterations",
            records=n,
            read=reached,
            votes=0,
        )
        yield Skipped("student-sees-real-rows", "there is no student, and no teacher votes")
    else:
        yield Passed("no-pate")
        yield _check_reads("student-sees-real-rows", "the student", reached, n, trace.ones.size)
    for id_, reader, name in (
        ("generator-sees-real-rows", Reader.GENERATOR, "the generator"),
        ("conditions-from-data", Reader.CONDITIONS, "conditions of generated records"),
    ):
        yield _check_reads(id_, name, read[reader], n, trace.ones.size)


def _check_reads(id_: str, name: str, read: int, n: int, votes: int) -> CheckOutcome:
    if not read:
        return Passed(id_)
    evidence = (
        f"{read} of {n} records reach {name} directly, in addition to {votes} votes of teachers"
    )
    return flaw(id_, evidence, records=n, read=read, votes=votes)


def _rows(parts: Mapping[int, Reading]) -> int:
    """How many records the readers of a kind read."""
    rows = [reading.rows for reading in parts.values()]
    return np.unique(np.concatenate(rows)).size if rows else 0


class Assignment(NamedTuple):
    """What readers of one kind read.

    Attributes:
        name: "teacher", or "critic's step".
        parts: What each read in all iterations together.
        within: Whether two read the same record in the same iteration.
        iterations: In how many iterations anything was read.
        rows: Records of the table.
    """

    name: str
    parts: Mapping[int, Reading]
    within: bool
    iterations: int
    rows: int

    @property
    def disjoint(self) -> bool:
        """Whether no two parts ever read the same record."""
        sizes = sum(reading.rows.size for reading in self.parts.values())
        return sizes == self.union.size

    @property
    def union(self) -> IntArray:
        """Row numbers that any part read."""
        return np.unique(np.concatenate([reading.rows for reading in self.parts.values()]))

    @property
    def draws(self) -> int:
        """How many records were read, with repetitions."""
        return sum(reading.draws for reading in self.parts.values())


def assignment(trace: Trace) -> Assignment | None:
    """The reads of teachers, else of a single critic's steps; None without any."""
    reader, name = Reader.TEACHER, "teacher"
    if not trace.readings(reader):
        reader, name = Reader.STUDENT, "critic's step"
    parts = trace.readings(reader)
    if not parts:
        return None
    within, iterations = False, 0
    for iteration in trace.iterations:
        read = [reading.rows for (kind, _), reading in iteration.items() if kind is reader]
        iterations += bool(read)
        joined = np.concatenate([np.empty(0, dtype=np.int64), *read])
        within = within or np.unique(joined).size < joined.size
    return Assignment(name, parts, within, iterations, len(trace.data))


def partition(trainings: Trainings) -> Iterator[CheckOutcome]:
    """Checks that records belong to fixed, disjoint parts, independently of each other.

    If a single part reads the table, for example with n // 1000 teachers, the repeated table is
    checked instead.
    """
    on, assigned = trainings.table, assignment(trainings.table)
    more = assignment(trainings.more)
    if assigned is not None and len(assigned.parts) < 2 and more is not None:
        on, assigned = trainings.more, more
    if assigned is None or len(assigned.parts) < 2:
        why = "no teacher recorded its rows" if assigned is None else "a single part read records"
        yield from (Skipped(id_, why) for id_ in (*_ASSIGNED, "partition-by-position"))
        yield Skipped("rows-never-used", why)
        return
    if not assigned.disjoint:
        yield _overlap(assigned)
        yield from (Passed(id_) for id_ in _ASSIGNED)
        yield Skipped("partition-by-position", "the parts are not disjoint")
        return
    yield from (
        Passed(id_) for id_ in _ASSIGNED if id_ != "partition-reshuffled" or assigned.iterations > 1
    )
    if assigned.iterations < 2:
        yield Skipped("partition-reshuffled", "records were read in one iteration only")
    yield _never_used(assigned)
    yield _by_position(trainings, on, assigned)


def _overlap(assigned: Assignment) -> Finding:
    """The finding for this kind of overlap."""
    n, k = assigned.rows, len(assigned.parts)
    shared = [
        np.intersect1d(part.rows, other.rows, assume_unique=True).size
        for part, other in combinations(assigned.parts.values(), 2)
    ]
    unused = n - assigned.union.size
    sizes = [reading.rows.size for reading in assigned.parts.values()]
    evidence = (
        f"{assigned.name}s {min(assigned.parts)} to {max(assigned.parts)} read "
        f"{listed(sizes, _SHOWN)} of {n} records in {assigned.iterations} iterations; two of them "
        f"share {min(shared)} to {max(shared)}"
    )
    numbers = {
        "records": n,
        "parts": k,
        "fewest_read": min(sizes),
        "most_read": max(sizes),
        "fewest_shared": min(shared),
        "most_shared": max(shared),
        "never_read": unused,
    }
    if not assigned.within:
        evidence += ", though none in one iteration"
        return flaw("partition-reshuffled", evidence, **numbers)
    if more_than_chance(n, assigned.draws, unused) and _alike(assigned, assigned.union.size):
        return flaw(
            "partition-last-only",
            f"{evidence}: all the same ones, where 1 / {k} of the table is {n // k}; "
            f"{unused} records are never read",
            **numbers,
        )
    if _alike(assigned, n) and min(sizes) > _FULLER * n / k:
        return flaw(
            "partition-all-rows",
            f"{evidence}; as many as draws from the whole table would give",
            **numbers,
        )
    return flaw("partition-overlapping", evidence, **numbers)


def _alike(assigned: Assignment, cells: int) -> bool:
    """Whether every part may have drawn from one set of this many records."""
    return not any(
        more_than_chance(cells, reading.draws, cells - reading.rows.size)
        for reading in assigned.parts.values()
    )


def more_than_chance(cells: int, draws: int, empty: int) -> bool:
    """Whether more cells are empty than uniform draws from all of them would leave.

    Each is empty with probability (1 - 1/cells)^draws, or less if draws are without replacement.
    An empty cell makes other empty cells less likely, so the binomial tail is an upper bound.

    Args:
        cells: Number of cells.
        draws: Number of draws.
        empty: Number of cells that no draw fell into.

    Returns:
        True if chance would leave at least this many with a probability below `ERROR`.
    """
    if cells < 1 or empty < 1:
        return False
    alone = math.exp(draws * math.log1p(-1.0 / cells)) if cells > 1 else float(draws == 0)
    return bool(stats.binom.sf(empty - 1, cells, alone) < ERROR)


def _never_used(assigned: Assignment) -> CheckOutcome:
    """Checks whether more records are read by no part than chance would leave."""
    n, k = assigned.rows, len(assigned.parts)
    unused = n - assigned.union.size
    # No hashed cell is larger, but in one table in a million; a fuller one leaves more unread.
    largest = int(stats.binom.isf(ERROR / k, n, 1.0 / k))
    fewest = min(reading.draws for reading in assigned.parts.values())
    unread = (1.0 - 1.0 / max(2, largest)) ** fewest
    if unused and stats.binom.sf(unused - 1, n, unread) < ERROR:
        return flaw(
            "rows-never-used",
            f"{unused} of {n} records are read by none of {k} {assigned.name}s",
            records=n,
            never_read=unused,
            parts=k,
        )
    return Passed("rows-never-used")


def _by_position(trainings: Trainings, on: Trace, assigned: Assignment) -> CheckOutcome:
    """Checks whether records change teachers when another one is removed."""
    id_ = "partition-by-position"
    without = trainings.without if on is trainings.table else trainings.more_without()
    other = assignment(without)
    if on.constants.get("teachers") != without.constants.get("teachers"):
        return Skipped(id_, "the number of teachers itself changes with one record less")
    if other is None or not other.disjoint:
        return Skipped(id_, "without one record the parts are not disjoint")
    before, after = _owners(assigned), np.insert(_owners(other), trainings.removed, -1)
    both = (before >= 0) & (after >= 0)
    moved = both & (before != after)
    if moved.any():
        changed = np.union1d(before[moved], after[moved]).size
        return flaw(
            id_,
            f"record {trainings.removed} of {assigned.rows} removed: {moved.sum()} of the "
            f"{both.sum()} other records that were read both times are read by another "
            f"{assigned.name}, and {changed} of {len(assigned.parts)} change",
            records=assigned.rows,
            compared=both.sum(),
            moved=moved.sum(),
            parts_changed=changed,
        )
    if both.sum() < _SEEN * (assigned.rows - 1):
        return Skipped(
            id_,
            f"only {both.sum()} of {assigned.rows - 1} records were read both times; none of them "
            "moved",
        )
    return Passed(id_)


def _owners(assigned: Assignment) -> IntArray:
    """Which part read each record [n]; -1 for none."""
    owners = np.full(assigned.rows, -1, dtype=np.int64)
    for index, reading in assigned.parts.items():
        owners[reading.rows] = index
    return owners


def constants(trainings: Trainings) -> Iterator[CheckOutcome]:
    """Checks that settings are the same for tables of other sizes, and that the penalty is 10."""
    runs = [trainings.table, trainings.without, trainings.more]
    if isinstance(trainings.fewer, str):
        yield Skipped("batch-from-rows", f"a smaller table could not be used: {trainings.fewer}")
    else:
        runs.append(trainings.fewer)
    recorded = {name for run in runs for name in run.constants}
    for name in sorted(recorded):
        # A penalty that is the number of teachers follows from that: a finding of its own.
        if name == _PENALTY and all(_penalty_is_teachers(run) for run in runs):
            continue
        values = [run.constants.get(name, float("nan")) for run in runs]
        id_ = _OWN.get(name, _OTHER)
        if np.unique(values).size > 1:
            seen = ", ".join(
                f"{value:g} at n = {len(run.data)}" for value, run in zip(values, runs, strict=True)
            )
            rows = {f"at_{len(run.data)}": v for v, run in zip(values, runs, strict=True)}
            yield flaw(id_, f"{name} is {seen}", **rows)
        else:
            yield Passed(id_)
    yield from (
        Skipped(id_, f"{name} was not recorded")
        for name, id_ in _OWN.items()
        if name not in recorded
    )
    yield from _penalty(trainings.table)


def _penalty_is_teachers(trace: Trace) -> bool:
    return trace.constants.get(_PENALTY) == trace.constants.get("teachers")


def _penalty(trace: Trace) -> Iterator[CheckOutcome]:
    id_ = "penalty-from-teachers"
    weight = trace.constants.get(_PENALTY)
    if weight is None:
        yield Skipped(id_, "no gradient penalty was recorded")
    elif weight == _USUAL_PENALTY:
        if _penalty_is_teachers(trace):
            yield Skipped(id_, "there are 10 teachers: use another number to distinguish the two")
        else:
            yield Passed(id_)
    elif _penalty_is_teachers(trace):
        evidence = f"the gradient penalty has weight {weight:g}, the number of teachers"
        yield flaw(id_, evidence, penalty=weight, teachers=weight)
    else:
        yield Passed(id_)
        yield flaw(
            "gradient-penalty", f"the gradient penalty has weight {weight:g}", penalty=weight
        )


def scaling(trainings: Trainings) -> Iterator[CheckOutcome]:
    """Checks whether the numbers that scale the columns depend on the table."""
    id_ = "bounds-from-data"
    numbers = trainings.table.scaling
    if not numbers:
        yield Skipped(id_, "no numbers that scale a column were recorded")
        return
    moved = [
        name for name in numbers if not _close(numbers[name], trainings.without.scaling.get(name))
    ]
    # Numbers released with noise change too, but also with the seed.
    steady = [
        name for name in moved if _close(numbers[name], trainings.reseeded().scaling.get(name))
    ]
    known = {column.name: column for column in trainings.schema.columns if column.kind.numeric}
    extreme = [
        name
        for name, column in known.items()
        if name in numbers and _is_extremes(numbers[name], column, trainings.table)
    ]
    if steady or extreme:
        yield _bounds(trainings, steady, extreme)
    elif moved:
        yield Skipped(
            id_,
            f"what scales {listed(moved)} changes with the seed as with the record: it may be a "
            "private release, whose noise is not traced",
        )
    else:
        yield Passed(id_)


def _bounds(trainings: Trainings, steady: list[str], extreme: list[str]) -> Finding:
    numbers, without = trainings.table.scaling, trainings.without.scaling
    shown = []
    if steady:
        name = steady[0]
        shown.append(
            f"without record {trainings.removed} what scales {listed(steady)} changes: {name} from "
            f"{_shown(numbers[name])} to {_shown(without.get(name, ()))}"
        )
    if extreme:
        name = extreme[0]
        column = next(c for c in trainings.schema.columns if c.name == name)
        shown.append(
            f"{listed(extreme)} scaled by the extremes of the table: {name} by "
            f"{_shown(numbers[name])} where the schema says {_shown(column.bounds)}"
        )
    return flaw(
        "bounds-from-data",
        "; ".join(shown),
        columns=len(numbers),
        columns_that_move=len(steady),
        columns_at_extremes=len(extreme),
    )


def _is_extremes(numbers: tuple[float, ...], column: Column, trace: Trace) -> bool:
    """Whether a column is scaled by its extremes, and these are not the schema's bounds."""
    values: FloatArray = column.numbers(trace.data[column.name])
    extremes = (float(np.nanmin(values)), float(np.nanmax(values)))
    return _close(numbers, extremes) and not _close(extremes, column.bounds)


def labels(trainings: Trainings) -> Iterator[CheckOutcome]:
    """Checks whether the classes of generated records are counted on the table."""
    id_ = "labels-copied"
    runs = (trainings.table, trainings.without, trainings.more)
    if any(run.label_counts is None for run in runs):
        yield Skipped(id_, "no counts of labels were recorded")
        return
    label = trainings.schema.label
    columns = trainings.schema.names if label is None else [label]
    copied = [name for name in columns if all(_counts_are(run, name) for run in runs)]
    if not copied:
        yield Passed(id_)
        return
    table, without = (list(run.label_counts or ()) for run in runs[:2])
    yield flaw(
        id_,
        f"records to generate by class: {table}, as the table has them in {copied[0]!r}; without "
        f"record {trainings.removed}: {without}, again as the table",
        **{f"class_{index}": count for index, count in enumerate(table)},
    )


def _counts_are(trace: Trace, column: str) -> bool:
    """Whether the recorded counts are those of a column's values, in any order."""
    own = trace.data[column].value_counts(dropna=False).to_numpy()
    recorded = np.array([count for count in trace.label_counts or () if count])
    return np.array_equal(np.sort(own), np.sort(recorded))


def _close(first: tuple[float, ...], other: tuple[float, ...] | None) -> bool:
    return (
        other is not None
        and len(first) == len(other)
        and np.allclose(first, other, rtol=1e-9, atol=1e-12, equal_nan=True)
    )


def _shown(numbers: tuple[float, ...]) -> str:
    return f"({listed([f'{number:.6g}' for number in numbers], most=4)})"


def output(trainings: Trainings) -> Iterator[CheckOutcome]:
    """Checks that numbers are on the scale of the table, and whole numbers rounded."""
    numeric = [column for column in trainings.schema.columns if column.kind.numeric]
    trace = trainings.table
    given = {c.name: c.numbers(trace.synthetic[c.name]) for c in numeric}
    yield _not_inverted(trace, numeric, given)
    raw = trace.unrounded
    shape = (len(trace.synthetic), len(numeric))
    if raw is None or raw.shape != shape:
        why = "the output before rounding was not recorded"
        if raw is not None:
            why = f"the output before rounding has shape {raw.shape}, not {shape}"
        yield from (Skipped(id_, why) for id_ in ("output-shifted", "integers-truncated"))
        return
    yield _check_shift(numeric, raw)
    whole = [index for index, column in enumerate(numeric) if column.kind is Kind.INTEGER]
    if not whole:
        yield Skipped("integers-truncated", "the schema has no integer columns")
        return
    values = np.stack([given[numeric[index].name] for index in whole], axis=1)
    yield _check_truncation(raw[:, whole], values)


def _not_inverted(
    trace: Trace, numeric: list[Column], given: dict[str, FloatArray]
) -> CheckOutcome:
    """Checks whether every column whose own values lie elsewhere was left in [0, 1]."""
    id_ = "output-not-inverted"
    telling = [c for c in numeric if _elsewhere(c, c.numbers(trace.data[c.name]))]
    if not telling:
        return Skipped(id_, "no numeric column has values that are far from [0, 1]")
    known = [given[c.name][np.isfinite(given[c.name])] for c in telling]
    lowest = min((values.min() for values in known if values.size), default=np.nan)
    highest = max((values.max() for values in known if values.size), default=np.nan)
    outside = [
        c.name
        for c, values in zip(telling, known, strict=True)
        if values.size and (values.min() < c.bounds.lower or np.any(values != np.rint(values)))
    ]
    # Small whole numbers within the bounds may be just that; others are not.
    if lowest >= 0.0 and highest <= 1.0 and outside:
        own = [c.numbers(trace.data[c.name]) for c in telling]
        return flaw(
            id_,
            f"{len(telling)} numeric columns whose values in the table go from "
            f"{min(np.nanmin(v) for v in own):g} to {max(np.nanmax(v) for v in own):g} come out "
            f"between {lowest:.4g} and {highest:.4g}",
            columns=len(telling),
            lowest=lowest,
            highest=highest,
        )
    return Passed(id_)


def _elsewhere(column: Column, values: FloatArray) -> bool:
    lower, upper = column.bounds
    return upper - lower >= _WIDE and bool(np.nanmax(values) > 1.0 or np.nanmin(values) < 0.0)


def _check_shift(numeric: list[Column], raw: FloatArray) -> CheckOutcome:
    """Checks whether numbers fill [lower, upper + lower] in place of [lower, upper]."""
    id_ = "output-shifted"
    lower, upper = np.array([column.bounds for column in numeric]).T
    if not np.any(lower > 0):
        return Skipped(id_, "no numeric column has a lower bound above 0")
    room = _ROUNDING * (upper - lower)
    beyond = raw > upper + room  # NaN compares false
    wide = np.maximum(lower + upper, upper)
    within = not np.any((raw < lower - room) | (raw > wide + room))
    columns = np.flatnonzero(beyond.any(axis=0))
    if columns.size and within and np.all(lower[columns] > 0):
        share = float(beyond[:, columns].mean())
        first = int(columns[np.argmax(beyond[:, columns].sum(axis=0))])
        return flaw(
            id_,
            f"{columns.size} columns with a lower bound above 0 go beyond their upper one, in "
            f"{percent(round(share, 2))} of their values, and none beyond upper + lower: "
            f"{numeric[first].name} up to {np.nanmax(raw[:, first]):.6g} with bounds "
            f"({lower[first]:g}, {upper[first]:g})",
            columns=columns.size,
            share=share,
            largest=float(np.nanmax(raw[:, first])),
            lower=lower[first],
            upper=upper[first],
        )
    return Passed(id_)


def _check_truncation(raw: FloatArray, values: FloatArray) -> CheckOutcome:
    id_ = "integers-truncated"
    known = np.isfinite(raw) & np.isfinite(values)
    before, after = raw[known], values[known]
    cut = any(np.array_equal(down(before), after) for down in (np.floor, np.trunc))
    differs = float(np.mean(np.rint(before) != after)) if before.size else 0.0
    if not cut or not differs:
        return Passed(id_)
    shift = float(np.mean(after - before))
    return flaw(
        id_,
        f"all {before.size} whole numbers are rounded down; {percent(round(differs, 2))} of them "
        f"are not the nearest, and their mean moves by {shift:.2f}",
        share=differs,
        mean_shift=shift,
        values=before.size,
    )


def inputs(trainings: Trainings) -> Iterator[CheckOutcome]:
    """Checks that inputs in sampling have the distribution of those in training."""
    id_ = "sampling-noise-differs"
    trained, sampled = (trainings.table.fed[stage] for stage in Stage)
    if min(trained.size, sampled.size) < _FEWEST:
        yield Skipped(
            id_, f"{trained.size} inputs in training and {sampled.size} in sampling: too few"
        )
        return
    test = stats.ks_2samp(trained, sampled, method="asymp")
    if test.pvalue > ERROR:
        yield Passed(id_)
        return
    yield flaw(
        id_,
        f"inputs in training go from {trained.min():.3g} to {trained.max():.3g} with mean "
        f"{trained.mean():.3g} and standard deviation {trained.std():.3g}; in sampling from "
        f"{sampled.min():.3g} to {sampled.max():.3g}, {sampled.mean():.3g} and "
        f"{sampled.std():.3g}; Kolmogorov-Smirnov distance {test.statistic:.3f}",
        distance=float(test.statistic),
        p_value=float(test.pvalue),
        mean_training=trained.mean(),
        mean_sampling=sampled.mean(),
        deviation_training=trained.std(),
        deviation_sampling=sampled.std(),
    )


def teachers(trainings: Trainings) -> Iterator[CheckOutcome]:
    """Checks whether teachers continue learning or start afresh in every iteration."""
    id_ = "teachers-refitted"
    renewed = trainings.table.renewed
    if not renewed:
        yield Skipped(id_, "no teacher recorded its parameters in two iterations")
    elif all(renewed):
        yield flaw(
            id_,
            f"in none of {len(renewed)} trainings after its first did a teacher start from the "
            "parameters it had ended with",
            trainings=len(renewed),
        )
    else:
        yield Passed(id_)
