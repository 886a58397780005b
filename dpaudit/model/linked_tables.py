"""Linked tables: the public schema of several tables with keys, and one frame with all their rows.

Everything between the caller's tables and the generator handles this frame. Each row names its
table and its unit and has its own key and its parent's; in the columns of other tables its values
are missing. So a world that lacks a unit lacks its rows in every table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.errors import SchemaError
from dpaudit.formatting import did_you_mean, listed
from dpaudit.model.column import Column, Kind, Unit
from dpaudit.model.schema import FORMAT, Schema, canonical_table

TABLE: Final = "table"
"""The column of the frame that names the table of each row."""
KEY: Final = "key"
"""The column with the row's own key; missing in tables that no other table refers to."""
PARENT: Final = "parent"
"""The column with the key of the row that it refers to; missing in the root table."""
_LINK: Final = re.compile(r"\s*([^.=\s]+)\.([^=]+?)\s*=\s*([^.=\s]+)\.([^=]+?)\s*")
_KEYS: Final = frozenset(("format", "inferred", "unit", "tables", "links"))


class Link(NamedTuple):
    """A column of one table that refers to the key of another, as visits.patient_id=patients.id.

    Attributes:
        child: The table that refers to the other.
        column: Its column.
        parent: The table that it refers to.
        key: The column that identifies the parent's rows.
    """

    child: str
    column: str
    parent: str
    key: str

    @staticmethod
    def of(text: Link | str) -> Link:
        """Reads a link from its text, such as "visits.patient_id=patients.id".

        Raises:
            SchemaError: If the text is not a link.
        """
        if isinstance(text, Link):
            return text
        match = _LINK.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            raise SchemaError(f"{text!r} is not a link: write CHILD.COLUMN=PARENT.KEY")
        return Link(*match.groups())

    def __str__(self) -> str:
        return f"{self.child}.{self.column}={self.parent}.{self.key}"


