"""How numbers are written: decimals, last digits."""

from __future__ import annotations

from typing import Final

import numpy as np

from dpaudit.model.column import Kind
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import BoolArray, FeatureName, FloatArray, IntArray
from dpaudit_attacks.columns import slot_counts
from dpaudit_attacks.form.view import Beside, FeatureGroup, labelled, numeric_names

DECIMALS: Final = (0, 1, 2, 3, 4, 6)
MOST_DECIMALS: Final = DECIMALS[-1]
CLOSE: Final = 1e-6
"""How far from a whole number counts as whole, after the point was moved."""
WRITTEN = (*(f"numbers of at most {k} decimals" for k in DECIMALS), "whole quarters")
LAST = (*(f"last digit {digit}" for digit in range(10)), "even last digit")


def names(schema: Schema) -> list[FeatureName]:
    """Names of the features; see `values`."""
    continuous = [c.name for c in schema.columns if c.kind is Kind.CONTINUOUS]
    return labelled(continuous, WRITTEN) + labelled(numeric_names(schema), LAST)


def values(view: Beside) -> FloatArray:
    """Counts of numbers by how they are written.

    The last digit is read at as many decimals as the target's value has, at most 6.

    Args:
        view: M tables.

    Returns:
        Features [M, f]: for each continuous column how many numbers have at most so many decimals,
        and how many are whole multiples of 1/4; then for each numeric column how often its last
        digit is 0 to 9, and even.
    """
    continuous = np.array([c.kind is Kind.CONTINUOUS for c in view.schema.columns])
    numeric = np.array([c.kind.numeric for c in view.schema.columns])
    written = _written(view.stack.numbers[:, continuous[numeric]])
    return np.concatenate([written, _last(view)], axis=1)


GROUP = FeatureGroup(names, values)


def _whole(numbers: FloatArray) -> BoolArray:
    found: BoolArray = np.abs(numbers - np.rint(numbers)) <= CLOSE
    return found


def _written(numbers: FloatArray) -> FloatArray:
    scales = [*(10.0**k for k in DECIMALS), 4.0]
    found = np.stack([_whole(numbers * scale).sum(axis=-1) for scale in scales], axis=-1)
    return found.reshape(len(found), -1).astype(np.float64)


def _last(view: Beside) -> FloatArray:
    moved = view.stack.numbers * 10.0 ** _decimals(view.target.numbers[0])
    digits = np.floor(np.abs(moved) + CLOSE) % 10
    slots: IntArray = np.where(view.missing, 10, digits).astype(np.int64)
    counts = slot_counts(slots.reshape(-1, view.n_rows), 11)[:, :10]
    found = np.column_stack([counts, counts[:, ::2].sum(axis=1)])
    return found.reshape(view.n_tables, -1).astype(np.float64)


def _decimals(target: FloatArray) -> FloatArray:
    """Decimals [numeric columns, 1] of the target's numbers; 0 if missing."""
    places = np.arange(MOST_DECIMALS)
    enough = _whole(target * 10.0**places) | np.isnan(target)
    found: FloatArray = (~enough).cumprod(axis=1).sum(axis=1, keepdims=True).astype(np.float64)
    return found
