"""Reads files as offices have them: CSV of any separator and encoding, Excel, Parquet.

What was found out about a file is logged, so that a wrong guess is seen.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import itertools
import logging
import re
import warnings
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final, NamedTuple, TextIO

import pandas as pd

from dpaudit.errors import DataError, MissingExtraError, SettingsError
from dpaudit.formatting import counted, listed, one_line
from dpaudit.model.schema import Schema

LOG: Final = logging.getLogger("dpaudit")
MISSING_MARKS: Final = frozenset(
    ("", "?", "NA", "N/A", "n/a", "<NA>", "#N/A", "#NA", "NaN", "nan", "NULL", "null", "None")
)
"""Text that is read as missing, unless the schema names it as a category of the column."""
PARQUET: Final = (".parquet", ".pq")
EXCEL: Final = (".xlsx", ".xlsm", ".xls", ".ods")
_SEPARATORS: Final = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_UTF_8: Final = "utf-8-sig"
_SHOWN: Final = 50
"""Records that show the separator."""
_FRACTION: Final = re.compile(r"[+-]?\d*\.\d+([eE][+-]?\d+)?")
"""A fraction, which is not a column name: a header with one is a record."""
_DECIMAL_COMMA: Final = r"[+-]?\d+(,\d+)?|[+-]?\d{1,3}([.'\u2019\s]\d{3})+(,\d+)?"
_DECIMAL_POINT: Final = r"[+-]?\d+(\.\d+)?|[+-]?\d{1,3}([,'\u2019\s]\d{3})+(\.\d+)?"
_DURATION: Final = r"-?\d+ days?( \d+:\d\d:\d\d(\.\d+)?)?|\d+:\d\d:\d\d(\.\d+)?"


class StatedForm(NamedTuple):
    """What a caller says about all CSV files of a command.

    Attributes:
        separator: What is between fields; None to find out for each file.
        encoding: The encoding; None to find out for each file.
    """

    separator: str | None = None
    encoding: str | None = None


_FOUND_OUT: Final = StatedForm()
_STATED: Final = ContextVar("stated form of CSV files", default=_FOUND_OUT)
"""Not an argument, because a dozen settings name files."""


@contextmanager
def csv_written(separator: str | None, encoding: str | None) -> Iterator[None]:
    """States how all CSV files are written that are read within.

    Args:
        separator: One character, or "tab"; None to find out for each file.
        encoding: An encoding that Python knows; None to find out for each file.

    Raises:
        SettingsError: If one of them has no meaning.
    """
    separator = "\t" if separator in ("tab", "\\t") else separator
    if separator is not None and (len(separator) != 1 or separator in '"\r\n'):
        raise SettingsError(f"`separator` must be one character, or tab, got {separator!r}")
    if encoding is not None:
        try:
            "".encode(encoding)
        except (LookupError, ValueError):
            raise SettingsError(
                f"`encoding` {encoding!r} is unknown: give one such as utf-8, cp1252 or utf-16"
            ) from None
        encoding = _UTF_8 if codecs.lookup(encoding).name == "utf-8" else encoding
    token = _STATED.set(StatedForm(separator, encoding))
    try:
        yield
    finally:
        _STATED.reset(token)


class CsvForm(NamedTuple):
    """How a CSV file is written.

    Attributes:
        encoding: Its encoding.
        separator: What is between its fields.
        header: Its column names.
    """

    encoding: str
    separator: str
    header: list[str]


def read_file(path: Path, schema: Schema | None, *, unchanged: bool = False) -> pd.DataFrame:
    """Reads a table.

    Args:
        path: A CSV file with a header (also `.gz`), a Parquet or an Excel file.
        schema: Columns of which all categories are text are read as text, even numbers, and its
            categories are not read as missing.
        unchanged: Whether the values of a CSV file stay the texts that they are in the file.

    Returns:
        The table as read, possibly without rows.

    Raises:
        DataError: If the file is not a table.
        MissingExtraError: If reading it needs a package that is not installed.
    """
    name = path.name.lower()
    if name.endswith(PARQUET):
        return plain_types(_read_parquet(path))
    text_columns = schema.text_columns if schema else []
    if name.endswith(EXCEL):
        table, separator = _read_excel(path, schema), ";"
    else:
        form = csv_form(path)
        if unchanged:
            return read_csv(path, form, dtype=str)
        marks = {
            name or f"Unnamed: {place}": _missing_marks(name, schema)  # pandas' name for a blank
            for place, name in enumerate(form.header)
        }
        kinds = dict.fromkeys(text_columns, "object")
        table = read_csv(path, form, dtype=kinds, na_values=marks, skipinitialspace=True)
        separator = form.separator
    return plain_types(_with_numbers(table, text_columns, separator, path))


def _missing_marks(name: str, schema: Schema | None) -> list[str]:
    """The marks of a column that are missing values: those that are not categories."""
    categories = {column.name: column.categories for column in (schema.columns if schema else ())}
    return sorted(MISSING_MARKS.difference(categories.get(name, ())))


# -- CSV -----------------------------------------------------------------------------------------


def read_csv(path: Path, form: CsvForm, **options: Any) -> pd.DataFrame:
    """Reads a CSV file by pandas, with further options of `pandas.read_csv`.

    Raises:
        DataError: If it is not a table.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pd.errors.DtypeWarning)  # the schema judges the values
            table: pd.DataFrame = pd.read_csv(
                path,
                compression="gzip" if _is_zipped(path) else None,
                encoding=form.encoding,
                sep=form.separator,
                keep_default_na=False,
                index_col=False,
                **options,
            )
            return table
    except pd.errors.ParserError as error:
        reason = one_line(str(error)).removeprefix("Error tokenizing data. C error: ")
        opened = re.fullmatch(r"EOF inside string starting at row (\d+)", reason)
        if opened:
            reason = f"a quote in record {opened[1]} below its header is never closed"
    except ValueError as error:
        reason = one_line(str(error))
    raise _not_csv(path, reason)


