"""What the probes before an audit saw, as data: a part of `result.json`."""

from __future__ import annotations

from dataclasses import dataclass, field

from dpaudit.model.severity import Severity
from dpaudit.results.fields import OPTIONAL, Probability, Whole


@dataclass(frozen=True, kw_only=True)
class ProbeAlarm:
    """What a probe before the audit saw that no generator should show.

    The evidence may quote the table, so it is not here: `dpaudit probe --only ID` gives it.

    Attributes:
        id: Name of the probe.
        severity: violation: the claim does not hold. bug: the generator does not do what it should.
            note: worth knowing.
        correct: What a correct generator does.
        p_value: Largest probability of such evidence under the claim; null where no chance is
            involved.
    """

    id: str
    severity: Severity
    correct: str
    p_value: Probability | None


@dataclass(frozen=True, kw_only=True)
class ProbesOutcome:
    """What the probes before the audit saw. They decide no verdict and spend none of its error.

    Attributes:
        alarms: Their alarms; the probability of any on a generator that keeps its claim is at most
            1 - confidence.
        passed: Names of the probes without alarm.
        not_applicable: Names of those that say nothing about this table or this generator.
        failed: Names of those whose trainings failed.
        left_out: Names of those that were not run.
        confidence: Probability with which a generator that keeps its claim raises no alarm.
        fits: Models trained; none of them is among the shadow models.
        why_left_out: Why some were not run; absent if all were.
    """

    alarms: tuple[ProbeAlarm, ...] = ()
    passed: tuple[str, ...] = ()
    not_applicable: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    confidence: Probability
    fits: Whole = 0
    why_left_out: str | None = field(default=None, metadata=OPTIONAL)
