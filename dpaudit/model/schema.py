"""The public description of a table.

A schema is part of what is public before any record is seen: bounds and categories that a generator
may use without spending privacy. Inferring one from the private table leaks its extremes, so an
inferred schema marks itself and every report says so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt
import pandas as pd

from dpaudit.errors import SchemaError
from dpaudit.files import write_whole
from dpaudit.model.column import Column, truth_of
from dpaudit.model.inference import columns_from_sdv, infer_columns

FORMAT = "dpaudit-schema/1"


@dataclass(frozen=True, kw_only=True)
class Schema:
    """The public description of a table: its columns, in order.

    Attributes:
        columns: The columns.
        label: Name of the label column, if there is one.
        inferred: Whether bounds or categories were read off the private data.

    Raises:
        SchemaError: If there are no columns, a name repeats, or the label is not a column.
    """

    columns: tuple[Column, ...]
    label: str | None = None
    inferred: bool = False

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
        """Names of the columns whose categories are all text: files may write it as numbers."""
        return [
            column.name
            for column in self.columns
            if column.categories and all(isinstance(value, str) for value in column.categories)
        ]

    @staticmethod
    def infer(data: pd.DataFrame, *, label: str | None = None) -> Schema:
        """Reads a schema off a table; the result says `inferred=True`.

        0 and 1, or two distinct values that are not numbers, make a binary column; whole numbers
        an integer one; other numbers a continuous one; anything else a categorical one.

        Args:
            data: The table.
            label: Name of the label column.

        Returns:
            The inferred schema.

        Raises:
            SchemaError: If a column is constant or cannot be described; names every such column.
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
        """Columns that a table lacks, has too many of, or names twice; empty if they fit."""
        found = [f"column {name!r} is missing" for name in self.names if name not in data.columns]
        extra = [str(name) for name in data.columns if name not in self.names]
        found += [f"column {name!r} is not in the schema" for name in extra]
        if data.columns.has_duplicates:
            repeated = sorted({str(name) for name in data.columns[data.columns.duplicated()]})
            found.append(f"column names repeat: {', '.join(repeated)}")
        return found

    def problems(self, data: pd.DataFrame) -> list[str]:
        """Everything in a table that contradicts this schema; empty if it fits."""
        found = self.column_problems(data)
        if data.columns.has_duplicates:
            return found
        for column in self.columns:
            if column.name in data.columns:
                found += column.problems(data[column.name])
        return found

    def canonical(self, data: pd.DataFrame) -> pd.DataFrame:
        """A table in schema order with dtypes that depend on the schema alone.

        Continuous columns, and integer ones that may be missing, become float64; other integer
        columns int64 (float64 in a table that does not fit: not whole, or beyond 2**53); categories
        become objects. Rows are numbered from 0. Both worlds of a game go through here, so neither
        dtypes nor index labels can tell them apart.

        Args:
            data: A table that has the schema's columns (others are ignored).

        Returns:
            The canonical table; values outside bounds or categories are kept as they are.

        Raises:
            SchemaError: If a numeric column holds something that is not a number.
        """
        return canonical_table({c.name: c.canonical(data[c.name]) for c in self.columns})

    def to_document(self) -> dict[str, Any]:
        """This schema as a JSON document, as `save` writes it."""
        return {
            "format": FORMAT,
            "inferred": self.inferred,
            "label": self.label,
            "columns": [column.to_document() for column in self.columns],
        }

    def save(self, path: Path | str) -> None:
        """Writes the schema as JSON.

        Raises:
            OSError: If the file cannot be written.
        """
        write_whole(Path(path), json.dumps(self.to_document(), indent=2) + "\n")

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
        columns, problems = [], []
        entries = document.get("columns")
        if not isinstance(entries, Sequence) or isinstance(entries, str):
            raise SchemaError('a schema file needs a list "columns"; see docs/schema.md')
        if document.get("format", FORMAT) != FORMAT:
            raise SchemaError(f"format {document['format']!r} is not {FORMAT!r}: save it again")
        unknown = sorted(map(str, set(document) - {"format", "inferred", "label", "columns"}))
        if unknown:
            raise SchemaError(f'unknown keys {", ".join(unknown)}; a column goes into "columns"')
        for position, entry in enumerate(entries):
            try:
                columns.append(Column.from_document(entry, position=position))
            except SchemaError as error:
                problems.append(str(error))
        if problems:
            raise SchemaError("; ".join(problems))
        return Schema(
            columns=tuple(columns),
            label=document.get("label"),
            inferred=truth_of(document, "inferred", "the schema"),
        )


def canonical_table(columns: Mapping[str, npt.NDArray[Any]]) -> pd.DataFrame:
    """The table whose columns hold values that are canonical already (`Column.canonical`).

    Args:
        columns: The values [n] by name of the column, in schema order; the table has copies.
    """
    rows = pd.RangeIndex(len(next(iter(columns.values()))))
    # With one index for all, pandas aligns nothing; texts keep their dtype as a series alone.
    return pd.DataFrame(
        {
            name: pd.Series(values, index=rows, dtype=object) if values.dtype == object else values
            for name, values in columns.items()
        },
        index=rows,
    )
