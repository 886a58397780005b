"""Neighbouring tables: a worst case from a public schema alone, or the caller's own pair."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.errors import DataError, SchemaError
from dpaudit.formatting import counted, listed
from dpaudit.model.choices import WorstCase
from dpaudit.model.claim import Neighbours
from dpaudit.model.column import Category, Column, Kind, Unit
from dpaudit.model.schema import Schema
from dpaudit.model.tables import Table, fitting, load_table

_OTHERS = 10
_MANY = 40
_MOST_ONE_HOT = 50
_MOST_NARROW = 3
_EQUAL = {WorstCase.BATCH: 8, WorstCase.CROWD: 256}
_MST = Schema(
    columns=tuple(Column(name=name, kind=Kind.BINARY, categories=(0, 1)) for name in "ABC")
)


@dataclass(frozen=True, eq=False, kw_only=True)
class NeighbouringTables:
    """A table with the target, and its counterpart in the other world.

    Attributes:
        choice: How the tables were chosen, as "worst-case:opposite".
        account: What the tables are and why they make a valid game, in words.
        data: The table with the target, canonical.
        schema: Its public schema.
        rows: The target's rows in it; one, unless the target is a unit.
        replacement: For replace-one, the records (canonical rows) in the place of these rows.
        neighbours: The relation of the tables; None if the audit chooses it.

    Raises:
        SchemaError: If the schema was inferred from private data.
    """

    choice: str
    account: str
    data: pd.DataFrame
    schema: Schema
    rows: tuple[int, ...]
    replacement: pd.DataFrame | None
    neighbours: Neighbours | None = None

    def __post_init__(self) -> None:
        check_public(self.schema, self.choice)


def check_public(schema: Schema, choice: str) -> None:
    """Refuses a schema whose bounds may reveal something about a record.

    Raises:
        SchemaError: If the schema was inferred from a table; names what needs a public one.
    """
    if schema.inferred:
        raise SchemaError(
            f"{choice} needs a public schema, and this one was inferred from a table: give "
            "`schema` with bounds and categories from the data's documentation"
        )


def worst_case_tables(worst_case: WorstCase, schema: Schema | None) -> NeighbouringTables:
    """Builds both tables of a worst case.

    Args:
        worst_case: The worst case. `opposite` generalises the four records (0, 0, 0) and the target
            (1, 1, 1) of Ganev, Annamalai and De Cristofaro 2025. Two ideas are from Annamalai,
            Ganev and De Cristofaro 2024: in `mixed` only the target's combination of values is new,
            and `narrow` has few columns. `mst` has the records of Ganev, Annamalai and Kulynych
            2026.
        schema: The public schema; None for a worst case with its own schema.

    Returns:
        The tables, the target last; they depend on the schema alone, not on what is audited.

    Raises:
        SchemaError: If the schema is missing, inferred, not wanted, or lacks the columns needed.
    """
    if worst_case.has_own_schema:
        if schema not in (None, _MST):
            raise SchemaError(f"the worst case {worst_case} has its own schema: leave out `schema`")
        schema = _MST
    if schema is None:
        raise SchemaError(
            f"the worst case {worst_case} is built from a schema alone: give `schema`"
        )
    if worst_case is WorstCase.NARROW:
        schema = _narrow(schema)
    _check_columns(worst_case, schema)
    columns = {column.name: _values(worst_case, schema, column) for column in schema.columns}
    data = schema.canonical(pd.DataFrame(columns))
    return NeighbouringTables(
        choice=f"worst-case:{worst_case}",
        account=f"worst case {worst_case}, built from the public schema alone: "
        f"{worst_case.meaning}; both worlds have the same bounds and are asked for the same "
        "number of rows",
        data=data,
        schema=schema,
        rows=(len(data) - 1,),
        replacement=data.iloc[[0]].reset_index(drop=True),
    )


def searched_tables(schema: Schema) -> dict[WorstCase, NeighbouringTables]:
    """What a search tries first: every worst case of the whole schema, without equal tables.

    Args:
        schema: The public schema.

    Returns:
        The tables by worst case; the first is `opposite`.
    """
    candidates: dict[WorstCase, NeighbouringTables] = {}
    for worst_case in WorstCase:
        try:
            pair = worst_case_tables(worst_case, schema)
        except SchemaError:  # the schema lacks the columns for it
            continue
        is_known = any(pair.data.equals(other.data) for other in candidates.values())
        if pair.schema == schema and not is_known:
            candidates[worst_case] = pair
    return candidates


def _narrow(schema: Schema) -> Schema:
    """The first columns of a schema; if the label is not among them, it replaces the last."""
    columns = list(schema.columns[:_MOST_NARROW])
    if schema.label is not None and schema.label not in [column.name for column in columns]:
        columns[-1] = next(column for column in schema.columns if column.name == schema.label)
    return replace(schema, columns=tuple(columns))


def _values(worst_case: WorstCase, schema: Schema, column: Column) -> list[Category]:
    """A column of the table, the target's value last."""
    if worst_case is WorstCase.ONE_HOT:
        categories = max(len(column.categories) for column in schema.columns)
        records = min(max(_OTHERS + 1, categories), _MOST_ONE_HOT)
        *usual, of_target = _spread(column, records)
        return [*_cycle(usual, records - 1), of_target]
    low, *_, high = _spread(column, 2)
    [middle] = _middle_value(column) or [low]
    in_turn = low if schema.columns.index(column) % 2 else high
    if worst_case is WorstCase.MIXED:
        return [*_cycle([low, high], _OTHERS), in_turn]
    if worst_case is WorstCase.INSIDE:
        return [*_cycle([low, high], _OTHERS), *(_middle_value(column) or [in_turn])]
    if worst_case is WorstCase.OUTLIER:
        return [*_cycle(_low_values(column), _MANY), high]
    if worst_case is WorstCase.MISSING:
        return [low, *[math.nan if _can_be_missing(column) else low] * (_MANY - 1), high]
    if worst_case is WorstCase.REVERSED:
        return [high] * _OTHERS + [low]
    if worst_case is WorstCase.CENTRE:
        return [middle] * _OTHERS + [high]
    return [low] * _EQUAL.get(worst_case, _OTHERS) + [high]


