"""From features of trials to the errors of one attack: fit, choose a threshold, score once.

The trials of each world are split by a seeded shuffle before anything is looked at. Classifier,
threshold and direction come from the fitting part alone (threshold and direction by
cross-validation inside it); the scored part is scored once. Counting on trials that helped to
choose the threshold breaks the confidence level.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dpaudit.bounds import (
    Counts,
    Direction,
    Threshold,
    ThresholdRule,
    auc,
    choose_threshold,
    clopper_pearson,
    count_errors,
    exact,
)
from dpaudit.errors import AttackError
from dpaudit.plugins.protocols import Attack, BoolArray, FeatureName, FloatArray, Scorer

FOLDS = 5
HELD_OUT_SHARE = 1 / 3
"""Of the fitting part, where a hold-out chooses the threshold (400 + 200 in published audits)."""
MIN_FITTED = 4
"""Finished trials of each world that the fitting part needs."""
EXPLAINED = 64
"""Features, the most separating ones, whose importance is measured."""
REPEATS = 5
"""Permutations that an importance is the mean of."""


class Part(NamedTuple):
    """Trials of both worlds in one part of the split: features [n, f] and membership [n]."""

    features: FloatArray
    member: BoolArray


class Trials(NamedTuple):
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


class Fitted(NamedTuple):
    """An attack whose classifier, threshold and direction are fixed.

    Attributes:
        scorer: The trained classifier.
        threshold: Threshold and direction.
        counts: Its errors on the trials that chose its threshold: optimistic.
        promise: The Clopper-Pearson bound and the AUC that it reached on the trials that chose its
            threshold: optimistic, good for choosing among attacks and for nothing else.
    """

    scorer: Scorer
    threshold: Threshold
    counts: Counts
    promise: tuple[float, float]


class Evaluation(NamedTuple):
    """What one attack achieved on the scored trials.

    Attributes:
        counts: Its errors; a failed trial counts as an error in either world.
        threshold: Threshold and direction, fixed before.
        exact: Buehler bound on epsilon at the confidence asked for; None where trials were counted
            that a fixed-n bound does not cover (a sequential audit that stopped early).
        clopper_pearson: Clopper-Pearson bound, for comparison with published audits; None likewise.
        sequential: Bound that is valid whenever one looks; None unless the audit was sequential.
        auc: Area under the ROC curve of the scored trials that finished.
        scores: Membership scores [n] of the scored trials that finished.
        scorer: The trained classifier.
    """

    counts: Counts
    threshold: Threshold
    exact: float | None
    clopper_pearson: float | None
    sequential: float | None
    auc: float
    scores: FloatArray
    scorer: Scorer

    @property
    def proved(self) -> float:
        """The largest of the bounds that may decide a verdict."""
        return max(self.exact or 0.0, self.sequential or 0.0)


class Leak(NamedTuple):
    """A feature that carries the attack.

    Attributes:
        name: The feature.
        importance: Mean loss of AUC when it is shuffled among the scored trials; 0 where other
            features say the same.
        separation: |AUC - 1/2| of the feature alone.
    """

    name: FeatureName
    importance: float
    separation: float


def fitting_mask(n: int, n_fitting: int, rng: np.random.Generator) -> BoolArray:
    """A random choice [n] of the trials of one world that form the fitting part."""
    mask = np.zeros(n, dtype=np.bool_)
    mask[rng.permutation(n)[:n_fitting]] = True
    return mask


def arrange(
    worlds: Sequence[Sequence[FloatArray | None]], masks: Sequence[BoolArray]
) -> Trials | None:
    """Sorts outcomes into the two parts.

    Args:
        worlds: Features of the trials of world "in", then of "out", by trial number; None where a
            trial failed.
        masks: For each world, which trials are in the fitting part.

    Returns:
        The parts; None if too few trials finished to fit and score an attack.
    """
    fitting = gather(worlds, masks, fitting=True)
    scored = gather(worlds, masks, fitting=False)
    if fitting is None or scored is None:
        return None
    failed_in, failed_out = (
        sum(outcome is None and not fits for outcome, fits in zip(outcomes, mask, strict=True))
        for outcomes, mask in zip(worlds, masks, strict=True)
    )
    return Trials(fitting, scored, failed_in=failed_in, failed_out=failed_out)


def gather(
    worlds: Sequence[Sequence[FloatArray | None]], masks: Sequence[BoolArray], *, fitting: bool
) -> Part | None:
    """One part of the split; None if it has too few finished trials of a world.

    Args:
        worlds: As for `arrange`.
        masks: As for `arrange`.
        fitting: Which part.

    Returns:
        The finished trials, world "in" first.
    """
    features: list[FloatArray] = []
    member: list[bool] = []
    for is_member, outcomes, mask in zip((True, False), worlds, masks, strict=True):
        chosen = [outcome for outcome, fits in zip(outcomes, mask, strict=True) if fits == fitting]
        present = [outcome for outcome in chosen if outcome is not None]
        if len(present) < (MIN_FITTED if fitting else 1):
            return None
        features += present
        member += [is_member] * len(present)
    return Part(np.vstack(features), np.array(member, dtype=np.bool_))


def fit_attack(
    attack: Attack,
    fitting: Part,
    *,
    rule: ThresholdRule,
    delta: float,
    confidence: float,
    rng: np.random.Generator,
) -> Fitted:
    """Trains an attack and fixes its threshold, on trials that are never scored.

    Args:
        attack: The attack.
        fitting: The trials to learn from.
        rule: Where the threshold is chosen.
        delta: Delta of the claim.
        confidence: One-sided confidence of the bound to come.
        rng: Seeds the classifier and splits the trials.

    Returns:
        The attack, ready to guess.

    Raises:
        AttackError: If its scorer does not give one finite score per trial.
    """
    if rule is ThresholdRule.HOLD_OUT:
        held_out = _held_out(fitting.member, rng)
        scorer = attack.fit(fitting.features[~held_out], fitting.member[~held_out], seed=_seed(rng))
        member = fitting.member[held_out]
        scores = score(scorer, fitting.features[held_out])
    else:
        member = fitting.member
        scores = _cross_validated(attack, fitting, rng)
        scorer = attack.fit(fitting.features, member, seed=_seed(rng))
    threshold = choose_threshold(scores, member, delta=delta, confidence=confidence)
    counts = count_errors(scores, member, threshold)
    promise = clopper_pearson(*counts, delta=delta, confidence=confidence)
    return Fitted(scorer, threshold, counts, (promise, abs(auc(scores, member) - 0.5)))


def evaluate(fitted: Fitted, trials: Trials, *, delta: float, confidence: float) -> Evaluation:
    """Scores the scored trials once and bounds epsilon.

    Args:
        fitted: The attack, fixed on the fitting part.
        trials: The trials in two parts.
        delta: Delta of the claim.
        confidence: One-sided confidence of this attack's bounds.

    Returns:
        Errors, bounds and scores.

    Raises:
        AttackError: If the scorer does not give one finite score per trial.
    """
    scores = score(fitted.scorer, trials.scored.features)
    errors = count_errors(scores, trials.scored.member, fitted.threshold)
    counts = Counts(
        false_negatives=errors.false_negatives + trials.failed_in,
        false_positives=errors.false_positives + trials.failed_out,
        n_in=errors.n_in + trials.failed_in,
        n_out=errors.n_out + trials.failed_out,
    )
    return Evaluation(
        counts=counts,
        threshold=fitted.threshold,
        exact=exact(*counts, delta=delta, confidence=confidence),
        clopper_pearson=clopper_pearson(*counts, delta=delta, confidence=confidence),
        sequential=None,
        auc=auc(scores, trials.scored.member),
        scores=scores,
        scorer=fitted.scorer,
    )


def score(scorer: Scorer, features: FloatArray) -> FloatArray:
    """Scores [n] of feature vectors [n, f].

    Raises:
        AttackError: If they are not one finite number per vector.
    """
    scores = np.asarray(scorer(features), dtype=np.float64)
    if scores.shape != (len(features),) or not np.isfinite(scores).all():
        raise AttackError("an attack's scorer must give one finite score per trial")
    return scores


def explain(
    evaluation: Evaluation,
    scored: Part,
    names: Sequence[FeatureName],
    *,
    most: int,
    rng: np.random.Generator,
) -> list[Leak]:
    """Which features carry an attack: permutation importance on the scored trials.

    Importance is the loss of AUC when one feature is shuffled (Breiman 2001, section 10). Where
    features repeat each other the loss is 0 for each of them, so ties are ordered by how well the
    feature separates the worlds alone.

    Args:
        evaluation: The attack's result.
        scored: The scored trials.
        names: Names of the features.
        most: How many to return.
        rng: Shuffles.

    Returns:
        The features, most important first; only ones that separate the worlds at all.
    """
    features, member = scored
    separation = np.array([abs(auc(column, member) - 0.5) for column in features.T])
    candidates = np.argsort(-separation, kind="stable")[:EXPLAINED]
    candidates = candidates[separation[candidates] > 0]
    sign = 1.0 if evaluation.threshold.direction is Direction.HIGHER else -1.0
    baseline = auc(sign * evaluation.scores, member)
    leaks = []
    for candidate in candidates:
        shuffled = np.tile(features, (REPEATS, 1, 1))
        for repeat in shuffled:
            repeat[:, candidate] = rng.permutation(repeat[:, candidate])
        scores = sign * evaluation.scorer(shuffled.reshape(-1, features.shape[1]))
        losses = [baseline - auc(part, member) for part in scores.reshape(REPEATS, -1)]
        importance = max(0.0, round(float(np.mean(losses)), 4))
        leaks.append(Leak(names[candidate], importance, round(float(separation[candidate]), 4)))
    leaks.sort(key=lambda leak: (-leak.importance, -leak.separation))
    return leaks[:most]


def _cross_validated(attack: Attack, part: Part, rng: np.random.Generator) -> FloatArray:
    """Scores [n] of the fitting part, each from a classifier that did not see that trial."""
    from sklearn.model_selection import StratifiedKFold

    folds = min(FOLDS, int(part.member.sum()), int((~part.member).sum()))
    splitter = StratifiedKFold(n_splits=folds, shuffle=True, random_state=_seed(rng))
    scores = np.empty(len(part.member), dtype=np.float64)
    for train, held_out in splitter.split(part.features, part.member):
        scorer = attack.fit(part.features[train], part.member[train], seed=_seed(rng))
        scores[held_out] = score(scorer, part.features[held_out])
    return scores


def _held_out(member: BoolArray, rng: np.random.Generator) -> BoolArray:
    """A third of the trials of each world, at random."""
    held_out = np.zeros(len(member), dtype=np.bool_)
    for world in (True, False):
        own = rng.permutation(np.flatnonzero(member == world))
        held_out[own[: max(1, round(HELD_OUT_SHARE * len(own)))]] = True
    return held_out


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**32))
