"""Which real rows can be compared whatever was done about repeated rows before the audit.

People who prepare tables often remove repeated rows: from one table, from each by itself, or those
of the hold-out that are also in train. Then chance alone no longer decides which table a repeated
row stands in, and frequent rows end up in one of them. A synthetic table that knows nothing of
train has frequent rows, too, and would seem to know who was in it. Rows that occur once, and would
hardly occur again, stand where the split put them, however the tables were prepared.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dpaudit.plugins.protocols import BoolArray, FloatArray, IntArray
from dpaudit.released_data.row_keys import Keys, column_keys

MOST_REPEATS: Final = 0.01
"""Other rows that are expected to equal a comparable row, at most.

Removing repeats changes the odds that a row is in train by about this share, and no more.
"""


def comparable_rows(values: FloatArray) -> BoolArray:
    """Which rows occur once, and would hardly occur again by chance.

    A row is expected to occur as often as there are rows that equal it in all columns but one,
    times the probability that two rows have the same value there, whichever column gives most. It
    does not matter which row is in which table: if train and hold-out are exchangeable, so are
    these rows of them.

    Args:
        values: All real rows [n, d], as `dpaudit.model.encoding.values_of_table` gives them.

    Returns:
        Whether each is comparable; shape (n,).
    """
    keys = column_keys(values)
    whole: Keys = keys.sum(axis=1, dtype=np.uint64)
    expected = _others_equal(whole).astype(np.float64)
    for column in keys.T:
        same_value = _others_equal(column).mean() / max(1, len(values) - 1)
        expected = np.maximum(expected, _others_equal(whole - column) * same_value)
    return expected <= MOST_REPEATS


def _others_equal(keys: Keys) -> IntArray:
    """How many other rows have the key of each; shape (n,)."""
    _, place, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return counts[place] - 1
