"""What one probe concludes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from dpaudit.model.severity import Severity

Number = float | str | bool


class ProbeStatus(StrEnum):
    """How a probe ended."""

    ALARM = "alarm"
    PASSED = "passed"
    NOT_APPLICABLE = "not_applicable"
    FAILED = "failed"


class Observation(NamedTuple):
    """What a probe saw.

    Attributes:
        alarm: Whether it is one.
        evidence: What was seen, in words.
        numbers: The same in numbers.
        p_value: Largest probability of such evidence under the claim; None where no chance is
            involved.
        certainty: Why an alarm cannot be false, where there is no p-value.
        severity: Of this alarm; None means the probe's own.
        read: Columns of the output that it rests on; empty for all.
    """

    alarm: bool
    evidence: str
    numbers: Mapping[str, Number] = {}
    p_value: float | None = None
    certainty: str = ""
    severity: Severity | None = None
    read: tuple[str, ...] = ()


class NotApplicable(NamedTuple):
    """The outcome of a probe that says nothing about this table or this generator.

    Attributes:
        why: The reason, in words.
    """

    why: str


@dataclass(frozen=True, kw_only=True)
class ProbeResult:
    """The outcome of one probe.

    Attributes:
        id: Its name.
        status: How it ended.
        severity: Severity of its alarm.
        evidence: What was seen, in words; or why it does not apply; or what failed.
        numbers: The evidence in numbers.
        p_value: As in `Observation`.
        certainty: As in `Observation`.
        false_alarm_rate: Largest probability that it alarms on a generator that keeps its claim; 0
            where chance plays no part.
        fits: Models trained.
        correct: What a correct generator does.
    """

    id: str
    status: ProbeStatus
    severity: Severity
    evidence: str
    numbers: Mapping[str, Number] = field(default_factory=dict)
    p_value: float | None = None
    certainty: str = ""
    false_alarm_rate: float = 0.0
    fits: int = 0
    correct: str = ""
