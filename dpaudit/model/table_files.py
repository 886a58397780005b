"""Reads files as offices have them: CSV of any separator and encoding, Excel, Parquet, Stata.

What was found out about a file is logged, so that a wrong guess is seen.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import itertools
import logging
import lzma
import re
import statistics
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
EXCEL: Final = (".xlsx", ".xlsm", ".xls", ".ods")
SEPARATOR: Final = "separator"
"""Attribute of a table of unchanged texts: 1,234 means another number between semicolons."""
_SEPARATORS: Final = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_UTF_8: Final = "utf-8-sig"
_SHOWN: Final = 50
"""Records that show the separator."""
_FRACTION: Final = re.compile(r"[+-]?\d*\.\d+([eE][+-]?\d+)?")
"""A fraction, which is not a column name: a header with one is a record."""
_OTHERS: Final = {".parquet": "Parquet", ".pq": "Parquet", ".feather": "Feather", ".dta": "Stata"}
"""Endings of files that are neither CSV nor Excel, and what pandas calls their kind."""
_OPENERS: Final[Mapping[str, Callable[..., Any]]] = {
    **{".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
}
"""What opens compressed files; pandas knows them by the same endings."""
_FORMS: Final = {
    point: rf"[+-]?(\d+|[1-9]\d{{0,2}}([{group}'\u2019\s]\d{{3}})+)([{point}]\d+)?(e[+-]?\d+)?"
    for point, group in (".,", ",.")
}
"""Numbers with this decimal point."""
_UNIT: Final = r"[%$€£¥]|\b(?:CHF|EUR|GBP|USD)\b"
_DURATION: Final = r"-?\d+ days?(?: \d+:\d\d:\d\d(?:\.\d+)?)?|\d+:\d\d(?::\d\d(?:\.\d+)?)?"

_STATED: Final[ContextVar[tuple[str | None, str | None]]] = ContextVar(
    "separator and encoding of CSV files", default=(None, None)
)
"""What a caller states of all CSV files; not an argument, because a dozen settings name files."""


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
    token = _STATED.set((separator, encoding))
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
        above: How many lines stand above them, such as a title.
    """

    encoding: str
    separator: str
    header: list[str]
    above: int


def read_file(path: Path, schema: Schema | None, *, unchanged: bool = False) -> pd.DataFrame:
    """Reads a table.

    Args:
        path: A CSV file with a header, perhaps compressed, an Excel file, or one of `_OTHERS`.
        schema: Columns of which all categories are text are read as text, even numbers, and its
            categories are not read as missing.
        unchanged: Whether values stay as they are in the file, those of a CSV file as text.

    Returns:
        The table as read, possibly without rows.

    Raises:
        DataError: If the file is not a table.
        MissingExtraError: If reading it needs a package that is not installed.
    """
    suffix = path.suffix.lower()
    if suffix in _OTHERS:
        table = _read_other(path, _OTHERS[suffix])
        return table if unchanged else plain_types(table)
    text_columns = schema.text_columns if schema else []
    if suffix in EXCEL:
        table, separator = _read_excel(path, schema, unchanged=unchanged), ";"
        if unchanged:
            return table
    else:
        form = csv_form(path)
        if unchanged:
            texts = read_csv(path, form, dtype=str)
            texts.attrs[SEPARATOR] = form.separator
            return texts
        marks = {
            name or f"Unnamed: {place}": _missing_marks(name, schema)  # pandas' name for a blank
            for place, name in enumerate(form.header)
        }
        how: dict[str, Any] = {"na_values": marks, "skipinitialspace": True}
        table = read_csv(path, form, dtype=dict.fromkeys(text_columns, "object"), **how)
        separator = form.separator
        again = [name for name in table if separator != "," and _may_be_thousands(table[name])]
        if again:
            texts = read_csv(path, form, dtype=str, usecols=again, **how)
            parted = [name for name in again if _parts_thousands(texts[name].dropna(), ".")]
            table = table.assign(**texts[parted])
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
                encoding=form.encoding,
                sep=form.separator,
                skiprows=form.above,
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
    except (ValueError, OSError, EOFError, zlib.error, lzma.LZMAError, csv.Error) as error:
        raise _not_csv(path, one_line(str(error))) from None
    if form.separator != "," or form.encoding != _UTF_8:
        written = "" if form.encoding == _UTF_8 else f" in {form.encoding}"
        separators = _SEPARATORS.get(form.separator, repr(form.separator))
        LOG.info("%s is read as text%s, separated by %s", path, written, separators)
    if form.above:
        LOG.info(
            "%s: its header is in line %d, what stands above is left out", path, form.above + 1
        )
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
    above = _lines_above([*csv.reader(first, delimiter=separator, skipinitialspace=True)])
    with _open_text(path, encoding) as lines:
        return CsvForm(encoding, separator, _check_records(lines, separator, above), above)


