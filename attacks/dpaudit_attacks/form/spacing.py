"""Distinct values of numbers, and order statistics other than the smallest and the largest."""

from __future__ import annotations

from typing import Final

import numpy as np

from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FeatureName, FloatArray, IntArray
from dpaudit_attacks.form.repetition import longest_run
from dpaudit_attacks.form.view import Beside, FeatureGroup, flat, labelled, numeric_names

QUANTILES: Final = (0.05, 0.1, 0.25, 0.75, 0.9, 0.95)
LABELS = (
    "distinct values",
    "values that occur once",
    "most copies of a value",
    "smallest gap between values",
    "largest gap between values",
    "second smallest",
    "third smallest",
    "third largest",
    "second largest",
    *(f"{quantile:g} quantile" for quantile in QUANTILES),
    "gap above the smallest",
    "gap above the second smallest",
    "gap below the second largest",
    "gap below the largest",
    "distance of the quartiles",
    "values at or below the lower bound",
    "values at or above the upper bound",
)


def names(schema: Schema) -> list[FeatureName]:
    """Names of the features; see `values`."""
    return labelled(numeric_names(schema), LABELS)


def values(view: Beside) -> FloatArray:
    """Facts about the sorted numbers of each column, in widths of its range.

    Of a column with fewer than three numbers the order statistics repeat; 0 if it has none.

    Args:
        view: M tables.

    Returns:
        Features [M, f].
    """
    ordered = view.stack.ordered / view.widths
    last = np.maximum(view.present - 1, 0)

    def at(place: IntArray) -> FloatArray:
        inside = np.clip(place, 0, last)
        found = np.take_along_axis(ordered, inside[..., None], axis=-1)[..., 0]
        return np.where(view.present == 0, 0.0, found)

    gaps = np.diff(ordered, axis=-1)
    positive = gaps > 0  # not where a number is missing
    there = np.arange(view.n_rows) < view.present[..., None]
    new = np.concatenate([there[..., :1], positive], axis=-1)
    final = np.concatenate([positive, there[..., -1:]], axis=-1)
    final |= np.arange(view.n_rows) == last[..., None]
    repeated = np.where(there[..., 1:], positive, True)
    low, high = at(last // 4), at(last - last // 4)
    lower = np.array([c.bounds.lower for c in view.schema.columns if c.kind.numeric])
    bottom = lower.reshape(-1, 1)
    return flat(
        [
            new.sum(axis=-1),
            (new & final & there).sum(axis=-1),
            longest_run(repeated),
            np.where(positive, gaps, 1.0).min(axis=-1, initial=1.0),
            np.where(positive, gaps, 0.0).max(axis=-1, initial=0.0),
            at(last * 0 + 1),
            at(last * 0 + 2),
            at(last - 2),
            at(last - 1),
            *(at(np.rint(last * quantile).astype(np.int64)) for quantile in QUANTILES),
            at(last * 0 + 1) - at(last * 0),
            at(last * 0 + 2) - at(last * 0 + 1),
            at(last - 1) - at(last - 2),
            at(last) - at(last - 1),
            high - low,
            (view.stack.numbers <= bottom).sum(axis=-1),
            (view.stack.numbers >= bottom + view.widths).sum(axis=-1),
        ]
    )


GROUP = FeatureGroup(names, values)
