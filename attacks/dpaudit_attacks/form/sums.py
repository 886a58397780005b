"""Sums and differences of columns that are whole where the numbers themselves are not.

Rows that share their noise, or are scaled to a total, show it there.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dpaudit.model.column import Kind
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FeatureName, FloatArray
from dpaudit_attacks.form.numbers import whole
from dpaudit_attacks.form.relations import joined, places
from dpaudit_attacks.form.view import Beside, FeatureGroup, flat, labelled

MOST_PAIRS: Final = 64
MOST_TRIPLES: Final = 32
"""Most combinations of columns, those of neighbours first."""
PAIR: Final = ("rows where only the sum is whole", "rows where only the difference is whole")


def sums_names(schema: Schema) -> list[FeatureName]:
    """Names of the features; see `sums_values`."""
    columns = [column.name for column in schema.columns if column.kind is Kind.CONTINUOUS]
    pairs, triples = joined(columns, 2, MOST_PAIRS), joined(columns, 3, MOST_TRIPLES)
    return labelled(pairs, PAIR) + labelled(triples, PAIR[:1])


def sums_values(view: Beside) -> FloatArray:
    """Counts of rows where continuous columns add to a whole number and none of them is whole.

    Args:
        view: M tables.

    Returns:
        Features [M, f]: for every two columns rows where the sum is whole, and the difference; for
        every three those where the sum is. With a whole number a sum would be whole just where the
        other one is, so integers are left out.
    """
    numeric = [column.kind for column in view.schema.columns if column.kind.numeric]
    continuous = np.array([kind is Kind.CONTINUOUS for kind in numeric], dtype=np.bool_)
    numbers = view.stack.numbers[:, continuous]
    broken = ~whole(numbers)
    a, b = places(numbers.shape[1], 2, MOST_PAIRS)
    both = broken[:, a] & broken[:, b]
    x, y = numbers[:, a], numbers[:, b]
    pairs = [(whole(value) & both).sum(axis=-1) for value in (x + y, x - y)]
    i, j, k = places(numbers.shape[1], 3, MOST_TRIPLES)
    every = whole(numbers[:, i] + numbers[:, j] + numbers[:, k])
    every &= broken[:, i] & broken[:, j] & broken[:, k]
    return np.concatenate([flat(pairs), every.sum(axis=-1)], axis=1)


SUMS = FeatureGroup(sums_names, sums_values)
