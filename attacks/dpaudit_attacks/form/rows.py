"""Rows of a table: their order, repeated rows, values that are missing together, groups of rows.

In an honest release of exchangeable records the order carries no information.
"""

from __future__ import annotations

from itertools import combinations, islice
from typing import Final

import numpy as np
import numpy.typing as npt

from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FeatureName, FloatArray
from dpaudit_attacks.columns import round_sums
from dpaudit_attacks.form.view import (
    FeatureGroup,
    TableView,
    flat,
    labelled,
    numeric_names,
    other_names,
)

LAGS: Final = range(1, 9)
NUMERIC = (
    "steps up from row to row",
    "rows equal to the row before",
    "mean step from row to row",
    "drift over the rows",
    "even rows minus odd rows",
    "value of the first row",
    "value of the last row",
    "position of the value nearest to the target",
    *(f"products of values {lag} rows apart" for lag in LAGS),
)
OTHER = (
    "rows equal to the row before",
    "rows equal to the row before the one before",
    "category of the first row",
    "category of the last row",
    "drift of the target's category over the rows",
    "even rows minus odd rows with the target's category",
)


def order_names(schema: Schema) -> list[FeatureName]:
    """Names of the features; see `order_values`."""
    return labelled(numeric_names(schema), NUMERIC) + labelled(other_names(schema), OTHER)


def order_values(view: TableView) -> FloatArray:
    """Facts about neighbouring rows, the first and the last row, and early and late rows.

    A missing number counts as its column's lower bound; steps are in widths of the range. Drift is
    the mean product with the row's position, which runs from -1 to 1.

    Args:
        view: M tables.

    Returns:
        Features [M, f].
    """
    return np.concatenate([_order_of_numbers(view), _order_of_categories(view)], axis=1)


ORDER = FeatureGroup(order_names, order_values, of_target=True)


def _order_of_numbers(view: TableView) -> FloatArray:
    """The features `NUMERIC` of each numeric column."""
    numbers = np.where(view.missing, 0.0, view.scaled)
    steps = np.diff(numbers, axis=-1)
    nearest = view.away.argmin(axis=-1) / view.n_rows
    deviations = numbers - round_sums(numbers.mean(axis=-1, keepdims=True))
    return flat(
        [
            (steps > 0).sum(axis=-1),
            (steps == 0).sum(axis=-1),
            round_sums(np.abs(steps).sum(axis=-1) / view.n_rows),
            round_sums(numbers @ _positions(view.n_rows)),
            round_sums(numbers @ _turns(view.n_rows)),
            numbers[..., 0],
            numbers[..., -1],
            nearest,
            *(_products(deviations, lag) for lag in LAGS),
        ]
    )


def _products(deviations: FloatArray, lag: int) -> FloatArray:
    """Mean products [M, columns] of deviations from the mean, of rows `lag` apart."""
    n_rows = deviations.shape[-1]
    products = (deviations[..., lag:] * deviations[..., : max(0, n_rows - lag)]).sum(axis=-1)
    return round_sums(products / n_rows)


def _order_of_categories(view: TableView) -> FloatArray:
    """The features `OTHER` of each other column."""
    slots, alike = view.stack.slots, view.alike.astype(np.float64)
    return flat(
        [
            (slots[..., 1:] == slots[..., :-1]).sum(axis=-1),
            (slots[..., 2:] == slots[..., :-2]).sum(axis=-1),
            slots[..., 0],
            slots[..., -1],
            round_sums(alike @ _positions(view.n_rows)),
            round_sums(alike @ _turns(view.n_rows)),
        ]
    )


def _positions(n_rows: int) -> FloatArray:
    """Positions of rows [n] from -1 to 1, divided by n."""
    return np.linspace(-1.0, 1.0, n_rows) / n_rows


def _turns(n_rows: int) -> FloatArray:
    """Alternating 1 and -1 [n], divided by n."""
    signs: FloatArray = (1.0 - 2.0 * (np.arange(n_rows) % 2)) / n_rows
    return signs


WHOLE: Final = "whole rows"
"""Stands for a column in features of all columns together."""
REPEATS = ("repeated rows", "rows equal to the row before", "most copies of a row")


def repetition_names(schema: Schema) -> list[FeatureName]:
    """Names of the features; see `repetition_values`."""
    columns = numeric_names(schema) + other_names(schema)
    return labelled([WHOLE], REPEATS) + labelled(columns, ("rows repeated but for this column",))


def repetition_values(view: TableView) -> FloatArray:
    """Counts of rows that repeat other rows.

    Rows are compared by the sums of the codes of their cells (`cell_codes`).

    Args:
        view: M tables.

    Returns:
        Features [M, f]: rows that repeat an earlier row, rows equal to the row before, and copies
        of the most frequent row; then, for each column, rows that repeat an earlier row in all
        other columns.
    """
    rows = view.stack.codes.sum(axis=1)  # modulo 2^64
    ordered = view.stack.row_codes
    summary = [
        _repeats(ordered),
        (rows[:, 1:] == rows[:, :-1]).sum(axis=-1),
        longest_run(ordered[:, 1:] != ordered[:, :-1]),
    ]
    return np.column_stack([*summary, _repeats(view.stack.codes_without_one)]).astype(np.float64)


