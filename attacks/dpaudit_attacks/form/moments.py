"""Moments of numbers and of their transforms, beyond mean and standard deviation."""

from __future__ import annotations

from typing import Final

import numpy as np

from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FeatureName, FloatArray
from dpaudit_attacks.columns import settled
from dpaudit_attacks.form.view import Beside, FeatureGroup, flat, labelled, numeric_names

LABELS: Final = (
    "skewness",
    "kurtosis",
    "mean square",
    "mean logarithm",
    "mean distance to the target's value",
)
_LEAST: Final = 1e-6
"""Added before taking logarithms, in widths of the range."""


def moments_names(schema: Schema) -> list[FeatureName]:
    """Names of the features; see `moments_values`."""
    return labelled(numeric_names(schema), LABELS)


def moments_values(view: Beside) -> FloatArray:
    """Moments of each column's numbers, as distances from the lower bound in widths of the range.

    Args:
        view: M tables.

    Returns:
        Features [M, f]: third and fourth standardised moments (0 of a constant), mean square, mean
        logarithm, and mean distance to the target's value (0 if it is missing).
    """
    lower = np.array([c.bounds.lower for c in view.schema.columns if c.kind.numeric])
    numbers = (view.stack.ordered - lower.reshape(-1, 1)) / view.widths
    absent = np.isnan(numbers)
    present = np.maximum(view.present, 1)

    def mean(values: FloatArray) -> FloatArray:
        found: FloatArray = np.where(absent, 0.0, values).sum(axis=-1) / present
        return found

    centred = numbers - mean(numbers)[..., None]
    spread = np.sqrt(mean(centred**2))
    unit = centred / np.where(spread > 1e-9, spread, np.inf)[..., None]
    target = (view.target.numbers - lower.reshape(-1, 1)) / view.widths
    apart = np.where(np.isnan(target), 0.0, np.abs(numbers - target))
    cubes = unit * unit * unit
    found = [
        mean(cubes),
        mean(cubes * unit),
        mean(numbers**2),
        mean(np.log(np.abs(numbers) + _LEAST)),
        mean(apart),
    ]
    return flat([settled(one) for one in found])


MOMENTS = FeatureGroup(moments_names, moments_values, of_target=True)