def csv_form(path: Path) -> CsvForm:
    """Finds out how a CSV file is written, and checks that its records have equally many fields.

    What `csv_written` states is not found out, but must fit.

    pandas would fill a short record with missing values.

    Raises:
        DataError: If the file cannot be read as text, or is not a table.
    """
    separator, encoding = _STATED.get()
    try:
        try:
            guess = "utf-16" if _has_utf_16_mark(path) else _UTF_8
            form = _form_in(path, encoding or guess, separator)
        except UnicodeDecodeError:
            if encoding or not _is_windows_text(path):
                raise
            form = _form_in(path, "cp1252", separator)
    except UnicodeError as error:
        if encoding:
            name = encoding.removesuffix("-sig")
            raise DataError(
                f"{path} is not text in {name}: correct `encoding`, or leave it out"
            ) from None
        at = f" (byte {error.start})" if isinstance(error, UnicodeDecodeError) else ""
        raise _not_csv(path, f"it is not UTF-8 text{at}") from None
    except (ValueError, OSError, EOFError, zlib.error, csv.Error) as error:
        raise _not_csv(path, one_line(str(error))) from None
    if form.separator != "," or form.encoding != _UTF_8:
        written = "" if form.encoding == _UTF_8 else f" in {form.encoding}"
        separators = _SEPARATORS.get(form.separator, repr(form.separator))
        LOG.info("%s is read as text%s, separated by %s", path, written, separators)
    return form


def _form_in(path: Path, encoding: str, separator: str | None) -> CsvForm:
    """How a file of this encoding is written, after checking its records.

    Raises:
        DataError: If the first line has other separators than the stated one.
    """
    with _open_text(path, encoding) as lines:
        first = list(itertools.islice(lines, _SHOWN))
    if separator is None:
        separator = _separator_of(first)
    elif first and separator not in first[0] and (others := set(first[0]) & set(_SEPARATORS)):
        raise DataError(
            f"{path} has no {separator!r} in its header, but {listed(sorted(map(repr, others)))}: "
            "correct `separator`, or leave it out"
        )
    with _open_text(path, encoding) as lines:
        return CsvForm(encoding, separator, _check_records(lines, separator))


def _not_csv(path: Path, reason: str) -> DataError:
    return DataError(
        f"{path} is not a CSV table: {reason}; save it as UTF-8 text with a header, and values "
        "that hold the separator in double quotes, or name its `separator` and `encoding`"
    )


def _is_zipped(path: Path) -> bool:
    return path.name.lower().endswith(".gz")


def _open_text(path: Path, encoding: str, errors: str = "strict") -> TextIO:
    """Opens a file, plain or compressed, as text."""
    if _is_zipped(path):
        return gzip.open(path, "rt", encoding=encoding, errors=errors, newline="")
    return path.open(encoding=encoding, errors=errors, newline="")


def _has_utf_16_mark(path: Path) -> bool:
    with _open_text(path, "latin-1") as lines:
        return lines.read(2) in ("\xff\xfe", "\xfe\xff")


def _is_windows_text(path: Path) -> bool:
    """Whether a file that is not UTF-8 is Windows text, neither damaged UTF-8 nor binary."""
    with _open_text(path, _UTF_8, errors="replace") as lines:
        letters = set().union(*map(set, lines)) - {"\ufffd"}
    return all("\t" <= letter <= "\x7f" for letter in letters)


def _separator_of(first: list[str]) -> str:
    """The separator by which the first records have equally many fields, and most of them.

    Otherwise the one that the header has most of, so that the error names the faulty line.
    """
    best, most = ",", 1
    fields = {separator: first[0].count(separator) for separator in _SEPARATORS if first}
    for separator in _SEPARATORS:
        try:
            records = list(csv.reader(first, delimiter=separator, skipinitialspace=True))
        except csv.Error:
            continue
        is_cut = len(first) == _SHOWN  # perhaps within quotes
        sizes = {len(record) for record in records[: -1 if is_cut else None] if any(record)}
        if len(sizes) == 1 and max(sizes) > most:
            best, most = separator, max(sizes)
    return best if most > 1 or not fields else max(fields, key=fields.__getitem__)


