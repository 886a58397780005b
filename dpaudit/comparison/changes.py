"""What differs between two audits: what was audited, and how."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from dpaudit.formatting import percent, printable
from dpaudit.model.choices import Access
from dpaudit.results.record import AuditRecord
from dpaudit.results.sentences import claim_text, target

_ABSENT: Final = "not given"
_SOURCE: Final = "source code"
"""A fact that results of before do not have: it is compared where both have it."""
_DIGITS: Final = 12
"""Of a digest of source code that are shown."""
_RELEASE: Final = ": "
"""Stands between an environment and what is installed there, in the versions of a result."""


class ChangedPart(StrEnum):
    """What a difference is of.

    A difference of the generator may explain another bound; one of the audit or of dpaudit means
    that the two bounds are not of the same experiment.
    """

    GENERATOR = "generator"
    AUDIT = "audit"
    SOFTWARE = "software"


class Change(NamedTuple):
    """One difference.

    Attributes:
        part: What it is of.
        what: What differs, in a few words.
        before: Of the one audit, as text.
        after: Of the other.
    """

    part: ChangedPart
    what: str
    before: str
    after: str


def changes(before: AuditRecord, after: AuditRecord) -> tuple[Change, ...]:
    """Everything that differs between two audits, apart from what they found.

    The tables themselves are not compared: their digests are salted, each in its own run folder.

    Args:
        before: The record of one audit.
        after: The record of another.

    Returns:
        The differences: first those of the generator, then of the audit, then of the software.
    """
    found = []
    old, new = _facts(before), _facts(after)
    for part in ChangedPart:
        first, second = old[part], new[part]
        for what in dict.fromkeys([*first, *second]):
            pair = (first.get(what, _ABSENT), second.get(what, _ABSENT))
            unknown = what == _SOURCE and _ABSENT in pair
            if pair[0] != pair[1] and not unknown:
                found.append(Change(part, what, *pair))
    return tuple(found)


def _facts(record: AuditRecord) -> Mapping[ChangedPart, Mapping[str, str]]:
    """What a record says of each part, as text by name."""
    releases = {name: of for name, of in record.versions.items() if _RELEASE in name}
    generator = {"generator": record.generator.name, "claim": claim_text(record.claim)}
    generator |= {f"parameter {name}": str(of) for name, of in record.generator.parameters.items()}
    if record.generator.source is not None:
        generator[_SOURCE] = record.generator.source[:_DIGITS]
    generator |= {name.partition(_RELEASE)[2]: of for name, of in releases.items()}
    audit = {
        "table": f"{record.data.source}, {record.data.rows} x {record.data.columns}",
        "schema": "inferred from the table" if record.schema.inferred else "given",
        "target": target(record),
        "access": str(record.access or Access.OUTPUT),
        "attacks": ", ".join(attack.name for attack in record.attacks) or "none scored",
        "shadow models": str(sum(record.shadow_models.values())),
        "synthetic rows": str(record.rows),
        "confidence": percent(record.confidence),
        "seed": str(record.seed),
    }
    software = {name: of for name, of in record.versions.items() if name not in releases}
    found = {
        ChangedPart.GENERATOR: generator,
        ChangedPart.AUDIT: audit,
        ChangedPart.SOFTWARE: software,
    }
    return {part: _shown(facts) for part, facts in found.items()}


def _shown(facts: Mapping[str, str]) -> dict[str, str]:
    return {printable(name): printable(of) for name, of in facts.items()}
