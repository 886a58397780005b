"""Which values are missing: how many, where, and which together."""

from __future__ import annotations

from itertools import combinations, islice
from typing import Final

import numpy as np

from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FeatureName, FloatArray
from dpaudit_attacks.form.repetition import WHOLE
from dpaudit_attacks.form.view import Beside, FeatureGroup, flat, labelled

MOST_PAIRS: Final = 256
PER_COLUMN = ("drift of missing values over the rows", "missing values in neighbouring rows")
ROWS = ("missing values", *(f"rows with {k} missing values" for k in range(4)))


def _columns(schema: Schema) -> list[str]:
    """Names of the columns that may be missing: numeric ones first, as in a stack."""
    by_kind = sorted(schema.columns, key=lambda column: not column.kind.numeric)
    return [column.name for column in by_kind if column.missing]


def names(schema: Schema) -> list[FeatureName]:
    """Names of the features; none if no value may be missing. See `values`."""
    columns = _columns(schema)
    if not columns:
        return []
    pairs = islice(combinations(columns, 2), MOST_PAIRS)
    return [
        *labelled(columns, PER_COLUMN),
        *(FeatureName(WHOLE, row) for row in ROWS),
        *(FeatureName(f"{a} & {b}", "rows where both are missing") for a, b in pairs),
    ]


def values(view: Beside) -> FloatArray:
    """Counts of missing values in rows, in neighbouring rows and in pairs of columns.

    Of many columns the first 256 pairs are counted.

    Args:
        view: M tables.

    Returns:
        Features [M, f].
    """
    numbers = [c for c in view.schema.columns if c.kind.numeric]
    others = [c for c in view.schema.columns if not c.kind.numeric]
    may = [i for i, c in enumerate(numbers) if c.missing]
    codes = [i for i, c in enumerate(others) if c.missing]
    absent = np.array([len(others[i].categories) + 1 for i in codes]).reshape(-1, 1)
    gone = np.concatenate([view.missing[:, may], view.stack.slots[:, codes] == absent], axis=1)
    if not gone.shape[1]:
        return np.empty((view.n_tables, 0))
    count = gone.sum(axis=1)
    weights = gone.astype(np.float64)
    together = weights @ weights.swapaxes(1, 2)
    first, second = np.triu_indices(gone.shape[1], k=1)
    columns = [
        weights @ (np.linspace(-1.0, 1.0, view.n_rows) / view.n_rows),
        (gone[..., 1:] & gone[..., :-1]).sum(axis=-1),
    ]
    rows = [count.sum(axis=-1), *((count == k).sum(axis=-1) for k in range(4))]
    pairs = together[:, first[:MOST_PAIRS], second[:MOST_PAIRS]]
    return np.concatenate([flat(columns), np.column_stack(rows), pairs], axis=1)


GROUP = FeatureGroup(names, values)
