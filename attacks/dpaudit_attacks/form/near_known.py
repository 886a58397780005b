"""Synthetic rows that are near a known record in every column."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FeatureName, FloatArray
from dpaudit_attacks.columns import ColumnStack
from dpaudit_attacks.form.rows import WHOLE
from dpaudit_attacks.form.view import Beside, FeatureGroup, numeric_names

if TYPE_CHECKING:
    from scipy.spatial import cKDTree

RADII: Final = (0.001, 0.01)
"""Largest difference of a number, in widths of its range."""
FARTHEST: Final = 0.05
"""Distances are at most this: a search within it is cheap."""
MOST_ROWS: Final = 1000
"""Most rows of a table, and known records, that are compared: those with the smallest codes."""
_SLACK: Final = 1e-12
"""For the rounding of a difference."""
_FAR: Final = 4e6
"""Where missing numbers are, in widths: farther from any number than numbers can be."""
NUMBERS: Final = (
    "distance of the row nearest to a known record in all numbers",
    *(f"rows within {radius:g} of a known record in all numbers" for radius in RADII),
)
EVERY: Final = tuple(name.replace("numbers", "columns") for name in NUMBERS)


def near_known_names(schema: Schema) -> list[FeatureName]:
    """Names of the features; none if no column is numeric. See `near_known_values`."""
    labels = (*NUMBERS, *EVERY) if numeric_names(schema) else ()
    return [FeatureName(WHOLE, label) for label in labels]


def near_known_values(view: Beside) -> FloatArray:
    """How near synthetic rows come to any known record, by the largest difference of a number.

    Two missing numbers are equal, a missing one is far from all others. Of larger tables only the
    1,000 rows whose codes (`cell_codes`) are smallest are compared, and so of known records; codes
    follow from the values.

    Args:
        view: M tables.

    Returns:
        Features [M, f]: the smallest distance, at most 0.05, and rows within each of `RADII`; then
        the
        same with records that are equal in all categories.
    """
    numeric = view.stack.numbers.shape[1]
    if not numeric:
        return np.empty((view.n_tables, 0))
    found: list[list[float]] = []
    trees = _trees(view.known, view.schema)
    for table in _points(view.stack, view.schema):
        row: list[float] = []
        for tree, points in zip(trees, (table[:, :numeric], table), strict=True):
            apart = np.asarray(tree.query(points, p=np.inf, distance_upper_bound=FARTHEST)[0])
            row += [min(apart.min(), FARTHEST), *((apart <= r + _SLACK).sum() for r in RADII)]
        found.append(row)
    return np.array(found, dtype=np.float64)


NEAR_KNOWN = FeatureGroup(near_known_names, near_known_values)


@lru_cache(maxsize=2)
def _trees(known: ColumnStack, schema: Schema) -> tuple[cKDTree, cKDTree]:
    """Known records by their numbers, and by all columns."""
    from scipy.spatial import cKDTree

    (points,) = _points(known, schema)
    return cKDTree(points[:, : known.numbers.shape[1]]), cKDTree(points)


def _points(stack: ColumnStack, schema: Schema) -> FloatArray:
    """Rows [M, rows, d] of a stack as points; those of different categories are 2 or more apart."""
    stack = stack.fewest(MOST_ROWS)
    bounds = [column.bounds for column in schema.columns if column.kind.numeric]
    lower, upper = np.array(bounds).reshape(-1, 2, 1).swapaxes(0, 1)
    numbers = (stack.numbers - lower) / (upper - lower)
    numbers = np.where(np.isnan(numbers), _FAR, numbers)
    return np.concatenate([numbers, 2.0 * stack.slots], axis=1).swapaxes(1, 2)
