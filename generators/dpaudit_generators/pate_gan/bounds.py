"""The bounds that numbers are scaled by."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import Any

import numpy as np
import pandas as pd

from dpaudit.model.column import Column, Kind, as_numbers
from dpaudit.model.schema import Schema


class Bounds(StrEnum):
    """Where the bounds of numeric columns come from."""

    SCHEMA = "schema"
    """The public schema."""
    PRIVATE = "private"
    """Noisy histograms of the table, paid from the budget."""
    DATA = "data"
    """The smallest and largest value of the table: an experiment that breaks the proof."""


def schema_of_data(schema: Schema, data: pd.DataFrame) -> Schema:
    """Replaces the bounds of numeric columns by the extremes of a table.

    Several published generators do this, and it leaks: one record can move a bound, and with it the
    range of everything that is released.

    Args:
        schema: The public schema.
        data: The table. A column of missing values keeps its public bounds; a constant one keeps a
            public bound on one side, because a range must not be empty.

    Returns:
        The schema, marked as inferred.
    """
    columns = tuple(
        _narrowed(column, data[column.name]) if column.kind.numeric else column
        for column in schema.columns
    )
    return replace(schema, columns=columns, inferred=True)


def _narrowed(column: Column, values: pd.Series[Any]) -> Column:
    numbers = as_numbers(values)
    numbers = numbers[np.isfinite(numbers)]
    if len(numbers) == 0:
        return column
    lower, upper = float(numbers.min()), float(numbers.max())
    if column.kind is Kind.INTEGER:
        lower, upper = float(np.floor(lower)), float(np.ceil(upper))
    if lower == upper:
        public_lower, public_upper = column.bounds
        lower, upper = (lower, public_upper) if upper < public_upper else (public_lower, upper)
    return replace(column, lower=lower, upper=upper)
