"""The user's own pair of tables: the other world's table is in a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from dpaudit.errors import DataError
from dpaudit.formatting import counted, listed
from dpaudit.model.claim import Neighbours
from dpaudit.model.neighbouring_tables import NeighbouringTables, check_public
from dpaudit.model.tables import Table, fitting, load_table
from dpaudit.model.unit import Unit
from dpaudit.plugins.protocols import BoolArray


def read_neighbours(path: str, table: Table) -> NeighbouringTables:
    """Reads the table of world "out" and checks that it is a neighbour of the one of world "in".

    Args:
        path: The file. Its table is the one handed in without one record (add-remove), or with one
            record changed in its place (replace-one); everything else stands in the same order. Of
            a table with a unit, without all rows of one unit, or with rows of one unit changed.
        table: The table handed in, with its public schema.

    Returns:
        Both tables.

    Raises:
        DataError: If the file cannot be read, does not fit the schema, or its table differs from
            the other one in no record (or unit) or in more than one; says which rows differ.
        SchemaError: If the schema was inferred from the table.
    """
    source, choice = f"neighbours file {path}", f"neighbours-file:{path}"
    check_public(table.schema, choice)
    other = fitting(load_table(Path(path), schema=table.schema), table.schema, source=source)
    unit, is_replaced = table.schema.unit, len(other) == len(table.data)
    if unit is not None:
        rows = _of_unit(table.data, other, unit, source)
        where = f"the {counted(len(rows), 'row')} of one {unit.column}"
    else:
        row = (_replaced if is_replaced else _removed)(table.data, other, source)
        rows, where = (row,), f"row {row}"
    return NeighbouringTables(
        choice=choice,
        account=f"a pair of the caller's own, checked to differ in {where} alone; both worlds "
        "have the same public schema and are asked for the same number of rows",
        data=table.data,
        schema=table.schema,
        rows=rows,
        replacement=other.iloc[list(rows)].reset_index(drop=True) if is_replaced else None,
        neighbours=Neighbours.REPLACE_ONE if is_replaced else Neighbours.ADD_REMOVE,
    )


def _of_unit(data: pd.DataFrame, other: pd.DataFrame, unit: Unit, source: str) -> tuple[int, ...]:
    """The rows of the one unit that another table lacks, or in whose rows it differs."""
    if unit.column not in other:
        raise DataError(f"{source}: the unit's column {unit.column!r} is missing")
    names, own = data[unit.column], other[unit.column]
    if len(other) == len(data) and (names == own).all():
        found = names[~_equal(data, other)].unique()
        sound = len(found) == 1
    else:
        found = names[~names.isin(own)].unique()
        rest = data[~names.isin(found)]
        sound = len(found) == 1 and len(rest) == len(other) and bool(_equal(rest, other).all())
    if not sound:
        raise DataError(
            f"{source} must be the table without all rows of one {unit.column}, or with other "
            f"values in the rows of one, and everything else in the same order; {len(found)} "
            "are missing or changed"
        )
    return tuple(np.flatnonzero(names.isin(found)).tolist())


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
