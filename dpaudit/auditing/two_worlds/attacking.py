"""Every attack on the trials of one role: split, fit, choose a threshold, score once, bound.

The trials of each world are split by a seeded shuffle before any score is computed. Classifier,
threshold and direction come from the fitting part alone (threshold and direction by
cross-validation inside it); the scored part is scored once. Scoring trials that helped to choose
the threshold would break the confidence level.

Two attacks come with every audit: the combination of all attacks, and how trials end.

The combination, a further candidate where one attack is selected, is a weighted sum of standardised
features, each weighted by how far it separates the fitting trials beyond a share of what the
strongest one does: soft thresholding, as in nearest shrunken centroids (Tibshirani et al. 2002).
Hundreds of features and a hundred trials leave little to learn a regression from. Nothing is
searched, so a few more trials change the score little, and guesses calibrated on cross-validated
scores fit those of the final scorer.

How a trial ends is whether there is a table, with how many rows, and if not, why. Anyone who runs a
generator sees that too, so differential privacy covers it: a generator that fails only if a record
is in the table reveals that record without a single synthetic row. No other attack can use a trial
without a table; this one uses every trial.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol, TypeAlias

import numpy as np
import pandas as pd

from dpaudit.auditing.settings import AuditSettings, TwoWorlds
from dpaudit.auditing.two_worlds.spec import TwoWorldSpec, plan_trials
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
    aucs,
    choose_calibration,
    choose_rule,
    choose_threshold_by,
    count_errors,
    count_guesses,
    guarantee_of,
    log_odds_line,
    scaled_errors,
)
from dpaudit.bounds.table import FIXED, Observed, ValidBound, proved
from dpaudit.errors import AttackError
from dpaudit.game.store import StoredOutcome, StoredOutcomes
from dpaudit.game.trial import Role, Trial, TrialEnd, TrialStatus
from dpaudit.model.choices import Multiplicity
from dpaudit.model.claim import Claim
from dpaudit.plugins.access import AnyAttack
from dpaudit.plugins.foreign import refusing
from dpaudit.plugins.named import NamedAttack
from dpaudit.plugins.protocols import (
    THE_TRIAL,
    BoolArray,
    FeatureName,
    FloatArray,
    GameView,
    IntArray,
    Scorer,
    World,
)
from dpaudit.results.leaks import TRIAL_OUTCOMES

COMBINED: Final = "combined"
"""Its name in results."""
SHRINKAGE: Final = 0.8
"""Share of the strongest separation that is subtracted from every separation.

