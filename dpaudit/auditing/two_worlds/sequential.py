"""Sequential audits: run in batches, test after each, stop as soon as a violation is proved.

A fixed-n bound that is recomputed after every batch fails far too often; an e-process may be
evaluated at any time (Ville's inequality; `dpaudit.bounds.sequential`). It uses half of the error
probability; the other half is for the fixed-n bound on the last trials, which is computed only at
the cap. The attack that bets on a batch was fixed on the trials before it, so its bets are
predictable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from dpaudit.auditing.two_worlds.attacking import (
    Attacked,
    Evaluation,
    Features,
    Fitted,
    Part,
    attack_all,
    contenders,
    member_of,
    score,
)
from dpaudit.auditing.two_worlds.spec import (
    FIRST_FITTED,
    TrialPlan,
    TwoWorldSpec,
    in_first,
    plan_trials,
)
from dpaudit.bounds import Counts, auc, guarantee_of, refit_schedule
from dpaudit.bounds.table import Observed, ValidBound
from dpaudit.game.store import StoredOutcomes
from dpaudit.game.trial import Role, Trial
from dpaudit.model.choices import Multiplicity
from dpaudit.model.claim import Claim
from dpaudit.plugins.protocols import World

BATCH = 16
"""Trials run between two tests."""
SELECTED = "the selected attack"
"""The single stream of bets if attacks are selected, whichever attack makes them."""
NO_BETS = {ValidBound.SEQUENTIAL: 0.0}
"""The bound of an attack that has never bet."""


RunUpTo = Callable[[int, int], StoredOutcomes]


def run_sequential(
    audit: TwoWorldSpec, run: RunUpTo, hopeless: Callable[[], bool]
) -> list[Attacked] | None:
    """Runs an audit in batches and tests after each.

    Args:
        audit: The audit; its number of shadow models is the cap.
        run: Runs the trials from one place of the plan to another and returns all outcomes so far.
        hopeless: Whether the audit cannot prove anything any more; called before every refit.

    Returns:
        Every attack with its bounds: only the sequential ones if a violation was proved before the
        cap; at the cap also the fixed-n ones, on the trials that no attack was fitted on. Empty if
        too few trials finished; None if the audit was hopeless before its cap.

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
        past = in_first(plan.trials(0, block.start))
        purpose = f"look/{block.start}"
        fixed = contenders(audit, outcomes, past, audit.settings, claim, purpose=purpose)
        for start in range(block.start, block.stop, BATCH):
            stop = min(start + BATCH, block.stop)
            outcomes = run(start, stop)
            for features, _, fitted, hypothesis in fixed:
                stream = streams.setdefault(
                    _key(hypothesis, audit), BetStream(audit.settings.attack_confidence)
                )
                stream.bet(features, fitted, plan.trials(start, stop), outcomes)
            claim = _claim_so_far(audit, outcomes, plan, stop)
            results = (stream.attacked(claim) for stream in streams.values())
            attacked = [result for result in results if result is not None]
            # Ville's inequality: the bound of the bets holds whenever the audit stops.
            if any(result.evaluation.proved > claim.value for result in attacked):
                return attacked
        if block.stop < cap and hopeless():
            return None
    claim = _claim_so_far(audit, outcomes, plan, cap)
    at_cap = attack_all(audit, outcomes, Role.AUDIT, audit.settings, claim)
    return [
        _add_bets(attacked, streams.get(_key(attacked.hypothesis, audit)), claim)
        for attacked in at_cap
    ]


def _add_bets(attacked: Attacked, stream: BetStream | None, claim: Claim) -> Attacked:
    """An attack at the cap, with the bound of its bets up to then."""
    bounds = NO_BETS
    if stream is not None:
        bounds = stream.bounds(claim)
        attacked = attacked._replace(guessed_by=stream.guessed_by)
    evaluation = attacked.evaluation
    return attacked._replace(evaluation=evaluation._replace(bounds=evaluation.bounds | bounds))


def _key(hypothesis: str, audit: TwoWorldSpec) -> str:
    """The stream of a hypothesis: its own, or the common one if attacks are selected."""
    return SELECTED if audit.settings.game.multiplicity is Multiplicity.SELECT else hypothesis


def _claim_so_far(
    audit: TwoWorldSpec, outcomes: StoredOutcomes, plan: TrialPlan, trials: int
) -> Claim:
    """The effective claim after this many trials; a resumed run may hold more of them already."""
    seen = (outcomes[trial] for trial in plan.trials(0, trials))
    return audit.effective_claim(seen)


