"""Splits trials, fixes an attack on those of the fitting part, and scores it once on the others."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from dpaudit.auditing.settings import AuditSettings
from dpaudit.auditing.two_worlds.settings import TwoWorlds
from dpaudit.bounds import (
    CoinGuesses,
    Counts,
    FailedTrials,
    Forecast,
    Guarantee,
    GuessCalibration,
    Threshold,
    ThresholdRule,
    auc,
    choose_calibration,
    choose_rule,
    choose_threshold_by,
    count_errors,
    count_guesses,
    log_odds_line,
    scaled_errors,
)
from dpaudit.bounds.table import FIXED, Observed, ValidBound, proved
from dpaudit.errors import AttackError
from dpaudit.plugins.access import AnyAttack
from dpaudit.plugins.foreign import refusing
from dpaudit.plugins.protocols import BoolArray, FloatArray, IntArray, Scorer

MIN_FITTED = 4
"""Finished trials of each world that the fitting part needs."""


class FeatureRows(Protocol):
    """Feature vectors [n, f]: an array, or an object that reads its rows on demand."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: slice, /) -> FloatArray: ...


class Part(NamedTuple):
    """Trials of both worlds in one part of the split.

    Attributes:
        features: Their features [n, f]; `features[:]` is the whole matrix.
        member: Membership [n].
    """

    features: FeatureRows
    member: BoolArray


class SplitTrials(NamedTuple):
    """The trials of one audit as one attack sees them.

    Attributes:
        fitting: Finished trials of the fitting part.
        scored: Finished trials of the scored part.
        failed_in: Trials of world "in" in the scored part that failed.
        failed_out: The same for world "out".
    """

    fitting: Part
    scored: Part
    failed_in: int
    failed_out: int


FOLDS = 5
HELD_OUT_SHARE = 1 / 3
"""Share of the fitting part held out to choose the threshold (400 + 200 in published audits)."""
NONE_FAILED = FailedTrials(0, 0)
SCORED_AT_ONCE = 2048
"""Trials whose features are read and scored together: 64 MiB at 4,096 features each."""


class FittingScore(NamedTuple):
    """An attack's performance on the trials it was fitted on.

    Scores compare by the bound, ties by the AUC; the larger one is better.

    Attributes:
        bound: The bound that is forecast for the scored trials.
        separation: |AUC - 1/2|.
    """

    bound: float
    separation: float


class Fitted(NamedTuple):
    """An attack with fixed classifier, threshold and weights, and the rule that scores it.

    Attributes:
        scorer: The trained classifier.
        threshold: Threshold and direction, for the exact bound.
        calibration: The weights of its guesses, for the fair-coin bound and for bets; None if
            neither is used.
        by_coins: Whether the fair-coin bound is the one that is computed.
        forecast: Its performance on the trials it was fitted on: only for choosing among attacks.
    """

    scorer: Scorer
    threshold: Threshold
    calibration: GuessCalibration | None
    by_coins: bool
    forecast: FittingScore


def fit_attack(
    attack: AnyAttack,
    fitting: Part,
    *,
    settings: AuditSettings[TwoWorlds],
    failed: FailedTrials = NONE_FAILED,
    guarantee: Guarantee,
    rng: np.random.Generator,
) -> Fitted:
    """Trains an attack and fixes its guessing rule, on trials that are never scored.

    Args:
        attack: The attack.
        fitting: The trials to learn from.
        settings: Where its threshold is chosen, how many trials will be scored, and the confidence
            of its bound.
        failed: Trials of the fitting part that it cannot use.
        guarantee: The claim's guarantee, of which the attack should prove as much as possible.
        rng: Seeds the classifier and splits the trials.

    Returns:
        The attack, ready to guess.

    Raises:
        AttackError: If its `fit` raises, or its scorer does not give one finite score per trial.
    """
    features, member = fitting.features[:], fitting.member
    held_out = settings.game.threshold is ThresholdRule.HOLD_OUT
    # Threshold and weights need scores of trials that the scorer did not learn from.
    if held_out:
        chosen = _held_out(member, rng)
        share = np.count_nonzero(chosen) / len(member)
        failed = FailedTrials(*(round(share * count) for count in failed))
        scorer = train_scorer(attack, features[~chosen], member[~chosen], rng)
        member = member[chosen]
        scores = score(scorer, features[chosen])
    else:
        scores = _cross_validated(attack, features, member, rng)
        scorer = train_scorer(attack, features, member, rng)
    confidence = settings.attack_confidence
    threshold = choose_threshold_by(
        scores, member, guarantee.threshold_statistic, confidence=confidence
    )
    # Errors at one threshold: as published audits do, and where fair coins bound no such claim.
    if held_out or guarantee.delta is None:
        calibration = log_odds_line(scores, member) if settings.game.sequential else None
        counts = scaled_errors(
            count_errors(scores, member, threshold), failed, scored=settings.game.scored
        )
        limit = guarantee.clopper_pearson(counts, confidence=confidence)
        forecast = Forecast(limit, by_coins=False)
    else:
        asked = {"delta": guarantee.delta, "confidence": confidence}
        calibration = choose_calibration(scores, member, trials=settings.game.scored, **asked)
        forecast = choose_rule(
            scores,
            member,
            failed=failed,
            scored=settings.game.scored,
            rng=rng,
            coins_alone=settings.game.is_timed,
            **asked,
        )
    reached = FittingScore(forecast.bound, abs(auc(scores, member) - 0.5))
    return Fitted(scorer, threshold, calibration, forecast.by_coins, reached)


