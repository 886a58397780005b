"""The public description of a table.

A schema is public before any record is seen: bounds and categories that a generator may use at no
privacy cost. Inferring one from the private table leaks its extremes, so an inferred schema is
marked as such and every report says so.
"""

from __future__ import annotations

import json
import math
import re
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.errors import SchemaError, SettingsError
from dpaudit.files import write_whole
from dpaudit.formatting import listed
from dpaudit.model.column import LARGEST_WHOLE, Category, Column, Kind, Unit, truth_of

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
        """Names of the columns whose categories are all text: files may write it as numbers."""
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
        columns = _infer(data, dict.fromkeys(map(str, data.columns)))
        return Schema(columns=columns, label=label, inferred=True)

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
        known = [*self.names, *([] if self.unit is None else [self.unit.column])]
        extra = [str(name) for name in data.columns if name not in known]
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
        dtypes nor index labels distinguish them.

        Args:
            data: A table that has the schema's columns (others are ignored, except the unit's).

        Returns:
            The canonical table, the unit's column last if there is one; values outside bounds or
            categories are kept as they are.

        Raises:
            SchemaError: If a numeric column holds something that is not a number.
        """
        columns = {c.name: c.canonical(data[c.name]) for c in self.columns}
        if self.unit is not None and self.unit.column in data.columns:
            columns.setdefault(self.unit.column, self.unit.canonical(data[self.unit.column]))
        return canonical_table(columns)

    def owners(self, data: pd.DataFrame) -> npt.NDArray[np.intp]:
        """Whose each row is [n], numbered in order of appearance: its unit, or the row itself."""
        return np.arange(len(data)) if self.unit is None else self.unit.codes(data)

    @property
    def text_columns_of(self) -> Mapping[str, list[str]]:
        """Columns that files may write as numbers, of each table by name; one has no name ("")."""
        return {"": self.text_columns}

    @property
    def words(self) -> list[str]:
        """The words of a command that describe the table apart from a schema's file."""
        return []

    def rows_asked(self, data: pd.DataFrame) -> int:
        """How many of a table's rows a generator is asked for by their number: all."""
        return len(data)

    def handed(self, data: pd.DataFrame) -> Any:
        """A canonical table as a generator gets it."""
        return data

    def to_document(self) -> dict[str, Any]:
        """This schema as a JSON document, as `save` writes it."""
        return {
            "format": FORMAT,
            "inferred": self.inferred,
            "label": self.label,
            **({} if self.unit is None else {"unit": self.unit.to_document()}),
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
        unknown = sorted(map(str, set(document) - _KEYS))
        if unknown:
            raise SchemaError(f'unknown keys {", ".join(unknown)}; a column goes into "columns"')
        for position, entry in enumerate(entries):
            try:
                columns.append(Column.from_document(entry, position=position))
            except SchemaError as error:
                problems.append(str(error))
        if problems:
            raise SchemaError("; ".join(problems))
        unit = document.get("unit")
        return Schema(
            columns=tuple(columns),
            label=document.get("label"),
            inferred=truth_of(document, "inferred", "the schema"),
            unit=None if unit is None else Unit.from_document(unit),
        )

    def with_unit(self, unit: Unit | None) -> Schema:
        """This schema with a unit that was stated apart from it.

        Args:
            unit: The unit; None if none was.

        Raises:
            SettingsError: If this schema has another one.
        """
        own = self.unit
        if unit is None or (own is not None and unit == replace(own, max_rows=None)):
            return self
        if own is None or own in (unit, replace(unit, max_rows=None)):
            return replace(self, unit=unit)
        raise SettingsError(
            f"the schema's unit is {own.column!r} with {own.most}, not {unit.column!r} with "
            f"{unit.most}: leave out `unit` and `max_rows_per_unit`, or correct the schema"
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
        same = values.isna() if pd.isna(wanted) else values.to_numpy() == wanted
        equal &= np.asarray(same, dtype=bool)
    return equal


MAX_CATEGORIES = 1000
"""More distinct strings than this look like an identifier or free text."""
_FEW: Final = 20
"""So many distinct values may be categories, whatever they look like."""
_JUDGED: Final = 50
"""Smallest number of rows that shows an identifier."""
_UNLIKELY: Final = 20.0
"""Chance of at most exp(-this) is none."""
_MOST: Final = 0.9
"""A column is what this share of its distinct values is."""
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_WRITTEN: Final = re.compile(r"[+-]?[$€£]?[\d.,' ]*\d ?[%$€£]?|\d+([-/.])\d+\1\d+([ T][\d:.Z+-]+)?")
"""Numbers with a decimal comma, a separator of thousands or a unit, and dates."""


def columns_from_sdv(metadata: Mapping[str, Any], data: pd.DataFrame) -> tuple[Column, ...]:
    """Reads columns from SDV-style metadata and a table; see `Schema.from_sdv`.

    Raises:
        SchemaError: As there.
    """
    tables = metadata.get("tables")
    if isinstance(tables, Mapping):
        if len(tables) != 1:
            raise SchemaError(f"the metadata describes {len(tables)} tables; an audit takes one")
        metadata = next(iter(tables.values()))
    described = metadata.get("columns") if isinstance(metadata, Mapping) else None
    if not isinstance(described, Mapping):
        raise SchemaError('SDV metadata needs "columns": {name: {"sdtype": ...}}')
    kinds: dict[str, Kind | None] = {}
    problems = []
    for name, entry in described.items():
        sdtype = entry.get("sdtype") if isinstance(entry, Mapping) else None
        match sdtype:
            case "numerical":
                whole = str(entry.get("computer_representation", "")).startswith(("Int", "UInt"))
                kinds[name] = Kind.INTEGER if whole else Kind.CONTINUOUS
            case "categorical" | "boolean":
                kinds[name] = Kind.CATEGORICAL
            case _:
                problems.append(
                    f"column {name!r}: sdtype {sdtype!r} is not supported: drop it, or convert it "
                    "to a number or a category"
                )
        if name not in data.columns:
            problems.append(f"column {name!r} is in the metadata but not in the table")
    if problems:
        raise SchemaError("; ".join(problems))
    return _infer(data[list(kinds)], kinds)


def _infer(data: pd.DataFrame, kinds: Mapping[str, Kind | None]) -> tuple[Column, ...]:
    columns, problems = [], []
    if data.columns.has_duplicates:
        repeated = sorted({str(name) for name in data.columns[data.columns.duplicated()]})
        raise SchemaError(f"column names repeat: {', '.join(repeated)}; rename them")
    if len(data) == 1:
        raise SchemaError(
            "a single row shows no bounds or categories: give more rows, or a public schema"
        )
    for name in data.columns:
        if not isinstance(name, str):
            raise SchemaError(
                f"column name {name!r} is not text: rename, for example with "
                "data.columns = data.columns.astype(str)"
            )
        try:
            columns.append(_infer_column(name, data[name], kinds[name]))
        except SchemaError as error:
            problems.append(str(error))
    if problems:
        raise SchemaError(listed(problems, 5, separator="; "))
    return tuple(columns)


def _infer_column(name: str, values: pd.Series[Any], kind: Kind | None) -> Column:
    present = values.dropna()
    missing = len(present) < len(values)
    _refuse_what_json_lacks(name, present)
    distinct = present.unique()
    if len(distinct) + missing < 2:
        shown = (
            "missing everywhere"
            if missing
            else f"always {distinct[0]!s}"
            if len(distinct)
            else "empty"
        )
        raise SchemaError(
            f"column {name!r} is constant ({shown}): drop it, or give a schema with its public "
            "bounds or categories"
        )
    is_number = (
        pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    ) or pd.api.types.infer_dtype(present) == "integer"  # beyond 64 bits
    if kind is None:
        kind = _guess_kind(distinct, is_number=is_number)
    if kind.numeric:
        if not is_number:
            raise SchemaError(f"column {name!r} is declared {kind} but holds no numbers")
        lower, upper = float(present.min()), float(present.max())
        if kind is Kind.INTEGER and max(-lower, upper) > LARGEST_WHOLE:
            raise SchemaError(
                f"column {name!r} holds whole numbers beyond 2**53, which are not exact: drop an "
                "identifier, or rescale it"
            )
        if lower < upper:
            return Column(name=name, kind=kind, lower=lower, upper=upper, missing=missing)
        kind = Kind.CATEGORICAL  # one number, or missing: two possible values in all
    texts = [value for value in distinct if isinstance(value, str)]
    _refuse_text(name, texts, rows=len(present))
    categories = tuple(sorted((_plain(value) for value in distinct), key=_order))
    kind = Kind.BINARY if len(categories) == 2 else Kind.CATEGORICAL
    return Column(name=name, kind=kind, categories=categories, missing=missing)


def refuse_numbering(*tables: pd.DataFrame) -> None:
    """Refuses columns that number the rows of each of some tables.

    Raises:
        SchemaError: If there are any.
    """
    problems = [
        f"column {name!r} numbers the rows: drop it if it is an identifier, or give a schema"
        for name in tables[0].columns
        if all(_numbers_the_rows(table[name]) for table in tables)
    ]
    if problems:
        raise SchemaError(listed(problems, 5, separator="; "))


def _numbers_the_rows(values: pd.Series[Any]) -> bool:
    """Whether the whole numbers of a column [n] are those of an identifier.

    They rise or fall from each row to the next, which has probability 2 / n! by chance, or they are
    all different within a range of m numbers, which has at most exp(-n (n - 1) / 2 m).
    """
    n = len(values)
    if n < _JUDGED or values.dtype.kind not in "iu":
        return False
    numbers = values.to_numpy(dtype=np.float64)
    steps = np.diff(numbers)
    if (steps > 0).all() or (steps < 0).all():
        return True
    crowded = n * (n - 1) > 2.0 * _UNLIKELY * (numbers.max() - numbers.min() + 1.0)
    return crowded and values.is_unique


def _refuse_text(name: str, texts: list[str], *, rows: int) -> None:
    """Refuses text that is no category: numbers and dates as text, identifiers.

    Args:
        name: The column.
        texts: Its distinct values that are text.
        rows: Its values that are not missing.
    """
    if len(texts) <= _FEW:
        return
    odd = [text for text in texts if not _NUMBER.fullmatch(text)]
    if len(odd) <= (1.0 - _MOST) * len(texts):
        what = f"is text because of {odd[0]!r}, else numbers" if odd else "holds numbers too large"
        raise SchemaError(f"column {name!r} {what}: correct it, or name its categories in a schema")
    if sum(bool(_WRITTEN.fullmatch(text)) for text in odd) > _MOST * len(odd):
        raise SchemaError(
            f"column {name!r} holds numbers or dates as text, such as {odd[0]!r}: write numbers as "
            "1234.5 and dates as numbers, for example days"
        )
    if len(texts) > min(MAX_CATEGORIES, _MOST * rows):
        raise SchemaError(
            f"column {name!r} has {len(texts)} distinct texts in {rows} rows: drop an identifier, "
            "or convert dates and text to numbers or fewer categories"
        )


def _refuse_what_json_lacks(name: str, present: pd.Series[Any]) -> None:
    """Dates, lists and other objects are neither numbers nor categories; nor is infinity."""
    numeric = present.dtype.kind in "iufb"
    odd = [] if numeric else [v for v in present if not isinstance(v, str | int | float | np.bool_)]
    if odd:
        raise SchemaError(
            f"column {name!r} holds {type(odd[0]).__name__} values: convert them to numbers (for "
            "example days) or to a few categories"
        )
    infinite = (
        np.isinf(present.to_numpy(dtype=np.float64)).any()
        if numeric
        else any(value in (math.inf, -math.inf) for value in present.unique())
    )
    if infinite:
        raise SchemaError(f"column {name!r} holds infinite values: make them missing, or drop them")


def _guess_kind(distinct: Any, *, is_number: bool) -> Kind:
    if not is_number:
        return Kind.CATEGORICAL
    numbers = np.asarray(distinct, dtype=np.float64)
    if len(numbers) == 2 and set(numbers) == {0.0, 1.0}:
        return Kind.BINARY
    return Kind.INTEGER if (numbers % 1 == 0).all() else Kind.CONTINUOUS


def _plain(value: Any) -> Category:
    """A category as JSON has it: whole floats as integers, numpy scalars as Python's."""
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, float) and plain.is_integer():
        return int(plain)
    return typing.cast(Category, plain)  # by _refuse_what_json_lacks


def _order(value: Category) -> tuple[int, float, str]:
    return (1, 0.0, value) if isinstance(value, str) else (0, float(value), "")
