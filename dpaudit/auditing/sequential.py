"""Sequential audits: run in batches, test after each, stop as soon as a violation is proved.

A fixed-n bound that is recomputed after every batch fails far too often; an e-process may be
evaluated at any time (Ville's inequality; `dpaudit.bounds.sequential`). Half of the error
probability pays for it; the other half is kept for the exact bound on the last trials, which is
computed at the cap alone. The attack that guesses a batch was fixed on the pairs before it, and so
was whether it bets at all: its bets are predictable. An attack that has learnt too little yet does
not bet: it would lose wealth that it has to win back later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from dpaudit.auditing.attacking.contenders import Contender, contenders, first_outcomes
from dpaudit.auditing.attacking.fitting import Fitted
from dpaudit.auditing.attacking.run import Attacked, attack_all
from dpaudit.auditing.claims import effective_claim
from dpaudit.auditing.sequential_guesses import GuessStream
from dpaudit.auditing.settings import Multiplicity
from dpaudit.auditing.two_worlds import TwoWorldSpec
from dpaudit.bounds import clopper_pearson, refit_schedule
from dpaudit.bounds.table import ValidBound
from dpaudit.game.outcomes import StoredOutcomes
from dpaudit.game.trial import Role, Trial
from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.currencies import require_epsilon
from dpaudit.plugins.protocols import World

BATCH_PAIRS = 8
"""Pairs run between two tests."""
PROMISING = 0.8
"""Confidence at which an attack's errors in cross-validation must exceed the claim before it bets.

Measured on the stored trials of two published PATE-GANs, 300 pairs in 8 orders: the violation of
`original` is proved after 91 pairs instead of 116 (median), that of `turing` after 86 instead of
143; refits after half as many pairs save another few.
"""

SELECTED = "the selected attack"
"""The stream of guesses where attacks are selected: there is one, whichever attack makes them."""
NO_BETS = {ValidBound.SEQUENTIAL: 0.0}
"""Of an attack that has never bet."""

RunPairs = Callable[[Sequence[int]], StoredOutcomes]


def run_sequential(
    audit: TwoWorldSpec, run_pairs: RunPairs, hopeless: Callable[[], bool]
) -> list[Attacked] | None:
    """Runs an audit in batches and tests after each.

    Args:
        audit: The audit; its number of shadow models is the cap.
        run_pairs: Runs the trials of both worlds with these numbers and gives all outcomes so far.
        hopeless: Whether nothing can come of the audit any more; asked before every refit.

    Returns:
        Every attack with its bounds. Where a violation was proved before the cap, the sequential
        ones alone; at the cap also the fixed ones, on the trials that no attack was fixed on.
        Empty if too few trials finished; None if the audit was hopeless before its cap.

    Raises:
        AttackError: If an attack's scorer does not give one finite score per trial.
    """
    settings = audit.settings
    streams: dict[str, GuessStream] = {}
    blocks = refit_schedule(settings.per_world)
    outcomes = run_pairs(range(blocks[0].start))
    if hopeless():
        return None
    for block in blocks:
        claim = _claim_so_far(audit, outcomes, block.start)
        fixed = [
            one
            for one in _fixed_on_the_past(audit, outcomes, block.start, claim)
            if _promises(one.fitted, claim)
        ]
        for start in range(block.start, block.stop, BATCH_PAIRS):
            numbers = range(start, min(start + BATCH_PAIRS, block.stop))
            outcomes = run_pairs(numbers)
            trials = [Trial(Role.AUDIT, world, number) for world in World for number in numbers]
            for one in fixed:
                stream = streams.setdefault(_key(one.hypothesis, audit), GuessStream())
                stream.guess(one.features, one.fitted, trials, outcomes)
            claim = _claim_so_far(audit, outcomes, numbers.stop)
            found = _so_far(streams, audit, claim)
            if any(one.evaluation.proved > claim.epsilon for one in found):
                return found
        if block.stop < settings.per_world and hopeless():
            return None
    claim = _claim_so_far(audit, outcomes, settings.per_world)
    at_cap = attack_all(audit, outcomes, Role.AUDIT, settings, claim)
    return [_with_sequential(one, streams, audit, claim) for one in at_cap]


def _with_sequential(
    one: Attacked, streams: Mapping[str, GuessStream], audit: TwoWorldSpec, claim: PrivacyClaim
) -> Attacked:
    """An attack at the cap with the bound of its guesses on the way there."""
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


def _claim_so_far(audit: TwoWorldSpec, outcomes: StoredOutcomes, pairs: int) -> PrivacyClaim:
    """The effective claim after this many pairs; a resumed run may hold more of them already."""
    seen = (outcome for outcome in outcomes.stream() if outcome.trial.number < pairs)
    return require_epsilon(effective_claim(audit, seen), method="`sequential`")


def _fixed_on_the_past(
    audit: TwoWorldSpec, outcomes: StoredOutcomes, pairs: int, claim: PrivacyClaim
) -> list[Contender]:
    """The attacks that guess the next batch, fixed on the first pairs."""
    everything = [np.ones(pairs, dtype=np.bool_)] * 2
    return contenders(
        audit,
        outcomes,
        [first_outcomes(outcomes, Role.AUDIT, world, pairs) for world in World],
        everything,
        audit.settings,
        claim,
        purpose=f"look/{pairs}",
    )


def _promises(fitted: Fitted, claim: PrivacyClaim) -> bool:
    """Whether an attack errs so little on the past that it may prove a violation."""
    bound = clopper_pearson(*fitted.counts, delta=claim.delta, confidence=PROMISING)
    return bound > claim.epsilon


def _so_far(
    streams: dict[str, GuessStream], audit: TwoWorldSpec, claim: PrivacyClaim
) -> list[Attacked]:
    delta, confidence = claim.delta, audit.settings.attack_confidence
    seen = (stream.attacked(delta=delta, confidence=confidence) for stream in streams.values())
    return [one for one in seen if one is not None]
