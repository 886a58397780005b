"""A result in a few lines, for a terminal and for a failing test."""

from __future__ import annotations

from pathlib import Path

from dpaudit.formatting import (
    LABEL_WIDTH,
    TERMINAL_WIDTH,
    Row,
    counted,
    headed,
    listed,
    printable,
    rounded,
    rounded_down,
    rounded_up,
    row_lines,
)
from dpaudit.game.store import LOG_FILE
from dpaudit.model.choices import EXPOSING, FARTHEST
from dpaudit.model.claim import NoClaim
from dpaudit.plugins.protocols import World
from dpaudit.results import sentences
from dpaudit.results.leaks import (
    MANY,
    NO_FEATURE,
    WHOLE_OUTPUT,
    Carrier,
    carrier,
    top_leaks,
)
from dpaudit.results.phrases import (
    INFERRED,
    PUBLIC_SCHEMA,
    claim_and_relation,
    detects_from,
    relation,
)
from dpaudit.results.record import AuditRecord
from dpaudit.results.verdict import FRESH_TRIALS, Verdict


def rows(result: AuditRecord, *, folder: Path | None = None) -> list[Row]:
    """The facts about an audit below its headline, in reading order.

    Args:
        result: The record of the audit.
        folder: Its run folder, if it is kept.
    """
    facts = [
        *_alarms(result),
        *_why(result),
        _claim(result),
        *_bound(result),
        attack_row(result),
        *_secret(result),
        *_leak(result),
        *_bits(result),
        *_target(result),
        *_power(result),
        _checks(result),
        *_failed(result, folder),
    ]
    if unseen := sentences.hidden_target(result):
        facts.append(Row("warning", unseen))
    judged = any(check.name == FRESH_TRIALS and not check.passed for check in result.checks)
    if judged and not sentences.is_withheld(result):  # else it is the reason
        facts.append(
            Row("warning", "these shadow models were judged before; the report says where")
        )
    if result.schema.inferred:
        facts.append(Row("warning", f"{INFERRED}: {PUBLIC_SCHEMA}"))
    if result.data.units == result.data.rows:
        facts.append(
            Row("warning", f"every {result.claim.unit} has one row, as in an audit of rows")
        )
    return [row._replace(fact=printable(row.fact)) for row in facts]


def summary_lines(result: AuditRecord, *, folder: Path | None = None) -> list[str]:
    """The audit for a terminal: the headline, then a label and a fact in each row.

    Args:
        result: The record of the audit.
        folder: Its run folder, if it is kept.
    """
    return headed(sentences.headline(result), rows(result, folder=folder))


def failure_lines(result: AuditRecord, *, folder: Path | None = None) -> list[str]:
    """Everything needed to understand and repeat an audit that fails a test.

    Args:
        result: The record of the audit.
        folder: Its run folder, if it is kept.
    """
    return [*summary_lines(result, folder=folder), *row_lines([Row("seed", str(result.seed))])]


def attack_row(result: AuditRecord) -> Row:
    """The result of the deciding attack."""
    return Row("attack", result.game.achieved(result) or "none was scored")


def _secret(result: AuditRecord) -> list[Row]:
    """What guesses of a secret show, if one was guessed."""
    disclosed = result.game.disclosed(result)
    return [] if disclosed is None else [Row("secret", disclosed)]


def unsaid_reasons(result: AuditRecord) -> tuple[str, ...]:
    """The reasons for the verdict that the headline does not state."""
    says_it = result.verdict in (Verdict.VIOLATION, Verdict.CONSISTENT, Verdict.MEASURED)
    return () if says_it else result.reasons


def _why(result: AuditRecord) -> list[Row]:
    """The main reason, unless the headline states it."""
    return [Row("why", reason) for reason in unsaid_reasons(result)[:1]]


def _alarms(result: AuditRecord) -> list[Row]:
    """What probes prove, and their other alarms."""
    facts = [
        Row("probe", f"{alarm.id}: {alarm.shows} (p at most {rounded_up(alarm.p_value)})")
        for alarm in result.probe_proofs
    ]
    if result.other_alarms:
        facts.append(Row("alarm", f"probe {sentences.alarms_named(result.other_alarms)}"))
    return facts


def _claim(result: AuditRecord) -> Row:
    claim = result.claim
    if isinstance(claim, NoClaim):
        about = f"none; bounds are at delta {rounded(claim.delta)}"
        return Row("claim", f"{about}, {relation(claim.neighbours, claim.unit)}")
    source, _, _ = claim.source.partition("; ")  # the report has all of it
    return Row("claim", f"{claim_and_relation(claim)}; {source}")


