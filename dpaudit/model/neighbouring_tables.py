"""Neighbouring tables: of a worst case, from a public schema alone, or the caller's own pair."""

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
        choice: How they were chosen, as "worst-case:opposite".
        account: What they are and why they make a valid game, in words.
        data: The table with the target, canonical.
        schema: Its public schema.
        rows: The target's rows in it, one unless it is a unit.
        replacement: For replace-one: the records (canonical rows) in their place.
        neighbours: The relation that they have; None if the audit chooses it.

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
        SchemaError: If it was inferred from a table; names what needs a public one.
    """
    if schema.inferred:
        raise SchemaError(
            f"{choice} needs a public schema, and this one was inferred from a table: give "
            "`schema` with bounds and categories from the data's documentation"
        )


def worst_case_tables(worst_case: WorstCase, schema: Schema | None) -> NeighbouringTables:
    """Builds both tables of a worst case.

    Args:
        worst_case: Which one. `opposite` generalises the four records (0, 0, 0) and the target
            (1, 1, 1) of Ganev, Annamalai and De Cristofaro 2025; that only the target's combination
            of values is new in `mixed`, and the few columns of `narrow`, are ideas of Annamalai,
            Ganev and De Cristofaro 2024. `mst` has the records of Ganev, Annamalai and Kulynych
            2026.
        schema: The public schema; None for one that has its own.

    Returns:
        The tables, the target last; the same for the same schema, whatever is audited.

    Raises:
        SchemaError: If a schema is missing, inferred, not taken, or without the columns needed.
    """
    assert worst_case is not WorstCase.SEARCH  # it has no tables of its own
    if worst_case.has_own_schema:
        if schema not in (None, _MST):
            raise SchemaError(f"the worst case {worst_case} has its own schema: leave out `schema`")
        schema = _MST
    if schema is None:
        raise SchemaError(_needs_schema(worst_case))
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


def searched_tables(schema: Schema | None) -> dict[WorstCase, NeighbouringTables]:
    """The candidates of a search: every worst case of the whole schema, equal tables once.

    Args:
        schema: The public schema.

    Returns:
        The tables by worst case; the first is `opposite`.

    Raises:
        SchemaError: If the schema is missing, or was inferred from private data.
    """
    if schema is None:
        raise SchemaError(_needs_schema(WorstCase.SEARCH))
    check_public(schema, f"worst-case:{WorstCase.SEARCH}")
    found: dict[WorstCase, NeighbouringTables] = {}
    for worst_case in WorstCase:
        if worst_case is WorstCase.SEARCH:
            continue
        try:
            pair = worst_case_tables(worst_case, schema)
        except SchemaError:  # such a schema does not have this one
            continue
        known = any(pair.data.equals(other.data) for other in found.values())
        if pair.schema == schema and not known:
            found[worst_case] = pair
    return found


def _needs_schema(worst_case: WorstCase) -> str:
    return f"the worst case {worst_case} is built from a schema alone: give `schema`"


def _narrow(schema: Schema) -> Schema:
    """The first columns of a schema, with the label in the place of the last if it is not one."""
    kept = list(schema.columns[:_MOST_NARROW])
    if schema.label is not None and schema.label not in [column.name for column in kept]:
        kept[-1] = next(column for column in schema.columns if column.name == schema.label)
    return replace(schema, columns=tuple(kept))


def _values(worst_case: WorstCase, schema: Schema, column: Column) -> list[Category]:
    """A column of the table, the target's value last."""
    if worst_case is WorstCase.ONE_HOT:
        categories = max(len(each.categories) for each in schema.columns)
        records = min(max(_OTHERS + 1, categories), _MOST_ONE_HOT)
        *usual, own = _spread(column, records)
        return [*_cycled(usual, records - 1), own]
    low, *_, high = _spread(column, 2)
    [middle] = _between(column) or [low]
    in_turn = low if schema.columns.index(column) % 2 else high
    if worst_case is WorstCase.MIXED:
        return [*_cycled([low, high], _OTHERS), in_turn]
    if worst_case is WorstCase.INSIDE:
        return [*_cycled([low, high], _OTHERS), *(_between(column) or [in_turn])]
    if worst_case is WorstCase.OUTLIER:
        return [*_cycled(_first_fifth(column), _MANY), high]
    if worst_case is WorstCase.MISSING:
        return [low, *[math.nan if _may_lack(column) else low] * (_MANY - 1), high]
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
    elif worst_case is WorstCase.INSIDE and not any(map(_between, columns)):
        needs = "a column with a value between its first and its last"
    elif worst_case is WorstCase.MISSING and not any(map(_may_lack, columns)):
        needs = "a column of two values that may also be missing"
    else:
        return
    raise SchemaError(
        f"the worst case {worst_case} needs {needs}: take {WorstCase.OPPOSITE} for this schema"
    )


def _cycled(values: Sequence[Category], records: int) -> list[Category]:
    return [values[record % len(values)] for record in range(records)]


def _between(column: Column) -> list[Category]:
    """A value between a column's first and its last; empty if there is none."""
    return _spread(column, 3)[1:-1]


def _may_lack(column: Column) -> bool:
    """Whether a column has two values and may be missing: its target's value is not missing."""
    return column.missing and (column.kind.numeric or len(column.categories) > 1)


def _first_fifth(column: Column) -> list[Category]:
    """Different values in the first fifth of a column; of categories, all but the last."""
    if not column.kind.numeric:
        return _spread(column, _MANY)[:-1]
    lower, upper = column.bounds
    return _grid(column, lower, lower + (upper - lower) / 5, _MANY)


def _spread(column: Column, most: int) -> list[Category]:
    """Different values of a column from its first to its last, at least 2 and at most so many."""
    if not column.kind.numeric:
        values: list[Category] = list(column.categories)
        if len(values) == 1:  # its other value is a missing one
            return [*values, math.nan]
        return values if len(values) <= most else [*values[: most - 1], values[-1]]
    return _grid(column, *column.bounds, most)


def _grid(column: Column, lower: float, upper: float, most: int) -> list[Category]:
    """At most so many values of a numeric column, evenly from one to another."""
    grid = np.linspace(lower, upper, most)
    if column.kind is Kind.INTEGER:
        grid = np.unique(np.rint(grid))
    return [float(value) for value in grid]


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
        found = names[~equal_records(data, other)].unique()
        sound = len(found) == 1
    else:
        found = names[~names.isin(own)].unique()
        rest = data[~names.isin(found)]
        sound = (
            len(found) == 1 and len(rest) == len(other) and bool(equal_records(rest, other).all())
        )
    if not sound:
        raise DataError(
            f"{source} must be the table without all rows of one {unit.column}, or with other "
            f"values in the rows of one, and everything else in the same order; {len(found)} "
            "are missing or changed"
        )
    return tuple(np.flatnonzero(names.isin(found)).tolist())


def _replaced(data: pd.DataFrame, other: pd.DataFrame, source: str) -> int:
    """The one row in which two tables of equal length differ."""
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


def _removed(data: pd.DataFrame, other: pd.DataFrame, source: str) -> int:
    """The one row that the shorter table lacks."""
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


def equal_records(one: pd.DataFrame, other: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Whether the records [n] of two canonical tables of equal length are equal."""
    equal = np.ones(len(one), dtype=bool)
    for name in one.columns:
        left, right = (table[name].reset_index(drop=True) for table in (one, other))
        both_missing = left.isna() & right.isna()
        equal &= np.asarray((left == right) | both_missing, dtype=bool)
    return equal
