"""A result in a few lines, for a terminal and for a failing test, and what to do next."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Final, NamedTuple

from dpaudit.formatting import (
    LABEL_WIDTH,
    TERMINAL_WIDTH,
    Row,
    counted,
    duration,
    headed,
    listed,
    percent,
    printable,
    rounded,
    rounded_down,
    rounded_up,
    row_lines,
)
from dpaudit.game.store import LOG_FILE
from dpaudit.model.choices import EXPOSING, FARTHEST
from dpaudit.model.claim import Claim, CurveClaim, DeltaClaim, NoClaim, PrivacyClaim
from dpaudit.model.tables import IN_MEMORY
from dpaudit.plugins.protocols import THE_TRIAL, World
from dpaudit.results import sentences
from dpaudit.results.leaks import MANY, NO_FEATURE, WHOLE_OUTPUT, Carrier, carrier, top_leaks
from dpaudit.results.phrases import (
    FLOATING_POINT_REMEDY,
    INFERRED,
    PUBLIC_SCHEMA,
    claim_and_relation,
    detects_from,
    relation,
)
from dpaudit.results.record import AuditRecord
from dpaudit.results.sentences import capitalised, is_withheld
from dpaudit.results.verdict import FRESH_TRIALS, Verdict, exceeds_claim


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


EXPLAINED_MODELS: Final = 400
"""Largest default number of models for each suspect that `explain` fixes."""


class NextStep(NamedTuple):
    """What to do next.

    Attributes:
        why: The reason, in a sentence or two.
        command: The command, or an empty text.
        then: Advice on the audit after it, in a line; None if no other audit is proposed.
        cost: The cost of the command if it is high and known; else empty.
    """

    why: str
    command: str = ""
    then: tuple[str, ...] = ()
    cost: str = ""


def next_step(result: AuditRecord, *, run: str = ".") -> NextStep:
    """What to do after an audit.

    Args:
        result: The record of the audit.
        run: Its run folder, as a command would name it.

    Returns:
        What to do.
    """
    spent = (_repeat_advice(result),)
    if result.verdict is Verdict.MEASURED:
        return NextStep(
            "Give --epsilon to test a claim; --access model or --target may show more.", then=spent
        )
    plan = " ".join(["dpaudit audit --plan", *_claim_options(result.claim)])
    if result.verdict is Verdict.INVALID:
        return NextStep(
            "Repair what failed, then audit again in another run folder with a "
            f"fresh seed (--seed {result.seed + 1})."
        )
    if is_withheld(result):
        again = result.fresh or ""
        both = f"report both audits: the new one adds {_error(result)} error probability"
        then = (both,) if again else spent
        return NextStep("Run the same audit with a fresh seed.", again, then)
    if result.verdict is Verdict.INCONCLUSIVE:
        return NextStep(
            "Plan an audit that can decide, then run it with a fresh seed.", plan, spent
        )
    if result.verdict is Verdict.CONSISTENT:
        same = result.target.same_tables
        if same is not None and same.other is not None:
            return NextStep(
                f"Attack a record that changes the synthetic table: --target row:{same.other}.",
                "",
                spent,
            )
        detect = _middle_leak(result)
        smaller = plan if detect is None else f"{plan} --detect {detect}"
        midway = f"; its --detect {detect} is half-way from the claim to what this audit detects"
        midway = "" if detect is None else midway
        if not result.game.has_threshold:  # one training: no record to choose, no models to add
            return NextStep(
                "To detect smaller leaks, audit with more canaries (--set canaries=M), or without "
                f"--one-run: the command says how many shadow models that takes{midway}.",
                smaller,
                spent,
            )
        other = "record (--target), or take a table made to show leaks (--worst-case)"
        if result.claim.unit is not None:
            other = "unit (--target unit:VALUE)"
        return NextStep(
            f"To detect smaller leaks, audit with more models (the command says how many{midway}) "
            "or more synthetic rows of each (--set rows=N), let the attacker see more (--access "
            f"model), attack another {other}.",
            smaller,
            spent,
        )
    if not exceeds_claim(result):
        return _probe_advice(result)
    return _cause(result, run)


def _cause(result: AuditRecord, run: str) -> NextStep:
    """How to find what an attack saw, or to end what is known."""
    if result.is_floating_point:
        return NextStep(f"{capitalised(FLOATING_POINT_REMEDY)}, then audit again.")
    if any(leak.column == THE_TRIAL for leak in result.leaks[:1]):
        return NextStep(
            "Find out why: what depends on the record is how a training runs (What leaks), not the "
            "table. A replay does not see that; give each training the same work and the same "
            "ending."
        )
    if result.game.unexplained:
        return NextStep(
            "Find out why: an audit of one record can be explained, and dpaudit probe changes one "
            "thing at a time."
        )
    if result.generator.fixes == 0 or result.data.tables:
        return _without_fixes(result)
    if result.data.source == IN_MEMORY:
        return NextStep(
            "Find out why: audit the table from a file; dpaudit explain can open that run."
        )
    return NextStep(
        "Find the cause: which part of the generator, once fixed, removes the leak?",
        f"dpaudit explain {shlex.quote(run)}",
        cost=_cost(result),
    )


def _probe_advice(result: AuditRecord) -> NextStep:
    """Advice if a probe, not an attack, proved the violation."""
    why = "See what the probe saw, repair it, and audit again with a fresh seed."
    if result.data.source == IN_MEMORY:
        return NextStep(f"{why} dpaudit.probe.probe(generator, table) shows it.")
    return NextStep(why, (result.probes and result.probes.reproduce) or "")


def _without_fixes(result: AuditRecord) -> NextStep:
    """Advice for a generator without fixes: explain could try only the order of rows."""
    if result.data.source == IN_MEMORY:
        return NextStep(
            "Find the cause: dpaudit.replay(generator, table) says what each line of Python code "
            "spends, and where data goes around the noise."
        )
    return NextStep(
        "Find the cause: a replay says what each line of Python code spends, and where data goes "
        "around the noise.",
        result.replay or "",
    )


def _cost(result: AuditRecord) -> str:
    """The cost of explain: an audit of at most 400 models for each suspect, over all workers."""
    fixes, models = result.generator.fixes, sum(result.shadow_models.values())
    if fixes is None or not models:
        return ""
    suspects = fixes + 2  # the order of rows, and all together
    seconds = suspects * result.seconds * min(1.0, EXPLAINED_MODELS / models)
    return (
        f"{counted(suspects, 'suspect')}, some {duration(seconds)} of computing, shared by all "
        "workers"
    )


def _repeat_advice(result: AuditRecord) -> str:
    """Says that another audit needs a fresh seed and has its own error probability."""
    each = _error(result)
    return (
        f"audit with a fresh seed (--seed {result.seed + 1}); it adds {each} error probability to "
        f"the {each} spent here, so report both"
    )


def _error(result: AuditRecord) -> str:
    """The error probability of one audit."""
    return percent(round(1.0 - result.confidence, 12))


def _claim_options(claim: Claim) -> list[str]:
    """The claim as options of `dpaudit audit --plan`; a curve as the file that is to be named."""
    if isinstance(claim, CurveClaim):
        return ["--set", "curve=FILE"]
    if isinstance(claim, NoClaim):
        return ["--epsilon", "E", "--delta", f"{claim.delta:g}"]
    words = []
    for name, value in claim.as_settings.items():
        own = name in ("epsilon", "delta")
        words += [f"--{name}", f"{value:g}"] if own else ["--set", f"{name}={value:g}"]
    return [*words, *(["--set", "bound=delta"] if isinstance(claim, DeltaClaim) else [])]


def _middle_leak(result: AuditRecord) -> str | None:
    """A leak half-way between the claim and the minimum detectable one."""
    if result.power is None or result.power.detectable is None:
        return None
    if isinstance(result.claim, PrivacyClaim) and result.power.detectable > result.claim.value:
        return rounded_up((result.claim.value + result.power.detectable) / 2)
    return None