@dataclass(frozen=True, kw_only=True)
class LinkedTables(Schema):
    """The public description of several tables with keys.

    The links form a tree. Its root is the one table that refers to no other: a row of the root is
    the unit of privacy, with all rows that refer to it, directly or through other tables. As a
    schema this describes the frame with the rows of all tables (`stacked`).

    Attributes:
        tables: The schema of each table by name, without its keys.
        links: Which column of a table refers to which key of another; they may be given as text.
        unit: The root's key, such as "patients.id", and perhaps the largest number of rows of all
            tables that belong to one key; derived from the links if None.

    Raises:
        SchemaError: If a table has no link, the links are not a tree, or a schema describes a key.
    """

    tables: Mapping[str, Schema] = field(hash=False)
    links: tuple[Link, ...]
    columns: tuple[Column, ...] = field(init=False)
    label: str | None = field(init=False, default=None)
    inferred: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "links", tuple(map(Link.of, self.links)))
        check_tree(list(self.tables), self.links)
        for name, schema in self.tables.items():
            described = [key for key, _ in self.keys_of(name) if key in schema.names]
            if schema.unit is not None or described:
                culprit = described[0] if described else "its unit"
                raise SchemaError(
                    f"table {name}: its schema describes {culprit}: keys have no kind"
                )
        columns = tuple(
            _optional(column, f"{name}.{column.name}")
            for name in self.order
            for column in self.tables[name].columns
        )
        object.__setattr__(self, "columns", columns)
        object.__setattr__(
            self, "inferred", any(schema.inferred for schema in self.tables.values())
        )
        root_unit = Unit(column=f"{self.root}.{self.key_of(self.root)}")
        if self.unit is None:
            object.__setattr__(self, "unit", root_unit)
        elif self.unit.column != root_unit.column:
            raise SchemaError(
                f"the unit is {root_unit.column}, to which all rows lead, not {self.unit.column}"
            )
        super().__post_init__()

    @staticmethod
    def infer_tables(
        tables: Mapping[str, pd.DataFrame], links: Sequence[Link | str]
    ) -> LinkedTables:
        """Infers the schema of every table, as `Schema.infer`, with given links.

        Args:
            tables: The tables by name, with their keys.
            links: Which column of a table refers to which key of another.

        Returns:
            The schema; it is marked as inferred.

        Raises:
            SchemaError: If the links are not a tree, or a table has no column but keys.
        """
        read_links = tuple(map(Link.of, links))
        check_tree(list(tables), read_links)
        schemas = {}
        for name, table in tables.items():
            keys = {link.column for link in read_links if link.child == name}
            keys |= {link.key for link in read_links if link.parent == name}
            described = table.drop(columns=list(keys), errors="ignore")
            try:
                if not len(described.columns):
                    raise SchemaError("it has no column but keys: leave it out")
                schemas[name] = Schema.infer(described)
            except SchemaError as error:
                raise SchemaError(f"table {name}: {error}") from None
        return LinkedTables(tables=schemas, links=read_links)

    @cached_property
    def root(self) -> str:
        """The table that refers to no other table."""
        return self.order[0]

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The tables, each after the one that it refers to."""
        children = {link.child for link in self.links}
        order = [name for name in self.tables if name not in children]
        for name in order:
            order += self.children_of(name)
        return tuple(order)

    def link_of(self, name: str) -> Link | None:
        """The link of a table to its parent; None for the root."""
        return next((link for link in self.links if link.child == name), None)

    def key_of(self, name: str) -> str | None:
        """The key column of a table; None if no other table refers to it."""
        return next((link.key for link in self.links if link.parent == name), None)

    def children_of(self, name: str) -> list[str]:
        """The tables that refer to a table."""
        return [link.child for link in self.links if link.parent == name]

    def keys_of(self, name: str) -> list[tuple[str, str]]:
        """The key columns of a table, each with its column in the frame (`KEY` or `PARENT`)."""
        link, key = self.link_of(name), self.key_of(name)
        columns = [] if key is None else [(key, KEY)]
        return columns if link is None else [*columns, (link.column, PARENT)]

    @property
    def text_columns_of(self) -> dict[str, list[str]]:
        """Columns of each table that files may write as numbers, including keys."""
        return {
            name: [*schema.text_columns, *(key for key, _ in self.keys_of(name))]
            for name, schema in self.tables.items()
        }

    @property
    def words(self) -> list[str]:
        """The words of a command that name the links."""
        return [word for link in self.links for word in ("--link", str(link))]

    def rows_asked(self, data: pd.DataFrame) -> int:
        """The number of rows of the root, which is the number to request from a generator."""
        return int((data[TABLE] == self.root).sum())

    def canonical(self, data: pd.DataFrame) -> pd.DataFrame:
        """As `Schema.canonical`, with the frame's columns for table and keys."""
        table = super().canonical(data)
        keys = {name: data[name].to_numpy(dtype=object) for name in (TABLE, KEY, PARENT)}
        return table.assign(**{name: pd.Series(of, dtype=object) for name, of in keys.items()})

    def canonical_tables(self, tables: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
        """Each table in canonical form, its keys first.

        Args:
            tables: The tables with all their keys.

        Raises:
            SchemaError: As `canonical`.
        """
        keys = {name: tables[name][[key for key, _ in self.keys_of(name)]] for name in self.tables}
        # Keys stay numbers only if all are: a world that lacks some must have the same dtypes.
        are_numbers = all(
            dtype.kind in "iu" for key_columns in keys.values() for dtype in key_columns.dtypes
        )
        canonical = {}
        for name, part in self.tables.items():
            key_columns = keys[name] if are_numbers else keys[name].map(key_text)
            canonical[name] = pd.concat(
                [key_columns.reset_index(drop=True), part.canonical(tables[name])], axis=1
            )
        return canonical

    def stacked(self, tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
        """The frame with the rows of all tables, the root's first, but without units.

        Args:
            tables: Each table, canonical, with keys; absent key columns count as missing.
        """
        sizes = [len(tables[name]) for name in self.order]
        ends = np.cumsum(sizes)
        columns = {column.name: _missing(column, int(ends[-1])) for column in self.columns}
        keys = {name: np.full(int(ends[-1]), np.nan, dtype=object) for name in (KEY, PARENT)}
        for name, size, end in zip(self.order, sizes, ends, strict=True):
            table, rows = tables[name], slice(end - size, end)
            for column in self.tables[name].names:
                columns[f"{name}.{column}"][rows] = table[column]
            for key, place in self.keys_of(name):
                if key in table:
                    keys[place][rows] = table[key].to_numpy(dtype=object)
        keys[TABLE] = np.repeat(np.array(self.order, dtype=object), sizes)
        return canonical_table({**columns, **keys})

    def handed(self, data: pd.DataFrame) -> dict[str, pd.DataFrame]:
        """The tables as a generator receives them, with their keys first.

        Args:
            data: The frame.
        """
        assert self.unit is not None  # by __post_init__
        tables = {}
        are_numbers = data[self.unit.column].dtype.kind in "iu"
        for name, schema in self.tables.items():
            rows = data[data[TABLE] == name]
            keys = {
                # of a table without rows, too: the other world may have some
                key: rows[place].astype(np.int64) if are_numbers else rows[place].infer_objects()
                for key, place in self.keys_of(name)
            }
            values = schema.handed(schema.canonical(self._columns_of(name, rows)))
            keyed = pd.DataFrame(keys).reset_index(drop=True)
            tables[name] = pd.concat([keyed, values], axis=1)
        return tables

    def _columns_of(self, name: str, rows: pd.DataFrame) -> pd.DataFrame:
        """The columns of a table under their names there, for its rows in the frame."""
        names = {f"{name}.{column}": column for column in self.tables[name].names}
        return rows[list(names)].rename(columns=names)

    def joined_schemas(self, *frames: pd.DataFrame) -> dict[str, Schema]:
        """The schema of each table of `joined`.

        Args:
            frames: Frames whose largest number of children of a row sets the bound of that column.
        """
        schemas: dict[str, Schema] = {}
        for name in self.order:
            columns = [
                replace(column, name=f"{name}.{column.name}")
                for column in self.tables[name].columns
            ]
            if name == self.root:
                columns.append(_target_column(self.unit))
            for child in self.children_of(name):
                most = max(
                    int(_counts_of_children(frame, child).max(initial=0)) for frame in frames
                )
                columns.append(
                    Column(
                        name=_count_name(child),
                        kind=Kind.INTEGER,
                        lower=0,
                        upper=2.0 ** np.ceil(np.log2(max(most, 1))),
                    )
                )
            link = self.link_of(name)
            of_parent = () if link is None else schemas[link.parent].columns
            columns += [_optional(column, column.name) for column in of_parent]
            schemas[name] = Schema(columns=tuple(columns), inferred=self.inferred)
        return schemas

    def joined(
        self, data: pd.DataFrame, schemas: Mapping[str, Schema], target: object
    ) -> dict[str, pd.DataFrame]:
        """Each table joined along its keys: with the number of children of a row, and its parent.

        Keys themselves are left out, except whether a key of the root is the target's. The columns
        of an absent parent are missing; a table without rows gets one in which all is missing.

        Args:
            data: The frame of synthetic or real tables.
            schemas: The result of `joined_schemas`, perhaps without tables that no other one in it
                refers to.
            target: The target's key.

        Returns:
            The tables, canonical.
        """
        keys = {place: data[place].map(key_text, na_action="ignore") for place in (KEY, PARENT)}
        keyed = data.assign(**keys)
        rows = {name: keyed[keyed[TABLE] == name].reset_index(drop=True) for name in self.order}
        joined: dict[str, pd.DataFrame] = {}
        for name in (table for table in self.order if table in schemas):
            own_keys, link = rows[name][KEY], self.link_of(name)
            table = rows[name][[f"{name}.{column}" for column in self.tables[name].names]]
            added: dict[str, Any] = {}
            if link is None:
                is_target = (own_keys == key_text(target)).astype(int)
                added[_target_column(self.unit).name] = is_target.where(own_keys.notna())
            for child in self.children_of(name):
                counts = rows[child][PARENT].value_counts()
                added[_count_name(child)] = own_keys.map(counts).fillna(0)
            table = table.assign(**added)
            if link is not None:
                parent_keys = rows[link.parent][KEY].dropna().drop_duplicates()
                place = pd.Index(parent_keys).get_indexer(pd.Index(rows[name][PARENT]))
                places = np.append(parent_keys.index.to_numpy(), -1)[place]  # -1: no parent
                parents = joined[link.parent].reindex(places).reset_index(drop=True)
                table = pd.concat([table, parents], axis=1)
            joined[name] = schemas[name].canonical(table if len(table) else table.reindex([0]))
        return joined

    def to_document(self) -> dict[str, Any]:
        """This schema as a JSON document, as `save` writes it."""
        assert self.unit is not None  # by __post_init__
        described = {name: schema.to_document() for name, schema in self.tables.items()}
        return {
            "format": FORMAT,
            "inferred": self.inferred,
            "unit": self.unit.to_document(),
            "tables": {
                name: {"label": schema["label"], "columns": schema["columns"]}
                for name, schema in described.items()
            },
            "links": [str(link) for link in self.links],
        }

    @staticmethod
    def from_document(document: Mapping[str, Any]) -> LinkedTables:
        """Reads the schema document of several tables.

        Raises:
            SchemaError: If the document is malformed; the message names the table.
        """
        tables, links = document.get("tables"), document.get("links")
        if not isinstance(tables, Mapping) or not isinstance(links, list):
            raise SchemaError('several tables need an object "tables" and a list "links"')
        unknown = sorted(map(str, set(document) - _KEYS))
        if unknown:
            raise SchemaError(f'unknown keys {", ".join(unknown)}; a table goes into "tables"')
        schemas, inferred = {}, {"inferred": document.get("inferred", False)}
        for name, entry in tables.items():
            try:
                schemas[name] = Schema.from_document({**inferred, **entry})
            except (SchemaError, TypeError) as error:
                raise SchemaError(f"table {name}: {error}") from None
        unit = document.get("unit")
        return LinkedTables(
            tables=schemas,
            links=tuple(links),
            unit=None if unit is None else Unit.from_document(unit),
        )


def check_tree(names: Sequence[str], links: Sequence[Link]) -> None:
    """Checks that links make a tree of tables with one root.

    Raises:
        SchemaError: If they do not; the message says what to change.
    """
    for link in links:
        for name in (link.parent, link.child):
            if name not in names:
                known = did_you_mean(name, list(names)) or f"; tables: {listed(list(names))}"
                raise SchemaError(f"link {link}: there is no table {name}{known}")
    for name in names:
        links_up = [link for link in links if link.child == name]
        if len(links_up) > 1:
            raise SchemaError(
                f"table {name} has two links, {links_up[0]} and {links_up[1]}: leave out all but "
                "the one that leads to the unit"
            )
        keys = {link.key for link in links if link.parent == name}
        if len(keys) > 1:
            raise SchemaError(f"links refer to {name} by {' and '.join(sorted(keys))}: use one key")
        if not any(name in (link.child, link.parent) for link in links):
            raise SchemaError(
                f"table {name} has no link to the others: give one, such as "
                f"{name}.COLUMN={next((other for other in names if other != name), 'OTHER')}.KEY, "
                "or leave the table out"
            )
    link_of = {link.child: link for link in links}
    for name in names:
        path, table = [], name
        while table in link_of and table not in path:
            path.append(table)
            table = link_of[table].parent
        if table in path:
            circle = listed([str(link_of[step]) for step in path[path.index(table) :]])
            raise SchemaError(f"the links lead in a circle ({circle}): leave one of them out")
    roots = [name for name in names if name not in link_of]
    if len(roots) > 1:
        raise SchemaError(
            f"tables {listed(roots)} refer to no other: an audit removes a row of one table and "
            "all rows that refer to it; give a link between them, or leave out all but one"
        )


def _target_column(unit: Unit | None) -> Column:
    """The column that tells whether a key is the target's; missing if keys are not released."""
    assert unit is not None  # of linked tables
    return Column(
        name=f"{unit.column} is the target's", kind=Kind.BINARY, categories=(0, 1), missing=True
    )


def key_text(key: object) -> str:
    """A key as text, because files do not show whether it is a number."""
    return str(int(key)) if isinstance(key, float) and key.is_integer() else str(key)


def _count_name(child: str) -> str:
    """Name of the column with the number of children in a table."""
    return f"number of {child}"


def _counts_of_children(data: pd.DataFrame, child: str) -> npt.NDArray[np.intp]:
    """The number of rows of a table that refer to the same row, for each such row."""
    codes, _ = pd.factorize(data.loc[data[TABLE] == child, PARENT])
    return np.bincount(codes[codes >= 0])


def _missing(column: Column, rows: int) -> npt.NDArray[Any]:
    """The values [n] of a column of the frame, all of them missing."""
    return np.full(rows, np.nan, dtype=np.float64 if column.kind.numeric else object)


def _optional(column: Column, name: str) -> Column:
    """The column under another name, with missing values allowed."""
    return replace(column, name=name, missing=True)
