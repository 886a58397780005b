"""Dependence of every two columns, in a row and across rows, whether or not they correlate."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import combinations, product
from typing import Final

import numpy as np
import numpy.typing as npt

from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FeatureName, FloatArray, IntArray
from dpaudit_attacks.columns import FAR, settled
from dpaudit_attacks.form.view import Beside, FeatureGroup, numeric_names, other_names
from dpaudit_attacks.rules import n_log_n

GROUPS: Final = 4
"""Groups of a column's values; missing and unnamed ones are a further group."""
LATER_GROUPS: Final = 2
"""The same where rows are further apart than one: seven matrix products, which must be small."""
MOST_PAIRS: Final = 1024
MOST_LATER: Final = MOST_PAIRS // 7
SAME_ROW: Final = "mutual information"
NEXT_ROW: Final = "mutual information of the first with the second one row later"
LAGS: Final = range(2, 9)
"""How many rows later dependence is looked for, beyond the next row."""
LATER_ROW: Final = (
    f"largest mutual information of the first with the second {LAGS[0]} to {LAGS[-1]} rows later"
)
Members = npt.NDArray[np.float32]
"""1 where a row is in a group, else 0."""
Pairs = npt.NDArray[np.intp]


@lru_cache(maxsize=8)
def _pairs(columns: int) -> Pairs:
    """Pairs of columns [2, pairs], neighbours first; always the same."""
    return _neighbours_first(combinations(range(columns), 2))


@lru_cache(maxsize=8)
def _ordered_pairs(columns: int) -> Pairs:
    """Pairs in both orders, a column with itself first, then neighbours; always the same."""
    return _neighbours_first(product(range(columns), range(columns)))


def _neighbours_first(every: Iterable[tuple[int, int]]) -> Pairs:
    nearest = sorted(every, key=lambda pair: abs(pair[1] - pair[0]))[:MOST_PAIRS]
    return np.array(nearest, dtype=np.intp).reshape(-1, 2).T


def dependence_names(schema: Schema) -> list[FeatureName]:
    """Names of the features; see `dependence_values`."""
    columns = numeric_names(schema) + other_names(schema)
    return [
        FeatureName(f"{columns[a]} & {columns[b]}", label)
        for label, pairs in (
            (SAME_ROW, _pairs(len(columns))),
            (NEXT_ROW, _ordered_pairs(len(columns))),
            (LATER_ROW, _ordered_pairs(len(columns))[:, :MOST_LATER]),
        )
        for a, b in pairs.T
    ]


def dependence_values(view: Beside) -> FloatArray:
    """Mutual information, in nats, of pairs of columns in a row, and in a row and a later one.

    Numbers are in four groups between the quartiles of their own synthetic table; categories in
    four groups of neighbours. Of many columns 1,024 pairs are taken, those of neighbours first; the
    same of a row and the next, where each order is a pair and so is a column with itself. The first
    146 of these pairs have the largest mutual information with a row 2 to 8 later too, of halves.

    Args:
        view: M tables.

    Returns:
        Features [M, pairs].
    """
    member, coarse = _members(view, GROUPS), _members(view, LATER_GROUPS)
    columns = len(view.schema.columns)
    ordered = _ordered_pairs(columns)
    nearest = ordered[:, :MOST_LATER]

    def later(of: Members, lag: int, pairs: Pairs) -> FloatArray:
        return _information(of[..., : max(view.n_rows - lag, 0)], of[..., lag:], columns, pairs)

    return np.concatenate(
        [
            _information(member, member, columns, _pairs(columns)),
            later(member, 1, ordered),
            np.max([later(coarse, lag, nearest) for lag in LAGS], axis=0),
        ],
        axis=1,
    )


DEPENDENCE = FeatureGroup(dependence_names, dependence_values)


def _members(view: Beside, parts: int) -> Members:
    """Which rows are in each group of each column [M, columns * groups, n]."""
    groups = groups_of(view, parts)
    # Hardly any table has a value in the last group.
    member = groups[:, :, None] == np.arange(groups.max(initial=0) + 1)[:, None]
    found: Members = member.astype(np.float32).reshape(len(groups), -1, view.n_rows)
    return found


def _information(first: Members, second: Members, columns: int, pairs: Pairs) -> FloatArray:
    """Mutual information [M, pairs] of the groups of columns [M, columns * groups, n]."""
    n_tables, size, n_rows = first.shape
    shape = n_tables, columns, size // max(columns, 1), columns, size // max(columns, 1)
    # Whole numbers, so exact.
    counts = (first @ second.swapaxes(1, 2)).astype(np.intp).reshape(shape)
    a, b = pairs
    table = n_log_n(n_rows)
    found = table[counts[:, a, :, b, :]].sum(axis=(-2, -1)) + table[n_rows]
    # A row is in one group of each column, so the counts of one column follow from any other.
    of_first, of_second = counts[:, :, :, 0].sum(axis=-1), counts[:, 0].sum(axis=1)
    found -= table[of_first].sum(axis=-1).T[a] + table[of_second].sum(axis=-1).T[b]
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