def _check_records(lines: Iterable[str], separator: str) -> list[str]:
    """The column names of the lines of a CSV file, after checking its records.

    Raises:
        ValueError: If a record has another number of fields, or the first row is not a header.
    """
    header: list[str] = []
    records = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    last = 0
    for record in records:
        line, last = last + 1, records.line_num
        if record in ([], [""]):
            continue  # as pandas does
        if not header:
            header = record
            _check_header(header)
        elif len(record) != len(header):
            open_quote = ", or a quote there is never closed" if last > line else ""
            raise ValueError(
                f"line {line} has {counted(len(record), 'field')}, its header {len(header)}"
                f"{open_quote}"
            )
    if not header:
        raise ValueError("it is empty")
    return header


def _check_header(header: list[str]) -> None:
    """Refuses headers that pandas would silently misread."""
    if not any(header):
        raise ValueError("its header names no columns")
    if any("\0" in name for name in header) or header[0].startswith("PK\3\4"):
        raise ValueError("it is a binary file")
    if header[0].startswith(("{", "[", "<")):
        raise ValueError(f"it starts with {header[0][0]!r}, as JSON or HTML does")
    repeated = sorted({name for name in header if name and header.count(name) > 1})
    if repeated:
        raise ValueError(f"column names repeat: {listed(repeated)}: rename them")
    if any(_FRACTION.fullmatch(name) for name in header):
        raise ValueError("its first line holds values, not column names")


def _with_numbers(
    table: pd.DataFrame, text_columns: list[str], separator: str, path: Path
) -> pd.DataFrame:
    """The table with numbers that are text in the file: 1.234,5 or 1,234.5, durations in days."""
    # where commas separate fields, a number with one has thousands; elsewhere it has decimals
    forms = [_DECIMAL_POINT, _DECIMAL_COMMA][:: 1 if separator == "," else -1]
    changed = {}
    for name in table.columns:
        if table[name].dtype.kind in "iufbMm" or name in text_columns:
            continue
        texts = table[name].dropna()
        if not len(texts) or pd.api.types.infer_dtype(texts) != "string":
            continue
        if not texts.head(_SHOWN).str.fullmatch("|".join([*forms, _DURATION])).all():
            continue
        texts = texts.drop_duplicates()
        if texts.str.fullmatch(_DURATION).all():
            changed[name] = _days(table[name])
        elif form := next((form for form in forms if texts.str.fullmatch(form).all()), None):
            thousands = "[,'\u2019\\s]" if form == _DECIMAL_POINT else "[.'\u2019\\s]"
            plain = table[name].str.replace(thousands, "", regex=True)
            changed[name] = pd.to_numeric(plain.str.replace(",", ".", regex=False))
    if changed:
        LOG.info(
            "%s: decimal commas, thousands or durations are read as numbers in %s",
            path,
            listed(list(changed)),
        )
    return table.assign(**changed) if changed else table


# -- other files ---------------------------------------------------------------------------------


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(path)
    except ImportError:
        raise MissingExtraError("reading Parquet", "pyarrow", "parquet") from None
    except Exception as error:  # noqa: BLE001 - pyarrow's errors share no base but Exception
        reason = one_line(str(error)).rstrip(".")
        raise DataError(f"{path} is not a Parquet table: {reason}; write it again") from None


def _read_excel(path: Path, schema: Schema | None) -> pd.DataFrame:
    """The first sheet of a workbook."""
    try:
        with pd.ExcelFile(path) as book:
            names = book.sheet_names
            table = pd.read_excel(book, keep_default_na=False, na_values=[""])
    except ImportError:
        raise MissingExtraError("reading Excel", "openpyxl", "excel") from None
    except Exception as error:  # noqa: BLE001 - the libraries' errors share no base but Exception
        reason = one_line(str(error)).rstrip(".")
        raise DataError(f"{path} is not an Excel table: {reason}; save it again") from None
    if len(names) > 1:
        LOG.info("%s has %s: the first, %s, is read", path, counted(len(names), "sheet"), names[0])
    table.columns = table.columns.map(str)
    for name in table.columns[[kind.kind == "O" for kind in table.dtypes]]:
        marks = _missing_marks(name, schema)
        table[name] = table[name].where(~table[name].isin(marks)).infer_objects()
    return table


def plain_types(table: pd.DataFrame) -> pd.DataFrame:
    """The table with decimals as floats, dates as timestamps, and durations in days."""
    changed: dict[str, pd.Series[Any]] = {}
    for place, name in enumerate(table.columns):
        values = table.iloc[:, place]
        if values.dtype.kind == "m":
            changed[name] = _days(values)
        elif values.dtype == object and len(values):
            kind = pd.api.types.infer_dtype(values)
            if kind == "decimal":
                changed[name] = values.astype(float)
            elif kind in ("date", "datetime"):
                changed[name] = pd.to_datetime(values, utc=True).dt.tz_localize(None)
    return table.assign(**changed) if changed else table


def _days(durations: pd.Series[Any]) -> pd.Series[Any]:
    """Durations, or text of them, in days."""
    return pd.to_timedelta(durations).dt.total_seconds() / 86400.0