REPETITION = FeatureGroup(repetition_names, repetition_values)


def longest_run(breaks: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Length of the longest run of equal neighbours.

    Args:
        breaks: Where a value differs from the previous one [..., n - 1].

    Returns:
        Lengths [...], at least 1.
    """
    place = np.arange(1, breaks.shape[-1] + 1)
    start = np.maximum.accumulate(np.where(breaks, place, 0), axis=-1)
    longest: npt.NDArray[np.int64] = 1 + (place - start).max(axis=-1, initial=0)
    return longest


def _repeats(ordered: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """The number of sorted codes [..., n] that equal the previous one."""
    repeats: npt.NDArray[np.int64] = (ordered[..., 1:] == ordered[..., :-1]).sum(axis=-1)
    return repeats


MOST_PAIRS: Final = 256
PER_COLUMN = ("drift of missing values over the rows", "missing values in neighbouring rows")
GAPS = ("missing values", *(f"rows with {k} missing values" for k in range(4)))


def absence_names(schema: Schema) -> list[FeatureName]:
    """Names of the features; none if no value may be missing. See `absence_values`."""
    by_kind = sorted(schema.columns, key=lambda column: not column.kind.numeric)  # as in a stack
    columns = [column.name for column in by_kind if column.missing]
    if not columns:
        return []
    pairs = [f"{a} & {b}" for a, b in islice(combinations(columns, 2), MOST_PAIRS)]
    return (
        labelled(columns, PER_COLUMN)
        + labelled([WHOLE], GAPS)
        + labelled(pairs, ("rows where both are missing",))
    )


def absence_values(view: TableView) -> FloatArray:
    """Counts of missing values in rows, in neighbouring rows and in pairs of columns.

    At most the first 256 pairs of columns are counted.

    Args:
        view: M tables.

    Returns:
        Features [M, f].
    """
    numbers = [c.missing for c in view.schema.columns if c.kind.numeric]
    others = [c.missing for c in view.schema.columns if not c.kind.numeric]
    slots, missing_slot = view.stack.slots[:, others], view.categories[others] + 1
    missing = np.concatenate([view.missing[:, numbers], slots == missing_slot], axis=1)
    if not missing.shape[1]:
        return np.empty((view.n_tables, 0))
    count = missing.sum(axis=1)
    weights = missing.astype(np.float64)
    together = weights @ weights.swapaxes(1, 2)
    first, second = np.triu_indices(missing.shape[1], k=1)
    columns = [
        round_sums(weights @ _positions(view.n_rows)),
        (missing[..., 1:] & missing[..., :-1]).sum(axis=-1),
    ]
    rows = [count.sum(axis=-1), *((count == k).sum(axis=-1) for k in range(4))]
    pairs = together[:, first[:MOST_PAIRS], second[:MOST_PAIRS]]
    return np.concatenate([flat(columns), np.column_stack(rows), pairs], axis=1)


ABSENCE = FeatureGroup(absence_names, absence_values)


# Making a release k-anonymous, or filling up groups of a table, changes the sizes of groups of rows
# that are equal in all categories, or in all but one column's.
CROWD: Final = (
    "rows alone in all categories",
    "groups equal in all categories",
    "rows of the largest group equal in all categories",
)
WITHOUT: Final = tuple(f"{label} but this column's" for label in CROWD)


def crowds_names(schema: Schema) -> list[FeatureName]:
    """Names of the features; none if all columns are numeric. See `crowds_values`."""
    others = other_names(schema)
    whole = labelled([WHOLE], CROWD) if others else []
    return whole + (labelled(others, WITHOUT) if len(others) > 1 else [])


def crowds_values(view: TableView) -> FloatArray:
    """Sizes of the groups of rows with equal categories, where missing is a category too.

    Args:
        view: M tables.

    Returns:
        Features [M, f]: rows that are alone with their categories, groups, and rows of the largest
        group; then the same without each column, if there are two or more.
    """
    codes = view.stack.codes[:, view.stack.numbers.shape[1] :]
    others = codes.shape[1]
    if not others:
        return np.empty((view.n_tables, 0))
    whole = codes.sum(axis=1, keepdims=True)  # modulo 2^64
    rows = np.concatenate([whole, whole - codes], axis=1) if others > 1 else whole
    ordered = np.sort(rows, axis=-1)
    breaks = ordered[..., 1:] != ordered[..., :-1]
    edge = np.ones_like(breaks, shape=(*rows.shape[:2], 1))
    first = np.concatenate([edge, breaks], axis=-1)
    last = np.concatenate([breaks, edge], axis=-1)
    return flat([(first & last).sum(axis=-1), first.sum(axis=-1), longest_run(breaks)])


CROWDS = FeatureGroup(crowds_names, crowds_values)
