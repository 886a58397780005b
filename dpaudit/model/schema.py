"""The public description of a table.

A schema is fixed before any record is seen: bounds and categories that a generator may use at no
privacy cost. Inferring a schema from the private table leaks its extremes, so an inferred schema is
marked as such and every report says so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.errors import SchemaError, SettingsError
from dpaudit.files import write_whole
from dpaudit.model.column import Column, Unit, read_columns, repeated_names, truth_of
from dpaudit.model.dates import write_dates
from dpaudit.model.inference import columns_from_sdv, infer_columns

FORMAT = "dpaudit-schema/1"
_KEYS: Final = frozenset(("format", "inferred", "label", "unit", "columns"))


@dataclass(frozen=True, kw_only=True)
class Schema:
    """The public description of a table: its columns, in order.

    Attributes:
        columns: The columns.
        label: Name of the label column, if there is one.
        inferred: Whether bounds or categories were inferred from the private data.
        unit: Whose rows enter and leave a table together; None if each row stands for itself.

    Raises:
        SchemaError: If there are no columns, a name repeats, or the label is not a column.
    """

    columns: tuple[Column, ...]
    label: str | None = None
    inferred: bool = False
    unit: Unit | None = None

    def __post_init__(self) -> None:
        if not self.columns:
            raise SchemaError("a schema needs at least one column")
        names = self.names
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise SchemaError(f"columns named twice: {', '.join(repeated)}")
        if self.label is not None and self.label not in names:
            raise SchemaError(f"label {self.label!r} is not a column; columns: {', '.join(names)}")

    @property
    def names(self) -> list[str]:
        """Column names, in order."""
        return [column.name for column in self.columns]

    @property
    def text_columns(self) -> list[str]:
        """Names of the columns whose categories are all text, which files may write as numbers."""
        return [
            column.name
            for column in self.columns
            if column.categories and all(isinstance(value, str) for value in column.categories)
        ]

    @staticmethod
    def infer(data: pd.DataFrame, *, label: str | None = None) -> Schema:
        """Infers a schema from a table; the result has `inferred=True`.

        0 and 1, or two distinct values that are not numbers, make a binary column; whole numbers
        an integer one; other numbers a continuous one; anything else a categorical one.

        Args:
            data: The table.
            label: Name of the label column.

        Returns:
            The inferred schema.

        Raises:
            SchemaError: If a column is constant or cannot be described (names every such column),
                or the table has a single row.
        """
        return Schema(columns=infer_columns(data), label=label, inferred=True)

    @staticmethod
    def from_sdv(metadata: Mapping[str, Any], data: pd.DataFrame) -> Schema:
        """Reads SDV-style metadata; bounds and categories, which it lacks, come from the table.

        Args:
            metadata: `{"columns": {name: {"sdtype": ...}}}`, or `{"tables": {...}}` with one table.
            data: The table, for bounds and categories.

        Returns:
            A schema with `inferred=True`.

        Raises:
            SchemaError: If there are several tables, a column has an sdtype that is not a number or
                a category (drop or convert it), or the table does not match.
        """
        return Schema(columns=columns_from_sdv(metadata, data), inferred=True)

    def column_problems(self, data: pd.DataFrame) -> list[str]:
        """Problems with the columns of a table: missing, unknown or repeated; empty if they fit."""
        names = self.names
        if data.columns.tolist() == names:  # asking for each name takes far longer
            return []
        problems = [f"column {name!r} is missing" for name in names if name not in data.columns]
        described = names if self.unit is None else [*names, self.unit.column]
        extra = [str(name) for name in data.columns if name not in described]
        problems += [f"column {name!r} is not in the schema" for name in extra]
        return [*problems, *repeated_names(data)]

    def problems(self, data: pd.DataFrame) -> list[str]:
        """Everything in a table that contradicts this schema; empty if it fits."""
        problems = self.column_problems(data)
        if data.columns.has_duplicates:
            return problems
        for column in self.columns:
            if column.name in data.columns:
                problems += column.problems(data[column.name])
        return problems

    def canonical(self, data: pd.DataFrame) -> pd.DataFrame:
        """The table in schema order, with dtypes that depend on the schema alone.

        Continuous columns, and integer ones that may be missing, become float64; other integer
        columns int64 (float64 in a table that does not fit: not whole, or beyond 2**53); categories
        become objects. Rows are numbered from 0. Both worlds of a game go through here, so neither
        dtypes nor index labels distinguish them.

        Args:
            data: A table with the schema's columns; others are ignored, except the unit's.

        Returns:
            The canonical table, with the unit's column last if there is one. Values outside bounds
            or categories stay as they are.

        Raises:
            SchemaError: If a numeric column holds something that is not a number.
        """
        columns = {c.name: c.canonical(data[c.name]) for c in self.columns}
        if self.unit is not None and self.unit.column in data.columns:
            columns.setdefault(self.unit.column, self.unit.canonical(data[self.unit.column]))
        return canonical_table(columns)

    def owners(self, data: pd.DataFrame) -> npt.NDArray[np.intp]:
        """The owner of each row [n], numbered as they appear: its unit, or the row itself."""
        return np.arange(len(data)) if self.unit is None else self.unit.codes(data)

    @property
    def text_columns_of(self) -> Mapping[str, list[str]]:
        """Columns that files may write as numbers, by table; a single table is named ""."""
        return {"": self.text_columns}

    @property
    def words(self) -> list[str]:
        """The words of a command that describe the table in addition to a schema's file."""
        return []

    def rows_asked(self, data: pd.DataFrame) -> int:
        """The number of a table's rows that count as rows to request from a generator: all."""
        return len(data)

    def handed(self, data: pd.DataFrame) -> Any:
        """A canonical table as a generator receives it: with dates as they were written."""
        written = {
            column.name: write_dates(data[column.name].to_numpy(), column.date).set_axis(data.index)
            for column in self.columns
            if column.date
        }
        return data.assign(**written) if written else data

    def to_document(self) -> dict[str, Any]:
        """This schema as a JSON document, as `save` writes it."""
        return {
            "format": FORMAT,
            "inferred": self.inferred,
            "label": self.label,
            **({} if self.unit is None else {"unit": self.unit.to_document()}),
            "columns": [column.to_document() for column in self.columns],
        }

    def to_json(self) -> str:
        """This schema as it is saved: whole bounds of numbers without a decimal point."""
        document = self.to_document()
        parts = document.get("tables", {"": document}).values()
        for column in (column for part in parts for column in part["columns"]):
            for bound in {"lower", "upper"} & column.keys():
                if isinstance(column[bound], float) and column[bound].is_integer():
                    column[bound] = int(column[bound])
        return json.dumps(document, indent=2)

    def save(self, path: Path | str) -> None:
        """Writes the schema as JSON.

        Raises:
            OSError: If the file cannot be written.
        """
        write_whole(Path(path), self.to_json() + "\n")

    @staticmethod
    def from_document(document: Mapping[str, Any]) -> Schema:
        """Reads a schema document and reports every problem at once.

        Args:
            document: As written by `to_document`.

        Returns:
            The schema.

        Raises:
            SchemaError: If the document is not a schema, or any column is malformed.
        """
        entries = document.get("columns")
        if not isinstance(entries, Sequence) or isinstance(entries, str):
            raise SchemaError('a schema file needs a list "columns"; see docs/schema.md')
        if document.get("format", FORMAT) != FORMAT:
            raise SchemaError(f"format {document['format']!r} is not {FORMAT!r}: save it again")
        unknown = sorted(map(str, set(document) - _KEYS))
        if unknown:
            raise SchemaError(f'unknown keys {", ".join(unknown)}; a column goes into "columns"')
        unit = document.get("unit")
        return Schema(
            columns=read_columns(
                partial(Column.from_document, entry, position=position)
                for position, entry in enumerate(entries)
            ),
            label=document.get("label"),
            inferred=truth_of(document, "inferred", "the schema"),
            unit=None if unit is None else Unit.from_document(unit),
        )

    def with_unit(self, unit: Unit | None) -> Schema:
        """This schema with a unit that the caller stated.

        Args:
            unit: The unit; None if the caller stated none.

        Raises:
            SettingsError: If this schema has another unit.
        """
        stated = self.unit
        if unit is None or (stated is not None and unit == replace(stated, max_rows=None)):
            return self
        if stated is None or stated in (unit, replace(unit, max_rows=None)):
            return replace(self, unit=unit)
        raise SettingsError(
            f"the schema's unit is {stated.column!r} with {stated.most}, not {unit.column!r} with "
            f"{unit.most}: leave out `unit` and `max_rows_per_unit`, or correct the schema"
        )


def canonical_table(columns: Mapping[str, npt.NDArray[Any]]) -> pd.DataFrame:
    """A table of columns that are canonical already (`Column.canonical`).

    Args:
        columns: The values [n] of each column by name, in schema order; the table copies them.
    """
    rows = pd.RangeIndex(len(next(iter(columns.values()))))
    # With one shared index pandas aligns nothing; texts keep their dtype only in a series.
    return pd.DataFrame(
        {
            name: pd.Series(values, index=rows, dtype=object) if values.dtype == object else values
            for name, values in columns.items()
        },
        index=rows,
    )


def equal_rows(data: pd.DataFrame, record: pd.DataFrame, schema: Schema) -> npt.NDArray[np.bool_]:
    """Whether each row [n] of a table equals a record in all columns; missing equals missing.

    Args:
        data: The table, canonical.
        record: A canonical table of one row.
        schema: Their schema.
    """
    equal = np.ones(len(data), dtype=bool)
    for name in schema.names:
        wanted, values = record[name].iloc[0], data[name]
        is_equal = values.isna() if pd.isna(wanted) else values.to_numpy() == wanted
        equal &= np.asarray(is_equal, dtype=bool)
    return equal
