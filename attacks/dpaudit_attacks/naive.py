"""F_naive: summary statistics of each column (see `groundhog` for the paper)."""

from __future__ import annotations

import numpy as np

from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FeatureName, FloatArray, IntArray
from dpaudit_attacks.columns import ColumnStack, slot_counts

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


def values(stack: ColumnStack, schema: Schema, *, spread: str) -> FloatArray:
    """Summary statistics, column by column.

    For a number: minimum, maximum, mean, median and spread (dividing by the count) of the values
    present; 0 if there are none. For a category: codes of the most and of the least frequent one
    that occurs (the lowest code among ties; unnamed ones share the code after the last; -1 if none
    occurs) and how many occur. Then, if values may be missing, the share of missing ones.

    Args:
        stack: M tables.
        schema: Their schema.
        spread: "std" as in the paper's text, or "variance" as in its published code.

    Returns:
        Features [M, f].
    """
    numeric = iter(_numeric(stack, spread=spread).swapaxes(0, 1))
    categorical = iter(stack.slots.swapaxes(0, 1))
    parts = []
    for column in schema.columns:
        if column.kind.numeric:
            summary = next(numeric)
        else:
            summary = _categorical(slot_counts(next(categorical), len(column.categories) + 2))
        parts.append(summary if column.missing else summary[:, :-1])
    return np.concatenate(parts, axis=1)


def _numeric(stack: ColumnStack, *, spread: str) -> FloatArray:
    """Summaries [M, numeric columns, 6]; the last is the share missing."""
    numbers, ordered = stack.numbers, stack.ordered
    missing = np.isnan(numbers)
    absent = missing.sum(axis=-1)
    present = numbers.shape[-1] - absent
    some = np.maximum(present, 1)

    def at(place: IntArray) -> FloatArray:
        return np.take_along_axis(ordered, place[..., None], axis=-1)[..., 0]

    mean = np.where(missing, 0.0, numbers).sum(axis=-1) / some
    deviations = numbers - mean[..., None]
    deviations[missing] = 0.0
    variance = np.einsum("mdn,mdn->md", deviations, deviations) / some
    summary = np.stack(
        [
            ordered[..., 0],
            at(some - 1),
            mean,
            (at((some - 1) // 2) + at(some // 2)) / 2,
            np.sqrt(variance) if spread == "std" else variance,
            absent / numbers.shape[-1],
        ],
        axis=-1,
    )
    summary[present == 0, :-1] = 0.0
    return summary


def _categorical(counts: IntArray) -> FloatArray:
    """Summary [M, 4] of the counts [M, slots] of a column; the last is the share missing."""
    seen = counts[:, :-1]
    occurring = seen > 0
    rarest = np.where(occurring, seen, np.iinfo(np.int64).max).argmin(axis=1)
    none = ~occurring.any(axis=1)
    return np.column_stack(
        [
            np.where(none, -1, seen.argmax(axis=1)),
            np.where(none, -1, rarest),
            occurring.sum(axis=1),
            counts[:, -1] / counts.sum(axis=1),
        ]
    )