@dataclass
class AttackBets:
    """The bets of one attack, and their trials.

    Attributes:
        features: The attack and where its features lie.
        outcomes: The outcomes that it sees.
        fitted: The attack as last fixed.
        right: Whether its threshold guesses right, for every trial; a failed one is an error.
        trials: Every trial.
        scores: The scores of those that finished.
    """

    features: Features
    outcomes: StoredOutcomes
    fitted: Fitted
    right: list[bool] = field(default_factory=list)
    trials: list[Trial] = field(default_factory=list)
    scores: dict[Trial, float] = field(default_factory=dict)

    def bet(self, batch: Sequence[Trial]) -> list[float]:
        """Bets on a batch: the log odds of world "in" for every trial; 0 if it failed."""
        ends = [self.outcomes[trial] for trial in batch]
        finished = self.features.usable(ends)
        odds, right = np.zeros(len(batch)), np.zeros(len(batch), dtype=np.bool_)
        if finished:
            values = score(self.fitted.scorer, self.features.rows(self.outcomes, finished))
            self.scores.update(zip(finished, values.tolist(), strict=True))
            assert self.fitted.calibration is not None  # a sequential audit bets
            done = [trial in self.scores for trial in batch]
            odds[done] = self.fitted.calibration.log_odds(values)
            right[done] = self.fitted.threshold.guesses_in(values) == member_of(finished)
        self.right += right.tolist()
        self.trials += batch
        return odds.tolist()

    @property
    def of_both_worlds(self) -> bool:
        """Whether it has scored a trial of each world."""
        return len({trial.world for trial in self.scores}) == len(World)

    def attacked(self, bounds: dict[ValidBound, float]) -> Attacked:
        """The whole result, with the bounds of its stream."""
        member, right = member_of(self.trials), np.array(self.right)
        counts = Counts(
            false_negatives=int(np.count_nonzero(member & ~right)),
            false_positives=int(np.count_nonzero(~member & ~right)),
            n_in=int(np.count_nonzero(member)),
            n_out=int(np.count_nonzero(~member)),
        )
        finished = sorted(self.scores, key=lambda trial: trial.world is World.OUT)  # in first
        scores = np.array([self.scores[trial] for trial in finished])
        evaluation = Evaluation(
            counts=counts,
            threshold=self.fitted.threshold,
            guesses=None,
            bounds=bounds,
            auc=auc(scores, member_of(finished)),
            scores=scores,
            scorer=self.fitted.scorer,
        )
        part = Part(self.features.rows(self.outcomes, finished), member_of(finished))
        attack = self.features.attack
        return Attacked(attack, finished, part, evaluation, attack.name)


@dataclass
class BetStream:
    """The bets of one attack, or of the one selected for each batch, trial by trial.

    Every bet is predictable, whichever attack makes it, so the bound uses all bets. Scores,
    threshold and features are meaningful within one attack only: the result shows those of the
    attack that bet last, over all batches that it bet on.

    Attributes:
        confidence: Confidence of its bound.
        log_odds: Log odds of every bet, in order.
        member: Whether the world of each trial is "in".
        shown: The bets of each attack; the attack that bet last is at the end.
    """

    confidence: float
    log_odds: list[float] = field(default_factory=list)
    member: list[bool] = field(default_factory=list)
    shown: dict[str, AttackBets] = field(default_factory=dict)

    def bet(
        self, features: Features, fitted: Fitted, batch: Sequence[Trial], outcomes: StoredOutcomes
    ) -> None:
        """Lets an attack bet on a batch of trials that have outcomes."""
        name = features.attack.name
        shown = self.shown.pop(name, None) or AttackBets(features, outcomes, fitted)
        self.shown[name] = shown
        shown.fitted = fitted
        self.log_odds += shown.bet(batch)
        self.member += member_of(batch).tolist()

    def bounds(self, claim: Claim) -> dict[ValidBound, float]:
        """The bounds on all bets so far."""
        observed = (self.log_odds, self.member)
        return guarantee_of(claim).bounds(Observed.BETS, *observed, confidence=self.confidence)

    def attacked(self, claim: Claim) -> Attacked | None:
        """The result of this stream so far; None before a trial of each world was scored.

        It belongs to the last attack that scored a trial of each world.
        """
        scored = [shown for shown in self.shown.values() if shown.of_both_worlds]
        if not scored:
            return None
        return scored[-1].attacked(self.bounds(claim))._replace(guessed_by=self.guessed_by)

    @property
    def guessed_by(self) -> dict[str, int]:
        """Number of trials that each attack bet on, in order; empty if only one did."""
        trials = {name: len(shown.trials) for name, shown in self.shown.items()}
        return trials if len(trials) > 1 else {}
