"""The cells of a table that canaries are looked for in: values of columns, and of pairs of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Final

import numpy as np
import numpy.typing as npt

from dpaudit.model.column import Kind
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FloatArray

BINS: Final = 10
"""Equal bins that the bounds of a number are divided into, as query-based attacks do."""
MOST_MARGINALS: Final = 2_000
"""Marginals that are counted at most; of wider tables, pairs at equal distances in their list."""

Codes = npt.NDArray[np.int64]


def codes_of(values: FloatArray, schema: Schema) -> tuple[Codes, tuple[int, ...]]:
    """The cell of each value in its column.

    Args:
        values: Values [n, d], as `dpaudit.model.encoding.values_of_table` gives them.
        schema: The schema.

    Returns:
        Codes [n, d] from 0, and the number of cells of each column. Two cells of each are for
        missing values and for those that the schema does not name.
    """
    codes = np.empty(values.shape, dtype=np.int64)
    cells = []
    for place, column in enumerate(schema.columns):
        found = values[:, place]
        if column.kind.numeric:
            lower, upper = column.bounds
            whole = column.kind is Kind.INTEGER
            bins = int(min(BINS, upper - lower + 1)) if whole else BINS
            share = (np.clip(found, lower, upper) - lower) / (upper - lower + whole)
            missing = np.isnan(share)
            codes[:, place] = np.minimum(np.where(missing, 0.0, share) * bins, bins - 1)
            codes[missing, place] = bins
        else:
            bins = len(column.categories)
            codes[:, place] = np.where(found < 0, bins - found - 1, found)
        cells.append(bins + 2)
    return codes, tuple(cells)


def marginals_of(schema: Schema) -> list[tuple[int, ...]]:
    """The columns, then the pairs of columns, that are counted."""
    columns = len(schema.columns)
    pairs = list(combinations(range(columns), 2))
    left = max(0, MOST_MARGINALS - columns)
    if len(pairs) > left:
        pairs = [pairs[place * len(pairs) // left] for place in range(left)] if left else []
    return [*((place,) for place in range(columns)), *pairs]


def joint_codes(
    tables: tuple[Codes, ...], cells: tuple[int, ...], marginal: tuple[int, ...]
) -> Iterator[Codes]:
    """The cell of each record of each table in a marginal; shape (n,)."""
    for codes in tables:
        joint = codes[:, marginal[0]]
        for place in marginal[1:]:
            joint = joint * cells[place] + codes[:, place]
        yield joint
