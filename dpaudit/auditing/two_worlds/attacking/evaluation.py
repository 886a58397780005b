"""Evaluates a fixed attack on the scored trials, and finds the features that carry it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpaudit.auditing.two_worlds.attacking.fitting import Fitted, Part, SplitTrials, score
from dpaudit.bounds import (
    CoinGuesses,
    Counts,
    Direction,
    Guarantee,
    Threshold,
    auc,
    aucs,
    count_errors,
    count_guesses,
)
from dpaudit.bounds.table import FIXED, Observed, ValidBound, proved
from dpaudit.plugins.protocols import FeatureName, FloatArray, Scorer
from dpaudit.results.leaks import in_order
from dpaudit.results.record import Leak


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
