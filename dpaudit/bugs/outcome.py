"""What was found of a bug: by replay and from rows, of the broken release and of its twin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple, Self

from dpaudit.formatting import rounded_down
from dpaudit.model.currencies import Claim
from dpaudit.plugins.protocols import World
from dpaudit.replaying.record import ReplayRecord
from dpaudit.results.document import Document, NonNegative, Whole
from dpaudit.results.result import AuditResult
from dpaudit.results.verdict import Verdict

_PLACES: Final = 6
"""Lines of code that are kept of a replay."""


class ReplayEvidence(NamedTuple):
    """What a replay found.

    Attributes:
        verdict: Its verdict; null if the code cannot be replayed.
        proved: The lower bound on epsilon; null if it has no limit, or there is no verdict.
        computed: What the observed steps cost; null if that is not known.
        reasons: Why, or why it cannot be replayed.
        places: The lines that cost or differ most.
        fits: Fits of the generator.
        seconds: Wall time.
    """

    verdict: Verdict | None
    proved: float | None
    computed: float | None
    reasons: tuple[str, ...]
    places: tuple[str, ...]
    fits: Whole
    seconds: NonNegative

    @classmethod
    def of(cls, record: ReplayRecord) -> Self:
        """The evidence of a finished replay."""
        parting = record.parting.place if record.parting is not None else None
        places = [*record.fixed_seeds, parting, *(line.place for line in record.ledger)]
        return cls(
            verdict=record.verdict,
            proved=record.proved,
            computed=record.computed,
            reasons=record.reasons,
            places=tuple(dict.fromkeys(one for one in places if one))[:_PLACES],
            fits=record.fits,
            seconds=round(record.seconds, 1),
        )

    @property
    def text(self) -> str:
        """The finding in one line."""
        if self.verdict is None:
            return f"not possible: {self.reasons[0]}"
        bound = "no limit" if self.proved is None else f"at least {rounded_down(self.proved)}"
        why = "" if self.verdict is Verdict.CONSISTENT else f"; {self.reasons[0]}"
        return f"{self.verdict}, epsilon {bound} ({self.fits} fits){why}"

    @classmethod
    def none(cls, reason: str, seconds: float) -> Self:
        """The evidence of code that cannot be replayed."""
        return cls(None, None, None, (reason,), (), 0, round(seconds, 1))


class AuditEvidence(NamedTuple):
    """What a black-box audit found.

    Attributes:
        verdict: Its verdict.
        proved: The lower bound on epsilon that decides; null if there is none.
        provable: What a perfect attack could have proved with as many models.
        models: Shadow models.
        failed_in: Models of world "in" that failed.
        failed_out: Models of world "out" that failed.
        seconds: Wall time.
    """

    verdict: Verdict
    proved: float | None
    provable: float | None
    models: Whole
    failed_in: Whole
    failed_out: Whole
    seconds: NonNegative

    @classmethod
    def of(cls, result: AuditResult, seconds: float) -> Self:
        """The evidence of a finished audit."""
        return cls(
            verdict=result.verdict,
            proved=result.proved,
            provable=result.max_provable_epsilon,
            models=sum(result.shadow_models.values()),
            failed_in=result.failures.get(World.IN, 0),
            failed_out=result.failures.get(World.OUT, 0),
            seconds=round(seconds, 1),
        )

    @property
    def text(self) -> str:
        """The finding in one line."""
        if self.proved is None or self.provable is None:
            return f"{self.verdict} ({self.models} models)"
        bound = f"at least {rounded_down(self.proved)} of {rounded_down(self.provable)} provable"
        return f"{self.verdict}, epsilon {bound} ({self.models} models)"


class SideFound(NamedTuple):
    """What was found of one side of a bug.

    Attributes:
        account: What ran, in words.
        replay: What a replay found.
        audit: What a black-box audit found; null if none was needed.
    """

    account: str
    replay: ReplayEvidence
    audit: AuditEvidence | None

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdicts that there are."""
        found = [self.replay.verdict, self.audit.verdict if self.audit else None]
        return tuple(one for one in found if one is not None)

    @property
    def is_violation(self) -> bool:
        """Whether any evidence proves a violation."""
        return Verdict.VIOLATION in self.verdicts

    @property
    def seconds(self) -> float:
        """Wall time of all of it."""
        return self.replay.seconds + (self.audit.seconds if self.audit else 0.0)


@dataclass(frozen=True, kw_only=True)
class BugOutcome(Document):
    """What was found of a bug, as `dpaudit bugs run` writes it.

    Attributes:
        id: The bug.
        case: Digest of all that decides: adapter, tables, pins, parameters, settings, seed.
        claim: The claim of both sides.
        broken: The release with the bug.
        twin: The same without it.
        versions: Versions of dpaudit and its libraries.
        date: The day, in UTC.
    """

    schema_version: ClassVar[int] = 1
    called: ClassVar[str] = "an outcome of `dpaudit bugs run`"
    kept_in: ClassVar[str] = "an ID.json that `dpaudit bugs run` wrote"

    id: str
    case: str
    claim: Claim
    broken: SideFound
    twin: SideFound
    versions: Mapping[str, str]
    date: str

    @property
    def is_decided(self) -> bool:
        """Whether replays alone prove the bug and clear its twin."""
        twin = self.twin.replay.verdict
        return self.broken.replay.verdict is Verdict.VIOLATION and twin not in (
            None,
            Verdict.VIOLATION,
        )

    @property
    def is_whole(self) -> bool:
        """Whether there are audits of both sides, too."""
        return self.broken.audit is not None and self.twin.audit is not None

    @property
    def is_proved(self) -> bool:
        """Whether the broken release is proved to violate its claim, and its twin never is."""
        silent = self.twin.audit is None or self.twin.audit.verdict is Verdict.CONSISTENT
        shown = self.is_decided or self.is_whole
        return shown and self.broken.is_violation and silent and not self.twin.is_violation

    def sides(self) -> Iterator[tuple[str, SideFound]]:
        """Both sides by name."""
        yield "broken", self.broken
        yield "twin", self.twin
