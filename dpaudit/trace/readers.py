"""Checks which parts read which private records: each teacher only its own part."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np
from scipy import stats

from dpaudit.formatting import listed
from dpaudit.plugins.protocols import IntArray
from dpaudit.plugins.recorder import Reader
from dpaudit.trace.catalogue import CheckOutcome, Finding, Passed, Skipped, flaw
from dpaudit.trace.noise import ERROR
from dpaudit.trace.trainings import Reading, Trace, Trainings

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
