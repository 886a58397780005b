"""What a check says: a finding, that it found nothing, or that it could not look."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from dpaudit.model.severity import Severity
from dpaudit.trace.catalogue import CATALOGUE


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A deviation that a trace proves.

    Attributes:
        id: Its stable name, a key of `CATALOGUE`.
        severity: What follows from it.
        evidence: What was seen, in words and numbers.
        numbers: The same numbers by name.
        correct: What a correct implementation does.
        reference: Where that is proved or told.
    """

    id: str
    severity: Severity
    evidence: str
    numbers: Mapping[str, float]
    correct: str
    reference: str

    def to_document(self) -> dict[str, Any]:
        """This finding as a JSON object."""
        return {
            "id": self.id,
            "severity": self.severity.value,
            "evidence": self.evidence,
            "numbers": dict(self.numbers),
            "correct": self.correct,
            "reference": self.reference,
        }


class Passed(NamedTuple):
    """A check looked for a deviation and did not find it."""

    id: str


class Skipped(NamedTuple):
    """A check could not look for a deviation."""

    id: str
    why: str


CheckOutcome: TypeAlias = Finding | Passed | Skipped
"""What a check yields for an id; of several, the gravest finding counts, then passed."""


def found(id_: str, evidence: str, **numbers: float) -> Finding:
    """A finding with what the catalogue says of it.

    Args:
        id_: A key of `CATALOGUE`.
        evidence: What was seen.
        numbers: The numbers of the evidence; what is not finite is left out (JSON has no name
            for it).
    """
    entry = CATALOGUE[id_]
    return Finding(
        id=id_,
        severity=entry.severity,
        evidence=evidence,
        numbers={name: float(value) for name, value in numbers.items() if math.isfinite(value)},
        correct=entry.correct,
        reference=entry.reference,
    )
