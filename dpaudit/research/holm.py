"""Holm's step-down test, for statements about several generators at once.

For whoever compares generators (docs/statistics.md); no study under `reports/` does so yet.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpaudit.bounds._checks import check_confidence
from dpaudit.errors import SettingsError


def holm(p_values: Sequence[float], *, confidence: float) -> list[bool]:
    """Decides which of several claims are refuted, by Holm's step-down test.

    For statements about several generators at once ("these three break their claims"): one
    p-value per generator, already corrected for the attacks inside it (the smallest p-value
    times their number). Where only the largest bound of one generator is reported, use
    `dpaudit.bounds.Hypotheses`.

    Theorem (Holm 1979): with α = 1 − confidence, refuting in ascending order of the p-values
    while the i-th of m is at most α/(m − i + 1) refutes a true claim with probability at most
    α, however the p-values depend on one another. It refutes whatever Bonferroni does.

    Args:
        p_values: Valid p-values, one per claim, in [0, 1]; at least one.
        confidence: Probability that every refuted claim is false, at least; in (0, 1).

    Returns:
        For each claim, in the order given, whether it is refuted.

    Raises:
        SettingsError: If p_values is empty or holds a number outside [0, 1], or the confidence is
            out of range.
    """
    check_confidence(confidence)
    values = np.asarray(p_values, dtype=np.float64)
    if values.ndim != 1 or values.size == 0:
        raise SettingsError(
            f"`p_values` has shape {values.shape}; give a list with at least one p-value"
        )
    wrong = values[~((values >= 0.0) & (values <= 1.0))]
    if wrong.size:
        raise SettingsError(f"`p_values` holds {wrong[0]}; give numbers from 0 to 1")
    order = np.argsort(values, kind="stable")
    passes = values[order] <= (1.0 - confidence) / np.arange(values.size, 0, -1)
    refuted = np.zeros(values.size, dtype=np.bool_)
    refuted[order] = np.logical_and.accumulate(passes)
    return [bool(flag) for flag in refuted]
