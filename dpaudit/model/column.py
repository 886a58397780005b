"""The parts of a schema: its columns, and the unit, which a further column names.

They read and check values, and bring them into canonical form.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from numbers import Integral
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.errors import SchemaError
from dpaudit.formatting import counted, did_you_mean, listed, quote
from dpaudit.model import dates
from dpaudit.model.claim import StatedClaim

OTHER = -2
"""Code of a category that the schema does not name."""
MISSING = -1
"""Code of a missing category."""
LARGEST_WHOLE = 2.0**53
"""Whole numbers above this are not exact in float64."""
LARGEST = 1e300
"""Bounds above this overflow when they are subtracted."""

Category = str | int | float | bool


class Kind(StrEnum):
    """How the values of a column are read."""

    CONTINUOUS = "continuous"
    INTEGER = "integer"
    CATEGORICAL = "categorical"
    BINARY = "binary"

    @cached_property
    def numeric(self) -> bool:
        """Whether values have bounds instead of categories."""
        return self in (Kind.CONTINUOUS, Kind.INTEGER)


class ColumnBounds(NamedTuple):
    """Smallest and largest possible value of a numeric column."""

    lower: float
    upper: float


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column: a kind with bounds (numeric) or categories (the others).

    A column of dates is one of integers or, with times, of continuous numbers: of days since
    1970-01-01. Documents call it a date or a datetime, and have dates as bounds.

    Attributes:
        name: Column name.
        kind: How values are read.
        lower: Smallest possible value (numeric kinds).
        upper: Largest possible value (numeric kinds), above `lower`.
        categories: Possible values, in order (categorical and binary).
        missing: Whether a value may be missing.
        date: How its dates are written (`dpaudit.model.dates`); empty for plain numbers.

    Raises:
        SchemaError: If the parts contradict each other.
    """

    name: str
    kind: Kind
    lower: float | None = None
    upper: float | None = None
    categories: tuple[Category, ...] = ()
    missing: bool = False
    date: str = ""

    def __post_init__(self) -> None:
        problem = self._problem()
        if problem:
            raise SchemaError(f"column {self.name!r}: {problem}")

    def _problem(self) -> str:
        """The first contradiction among the parts of this column; empty if there is none."""
        if self.kind.numeric:
            if self.categories:
                return f"{self._kind_in_words} has bounds, not categories"
            if self.lower is None or self.upper is None:
                return f"{self._kind_in_words} needs `lower` and `upper`"
            largest = LARGEST_WHOLE if self.kind is Kind.INTEGER else LARGEST
            # Compared, not converted: a JSON integer may be too large for a float.
            if not (-largest <= self.lower <= largest and -largest <= self.upper <= largest):
                return f"bounds must be finite numbers, at most {largest:.16g} in magnitude"
            if not self.lower < self.upper:
                return f"`lower` ({self.lower:g}) must be below `upper` ({self.upper:g})"
            if self.kind is Kind.INTEGER and not (
                float(self.lower).is_integer() and float(self.upper).is_integer()
            ):
                return "bounds of an integer column must be whole numbers"
            return ""
        if self.lower is not None or self.upper is not None:
            return f"{self._kind_in_words} has categories, not bounds"
        for value in self.categories:
            if not isinstance(value, str | int | float) or value != value:
                return (
                    f"category {value!r} is not a text, a number or a truth value "
                    "(a missing one is `missing: true`)"
                )
        if len(set(self.categories)) != len(self.categories):
            return "categories repeat"
        if self.kind is Kind.BINARY and len(self.categories) != 2:
            return f"a binary column needs exactly 2 categories, got {len(self.categories)}"
        if len(self.categories) + self.missing < 2:
            return "a column with a single possible value says nothing: drop it"
        return ""

    @property
    def _kind_in_words(self) -> str:
        return f"{'an' if self.kind is Kind.INTEGER else 'a'} {self.kind} column"

    @cached_property
    def bounds(self) -> ColumnBounds:
        """Both bounds of a numeric column."""
        assert self.lower is not None  # by _problem
        assert self.upper is not None
        return ColumnBounds(float(self.lower), float(self.upper))

    @cached_property
    def _code_of(self) -> dict[Hashable, int]:
        return {value: code for code, value in enumerate(self.categories)}

    def codes(self, values: pd.Series[Any]) -> npt.NDArray[np.int64]:
        """Category codes [n] of a categorical or binary column.

        Args:
            values: The column's values [n].

        Returns:
            Position in `categories`; `MISSING` for a missing value, `OTHER` for an unknown one.
        """
        codes, uniques = pd.factorize(values, use_na_sentinel=True)
        table = np.array([self._code_of.get(u, OTHER) for u in uniques] + [MISSING], dtype=np.int64)
        return table[codes]  # a missing value has the code -1, so the last entry

    def problems(self, values: pd.Series[Any]) -> list[str]:
        """Everything in values [n] that contradicts this column; empty if they fit.

        Rows are named, values only under `dpaudit.formatting.show_values`.
        """

        def describe(bad: npt.NDArray[np.bool_], problem: str) -> list[str]:
            if not bad.any():
                return []
            row, count = int(np.flatnonzero(bad)[0]), int(bad.sum())
            where = f"({count} row(s), first at row {row}{quote(values.iloc[row])})"
            return [f"column {self.name!r}: a value {problem} {where}"]

        missing = np.asarray(values.isna(), dtype=bool)
        problems = [] if self.missing else describe(missing, "is missing, the schema says none is")
        if not self.kind.numeric:
            codes = self.codes(values)
            return problems + describe(
                codes == OTHER, f"is not one of its {len(self.categories)} categories"
            )
        try:
            numbers = self.numbers(values)
        except SchemaError as error:
            return [*problems, str(error)]
        lower, upper = self.bounds
        problems += describe(np.isinf(numbers), "is infinite")
        outside = ((numbers < lower) | (numbers > upper)) & np.isfinite(numbers)
        problems += describe(
            outside, f"is outside the bounds [{self.show(lower)}, {self.show(upper)}]"
        )
        if self.kind is Kind.INTEGER:
            problems += describe(
                np.isfinite(numbers) & (numbers != np.rint(numbers)), "is not a whole number"
            )
        return problems

    def canonical(self, values: pd.Series[Any]) -> npt.NDArray[Any]:
        """This column's values [n] with the dtype of `Schema.canonical`.

        Raises:
            SchemaError: If the column is numeric and holds something that is not a number.
        """
        if self.kind.numeric:
            return self.canonical_numbers(self.numbers(values))
        codes = self.codes(values)
        canonical = np.array(values.astype(object), dtype=object)
        is_known = codes >= 0
        categories = np.empty(len(self.categories), dtype=object)
        categories[:] = self.categories
        canonical[is_known] = categories[codes[is_known]]  # 1.0 and True become the category 1
        canonical[codes == MISSING] = np.nan
        return canonical

    def numbers(self, values: pd.Series[Any]) -> npt.NDArray[np.float64]:
        """A numeric column's values [n] as numbers, dates in days; missing ones as NaN.

        Raises:
            SchemaError: If a value is not a number, or not a date.
        """
        return dates.days_of(values, self.date) if self.date else as_numbers(values)

    def show(self, number: float) -> str:
        """A number of this column as text: a date if it is one."""
        return dates.iso_date(number) if self.date else _as_text(number)

    def canonical_numbers(
        self, numbers: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64] | npt.NDArray[np.int64]:
        """A numeric column's values [n] with the dtype of `Schema.canonical`."""
        if self.kind is Kind.INTEGER and not self.missing and _are_whole(numbers):
            return numbers.astype(np.int64)
        return numbers

    def to_document(self) -> dict[str, Any]:
        """This column as a JSON object."""
        document: dict[str, Any] = {"name": self.name, "kind": self.kind.value}
        if self.date:
            lower, upper = map(dates.iso_date, self.bounds)
            kind = _DATES[self.kind]
            document |= {"kind": kind, "lower": lower, "upper": upper, "format": self.date}
        elif self.kind.numeric:
            document |= {"lower": self.lower, "upper": self.upper}
        else:
            document["categories"] = list(self.categories)
        if self.missing:
            document["missing"] = True
        return document

    @staticmethod
    def from_document(entry: Any, *, position: int) -> Column:
        """Reads one column of a schema document.

        Args:
            entry: As written by `to_document`.
            position: Its position in the document, for messages about a column without a name.

        Returns:
            The column.

        Raises:
            SchemaError: If the entry is malformed.
        """
        if not isinstance(entry, Mapping) or "name" not in entry:
            raise SchemaError(f'column number {position}: needs an object with a "name"')
        name = str(entry["name"])
        is_date = entry.get("kind") in _DATES.values()
        known = ["name", "kind", "lower", "upper", "categories", "missing"]
        known += ["format"] if is_date else []
        unknown = sorted(map(str, set(entry) - set(known)))
        if unknown:
            raise SchemaError(
                f"column {name!r}: unknown keys {', '.join(unknown)}; a column has "
                f"{', '.join(known)}"
            )
        if is_date:
            return _read_date(name, entry)
        try:
            kind = Kind(str(entry.get("kind")))
        except ValueError:
            kinds = ", ".join([*(kind.value for kind in Kind), *_DATES.values()])
            raise SchemaError(f"column {name!r}: kind must be one of {kinds}") from None
        bounds: dict[str, float | None] = {}
        for key in ("lower", "upper"):
            value = entry.get(key)
            if value is not None and (
                isinstance(value, bool) or not isinstance(value, int | float)
            ):
                raise SchemaError(f"column {name!r}: `{key}` must be a number, got {value!r}")
            bounds[key] = value
        categories = entry.get("categories", [])
        if not isinstance(categories, list | tuple):
            raise SchemaError(f"column {name!r}: `categories` must be a list, got {categories!r}")
        missing = truth_of(entry, "missing", f"column {name!r}")
        return Column(
            name=name,
            kind=kind,
            lower=bounds["lower"],
            upper=bounds["upper"],
            categories=tuple(categories),
            missing=missing,
        )


