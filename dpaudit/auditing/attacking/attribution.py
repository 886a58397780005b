"""Which features carry an attack."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpaudit.auditing.attacking.evaluation import Evaluation
from dpaudit.auditing.attacking.parts import Part
from dpaudit.bounds import Direction, auc
from dpaudit.plugins.protocols import FeatureName
from dpaudit.results.leaks import in_order
from dpaudit.results.record import Leak

MEASURED = 64
"""Features, the most separating ones, whose importance is measured."""
REPEATS = 5
"""Permutations that an importance is the mean of."""


def attribute(
    evaluation: Evaluation,
    scored: Part,
    names: Sequence[FeatureName],
    *,
    most: int,
    rng: np.random.Generator,
) -> tuple[Leak, ...]:
    """Which features carry an attack: permutation importance on the scored trials.

    Importance is the loss of AUC when one feature is shuffled (Breiman 2001, section 10). Where
    features repeat each other the loss is about 0 for each of them: then, and among ties, those
    come first that separate the worlds best alone.

    Args:
        evaluation: The attack's result.
        scored: The scored trials.
        names: Names of the features.
        most: How many to return.
        rng: Shuffles.

    Returns:
        The features in the order of `in_order`; only ones that separate the worlds at all.
    """
    features, member = scored
    separation = np.array([abs(auc(column, member) - 0.5) for column in features.T])
    candidates = np.argsort(-separation, kind="stable")[:MEASURED]
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
        leaks.append(
            Leak(
                column=names[candidate].column,
                feature=names[candidate].feature,
                importance=importance,
                separation=round(float(separation[candidate]), 4),
            )
        )
    return tuple(in_order(leaks)[:most])
