"""Controls: two generators with known answers, run through the very game of the audit.

A harness that finds a leak in a generator that ignores its data is broken; an attack that does not
find the record in a generator that copies it proves nothing by finding nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import cloudpickle

from dpaudit.auditing.attacking.evaluation import Evaluation
from dpaudit.auditing.settings import AuditSettings
from dpaudit.auditing.two_worlds import TwoWorldSpec
from dpaudit.formatting import rounded_down
from dpaudit.game.trial import Role
from dpaudit.plugins.registry import GENERATORS, build
from dpaudit.results.record import ControlOutcome
from dpaudit.results.verdict import Check, Power

TRIALS_PER_WORLD = 30
CONFIDENCE = 0.999
"""Strict, because a sound audit fails its null control with probability 1 - CONFIDENCE."""
CAUGHT = 0.5
"""Share of its largest provable epsilon that the attack on a copying generator must prove."""


class Control(NamedTuple):
    """One control: the role of its trials and the registered generator that it audits."""

    role: Role
    generator: str


CONTROLS = (
    Control(Role.NULL_CONTROL, "null"),
    Control(Role.POSITIVE_CONTROL, "copycat"),
)


def control_settings(settings: AuditSettings) -> AuditSettings:
    """The settings of an audit's controls: fewer trials, the same rules, one analysis."""
    return replace(
        settings, shadow_models=2 * TRIALS_PER_WORLD, confidence=CONFIDENCE, sequential=False
    )


def control_generator(control: Control, audit: TwoWorldSpec) -> bytes:
    """The pickled generator of a control, built for this audit's schema and target."""
    offered = {"schema": audit.table.schema, "target": audit.target.record}
    built = build(control.generator, GENERATORS, given={}, offered=offered)
    pickled: bytes = cloudpickle.dumps(built)
    return pickled


def judge(role: Role, best: Evaluation | None, power: Power) -> ControlOutcome:
    """Whether a control ended as it must.

    Args:
        role: Which control.
        best: The attack with the largest bound; None if too few trials finished.
        power: What the control could prove.

    Returns:
        The result.
    """
    highest = power.max_provable_epsilon
    name = role.in_words
    if best is None:
        detail = f"{name}: too few of its trials finished"
        return ControlOutcome(
            passed=False, bound=None, auc=None, max_provable_epsilon=highest, detail=detail
        )
    proved = rounded_down(best.proved)
    if role is Role.NULL_CONTROL:
        passed = best.proved == 0
        detail = (
            "a generator that ignores its data was not told apart"
            if passed
            else f"a generator that ignores its data was told apart (bound {proved}): the two "
            "worlds differ in more than the record"
        )
    else:
        passed = best.proved >= CAUGHT * highest
        detail = (
            "a generator that copies the target was caught"
            if passed
            else f"a generator that copies the target was not caught (bound {proved} of "
            f"{rounded_down(highest)}): these attacks cannot see this target"
        )
    return ControlOutcome(
        passed=passed,
        bound=best.proved,
        auc=best.auc,
        max_provable_epsilon=highest,
        detail=detail,
    )


def control_check(role: Role, outcome: ControlOutcome) -> Check:
    """A control as a check: if it fails, the run is invalid."""
    return Check(role.in_words, outcome.passed, outcome.detail)
