"""Logistic regression by Newton's method, and the calibration of any scores by it.

With an L2 penalty, for few trials and few features. Implemented here because it is fitted hundreds
of times per audit: scikit-learn takes several milliseconds for each fit, mostly for checks and for
waking BLAS threads. Scores are calibrated to log-odds by a logistic function of the score, fitted
to smoothed targets, so that it stays finite where scores separate the worlds (Platt 1999).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpaudit.plugins.protocols import BoolArray, FloatArray

STEPS = 12
CLOSE = 1e-6
"""Largest last step of a coefficient."""
LONGEST = 4.0
"""Largest step of a coefficient, so the first steps do not overshoot."""


class LogOdds(NamedTuple):
    """Log-odds = intercept + weights · features.

    Attributes:
        intercept: Log-odds when all features are 0.
        weights: One for each feature [f].
    """

    intercept: float
    weights: FloatArray


def fit_log_odds(features: FloatArray, target: FloatArray, *, penalty: float) -> LogOdds:
    """Minimises the log loss plus `penalty` / 2 times the squared weights.

    Args:
        features: Features [n, f], of about unit scale.
        target: Probabilities [n] of membership that are fitted: 0 or 1, or smoothed.
        penalty: Positive; the intercept is not penalised.
    """
    n, f = features.shape
    design = np.column_stack([np.ones(n), features])
    ridge = np.full(f + 1, penalty)
    ridge[0] = 1e-6  # none to speak of, but the system stays regular
    found = np.zeros(f + 1)
    for _ in range(STEPS):
        p = 0.5 + 0.5 * np.tanh(design @ found / 2)  # the logistic function
        slope = design.T @ (p - target) + ridge * found
        curve = (design * (p * (1 - p))[:, None]).T @ design
        curve[np.diag_indices(f + 1)] += ridge
        step = np.linalg.solve(curve, slope)
        longest = float(np.abs(step).max())
        found -= step * min(1.0, LONGEST / max(longest, CLOSE))
        if longest < CLOSE:
            break
    return LogOdds(float(found[0]), found[1:])


LEAST_SLOPE = 1e-3
"""Slope for uninformative scores: they keep their order, and their log-odds are about 0."""
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
    """Fits log-odds to scores of trials that their scorer was not trained on.

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
