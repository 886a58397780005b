"""Dependence of columns, in a row and across rows, whether or not they correlate."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import product
from typing import Final

import numpy as np
import numpy.typing as npt

from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FeatureName, FloatArray
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
GroupArray = npt.NDArray[np.int8]
Members = npt.NDArray[np.float32]
"""1 where a row is in a group, else 0 [M, columns, groups, n]."""
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
    columns = len(view.schema.columns)
    pairs, ordered = places(columns, 2, MOST_PAIRS), _ordered_pairs(columns)
    return np.concatenate(
        [
            _by_size(
                groups_of(view, GROUPS),
                lambda members: np.concatenate(
                    [_information(members, 0, pairs), _information(members, 1, ordered)], axis=1
                ),
            ),
            _by_size(
                groups_of(view, LATER_GROUPS),
                lambda members: _largest_information(members, ordered[:, :MOST_LATER]),
            ),
        ],
        axis=1,
    )


DEPENDENCE = FeatureGroup(dependence_names, dependence_values)


def _by_size(groups: GroupArray, compute: Callable[[Members], FloatArray]) -> FloatArray:
    """Features [M, f] of groups [M, columns, n], from which rows are in each of them.

    Hardly any table has a value in its last groups. Tables with as many groups are computed
    together, so that the order of sums, and with it their last bits, is that of each table alone.
    """
    sizes = groups.max(axis=(1, 2), initial=0) + 1
    features: dict[int, FloatArray] = {}
    for size in np.unique(sizes):
        rows = np.flatnonzero(sizes == size)
        members = groups[rows][:, :, None] == np.arange(size, dtype=groups.dtype)[:, None]
        features |= dict(zip(rows.tolist(), compute(members.astype(np.float32)), strict=True))
    return np.stack([features[place] for place in range(len(groups))])


def _information(members: Members, lag: int, pairs: Pairs) -> FloatArray:
    """Mutual information [M, pairs] of a column in a row and another one `lag` rows later."""
    n_tables, columns, size, n_rows = members.shape
    n_pairs = max(n_rows - lag, 0)
    flat = members.reshape(n_tables, columns * size, n_rows)
    # Counts are whole numbers, so the product is exact.
    product = flat[..., :n_pairs] @ flat[..., lag:].swapaxes(1, 2)
    counts = product.astype(np.intp).reshape(n_tables, columns, size, columns, size)
    a, b = pairs
    log = n_log_n(n_pairs)
    cells = log.take(counts).swapaxes(2, 3).reshape(n_tables, columns, columns, size**2)
    information = cells.sum(axis=-1)[:, a, b] + log[n_pairs]
    # A row is in one group of each column, so the counts of a column follow from any other one.
    of_first, of_second = counts[:, :, :, 0].sum(axis=-1), counts[:, 0].sum(axis=1)
    information -= log[of_first].sum(axis=-1)[:, a] + log[of_second].sum(axis=-1)[:, b]
    return round_sums(np.maximum(information / max(n_pairs, 1), 0.0))


def _largest_information(members: Members, pairs: Pairs) -> FloatArray:
    """The largest mutual information [M, pairs] over `LAGS`, mostly of columns in halves."""
    if members.shape[2] != LATER_GROUPS:
        largest: FloatArray = np.max([_information(members, lag, pairs) for lag in LAGS], axis=0)
        return largest
    # Three of four counts follow from how often both are in the lower half.
    lower, n_rows, (a, b) = members[:, :, 0], members.shape[3], pairs
    parts = [(lower[..., : max(n_rows - lag, 0)], lower[..., lag:]) for lag in LAGS]
    both = np.stack([(first @ second.swapaxes(1, 2))[:, a, b] for first, second in parts])
    of_first = np.stack([first.sum(axis=-1)[:, a] for first, _ in parts])
    of_second = np.stack([second.sum(axis=-1)[:, b] for _, second in parts])
    n_pairs = np.array([first.shape[-1] for first, _ in parts])[:, None, None]
    rest = n_pairs - of_first - of_second + both
    log = n_log_n(n_rows)
    counts = np.stack([both, of_first - both, of_second - both, rest]).astype(np.intp)
    sides = np.stack([of_first, n_pairs - of_first, of_second, n_pairs - of_second])
    of_sides = log.take(sides.astype(np.intp))
    information = log.take(counts).sum(axis=0) + log[n_pairs]
    information -= (of_sides[0] + of_sides[1]) + (of_sides[2] + of_sides[3])
    largest = round_sums(np.maximum(information / np.maximum(n_pairs, 1), 0.0)).max(axis=0)
    return largest


def groups_of(view: TableView, parts: int) -> GroupArray:
    """The group of each cell [M, d, n], numeric columns first.

    Numbers are grouped by quantiles of their own table, categories with their neighbours if there
    are more than `parts`. Missing and unnamed values are in group `parts`.
    """
    ordered = view.stack.ordered
    if view.missing.any():
        ordered = np.nan_to_num(ordered, nan=FAR)
    last = np.maximum(view.present - 1, 0)[..., None]
    numbers = np.zeros(view.stack.numbers.shape, dtype=np.int8)
    for part in range(1, parts):
        cut = np.take_along_axis(ordered, (last * part + parts // 2) // parts, axis=-1)
        numbers += view.stack.numbers >= cut
    slots, counts = view.stack.slots, view.categories
    categories = np.where(slots >= counts, parts, slots * parts // np.maximum(counts, parts))
    numbers[view.missing] = parts
    return np.concatenate([numbers, categories.astype(np.int8)], axis=1)


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
    # One table at a time, whose slots fit into the cache of a core.
    counts = np.concatenate([slot_counts(table, size**3) for table in slots])
    log = n_log_n(n_rows)

    def total(kept: tuple[int, ...]) -> FloatArray:
        """Sum of k log k over the groups of the columns that are kept, others summed away."""
        marginal = (counts.astype(np.float64) @ _cells_of(kept, size)).astype(np.intp)
        totals: FloatArray = log.take(marginal).sum(axis=-1)
        return totals

    triple = total((0, 1, 2))
    pairs = total((1, 2)) + total((0, 2)) + total((0, 1))
    single = total((2,)) + total((1,)) + total((0,))
    interaction = (triple - pairs + single - log[n_rows]) / n_rows
    return round_sums(interaction).reshape(n_tables, -1)


@lru_cache(maxsize=16)
def _cells_of(kept: tuple[int, ...], size: int) -> FloatArray:
    """Which of the cells [size^3] of three columns each cell of some of them sums, as 1 and 0."""
    places = np.indices((size, size, size)).reshape(3, -1)
    of_kept = np.ravel_multi_index(tuple(places[[*kept]]), (size,) * len(kept))
    sums: FloatArray = np.eye(size ** len(kept))[of_kept]
    return sums


TRIPLES = FeatureGroup(triples_names, triples_values)