_DATES: Final = {Kind.INTEGER: "date", Kind.CONTINUOUS: "datetime"}
"""What documents call the kinds of columns of dates."""


def _read_date(name: str, entry: Mapping[str, Any]) -> Column:
    """Reads a column of dates.

    Raises:
        SchemaError: If the entry is malformed.
    """
    form = entry.get("format", dates.TIMESTAMP)
    if not isinstance(form, str) or not dates.is_form(form):
        raise SchemaError(
            f"column {name!r}: `format` must be {dates.TIMESTAMP} or {dates.MIXED}, perhaps with a "
            f"time zone ({dates.TIMESTAMP} Europe/Berlin), or a format such as %d.%m.%Y, got "
            f"{form!r}"
        )
    bounds: dict[str, float] = {}
    for key in ("lower", "upper"):
        if not isinstance(entry.get(key), str):
            raise SchemaError(f"column {name!r}: `{key}` must be a date such as 2020-12-31")
        try:
            bounds[key] = float(dates.days_of(pd.Series([entry[key]]), dates.MIXED)[0])
        except SchemaError:
            raise SchemaError(
                f"column {name!r}: `{key}` must be a date such as 2020-12-31, got {entry[key]!r}"
            ) from None
    kind = next(kind for kind, word in _DATES.items() if word == entry["kind"])
    missing = truth_of(entry, "missing", f"column {name!r}")
    lower, upper = bounds["lower"], bounds["upper"]
    return Column(name=name, kind=kind, lower=lower, upper=upper, missing=missing, date=form)


