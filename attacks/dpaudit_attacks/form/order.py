"""The order of rows, which carries nothing in an honest release of exchangeable records."""

from __future__ import annotations

import numpy as np

from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FeatureName, FloatArray
from dpaudit_attacks.form.view import (
    Beside,
    FeatureGroup,
    flat,
    labelled,
    numeric_names,
    other_names,
)

NUMERIC = (
    "steps up from row to row",
    "rows equal to the row before",
    "mean step from row to row",
    "drift over the rows",
    "even rows minus odd rows",
    "value of the first row",
    "value of the last row",
    "position of the value nearest to the target",
)
OTHER = (
    "rows equal to the row before",
    "rows equal to the row before the one before",
    "category of the first row",
    "category of the last row",
    "drift of the target's category over the rows",
    "even rows minus odd rows with the target's category",
)


def names(schema: Schema) -> list[FeatureName]:
    """Names of the features; see `values`."""
    return labelled(numeric_names(schema), NUMERIC) + labelled(other_names(schema), OTHER)


def values(view: Beside) -> FloatArray:
    """Facts about neighbouring rows, the first and the last row, and early and late rows.

    A missing number counts as its column's lower bound; steps are in widths of the range. Drift is
    the mean product with the row's position, which runs from -1 to 1.

    Args:
        view: M tables.

    Returns:
        Features [M, f].
    """
    return np.concatenate([_numeric(view), _other(view)], axis=1)


GROUP = FeatureGroup(names, values)


def _numeric(view: Beside) -> FloatArray:
    numbers = np.where(view.missing, 0.0, view.scaled)
    steps = np.diff(numbers, axis=-1)
    nearest = view.away.argmin(axis=-1) / view.n_rows
    return flat(
        [
            (steps > 0).sum(axis=-1),
            (steps == 0).sum(axis=-1),
            np.abs(steps).sum(axis=-1) / view.n_rows,
            numbers @ _positions(view.n_rows),
            numbers @ _turns(view.n_rows),
            numbers[..., 0],
            numbers[..., -1],
            nearest,
        ]
    )


def _other(view: Beside) -> FloatArray:
    slots, alike = view.stack.slots, view.alike.astype(np.float64)
    return flat(
        [
            (slots[..., 1:] == slots[..., :-1]).sum(axis=-1),
            (slots[..., 2:] == slots[..., :-2]).sum(axis=-1),
            slots[..., 0],
            slots[..., -1],
            alike @ _positions(view.n_rows),
            alike @ _turns(view.n_rows),
        ]
    )


def _positions(n_rows: int) -> FloatArray:
    """Positions of rows [n] from -1 to 1, divided by n."""
    return np.linspace(-1.0, 1.0, n_rows) / n_rows


def _turns(n_rows: int) -> FloatArray:
    """1 and -1 in turn [n], divided by n."""
    found: FloatArray = (1.0 - 2.0 * (np.arange(n_rows) % 2)) / n_rows
    return found
