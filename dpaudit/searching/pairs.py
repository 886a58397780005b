"""Neighbouring tables as Hypothesis draws and shrinks them, from a public schema alone.

A table is a few distinct rows, each with a multiplicity. The first choice of every strategy is the
simplest one, which examples shrink towards: few rows, each once, with the first value of a column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from dpaudit.model.claim import Neighbours
from dpaudit.model.linked_tables import LinkedTables
from dpaudit.model.neighbouring_tables import NeighbouringTables
from dpaudit.model.schema import Schema
from dpaudit.searching.linked_pairs import base_linked_pair, linked_crowds, linked_pairs
from dpaudit.searching.values import (
    MULTIPLICITIES,
    Draw,
    Record,
    records_of,
    simple_records,
    simple_values,
)

CHOICE: Final = "search"
MOST_DISTINCT: Final = 5
"""Distinct rows of a table, apart from the record by which the tables differ."""
MOST_ROWS_OF_A_UNIT: Final = 3
_CROWDS: Final = (7, 127, 255)
_ACCOUNT: Final = (
    "a pair of neighbouring tables made from the public schema alone; both worlds have the same "
    "bounds and are asked for the same number of rows"
)


def neighbouring_pairs(
    schema: Schema, *, neighbours: Neighbours, records: int
) -> st.SearchStrategy[NeighbouringTables]:
    """Pairs of neighbouring tables.

    Args:
        schema: The public schema; with a unit, the tables differ in all rows of one unit.
        neighbours: The relation of the tables; linked tables are always with and without a unit.
        records: The fewest rows of the smaller table, or units of linked tables.
    """
    if isinstance(schema, LinkedTables):
        return linked_pairs(schema, records=records)

    @st.composite
    def pair(draw: Draw) -> NeighbouringTables:
        others = _draw_table(draw, schema, records)
        count = 1 if schema.unit is None else draw(st.integers(1, _most_of_a_unit(schema)))
        own = [_draw_near(draw, schema, others) for _ in range(count)]
        replacement = None
        if neighbours is Neighbours.REPLACE_ONE:
            replacement = [_draw_near(draw, schema, others) for _ in range(count)]
            if replacement == own:
                replacement[0] = _other_record(schema, own[0])
        is_first = bool(others) and draw(st.booleans())
        return pair_of(schema, others, own, replacement, is_first=is_first)

    return pair()


def base_pair(schema: Schema, neighbours: Neighbours, records: int) -> NeighbouringTables:
    """Records with the first simple value of each column, and one with the second."""
    if isinstance(schema, LinkedTables):
        return base_linked_pair(schema, records)
    first, second = simple_records(schema)
    replacement = [first] if neighbours is Neighbours.REPLACE_ONE else None
    return pair_of(schema, [first] * max(1, records), [second], replacement)


def crowds(schema: Schema, neighbours: Neighbours, records: int) -> Iterator[NeighbouringTables]:
    """Many copies of one record: with one more of them, or one that is another."""
    if isinstance(schema, LinkedTables):
        yield from linked_crowds(schema, _CROWDS, records)
        return
    first, second = simple_records(schema)
    replacement = [second] if neighbours is Neighbours.REPLACE_ONE else None
    for count in _CROWDS:
        yield pair_of(schema, [first] * max(count, records), [first], replacement)


def related(pair: NeighbouringTables, neighbours: Neighbours) -> NeighbouringTables:
    """A worst case as a pair with one relation."""
    is_replaced = neighbours is Neighbours.REPLACE_ONE
    return replace(
        pair, replacement=pair.replacement if is_replaced else None, neighbours=neighbours
    )


def pair_of(
    schema: Schema,
    others: Sequence[Record],
    own: Sequence[Record],
    replacement: Sequence[Record] | None = None,
    *,
    is_first: bool = False,
) -> NeighbouringTables:
    """The two tables of some records.

    Args:
        schema: The schema.
        others: Records that both tables have.
        own: The record, or those of one unit, of the first table alone.
        replacement: Those in their place in the second table; None for add-remove.
        is_first: Whether they come before the others.
    """
    records = [*own, *others] if is_first else [*others, *own]
    rows = tuple(range(len(own))) if is_first else tuple(range(len(others), len(records)))
    data = table_of_records(schema, records)
    if schema.unit is not None:
        unit = np.arange(len(records)) + 1  # each other row is of a unit of its own
        unit[list(rows)] = 0
        data = schema.canonical(data.assign(**{schema.unit.column: unit}))
    other = None if replacement is None else table_of_records(schema, replacement)
    if other is not None and schema.unit is not None:
        other = schema.canonical(other.assign(**{schema.unit.column: 0}))
    return NeighbouringTables(
        choice=CHOICE,
        account=_ACCOUNT,
        data=data,
        schema=schema,
        rows=rows,
        replacement=other,
        neighbours=Neighbours.ADD_REMOVE if other is None else Neighbours.REPLACE_ONE,
    )


def table_of_records(schema: Schema, records: Sequence[Record]) -> pd.DataFrame:
    """A canonical table of records, of any number of them."""
    columns = {
        column.name: pd.Series([record[place] for record in records], dtype=object)
        for place, column in enumerate(schema.columns)
    }
    return schema.canonical(pd.DataFrame(columns))


def size(pair: NeighbouringTables) -> tuple[int, int, int]:
    """How much there is to read: rows, values that are not a column's first, digits."""
    plain = {column.name: simple_values(column)[0] for column in pair.schema.columns}
    data = pair.data if pair.replacement is None else pd.concat([pair.data, pair.replacement])
    odd = sum(int((data[name] != value).sum()) for name, value in plain.items())
    return len(data), odd, len(data.to_csv())


def _draw_table(draw: Draw, schema: Schema, records: int) -> list[Record]:
    """The records that both tables have; some tables have columns that are constant."""
    times = st.sampled_from(MULTIPLICITIES)
    rows = draw(st.lists(st.tuples(records_of(schema), times), max_size=MOST_DISTINCT))
    constant = draw(st.sets(st.integers(0, len(schema.columns) - 1)))
    table: list[Record] = []
    for record, count in rows:
        kept = tuple(
            rows[0][0][place] if place in constant else value for place, value in enumerate(record)
        )
        table += [kept] * count
    if len(table) < records:
        first = table[0] if table else draw(records_of(schema))
        table = [first] * (records - len(table)) + table
    return table


def _draw_near(draw: Draw, schema: Schema, others: Sequence[Record]) -> Record:
    """A record: any, a copy of another, or one that differs from another in one value."""
    record: Record = draw(records_of(schema))
    distinct = list(dict.fromkeys(others))
    if not distinct or draw(st.booleans()):
        return record
    near: Record = draw(st.sampled_from(distinct))
    if draw(st.booleans()):
        return near
    place = draw(st.integers(0, len(schema.columns) - 1))
    return (*near[:place], record[place], *near[place + 1 :])


def _other_record(schema: Schema, record: Record) -> Record:
    """A record that differs from another in its first value."""
    value = next(other for other in simple_values(schema.columns[0]) if other != record[0])
    return (value, *record[1:])


def _most_of_a_unit(schema: Schema) -> int:
    assert schema.unit is not None
    return min(schema.unit.max_rows or MOST_ROWS_OF_A_UNIT, MOST_ROWS_OF_A_UNIT)
