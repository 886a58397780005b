"""Audits side by side, and what differs from one to the next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from dpaudit.errors import InputError
from dpaudit.evidence import check
from dpaudit.formatting import percent, printable
from dpaudit.model.choices import Access
from dpaudit.model.claim import NoClaim, Quantity
from dpaudit.results.document import OPTIONAL, Document
from dpaudit.results.record import AuditBrief, AuditedGenerator, AuditRecord
from dpaudit.results.result import AuditResult
from dpaudit.results.sentences import claim_text, target
from dpaudit.results.verdict import Verdict, most_severe

if TYPE_CHECKING:
    import pandas as pd

_ABSENT: Final = "not given"
_SOURCE: Final = "source code"
"""A fact that older results lack; it is compared only if both results have it."""
_DIGITS: Final = 12
"""Characters shown of a digest of source code."""
_RELEASE: Final = ": "
"""Separator between an environment and its packages in the versions of a result."""


class Reference(StrEnum):
    """Which run each is compared with."""

    FIRST = "first"
    PREVIOUS = "previous"


@dataclass(frozen=True, kw_only=True)
class ComparedRun:
    """One of the audits.

    Attributes:
        name: Its name in the comparison.
        generator: What was audited.
        audit: What it found.
    """

    name: str
    generator: AuditedGenerator
    audit: AuditBrief


class RunChanges(NamedTuple):
    """The differences between a run and its reference.

    Attributes:
        before: Name of the reference.
        after: Name of the run.
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
        verdict: The most severe verdict.
        runs: The audits, two or more.
        changes: What differs, run by run from the second on.
        reproduce: The command that repeats the comparison; absent if none was given.

    Raises:
        InputError: If there are fewer than two runs, or names are not unique.
    """

    schema_version = 1

    reference: Reference
    verdict: Verdict
    runs: tuple[ComparedRun, ...]
    changes: tuple[RunChanges, ...]
    reproduce: str | None = field(default=None, metadata=OPTIONAL)

    def __post_init__(self) -> None:
        if len(self.runs) < 2:
            raise InputError("one run has nothing to be compared with: give two or more")
        names = [run.name for run in self.runs]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"two runs are called {twice}: give each once")

    @property
    def quantity(self) -> Quantity | None:
        """The quantity that all claims limit; None if it differs."""
        quantities = {run.audit.claim.quantity for run in self.runs}
        return quantities.pop() if len(quantities) == 1 else None

    @property
    def frame(self) -> pd.DataFrame:
        """The audits as a table, one a row, with unrounded numbers.

        Columns `run`, `generator`, `quantity` and `claim` (what the claim limits, and to what),
        `bound` (the lower bound that decides, the one to quote), `rule` (its name),
        `clopper_pearson` (the bound that other audits report), `confidence`, `limit` (the largest
        bound that this many models can give), `detectable` (80 % power), `auc`, `shadow_models`,
        `verdict` and `date`. A withheld bound is missing.
        """
        import pandas as pd

        return pd.DataFrame([_row_of(run) for run in self.runs])


def _row_of(run: ComparedRun) -> dict[str, object]:
    audit = run.audit
    kept = not audit.is_withheld
    return {
        "run": run.name,
        "generator": run.generator.name,
        "quantity": str(audit.claim.quantity),
        "claim": None if isinstance(audit.claim, NoClaim) else audit.claim.value,
        "bound": audit.proved if kept else None,
        "rule": audit.rule,
        "clopper_pearson": audit.clopper_pearson if kept else None,
        "confidence": audit.confidence,
        "limit": audit.max_provable,
        "detectable": audit.detectable,
        "auc": audit.auc,
        "shadow_models": audit.shadow_models,
        "verdict": str(audit.verdict),
        "date": audit.date,
    }


def compare(
    runs: Mapping[str, str | Path | AuditRecord] | Iterable[str | Path | AuditRecord],
    *,
    reference: Reference = Reference.FIRST,
    reproduce: str | None = None,
) -> Comparison:
    """Puts audits side by side.

    Args:
        runs: Two or more run folders, or results, in order; a mapping names them. Otherwise they
            are named by the shortest ends of their folders that differ, or by their generators if
            a result has no folder. A folder's result is checked as `dpaudit.load` does.
        reference: The run with which each is compared.
        reproduce: The command that compares them, for the report.

    Returns:
        The comparison.

    Raises:
        InputError: If there are fewer than two, two have the same name, or one cannot be read.
    """
    given = list(runs.values()) if isinstance(runs, Mapping) else list(runs)
    records = [run if isinstance(run, AuditRecord) else check.load(run) for run in given]
    names = list(runs) if isinstance(runs, Mapping) else _names(records)
    named = list(zip(names, records, strict=True))
    before = named[:-1] if reference is Reference.PREVIOUS else named[:1] * len(named[1:])
    return Comparison(
        reference=reference,
        verdict=most_severe(record.verdict for record in records),
        runs=tuple(
            ComparedRun(name=name, generator=record.generator, audit=AuditBrief.of(record))
            for name, record in named
        ),
        changes=tuple(
            RunChanges(old, new, changes(was, now))
            for (old, was), (new, now) in zip(before, named[1:], strict=True)
        ),
        reproduce=reproduce,
    )


def _names(records: Sequence[AuditRecord]) -> list[str]:
    """Names results by the shortest ends of their folders that differ, or by their generators.

    Raises:
        InputError: If a folder is given twice.
    """
    folders = [record.folder for record in records if isinstance(record, AuditResult)]
    whole = [folder.resolve() for folder in folders if folder is not None]
    if len(whole) < len(records):
        return [record.generator.name for record in records]
    twice = next((path for path in whole if whole.count(path) > 1), None)
    if twice is not None:
        raise InputError(f"{twice} is given twice: give each run once")
    ends = (
        ["/".join(path.parts[-length:]) for path in whole]
        for length in range(1, max(len(path.parts) for path in whole) + 1)
    )
    return next(names for names in ends if len(set(names)) == len(names))


class ChangedPart(StrEnum):
    """The part in which two audits differ.

    A difference of the generator may explain a different bound; one of the audit or of dpaudit
    means that the bounds come from different experiments.
    """

    GENERATOR = "generator"
    AUDIT = "audit"
    SOFTWARE = "software"


class Change(NamedTuple):
    """One difference.

    Attributes:
        part: The part of the audit that differs.
        what: What differs, in a few words.
        before: Its value in the first audit, as text.
        after: Its value in the second.
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
    changed = []
    old, new = _facts(before), _facts(after)
    for part in ChangedPart:
        first, second = old[part], new[part]
        for what in dict.fromkeys([*first, *second]):
            was, now = first.get(what, _ABSENT), second.get(what, _ABSENT)
            unknown = what == _SOURCE and _ABSENT in (was, now)
            if was != now and not unknown:
                changed.append(Change(part, what, was, now))
    return tuple(changed)