def _check_columns(worst_case: WorstCase, schema: Schema) -> None:
    """Refuses a schema without the columns that a worst case needs."""
    columns = schema.columns
    if worst_case is WorstCase.MIXED and len(columns) < 2:
        needs = "at least 2 columns to mix"
    elif worst_case is WorstCase.INSIDE and not any(map(_middle_value, columns)):
        needs = "a column with a value between its first and its last"
    elif worst_case is WorstCase.MISSING and not any(map(_can_be_missing, columns)):
        needs = "a column of two values that may also be missing"
    else:
        return
    raise SchemaError(
        f"the worst case {worst_case} needs {needs}: take {WorstCase.OPPOSITE} for this schema"
    )


def _cycle(values: Sequence[Category], records: int) -> list[Category]:
    return [values[record % len(values)] for record in range(records)]


def _middle_value(column: Column) -> list[Category]:
    """A value between a column's first and last, in a list; empty if there is none."""
    return _spread(column, 3)[1:-1]


def _can_be_missing(column: Column) -> bool:
    """Whether values may be missing in a column that also has two values for the target."""
    return column.missing and (column.kind.numeric or len(column.categories) > 1)


def _low_values(column: Column) -> list[Category]:
    """Distinct values in the first fifth of a numeric column; all categories but the last."""
    if not column.kind.numeric:
        return _spread(column, _MANY)[:-1]
    lower, upper = column.bounds
    return _grid(column, lower, lower + (upper - lower) / 5, _MANY)


def _spread(column: Column, most: int) -> list[Category]:
    """Distinct values of a column, from its first to its last: 2 to `most`."""
    if not column.kind.numeric:
        values: list[Category] = list(column.categories)
        if len(values) == 1:  # a missing value is the second one
            return [*values, math.nan]
        return values if len(values) <= most else [*values[: most - 1], values[-1]]
    return _grid(column, *column.bounds, most)


def _grid(column: Column, lower: float, upper: float, most: int) -> list[Category]:
    """Up to `most` evenly spaced values of a numeric column."""
    grid = np.linspace(lower, upper, most)
    if column.kind is Kind.INTEGER:
        grid = np.unique(np.rint(grid))
    return [float(value) for value in grid]


