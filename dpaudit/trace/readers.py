"""Checks of who reads private records besides the teachers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from dpaudit.plugins.recorder import Reader
from dpaudit.trace.collector import Reading
from dpaudit.trace.findings import CheckOutcome, Passed, Skipped, found
from dpaudit.trace.trainings import Trainings


def readers(trainings: Trainings) -> Iterator[CheckOutcome]:
    """Checks whether anything but teachers reads private records, and whether anybody votes."""
    trace = trainings.table
    voted = trace.ones.size > 0
    read = {reader: _rows(trace.readings(reader)) for reader in Reader}
    n = len(trace.data)
    reached = read[Reader.STUDENT]
    if not any(read.values()):
        why = "no reader recorded what it read"
        yield from (Skipped(id_, why) for id_ in ("no-pate", "student-sees-real-rows"))
    elif reached and not voted:
        yield found(
            "no-pate",
            f"{reached} of {n} records are read by what the generator learns from, and no "
            f"teacher votes in {len(trace.iterations)} iterations",
            records=n,
            read=reached,
            votes=0,
        )
        yield Skipped("student-sees-real-rows", "there is no student: nobody votes")
    else:
        yield Passed("no-pate")
        yield _seen("student-sees-real-rows", "the student", reached, n, trace.ones.size)
    for id_, reader, name in (
        ("generator-sees-real-rows", Reader.GENERATOR, "the generator"),
        ("conditions-from-data", Reader.CONDITIONS, "conditions of generated records"),
    ):
        yield _seen(id_, name, read[reader], n, trace.ones.size)


def _seen(id_: str, name: str, read: int, n: int, votes: int) -> CheckOutcome:
    if not read:
        return Passed(id_)
    evidence = f"{read} of {n} records reach {name} directly, beside {votes} votes of teachers"
    return found(id_, evidence, records=n, read=read, votes=votes)


def _rows(parts: Mapping[int, Reading]) -> int:
    """How many records the readers of a kind read."""
    rows = [reading.rows for reading in parts.values()]
    return np.unique(np.concatenate(rows)).size if rows else 0
