"""Whole evaluations on simulated scores: draw worlds, fit, choose a rule, score, bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dpaudit.auditing.settings import AuditSettings
from dpaudit.auditing.two_worlds.attacking import (
    Fitted,
    Part,
    SplitTrials,
    evaluate,
    fit_attack,
    score,
)
from dpaudit.auditing.two_worlds.spec import FIRST_FITTED
from dpaudit.bounds import (
    Counts,
    EpsilonGuarantee,
    Guarantee,
    GuessCalibration,
    count_errors,
)
from dpaudit.model.choices import Multiplicity
from dpaudit.plugins.protocols import BoolArray, FeatureName, GameView, Scorer
from reports.calibration.mechanisms import FloatArray, Mechanism


@dataclass(frozen=True)
class FirstFeature:
    """An attack whose score is its only feature: nothing to fit, everything known."""

    def check(self, game: GameView) -> None:
        """Fits every game."""

    def feature_names(self, game: GameView) -> tuple[FeatureName, ...]:
        """The one feature."""
        return (FeatureName("score", "value"),)

    def features(self, table: Any, game: GameView) -> FloatArray:
        """Not used: the study starts from features."""
        return np.zeros(1)

    def fit(self, features: FloatArray, member: BoolArray, *, seed: int) -> Scorer:
        """The feature itself."""
        return lambda rows: rows[:, 0].astype(np.float64)


class Scored(NamedTuple):
    """An attack that was fixed on the fitting part, and the trials in two parts."""

    fitted: Fitted
    trials: SplitTrials

    @property
    def scores(self) -> FloatArray:
        """Scores of the scored trials."""
        return score(self.fitted.scorer, self.trials.scored.features)

    @property
    def calibration(self) -> GuessCalibration:
        """What its guesses weigh, where the claim is one in epsilon."""
        if self.fitted.calibration is None:
            raise ValueError("of these trials no guesses are weighed")
        return self.fitted.calibration

    @property
    def counts(self) -> Counts:
        """Errors on the scored trials."""
        return count_errors(self.scores, self.trials.scored.member, self.fitted.threshold)

    def bound(self, guarantee: Guarantee, *, confidence: float) -> float:
        """The bound that an audit reports, by `evaluate`."""
        return evaluate(self.fitted, self.trials, guarantee=guarantee, confidence=confidence).proved


def worlds_of(settings: AuditSettings, rng: np.random.Generator) -> BoolArray:
    """Whether the world of each trial is "in", the fitting part first, as audits plan it."""
    places = np.arange(settings.game.shadow_models)
    alternating: BoolArray = places % 2 == 0
    if not settings.game.fair_coins:
        return alternating
    balanced = FIRST_FITTED if settings.game.sequential else 2 * settings.game.fitted
    coins = rng.random(settings.game.shadow_models) < 0.5
    return np.where(places < balanced, alternating, coins)


def features_of(
    mechanism: Mechanism, member: BoolArray, attacks: int, rng: np.random.Generator
) -> FloatArray:
    """One feature per attack; shape [attacks, n].

    The first is the mechanism's score. The others are that score with noise, or, from the null,
    independent scores: no attack on the same output can be less alike.
    """
    first = mechanism.seen(member, rng)
    scale = first.std()
    others = [
        mechanism.seen(member, rng)
        if mechanism.epsilon == 0.0
        else first + rng.normal(0.0, 0.3 * scale, first.shape)
        for _ in range(attacks - 1)
    ]
    return np.stack([first, *others])


def scored_attacks(
    mechanism: Mechanism, *, settings: AuditSettings, rng: np.random.Generator
) -> list[Scored]:
    """Fits every attack, and keeps all of them or the one with the largest forecast."""
    member = worlds_of(settings, rng)
    fixed = [
        fixed_on(
            scores,
            member,
            2 * settings.game.fitted,
            settings,
            EpsilonGuarantee(mechanism.delta),
            rng,
        )
        for scores in features_of(mechanism, member, len(settings.game.attacks), rng)
    ]
    if settings.game.multiplicity is Multiplicity.SELECT:
        return [max(fixed, key=lambda one: one.fitted.forecast)]
    return fixed


def fixed_on(
    scores: FloatArray,
    member: BoolArray,
    first: int,
    settings: AuditSettings,
    guarantee: Guarantee,
    rng: np.random.Generator,
) -> Scored:
    """An attack fixed on the first trials, with the others to be scored."""
    fitting, scored = (
        Part(scores[part].reshape(-1, 1), member[part])
        for part in (slice(None, first), slice(first, None))
    )
    fitted = fit_attack(FirstFeature(), fitting, settings=settings, guarantee=guarantee, rng=rng)
    return Scored(fitted, SplitTrials(fitting, scored, failed_in=0, failed_out=0))
