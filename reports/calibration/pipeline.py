"""Whole evaluations on simulated scores: split, fit, threshold, score, count, bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dpaudit.auditing.attacking.evaluation import evaluate
from dpaudit.auditing.attacking.fitting import Fitted, fit_attack, score
from dpaudit.auditing.attacking.parts import Part, SplitTrials, arrange, fitting_mask
from dpaudit.auditing.settings import AuditSettings, Multiplicity
from dpaudit.bounds import Counts, EpsilonGuarantee, count_errors, e_process, exact, refit_schedule
from dpaudit.plugins.protocols import BoolArray, FeatureName, GameView, Scorer
from reports.calibration.boundary import boundary
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
    """What one attack did: fixed on the fitting part, counted on the scored part."""

    fitted: Fitted
    trials: SplitTrials
    counts: Counts


def features_of(mechanism: Mechanism, n: int, attacks: int, rng: np.random.Generator) -> FloatArray:
    """One feature per attack; shape [attacks, 2, n].

    The first is the mechanism's score. The others are that score with noise, or, from the null,
    independent scores: no attack on the same output can be less alike.
    """
    first = mechanism.scores(n, rng)
    scale = first.std()
    others = [
        mechanism.scores(n, rng)
        if mechanism.epsilon == 0.0
        else first + rng.normal(0.0, 0.3 * scale, first.shape)
        for _ in range(attacks - 1)
    ]
    return np.stack([first, *others])


def scored_attacks(
    features: FloatArray, *, settings: AuditSettings, delta: float, rng: np.random.Generator
) -> list[Scored]:
    """Fits every attack, and scores all of them or the one that promises most."""
    masks = [fitting_mask(settings.per_world, settings.fitted, rng) for _ in range(2)]
    fixed: list[tuple[Fitted, SplitTrials]] = []
    for worlds in features:
        trials = arrange([list(world[:, None]) for world in worlds], masks)
        if trials is None:
            raise ValueError("too few trials to fit an attack")
        fixed.append((_fit(trials.fitting, settings, delta, rng), trials))
    if settings.multiplicity is Multiplicity.SELECT:
        fixed = [max(fixed, key=lambda one: one[0].promise)]
    return [
        Scored(
            fitted,
            trials,
            count_errors(
                score(fitted.scorer, trials.scored.features),
                trials.scored.member,
                fitted.threshold,
            ),
        )
        for fitted, trials in fixed
    ]


def largest_bound(scored: list[Scored], *, settings: AuditSettings, delta: float) -> float:
    """The bound that an audit reports, by `evaluate`."""
    confidence = settings.attack_confidence
    return max(
        evaluate(
            one.fitted, one.trials, guarantee=EpsilonGuarantee(delta), confidence=confidence
        ).proved
        for one in scored
    )


def sequential_audit_flags(
    mechanism: Mechanism, *, settings: AuditSettings, rng: np.random.Generator
) -> bool:
    """Whether a sequential audit ever exceeds the true epsilon.

    As `dpaudit.auditing.sequential` does: every block of pairs is guessed by an attack fixed on the
    pairs before it and feeds the e-process; at the cap the exact bound is taken once, on the trials
    after the fitting part. Either has half of the error probability.
    """
    scores = mechanism.scores(settings.per_world, rng)
    confidence, delta = settings.attack_confidence, mechanism.delta
    guesses: tuple[list[BoolArray], list[BoolArray]] = ([], [])
    blocks = refit_schedule(settings.per_world)
    for block in blocks:
        fitted = _fit(_part(scores[:, : block.start]), settings, delta, rng)
        for own, world in zip(guesses, scores, strict=True):
            own.append(fitted.threshold.guesses_in(world[block.start : block.stop]))
    guessed_in, guessed_out = (np.concatenate(own) for own in guesses)
    log_e = e_process(guessed_in, guessed_out, epsilon=mechanism.epsilon, delta=delta)
    if log_e.max() >= -np.log1p(-confidence):
        return True
    fitted = _fit(_part(scores[:, : settings.fitted]), settings, delta, rng)
    guessed = fitted.threshold.guesses_in(scores[:, settings.fitted :])
    at_cap = boundary(exact, settings.scored, mechanism.epsilon, delta, confidence)
    return at_cap.proves(int((~guessed[0]).sum()), int(guessed[1].sum()))


def _part(scores: FloatArray) -> Part:
    n = scores.shape[1]
    return Part(scores.reshape(-1, 1), np.arange(2 * n) < n)


def _fit(part: Part, settings: AuditSettings, delta: float, rng: np.random.Generator) -> Fitted:
    return fit_attack(
        FirstFeature(),
        part,
        rule=settings.threshold,
        guarantee=EpsilonGuarantee(delta),
        confidence=settings.attack_confidence,
        rng=rng,
    )
