"""Which features carry an attack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpaudit.auditing.two_worlds.attacking.evaluation import Evaluation
from dpaudit.auditing.two_worlds.attacking.fitting import score
from dpaudit.auditing.two_worlds.attacking.parts import Part
from dpaudit.bounds import Direction, auc, aucs
from dpaudit.plugins.protocols import FeatureName, FloatArray
from dpaudit.results.leaks import in_order
from dpaudit.results.record import Leak

MEASURED = 64
"""Number of features whose importance is measured, the most separating ones."""
REPEATS = 5
"""Number of permutations; an importance is their mean."""
MOST_TRIALS = 8192
"""Scored trials used for an explanation; of more, this many, evenly spaced."""

BLOCK = 2**17
"""Feature values ranked at once, so memory does not grow with their number."""


@dataclass(frozen=True)
class _Shuffled:
    """Stacked copies of some feature vectors, each with one feature permuted.

    Attributes:
        features: The vectors [n, f].
        place: Place of the permuted feature.
        values: Its values [copies, n] in each copy.
    """

    features: FloatArray
    place: int
    values: FloatArray

    def __len__(self) -> int:
        return self.values.size

    def __getitem__(self, rows: slice) -> FloatArray:
        chosen = np.arange(len(self))[rows]
        found = self.features[chosen % len(self.features)]
        found[:, self.place] = self.values.ravel()[chosen]
        return found


def attribute(
    evaluation: Evaluation,
    scored: Part,
    names: Sequence[FeatureName],
    *,
    most: int,
    rng: np.random.Generator,
) -> tuple[Leak, ...]:
    """Which features carry an attack: permutation importance on the scored trials.

    Importance is the loss of AUC when one feature is shuffled (Breiman 2001, section 10). If
    features are redundant, the loss is about 0 for each of them: then, and among ties, features
    that separate the worlds best alone come first. Features that a scorer combines (it names them
    as `combined`) may separate nothing alone.

    Args:
        evaluation: The attack's result.
        scored: The scored trials.
        names: Names of the features.
        most: How many to return.
        rng: Shuffles.

    Returns:
        The features in the order of `in_order`: only those that separate the worlds or are combined
        with others.
    """
    step = -(-len(scored.member) // MOST_TRIALS)
    member, original = scored.member[::step], evaluation.scores[::step]
    features = scored.features[::step]
    at_once = max(1, BLOCK // len(member))
    separation = np.concatenate(
        [
            np.abs(aucs(features[:, start : start + at_once], member) - 0.5)
            for start in range(0, features.shape[1], at_once)
        ]
    )
    candidates = np.argsort(-separation, kind="stable")[:MEASURED]
    candidates = candidates[separation[candidates] > 0]
    combined = np.asarray(getattr(evaluation.scorer, "combined", ()), dtype=np.intp)
    candidates = np.concatenate([candidates, combined[~np.isin(combined, candidates)]])
    sign = 1.0 if evaluation.threshold.direction is Direction.HIGHER else -1.0
    baseline = auc(sign * original, member)
    leaks = []
    for candidate in candidates:
        values = np.array([rng.permutation(features[:, candidate]) for _ in range(REPEATS)])
        scores = sign * score(evaluation.scorer, _Shuffled(features, int(candidate), values))
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
