"""Every finding by its stable name, and the results of checks: found, passed or skipped."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from dpaudit.model.choices import Severity


class Entry(NamedTuple):
    """The description of a finding.

    Attributes:
        correct: What a correct implementation does.
        reference: Where that is proved or stated.
        severity: What follows from it.
    """

    correct: str
    reference: str
    severity: Severity


PARTS: Final[Mapping[str, Mapping[str, Entry]]] = {
    part: {
        id_: Entry(**{**entry, "severity": Severity(entry.get("severity", Severity.VIOLATION))})
        for id_, entry in entries.items()
    }
    for part, entries in tomllib.loads(
        Path(__file__).with_name("catalogue.toml").read_text(encoding="utf-8")
    ).items()
}
"""Every finding under the part of a training that it is about."""
CATALOGUE: Final[Mapping[str, Entry]] = {
    id_: entry for part in PARTS.values() for id_, entry in part.items()
}
"""Every finding by its name."""


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
        id: Id of the deviation.
    """

    id: str


class Skipped(NamedTuple):
    """A check that could not run.

    Attributes:
        id: Id of the deviation that it looks for.
        why: The reason, in words.
    """

    id: str
    why: str


CheckOutcome: TypeAlias = Finding | Passed | Skipped
"""The outcome of a check for an id; of several, the most severe finding counts, then a pass."""


def flaw(id_: str, evidence: str, **numbers: float) -> Finding:
    """A finding, completed from the catalogue.

    Args:
        id_: A key of `CATALOGUE`.
        evidence: What was seen.
        numbers: The numbers of the evidence; those that are not finite are left out, because JSON
            cannot hold them.

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
