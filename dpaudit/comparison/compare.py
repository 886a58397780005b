"""Audits side by side: a pure function of their results."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

from dpaudit.comparison.changes import Change, changes
from dpaudit.errors import InputError
from dpaudit.model.claim import Quantity
from dpaudit.results.document import to_document
from dpaudit.results.record import AuditRecord
from dpaudit.results.verdict import Verdict

COMPARISON_VERSION: Final = 1
"""Version of the shape of a comparison's document."""
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
        record: What it found.
    """

    name: str
    record: AuditRecord


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
class Comparison:
    """Audits side by side, in the order given.

    Attributes:
        runs: The audits, two or more.
        reference: Which of them each is compared with.

    Raises:
        InputError: If there are fewer than two, or two have one name.
    """

    runs: tuple[ComparedRun, ...]
    reference: Reference

    def __post_init__(self) -> None:
        if len(self.runs) < 2:
            raise InputError("one run has nothing to be compared with: give two or more")
        names = [run.name for run in self.runs]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"two runs are called {twice}: give each once")

    @property
    def verdict(self) -> Verdict:
        """The gravest verdict of all."""
        return gravest(run.record.verdict for run in self.runs)

    @property
    def quantity(self) -> Quantity | None:
        """What all claims limit; None where they limit different things."""
        found = {run.record.claim.quantity for run in self.runs}
        return found.pop() if len(found) == 1 else None

    @property
    def changes(self) -> tuple[RunChanges, ...]:
        """What differs, run by run from the second on."""
        first = self.runs[0]
        before = [first] * (len(self.runs) - 1)
        if self.reference is Reference.PREVIOUS:
            before = list(self.runs[:-1])
        return tuple(
            RunChanges(old.name, new.name, changes(old.record, new.record))
            for old, new in zip(before, self.runs[1:], strict=True)
        )

    def to_document(self) -> dict[str, Any]:
        """The comparison as a JSON document."""
        return {
            "schema_version": COMPARISON_VERSION,
            "reference": self.reference.value,
            "verdict": self.verdict.value,
            "runs": [_document(run) for run in self.runs],
            "changes": to_document(self.changes),
        }

    def to_json(self) -> str:
        """The document as JSON text."""
        return json.dumps(self.to_document(), indent=2, allow_nan=False) + "\n"


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
    return Comparison(
        runs=tuple(ComparedRun(name=name, record=record) for name, record in runs.items()),
        reference=reference,
    )


def _document(run: ComparedRun) -> dict[str, Any]:
    """One run: what it is called, and what it found."""
    record, power = run.record, run.record.power
    return {
        "name": run.name,
        "generator": to_document(record.generator),
        "verdict": record.verdict.value,
        "claim": to_document(record.claim),
        "quantity": record.claim.quantity.value,
        "claimed": record.claim.value,
        "proved": record.proved,
        "confidence": record.confidence,
        "detectable": None if power is None else power.detectable,
        "max_provable": None if power is None else power.max_provable,
        "auc": record.auc,
        "shadow_models": sum(record.shadow_models.values()),
    }
