"""F_naive: summary statistics of each column (see `groundhog` for the paper)."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpaudit.protocols import FeatureName, FloatArray, IntArray
from dpaudit.schema import Schema
from dpaudit_attacks.columns import category_slots, numbers, numeric_columns

SPREADS = ("std", "variance")
_SPREAD_NAME = {"std": "standard deviation", "variance": "variance"}


def names(schema: Schema, *, spread: str) -> tuple[FeatureName, ...]:
    """Names of the features; see `values`."""
    numeric = ["min", "max", "mean", "median", _SPREAD_NAME[spread]]
    categorical = ["most frequent category", "least frequent category", "distinct categories"]
    return tuple(
        FeatureName(column.name, feature)
        for column in schema.columns
        for feature in (numeric if column.kind.numeric else categorical)
        + ["share missing"] * column.missing
    )


def values(table: pd.DataFrame, schema: Schema, *, spread: str) -> FloatArray:
    """Summary statistics, column by column.

    A number: minimum, maximum, mean, median and spread (dividing by the count) of the values
    present; 0 if there are none. A category: codes of the most and of the least frequent one that
    occurs (the lowest code among ties; unnamed ones share the code after the last; -1 if none
    occurs) and how many occur. Then, where values may be missing, their share.

    Args:
        table: A canonical table [n].
        schema: Its schema.
        spread: "std" as in the paper's text, or "variance" as in its published code.

    Returns:
        Features [f].
    """
    numeric = iter(_numeric(numbers(table, numeric_columns(schema)), spread=spread))
    parts = []
    for column in schema.columns:
        if column.kind.numeric:
            summary = next(numeric)
        else:
            slots = category_slots(column, table[column.name])
            summary = _categorical(slots, n_categories=len(column.categories))
        parts.append(summary if column.missing else summary[:-1])
    return np.concatenate(parts)


def _numeric(stacked: FloatArray, *, spread: str) -> FloatArray:
    """Summaries [d, 6] of numbers [d, n]; the last is the share missing."""
    missing = np.isnan(stacked)
    present = stacked.shape[1] - missing.sum(axis=1)
    some = np.maximum(present, 1)
    ordered = np.sort(stacked, axis=1)  # missing values go last
    at = np.arange(len(stacked))
    middle = (ordered[at, (some - 1) // 2] + ordered[at, some // 2]) / 2
    mean = np.where(missing, 0.0, stacked).sum(axis=1) / some
    deviations = np.where(missing, 0.0, stacked - mean[:, None])
    variance = np.einsum("dn,dn->d", deviations, deviations) / some
    summary = np.column_stack(
        [
            ordered[:, 0],
            ordered[at, some - 1],
            mean,
            middle,
            np.sqrt(variance) if spread == "std" else variance,
            missing.mean(axis=1),
        ]
    )
    summary[present == 0, :-1] = 0.0
    return summary


def _categorical(slots: IntArray, *, n_categories: int) -> FloatArray:
    """Summary [4] of category slots [n]; the last is the share missing."""
    counts = np.bincount(slots, minlength=n_categories + 2)
    missing = counts[-1] / len(slots)
    seen = counts[:-1]
    occurring = np.flatnonzero(seen)
    if not len(occurring):
        return np.array([-1.0, -1.0, 0.0, missing])
    least = occurring[seen[occurring].argmin()]
    return np.array([seen.argmax(), least, len(occurring), missing], dtype=np.float64)
