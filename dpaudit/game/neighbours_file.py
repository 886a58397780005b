"""The user's own pair of tables: the other world's table is in a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from dpaudit.errors import DataError
from dpaudit.formatting import listed
from dpaudit.model.claim import Neighbours
from dpaudit.model.neighbouring_tables import NeighbouringTables, check_public
from dpaudit.model.tables import Table, fitting, load_table
from dpaudit.plugins.protocols import BoolArray


def read_neighbours(path: str, table: Table) -> NeighbouringTables:
    """Reads the table of world "out" and checks that it is a neighbour of the one of world "in".

    Args:
        path: The file. Its table is the one handed in without one record (add-remove), or with one
            record changed in its place (replace-one); everything else stands in the same order.
        table: The table handed in, with its public schema.

    Returns:
        Both tables.

    Raises:
        DataError: If the file cannot be read, does not fit the schema, or its table differs from
            the other one in no record or in more than one; says which rows differ.
        SchemaError: If the schema was inferred from the table.
    """
    source, choice = f"neighbours file {path}", f"neighbours-file:{path}"
    check_public(table.schema, choice)
    other = fitting(load_table(Path(path), schema=table.schema), table.schema, source=source)
    if len(other) == len(table.data):
        row, neighbours = _replaced(table.data, other, source), Neighbours.REPLACE_ONE
        replacement = other.iloc[[row]].reset_index(drop=True)
    else:
        row, neighbours = _removed(table.data, other, source), Neighbours.ADD_REMOVE
        replacement = None
    return NeighbouringTables(
        choice=choice,
        account=f"a pair of the caller's own, checked to differ in row {row} alone; both worlds "
        "have the same public schema and are asked for the same number of rows",
        data=table.data,
        schema=table.schema,
        row=row,
        replacement=replacement,
        neighbours=neighbours,
    )


def _replaced(data: pd.DataFrame, other: pd.DataFrame, source: str) -> int:
    """The one row in which two tables of equal length differ."""
    rows = np.flatnonzero(~_equal(data, other))
    if len(rows) == 0:
        raise DataError(f"{source} equals the table: change or remove exactly one record")
    if len(rows) > 1:
        raise DataError(
            f"{source} differs from the table in {len(rows)} records (rows {listed(rows, 5)}, "
            "counted from 0): neighbours differ in exactly one, and all others stand in the same "
            "order"
        )
    return int(rows[0])


def _removed(data: pd.DataFrame, other: pd.DataFrame, source: str) -> int:
    """The one row that the shorter table lacks."""
    if len(other) != len(data) - 1:
        swap = ": exchange the two" if len(other) == len(data) + 1 else ""
        raise DataError(
            f"{source} has {len(other)} records, the table {len(data)}; it must have one fewer, or "
            f"as many with one changed{swap}"
        )
    differing = np.flatnonzero(~_equal(data.iloc[:-1], other))
    row = int(differing[0]) if len(differing) else len(other)
    rest = np.flatnonzero(~_equal(data.iloc[row + 1 :], other.iloc[row:]))
    if len(rest):
        place = row + int(rest[0])
        raise DataError(
            f"{source} lacks row {row} of the table, and more: its row {place} is not row "
            f"{place + 1} of the table (counted from 0); remove one record and keep the order"
        )
    return row


def _equal(one: pd.DataFrame, other: pd.DataFrame) -> BoolArray:
    """Whether the records [n] of two canonical tables of equal length are equal."""
    equal = np.ones(len(one), dtype=bool)
    for name in one.columns:
        left, right = (table[name].reset_index(drop=True) for table in (one, other))
        both_missing = left.isna() & right.isna()
        equal &= np.asarray((left == right) | both_missing, dtype=bool)
    return equal
