"""How close synthetic numbers and rows come to the target."""

from __future__ import annotations

from typing import Final

import numpy as np

from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FeatureName, FloatArray
from dpaudit_attacks.columns import round_sums
from dpaudit_attacks.form.rows import WHOLE
from dpaudit_attacks.form.view import (
    FeatureGroup,
    TableView,
    at_least,
    flat,
    labelled,
    numeric_names,
)

WINDOWS: Final = (0.0, 1e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1)
"""Half widths around the target's value, in widths of the range."""
RADII: Final = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3)
"""Gower distances from the target."""
NEARBY: Final = 0.01
"""A number within this distance, in widths of the range, nearly equals the target's."""
NUMBER = (
    "values equal to the target's",
    *(f"values within {width:g} of the range from the target's" for width in WINDOWS[1:]),
    "values below the target's",
    "distance of the nearest value to the target's",
    "distance of the second nearest value to the target's",
)
DISTANCE = (
    *(f"distance of row {k} in nearness to the target" for k in (1, 2, 3)),
    "mean distance to the target",
    *(f"rows within {radius:g} of the target" for radius in RADII),
    "position of the row nearest to the target",
    "distance of the first row to the target",
    "distance of the last row to the target",
)
SHARED = (
    "equal to the target in all numbers",
    "nearly the target's in all numbers",
    "equal to the target in all categories",
    "position of the row most equal to the target",
)


def nearness_names(schema: Schema) -> list[FeatureName]:
    """Names of the features; see `nearness_values`."""
    counts = range(1, len(schema.columns) + 1)
    whole = [
        *DISTANCE,
        *SHARED,
        *(f"rows equal to the target in at least {k} columns" for k in counts),
        *(f"rows nearly equal to the target in at least {k} columns" for k in counts),
    ]
    return labelled(numeric_names(schema), NUMBER) + labelled([WHOLE], whole)


def nearness_values(view: TableView) -> FloatArray:
    """Counts of numbers and rows near the target, and of rows equal to it on some columns.

    The distance of rows is that of Gower 1971, a mean over columns: for numbers the difference in
    widths of the range, at most 1; for categories whether they differ.

    Args:
        view: M tables.

    Returns:
        Features [M, f].
    """
    equal = (view.away == 0) | view.both_missing
    near = (view.away <= NEARBY) | view.both_missing
    matches = equal.sum(axis=1) + view.alike.sum(axis=1)
    shared = [
        equal.all(axis=1).sum(axis=-1),
        near.all(axis=1).sum(axis=-1),
        view.alike.all(axis=1).sum(axis=-1),
        matches.argmax(axis=-1) / view.n_rows,
    ]
    parts = [
        _near_numbers(view),
        _row_distances(view),
        np.column_stack(shared),
        at_least(matches, len(view.schema.columns)),
        at_least(near.sum(axis=1) + view.alike.sum(axis=1), len(view.schema.columns)),
    ]
    return np.concatenate(parts, axis=1)


NEARNESS = FeatureGroup(nearness_names, nearness_values, of_target=True)


def _near_numbers(view: TableView) -> FloatArray:
    """The features `NUMBER` of each numeric column."""
    nearest = np.partition(view.away, min(1, view.n_rows - 1), axis=-1)[..., :2]
    nearest = np.minimum(nearest, 1.0)
    return flat(
        [
            *((view.away <= width).sum(axis=-1) for width in WINDOWS),
            (view.stack.numbers < view.target.numbers).sum(axis=-1),
            nearest[..., 0],
            nearest[..., -1],
        ]
    )


def _row_distances(view: TableView) -> FloatArray:
    """The features `DISTANCE`."""
    distance = np.where(view.both_missing, 0.0, np.minimum(view.away, 1.0)).sum(axis=1)
    distance += (~view.alike).sum(axis=1)
    # The nearest row and the counts must not depend on the order of addition either.
    distance = round_sums(distance / len(view.schema.columns))
    ordered = np.sort(distance, axis=-1)
    return np.column_stack(
        [
            *(ordered[:, min(k, view.n_rows - 1)] for k in range(3)),
            round_sums(ordered.mean(axis=-1)),
            *((distance <= radius).sum(axis=-1) for radius in round_sums(np.array(RADII))),
            distance.argmin(axis=-1) / view.n_rows,
            distance[:, 0],
            distance[:, -1],
        ]
    )


def within_names(schema: Schema) -> list[FeatureName]:
    """Names of the features; see `within_values`."""
    return [
        FeatureName(WHOLE, f"distance within which a row agrees with the target in {k} numbers")
        for k in range(1, len(numeric_names(schema)) + 1)
    ]


def within_values(view: TableView) -> FloatArray:
    """The smallest distance within which a row equals the target in 1, 2, ... numbers.

    Args:
        view: M tables.

    Returns:
        Features [M, f] in widths of the range, at most 1; two missing numbers count as equal.
    """
    away = np.where(view.both_missing, 0.0, np.minimum(view.away, 1.0))
    smallest: FloatArray = np.sort(away.swapaxes(1, 2), axis=-1).min(axis=1)
    return smallest


WITHIN = FeatureGroup(within_names, within_values, of_target=True)
