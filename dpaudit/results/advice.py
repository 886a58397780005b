"""A verdict for who must act on it: what it means in odds, and what to do next."""

from __future__ import annotations

import math
import shlex
from typing import NamedTuple

from dpaudit.formatting import percent, rounded, rounded_down, rounded_up
from dpaudit.model.claim import NoClaim, PrivacyClaim
from dpaudit.model.currencies import Claim, ConcentratedClaim, GaussianClaim
from dpaudit.model.tables import IN_MEMORY
from dpaudit.results.record import AuditRecord
from dpaudit.results.sentences import withheld
from dpaudit.results.verdict import Verdict

_LARGEST_ODDS = 1e6
"""Beyond this a factor of odds says no more than its order."""


class NextStep(NamedTuple):
    """What to do next.

    Attributes:
        why: What for, in a sentence or two.
        command: The command; empty if there is none.
        then: What holds for the audit after it, in a line; none if no other audit is proposed.
    """

    why: str
    command: str
    then: tuple[str, ...] = ()


def in_odds(result: AuditRecord) -> tuple[str, ...]:
    """The finding as odds, in one sentence; none of claims that are not stated in epsilon.

    A proved bound e means that of some set of outputs the probability in one world is more than
    exp(e) times that in the other, and by more than delta (definition of differential privacy):
    such an output multiplies prior odds by more than exp(e) (Bayes' theorem).
    """
    if not isinstance(result.claim, PrivacyClaim) or result.proved is None:
        return ()
    allowed = f"{odds(result.claim.epsilon, up=True)}{but_for(result.claim)}"
    if result.verdict is Verdict.VIOLATION:
        return (
            "For some outputs, the attacker can change the odds that this record was used by a "
            f"factor of at least {odds(result.proved, up=False)}. The claim allows {allowed}.",
        )
    if result.verdict is Verdict.CONSISTENT and result.claim.epsilon <= math.log(_LARGEST_ODDS):
        return (
            "The claim allows an attacker to change the odds that this record was used by a factor "
            f"of {allowed}. This audit does not show that anyone can do more, nor that nobody can.",
        )
    return ()


def next_step(result: AuditRecord, *, run: str = ".") -> NextStep:
    """What to do after an audit.

    Args:
        result: The record of the audit.
        run: Its run folder, as a command would name it.

    Returns:
        What to do.
    """
    if result.verdict is Verdict.MEASURED:
        return NextStep(
            "Give --epsilon to test a claim; --access model or --target may show more.",
            "",
            (_spent(result),),
        )
    plan = " ".join(["dpaudit plan", *_stated(result.claim)])
    if result.verdict is Verdict.INVALID:
        return NextStep(
            "Repair what failed, as its line says, and audit again in another run folder with a "
            f"fresh seed (--seed {result.seed + 1}).",
            "",
        )
    if withheld(result):
        again = result.fresh or ""
        return NextStep("Run the same audit with a fresh seed.", again, (_spent(result),))
    if result.verdict is Verdict.INCONCLUSIVE:
        return NextStep(
            "See which size of audit can decide, then run one with a fresh seed.",
            plan,
            (_spent(result),),
        )
    if result.verdict is Verdict.CONSISTENT:
        detect = _between(result)
        return NextStep(
            "What this audit could not have caught takes more models (the command says how many), "
            "an attacker who sees more (--access model), another record (--target), or a table "
            "made to show leaks (--worst-case).",
            plan if detect is None else f"{plan} --detect {detect}",
            (_spent(result),),
        )
    if result.game.unexplained:
        return NextStep(
            "Find out why: an audit of one record can be explained, and dpaudit probe changes one "
            "thing at a time.",
            "",
        )
    if result.data.source == IN_MEMORY:
        return NextStep(
            "Find out why: audit the table from a file; dpaudit explain can open that run.", ""
        )
    return NextStep(
        "Find out which suspect, once fixed, removes the leak.",
        f"dpaudit explain {shlex.quote(run)}",
    )


def _spent(result: AuditRecord) -> str:
    """What a further audit takes: another seed, and an error probability beside what is spent."""
    each = percent(round(1.0 - result.confidence, 12))
    return (
        f"audit with a fresh seed (--seed {result.seed + 1}): {each} error is spent, another adds "
        f"{each}; report both"
    )


def _stated(claim: Claim) -> list[str]:
    """The claim as options of `dpaudit plan`; of a curve none."""
    match claim:
        case PrivacyClaim():
            return ["--epsilon", f"{claim.epsilon:g}", "--delta", f"{claim.delta:g}"]
        case GaussianClaim():
            return ["--mu", f"{claim.mu:g}"]
        case ConcentratedClaim():
            return ["--rho", f"{claim.rho:g}"]
        case NoClaim():
            return ["--epsilon", "E", "--delta", f"{claim.delta:g}"]
    return ["--curve", "FILE"]


def _between(result: AuditRecord) -> str | None:
    """A leak half-way between the claim and what would have been caught."""
    if result.power is None or result.power.detectable is None:
        return None
    if isinstance(result.claim, PrivacyClaim) and result.power.detectable > result.claim.value:
        return rounded_up((result.claim.value + result.power.detectable) / 2)
    return None


def odds(epsilon: float, *, up: bool) -> str:
    """exp(epsilon), rounded so that it never says more than holds."""
    if math.isinf(epsilon) or (up and epsilon > math.log(_LARGEST_ODDS)):
        return "any factor"
    if epsilon > math.log(_LARGEST_ODDS):
        return "a million"
    factor = math.exp(epsilon)
    return rounded_up(factor) if up else rounded_down(factor)


def but_for(claim: PrivacyClaim) -> str:
    """For which outputs delta makes an exception, as the end of a sentence; empty without one."""
    if not claim.delta:
        return ""
    return f", apart from outputs of total probability {rounded(claim.delta)}"
