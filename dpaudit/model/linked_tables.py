"""Several tables with keys: their public schema, and the one frame that holds all their rows.

Everything between the caller's tables and the generator handles one frame: each row names its table
and its unit, has its own and its parent's key, and misses the columns of the other tables. So a
world that lacks a unit lacks its rows in every table.
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
"""The column with the row's own key; missing in tables that no other refers to."""
PARENT: Final = "parent"
"""The column with the key of the row that it refers to; missing in the root table."""
_LINK: Final = re.compile(r"\s*([^.=\s]+)\.([^=]+?)\s*=\s*([^.=\s]+)\.([^=]+?)\s*")
_KEYS: Final = frozenset(("format", "inferred", "unit", "tables", "links"))


class Link(NamedTuple):
    """A column of one table that refers to a key of another, as visits.patient_id=patients.id.

    Attributes:
        child: The table that refers.
        column: Its column.
        parent: The table that is referred to.
        key: The column there that identifies its rows.
    """

    child: str
    column: str
    parent: str
    key: str

    @staticmethod
    def of(text: Link | str) -> Link:
        """A link, or its text, such as "visits.patient_id=patients.id".

        Raises:
            SchemaError: If it is none.
        """
        if isinstance(text, Link):
            return text
        found = _LINK.fullmatch(text) if isinstance(text, str) else None
        if found is None:
            raise SchemaError(f"{text!r} is no link: write CHILD.COLUMN=PARENT.KEY")
        return Link(*found.groups())

    def __str__(self) -> str:
        return f"{self.child}.{self.column}={self.parent}.{self.key}"


