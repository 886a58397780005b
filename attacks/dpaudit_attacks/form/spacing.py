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

    def at(*places: IntArray) -> list[FloatArray]:
        inside = np.minimum(np.maximum(np.stack(places, axis=-1), 0), last[..., None])
        found = np.take_along_axis(ordered, inside, axis=-1)
        return list(np.moveaxis(np.where(view.present[..., None] == 0, 0.0, found), -1, 0))

    first = np.zeros_like(last)
    lowest, second, third = at(first, first + 1, first + 2)
    highest, next_highest, third_highest = at(last, last - 1, last - 2)
    low, high = at(last // 4, last - last // 4)
    quantiles = at(*(np.rint(last * quantile).astype(np.int64) for quantile in QUANTILES))
    gaps = np.diff(ordered, axis=-1)
    positive = gaps > 0  # not where a number is missing
    there = np.arange(view.n_rows) < view.present[..., None]
    new = np.concatenate([there[..., :1], positive], axis=-1)
    final = np.concatenate([positive, there[..., -1:]], axis=-1)
    final |= np.arange(view.n_rows) == last[..., None]
    repeated = np.where(there[..., 1:], positive, True)
    lower = np.array([c.bounds.lower for c in view.schema.columns if c.kind.numeric])
    bottom = lower.reshape(-1, 1)
    return flat(
        [
            new.sum(axis=-1),
            (new & final & there).sum(axis=-1),
            longest_run(repeated),
            np.where(positive, gaps, 1.0).min(axis=-1, initial=1.0),
            np.where(positive, gaps, 0.0).max(axis=-1, initial=0.0),
            second,
            third,
            third_highest,
            next_highest,
            *quantiles,
            second - lowest,
            third - second,
            next_highest - third_highest,
            highest - next_highest,
            high - low,
            (view.stack.numbers <= bottom).sum(axis=-1),
            (view.stack.numbers >= bottom + view.widths).sum(axis=-1),
        ]
    )


GROUP = FeatureGroup(names, values)