def score(scorer: Scorer, features: FeatureRows) -> FloatArray:
    """Scores [n] of feature vectors [n, f], in batches.

    Raises:
        AttackError: If the scorer raises, or does not return one finite number per vector.
    """
    starts = range(0, len(features), SCORED_AT_ONCE)
    return np.concatenate(
        [_scores(scorer, features[start : start + SCORED_AT_ONCE]) for start in starts]
    )


def _scores(scorer: Scorer, features: FloatArray) -> FloatArray:
    with refusing("an attack's scorer raises", as_error=AttackError):
        scores = np.asarray(scorer(features), dtype=np.float64)
    if scores.shape != (len(features),) or not np.isfinite(scores).all():
        raise AttackError("an attack's scorer must give one finite score per trial")
    return scores


def train_scorer(
    attack: AnyAttack, features: FloatArray, member: BoolArray, rng: np.random.Generator
) -> Scorer:
    """The scorer that an attack learns from some trials.

    Raises:
        AttackError: If its `fit` raises.
    """
    seed = _seed(rng)
    with refusing(f"attack {type(attack).__name__}: its fit raises", as_error=AttackError):
        return attack.fit(features, member, seed=seed)


def _cross_validated(
    attack: AnyAttack, features: FloatArray, member: BoolArray, rng: np.random.Generator
) -> FloatArray:
    """Scores [n] of the fitting part, each from a classifier that did not see that trial."""
    folds = _folds(member, min(FOLDS, int(member.sum()), int((~member).sum())), rng)
    scores = np.empty(len(member), dtype=np.float64)
    for fold in range(folds.max() + 1):
        held_out = folds == fold
        # The scorer gets no name: a forest of many trials is large, and only one should be in
        # memory.
        scores[held_out] = score(
            train_scorer(attack, features[~held_out], member[~held_out], rng), features[held_out]
        )
    return scores


def _folds(member: BoolArray, n_folds: int, rng: np.random.Generator) -> IntArray:
    """The fold [n] of each trial, at random, each world in equal parts."""
    folds = np.empty(len(member), dtype=np.int64)
    for world in (True, False):
        own = rng.permutation(np.flatnonzero(member == world))
        folds[own] = np.arange(len(own)) % n_folds
    return folds


def _held_out(member: BoolArray, rng: np.random.Generator) -> BoolArray:
    """A third of the trials of each world, at random."""
    held_out = np.zeros(len(member), dtype=np.bool_)
    for world in (True, False):
        own = rng.permutation(np.flatnonzero(member == world))
        held_out[own[: max(1, round(HELD_OUT_SHARE * len(own)))]] = True
    return held_out


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**32))


class Evaluation(NamedTuple):
    """The result of one attack on the scored trials.

    Attributes:
        counts: Its errors at the threshold; a failed trial counts as an error in either world.
        threshold: Threshold and direction, fixed beforehand.
        guesses: Its guesses by weight, if the bound is on these; None if it is on the errors.
        bounds: Valid lower limits at the given confidence: from the errors or from the guesses, as
            chosen before, and always the Clopper-Pearson limit of the errors, which does not
            decide. Limits for a fixed number of trials are missing if a sequential audit stopped
            early; a sequential audit also has the limit of the e-process.
        auc: Area under the ROC curve of the scored trials that finished.
        scores: Membership scores [n] of the scored trials that finished.
        scorer: The trained classifier.
    """

    counts: Counts
    threshold: Threshold
    guesses: CoinGuesses | None
    bounds: dict[ValidBound, float]
    auc: float
    scores: FloatArray
    scorer: Scorer

    @property
    def proved(self) -> float:
        """The largest of the bounds that may decide a verdict."""
        return proved(self.bounds)

    @property
    def stopped_early(self) -> bool:
        """Whether its trials stopped early because of their outcome, so no fixed-n bound holds."""
        return FIXED.isdisjoint(self.bounds)


def evaluate(
    fitted: Fitted, trials: SplitTrials, *, guarantee: Guarantee, confidence: float
) -> Evaluation:
    """Scores the scored trials once and bounds the level of the guarantee.

    Args:
        fitted: The attack, fixed on the fitting part.
        trials: The trials in two parts.
        guarantee: The claim's guarantee.
        confidence: One-sided confidence of this attack's bounds.

    Returns:
        Errors, bounds and scores.

    Raises:
        AttackError: If the scorer does not give one finite score per trial.
    """
    scores = score(fitted.scorer, trials.scored.features)
    errors = count_errors(scores, trials.scored.member, fitted.threshold)
    # Failed trials are errors: dropped, failures that depend on the record would raise the bound.
    counts = Counts(
        false_negatives=errors.false_negatives + trials.failed_in,
        false_positives=errors.false_positives + trials.failed_out,
        n_in=errors.n_in + trials.failed_in,
        n_out=errors.n_out + trials.failed_out,
    )
    guesses = None
    if fitted.by_coins:
        assert fitted.calibration is not None  # the forecast was made for its guesses
        failed = trials.failed_in + trials.failed_out
        guesses = count_guesses(scores, trials.scored.member, fitted.calibration, failed=failed)
        bounds = guarantee.bounds(Observed.COINS, *guesses, confidence=confidence)
        # It is valid by itself: the threshold, too, was fixed on the fitting part.
        bounds[ValidBound.CLOPPER_PEARSON] = guarantee.clopper_pearson(
            counts, confidence=confidence
        )
    else:
        bounds = guarantee.bounds(Observed.COUNTS, *counts, confidence=confidence)
    return Evaluation(
        counts=counts,
        threshold=fitted.threshold,
        guesses=guesses,
        bounds=bounds,
        auc=auc(scores, trials.scored.member),
        scores=scores,
        scorer=fitted.scorer,
    )