@dataclass(frozen=True, kw_only=True)
class LinkedTables(Schema):
    """The public description of several tables with keys.

    The links form a tree. Its root is the one table that refers to no other: a row of it is the
    unit of privacy, with all rows that refer to it, directly or through others. As a schema this
    describes the one frame with the rows of all tables (`stacked`).

    Attributes:
        tables: The schema of each table by its name, without its keys.
        links: Which column of a table refers to which key of another; texts are read.
        unit: The root's key, such as "patients.id", and perhaps the most rows of all tables that
            refer to one; from the links if None.

    Raises:
        SchemaError: If a table has no link, the links are no tree, or a key is described.
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
                what = described[0] if described else "its unit"
                raise SchemaError(f"table {name}: its schema describes {what}: keys have no kind")
        columns = tuple(
            _optional(column, f"{name}.{column.name}")
            for name in self.order
            for column in self.tables[name].columns
        )
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "inferred", any(one.inferred for one in self.tables.values()))
        own = Unit(column=f"{self.root}.{self.key_of(self.root)}")
        if self.unit is None:
            object.__setattr__(self, "unit", own)
        elif self.unit.column != own.column:
            raise SchemaError(
                f"the unit is {own.column}, to which all rows lead, not {self.unit.column}"
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
            SchemaError: If links are no tree, or a table has no column that can be described.
        """
        read = tuple(map(Link.of, links))
        check_tree(list(tables), read)
        found = {}
        for name, table in tables.items():
            keys = {one.column for one in read if one.child == name}
            keys |= {one.key for one in read if one.parent == name}
            described = table.drop(columns=list(keys), errors="ignore")
            try:
                if not len(described.columns):
                    raise SchemaError("it has no column but keys: leave it out")
                found[name] = Schema.infer(described)
            except SchemaError as error:
                raise SchemaError(f"table {name}: {error}") from None
        return LinkedTables(tables=found, links=read)

    @cached_property
    def root(self) -> str:
        """The table that refers to no other."""
        return self.order[0]

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The tables, each after the one that it refers to."""
        children = {one.child for one in self.links}
        order = [name for name in self.tables if name not in children]
        for name in order:
            order += [one.child for one in self.links if one.parent == name]
        return tuple(order)

    def link_of(self, name: str) -> Link | None:
        """The link of a table to another; None of the root."""
        return next((one for one in self.links if one.child == name), None)

    def key_of(self, name: str) -> str | None:
        """The key column of a table; None if no other table refers to it."""
        return next((one.key for one in self.links if one.parent == name), None)

    def children_of(self, name: str) -> list[str]:
        """The tables that refer to a table."""
        return [one.child for one in self.links if one.parent == name]

    def keys_of(self, name: str) -> list[tuple[str, str]]:
        """The columns of a table with keys, and which of `KEY` and `PARENT` holds them."""
        link, key = self.link_of(name), self.key_of(name)
        own = [] if key is None else [(key, KEY)]
        return own if link is None else [*own, (link.column, PARENT)]

    @property
    def text_columns_of(self) -> dict[str, list[str]]:
        """Columns of each table that files may write as numbers, keys among them."""
        return {
            name: [*one.text_columns, *(key for key, _ in self.keys_of(name))]
            for name, one in self.tables.items()
        }

    @property
    def words(self) -> list[str]:
        """The words of a command that name the links."""
        return [word for one in self.links for word in ("--link", str(one))]

    def rows_asked(self, data: pd.DataFrame) -> int:
        """How many rows of the frame are rows of the root, of which a number is asked for."""
        return int((data[TABLE] == self.root).sum())

    def canonical(self, data: pd.DataFrame) -> pd.DataFrame:
        """As `Schema.canonical`, with the columns of the frame that are no values."""
        table = super().canonical(data)
        beside = {name: data[name].to_numpy(dtype=object) for name in (TABLE, KEY, PARENT)}
        return table.assign(**{name: pd.Series(of, dtype=object) for name, of in beside.items()})

    def canonical_tables(self, tables: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
        """Each table in canonical form, its keys first.

        Args:
            tables: The tables with their keys, of which none is missing.

        Raises:
            SchemaError: As `canonical`.
        """
        keys = {name: tables[name][[key for key, _ in self.keys_of(name)]] for name in self.tables}
        # Numbers only if all keys are: a world without one of them must not have other dtypes.
        whole = all(kind.kind in "iu" for own in keys.values() for kind in own.dtypes)
        found = {}
        for name, part in self.tables.items():
            own = keys[name] if whole else keys[name].map(key_text)
            found[name] = pd.concat(
                [own.reset_index(drop=True), part.canonical(tables[name])], axis=1
            )
        return found

    def stacked(self, tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
        """The frame with the rows of all tables, the root's first; without their units.

        Args:
            tables: Each table, canonical, with keys; a key that is not there is missing.
        """
        sizes = [len(tables[name]) for name in self.order]
        ends = np.cumsum(sizes)
        columns = {one.name: _missing(one, int(ends[-1])) for one in self.columns}
        beside = {name: np.full(int(ends[-1]), np.nan, dtype=object) for name in (KEY, PARENT)}
        for name, size, end in zip(self.order, sizes, ends, strict=True):
            table, rows = tables[name], slice(end - size, end)
            for column in self.tables[name].names:
                columns[f"{name}.{column}"][rows] = table[column]
            for key, place in self.keys_of(name):
                if key in table:
                    beside[place][rows] = table[key].to_numpy(dtype=object)
        beside[TABLE] = np.repeat(np.array(self.order, dtype=object), sizes)
        return canonical_table({**columns, **beside})

    def handed(self, data: pd.DataFrame) -> dict[str, pd.DataFrame]:
        """The tables as a generator gets them, with their keys first.

        Args:
            data: The frame.
        """
        found = {}
        for name, schema in self.tables.items():
            rows = data[data[TABLE] == name]
            keys = {key: rows[place].infer_objects() for key, place in self.keys_of(name)}
            values = schema.canonical(self._own(name, rows))
            keyed = pd.DataFrame(keys).reset_index(drop=True)
            found[name] = pd.concat([keyed, values], axis=1)
        return found

    def _own(self, name: str, rows: pd.DataFrame) -> pd.DataFrame:
        """The columns of a table under their own names, of its rows in the frame."""
        names = {f"{name}.{column}": column for column in self.tables[name].names}
        return rows[list(names)].rename(columns=names)

    def joined_schemas(self, *frames: pd.DataFrame) -> dict[str, Schema]:
        """The schema of each table of `joined`.

        Args:
            frames: With the largest number of children of a row that has to be told from others.
        """
        found: dict[str, Schema] = {}
        for name in self.order:
            columns = [replace(one, name=f"{name}.{one.name}") for one in self.tables[name].columns]
            if name == self.root:
                columns.append(_of_target(self.unit))
            for child in self.children_of(name):
                most = max(int(_children(frame, child).max(initial=0)) for frame in frames)
                columns.append(
                    Column(
                        name=_number_of(child),
                        kind=Kind.INTEGER,
                        lower=0,
                        upper=2.0 ** np.ceil(np.log2(max(most, 1))),
                    )
                )
            link = self.link_of(name)
            above = () if link is None else found[link.parent].columns
            columns += [_optional(one, one.name) for one in above]
            found[name] = Schema(columns=tuple(columns), inferred=self.inferred)
        return found

    def joined(
        self, data: pd.DataFrame, schemas: Mapping[str, Schema], target: object
    ) -> dict[str, pd.DataFrame]:
        """Each table with what its keys lead to: how many children a row has, and its parent.

        Keys are no columns, but for whether a key of the root is the target's. A row whose parent
        is not there misses its columns; a table without rows has one in which everything is
        missing.

        Args:
            data: The frame, of synthetic or of real tables.
            schemas: As `joined_schemas` gives them, perhaps without tables that no other of them
                refers to.
            target: The target's key.

        Returns:
            The tables, canonical.
        """
        keys = {place: data[place].map(key_text, na_action="ignore") for place in (KEY, PARENT)}
        keyed = data.assign(**keys)
        rows = {name: keyed[keyed[TABLE] == name].reset_index(drop=True) for name in self.order}
        found: dict[str, pd.DataFrame] = {}
        for name in (one for one in self.order if one in schemas):
            own, link = rows[name][KEY], self.link_of(name)
            table = rows[name][[f"{name}.{column}" for column in self.tables[name].names]]
            beside: dict[str, Any] = {}
            if link is None:
                equal = (own == key_text(target)).astype(int)
                beside[_of_target(self.unit).name] = equal.where(own.notna())
            for child in self.children_of(name):
                counts = rows[child][PARENT].value_counts()
                beside[_number_of(child)] = own.map(counts).fillna(0)
            table = table.assign(**beside)
            if link is not None:
                known = rows[link.parent][KEY].dropna().drop_duplicates()
                place = pd.Index(known).get_indexer(pd.Index(rows[name][PARENT]))
                places = np.append(known.index.to_numpy(), -1)[place]  # -1: it has no parent
                above = found[link.parent].reindex(places).reset_index(drop=True)
                table = pd.concat([table, above], axis=1)
            found[name] = schemas[name].canonical(table if len(table) else table.reindex([0]))
        return found

    def to_document(self) -> dict[str, Any]:
        """This schema as a JSON document, as `save` writes it."""
        assert self.unit is not None  # by __post_init__
        described = {name: schema.to_document() for name, schema in self.tables.items()}
        return {
            "format": FORMAT,
            "inferred": self.inferred,
            "unit": self.unit.to_document(),
            "tables": {
                name: {"label": one["label"], "columns": one["columns"]}
                for name, one in described.items()
            },
            "links": [str(one) for one in self.links],
        }

    @staticmethod
    def from_document(document: Mapping[str, Any]) -> LinkedTables:
        """Reads a document of several tables.

        Raises:
            SchemaError: If it is none; says which table is malformed.
        """
        tables, links = document.get("tables"), document.get("links")
        if not isinstance(tables, Mapping) or not isinstance(links, list):
            raise SchemaError('several tables need an object "tables" and a list "links"')
        unknown = sorted(map(str, set(document) - _KEYS))
        if unknown:
            raise SchemaError(f'unknown keys {", ".join(unknown)}; a table goes into "tables"')
        read, inferred = {}, {"inferred": document.get("inferred", False)}
        for name, one in tables.items():
            try:
                read[name] = Schema.from_document({**inferred, **one})
            except (SchemaError, TypeError) as error:
                raise SchemaError(f"table {name}: {error}") from None
        unit = document.get("unit")
        return LinkedTables(
            tables=read,
            links=tuple(links),
            unit=None if unit is None else Unit.from_document(unit),
        )


def check_tree(names: Sequence[str], links: Sequence[Link]) -> None:
    """Checks that links make a tree of tables with one root.

    Raises:
        SchemaError: If they do not; says in one line what to change.
    """
    for link in links:
        for name in (link.parent, link.child):
            if name not in names:
                known = did_you_mean(name, list(names)) or f"; tables: {listed(list(names))}"
                raise SchemaError(f"link {link}: there is no table {name}{known}")
    for name in names:
        own = [one for one in links if one.child == name]
        if len(own) > 1:
            raise SchemaError(
                f"table {name} has two links, {own[0]} and {own[1]}: leave out all but the one "
                "that leads to the unit"
            )
        keys = {one.key for one in links if one.parent == name}
        if len(keys) > 1:
            raise SchemaError(f"links refer to {name} by {' and '.join(sorted(keys))}: use one key")
        if not any(name in (one.child, one.parent) for one in links):
            raise SchemaError(
                f"table {name} has no link to the others: give one, such as "
                f"{name}.COLUMN={next((other for other in names if other != name), 'OTHER')}.KEY, "
                "or leave the table out"
            )
    parents = {one.child: one for one in links}
    for name in names:
        seen, at = [], name
        while at in parents and at not in seen:
            seen.append(at)
            at = parents[at].parent
        if at in seen:
            circle = listed([str(parents[one]) for one in seen[seen.index(at) :]])
            raise SchemaError(f"the links lead in a circle ({circle}): leave one of them out")
    roots = [name for name in names if name not in parents]
    if len(roots) > 1:
        raise SchemaError(
            f"tables {listed(roots)} refer to no other: an audit removes a row of one table and "
            "all rows that refer to it; give a link between them, or leave out all but one"
        )


def _of_target(unit: Unit | None) -> Column:
    """The column that says whether a key is the target's, if keys are released."""
    assert unit is not None  # of linked tables
    return Column(
        name=f"{unit.column} is the target's", kind=Kind.BINARY, categories=(0, 1), missing=True
    )


def key_text(key: object) -> str:
    """A key as text: files do not say whether it is a number."""
    return str(int(key)) if isinstance(key, float) and key.is_integer() else str(key)


def _number_of(child: str) -> str:
    return f"number of {child}"


def _children(data: pd.DataFrame, child: str) -> npt.NDArray[np.intp]:
    """How many rows of a table refer to the same row of another."""
    codes, _ = pd.factorize(data.loc[data[TABLE] == child, PARENT])
    return np.bincount(codes[codes >= 0])


def _missing(column: Column, rows: int) -> npt.NDArray[Any]:
    """A column [n] of the frame in which every value is missing."""
    return np.full(rows, np.nan, dtype=np.float64 if column.kind.numeric else object)


def _optional(column: Column, name: str) -> Column:
    """The column under another name, of which values may be missing."""
    return replace(column, name=name, missing=True)
