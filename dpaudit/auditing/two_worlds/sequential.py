"""Sequential audits: run in batches, test after each, stop as soon as a violation is proved.

A fixed-n bound that is recomputed after every batch fails far too often; an e-process may be
evaluated at any time (Ville's inequality; `dpaudit.bounds.sequential`). Half of the error
probability pays for it; the other half is kept for the fixed bound on the last trials, which is
computed at the cap alone. The attack that bets on a batch was fixed on the trials before it, so
that its bets are predictable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from dpaudit.auditing.claims import effective_claim
from dpaudit.auditing.two_worlds.attacking.contenders import Contender, contenders, first_outcomes
from dpaudit.auditing.two_worlds.attacking.run import Attacked, attack_all
from dpaudit.auditing.two_worlds.sequential_bets import BetStream
from dpaudit.auditing.two_worlds.spec import TwoWorldSpec
from dpaudit.auditing.two_worlds.trial_plan import FIRST_FITTED, TrialPlan, plan_trials
from dpaudit.bounds import refit_schedule
from dpaudit.bounds.table import ValidBound
from dpaudit.game.outcomes import StoredOutcomes
from dpaudit.game.trial import Role
from dpaudit.model.choices import Multiplicity
from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.currencies import require_epsilon
from dpaudit.plugins.protocols import World

BATCH = 16
"""Trials run between two tests."""

SELECTED = "the selected attack"
"""The stream of bets where attacks are selected: there is one, whichever attack makes them."""
NO_BETS = {ValidBound.SEQUENTIAL: 0.0}
"""Of an attack that has never bet."""

RunUpTo = Callable[[int, int], StoredOutcomes]


def run_sequential(
    audit: TwoWorldSpec, run: RunUpTo, hopeless: Callable[[], bool]
) -> list[Attacked] | None:
    """Runs an audit in batches and tests after each.

    Args:
        audit: The audit; its number of shadow models is the cap.
        run: Runs the trials from one place of the plan to another, and gives all outcomes so far.
        hopeless: Whether nothing can come of the audit any more; asked before every refit.

    Returns:
        Every attack with its bounds. Where a violation was proved before the cap, the sequential
        ones alone; at the cap also the fixed ones, on the trials that no attack was fixed on.
        Empty if too few trials finished; None if the audit was hopeless before its cap.

    Raises:
        AttackError: If an attack's scorer does not give one finite score per trial.
    """
    plan = plan_trials(audit, Role.AUDIT, audit.settings)
    cap = len(plan.worlds)
    streams: dict[str, BetStream] = {}
    outcomes = run(0, FIRST_FITTED)
    if hopeless():
        return None
    for block in refit_schedule(cap, first=FIRST_FITTED):
        claim = _claim_so_far(audit, outcomes, plan, block.start)
        fixed = _fixed_on_the_past(audit, outcomes, plan, block.start, claim)
        for start in range(block.start, block.stop, BATCH):
            stop = min(start + BATCH, block.stop)
            outcomes = run(start, stop)
            for one in fixed:
                stream = streams.setdefault(_key(one.hypothesis, audit), BetStream())
                stream.bet(one.features, one.fitted, plan.trials(start, stop), outcomes)
            claim = _claim_so_far(audit, outcomes, plan, stop)
            found = _so_far(streams, audit, claim)
            if any(one.evaluation.proved > claim.epsilon for one in found):
                return found
        if block.stop < cap and hopeless():
            return None
    claim = _claim_so_far(audit, outcomes, plan, cap)
    at_cap = attack_all(audit, outcomes, Role.AUDIT, audit.settings, claim)
    return [_with_sequential(one, streams, audit, claim) for one in at_cap]


def _with_sequential(
    one: Attacked, streams: Mapping[str, BetStream], audit: TwoWorldSpec, claim: PrivacyClaim
) -> Attacked:
    """An attack at the cap with the bound of its bets on the way there."""
    stream = streams.get(_key(one.hypothesis, audit))
    if stream is None:
        bounds = NO_BETS
    else:
        bounds = stream.bounds(delta=claim.delta, confidence=audit.settings.attack_confidence)
        one = one._replace(guessed_by=stream.guessed_by)
    evaluation = one.evaluation
    return one._replace(evaluation=evaluation._replace(bounds=evaluation.bounds | bounds))


def _key(hypothesis: str, audit: TwoWorldSpec) -> str:
    """The stream of a hypothesis: its own, or the one of whichever attack is selected."""
    return SELECTED if audit.settings.multiplicity is Multiplicity.SELECT else hypothesis


def _claim_so_far(
    audit: TwoWorldSpec, outcomes: StoredOutcomes, plan: TrialPlan, trials: int
) -> PrivacyClaim:
    """The effective claim after this many trials; a resumed run may hold more of them already."""
    seen = (outcomes[trial] for trial in plan.trials(0, trials))
    return require_epsilon(effective_claim(audit, seen), method="`sequential`")


def _fixed_on_the_past(
    audit: TwoWorldSpec,
    outcomes: StoredOutcomes,
    plan: TrialPlan,
    trials: int,
    claim: PrivacyClaim,
) -> list[Contender]:
    """The attacks that bet on the next batch, fixed on the first trials."""
    counts = [plan.count(world, among=trials) for world in World]
    return contenders(
        audit,
        outcomes,
        [
            first_outcomes(outcomes, Role.AUDIT, world, count)
            for world, count in zip(World, counts, strict=True)
        ],
        [np.ones(count, dtype=np.bool_) for count in counts],
        audit.settings,
        claim,
        purpose=f"look/{trials}",
    )


def _so_far(
    streams: Mapping[str, BetStream], audit: TwoWorldSpec, claim: PrivacyClaim
) -> list[Attacked]:
    delta, confidence = claim.delta, audit.settings.attack_confidence
    seen = (stream.attacked(delta=delta, confidence=confidence) for stream in streams.values())
    return [one for one in seen if one is not None]
