"""Reads several tables with keys, and checks the keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.errors import DataError, SchemaError, SettingsError
from dpaudit.formatting import counted, did_you_mean, quote
from dpaudit.model.column import Unit
from dpaudit.model.linked_tables import KEY, PARENT, TABLE, Link, LinkedTables, check_tree, key_text
from dpaudit.model.schema import Schema
from dpaudit.model.tables import IN_MEMORY, SAMPLE, Table, fitting, load, load_schema, load_table

OneTable: TypeAlias = pd.DataFrame | str | Path
"""A table from the caller."""
Given: TypeAlias = OneTable | Mapping[str, OneTable] | Sequence[str]
"""A table from the caller, several tables by name, or files that name their tables."""


def by_name(given: Given) -> OneTable | Mapping[str, OneTable]:
    """One table, or several by name; the file visits.csv has the table visits.

    Raises:
        SettingsError: If two files have the same name, or a sample is among several tables.
    """
    if not isinstance(given, list | tuple) or not all(isinstance(of, str | Path) for of in given):
        return cast("OneTable", given)  # anything else is refused where it is read
    if len(given) == 1:
        return given[0]
    tables: dict[str, OneTable] = {}
    for file in given:
        name = Path(file).name.split(".")[0]
        if str(file).startswith(SAMPLE) or name in tables:
            raise SettingsError(
                f"`data`: {file} has no name of its own among several tables: give files with "
                "different names"
            )
        tables[name] = file
    return tables


def are_several(given: object) -> bool:
    """Whether the caller gives several tables, by name or as files."""
    return isinstance(given, Mapping) or (isinstance(given, list | tuple) and len(given) > 1)


def load_given(
    data: Given, schema: Schema | str | Path | None, unit: Unit | None, links: Sequence[str]
) -> Table:
    """Reads and validates a table, or several as one frame.

    Args:
        data: As for `dpaudit.model.tables.load`, or several tables by name, or several files.
        schema: As for `load`; for several tables a `LinkedTables` or its file. Without one, links
            are needed.
        unit: The unit of privacy, if the schema does not name it.
        links: Links of the tables, if the schema does not have them.

    Returns:
        The canonical table, or the frame of several tables (`LinkedTables.stacked`), and its
        schema.

    Raises:
        DataError: If a table cannot be read or does not fit, or its keys are wrong.
        SchemaError: If a schema or link is malformed, or no schema can be inferred.
        SettingsError: If the schema has another unit or other links.
    """
    data = by_name(data)
    if isinstance(data, Mapping):
        return _load_linked(data, schema, unit, [Link.of(link) for link in links])
    if links:
        raise SettingsError("`links` connect several tables, and one is given: give all in `data`")
    return load(data, schema, unit)


def _load_linked(
    data: Mapping[str, OneTable],
    given: Schema | str | Path | None,
    unit: Unit | None,
    links: Sequence[Link],
) -> Table:
    """Reads linked tables as one frame; infers their schema unless it is given."""
    known = load_schema(given, _no_frame) if isinstance(given, str | Path) else given
    if isinstance(known, Schema) and not isinstance(known, LinkedTables):
        raise SchemaError('the schema is of one table: several need one with "tables" and "links"')
    if known is not None and links and sorted(links) != sorted(known.links):
        raise SettingsError("`links` differ from the schema's: leave them out, or correct one")
    schemas = {} if known is None else known.tables
    if known is not None and set(schemas) != set(data):
        raise SchemaError(
            f"the schema is of the tables {', '.join(schemas)}, given are {', '.join(data)}: name "
            "them alike"
        )
    tree = links if known is None else known.links
    check_tree(list(data), tree)
    tables = {
        name: table
        if isinstance(table, pd.DataFrame)
        else load_table(table, schema=schemas.get(name))
        for name, table in data.items()
    }
    for link in tree:
        _check_link(link, tables)
    if known is None:
        known = LinkedTables.infer_tables(tables, links)
    schema = known.with_unit(unit)
    assert isinstance(schema, LinkedTables)  # `with_unit` keeps the class
    frame = _frame(tables, schema)
    assert schema.unit is not None  # of linked tables
    if problems := schema.unit.problems(frame):
        raise DataError(f"{'; '.join(problems)}; correct the tables or the unit")
    files = tuple(_file_of(name, table) for name, table in data.items())
    in_memory = any(isinstance(table, pd.DataFrame) for table in data.values())
    source = IN_MEMORY if in_memory else ", ".join(map(str, data.values()))
    schema_file = str(given) if isinstance(given, str | Path) else None
    return Table(frame, schema, source, schema_file, files)


def _no_frame() -> pd.DataFrame:
    """Refuses SDV metadata, which would need the table to infer bounds from."""
    raise SchemaError('SDV metadata is of one table: several need a schema with "links"')


def _file_of(name: str, given: OneTable) -> str:
    """The name of a table in a command: its file, if that has the table's name."""
    is_file = isinstance(given, str | Path) and Path(given).name.split(".")[0] == name
    return str(given) if is_file else f"{name}.csv"