def truth_of(entry: Mapping[str, Any], key: str, where: str) -> bool:
    """The truth value of a key in a JSON object; false if the key is absent.

    Raises:
        SchemaError: If the value is anything else; the message says where.
    """
    value = entry.get(key, False)
    if not isinstance(value, bool):
        raise SchemaError(f"{where}: `{key}` must be true or false, got {value!r}")
    return value


def plain_numbers(data: pd.DataFrame, names: list[str]) -> npt.NDArray[np.float64] | None:
    """Columns as float64 [n, k], read at once: pandas takes ten times as long one by one.

    Returns:
        The numbers; None if a column holds anything but numpy numbers (then use `as_numbers`).
    """
    chosen = data
    if (columns := data.columns.tolist()) != names:
        places = {name: place for place, name in enumerate(columns)}
        chosen = data.take([places[name] for name in names], axis=1)  # selecting by name is slower
    numbers = chosen.to_numpy()  # asking for the type of each column takes longer
    return numbers.astype(np.float64, copy=False) if numbers.dtype.kind in "biuf" else None


def _is_plain(dtype: object) -> bool:
    """Whether values are numpy numbers, which need no conversion and mark missing ones by NaN."""
    return isinstance(dtype, np.dtype) and dtype.kind in "biuf"


def as_numbers(values: pd.Series[Any]) -> npt.NDArray[np.float64]:
    """A numeric column as float64 [n], missing values as NaN.

    Raises:
        SchemaError: If a value is not a number; the message names the row of the first one.
    """
    if values.dtype.kind in "mMc":  # pandas would count nanoseconds, or drop an imaginary part
        raise SchemaError(
            f"column {values.name!r}: {values.dtype} is not a number: convert dates and durations "
            "to numbers, for example days"
        )
    if _is_plain(values.dtype):
        return values.to_numpy(dtype=np.float64, copy=True)  # as below, but faster
    try:
        return np.asarray(pd.to_numeric(values).astype("float64"), dtype=np.float64)
    except (TypeError, ValueError):
        numbers = pd.to_numeric(values, errors="coerce")
        rows = np.flatnonzero(numbers.isna() & values.notna())
        where = f"({len(rows)} row(s), first at row {rows[0]}{quote(values.iloc[rows[0]])})"
        raise SchemaError(f"column {values.name!r}: a value is not a number {where}") from None


