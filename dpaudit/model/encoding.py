"""A table as numbers: bounds to [0, 1], categories one-hot, missingness as indicators.

The layout follows from the schema alone, never from a table.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.errors import SettingsError
from dpaudit.model.column import MISSING, Column, Kind, plain_numbers
from dpaudit.model.schema import Schema, canonical_table
from dpaudit.model.setting import AT_LEAST_1, check_number


class EncodedColumn(NamedTuple):
    """The place of one column in the encoded matrix.

    Attributes:
        column: The column.
        value: Positions of its values: one for a number, else one per category (the last one for
            missing values, if there may be any).
        indicator: Position of the "is missing" indicator of a number that may be missing.
    """

    column: Column
    value: slice
    indicator: int | None


def layout(schema: Schema) -> tuple[EncodedColumn, ...]:
    """The blocks of the encoded matrix, in schema order."""
    blocks, start = [], 0
    for column in schema.columns:
        if column.kind.numeric:
            stop = start + 1
            indicator = stop if column.missing else None
            blocks.append(EncodedColumn(column, slice(start, stop), indicator))
            start = stop + column.missing
        else:
            stop = start + len(column.categories) + column.missing
            blocks.append(EncodedColumn(column, slice(start, stop), None))
            start = stop
    return tuple(blocks)


def width(schema: Schema) -> int:
    """Number of columns of the encoded matrix."""
    block = layout(schema)[-1]
    return block.value.stop if block.indicator is None else block.indicator + 1


MOST_BYTES = 2 * 2**30
"""Largest size of one synthetic table in bytes, as values and encoded.

A worker holds all of it at once, and several times as much as records. A larger number of rows is a
typing error, or needs a machine on which a run of many workers would not fit.
"""


def check_rows(rows: int, schema: Schema) -> None:
    """Refuses a number of synthetic rows that no worker could hold.

    Args:
        rows: Rows requested from a model.
        schema: Their schema.

    Raises:
        SettingsError: If the number is less than 1, or the rows would take more than `MOST_BYTES`.
    """
    check_number("rows", rows, AT_LEAST_1)
    most = MOST_BYTES // (8 * (width(schema) + len(schema.columns)))
    if rows > most:
        raise SettingsError(
            f"`rows` is {rows}: at most {most:,} rows of this schema ({width(schema)} numbers "
            f"each, encoded) fit into the {MOST_BYTES // 2**30} GiB that a model's table may take; "
            "ask for fewer"
        )


def encode(data: pd.DataFrame, schema: Schema) -> npt.NDArray[np.float64]:
    """Encodes a table.

    Args:
        data: A table [n] with the schema's columns.
        schema: Its schema.

    Returns:
        Matrix [n, width]. Numbers are scaled by the schema's bounds (values outside them fall
        outside [0, 1]); a missing number is 0.5 with its indicator at 1; a category the schema
        does not name is all zeros.

    Raises:
        SchemaError: If a numeric column holds something that is not a number.
    """
    return encode_values(values_of_table(data, schema), schema)


def encode_values(values: npt.NDArray[np.float64], schema: Schema) -> npt.NDArray[np.float64]:
    """Encodes tables given as values [..., d] (see `values_of_table`), as `encode` does.

    Returns:
        Encoded rows [..., width].
    """
    blocks = layout(schema)
    matrix = np.zeros((*values.shape[:-1], width(schema)), dtype=np.float64)
    numeric = [n for n, block in enumerate(blocks) if block.column.kind.numeric]
    bounds = np.array([blocks[n].column.bounds for n in numeric], dtype=np.float64)
    lower, upper = bounds.reshape(-1, 2).T
    numbers = (values[..., numeric] - lower) / (upper - lower)
    missing = np.isnan(numbers)
    matrix[..., [blocks[n].value.start for n in numeric]] = np.where(missing, 0.5, numbers)
    for number, position in enumerate(numeric):
        indicator = blocks[position].indicator
        if indicator is not None:
            matrix[..., indicator] = missing[..., number]
    for position, (column, value, _) in enumerate(blocks):
        if not column.kind.numeric:
            categories = values[..., position]
            places = value.stop - value.start
            codes = np.where(categories == MISSING, places - 1, categories)  # missing: the last
            matrix[..., value] = codes[..., None] == np.arange(places)
    return matrix


def decode(matrix: npt.NDArray[np.float64], schema: Schema) -> pd.DataFrame:
    """Turns an encoded matrix back into a table in the input's scale.

    Args:
        matrix: Matrix [n, width]; numbers are clipped to [0, 1], the largest entry of a block names
            the category, an indicator of at least 0.5 means missing.
        schema: The schema.

    Returns:
        A canonical table [n] that fits the schema; integers are rounded to the nearest.
    """
    return table_of(values_of(matrix, schema), schema)


def values_of(matrix: npt.NDArray[np.float64], schema: Schema) -> npt.NDArray[np.float64]:
    """Turns encoded matrices into one number for each value.

    Args:
        matrix: Encoded rows [..., width], read as `decode` does.
        schema: The schema.

    Returns:
        Values [..., d]: numbers in the input's scale, NaN if missing; categories as positions in
        the column's `categories`, `MISSING` if missing.
    """
    columns = []
    for column, value, indicator in layout(schema):
        if column.kind.numeric:
            lower, upper = column.bounds
            numbers = lower + np.clip(matrix[..., value.start], 0.0, 1.0) * (upper - lower)
            numbers = np.rint(numbers) if column.kind is Kind.INTEGER else numbers
            numbers = np.clip(numbers, lower, upper)  # rounding errors of the scaling
            if indicator is not None:
                numbers = np.where(matrix[..., indicator] >= 0.5, np.nan, numbers)
            columns.append(numbers)
        else:
            codes = matrix[..., value].argmax(axis=-1)
            codes = np.where(codes == len(column.categories), MISSING, codes)
            columns.append(codes.astype(np.float64))
    return np.stack(columns, axis=-1)


def values_of_table(data: pd.DataFrame, schema: Schema) -> npt.NDArray[np.float64]:
    """The values [n, d] of a table with the schema's columns: the inverse of `table_of`.

    Args:
        data: A table [n] with the schema's columns; values may be outside bounds and categories.
        schema: Its schema.

    Returns:
        Values [n, d] as `values_of` gives them; a category that the schema does not name becomes
        `OTHER`, which `table_of` cannot turn back.

    Raises:
        SchemaError: If a numeric column holds something that is not a number.
    """
    values = np.empty((len(data), len(schema.columns)), dtype=np.float64)
    numeric = [column for column in schema.columns if column.kind.numeric]
    plain = plain_numbers(data, [column.name for column in numeric])
    numbers = iter([c.numbers(data[c.name]) for c in numeric] if plain is None else plain.T)
    for column_values, column in zip(values.T, schema.columns, strict=True):
        column_values[:] = next(numbers) if column.kind.numeric else column.codes(data[column.name])
    return values


def table_of(values: npt.NDArray[np.float64], schema: Schema) -> pd.DataFrame:
    """The canonical table of values [n, d], as `values_of` gives them."""
    table: dict[str, npt.NDArray[Any]] = {}
    for column, numbers in zip(schema.columns, values.T, strict=True):
        if column.kind.numeric:
            table[column.name] = column.canonical_numbers(numbers)
        else:
            choices = np.empty(len(column.categories) + 1, dtype=object)
            choices[:-1] = column.categories
            choices[-1] = np.nan  # the code of a missing value, -1, picks the last
            table[column.name] = choices[numbers.astype(np.int64)]
    return canonical_table(table)
