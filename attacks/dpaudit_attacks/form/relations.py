"""Relations of columns: exact ones, relations of three columns, and extremes within categories."""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations, islice
from typing import Final

import numpy as np

from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FeatureName, FloatArray
from dpaudit_attacks.columns import category_names
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
