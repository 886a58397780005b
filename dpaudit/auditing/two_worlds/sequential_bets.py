"""The bets of a sequential audit, batch by batch, and what they show so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dpaudit.auditing.two_worlds.attacking.contenders import Features
from dpaudit.auditing.two_worlds.attacking.evaluation import Evaluation
from dpaudit.auditing.two_worlds.attacking.fitting import Fitted, score
from dpaudit.auditing.two_worlds.attacking.parts import Part
from dpaudit.auditing.two_worlds.attacking.run import Attacked
from dpaudit.bounds import Counts, auc
from dpaudit.bounds.table import Observed, ValidBound, valid_bounds
from dpaudit.game.outcomes import StoredOutcomes
from dpaudit.game.trial import Trial
from dpaudit.plugins.protocols import BoolArray, World


@dataclass
class AttackBets:
    """What one attack has bet, and what it bet on.

    Attributes:
        features: The attack and where its features lie.
        outcomes: The outcomes that it sees.
        fitted: As it was fixed last.
        log_odds: Its log odds of world "in", of every trial; 0 where the trial failed.
        right: Whether its threshold guesses right, of every trial; a failed one is an error.
        trials: Every trial.
        scores: The scores of those that finished.
    """

    features: Features
    outcomes: StoredOutcomes
    fitted: Fitted
    log_odds: list[float] = field(default_factory=list)
    right: list[bool] = field(default_factory=list)
    trials: list[Trial] = field(default_factory=list)
    scores: dict[Trial, float] = field(default_factory=dict)

    def bet(self, batch: Sequence[Trial]) -> list[float]:
        """Bets on a batch; gives its log odds."""
        ends = [self.outcomes[trial] for trial in batch]
        finished = [trial for trial in self.features.usable(ends) if trial is not None]
        odds: dict[Trial, float] = {}
        right: dict[Trial, bool] = {}
        if finished:
            values = score(self.fitted.scorer, self.features.rows(self.outcomes, finished))
            self.scores.update(zip(finished, values.tolist(), strict=True))
            assert self.fitted.calibration is not None  # worlds are coins, the claim is of epsilon
            odds.update(
                zip(finished, self.fitted.calibration.log_odds(values).tolist(), strict=True)
            )
            guessed = self.fitted.threshold.guesses_in(values)
            right.update(zip(finished, (guessed == _member(finished)).tolist(), strict=True))
        found = [odds.get(trial, 0.0) for trial in batch]
        self.log_odds += found
        self.right += [right.get(trial, False) for trial in batch]
        self.trials += batch
        return found

    @property
    def of_both_worlds(self) -> bool:
        """Whether it has scored a trial of each world."""
        return len({trial.world for trial in self.scores}) == len(World)

    def attacked(self, bounds: dict[ValidBound, float]) -> Attacked:
        """All of it, with the bounds of the stream that it belongs to."""
        member, right = _member(self.trials), np.array(self.right)
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
            auc=auc(scores, _member(finished)),
            scores=scores,
            scorer=self.fitted.scorer,
        )
        part = Part(self.features.rows(self.outcomes, finished), _member(finished))
        attack = self.features.attack
        return Attacked(attack, finished, part, evaluation, attack.name)


@dataclass
class BetStream:
    """The bets of one attack, or of the one selected for each batch, trial by trial.

    Every bet is predictable whichever attack makes it, so the bound is that of all bets. Scores,
    threshold and features mean something within one attack only: what is shown is of the attack
    that bet last, in all batches that it bet on.

    Attributes:
        log_odds: Of every bet, in order.
        member: Whether the world of the trial is "in".
        shown: What each attack bet, the last one at the end.
    """

    log_odds: list[float] = field(default_factory=list)
    member: list[bool] = field(default_factory=list)
    shown: dict[str, AttackBets] = field(default_factory=dict)

    def bet(
        self,
        features: Features,
        fitted: Fitted,
        batch: Sequence[Trial],
        outcomes: StoredOutcomes,
    ) -> None:
        """Lets an attack bet on a batch of trials that have outcomes."""
        name = features.attack.name
        shown = self.shown.pop(name, None) or AttackBets(features, outcomes, fitted)
        self.shown[name] = shown
        shown.fitted = fitted
        self.log_odds += shown.bet(batch)
        self.member += _member(batch).tolist()

    def bounds(self, *, delta: float, confidence: float) -> dict[ValidBound, float]:
        """The bounds on all bets so far."""
        observed = (self.log_odds, self.member)
        return valid_bounds(Observed.BETS, *observed, delta=delta, confidence=confidence)

    def attacked(self, *, delta: float, confidence: float) -> Attacked | None:
        """What this stream has shown so far; None before a trial of each world was scored.

        That is of the last attack that has scored one of each.
        """
        scored = [shown for shown in self.shown.values() if shown.of_both_worlds]
        if not scored:
            return None
        found = scored[-1].attacked(self.bounds(delta=delta, confidence=confidence))
        return found._replace(guessed_by=self.guessed_by)

    @property
    def guessed_by(self) -> dict[str, int]:
        """Trials that each attack bet on, where there were several; the last one at the end."""
        found = {name: len(shown.trials) for name, shown in self.shown.items()}
        return found if len(found) > 1 else {}


def _member(trials: Sequence[Trial]) -> BoolArray:
    """Whether the world of each trial is "in"."""
    return np.array([trial.world is World.IN for trial in trials], dtype=np.bool_)