def _bound(result: AuditRecord) -> list[Row]:
    """The deciding bound, the Clopper-Pearson bound, and the upper limit."""
    entry = result.decided_by
    if entry is None or result.verdict is Verdict.INVALID:
        return []
    at_limit, compared = sentences.reaches_limit(result), result.clopper_pearson
    differs = compared is not None and rounded_down(compared) != rounded_down(result.proved)
    quoted = "; quote this" if differs and not sentences.is_withheld(result) else ""
    proved = sentences.claim_and_proof(result.claim, result.proved).proved
    text = f"{proved} ({entry.label}{quoted})"
    if at_limit:
        text += f", all that {_size(result)} can prove"
    if compared is None:
        text += f"; no Clopper-Pearson bound: {result.game.no_clopper_pearson}"
    else:
        number = rounded_down(compared) if differs else "the same"
        text += f"{';' if at_limit else ','} Clopper-Pearson {number}"
    if result.power is not None and not at_limit:
        text += f"; at most {rounded_down(result.power.max_provable)} with {_size(result)}"
    if compared in (None, result.proved):
        return [Row("bound", text)]
    guessed = sentences.guesses(result, entry)
    if guessed is None:
        return [Row("bound", text), Row("method", sentences.bound_difference(entry))]
    return [Row("bound", text), Row("guesses", f"{guessed} ({entry.label})")]


def _size(result: AuditRecord) -> str:
    return counted(sum(result.shadow_models.values()), "model")


def _target(result: AuditRecord) -> list[Row]:
    """The attacked record, unless the caller named it, and the attacks tried without success."""
    target = result.target
    chosen = target.choice in (EXPOSING, FARTHEST) or target.selection or target.rows_of_unit
    other = f"; {sentences.ELSEWHERE}" if sentences.leaks_elsewhere(result) else ""
    rows = [Row("target", f"{sentences.target(result)}{other}")] if chosen else []
    if one_each := sentences.one_row_each(result):
        rows.append(Row("unit", one_each))
    if result.access is not None:
        rows.append(Row("access", sentences.access(result)))
    if result.verdict in (Verdict.CONSISTENT, Verdict.MEASURED) and result.attacks:
        rows.append(Row("tried", sentences.attacks_tried(result)))
    return rows


def _leak(result: AuditRecord) -> list[Row]:
    if not result.proves_leak or not result.leaks:
        return []
    carried = carrier(result.leaks, result.checks)
    if carried in (Carrier.WHOLE_OUTPUT, Carrier.NONE):
        return [Row("leak", WHOLE_OUTPUT if carried is Carrier.WHOLE_OUTPUT else NO_FEATURE)]
    first, *others = top_leaks(result.leaks)
    text = f"{MANY}: {first}" if carried is Carrier.MANY else first
    for other in others:
        if LABEL_WIDTH + len(text) + len(other) + 2 <= TERMINAL_WIDTH:  # whole names only
            text = f"{text}; {other}"
    return [Row("leak", text)]


def _bits(result: AuditRecord) -> list[Row]:
    """What is proved without the last bits of numbers, where these carry the attack."""
    if result.proved_without_bits is None or not result.proves_leak:
        return []
    proved = rounded_down(result.proved_without_bits)
    return [Row("bits", f"{proved} without the last bits of numbers (--set ignore-bits=true)")]


def _power(result: AuditRecord) -> list[Row]:
    if result.game.early_end is not None:
        return [Row("models", result.game.early_end)]
    nothing = result.verdict is Verdict.INVALID or isinstance(result.claim, NoClaim)
    if nothing or result.power is None:
        return []
    return [Row("power", detects_from(result.power, result.claim))]


def _checks(result: AuditRecord) -> Row:
    """Controls, checks and probes, in one row."""
    controls = result.controls.named() if result.controls else {}
    failed = [name for name, of in controls.items() if not of.passed]
    passed = [name for name, of in controls.items() if of.passed]
    ended = "missed" if result.ran else "FAILED"  # a positive control that did not stop it
    words = [f"{' and '.join(failed)} control {ended}"] if failed else []
    words += [f"{' and '.join(passed)} control passed"] if passed else []
    if not controls:
        words.append("controls not run")
    if result.checks:
        wrong = [of.name for of in result.checks if not of.passed]
        named = f" (failed: {listed(wrong, separator='; ')})" if wrong else ""
        words.append(f"{len(result.checks) - len(wrong)} of {len(result.checks)} checks{named}")
    return Row("checks", ", ".join([*words, *_probes(result)]))


def _probes(result: AuditRecord) -> list[str]:
    """Says that the probes before the audit raised no alarm, or why none ran."""
    probes = result.probes
    if probes is None or probes.alarms:
        return []
    if probes.not_probed is not None:
        return [f"not probed: {probes.not_probed}"]
    others = {"failed": len(probes.failed), "not run": len(probes.left_out)}
    left = [f"{number} {how}" for how, number in others.items() if number]
    rest = f" ({', '.join(left)})" if left else ""
    return [f"no alarm from {counted(len(probes.passed), 'probe')}{rest}"]


def _failed(result: AuditRecord, folder: Path | None) -> list[Row]:
    """How many models failed, and where their tracebacks are."""
    n_in, n_out = (result.failures[world] for world in World)
    if not n_in and not n_out:
        return []
    errors = "; ".join(dict.fromkeys(reason.error for reason in result.failure_reasons))
    log = f"{LOG_FILE}, if `out` is given" if folder is None else folder / LOG_FILE
    return [Row("failed", f"{n_in} in, {n_out} out: {errors}; tracebacks: {log}")]
