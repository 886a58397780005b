"""Numbers that are the mean of those in the rows before and after: exact interpolations."""

from __future__ import annotations

from typing import Final

import numpy as np

from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FeatureName, FloatArray
from dpaudit_attacks.form.numbers import decimals
from dpaudit_attacks.form.relations import CLOSE
from dpaudit_attacks.form.view import Beside, FeatureGroup, flat, labelled, numeric_names

LABELS: Final = (
    "rows at the mean of the rows before and after",
    "rows at the rounded mean of the rows before and after",
)


def between_names(schema: Schema) -> list[FeatureName]:
    """Names of the features; see `between_values`."""
    return labelled(numeric_names(schema), LABELS)


def between_values(view: Beside) -> FloatArray:
    """Counts of numbers that are the mean of two different ones, in the rows before and after.

    Args:
        view: M tables.

    Returns:
        Features [M, f]: for each numeric column the exact means, and those that are at most half a
        unit of the last decimal of the target's value away.
    """
    numbers = view.stack.numbers
    n = view.n_rows
    before, middle, after = numbers[..., : max(n - 2, 0)], numbers[..., 1 : n - 1], numbers[..., 2:]
    exact = CLOSE * view.widths
    apart = np.where(before == after, np.inf, np.abs(middle - (before + after) / 2))
    unit = 0.1 ** decimals(view.target.numbers[0])
    return flat([(apart <= reach).sum(axis=-1) for reach in (exact, unit / 2 + exact)])


BETWEEN = FeatureGroup(between_names, between_values, of_target=True)
