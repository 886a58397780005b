"""Dependence of columns, in a row and across rows, whether or not they correlate."""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from typing import Final

import numpy as np
import numpy.typing as npt

from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FeatureName, FloatArray, IntArray
from dpaudit_attacks.columns import FAR, round_sums, slot_counts
from dpaudit_attacks.form.relations import MOST_TRIPLES, joined, places
from dpaudit_attacks.form.view import FeatureGroup, TableView, labelled, numeric_names, other_names
from dpaudit_attacks.screening import n_log_n

GROUPS: Final = 4
"""Groups of a column's values; missing and unnamed values are a further group."""
LATER_GROUPS: Final = 2
"""Groups for rows more than one apart: seven matrix products, which must be small."""
MOST_PAIRS: Final = 1024
MOST_LATER: Final = MOST_PAIRS // 7
SAME_ROW: Final = "mutual information"
NEXT_ROW: Final = "mutual information of the first with the second one row later"
LAGS: Final = range(2, 9)
"""Numbers of rows between dependent rows that are searched, beyond the next row."""
LATER_ROW: Final = (
    f"largest mutual information of the first with the second {LAGS[0]} to {LAGS[-1]} rows later"
)
Members = npt.NDArray[np.float32]
"""1 where a row is in a group, else 0."""
Pairs = np.ndarray[tuple[int, ...], np.dtype[np.intp]]


@lru_cache(maxsize=8)
def _ordered_pairs(columns: int) -> Pairs:
    """Pairs of columns in both orders: a column with itself first, then neighbours."""
    pairs = product(range(columns), range(columns))
    nearest = sorted(pairs, key=lambda pair: abs(pair[1] - pair[0]))[:MOST_PAIRS]
    return np.array(nearest, dtype=np.intp).reshape(-1, 2).T


def dependence_names(schema: Schema) -> list[FeatureName]:
    """Names of the features; see `dependence_values`."""
    columns = numeric_names(schema) + other_names(schema)
    return [
        FeatureName(f"{columns[a]} & {columns[b]}", label)
        for label, pairs in (
            (SAME_ROW, places(len(columns), 2, MOST_PAIRS)),
            (NEXT_ROW, _ordered_pairs(len(columns))),
            (LATER_ROW, _ordered_pairs(len(columns))[:, :MOST_LATER]),
        )
        for a, b in pairs.T
    ]


def dependence_values(view: TableView) -> FloatArray:
    """Mutual information, in nats, of pairs of columns in a row, and in a row and a later one.

    Numbers are grouped by the quartiles of their own synthetic table, categories into four groups
    of neighbours. At most 1,024 pairs of columns are used, neighbours first. For a row and the next
    row, both orders of a pair count, and a column with itself. For the first 146 of these pairs
    there is also the largest mutual information with a row 2 to 8 later, by halves.

    Args:
        view: M tables.

    Returns:
        Features [M, pairs].
    """
    member, coarse = _members(view, GROUPS), _members(view, LATER_GROUPS)
    columns = len(view.schema.columns)
    ordered = _ordered_pairs(columns)
    nearest = ordered[:, :MOST_LATER]

    def later(rows: Members, lag: int, pairs: Pairs) -> FloatArray:
        earlier = rows[..., : max(view.n_rows - lag, 0)]
        return _information(earlier, rows[..., lag:], columns, pairs)

    return np.concatenate(
        [
            _information(member, member, columns, places(columns, 2, MOST_PAIRS)),
            later(member, 1, ordered),
            np.max([later(coarse, lag, nearest) for lag in LAGS], axis=0),
        ],
        axis=1,
    )


DEPENDENCE = FeatureGroup(dependence_names, dependence_values)


def _members(view: TableView, parts: int) -> Members:
    """Which rows are in each group of each column [M, columns * groups, n]."""
    groups = groups_of(view, parts)
    # Hardly any table has a value in the last group.
    member = groups[:, :, None] == np.arange(groups.max(initial=0) + 1)[:, None]
    members: Members = member.astype(np.float32).reshape(len(groups), -1, view.n_rows)
    return members


