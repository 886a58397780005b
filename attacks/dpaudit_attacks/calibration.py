"""From scores to calibrated log-odds.

J. Platt, "Probabilistic outputs for support vector machines" (1999): a logistic function of the
score, fitted to smoothed targets, so that it stays finite where scores separate the worlds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit, log_expit

from dpaudit.plugins.protocols import BoolArray, FloatArray

STEPS = 25
"""Newton steps; the loss is convex, and a few suffice."""
LEAST_SLOPE = 1e-3
"""Of scores that say nothing: they keep their order, and their log-odds are about 0."""
RIDGE = 1e-6


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
    design = np.column_stack([np.ones(len(scores)), (scores - centre) / spread])
    found = np.array([np.log((n_in + 1) / (n_out + 1)), 0.0])
    for _ in range(STEPS):
        p = expit(design @ found)
        slope = design.T @ (p - target) + RIDGE * found
        curve = (design * (p * (1 - p))[:, None]).T @ design + RIDGE * np.eye(2)
        step = np.linalg.solve(curve, slope)
        found -= step * min(1.0, 4.0 / max(np.abs(step).max(), 1e-300))
    raised = max(float(found[1]), LEAST_SLOPE)
    odds = found[0] + raised * design[:, 1]
    likelihood = log_expit(np.where(member, odds, -odds)).mean()
    shares = np.array([n_in, n_out]) / len(member)
    return Calibration(
        slope=raised / spread,
        intercept=float(found[0]) - raised * centre / spread,
        gain=float(likelihood - (shares * np.log(shares)).sum()),
    )
