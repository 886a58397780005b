"""The outcome of a check: a finding, a pass, or a reason why it could not be made."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from dpaudit.model.severity import Severity
from dpaudit.trace.catalogue import CATALOGUE


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A deviation that a trace shows.

    Attributes:
        id: Its stable name, a key of `CATALOGUE`.
        severity: What follows from it.
        evidence: What was seen, in words and numbers.
        numbers: The same numbers by name.
        correct: What a correct implementation does.
        reference: Where that is proved or stated.
    """

    id: str
    severity: Severity
    evidence: str
    numbers: Mapping[str, float]
    correct: str
    reference: str


class Passed(NamedTuple):
    """A check that looked for a deviation and did not find it.

    Attributes:
        id: Of the deviation.
    """

    id: str


class Skipped(NamedTuple):
    """A check that could not be made.

    Attributes:
        id: Of the deviation that it looks for.
        why: The reason, in words.
    """

    id: str
    why: str


CheckOutcome: TypeAlias = Finding | Passed | Skipped
"""What a check yields for an id; of several, the most severe finding counts, then a pass."""


def found(id_: str, evidence: str, **numbers: float) -> Finding:
    """A finding, completed from the catalogue.

    Args:
        id_: A key of `CATALOGUE`.
        evidence: What was seen.
        numbers: The numbers of the evidence; what is not finite is left out (JSON has no name
            for it).

    Returns:
        The finding.
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