def _information(first: Members, second: Members, columns: int, pairs: Pairs) -> FloatArray:
    """Mutual information [M, pairs] of the groups of columns [M, columns * groups, n]."""
    n_tables, size, n_rows = first.shape
    shape = n_tables, columns, size // max(columns, 1), columns, size // max(columns, 1)
    # Counts are whole numbers, so the product is exact.
    counts = (first @ second.swapaxes(1, 2)).astype(np.intp).reshape(shape)
    a, b = pairs
    table = n_log_n(n_rows)
    information = table[counts[:, a, :, b, :]].sum(axis=(-2, -1)) + table[n_rows]
    # A row is in one group of each column, so the counts of a column follow from any other one.
    of_first, of_second = counts[:, :, :, 0].sum(axis=-1), counts[:, 0].sum(axis=1)
    information -= table[of_first].sum(axis=-1).T[a] + table[of_second].sum(axis=-1).T[b]
    return round_sums(np.maximum(information / max(n_rows, 1), 0.0)).T


def groups_of(view: TableView, parts: int) -> IntArray:
    """The group of each cell [M, d, n], numeric columns first.

    Numbers are grouped by quantiles of their own table, categories with their neighbours if there
    are more than `parts`. Missing and unnamed values are in group `parts`.
    """
    ordered = np.nan_to_num(view.stack.ordered, nan=FAR)
    last = np.maximum(view.present - 1, 0)[..., None]
    numbers = np.zeros(view.stack.numbers.shape, dtype=np.int64)
    for part in range(1, parts):
        cut = np.take_along_axis(ordered, (last * part + parts // 2) // parts, axis=-1)
        numbers += view.stack.numbers >= cut
    slots, counts = view.stack.slots, view.categories
    categories = np.where(slots >= counts, parts, slots * parts // np.maximum(counts, parts))
    return np.concatenate([np.where(view.missing, parts, numbers), categories], axis=1)


GROUPS_OF_THREE: Final = 3
"""Groups of a column's values in triples of columns."""
LABEL: Final = "information beyond pairs"


def triples_names(schema: Schema) -> list[FeatureName]:
    """Names of the features; see `triples_values`."""
    columns = numeric_names(schema) + other_names(schema)
    return labelled(joined(columns, 3, MOST_TRIPLES), (LABEL,))


def triples_values(view: TableView) -> FloatArray:
    """Interaction information, in nats, of three columns (McGill 1954).

    The mutual information of two columns given the third, minus their mutual information: positive
    if two columns together tell more about the third than each alone, negative if they tell the
    same. Numbers are grouped by the tertiles of their own synthetic table, categories into at most
    three groups of neighbours.

    Args:
        view: M tables.

    Returns:
        Features [M, triples].
    """
    groups = groups_of(view, GROUPS_OF_THREE)
    n_tables, columns, n_rows = groups.shape
    a, b, c = places(columns, 3, MOST_TRIPLES)
    size = GROUPS_OF_THREE + 1
    slots = (groups[:, a] * size + groups[:, b]) * size + groups[:, c]
    counts = slot_counts(slots.reshape(-1, n_rows), size**3).reshape(-1, size, size, size)
    table = n_log_n(n_rows)

    def total(away: tuple[int, ...]) -> FloatArray:
        """Sum of k log k over the groups of the columns that are not summed away."""
        marginal: IntArray = counts.sum(axis=away)
        totals: FloatArray = table[marginal].sum(axis=tuple(range(1, marginal.ndim)))
        return totals

    triple = total(())
    pairs = total((1,)) + total((2,)) + total((3,))
    single = total((1, 2)) + total((1, 3)) + total((2, 3))
    interaction = (triple - pairs + single - table[n_rows]) / n_rows
    return round_sums(interaction).reshape(n_tables, -1)


TRIPLES = FeatureGroup(triples_names, triples_values)
