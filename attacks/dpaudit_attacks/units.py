"""Joint facts of a unit with several rows, which no single row of it has."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import BoolArray, FeatureName, FloatArray

_SEQUENCES = "rows that follow each other as in the unit"
_SUMS = "values near the unit's sum"


def joint_names(schema: Schema) -> list[FeatureName]:
    """Names of the features; see `joint_values`."""
    numeric = [column.name for column in schema.columns if column.kind.numeric]
    return [
        *(FeatureName(name, _SEQUENCES) for name in (*schema.names, " & ".join(schema.names))),
        *(FeatureName(name, _SUMS) for name in numeric),
    ]


def joint_values(
    equal: Sequence[BoolArray],
    values: FloatArray,
    target: FloatArray,
    schema: Schema,
    bins: int,
) -> FloatArray:
    """Counts of sequences of the unit's rows and of its sums.

    Args:
        equal: For each row of the unit, where values of M tables equal its own [M, n, d].
        values: Values [M, n, d] of the tables.
        target: Values [k, d] of the unit.
        schema: Their schema.
        bins: A value is near a sum within half of one of so many bins of its column.

    Returns:
        Features [M, f]: how often two neighbouring rows equal two neighbouring rows of the unit, in
        each column and in all of them; and for each numeric column how many values are near the
        sum of the unit.
    """
    tables, _, columns = values.shape
    sequences = np.zeros((tables, columns + 1))
    for one, following in pairwise(equal):
        both = one[:, :-1] & following[:, 1:]
        sequences[:, :-1] += both.sum(axis=1)
        sequences[:, -1] += both.all(axis=2).sum(axis=1)
    sums = []
    for place, column in enumerate(schema.columns):
        if column.kind.numeric:
            lower, upper = column.bounds
            total = np.nansum(target[:, place])
            near = np.abs(values[:, :, place] - total) <= (upper - lower) / (2 * bins)
            sums.append(near.sum(axis=1))
    return np.column_stack([sequences, *sums]).astype(np.float64)