def _check_link(link: Link, tables: Mapping[str, pd.DataFrame]) -> None:
    """Checks that a link's columns exist, and that every child has exactly one parent.

    Raises:
        DataError: If a column, key or parent is missing, or a key repeats; names the first row.
    """
    for name, column in ((link.parent, link.key), (link.child, link.column)):
        known = list(map(str, tables[name].columns))
        if column not in known:
            raise DataError(
                f"link {link}: table {name} has no column {column!r}{did_you_mean(column, known)}; "
                "correct the link"
            )
    keys, references = (
        column.map(key_text, na_action="ignore")
        for column in (tables[link.parent][link.key], tables[link.child][link.column])
    )
    absent = np.flatnonzero(keys.isna())
    if len(absent):
        raise DataError(
            f"{link.parent}.{link.key} is missing in {counted(len(absent), 'row')}, the first is "
            f"row {absent[0]}; a key identifies every row: fill it in, or drop these rows"
        )
    repeated = np.flatnonzero(keys.duplicated())
    if len(repeated):
        raise DataError(
            f"{link.parent}.{link.key} is not a key: {counted(len(repeated), 'row')} with the "
            f"value of an earlier row, the first is row {repeated[0]}{quote(keys[repeated[0]])}; "
            "drop these rows, or link to a column that identifies every row"
        )
    orphans = np.flatnonzero(~references.isin(keys))
    if len(orphans):
        raise DataError(
            f"link {link}: {counted(len(orphans), 'row')} of {link.child} without a row of "
            f"{link.parent}, the first is row {orphans[0]}{quote(references[orphans[0]])}; drop "
            "these rows, or add their parents"
        )


def _frame(tables: Mapping[str, pd.DataFrame], schema: LinkedTables) -> pd.DataFrame:
    """The frame of all tables with the unit of each row."""
    fitted = {}
    for name, part in schema.tables.items():
        keys = tables[name][[key for key, _ in schema.keys_of(name)]].reset_index(drop=True)
        values = fitting(tables[name].drop(columns=list(keys)), part, source=f"table {name}")
        fitted[name] = pd.concat([keys, values], axis=1)
    frame = schema.stacked(schema.canonical_tables(fitted))
    owners = pd.Series(_owners(frame, schema)).infer_objects()
    assert schema.unit is not None  # of linked tables
    return schema.canonical(frame.assign(**{schema.unit.column: owners}))


def _owners(frame: pd.DataFrame, schema: LinkedTables) -> npt.NDArray[Any]:
    """The unit [n] of each row: the key of the root's row to which its links lead."""
    keys, parents = frame[KEY].to_numpy(), frame[PARENT].to_numpy()
    owners = np.empty(len(frame), dtype=object)
    of_key: dict[str, dict[object, object]] = {}
    for name in schema.order:
        rows, link = np.flatnonzero(frame[TABLE] == name), schema.link_of(name)
        if link is None:
            owners[rows] = keys[rows]
        else:
            owners[rows] = [of_key[link.parent][parent] for parent in parents[rows]]
        of_key[name] = dict(zip(keys[rows], owners[rows], strict=True))
    return owners
