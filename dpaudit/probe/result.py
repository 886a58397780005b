"""What probes conclude."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.severity import Severity

Number = float | int | str | bool


class Status(StrEnum):
    """How a probe ended."""

    ALARM = "alarm"
    PASSED = "passed"
    NOT_APPLICABLE = "not_applicable"
    FAILED = "failed"


class Found(NamedTuple):
    """What a probe saw.

    Attributes:
        alarm: Whether it is one.
        words: The evidence, in words.
        numbers: The same in numbers.
        p_value: Largest probability of such evidence under the claim; None where no chance is
            involved.
        certainty: Why there is no false alarm, where there is no p-value.
        severity: Of this alarm; None means the probe's own.
    """

    alarm: bool
    words: str
    numbers: Mapping[str, Number] = {}
    p_value: float | None = None
    certainty: str = ""
    severity: Severity | None = None


class Skip(NamedTuple):
    """Why a probe says nothing about this table or this generator."""

    why: str


@dataclass(frozen=True, kw_only=True)
class ProbeResult:
    """The outcome of one probe.

    Attributes:
        id: Its name.
        status: How it ended.
        severity: What its alarm means.
        words: The evidence; why it does not apply; or what failed.
        numbers: The evidence in numbers.
        p_value: As in `Found`.
        certainty: As in `Found`.
        false_alarm_rate: Largest probability that it alarms on a generator that keeps its claim; 0
            where chance plays no part.
        fits: Models trained.
        correct: What a correct generator does.
    """

    id: str
    status: Status
    severity: Severity
    words: str
    numbers: Mapping[str, Number] = field(default_factory=dict)
    p_value: float | None = None
    certainty: str = ""
    false_alarm_rate: float = 0.0
    fits: int = 0
    correct: str = ""

    def document(self) -> dict[str, Any]:
        """As a JSON object."""
        return {
            "id": self.id,
            "status": self.status.value,
            "alarm": self.status is Status.ALARM,
            "severity": self.severity.value,
            "evidence": self.words,
            "numbers": dict(self.numbers),
            "p_value": self.p_value,
            "certainty": self.certainty,
            "false_alarm_rate": self.false_alarm_rate,
            "fits": self.fits,
            "correct": self.correct,
        }


@dataclass(frozen=True, kw_only=True)
class ProbeReport:
    """All probes of one generator on one table.

    Attributes:
        generator: Its name.
        parameters: Its parameters.
        source: The table.
        claim: What the generator is held to.
        schema_inferred: Whether bounds and categories were read off the table.
        records: Records that were probed.
        confidence: Probability at least that no probe accuses a generator that keeps its claim.
        seed: Root of every random stream.
        results: One for each probe.
    """

    generator: str
    parameters: Mapping[str, Any]
    source: str
    claim: PrivacyClaim
    schema_inferred: bool
    records: int
    confidence: float
    seed: int
    results: tuple[ProbeResult, ...]

    def of(self, status: Status) -> tuple[ProbeResult, ...]:
        """The results that ended so."""
        return tuple(result for result in self.results if result.status is status)

    @property
    def violations(self) -> tuple[ProbeResult, ...]:
        """Alarms that no generator that keeps its claim gives."""
        return tuple(r for r in self.of(Status.ALARM) if r.severity is Severity.VIOLATION)

    @property
    def fits(self) -> int:
        """Models trained in all."""
        return sum(result.fits for result in self.results)

    def document(self) -> dict[str, Any]:
        """As one JSON document."""
        return {
            "generator": {"name": self.generator, "parameters": dict(self.parameters)},
            "data": self.source,
            "claim": {
                "epsilon": self.claim.epsilon,
                "delta": self.claim.delta,
                "neighbours": self.claim.neighbours.value,
                "source": self.claim.source,
            },
            "schema_inferred": self.schema_inferred,
            "records": self.records,
            "confidence": self.confidence,
            "seed": self.seed,
            "fits": self.fits,
            "probes": [result.document() for result in self.results],
        }
