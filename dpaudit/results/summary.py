"""A result in a few lines, for a terminal and for a failing test."""

from __future__ import annotations

from pathlib import Path

from dpaudit.formatting import (
    TERMINAL_WIDTH,
    printable,
    rounded,
    rounded_down,
    rounded_up,
)
from dpaudit.game.store import LOG_FILE
from dpaudit.model.choices import EXPOSING, FARTHEST, VULNERABLE
from dpaudit.model.claim import NoClaim, PrivacyClaim
from dpaudit.plugins.protocols import World
from dpaudit.results import sentences
from dpaudit.results.leaks import (
    LEAKS_NAMED,
    MANY,
    NO_FEATURE,
    WHOLE_OUTPUT,
    Carrier,
    carrier,
    feature,
)
from dpaudit.results.record import AuditRecord
from dpaudit.results.verdict import FRESH_TRIALS, Verdict

_LEAKS_IN_FAILURE = 5


def summary_lines(result: AuditRecord, *, folder: Path | None = None) -> list[str]:
    """The audit for a terminal: one fact in each line, none cut off; the headline first.

    Args:
        result: The record of the audit.
        folder: Its run folder, if it is kept.
    """
    lines = [sentences.headline(result), *_alarm_lines(result), *_why_lines(result)]
    lines += [_claim_line(result), *_bound_lines(result)]
    lines += _target_lines(result)
    lines += _leak_lines(result)
    lines += [attack_line(result), *_power_lines(result), *_probe_lines(result)]
    lines.append(_controls_line(result))
    n_in, n_out = (result.failures[world] for world in World)
    if n_in or n_out:
        errors = "; ".join(dict.fromkeys(reason.error for reason in result.failure_reasons))
        log = f"{LOG_FILE} of the run folder" if folder is None else folder / LOG_FILE
        lines.append(f"failed trials: {n_in} in, {n_out} out: {errors}; tracebacks: {log}")
    if any(check.name == FRESH_TRIALS and not check.passed for check in result.checks):
        lines.append(
            "warning: these trials were judged before (the report says where): see its checks"
        )
    if result.schema.inferred:
        lines.append("warning: bounds and categories were inferred from the table itself")
    return [printable(line) for line in lines]


def failure_lines(result: AuditRecord, *, folder: Path | None = None) -> list[str]:
    """Everything needed to understand and repeat an audit that fails a test.

    Args:
        result: The record of the audit.
        folder: Its run folder, if it is kept.
    """
    leaks = [feature(leak) for leak in result.leaks[:_LEAKS_IN_FAILURE]]
    if leaks and carrier(result.leaks, result.checks) is Carrier.WHOLE_OUTPUT:
        leaks = [WHOLE_OUTPUT]
    return [
        *summary_lines(result, folder=folder),
        f"verdict: {result.verdict}, bound: {result.proved or 0.0:.4g}, "
        f"claim: {sentences.claim_and_proof(result.claim, None).claimed}",
        printable(f"leaks: {', '.join(leaks) or 'none found'}"),
        f"seed: {result.seed}",
    ]


def attack_line(result: AuditRecord) -> str:
    """What the deciding attack achieved."""
    return f"attack: {result.game.achieved(result) or 'none was scored'}"


def _why_lines(result: AuditRecord) -> list[str]:
    """The main reason, where the headline does not say it."""
    says_it = result.verdict in (Verdict.VIOLATION, Verdict.CONSISTENT, Verdict.MEASURED)
    return [] if says_it else [f"why: {reason}" for reason in result.reasons[:1]]


def _alarm_lines(result: AuditRecord) -> list[str]:
    """Beside the verdict, of which they are no part."""
    return [f"probes: ALARM: {sentences.alarms_named(result)}"] if result.probe_alarms else []


