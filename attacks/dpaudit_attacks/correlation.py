"""F_corr: correlations of every two columns (see `groundhog` for the paper)."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from dpaudit.model.encoding import encode_values, layout
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FeatureName, FloatArray
from dpaudit_attacks.columns import FAR, category_names


def names(schema: Schema) -> tuple[FeatureName, ...]:
    """Names of the features; see `values`."""
    labels = []  # (column, part of it) for each encoded column
    for column, _, indicator in layout(schema):
        if column.kind.numeric:
            labels.append((column.name, ""))
        else:
            known = category_names(column, schema)
            labels += [(column.name, f"{column.name}={name}") for name in known]
        if indicator is not None or (column.missing and not column.kind.numeric):
            labels.append((column.name, f"{column.name} missing"))
    return tuple(_name(*first, *second) for first, second in combinations(labels, 2))


def values(tables: FloatArray, schema: Schema) -> FloatArray:
    """Correlations of every two columns of the encoded tables, with one-hot categories.

    Args:
        tables: Values [M, n, d], as `dpaudit.model.encoding.values_of` gives them.
        schema: Their schema.

    Returns:
        The upper triangle, row by row, of each correlation matrix [M, f]; 0 where a column is
        constant.
    """
    matrix = np.clip(encode_values(tables, schema), -FAR, FAR)
    constant = matrix.max(axis=1) == matrix.min(axis=1)
    matrix -= matrix.mean(axis=1, keepdims=True)
    norms = np.sqrt(np.einsum("mnw,mnw->mw", matrix, matrix))
    # The mean of a constant may have a rounding error, which would correlate.
    norms[constant | (norms == 0)] = np.inf
    matrix /= norms[:, None]
    first, second = np.triu_indices(matrix.shape[2], k=1)
    return np.clip((matrix.swapaxes(1, 2) @ matrix)[:, first, second], -1.0, 1.0)


def _name(column: str, part: str, other_column: str, other_part: str) -> FeatureName:
    columns = column if column == other_column else f"{column} & {other_column}"
    if not part and not other_part:
        return FeatureName(columns, "correlation")
    return FeatureName(
        columns, f"correlation of {part or column} with {other_part or other_column}"
    )