def read_neighbours(path: str, table: Table) -> NeighbouringTables:
    """Reads the table of world "out" and checks that it is a neighbour of the one of world "in".

    Args:
        path: The file. Its table is the one handed in without one record (add-remove), or with one
            record changed in place (replace-one), and everything else in the same order. If there
            is a unit, it lacks all rows of one unit, or has changes in the rows of one unit.
        table: The table handed in, with its public schema.

    Returns:
        Both tables.

    Raises:
        DataError: If the file cannot be read or does not fit the schema, or its table differs in no
            record (or unit) or in more than one; the message names rows that differ.
        SchemaError: If the schema was inferred from the table.
    """
    source, choice = f"neighbours file {path}", f"neighbours-file:{path}"
    check_public(table.schema, choice)
    other = fitting(load_table(Path(path), schema=table.schema), table.schema, source=source)
    unit, is_replaced = table.schema.unit, len(other) == len(table.data)
    if unit is not None:
        rows = _changed_unit(table.data, other, unit, source)
        where = f"the {counted(len(rows), 'row')} of one {unit.column}"
    else:
        row = (_replaced_row if is_replaced else _removed_row)(table.data, other, source)
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


def _changed_unit(
    data: pd.DataFrame, other: pd.DataFrame, unit: Unit, source: str
) -> tuple[int, ...]:
    """The rows of the only unit that the other table lacks, or whose rows differ there."""
    if unit.column not in other:
        raise DataError(f"{source}: the unit's column {unit.column!r} is missing")
    names, other_names = data[unit.column], other[unit.column]
    if len(other) == len(data) and (names == other_names).all():
        changed = names[~equal_records(data, other)].unique()
        is_neighbour = len(changed) == 1
    else:
        changed = names[~names.isin(other_names)].unique()
        remaining = data[~names.isin(changed)]
        is_neighbour = (
            len(changed) == 1
            and len(remaining) == len(other)
            and bool(equal_records(remaining, other).all())
        )
    if not is_neighbour:
        raise DataError(
            f"{source} must be the table without all rows of one {unit.column}, or with other "
            f"values in the rows of one, and everything else in the same order; {len(changed)} "
            "are missing or changed"
        )
    return tuple(np.flatnonzero(names.isin(changed)).tolist())


def _replaced_row(data: pd.DataFrame, other: pd.DataFrame, source: str) -> int:
    """The only row in which two tables of equal length differ."""
    rows = np.flatnonzero(~equal_records(data, other))
    if len(rows) == 0:
        raise DataError(f"{source} equals the table: change or remove exactly one record")
    if len(rows) > 1:
        raise DataError(
            f"{source} differs from the table in {len(rows)} records (rows {listed(rows, 5)}, "
            "counted from 0): neighbours differ in exactly one, and all others stand in the same "
            "order"
        )
    return int(rows[0])


def _removed_row(data: pd.DataFrame, other: pd.DataFrame, source: str) -> int:
    """The only row that the shorter table lacks."""
    if len(other) != len(data) - 1:
        swap = ": exchange the two" if len(other) == len(data) + 1 else ""
        raise DataError(
            f"{source} has {len(other)} records, the table {len(data)}; it must have one fewer, or "
            f"as many with one changed{swap}"
        )
    differing = np.flatnonzero(~equal_records(data.iloc[:-1], other))
    row = int(differing[0]) if len(differing) else len(other)
    rest = np.flatnonzero(~equal_records(data.iloc[row + 1 :], other.iloc[row:]))
    if len(rest):
        place = row + int(rest[0])
        raise DataError(
            f"{source} lacks row {row} of the table, and more: its row {place} is not row "
            f"{place + 1} of the table (counted from 0); remove one record and keep the order"
        )
    return row


def equal_records(data: pd.DataFrame, other: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Whether the records [n] of two canonical tables of equal length are equal."""
    equal = np.ones(len(data), dtype=bool)
    for name in data.columns:
        left, right = (table[name].reset_index(drop=True) for table in (data, other))
        both_missing = left.isna() & right.isna()
        equal &= np.asarray((left == right) | both_missing, dtype=bool)
    return equal
