"""Dependence of every two columns, whether or not they correlate."""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from typing import Final

import numpy as np

from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FeatureName, FloatArray, IntArray
from dpaudit_attacks.columns import FAR, settled
from dpaudit_attacks.form.view import Beside, FeatureGroup, numeric_names, other_names
from dpaudit_attacks.rules import n_log_n

GROUPS: Final = 4
"""Groups of a column's values; missing ones are a further group."""
MOST_PAIRS: Final = 1024


@lru_cache(maxsize=8)
def _pairs(columns: int) -> tuple[tuple[int, int], ...]:
    """Pairs of columns, neighbours first; always the same."""
    every = combinations(range(columns), 2)
    return tuple(sorted(every, key=lambda pair: pair[1] - pair[0])[:MOST_PAIRS])


def dependence_names(schema: Schema) -> list[FeatureName]:
    """Names of the features; see `dependence_values`."""
    columns = numeric_names(schema) + other_names(schema)
    return [
        FeatureName(f"{columns[a]} & {columns[b]}", "mutual information")
        for a, b in _pairs(len(columns))
    ]


def dependence_values(view: Beside) -> FloatArray:
    """Mutual information, in nats, of pairs of columns.

    Numbers are in four groups between the quartiles of their own synthetic table; categories in
    four groups of neighbours. Of many columns 1,024 pairs are taken, those of neighbours first.

    Args:
        view: M tables.

    Returns:
        Features [M, pairs].
    """
    groups = np.concatenate([_quarters(view), _categories(view)], axis=1)
    n_tables, columns, n_rows = groups.shape
    member = (groups[..., None] == np.arange(GROUPS + 1)).swapaxes(2, 3)
    member = member.reshape(n_tables, columns * (GROUPS + 1), n_rows).astype(np.float32)
    counts = (member @ member.swapaxes(1, 2)).astype(np.intp)  # whole numbers, so exact
    alone = np.diagonal(counts, axis1=1, axis2=2).reshape(n_tables, columns, GROUPS + 1)
    cells = counts.reshape(n_tables, columns, GROUPS + 1, columns, GROUPS + 1)
    first, second = np.array(_pairs(columns), dtype=np.intp).reshape(-1, 2).T
    table = n_log_n(n_rows)
    joint = table[cells[:, first, :, second, :]].sum(axis=(-2, -1)).T
    single = table[alone].sum(axis=-1)
    total = table[n_rows]
    found = (joint - single[:, first] - single[:, second] + total) / n_rows
    return settled(np.maximum(found, 0.0))


DEPENDENCE = FeatureGroup(dependence_names, dependence_values)


def _quarters(view: Beside) -> IntArray:
    ordered = np.nan_to_num(view.stack.ordered, nan=FAR)
    last = np.maximum(view.present - 1, 0)[..., None]
    groups = np.zeros(view.stack.numbers.shape, dtype=np.int64)
    for quarter in (1, 2, 3):
        cut = np.take_along_axis(ordered, (last * quarter + 2) // 4, axis=-1)
        groups += view.stack.numbers >= cut
    return np.where(view.missing, GROUPS, groups)


def _categories(view: Beside) -> IntArray:
    sizes = [len(c.categories) + 1 for c in view.schema.columns if not c.kind.numeric]
    named = np.array(sizes, dtype=np.int64).reshape(-1, 1)  # one more for unnamed ones
    groups = view.stack.slots * GROUPS // np.maximum(named, GROUPS)
    return np.where(view.stack.slots >= named, GROUPS, groups)
