"""F_hist: the distribution of each column over public bins (see `groundhog` for the paper).

Bins come from the schema and keep their identity: sorting counts, or binning by one world's data,
are the two ways in which published versions of this feature set went wrong.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd

from dpaudit.protocols import FeatureName, FloatArray
from dpaudit.schema import Column, Schema
from dpaudit_attacks.columns import bin_slots, category_slots, edges, numbers


def names(schema: Schema, *, bins: int) -> tuple[FeatureName, ...]:
    """Names of the features; see `values`."""
    return tuple(
        FeatureName(column.name, feature)
        for column in schema.columns
        for feature in (_bin_names(column, bins) if column.kind.numeric else _shares(column))
        + ["share of missing"] * column.missing
    )


def values(table: pd.DataFrame, schema: Schema, *, bins: int) -> FloatArray:
    """Proportions of rows, column by column.

    A number: below the bounds, in each of `bins` equal bins over them, above them. A category:
    each one in schema order, then all others together. Then, where values may be missing, their
    share.

    Args:
        table: A canonical table [n].
        schema: Its schema.
        bins: Bins of a numeric column.

    Returns:
        Features [f].
    """
    counts = []
    for column in schema.columns:
        if column.kind.numeric:
            slots = bin_slots(numbers(table, [column])[0], edges(column, bins))
            n_slots = bins + 3
        else:
            slots = category_slots(column, table[column.name])
            n_slots = len(column.categories) + 2
        tally = np.bincount(slots, minlength=n_slots)
        counts.append(tally if column.missing else tally[:-1])
    return np.concatenate(counts) / len(table)


def _bin_names(column: Column, bins: int) -> list[str]:
    cuts = [f"{edge:.12g}" for edge in edges(column, bins)]
    inner = [f"share in [{a}, {b})" for a, b in pairwise(cuts[:-1])]
    last = f"share in [{cuts[-2]}, {cuts[-1]}]"
    return [f"share below {cuts[0]}", *inner, last, f"share above {cuts[-1]}"]


def _shares(column: Column) -> list[str]:
    return [f"share of {value!r}" for value in column.categories] + ["share of other categories"]