def _probe_lines(result: AuditRecord) -> list[str]:
    """That the probes before the audit raised no alarm, if any said so."""
    probes = result.probes
    if probes is None or probes.alarms or not probes.passed:
        return []
    others = {
        "not applicable": len(probes.not_applicable),
        "failed": len(probes.failed),
        "not run": len(probes.left_out),
    }
    counts = [f"{len(probes.passed)} passed", *(f"{n} {how}" for how, n in others.items() if n)]
    return [f"probes: no alarm ({', '.join(counts)})"]


def _claim_line(result: AuditRecord) -> str:
    claim = result.claim
    if isinstance(claim, NoClaim):
        return f"claim: none; bounds are at delta {rounded(claim.delta)}, {claim.neighbours}"
    name = claim.in_words
    if isinstance(claim, PrivacyClaim):
        name = f"({rounded(claim.epsilon)}, {rounded(claim.delta)})-DP"
    values = f"{name}, {claim.neighbours}"
    return f"claim: {values}; {claim.source}"


def _bound_lines(result: AuditRecord) -> list[str]:
    """The bound that decides, and the one that other audits report, next to it."""
    entry = result.decided_by
    if entry is None or result.verdict is Verdict.INVALID:
        return []
    proved, compared = rounded_down(result.proved), result.clopper_pearson
    line = f"bound: {proved} ({entry.label})"
    if compared is None:
        return [f"{line}; no Clopper-Pearson: {result.game.no_clopper_pearson}"]
    line += f"; Clopper-Pearson {rounded_down(compared)}, which does not decide"
    return [line, f"method: {sentences.differ(entry)}"] if compared != result.proved else [line]


def _target_lines(result: AuditRecord) -> list[str]:
    """Which record was attacked, unless the caller named it; what was tried in vain."""
    chosen = result.target.choice in (EXPOSING, FARTHEST, VULNERABLE)
    lines = [f"target: {sentences.target(result)}"] if chosen else []
    if result.access is not None:
        lines.append(f"access: {sentences.access(result)}")
    if result.verdict in (Verdict.CONSISTENT, Verdict.MEASURED) and result.attacks:
        lines.append(f"tried: {sentences.attacks_tried(result)}")
    return lines


def _leak_lines(result: AuditRecord) -> list[str]:
    if not result.proves_leak or not result.leaks:
        return []
    carried = carrier(result.leaks, result.checks)
    if carried in (Carrier.WHOLE_OUTPUT, Carrier.NONE):
        return [f"leak: {WHOLE_OUTPUT if carried is Carrier.WHOLE_OUTPUT else NO_FEATURE}"]
    first, *others = [feature(leak) for leak in result.leaks[:LEAKS_NAMED]]
    line = f"leak: {MANY}: {first}" if carried is Carrier.MANY else f"leak: {first}"
    for other in others:
        if len(line) + len(other) + 2 <= TERMINAL_WIDTH:  # whole names only
            line = f"{line}; {other}"
    return [line]


def _power_lines(result: AuditRecord) -> list[str]:
    if result.power is None:
        return []
    most, least, gaussian = result.power
    if result.game.early_end is not None:
        return [result.game.early_end]
    if isinstance(result.claim, NoClaim):
        return [f"limit: no audit of this size proves more than {rounded_down(most)}"]
    noun = result.claim.quantity.noun
    caught = "no leak is caught" if least is None else f"{noun} {rounded_up(least)} is caught"
    lines = [f"power: {caught} with 80 % power; at most {rounded_down(most)} is provable"]
    if gaussian is not None:
        worst = "randomised response" if noun == "epsilon" else "the worst mechanism"
        lines.append(
            f"power is that of {worst}; of a Gaussian leak it takes {noun} {rounded_up(gaussian)}"
        )
    return lines


def _controls_line(result: AuditRecord) -> str:
    controls = result.controls.named() if result.controls else {}
    words = [f"{name} {'passed' if of.passed else 'FAILED'}" for name, of in controls.items()]
    if not words:
        words.append("not run")
    if result.checks:
        passed = sum(of.passed for of in result.checks)
        words.append(f"{passed} of {len(result.checks)} checks passed")
    return f"controls: {', '.join(words)}"
