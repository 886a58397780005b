"""Audits side by side: a pure function of their results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from dpaudit.comparison.changes import Change, changes
from dpaudit.errors import InputError
from dpaudit.model.claim import Quantity
from dpaudit.results.brief import AuditBrief
from dpaudit.results.document import Document
from dpaudit.results.record import AuditedGenerator, AuditRecord
from dpaudit.results.verdict import Verdict

_GRAVEST: Final = (
    Verdict.VIOLATION,
    Verdict.INVALID,
    Verdict.INCONCLUSIVE,
    Verdict.CONSISTENT,
)


class Reference(StrEnum):
    """Which run each is compared with."""

    FIRST = "first"
    PREVIOUS = "previous"


@dataclass(frozen=True, kw_only=True)
class ComparedRun:
    """One of the audits.

    Attributes:
        name: What it is called here.
        generator: What was audited.
        audit: What it found.
    """

    name: str
    generator: AuditedGenerator
    audit: AuditBrief


class RunChanges(NamedTuple):
    """What differs between a run and the one that it is compared with.

    Attributes:
        before: Name of the one that it is compared with.
        after: Its name.
        changes: The differences.
    """

    before: str
    after: str
    changes: tuple[Change, ...]


@dataclass(frozen=True, kw_only=True)
class Comparison(Document):
    """Audits side by side, in the order given.

    Attributes:
        reference: Which run each is compared with.
        verdict: The gravest verdict of all.
        runs: The audits, two or more.
        changes: What differs, run by run from the second on.

    Raises:
        InputError: If there are fewer than two, or two have one name.
    """

    schema_version = 1

    reference: Reference
    verdict: Verdict
    runs: tuple[ComparedRun, ...]
    changes: tuple[RunChanges, ...]

    def __post_init__(self) -> None:
        if len(self.runs) < 2:
            raise InputError("one run has nothing to be compared with: give two or more")
        names = [run.name for run in self.runs]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"two runs are called {twice}: give each once")

    @property
    def quantity(self) -> Quantity | None:
        """What all claims limit; None where they limit different things."""
        found = {run.audit.claim.quantity for run in self.runs}
        return found.pop() if len(found) == 1 else None


def gravest(verdicts: Iterable[Verdict]) -> Verdict:
    """The gravest of several verdicts; of none, invalid."""
    return min(verdicts, key=_GRAVEST.index, default=Verdict.INVALID)


def compare(
    runs: Mapping[str, AuditRecord], *, reference: Reference = Reference.FIRST
) -> Comparison:
    """Puts audits side by side.

    Args:
        runs: The results of two or more audits by what they are to be called, in order.
        reference: Which of them each is compared with.

    Returns:
        The comparison.

    Raises:
        InputError: If there are fewer than two.
    """
    named = list(runs.items())
    before = named[:-1] if reference is Reference.PREVIOUS else named[:1] * len(named[1:])
    return Comparison(
        reference=reference,
        verdict=gravest(record.verdict for record in runs.values()),
        runs=tuple(
            ComparedRun(name=name, generator=record.generator, audit=AuditBrief.of(record))
            for name, record in named
        ),
        changes=tuple(
            RunChanges(old, new, changes(one, other))
            for (old, one), (new, other) in zip(before, named[1:], strict=True)
        ),
    )
