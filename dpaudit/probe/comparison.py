"""Comparing synthetic tables: up to rounding, by descriptive numbers, by a permutation test."""

from __future__ import annotations

from itertools import combinations
from typing import Final

import numpy as np
import pandas as pd

from dpaudit.model.column import as_numbers
from dpaudit.model.encoding import values_of_table
from dpaudit.plugins.protocols import FloatArray
from dpaudit.probe.subject import Subject

_ROUNDING: Final = 1e-6


def alike(one: pd.DataFrame, other: pd.DataFrame, subject: Subject) -> bool:
    """Whether two tables are equal up to the rounding of sums in another order.

    Args:
        one: A synthetic table.
        other: Another one.
        subject: What is probed, for the schema.

    Returns:
        True if no value differs by more than rounding.
    """
    first, second = (values_of_table(table, subject.schema) for table in (one, other))
    return np.allclose(first, second, rtol=_ROUNDING, atol=_ROUNDING, equal_nan=True)


def summary(table: pd.DataFrame, subject: Subject) -> dict[str, float]:
    """Numbers that describe a synthetic table, by name: means, extremes, shares of categories.

    Args:
        table: The table.
        subject: What is probed, for the schema.

    Returns:
        The numbers, those of each column in turn.
    """
    found: dict[str, float] = {}
    for column in subject.schema.columns:
        values = table[column.name]
        if column.kind.numeric:
            numbers = as_numbers(values)
            numbers = numbers[~np.isnan(numbers)]
            for name, number in (("mean", np.mean), ("minimum", np.min), ("maximum", np.max)):
                found[f"{name} of {column.name}"] = float(number(numbers)) if len(numbers) else 0.0
        else:
            for category in column.categories:
                found[f"share of {category!r} in {column.name}"] = float(
                    (values == category).mean()
                )
    return found


def permutation_p(values: FloatArray) -> float:
    """Exact p-value for the two halves of the rows [2 s, f] having the same distribution.

    The statistic is the largest standardised difference of means over the f features.
    """
    total = len(values)
    centred = values - values.mean(axis=0)
    scale = centred.std(axis=0)
    usable = scale > 1e-12 * (1.0 + np.abs(values).max(axis=0))
    if not usable.any():
        return 1.0
    standard = centred[:, usable] / scale[usable]
    deals = np.array(list(combinations(range(total), total // 2)))
    picked = np.zeros((len(deals), total))
    np.put_along_axis(picked, deals, 1.0, axis=1)
    statistics = np.abs(picked @ standard).max(axis=1)
    return float(np.mean(statistics >= statistics[0] * (1.0 - 1e-12)))
