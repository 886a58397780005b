"""The guesses of a sequential audit, batch by batch, and what they show so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpaudit.auditing.attacking.contenders import Features
from dpaudit.auditing.attacking.evaluation import Evaluation
from dpaudit.auditing.attacking.fitting import Fitted, score
from dpaudit.auditing.attacking.parts import Part
from dpaudit.auditing.attacking.run import Attacked
from dpaudit.bounds import Counts, auc
from dpaudit.bounds.table import Observed, ValidBound, valid_bounds
from dpaudit.game.outcomes import StoredOutcomes
from dpaudit.game.trial import Trial
from dpaudit.plugins.protocols import World


def _by_world() -> dict[World, Any]:
    return {world: [] for world in World}


@dataclass
class AttackGuesses:
    """What one attack has guessed, and what it guessed from.

    Attributes:
        features: The attack and where its features lie.
        outcomes: The outcomes that it guesses.
        fitted: As it was fixed last.
        guesses: Its guesses in each world; a trial that failed is guessed wrong.
        trials: The trials that finished.
        scores: Their scores.
    """

    features: Features
    outcomes: StoredOutcomes
    fitted: Fitted
    guesses: dict[World, list[bool]] = field(default_factory=_by_world)
    trials: dict[World, list[Trial]] = field(default_factory=_by_world)
    scores: dict[World, list[float]] = field(default_factory=_by_world)

    def guess(self, batch: Sequence[Trial]) -> dict[World, list[bool]]:
        """Guesses a batch; a trial that failed is an error of the attack."""
        ends = [self.outcomes[trial] for trial in batch]
        finished = [trial for trial in self.features.usable(ends) if trial is not None]
        scores: dict[Trial, float] = {}
        if finished:
            values = score(self.fitted.scorer, self.features.rows(self.outcomes, finished))
            scores = dict(zip(finished, values.tolist(), strict=True))
        guesses: dict[World, list[bool]] = _by_world()
        for trial in batch:
            world = trial.world
            if trial not in scores:
                guesses[world].append(world is World.OUT)
                continue
            guess = self.fitted.threshold.guesses_in(np.array([scores[trial]]))
            guesses[world].append(bool(guess[0]))
            self.scores[world].append(scores[trial])
            self.trials[world].append(trial)
        for world in World:
            self.guesses[world] += guesses[world]
        return guesses

    @property
    def pairs(self) -> int:
        """Pairs that it guessed."""
        return len(self.guesses[World.IN])

    def attacked(self, bounds: dict[ValidBound, float]) -> Attacked:
        """All of it, with the bounds of the stream that it belongs to."""
        counts = Counts(
            false_negatives=self.guesses[World.IN].count(False),
            false_positives=self.guesses[World.OUT].count(True),
            n_in=self.pairs,
            n_out=len(self.guesses[World.OUT]),
        )
        n_in, n_out = (len(self.scores[world]) for world in World)
        member = np.arange(n_in + n_out) < n_in
        scores = np.array([value for world in World for value in self.scores[world]])
        evaluation = Evaluation(
            counts=counts,
            threshold=self.fitted.threshold,
            bounds=bounds,
            auc=auc(scores, member),
            scores=scores,
            scorer=self.fitted.scorer,
        )
        trials = [trial for world in World for trial in self.trials[world]]
        part = Part(self.features.rows(self.outcomes, trials), member)
        attack = self.features.attack
        return Attacked(attack, trials, part, evaluation, attack.name)


@dataclass
class GuessStream:
    """The guesses of one attack, or of the one selected for each batch, pair by pair.

    Every guess is a predictable bet whichever attack makes it, so the bound is that of all guesses.
    Scores, threshold and features mean something within one attack only: what is shown is of the
    attack that guessed last, in all batches that it guessed.

    Attributes:
        guesses: Every guess, in order.
        shown: What each attack guessed, the last one at the end.
    """

    guesses: dict[World, list[bool]] = field(default_factory=_by_world)
    shown: dict[str, AttackGuesses] = field(default_factory=dict)

    def guess(
        self,
        features: Features,
        fitted: Fitted,
        batch: Sequence[Trial],
        outcomes: StoredOutcomes,
    ) -> None:
        """Lets an attack guess a batch of trials that have outcomes."""
        name = features.attack.name
        shown = self.shown.pop(name, None) or AttackGuesses(features, outcomes, fitted)
        self.shown[name] = shown
        shown.fitted = fitted
        guesses = shown.guess(batch)
        for world in World:
            self.guesses[world] += guesses[world]

    def bounds(self, *, delta: float, confidence: float) -> dict[ValidBound, float]:
        """The bounds on all guesses so far."""
        guesses = (self.guesses[world] for world in World)
        return valid_bounds(Observed.PAIRS, *guesses, delta=delta, confidence=confidence)

    def attacked(self, *, delta: float, confidence: float) -> Attacked | None:
        """What this stream has shown so far; None before a trial of each world was scored.

        That is of the last attack that has scored one of each.
        """
        scored = [shown for shown in self.shown.values() if all(shown.scores.values())]
        if not scored:
            return None
        found = scored[-1].attacked(self.bounds(delta=delta, confidence=confidence))
        return found._replace(guessed_by=self.guessed_by)

    @property
    def guessed_by(self) -> dict[str, int]:
        """Pairs that each attack guessed, where there were several; the last one at the end."""
        found = {name: shown.pairs for name, shown in self.shown.items()}
        return found if len(found) > 1 else {}
