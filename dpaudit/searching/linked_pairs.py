"""Linked tables with one unit more or less, as Hypothesis draws and shrinks them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from dpaudit.model.claim import Neighbours
from dpaudit.model.linked_files import load_given
from dpaudit.model.linked_tables import KEY, PARENT, LinkedTables
from dpaudit.model.neighbouring_tables import NeighbouringTables
from dpaudit.searching.values import MULTIPLICITIES, Draw, Record, records_of, simple_records

TARGET: Final = "unit:0"
"""The unit that only one of the two worlds has."""
_MOST_DISTINCT: Final = 3
"""Distinct units, apart from the target; and distinct rows of a unit in each table."""
_MULTIPLICITIES: Final = MULTIPLICITIES[:4]
"""How often a unit occurs; its rows in a table may occur more often."""
_ACCOUNT: Final = (
    "linked tables made from the public schema alone, with and without all rows of one unit; both "
    "worlds have the same bounds and are asked for the same number of rows"
)


class UnitRow(NamedTuple):
    """A row of a unit.

    Attributes:
        table: Its table.
        parent: The place, among the rows of its unit, of the row that it refers to; None for the
            row of the root.
        record: Its values.
    """

    table: str
    parent: int | None
    record: Record


UnitRows: TypeAlias = tuple[UnitRow, ...]


def linked_pairs(schema: LinkedTables, *, records: int) -> st.SearchStrategy[NeighbouringTables]:
    """Pairs of linked tables that differ in all rows of one unit.

    Args:
        schema: The public schema.
        records: The fewest units of the smaller tables.
    """

    @st.composite
    def pair(draw: Draw) -> NeighbouringTables:
        units, times = _units(schema), st.sampled_from(_MULTIPLICITIES)
        distinct = draw(st.lists(st.tuples(units, times), max_size=_MOST_DISTINCT))
        others = [unit for unit, count in distinct for _ in range(count)]
        own = draw(st.sampled_from(others) | units if others else units)
        return linked_pair(schema, [own] * (records - len(others)) + others, own)

    return pair()


def base_linked_pair(schema: LinkedTables, records: int) -> NeighbouringTables:
    """Units with one row in each table: simple ones, and one with other values."""
    first, second = (_simple_unit(schema, which=which, children=1) for which in (0, 1))
    return linked_pair(schema, [first] * max(1, records), second)


def linked_crowds(
    schema: LinkedTables, counts: Sequence[int], records: int
) -> Iterator[NeighbouringTables]:
    """Many equal units with one more of them; and one unit that has many rows in each table."""
    unit = _simple_unit(schema, which=0, children=1)
    for count in counts:
        yield linked_pair(schema, [unit] * max(count, records), unit)
        crowded = _simple_unit(schema, which=1, children=count)
        yield linked_pair(schema, [unit] * max(1, records), crowded)


def linked_pair(
    schema: LinkedTables, others: Sequence[UnitRows], own: UnitRows
) -> NeighbouringTables:
    """The tables with some units and without one of them, which stands last and has key 0.

    Of a unit with more rows than the schema allows only the first are taken.
    """
    assert schema.unit is not None  # of linked tables
    values: dict[str, list[Record]] = {name: [] for name in schema.tables}
    keys: dict[str, dict[str, list[int]]] = {
        name: {place: [] for place in (KEY, PARENT)} for name in schema.tables
    }
    for number, unit in [*enumerate(others, 1), (0, own)]:
        placed: list[int] = []
        for row in unit[: schema.unit.max_rows]:
            key = number if row.parent is None else len(values[row.table])
            placed.append(key)
            values[row.table].append(row.record)
            keys[row.table][KEY].append(key)
            keys[row.table][PARENT].append(-1 if row.parent is None else placed[row.parent])
    tables = {name: _keyed_table(schema, name, values[name], keys[name]) for name in schema.tables}
    frame = load_given(tables, schema, None, ()).data
    rows = np.flatnonzero(frame[schema.unit.column].astype(str) == "0")
    return NeighbouringTables(
        choice=TARGET,
        account=_ACCOUNT,
        data=frame,
        schema=schema,
        rows=tuple(rows.tolist()),
        replacement=None,
        neighbours=Neighbours.ADD_REMOVE,
    )


def _keyed_table(
    schema: LinkedTables, name: str, records: Sequence[Record], keys: dict[str, list[int]]
) -> pd.DataFrame:
    """A table with its keys, which are whole numbers even if it has no rows."""
    columns: dict[str, Any] = {
        key: np.array(keys[place], dtype=np.int64) for key, place in schema.keys_of(name)
    }
    for place, column in enumerate(schema.tables[name].columns):
        columns[column.name] = pd.Series([record[place] for record in records], dtype=object)
    return pd.DataFrame(columns)


def _simple_unit(schema: LinkedTables, *, which: int, children: int) -> UnitRows:
    """A unit of simple records, with a number of rows in each table that refers to the root."""
    rows: list[UnitRow] = []
    for name in schema.order:
        record, link = simple_records(schema.tables[name])[which], schema.link_of(name)
        if link is None:
            rows.append(UnitRow(name, None, record))
        else:
            parent = next(place for place, row in enumerate(rows) if row.table == link.parent)
            rows += [UnitRow(name, parent, record)] * children
    return tuple(rows)


def _units(schema: LinkedTables) -> st.SearchStrategy[UnitRows]:
    """Any unit: a row of the root, and in each other table no row, a few or many."""

    @st.composite
    def unit(draw: Draw) -> UnitRows:
        rows = [UnitRow(schema.root, None, draw(records_of(schema.tables[schema.root])))]
        for name in schema.order[1:]:
            link = schema.link_of(name)
            assert link is not None  # of all but the root
            parents = [place for place, row in enumerate(rows) if row.table == link.parent]
            if not parents:
                continue
            children = st.tuples(
                st.sampled_from(parents[:_MOST_DISTINCT]),
                records_of(schema.tables[name]),
                st.sampled_from(MULTIPLICITIES),
            )
            for parent, record, times in draw(st.lists(children, max_size=_MOST_DISTINCT)):
                rows += [UnitRow(name, parent, record)] * times
        return tuple(rows)

    return unit()