def _facts(record: AuditRecord) -> Mapping[ChangedPart, Mapping[str, str]]:
    """What a record says of each part, as text by name."""
    releases = {name: version for name, version in record.versions.items() if _RELEASE in name}
    generator = {"generator": record.generator.name, "claim": claim_text(record.claim)}
    generator |= {
        f"parameter {name}": str(value) for name, value in record.generator.parameters.items()
    }
    if record.generator.source is not None:
        generator[_SOURCE] = record.generator.source[:_DIGITS]
    generator |= {name.partition(_RELEASE)[2]: version for name, version in releases.items()}
    audit = {
        "table": f"{record.data.source}, {record.data.rows} x {record.data.columns}",
        "schema": "inferred from the table" if record.schema.inferred else "given",
        "target": target(record),
        "access": str(record.access or Access.OUTPUT),
        "attacks": ", ".join(record.tried_attacks) if record.attacks else "none scored",
        "shadow models": str(sum(record.shadow_models.values())),
        "synthetic rows": str(record.rows),
        "confidence": percent(record.confidence),
        "seed": str(record.seed),
    }
    software = {name: version for name, version in record.versions.items() if name not in releases}
    return {
        part: {printable(name): printable(fact) for name, fact in facts.items()}
        for part, facts in zip(ChangedPart, (generator, audit, software), strict=True)
    }
