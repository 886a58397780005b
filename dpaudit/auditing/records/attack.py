"""Attacks on many records at once, one scorer for all or one for each, and controls of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

import numpy as np
import pandas as pd

from dpaudit.auditing.checks import BEYOND_CHANCE, CONFIDENCE, judge_guesses, unfinished_control
from dpaudit.auditing.settings import AuditSettings, ManyRecords
from dpaudit.auditing.two_worlds.attacking import FOLDS, MIN_FITTED, score, train_scorer
from dpaudit.bounds import CoinGuesses, EpsilonGuarantee, GuessCalibration, auc
from dpaudit.bounds.calibration import calibrate_records, count_record_guesses
from dpaudit.bounds.table import Observed, ValidBound, proved
from dpaudit.game.target import copies_of
from dpaudit.game.trial import Role
from dpaudit.model.choices import Multiplicity
from dpaudit.model.schema import Schema
from dpaudit.plugins.named import NamedAttack
from dpaudit.plugins.protocols import (
    Attack,
    BoolArray,
    FloatArray,
    GameView,
    Generator,
    IntArray,
    Model,
    Scorer,
)
from dpaudit.results.record import ControlOutcome

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
        each = [self.attack.features(table, view) for view in self.views]
        width = max(map(len, each))
        return np.concatenate([np.pad(own, (0, width - len(own))) for own in each])


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
    ways = [_pool]
    if min(included.sum(axis=0).min(), (~included).sum(axis=0).min()) >= MIN_FITTED:
        ways.append(_alone)
    standard = _standard(features)
    unit = standard(features)
    attack = cast(Attack, named.attack)  # what it sees was checked when the audit was built
    fold = rng.permutation(len(unit)) % min(FOLDS, len(unit))
    forecasts = []
    for way in ways:
        # Scores of models that the scorer did not learn from: only these forecast what it will do.
        scores = np.zeros(included.shape)
        for held_out in range(int(fold.max()) + 1):
            mine = fold == held_out
            scores[mine] = way(attack, unit[~mine], included[~mine], rng)(unit[mine])
        forecast = calibrate_records(
            scores, included, trainings=trainings, delta=delta, confidence=confidence, rng=rng
        )
        forecasts.append((forecast, way))
    forecast, way = max(forecasts, key=lambda pair: pair[0].bound)
    scorer = way(attack, unit, included, rng)
    return FittedRecords(
        named, lambda rows: scorer(standard(rows)), forecast.calibration, forecast.bound
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
        bounds=EpsilonGuarantee(delta).bounds(Observed.COINS, *guesses, confidence=confidence),
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


def _pool(
    attack: Attack, features: FloatArray, included: BoolArray, rng: np.random.Generator
) -> ScoreRecords:
    """One scorer that learns from every record of every model."""
    width = features.shape[2]
    scorer = _train(attack, features.reshape(-1, width), included.ravel(), rng)

    def scores(rows: FloatArray) -> FloatArray:
        return score(scorer, rows.reshape(-1, width)).reshape(rows.shape[:2])

    return scores


def _alone(
    attack: Attack, features: FloatArray, included: BoolArray, rng: np.random.Generator
) -> ScoreRecords:
    """A scorer for each record."""
    parts = features.transpose(1, 0, 2)
    scorers = [
        _train(attack, own, member, rng) for own, member in zip(parts, included.T, strict=True)
    ]

    def scores(rows: FloatArray) -> FloatArray:
        return np.column_stack(
            [score(scorer, rows[:, place]) for place, scorer in enumerate(scorers)]
        )

    return scores


def _train(
    attack: Attack, features: FloatArray, member: BoolArray, rng: np.random.Generator
) -> Scorer:
    """The scorer; one that knows nothing where there is one class only."""
    if member.all() or not member.any():
        return lambda rows: np.zeros(len(rows))
    return train_scorer(attack, features, member, rng)


MOST_MODELS = 60
"""Of a control; it has no more than the audit."""


@dataclass(frozen=True, kw_only=True)
class CopiesRecords:
    """The positive control: releases the audited records that it saw among random rows.

    Attributes:
        schema: The public schema.
        records: The audited records, a canonical table of all their rows.
        null: Draws the random rows.
    """

    schema: Schema
    records: pd.DataFrame
    null: Generator

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> _Copies:
        """Remembers which of the records are in the table."""
        table = self.schema.canonical(data)
        unit = self.schema.unit
        seen = (
            [
                bool(copies_of(self.records.iloc[[row]].reset_index(drop=True), table, self.schema))
                for row in range(len(self.records))
            ]
            if unit is None
            else self.records[unit.column].isin(table[unit.column])
        )
        return _Copies(
            schema=self.schema,
            records=self.records[seen].reset_index(drop=True),
            every=len(self.records),
            model=self.null.fit(data, seed=seed),
        )


@dataclass(frozen=True, kw_only=True)
class _Copies:
    """The records seen, and the model that draws the other rows."""

    schema: Schema
    records: pd.DataFrame
    every: int
    model: Model

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        """Draws `n` rows; rows of records seen share half of them equally, at least 1 each."""
        table = self.schema.canonical(self.model.sample(n, seed=seed))
        each = max(1, n // (2 * self.every))
        copies = self.records.iloc[np.repeat(np.arange(len(self.records)), each)][:n]
        return pd.concat([copies, table.iloc[len(copies) :]], ignore_index=True)


def control_settings(settings: AuditSettings[ManyRecords]) -> AuditSettings[ManyRecords]:
    """The settings of either control: no more models than the audit has, one selected attack.

    The confidence is the strictest at which a perfect separation of so few coins proves a leak.
    """
    models = min(settings.game.shadow_models, MOST_MODELS)
    small = settings.with_game(shadow_models=models, multiplicity=Multiplicity.SELECT)
    by_chance = 0.5 ** (small.game.scored * settings.game.records)
    return replace(small, confidence=min(CONFIDENCE, 1 - BEYOND_CHANCE * by_chance))


def judge_control(
    role: Role, evaluation: RecordsEvaluation | None, *, highest: float
) -> ControlOutcome:
    """Whether a control ended as it must.

    Args:
        role: Which control.
        evaluation: The result of its attack; None if too few of its models finished.
        highest: The largest epsilon that it could prove.

    Returns:
        The result.
    """
    if evaluation is None:
        return unfinished_control(role, "too few of its models finished", highest=highest)
    seen = f"{int(evaluation.right.sum())} of {int(evaluation.made.sum())} guesses were right"
    return judge_guesses(
        role,
        evaluation.proved,
        auc=evaluation.auc,
        highest=highest,
        seen=seen,
        leaks="copies the records it saw",
        remedy="these attacks cannot see these records",
    )
