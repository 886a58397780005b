"""Relations of columns: exact ones, extremes within categories, and dependence, linear or not.

Dependence is measured in a row, across rows and in three columns.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import combinations, islice, product
from typing import Final

import numpy as np
import numpy.typing as npt

from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FeatureName, FloatArray
from dpaudit_attacks.columns import FAR, category_names, round_sums, slot_counts
from dpaudit_attacks.form.numbers import decimals, whole
from dpaudit_attacks.form.view import (
    FeatureGroup,
    TableView,
    continuous_names,
    flat,
    labelled,
    numeric_names,
    other_names,
)
from dpaudit_attacks.screening import n_log_n

MOST_PAIRS: Final = 64
MOST_SUMS: Final = 32
MOST_TRIPLES: Final = 128
MOST_EXTREMES: Final = 64
"""Most combinations of columns of each kind, those of neighbours first."""
CLOSE: Final = 1e-9
"""A sum within this distance, in widths of the range, equals a number."""
PAIR: Final = ("rows where both are equal", "rows where the first is smaller")
WITHIN: Final = ("smallest", "largest")


def _nearby(columns: int, size: int, most: int) -> tuple[tuple[int, ...], ...]:
    """Combinations of columns, neighbours first."""
    combined = (
        (first, *between, first + span)
        for span in range(size - 1, columns)
        for first in range(columns - span)
        for between in combinations(range(first + 1, first + span), size - 2)
    )
    return tuple(islice(combined, most))


@lru_cache(maxsize=64)
def places(columns: int, size: int, most: int) -> np.ndarray[tuple[int, ...], np.dtype[np.intp]]:
    """The columns of each combination [size, combinations], neighbours first; do not change it."""
    return np.array(_nearby(columns, size, most), dtype=np.intp).reshape(-1, size).T


def joined(names: list[str], size: int, most: int) -> list[str]:
    """Names of the combinations of `places`."""
    return [" & ".join(names[i] for i in chosen) for chosen in _nearby(len(names), size, most)]


def relations_names(schema: Schema) -> list[FeatureName]:
    """Names of the features; see `relations_values`."""
    numbers = numeric_names(schema)
    columns = numbers + other_names(schema)
    return [
        *labelled(joined(numbers, 2, MOST_PAIRS), PAIR),
        *labelled(joined(numbers, 3, MOST_SUMS), ("rows where one is the sum of the others",)),
        *labelled(joined(columns, 3, MOST_TRIPLES), ("product of sides",)),
        *(
            FeatureName(numbers[number], f"distance of the {which} where {part}")
            for number, part in _extremes(schema)
            for which in WITHIN
        ),
    ]


def _extremes(schema: Schema) -> list[tuple[int, str]]:
    """The numeric column, by position, and the category of each pair of extremes."""
    parts = [
        f"{column.name}={name}"
        for column in schema.columns
        if not column.kind.numeric
        for name in category_names(column, schema)
    ]
    numbers = len(numeric_names(schema))
    return [(number, part) for part in parts for number in range(numbers)][:MOST_EXTREMES]


def relations_values(view: TableView) -> FloatArray:
    """Rows where columns are related exactly, and how three columns go together.

    The side of a number is whether it is above its column's median, the side of a category whether
    it is in the second half of the categories; the product of three sides is their parity.

    Args:
        view: M tables.

    Returns:
        Features [M, f]: rows where two numbers are equal, and where the first is smaller; rows
        where one of three numbers is the sum of the others; the sum over rows of the product of
        three sides; the distances, in widths, of the smallest and the largest number among rows
        with a category from those of all rows, 0 if there are none. The numbers themselves would
        only repeat those of the column.
    """
    numbers = view.stack.numbers
    columns = numbers.shape[1]
    a, b = places(columns, 2, MOST_PAIRS)
    first, second = numbers[:, a], numbers[:, b]
    equal, smaller = (first == second).sum(axis=-1), (first < second).sum(axis=-1)
    triples = places(columns, 3, MOST_SUMS)
    x, y, z = (numbers[:, chosen] for chosen in triples)
    tolerance = CLOSE * view.widths[triples].max(axis=0)
    sums = np.abs(x + y - z) <= tolerance
    sums |= np.abs(x + z - y) <= tolerance
    sums |= np.abs(y + z - x) <= tolerance
    sides = _sides(view)
    i, j, k = places(sides.shape[1], 3, MOST_TRIPLES)
    parity = (sides[:, i] * sides[:, j] * sides[:, k]).sum(axis=-1, dtype=np.int64)
    return np.concatenate(
        [flat([equal, smaller]), sums.sum(axis=-1), parity, _within_categories(view)], axis=1
    )


RELATIONS = FeatureGroup(relations_names, relations_values)


def _sides(view: TableView) -> np.ndarray[tuple[int, ...], np.dtype[np.int8]]:
    """1 and -1 for the side of each cell [M, d, n]; 0 for a missing number."""
    last = np.maximum(view.present - 1, 0)[..., None]
    median = np.take_along_axis(view.stack.ordered, last // 2, axis=-1)
    of_numbers = np.where(view.stack.numbers > median, 1, -1)
    of_numbers[view.missing] = 0
    of_others = np.where(view.stack.slots >= view.categories / 2, 1, -1)
    return np.concatenate([of_numbers, of_others], axis=1).astype(np.int8)


def _within_categories(view: TableView) -> FloatArray:
    """Distances of extremes within categories from those of all rows."""
    others = [column for column in view.schema.columns if not column.kind.numeric]
    numeric = view.stack.numbers.shape[1]
    distances: list[FloatArray] = []
    extremes = [
        (empty, extreme, extreme(np.where(view.missing, empty, view.scaled), axis=-1))
        for empty, extreme in ((np.inf, np.min), (-np.inf, np.max))
    ]
    for place, column in enumerate(others):
        for code in range(len(column.categories)):
            if len(distances) * numeric >= 2 * MOST_EXTREMES:
                break
            inside = (view.stack.slots[:, place] == code)[:, None] & ~view.missing
            for empty, extreme, of_all in extremes:
                within = extreme(np.where(inside, view.scaled, empty), axis=-1)
                difference = np.zeros_like(within)
                np.subtract(within, of_all, out=difference, where=np.isfinite(within))
                distances.append(np.abs(difference))
    if not distances or not numeric:
        return np.empty((view.n_tables, 0))
    both = np.stack(distances, axis=-1).reshape(view.n_tables, numeric, -1, 2)
    return both.swapaxes(1, 2).reshape(view.n_tables, -1)[:, : 2 * MOST_EXTREMES]


# In rows whose columns share their noise, or are scaled to a total, sums and differences of columns
# are whole although the numbers themselves are not.
WHOLE_PAIR: Final = ("rows where only the sum is whole", "rows where only the difference is whole")


def sums_names(schema: Schema) -> list[FeatureName]:
    """Names of the features; see `sums_values`."""
    columns = continuous_names(schema)
    pairs, triples = joined(columns, 2, MOST_PAIRS), joined(columns, 3, MOST_SUMS)
    return labelled(pairs, WHOLE_PAIR) + labelled(triples, WHOLE_PAIR[:1])


def sums_values(view: TableView) -> FloatArray:
    """Counts of rows where continuous columns add to a whole number, and none of them is whole.

    Args:
        view: M tables.

    Returns:
        Features [M, f]: for every two columns rows where the sum is whole, and the difference; for
        every three columns rows where the sum is whole. Integers are left out: a sum with a whole
        number is whole exactly where the other number is.
    """
    numbers = view.continuous
    broken = ~whole(numbers)
    a, b = places(numbers.shape[1], 2, MOST_PAIRS)
    both = broken[:, a] & broken[:, b]
    x, y = numbers[:, a], numbers[:, b]
    pairs = [(whole(value) & both).sum(axis=-1) for value in (x + y, x - y)]
    i, j, k = places(numbers.shape[1], 3, MOST_SUMS)
    triples = whole(numbers[:, i] + numbers[:, j] + numbers[:, k])
    triples &= broken[:, i] & broken[:, j] & broken[:, k]
    return np.concatenate([flat(pairs), triples.sum(axis=-1)], axis=1)


SUMS = FeatureGroup(sums_names, sums_values)


# Exact interpolations.
MEANS: Final = (
    "rows at the mean of the rows before and after",
    "rows at the rounded mean of the rows before and after",
)


def between_values(view: TableView) -> FloatArray:
    """Counts of numbers that are the mean of two different numbers, in the rows before and after.

    Args:
        view: M tables.

    Returns:
        Features [M, f]: for each numeric column the exact means, and those up to half a unit of the
        last decimal of the target's value away.
    """
    numbers = view.stack.numbers
    n = view.n_rows
    before, middle, after = numbers[..., : max(n - 2, 0)], numbers[..., 1 : n - 1], numbers[..., 2:]
    exact = CLOSE * view.widths
    distance = np.where(before == after, np.inf, np.abs(middle - (before + after) / 2))
    unit = 0.1 ** decimals(view.target.numbers[0])
    return flat([(distance <= reach).sum(axis=-1) for reach in (exact, unit / 2 + exact)])


BETWEEN = FeatureGroup(
    lambda schema: labelled(numeric_names(schema), MEANS), between_values, of_target=True
)


GROUPS: Final = 4
"""Groups of a column's values; missing and unnamed values are a further group."""
LATER_GROUPS: Final = 2
"""Groups for rows more than one apart: seven matrix products, which must be small."""
MOST_DEPENDENT: Final = 1024
MOST_LATER: Final = MOST_DEPENDENT // 7
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
    nearest = sorted(pairs, key=lambda pair: abs(pair[1] - pair[0]))[:MOST_DEPENDENT]
    return np.array(nearest, dtype=np.intp).reshape(-1, 2).T


def dependence_names(schema: Schema) -> list[FeatureName]:
    """Names of the features; see `dependence_values`."""
    columns = numeric_names(schema) + other_names(schema)
    return [
        FeatureName(f"{columns[a]} & {columns[b]}", label)
        for label, pairs in (
            (SAME_ROW, places(len(columns), 2, MOST_DEPENDENT)),
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
    pairs, ordered = places(columns, 2, MOST_DEPENDENT), _ordered_pairs(columns)
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