def _not_csv(path: Path, reason: str) -> DataError:
    return DataError(
        f"{path} is not a CSV table: {reason}; save it as UTF-8 text with a header, and values "
        "that hold the separator in double quotes, or name its `separator` and `encoding`"
    )


def _open_text(path: Path, encoding: str, errors: str = "strict") -> TextIO:
    """Opens a file, plain or compressed, as text."""
    suffix = path.suffix.lower()
    if suffix in (".zip", ".zst", ".7z", ".rar"):
        raise ValueError("it is packed: unpack it first")
    opened: TextIO = _OPENERS.get(suffix, open)(
        path, "rt", encoding=encoding, errors=errors, newline=""
    )
    return opened


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

    Otherwise the one that the line with most of them has, so that the error names the faulty line.
    """
    best, most = ",", 1
    for separator in _SEPARATORS:
        try:
            records = list(csv.reader(first, delimiter=separator, skipinitialspace=True))
        except csv.Error:
            continue
        is_cut = len(first) == _SHOWN  # perhaps within quotes
        records = records[_lines_above(records) : -1 if is_cut else None]
        sizes = {len(record) for record in records if any(record)}
        if len(sizes) == 1 and max(sizes) > most:
            best, most = separator, max(sizes)
    fields = {separator: first[0].count(separator) for separator in _SEPARATORS if first}
    return best if most > 1 or not fields else max(fields, key=fields.__getitem__)


def _lines_above(records: Sequence[Sequence[object]]) -> int:
    """How many of the first records stand above a header, which names every field.

    They fill less than half of the fields that most records have, or are Excel's `sep=;`.
    """
    width = statistics.mode([len(record) for record in records if record] or [0])
    for above, record in enumerate(records):
        names = {str(value) for value in record if value not in (None, "")}
        if 2 * len(names) >= width and not str(record[0]).startswith("sep="):
            has_number = any(re.fullmatch(r"[-+\d.,]+", name) for name in names)
            return above if len(names) == len(record) == width and not has_number else 0
    return 0


def _check_records(lines: Iterable[str], separator: str, above: int) -> list[str]:
    """The column names of the lines of a CSV file, after checking its records.

    Raises:
        ValueError: If a record has another number of fields, or the first row is not a header.
    """
    header: list[str] = []
    records = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    last = 0
    for place, record in enumerate(records):
        line, last = last + 1, records.line_num
        if place < above or record in ([], [""]):
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
    """The table with numbers that are text in the file: 1.234,5 or 1,234.5, 12 %, durations."""
    # where commas separate fields, a number with one has thousands; elsewhere it has decimals
    points = [".", ","] if separator == "," else [",", "."]
    changed = {}
    for name in table.columns:
        if table[name].dtype.kind in "iufbMm" or name in text_columns:
            continue
        texts = table[name].dropna()
        if not len(texts) or pd.api.types.infer_dtype(texts) != "string":
            continue
        if _numbers_of(texts.head(_SHOWN), points) is None:
            continue
        texts = texts.drop_duplicates()
        numbers = _numbers_of(texts, points)
        if numbers is not None:
            changed[name] = table[name].map(numbers.set_axis(texts)).astype(float)
    if changed:
        LOG.info(
            "%s: decimal commas, thousands, units or durations are read as numbers in %s",
            path,
            listed(list(changed)),
        )
    return table.assign(**changed) if changed else table


def _numbers_of(texts: pd.Series[Any], points: Sequence[str]) -> pd.Series[Any] | None:
    """The numbers of texts, with the first decimal point that fits all; None if none does."""
    if texts.str.fullmatch(_DURATION).all():
        return _days(texts.str.replace(r"^(\d+:\d\d)$", r"\1:00", regex=True))
    bare = texts.str.replace("\u2212", "-").str.replace(r"^\((.+)\)$|^(.+)-$", r"-\1\2", regex=True)
    units = bare.str.findall(_UNIT).str.join("")
    if units.nunique() == 1 and re.fullmatch(_UNIT, units.iloc[0]):
        bare = bare.str.replace(rf"\s*({_UNIT})\s*", "", regex=True)
    fitting = [point for point in points if bare.str.fullmatch(_FORMS[point], case=False).all()]
    if not fitting:
        return None
    point = fitting[len(fitting) - 1 if _parts_thousands(bare, fitting[0]) else 0]
    plain = bare.str.replace("[,'\u2019\\s]" if point == "." else "[.'\u2019\\s]", "", regex=True)
    scale = "e-2" if units.iloc[0] == "%" else ""
    return pd.to_numeric(plain.str.replace(",", ".", regex=False) + scale)


def _parts_thousands(texts: pd.Series[Any], mark: str) -> bool:
    """Whether a mark parts thousands: all numbers above 999 have it, and no other one."""
    parted = texts.str.fullmatch(rf"[+-]?[1-9]\d{{0,2}}({re.escape(mark)}\d{{3}})+")
    small = texts.str.fullmatch(r"[+-]?\d{1,3}")
    return bool(parted.any() and small.any() and (parted | small).all())


def _may_be_thousands(values: pd.Series[Any]) -> bool:
    """Whether what pandas reads as decimals may be 988 and 1.009, a thousand and nine."""
    present = values.dropna()
    if present.dtype.kind != "f" or present.abs().max() >= 1000.0:
        return False
    return bool(0 < (present % 1 == 0).mean() < 1 and (present.round(3) == present).all())


# -- other files ---------------------------------------------------------------------------------


def _read_other(path: Path, kind: str) -> pd.DataFrame:
    """A table of a file of another kind, its named index among the columns."""
    try:
        table: pd.DataFrame = getattr(pd, f"read_{kind.lower()}")(path)
    except ImportError:
        raise MissingExtraError(f"reading {kind}", "pyarrow", "parquet") from None
    except Exception as error:  # noqa: BLE001 - pyarrow's errors share no base but Exception
        reason = one_line(str(error)).rstrip(".")
        raise DataError(f"{path} is not a {kind} table: {reason}; write it again") from None
    if any(name is not None for name in table.index.names):
        table = table.reset_index()
    table.columns = table.columns.map(str)
    return table


def _read_excel(path: Path, schema: Schema | None, *, unchanged: bool) -> pd.DataFrame:
    """The first sheet of a workbook, without empty rows."""
    try:
        with pd.ExcelFile(path) as book:
            names = book.sheet_names
            how: dict[str, Any] = {"keep_default_na": False, "na_values": [""]}
            first = pd.read_excel(book, header=None, nrows=_SHOWN, dtype=object, **how)
            above = _lines_above(first.astype(object).fillna("").to_numpy().tolist())
            kinds = object if unchanged else None
            table: pd.DataFrame = pd.read_excel(book, header=above, dtype=kinds, **how)
    except ImportError:
        raise MissingExtraError("reading Excel", "openpyxl", "excel") from None
    except Exception as error:  # noqa: BLE001 - the libraries' errors share no base but Exception
        reason = one_line(str(error)).rstrip(".")
        raise DataError(f"{path} is not an Excel table: {reason}; save it again") from None
    if len(names) > 1:
        LOG.info(
            "%s has %s: the first, %s, is read; if that is not the table, save it as a file",
            *(path, counted(len(names), "sheet"), names[0]),
        )
    if above:
        LOG.info("%s: its header is in row %d, what stands above is left out", path, above + 1)
    table.columns = table.columns.map(str)
    if empty := int(table.isna().all(axis=1).sum()):
        LOG.info("%s: %s are left out", path, counted(empty, "empty row"))
        table = table.dropna(how="all").reset_index(drop=True)
    for name in table.columns[[kind.kind == "O" for kind in table.dtypes]]:
        if not unchanged:
            marks = _missing_marks(name, schema)
            table[name] = table[name].where(~table[name].isin(marks)).infer_objects()
        elif pd.api.types.infer_dtype(table[name]) in ("datetime", "timedelta"):
            table[name] = table[name].infer_objects()  # written without midnight
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
            elif kind == "time":
                changed[name] = _days(values.astype(str).where(values.notna()))
    return table.assign(**changed) if changed else table


def _days(durations: pd.Series[Any]) -> pd.Series[Any]:
    """Durations, or text of them, in days."""
    return pd.to_timedelta(durations).dt.total_seconds() / 86400.0
