"""From scores to calibrated log-odds.

Platt 1999: a logistic function of the
score, fitted to smoothed targets, so that it stays finite where scores separate the worlds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpaudit.plugins.protocols import BoolArray, FloatArray
from dpaudit_attacks.logistic import fit_log_odds

LEAST_SLOPE = 1e-3
"""Of scores that say nothing: they keep their order, and their log-odds are about 0."""
RIDGE = 1e-3
"""Hardly any penalty: smoothed targets keep the slope finite."""


class Calibration(NamedTuple):
    """Log-odds = intercept + slope * score.

    Attributes:
        slope: Positive.
        intercept: Log-odds at score 0.
        gain: Mean log-likelihood, in nats for each trial, beyond that of guessing without a score.
    """

    slope: float
    intercept: float
    gain: float

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Log-odds [n] of scores [n]."""
        return self.intercept + self.slope * scores


def calibrate(scores: FloatArray, member: BoolArray) -> Calibration:
    """Fits log-odds to scores of trials that did not train what scored them.

    Args:
        scores: Scores [n], finite; larger means "in".
        member: Memberships [n], of both worlds.
    """
    n_in, n_out = int(member.sum()), int((~member).sum())
    target = np.where(member, (n_in + 1) / (n_in + 2), 1 / (n_out + 2))
    spread = float(scores.std()) or 1.0
    centre = float(scores.mean())
    standard = (scores - centre) / spread
    line = fit_log_odds(standard[:, None], target, penalty=RIDGE)
    raised = max(float(line.weights[0]), LEAST_SLOPE)
    odds = line.intercept + raised * standard
    likelihood = -np.logaddexp(0.0, np.where(member, -odds, odds)).mean()
    shares = np.array([n_in, n_out]) / len(member)
    return Calibration(
        slope=raised / spread,
        intercept=line.intercept - raised * centre / spread,
        gain=float(likelihood - (shares * np.log(shares)).sum()),
    )