def _as_text(value: object) -> str:
    plain = value.item() if isinstance(value, np.generic) else value
    return f"{plain:.12g}" if isinstance(plain, float) else repr(plain)


def _are_whole(numbers: npt.NDArray[np.float64]) -> bool:
    return bool(((np.abs(numbers) <= LARGEST_WHOLE) & (numbers == np.rint(numbers))).all())


def read_columns(
    readers: Iterable[Callable[[], Column]], *, most: int | None = None
) -> tuple[Column, ...]:
    """Reads columns and reports every problem at once.

    Args:
        readers: A function for each column.
        most: Largest number of problems to show; None for all.

    Raises:
        SchemaError: If any column cannot be read.
    """
    columns, problems = [], []
    for read in readers:
        try:
            columns.append(read())
        except SchemaError as error:
            problems.append(str(error))
    refuse(problems, most=most)
    return tuple(columns)


def refuse(problems: Collection[str], *, most: int | None = None) -> None:
    """Raises an error if there are problems.

    Args:
        problems: The problems, one line each.
        most: Largest number of problems to show; None for all.

    Raises:
        SchemaError: If there are any.
    """
    if problems:
        raise SchemaError(listed(problems, most or len(problems), separator="; "))


def repeated_names(data: pd.DataFrame) -> list[str]:
    """The problem of repeated column names in a table, if it has one."""
    if data.columns.is_unique:  # known of most tables, where selecting takes a tenth of reading one
        return []
    repeated = sorted({str(name) for name in data.columns[data.columns.duplicated()]})
    return [f"column names repeat: {', '.join(repeated)}"]


