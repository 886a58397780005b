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
    auc,
    choose_threshold,
    clopper_pearson,
    count_errors,
    exact,
)
from dpaudit.protocols import Attack, BoolArray, FeatureName, FloatArray, Scorer

FOLDS = 5
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


class Evaluation(NamedTuple):
    """What one attack achieved on the scored trials.

    Attributes:
        counts: Its errors; a failed trial counts as an error in either world.
        threshold: Threshold and direction, chosen on the fitting part.
        exact: Buehler bound on epsilon at the confidence asked for.
        clopper_pearson: Clopper-Pearson bound, for comparison with published audits.
        auc: Area under the ROC curve of the scored trials that finished.
        scores: Membership scores [n] of the scored trials that finished.
        scorer: The trained classifier.
    """

    counts: Counts
    threshold: Threshold
    exact: float
    clopper_pearson: float
    auc: float
    scores: FloatArray
    scorer: Scorer


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
    parts: dict[bool, Part] = {}
    failed = {True: 0, False: 0}
    for fitting in (True, False):
        features, member = [], []
        for is_member, outcomes, mask in zip((True, False), worlds, masks, strict=True):
            chosen = [
                outcome for outcome, fits in zip(outcomes, mask, strict=True) if fits == fitting
            ]
            present = [outcome for outcome in chosen if outcome is not None]
            if len(present) < (MIN_FITTED if fitting else 1):
                return None
            if not fitting:
                failed[is_member] = len(chosen) - len(present)
            features += present
            member += [is_member] * len(present)
        parts[fitting] = Part(np.vstack(features), np.array(member, dtype=np.bool_))
    return Trials(parts[True], parts[False], failed_in=failed[True], failed_out=failed[False])


def evaluate(
    attack: Attack, trials: Trials, *, delta: float, confidence: float, rng: np.random.Generator
) -> Evaluation:
    """Plays one attack on the trials.

    Args:
        attack: Its classifier is trained on the fitting part alone.
        trials: The trials in two parts.
        delta: Delta of the claim.
        confidence: One-sided confidence of this attack's bounds.
        rng: Seeds the classifier and the folds.

    Returns:
        Errors, bounds and scores.
    """
    fitting, scored = trials.fitting, trials.scored
    threshold = choose_threshold(
        _cross_validated(attack, fitting, rng), fitting.member, delta=delta, confidence=confidence
    )
    scorer = attack.fit(fitting.features, fitting.member, seed=_seed(rng))
    scores = scorer(scored.features)
    errors = count_errors(scores, scored.member, threshold)
    counts = Counts(
        false_negatives=errors.false_negatives + trials.failed_in,
        false_positives=errors.false_positives + trials.failed_out,
        n_in=errors.n_in + trials.failed_in,
        n_out=errors.n_out + trials.failed_out,
    )
    return Evaluation(
        counts=counts,
        threshold=threshold,
        exact=exact(counts, delta=delta, confidence=confidence),
        clopper_pearson=clopper_pearson(counts, delta=delta, confidence=confidence),
        auc=auc(scores, scored.member),
        scores=scores,
        scorer=scorer,
    )


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
        scores[held_out] = scorer(part.features[held_out])
    return scores


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**32))
