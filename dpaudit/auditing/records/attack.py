"""Attacks on many records at once: one scorer for all records, or one for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np
import pandas as pd

from dpaudit.auditing.two_worlds.attacking.fitting import FOLDS, MIN_FITTED, score, trained
from dpaudit.bounds import CoinGuesses, GuessCalibration, auc
from dpaudit.bounds.calibration import calibrate_records, count_record_guesses
from dpaudit.bounds.table import Observed, ValidBound, proved, valid_bounds
from dpaudit.plugins.named import NamedAttack
from dpaudit.plugins.protocols import Attack, BoolArray, FloatArray, GameView, IntArray, Scorer

ScoreRecords = Callable[[FloatArray], FloatArray]
"""Scores [n, k] of the features [n, k, f] of many models; larger means "in"."""


@dataclass(frozen=True)
class FeaturesOfRecords:
    """An attack's features of one table with each record as the target.

    Attributes:
        attack: The attack.
        views: What the attacker knows when each record is the target.
    """

    attack: Attack
    views: tuple[GameView, ...]

    def features(self, table: pd.DataFrame, game: GameView) -> FloatArray:
        """Features [k * f] of one canonical table, those of each record in turn.

        Units of many rows may have more features than others, which zeros fill up.
        """
        del game
        found = [self.attack.features(table, view) for view in self.views]
        width = max(map(len, found))
        return np.concatenate([np.pad(one, (0, width - len(one))) for one in found])


class FittedRecords(NamedTuple):
    """An attack that is fixed on models that are never scored.

    Attributes:
        attack: The attack and its name.
        scores: The trained classifier, or one for each record.
        calibration: What its guesses weigh.
        forecast: The bound that is forecast for the scored models.
    """

    attack: NamedAttack
    scores: ScoreRecords
    calibration: GuessCalibration
    forecast: float


class RecordsEvaluation(NamedTuple):
    """What one attack achieved on the scored models.

    Attributes:
        name: Its name.
        guesses: Its guesses by weight.
        made: Guesses of each record [k].
        right: Right ones among them [k].
        bounds: Valid bounds on epsilon.
        auc: AUC over all records and scored models.
        odds: Log odds [n, k] that each scored model had each record.
        included: Which it had [n, k].
    """

    name: str
    guesses: CoinGuesses
    made: IntArray
    right: IntArray
    bounds: dict[ValidBound, float]
    auc: float
    odds: FloatArray
    included: BoolArray

    @property
    def proved(self) -> float:
        """The bound."""
        return proved(self.bounds)


def fit_records(
    named: NamedAttack,
    features: FloatArray,
    included: BoolArray,
    *,
    trainings: int,
    delta: float,
    confidence: float,
    rng: np.random.Generator,
) -> FittedRecords:
    """Trains an attack for all records together and for each alone; keeps the larger forecast.

    Training together suits features relative to the record, such as the number of rows equal to it.
    Training alone suits features of the table, whose meaning differs between records.

    Args:
        named: The attack.
        features: Features [n, k, f] of the models that it is fitted on.
        included: Which records each of them had [n, k].
        trainings: Models that will be scored.
        delta: Delta of the claim.
        confidence: Confidence of the attack's bound.
        rng: Seeds the classifiers and splits the models.

    Returns:
        The attack, ready to guess.

    Raises:
        AttackError: If its `fit` raises, or its scorer does not give one finite score per vector.
    """
    ways = [_pooled]
    if min(included.sum(axis=0).min(), (~included).sum(axis=0).min()) >= MIN_FITTED:
        ways.append(_alone)
    standard = _standard(features)
    unit = standard(features)
    attack = cast(Attack, named.attack)  # what it sees was checked when the audit was built
    fold = rng.permutation(len(unit)) % min(FOLDS, len(unit))
    found = []
    for way in ways:
        tried = np.zeros(included.shape)
        for held_out in range(int(fold.max()) + 1):
            mine = fold == held_out
            tried[mine] = way(attack, unit[~mine], included[~mine], rng)(unit[mine])
        forecast = calibrate_records(
            tried,
            included,
            trainings=trainings,
            delta=delta,
            confidence=confidence,
            rng=rng,
        )
        found.append((forecast, way))
    forecast, way = max(found, key=lambda one: one[0].bound)
    scores = way(attack, unit, included, rng)
    return FittedRecords(
        named, lambda rows: scores(standard(rows)), forecast.calibration, forecast.bound
    )


def evaluate_records(
    fitted: FittedRecords,
    features: FloatArray,
    included: BoolArray,
    *,
    failed: int,
    delta: float,
    confidence: float,
) -> RecordsEvaluation:
    """Scores the scored models once and bounds epsilon.

    Args:
        fitted: The attack, fixed before.
        features: Features [n, k, f] of the scored models that finished.
        included: Which records each of them had [n, k].
        failed: Scored models that failed; the attack abstains on their coins.
        delta: Delta of the claim.
        confidence: Confidence of the attack's bound.

    Returns:
        Guesses, bounds and odds.

    Raises:
        AttackError: If the scorer does not give one finite score per vector.
    """
    scores = fitted.scores(features)
    odds = fitted.calibration.log_odds(scores)
    guessed = fitted.calibration.guesses(scores)
    guesses = count_record_guesses(guessed, included, failed=failed)
    hit = (guessed != 0) & ((guessed > 0) == included)
    mixed = included.any() and not included.all()
    return RecordsEvaluation(
        name=fitted.attack.name,
        guesses=guesses,
        made=np.count_nonzero(guessed, axis=0),
        right=hit.sum(axis=0),
        bounds=valid_bounds(Observed.COINS, *guesses, delta=delta, confidence=confidence),
        auc=auc(odds.ravel(), included.ravel()) if mixed else 0.5,
        odds=odds,
        included=included,
    )


def _standard(features: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Centres and scales the features [n, k, f] of each record."""
    centre, spread = features.mean(axis=0), features.std(axis=0)
    scale = np.where(spread > 1e-9 * np.maximum(1.0, np.abs(centre)), spread, 1.0)

    def standard(rows: FloatArray) -> FloatArray:
        unit: FloatArray = (rows - centre) / scale
        return unit

    return standard


def _pooled(
    attack: Attack, features: FloatArray, included: BoolArray, rng: np.random.Generator
) -> ScoreRecords:
    """One scorer that learns from every record of every model."""
    width = features.shape[2]
    scorer = _trained(attack, features.reshape(-1, width), included.ravel(), rng)
    if scorer is None:
        return _nothing

    def scores(rows: FloatArray) -> FloatArray:
        return score(scorer, rows.reshape(-1, width)).reshape(rows.shape[:2])

    return scores


def _alone(
    attack: Attack, features: FloatArray, included: BoolArray, rng: np.random.Generator
) -> ScoreRecords:
    """A scorer for each record."""
    parts = features.transpose(1, 0, 2)
    scorers = [
        _trained(attack, own, member, rng) for own, member in zip(parts, included.T, strict=True)
    ]

    def scores(rows: FloatArray) -> FloatArray:
        return np.column_stack(
            [
                np.zeros(len(rows)) if scorer is None else score(scorer, rows[:, place])
                for place, scorer in enumerate(scorers)
            ]
        )

    return scores


def _nothing(rows: FloatArray) -> FloatArray:
    return np.zeros(rows.shape[:2])


def _trained(
    attack: Attack, features: FloatArray, member: BoolArray, rng: np.random.Generator
) -> Scorer | None:
    """The scorer; None where there is one class only."""
    if member.all() or not member.any():
        return None
    return trained(attack, features, member, rng)