@dataclass(frozen=True, kw_only=True)
class Unit:
    """The unit of privacy, such as a patient: its rows enter and leave a table together.

    Attributes:
        column: The column that names the unit of each row. It is not a column of the schema: it has
            no kind and no bounds, and generators need not release it.
        max_rows: Largest number of rows that a unit may have; None if nothing is promised.

    Raises:
        SchemaError: If the column has no name, or `max_rows` is not a whole number, at least 1.
    """

    column: str
    max_rows: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.column, str) or not self.column:
            raise SchemaError(f"the unit's column must be a name, got {self.column!r}")
        most: Any = self.max_rows
        is_whole = isinstance(most, Integral) and not isinstance(most, bool)
        if most is not None and not (is_whole and most >= 1):
            raise SchemaError(
                f"a unit has at most a whole number of rows, 1 or more, got {self.max_rows!r}"
            )

    @property
    def most(self) -> str:
        """The largest number of rows of a unit, in words."""
        if self.max_rows is None:
            return "any number of rows"
        return f"at most {counted(self.max_rows, 'row')}"

    def codes(self, data: pd.DataFrame) -> npt.NDArray[np.intp]:
        """The unit of each row [n], numbered in the order in which units appear."""
        codes, _ = pd.factorize(data[self.column], use_na_sentinel=False)
        return codes

    def most_rows(self, data: pd.DataFrame) -> int:
        """The most rows of a unit: `max_rows`, else the most of any unit in the table."""
        if self.max_rows is not None:
            return self.max_rows
        return int(np.bincount(self.codes(data)).max(initial=0))

    def problems(self, data: pd.DataFrame) -> list[str]:
        """Everything in a table that contradicts this unit; empty if it fits."""
        if self.column not in data.columns:
            close = did_you_mean(self.column, list(map(str, data.columns)))
            return [f"the unit's column {self.column!r} is missing{close}"]
        missing = np.flatnonzero(data[self.column].isna())
        if len(missing):
            rows = counted(len(missing), "row")
            return [f"the unit {self.column!r} is missing in {rows}, the first is row {missing[0]}"]
        sizes = np.bincount(self.codes(data))
        if len(sizes) == 1:
            return [f"the unit {self.column!r} is constant: all rows belong to one unit"]
        if self.max_rows is None or sizes.max() <= self.max_rows:
            return []
        above = counted(int((sizes > self.max_rows).sum()), "unit")
        return [
            f"{above} of {self.column!r} with more than {counted(self.max_rows, 'row')} "
            f"(the largest has {sizes.max()})"
        ]

    def canonical(self, values: pd.Series[Any]) -> npt.NDArray[Any]:
        """The identifiers [n] as int64 if they are whole numbers, else as objects."""
        is_whole = values.dtype.kind in "iu"
        return values.to_numpy(dtype=np.int64 if is_whole else object)

    def to_document(self) -> dict[str, Any]:
        """This unit as JSON."""
        return {"column": self.column, "max_rows": self.max_rows}

    @staticmethod
    def from_document(document: object) -> Unit:
        """Reads a unit from a schema's JSON.

        Raises:
            SchemaError: If the document is not a unit.
        """
        if not isinstance(document, Mapping) or not {"column"} <= set(document) <= {
            "column",
            "max_rows",
        }:
            raise SchemaError(
                'the "unit" must be an object such as {"column": "patient_id", "max_rows": 10}'
            )
        return Unit(**document)


def stated_unit(claim: StatedClaim) -> Unit | None:
    """The unit that a caller's claim is about; None for a claim per row.

    Raises:
        SchemaError: If the column has no name, or the largest number of rows is not at least 1.
    """
    return None if claim.unit is None else Unit(column=claim.unit, max_rows=claim.max_rows_per_unit)
