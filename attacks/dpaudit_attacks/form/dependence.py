"""Dependence of every two columns, in a row and across rows, whether or not they correlate."""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations, product
from typing import Final

import numpy as np

from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FeatureName, FloatArray, IntArray
from dpaudit_attacks.columns import FAR, settled
from dpaudit_attacks.form.view import Beside, FeatureGroup, numeric_names, other_names
from dpaudit_attacks.rules import n_log_n

GROUPS: Final = 4
"""Groups of a column's values; missing and unnamed ones are a further group."""
MOST_PAIRS: Final = 1024
SAME_ROW: Final = "mutual information"
NEXT_ROW: Final = "mutual information of the first with the second one row later"
Members = np.ndarray[tuple[int, ...], np.dtype[np.float32]]
"""1 where a row is in a group, else 0."""


@lru_cache(maxsize=8)
def _pairs(columns: int) -> tuple[tuple[int, int], ...]:
    """Pairs of columns, neighbours first; always the same."""
    every = combinations(range(columns), 2)
    return tuple(sorted(every, key=lambda pair: pair[1] - pair[0])[:MOST_PAIRS])


@lru_cache(maxsize=8)
def _ordered_pairs(columns: int) -> tuple[tuple[int, int], ...]:
    """Pairs in both orders, a column with itself first, then neighbours; always the same."""
    every = product(range(columns), range(columns))
    return tuple(sorted(every, key=lambda pair: abs(pair[1] - pair[0]))[:MOST_PAIRS])


def dependence_names(schema: Schema) -> list[FeatureName]:
    """Names of the features; see `dependence_values`."""
    columns = numeric_names(schema) + other_names(schema)
    return [
        FeatureName(f"{columns[a]} & {columns[b]}", label)
        for label, pairs in ((SAME_ROW, _pairs), (NEXT_ROW, _ordered_pairs))
        for a, b in pairs(len(columns))
    ]


def dependence_values(view: Beside) -> FloatArray:
    """Mutual information, in nats, of pairs of columns in a row, and in a row and the next.

    Numbers are in four groups between the quartiles of their own synthetic table; categories in
    four groups of neighbours. Of many columns 1,024 pairs are taken, those of neighbours first; the
    same of a row and the next, where each order is a pair and so is a column with itself.

    Args:
        view: M tables.

    Returns:
        Features [M, pairs].
    """
    groups = groups_of(view, GROUPS)
    n_tables, columns, n_rows = groups.shape
    member = (groups[..., None] == np.arange(GROUPS + 1)).swapaxes(2, 3)
    member = member.reshape(n_tables, columns * (GROUPS + 1), n_rows).astype(np.float32)
    return np.concatenate(
        [
            _information(member, member, _pairs(columns)),
            _information(member[..., :-1], member[..., 1:], _ordered_pairs(columns)),
        ],
        axis=1,
    )


DEPENDENCE = FeatureGroup(dependence_names, dependence_values)


def _information(first: Members, second: Members, pairs: tuple[tuple[int, int], ...]) -> FloatArray:
    """Mutual information [M, pairs] of the groups of two columns [M, columns * groups, n]."""
    n_tables, size, n_rows = first.shape
    shape = n_tables, size // (GROUPS + 1), GROUPS + 1, size // (GROUPS + 1), GROUPS + 1
    counts = (first @ second.swapaxes(1, 2)).astype(np.intp)  # whole numbers, so exact
    a, b = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
    cells = counts.reshape(shape)[:, a, :, b, :]
    table = n_log_n(n_rows)
    found = table[cells].sum(axis=(-2, -1)) + table[n_rows]
    found -= table[cells.sum(axis=-1)].sum(axis=-1) + table[cells.sum(axis=-2)].sum(axis=-1)
    return settled(np.maximum(found / max(n_rows, 1), 0.0)).T


def groups_of(view: Beside, parts: int) -> IntArray:
    """The group of each cell [M, d, n], numeric columns first.

    Numbers are in groups between quantiles of their own table, categories with their neighbours if
    there are more than `parts`; missing and unnamed ones are in group `parts`.
    """
    ordered = np.nan_to_num(view.stack.ordered, nan=FAR)
    last = np.maximum(view.present - 1, 0)[..., None]
    numbers = np.zeros(view.stack.numbers.shape, dtype=np.int64)
    for part in range(1, parts):
        cut = np.take_along_axis(ordered, (last * part + parts // 2) // parts, axis=-1)
        numbers += view.stack.numbers >= cut
    sizes = [len(c.categories) for c in view.schema.columns if not c.kind.numeric]
    named = np.array(sizes, dtype=np.int64).reshape(-1, 1)
    categories = view.stack.slots * parts // np.maximum(named, parts)
    return np.concatenate(
        [
            np.where(view.missing, parts, numbers),
            np.where(view.stack.slots >= named, parts, categories),
        ],
        axis=1,
    )
