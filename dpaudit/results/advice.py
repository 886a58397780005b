"""What to do after an audit."""

from __future__ import annotations

import shlex
from typing import Final, NamedTuple

from dpaudit.formatting import counted, duration, percent, rounded_up
from dpaudit.model.claim import Claim, CurveClaim, DeltaClaim, NoClaim, PrivacyClaim
from dpaudit.model.tables import IN_MEMORY
from dpaudit.plugins.protocols import THE_TRIAL
from dpaudit.results.phrases import FLOATING_POINT_REMEDY
from dpaudit.results.record import AuditRecord
from dpaudit.results.sentences import capitalised, is_withheld
from dpaudit.results.verdict import Verdict, exceeds_claim

EXPLAINED_MODELS: Final = 400
"""Largest default number of models for each suspect that `explain` fixes."""


class NextStep(NamedTuple):
    """What to do next.

    Attributes:
        why: The reason, in a sentence or two.
        command: The command; empty if there is none.
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
            "Give --epsilon to test a claim; --access model or --target may show more.",
            then=spent,
        )
    plan = " ".join(["dpaudit audit --plan", *_claim_options(result.claim)])
    if result.verdict is Verdict.INVALID:
        return NextStep(
            "Repair what failed, then audit again in another run folder with a "
            f"fresh seed (--seed {result.seed + 1}).",
        )
    if is_withheld(result):
        again = result.fresh or ""
        both = f"report both audits: the new one adds {_error(result)} error probability"
        then = (both,) if again else spent
        return NextStep("Run the same audit with a fresh seed.", again, then)
    if result.verdict is Verdict.INCONCLUSIVE:
        return NextStep(
            "Plan an audit that can decide, then run it with a fresh seed.",
            plan,
            spent,
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
            "ending.",
        )
    if result.game.unexplained:
        return NextStep(
            "Find out why: an audit of one record can be explained, and dpaudit probe changes one "
            "thing at a time.",
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
            "spends, and where data goes around the noise.",
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
