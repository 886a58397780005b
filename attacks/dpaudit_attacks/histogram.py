"""F_hist: the distribution of each column over public bins (see `groundhog` for the paper).

Bins come from the schema and keep their identity. Published versions of this feature set went wrong
in two ways: by sorting counts, and by binning with the data of one world.
"""

from __future__ import annotations

import numpy as np

from dpaudit.model.column import Column
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FeatureName, FloatArray
from dpaudit_attacks.columns import (
    ColumnStack,
    bin_counts,
    bin_names,
    category_names,
    limits,
    slot_counts,
)


def names(schema: Schema, *, bins: int) -> tuple[FeatureName, ...]:
    """Names of the features; see `values`."""
    return tuple(
        FeatureName(column.name, feature)
        for column in schema.columns
        for feature in _shares(column, schema, bins) + ["share of missing"] * column.missing
    )


def values(stack: ColumnStack, schema: Schema, *, bins: int) -> FloatArray:
    """Proportions of rows, column by column.

    For a number: below the bounds, in each of `bins` equal bins between them, above them. For a
    category: each one in schema order, then all others together. Then, if values may be missing,
    the share of missing ones.

    Args:
        stack: M tables.
        schema: Their schema.
        bins: Number of bins of a numeric column.

    Returns:
        Features [M, f].
    """
    numeric, categorical = iter(stack.ordered.swapaxes(0, 1)), iter(stack.slots.swapaxes(0, 1))
    parts = []
    for column in schema.columns:
        if column.kind.numeric:
            counts = bin_counts(next(numeric), limits(column, bins))
        else:
            counts = slot_counts(next(categorical), len(column.categories) + 2)
        parts.append(counts if column.missing else counts[:, :-1])
    n_rows = stack.numbers.shape[-1]
    return np.asarray(np.concatenate(parts, axis=1) / n_rows, dtype=np.float64)


def _shares(column: Column, schema: Schema, bins: int) -> list[str]:
    if column.kind.numeric:
        return [f"share {place}" for place in bin_names(column, schema, bins)]
    known = [f"share of {name}" for name in category_names(column, schema)]
    return [*known, "share of other categories"]