Of 91 simulated audits (Gaussian noise with a shift of 1 in one column's sum, 400 models) 78 % prove
more than 1 with .7 and with .85.
"""
FARTHEST: Final = 30.0
"""Standardised features are clipped here."""


@dataclass(frozen=True)
class WeightedSum:
    """A weighted sum of standardised features.

    Attributes:
        places: Places of the features.
        mean: Their means on the fitting trials.
        scale: Their standard deviations there.
        weights: Their weights, of absolute sum 1.
        shares: Each attack's share of the weights; attacks without weight are left out.
    """

    places: IntArray
    mean: FloatArray
    scale: FloatArray
    weights: FloatArray
    shares: Mapping[str, float]

    def __call__(self, features: FloatArray) -> FloatArray:
        """Scores [n] of feature vectors [n, f]; larger means "in"."""
        standard = (features[:, self.places] - self.mean) / self.scale
        # Not a matrix product: its last digits depend on the number of vectors.
        scores: FloatArray = (np.clip(standard, -FARTHEST, FARTHEST) * self.weights).sum(axis=1)
        return scores


@dataclass(frozen=True)
class Combined:
    """The attack on the features of several attacks.

    Attributes:
        attacks: The attacks, in the order of their features.
        widths: How many features each of them has.
    """

    attacks: Sequence[NamedAttack]
    widths: Sequence[int]

    def check(self, game: GameView) -> None:
        """Accepts every game that its attacks accept."""
        del game

    def feature_names(self, game: GameView) -> tuple[FeatureName, ...]:
        """The features of its attacks in turn."""
        return tuple(name for attack in self.attacks for name in attack.feature_names(game))

    def features(self, table: pd.DataFrame, game: GameView) -> FloatArray:
        """Never needed: trials already have the features of its attacks.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError

    def fit(self, features: FloatArray, member: BoolArray, *, seed: int) -> Scorer:
        """Weights the features [n, f] by their separations; nothing is drawn."""
        del seed
        separations = aucs(features, member) - 0.5
        least = SHRINKAGE * np.abs(separations).max(initial=0.0)
        places = np.flatnonzero(np.abs(separations) > least)
        chosen = features[:, places]
        scale = chosen.std(axis=0)
        shrunken = separations[places] - np.sign(separations[places]) * least
        weights = shrunken / (np.abs(shrunken).sum() or 1.0)
        return WeightedSum(
            places,
            chosen.mean(axis=0),
            np.where(scale > 0, scale, 1.0),
            weights,
            self._shares(places, np.abs(weights)),
        )

    def _shares(self, places: IntArray, weights: FloatArray) -> dict[str, float]:
        """The sum of the absolute weights of each attack that has any, largest first."""
        owners = np.repeat(np.arange(len(self.widths)), self.widths)[places]
        sums = np.bincount(owners, weights, minlength=len(self.widths))
        order = np.argsort(-sums, kind="stable")
        return {self.attacks[place].name: float(sums[place]) for place in order if sums[place] > 0}


FEATURES: Final = (
    FeatureName(THE_TRIAL, "whether it finished"),
    FeatureName(THE_TRIAL, "number of rows"),
    FeatureName(THE_TRIAL, "way of failing"),
)
DEPTH = 4
"""Depth of the decision tree on three features."""
_NUMBERS = re.compile(r"[0-9]+")


class Ending(NamedTuple):
    """How a trial ended, as an attacker sees it.

    Attributes:
        rows: Synthetic rows received; None if as many as requested, or if there is no table.
        way: What was wrong, without numbers; empty if the trial finished.
    """

    rows: int | None
    way: str


def ending(outcome: TrialEnd) -> Ending:
    """How a trial ended."""
    return Ending(outcome.rows, _NUMBERS.sub("", outcome.error))


class HowTrialsEnd:
    """Guesses membership from how a trial ended."""

    def check(self, game: GameView) -> None:
        """Accepts every game."""
        del game

    def feature_names(self, game: GameView) -> tuple[FeatureName, ...]:
        """The three features of an ending."""
        del game
        return FEATURES

    def features(self, table: pd.DataFrame, game: GameView) -> FloatArray:
        """The features of a trial that finished with this table."""
        del game
        return np.array([1.0, len(table), 0.0])

    def fit(self, features: FloatArray, member: BoolArray, *, seed: int) -> Scorer:
        """Trains a small decision tree."""
        from sklearn.tree import DecisionTreeClassifier

        tree = DecisionTreeClassifier(max_depth=DEPTH, random_state=seed).fit(features, member)
        column = list(tree.classes_).index(True)

        def score(features: FloatArray) -> FloatArray:
            scores: FloatArray = tree.predict_proba(features)[:, column]
            return scores

        return score


ENDINGS: Final = NamedAttack(TRIAL_OUTCOMES, HowTrialsEnd())
"""The attack under its name in results."""


def features_of_ending(outcome: TrialEnd, *, requested: int) -> FloatArray:
    """Features [3] of how a trial ended.

    Args:
        outcome: The trial.
        requested: Synthetic rows that it was asked for.

    Returns:
        Whether it finished; the number of rows (the number requested if there is no table); and a
        code for the way it failed (0 if it finished): trees do not need these codes in any order.
    """
    if outcome.status is TrialStatus.FINISHED:
        return np.array([1.0, requested, 0.0])
    seen = ending(outcome)
    code = 1 + zlib.crc32(seen.way.encode())
    return np.array([0.0, requested if seen.rows is None else seen.rows, code])


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
    seed = int(rng.integers(2**32))
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


PREFERENCE: Final = 0.2
"""An attack is selected only if its forecast exceeds that of the combination by this much.

The best of several forecasts is too large by chance, and the combination is the one whose score
changes least between the trials that it is fitted on and others (`reports/power/attacks.py`).
"""


_SURE: Final = 0.5
"""Separation of an attack that orders the fitting trials without an error."""


class FeatureSlice(NamedTuple):
    """An attack on tables and where its features lie in the vector of a trial.

    Attributes:
        attack: The attack.
        place: Where its features lie.
        left_out: Which of its features it does without; None for none.
    """

    attack: NamedAttack
    place: slice
    left_out: BoolArray | None = None

    def usable(self, ends: Sequence[StoredOutcome]) -> list[Trial]:
        """Trials that finished."""
        return [end.trial for end in ends if end.finished]

    def rows(self, outcomes: StoredOutcomes, trials: Sequence[Trial]) -> FeatureRows:
        """This attack's features of some finished trials, read when they are needed."""
        return outcomes.features(trials, self.place, left_out=self.left_out)


class EndingFeatures(NamedTuple):
    """The attack on how trials end.

    Attributes:
        requested: Synthetic rows that every trial was asked for.
        attack: The attack.
    """

    requested: int
    attack: NamedAttack = ENDINGS

    def usable(self, ends: Sequence[StoredOutcome]) -> list[Trial]:
        """Every trial."""
        return [end.trial for end in ends]

    def rows(self, outcomes: StoredOutcomes, trials: Sequence[Trial]) -> FeatureRows:
        """How each trial ended."""
        return np.array(
            [features_of_ending(outcomes[trial], requested=self.requested) for trial in trials]
        )


Features: TypeAlias = FeatureSlice | EndingFeatures
"""An attack and its features of a trial."""


class Contender(NamedTuple):
    """An attack that is fixed on some trials and not scored on others yet.

    Attributes:
        features: The attack and its features of a trial.
        fitting: The trials that it is fixed on.
        fitted: Its classifier and threshold.
        hypothesis: As in `Attacked`.
    """

    features: Features
    fitting: Part
    fitted: Fitted
    hypothesis: str

    @property
    def forecast(self) -> FittingScore:
        """Its forecast on the trials that it was fixed on."""
        return self.fitted.forecast


def feature_slices(audit: TwoWorldSpec) -> list[FeatureSlice]:
    """Every attack with the place of its features."""
    stops = [0, *accumulate(audit.widths)]
    return [
        FeatureSlice(named, slice(*ends))
        for named, ends in zip(audit.every_attack, pairwise(stops), strict=True)
    ]


def candidates(audit: TwoWorldSpec, settings: AuditSettings[TwoWorlds]) -> list[FeatureSlice]:
    """The attacks on membership that may be scored, and their combination if one is selected."""
    slices = feature_slices(audit)[: len(audit.attacks)]
    if len(slices) > 1 and settings.game.multiplicity is Multiplicity.SELECT:
        together = NamedAttack(COMBINED, Combined(audit.attacks, audit.widths[: len(slices)]))
        slices.append(FeatureSlice(together, slice(0, slices[-1].place.stop)))
    if not settings.game.ignore_bits:
        return slices
    return [part._replace(left_out=audit.last_bits[part.place]) for part in slices]


def member_of(trials: Sequence[Trial]) -> BoolArray:
    """Whether the world of each trial is "in"."""
    return np.array([trial.world is World.IN for trial in trials], dtype=np.bool_)


def gather(
    features: Features, outcomes: StoredOutcomes, ends: Sequence[StoredOutcome], *, least: int
) -> tuple[list[Trial], Part] | None:
    """Gathers the trials that an attack can use, and its features of them.

    Args:
        features: The attack.
        outcomes: Where their features are.
        ends: How the trials of one part of the split ended.
        least: Trials of each world that it needs.

    Returns:
        None if it can use too few.
    """
    usable = features.usable(ends)
    member = member_of(usable)
    if min(np.count_nonzero(member), np.count_nonzero(~member)) < least:
        return None
    return usable, Part(features.rows(outcomes, usable), member)


def contenders(
    audit: TwoWorldSpec,
    outcomes: StoredOutcomes,
    fitting: Sequence[Trial],
    settings: AuditSettings[TwoWorlds],
    claim: Claim,
    *,
    purpose: str,
) -> list[Contender]:
    """The attacks that are scored, one for each hypothesis, each fixed on the fitting part.

    If some trials of the fitting part failed, how trials end is attacked too. That adds no
    hypothesis: on the fitting part this attack replaces the one with the smallest forecast, if its
    own is larger. If one attack is selected, their combination is a further candidate, and only the
    candidate with the largest forecast is scored. The guess of a secret is a hypothesis of its own,
    in neither the selection nor the combination.

    Args:
        audit: The audit.
        outcomes: Outcomes of these trials.
        fitting: The trials of the fitting part.
        settings: How hypotheses are counted, and how thresholds are chosen.
        claim: The claim under audit.
        purpose: Names the random streams.

    Returns:
        Empty if too few trials of the fitting part finished and none of them failed.
    """
    ends = [outcomes[trial] for trial in fitting]

    def fix(features: Features, failed: FailedTrials) -> Contender | None:
        gathered = gather(features, outcomes, ends, least=MIN_FITTED)
        if gathered is None:
            return None
        name, part = features.attack.name, gathered[1]
        fitted = fit_attack(
            features.attack.attack,
            part,
            settings=settings,
            failed=failed,
            guarantee=guarantee_of(claim),
            rng=audit.stream(f"{purpose}/{name}").rng(),
        )
        return Contender(features, part, fitted, name)

    lost = Counter(end.trial.world for end in ends if end.status is not TrialStatus.FINISHED)
    failed = FailedTrials(lost[World.IN], lost[World.OUT])
    on_tables = [fix(features, failed) for features in candidates(audit, settings)]
    fixed = [contender for contender in on_tables if contender is not None]
    if any(failed):
        on_endings = fix(EndingFeatures(audit.game.view.n_rows), NONE_FAILED)
        assert on_endings is not None  # it uses every trial
        fixed = _add_endings(fixed, on_endings, audit, settings)
    # One hypothesis instead of many: the choice is made here, on trials that are not scored.
    if fixed and settings.game.multiplicity is Multiplicity.SELECT:
        fixed = [_select_contender(fixed)]
    if settings.game.secret is not None:
        guess = fix(feature_slices(audit)[-1], failed)
        fixed += [] if guess is None else [guess]
    return fixed


def _select_contender(fixed: Sequence[Contender]) -> Contender:
    """The candidate that is selected for scoring."""
    others = [contender for contender in fixed if contender.features.attack.name != COMBINED]
    together = [contender for contender in fixed if contender.features.attack.name == COMBINED]
    if not together:
        return max(others, key=lambda contender: contender.forecast)
    forecasts = [contender.forecast for contender in others]
    return [*others, *together][select(forecasts, together[0].forecast)]


def select(attacks: Sequence[FittingScore], combination: FittingScore) -> int:
    """Which candidate is scored: an attack only if it promises clearly more, or makes no error.

    The combination cannot be better than an attack without an error, whose features name the leak.

    Args:
        attacks: The forecasts of the attacks.
        combination: The forecast of their combination.

    Returns:
        The number of an attack, or the number of attacks for the combination.
    """
    best = max(range(len(attacks)), key=attacks.__getitem__)
    clearly = attacks[best].bound > combination.bound + PREFERENCE
    sure = [place for place, forecast in enumerate(attacks) if forecast.separation == _SURE]
    return best if clearly else sure[0] if sure else len(attacks)


def _add_endings(
    fixed: Sequence[Contender],
    endings: Contender,
    audit: TwoWorldSpec,
    settings: AuditSettings[TwoWorlds],
) -> list[Contender]:
    """The attacks, including the one on how trials end if its forecast earns it a place."""
    if not fixed:
        return [endings._replace(hypothesis=audit.attacks[0].name)]
    if settings.game.multiplicity is Multiplicity.SELECT:
        return [*fixed, endings]
    # It takes the place of another hypothesis, so their number, the correction, stays as it was.
    weakest = min(fixed, key=lambda contender: contender.forecast)
    if endings.forecast <= weakest.forecast:
        return list(fixed)
    seated = endings._replace(hypothesis=weakest.hypothesis)
    return [seated if contender is weakest else contender for contender in fixed]


class Attacked(NamedTuple):
    """One attack and its result.

    Attributes:
        attack: The attack and its name.
        trials: The trials that it scored, world "in" first: those that finished; for the attack on
            how trials end, all.
        scored: Their features and worlds, in this order.
        evaluation: Its errors and bounds.
        hypothesis: The attack whose share of the error probability it uses: itself, or the one that
            the attack on how trials end replaced.
        guessed_by: If several attacks made the bets of the sequential bound, the trials that each
            bet on; else empty.
    """

    attack: NamedAttack
    trials: Sequence[Trial]
    scored: Part
    evaluation: Evaluation
    hypothesis: str
    guessed_by: Mapping[str, int] = MappingProxyType({})


def attack_all(
    audit: TwoWorldSpec,
    outcomes: StoredOutcomes,
    role: Role,
    settings: AuditSettings[TwoWorlds],
    claim: Claim,
) -> list[Attacked]:
    """Runs the attacks on a role's trials.

    Args:
        audit: The audit.
        outcomes: All outcomes of the role.
        role: The role.
        settings: Its number of trials and how hypotheses are counted.
        claim: The claim under audit.

    Returns:
        Every attack that was scored: as many as there are hypotheses, chosen on the fitting part
        (`contenders`). Empty if too few trials finished and how they end was not attacked.

    Raises:
        AttackError: If an attack's scorer does not give one finite score per trial.
    """
    fitting, scored = plan_trials(audit, role, settings).parts
    ends = [outcomes[trial] for trial in scored]
    attacked = []
    # All are fixed, and at most one per hypothesis is left, before any trial is scored.
    for features, fitted_on, fitted, hypothesis in contenders(
        audit, outcomes, fitting, settings, claim, purpose=f"{role}/attack"
    ):
        gathered = gather(features, outcomes, ends, least=1)
        if gathered is None:  # trials of a single world cannot be scored
            continue
        usable, part = gathered
        failed = Counter(trial.world for trial in scored)
        failed.subtract(trial.world for trial in usable)
        evaluation = evaluate(
            fitted,
            SplitTrials(fitted_on, part, failed[World.IN], failed[World.OUT]),
            guarantee=guarantee_of(claim),
            confidence=settings.attack_confidence,
        )
        attacked.append(Attacked(features.attack, usable, part, evaluation, hypothesis))
    return attacked


def tables_suffice(
    audit: TwoWorldSpec, outcomes: StoredOutcomes, role: Role, settings: AuditSettings[TwoWorlds]
) -> bool:
    """Whether enough trials of each world and part finished for attacks on tables."""
    fitting, scored = plan_trials(audit, role, settings).parts
    for trials, least in ((fitting, MIN_FITTED), (scored, 1)):
        finished = Counter(trial.world for trial in trials if outcomes[trial].finished)
        if any(finished[world] < least for world in World):
            return False
    return True


def best(attacked: Sequence[Attacked]) -> Attacked:
    """The attack with the largest bound; ties by the larger AUC."""
    return max(attacked, key=lambda attack: (attack.evaluation.proved, attack.evaluation.auc))
