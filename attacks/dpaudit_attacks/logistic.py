"""Logistic regression with an L2 penalty by Newton's method, for few trials and few features.

Written out because it is fitted hundreds of times an audit: scikit-learn's takes several
milliseconds for each, most of them spent on checks and on waking BLAS threads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpaudit.plugins.protocols import FloatArray

STEPS = 12
CLOSE = 1e-6
"""Largest last step of a coefficient."""
LONGEST = 4.0
"""Largest step of a coefficient, so that a first step from far away does not overshoot."""


class LogOdds(NamedTuple):
    """Log-odds = intercept + weights · features.

    Attributes:
        intercept: Of features that are all 0.
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
