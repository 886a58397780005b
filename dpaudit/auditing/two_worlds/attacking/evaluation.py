"""Evaluates a fixed attack on the scored trials."""

from __future__ import annotations

from typing import NamedTuple

from dpaudit.auditing.two_worlds.attacking.fitting import Fitted, score
from dpaudit.auditing.two_worlds.attacking.parts import SplitTrials
from dpaudit.bounds import (
    CoinGuesses,
    Counts,
    Guarantee,
    Threshold,
    auc,
    count_errors,
    count_guesses,
)
from dpaudit.bounds.table import FIXED, Observed, ValidBound, proved
from dpaudit.plugins.protocols import FloatArray, Scorer


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
