"""What a generator returned: read as synthetic records, and how it was written.

A release shows more than its values: the order of columns, the index (`to_csv` writes it), dtypes,
levels of categories, attributes, and text as it was written. Facts describe how a release differs
from the canonical table of its values (`Schema.canonical`), for which all facts are 0.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any, Final, TypeGuard

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.errors import DataError, RowCountError, SchemaError, TrialError
from dpaudit.external.session import FILE
from dpaudit.formatting import counted
from dpaudit.model.column import MISSING, Column, Unit, plain_numbers
from dpaudit.model.linked_tables import LinkedTables
from dpaudit.model.schema import Schema, canonical_table
from dpaudit.plugins.protocols import FeatureName, FloatArray


def accept(table: object, schema: Schema, n_rows: int) -> pd.DataFrame:
    """Checks what a generator returned and brings it into canonical form.

    Values outside the schema's bounds or categories are allowed, because they are evidence;
    anything but `n_rows` records with the schema's columns is refused. Linked tables are a dict by
    name, with `n_rows` rows of the root, and may lack their keys.

    Args:
        table: The result of `sample`.
        schema: The schema.
        n_rows: Rows that were requested.

    Returns:
        The canonical table, or the frame of linked tables.

    Raises:
        TrialError: If it is not such a table; the message says why.
    """
    if isinstance(schema, LinkedTables):
        return schema.stacked(_accept_tables(table, schema, n_rows))
    return canonical_table(accept_columns(table, schema, n_rows))


def accept_columns(table: object, schema: Schema, n_rows: int) -> dict[str, npt.NDArray[Any]]:
    """As `accept`, for one table: its columns [n] by name, without the frame around them."""
    if not isinstance(table, pd.DataFrame):
        raise TrialError(f"sample returned {type(table).__name__}, not a pandas DataFrame")
    problems = schema.column_problems(table)
    if problems:
        raise TrialError(_wrong_columns(table, schema)) from DataError("; ".join(problems))
    if len(table) != n_rows:
        raise RowCountError(len(table), n_rows)
    # The same as `schema.canonical`, with each column read once.
    numeric = [column.name for column in schema.columns if column.kind.numeric]
    plain = plain_numbers(table, numeric)
    numbers = {} if plain is None else dict(zip(numeric, plain.T, strict=True))
    return {c.name: _accept_column(c, table, numbers.get(c.name)) for c in schema.columns}


def units_together(released: Any, schema: Schema) -> Any:
    """Moves the rows of each unit that a generator names next to each other.

    Units keep the order of their first rows, and the rows of a unit keep their order: attacks that
    compare successive rows then see the order within a unit.

    Args:
        released: The result of `sample`.
        schema: The schema.

    Returns:
        The same rows; in their old order if no units are named.
    """
    unit = schema.unit
    if unit is None or not _names_units(released, unit):
        return released
    return released.iloc[np.argsort(unit.codes(released), kind="stable")]


def with_units(table: pd.DataFrame, released: object, schema: Schema) -> pd.DataFrame:
    """An accepted table with the unit's column, last, if the generator released one.

    Args:
        table: The canonical table.
        released: The release from which `accept` made it.
        schema: The schema.
    """
    unit = schema.unit
    if unit is None or not _names_units(released, unit):
        return table
    return table.assign(**{unit.column: released[unit.column].to_numpy(dtype=object)})


def _names_units(released: object, unit: Unit) -> TypeGuard[pd.DataFrame]:
    """Whether a release is a table with exactly one column of units."""
    return isinstance(released, pd.DataFrame) and list(released.columns).count(unit.column) == 1


def _accept_tables(tables: object, schema: LinkedTables, n_rows: int) -> dict[str, pd.DataFrame]:
    """Each table in canonical form, with its keys if it has any.

    Raises:
        TrialError: As `accept`; the message names the table.
    """
    if not isinstance(tables, Mapping) or set(tables) != set(schema.tables):
        names = f" of {len(tables)} others" if isinstance(tables, Mapping) else ""
        raise TrialError(
            f"sample returned {type(tables).__name__}{names}, not a dict of the tables "
            f"{', '.join(schema.tables)}"
        )
    accepted_tables = {}
    for name, part in schema.tables.items():
        table = tables[name]
        keys = {key for key, _ in schema.keys_of(name)}
        try:
            is_frame = isinstance(table, pd.DataFrame) and table.columns.is_unique
            released_keys = [key for key in table.columns if key in keys] if is_frame else []
            values = table.drop(columns=released_keys) if released_keys else table
            requested = n_rows if name == schema.root or not is_frame else len(table)
            accepted = accept(values, part, requested)
        except RowCountError:
            raise
        except TrialError as error:
            raise TrialError(f"table {name}: {error.shareable}") from error
        accepted_tables[name] = accepted.assign(
            **{key: table[key].to_numpy(dtype=object) for key in released_keys}
        )
    return accepted_tables


def _accept_column(
    column: Column, table: pd.DataFrame, numbers: FloatArray | None
) -> npt.NDArray[Any]:
    """A column's values [n] in canonical form; `numbers` are the values, if already read."""
    if numbers is not None and np.isfinite(numbers).all():
        return column.canonical_numbers(numbers)
    values = table[column.name]
    absent = np.isnan(numbers) if numbers is not None else values.isna()
    if not column.missing and absent.any():
        raise TrialError(_missing_values(column.name))
    if not column.kind.numeric:
        return column.canonical(values)
    try:
        numbers = column.numbers(values) if numbers is None else numbers
    except SchemaError as error:
        raise TrialError(f"column {column.name!r} holds values that are not numbers") from error
    if np.isinf(numbers).any():
        raise TrialError(_infinite_values(column.name))
    return column.canonical_numbers(numbers)


def accept_stack(values: object, schema: Schema, n_rows: int, *, models: int) -> FloatArray:
    """Checks that the values of many models are numbers of the right shape.

    Args:
        values: The result of `sample_many`.
        schema: The schema.
        n_rows: Rows that were requested from each model.
        models: Number of models.

    Returns:
        Values [M, n, d]; `accept_values` checks those of each model.

    Raises:
        TrialError: If they are not; the message says why.
    """
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "fiu":
        kind = type(values).__name__
        raise TrialError(f"sample_many returned {kind}, not a numpy array of numbers")
    expected = (models, n_rows, len(schema.columns))
    if values.shape != expected:
        if values.ndim == 3 and values.shape[::2] == expected[::2]:
            raise RowCountError(values.shape[1], n_rows)
        raise TrialError(f"sample_many returned values of shape {values.shape}, not {expected}")
    return np.asarray(values, dtype=np.float64)


def accept_values(values: FloatArray, schema: Schema) -> None:
    """Checks the values [n, d] of one model, as `accept` checks a table.

    Raises:
        TrialError: If they cannot be read as records; the message says why.
    """
    for column, numbers in zip(schema.columns, values.T, strict=True):
        missing = np.isnan(numbers) if column.kind.numeric else numbers == MISSING
        if not column.missing and missing.any():
            raise TrialError(_missing_values(column.name))
        if column.kind.numeric:
            if np.isinf(numbers).any():
                raise TrialError(_infinite_values(column.name))
        elif not np.isin(numbers, np.arange(MISSING, len(column.categories))).all():
            raise TrialError(
                f"column {column.name!r} has values that are not positions of a category"
            )


def _wrong_columns(table: pd.DataFrame, schema: Schema) -> str:
    """The problem of the columns.

    Names of the synthetic table may be private: only those are shown that spell a public name.
    """
    missing = [name for name in schema.names if name not in table.columns]
    unknown = [name for name in table.columns if name not in schema.names]
    meant = {_letters(name): name for name in missing}
    spelled = [name for name in unknown if _letters(name) in meant][:3]
    rest = len(unknown) - len(spelled)
    problems = [
        *(f"column {name!r} is missing" for name in missing[:3]),
        *(
            f"column {name!r} is not in the schema: did you mean {meant[_letters(name)]!r}?"
            for name in spelled
        ),
        *([counted(rest, "unknown column")] if rest else []),
    ]
    return f"wrong columns: {'; '.join(problems) or 'names repeat'}"


def _letters(name: object) -> str:
    """A name without case, spaces and punctuation."""
    return "".join(filter(str.isalnum, str(name).casefold()))


def _missing_values(name: str) -> str:
    return f"column {name!r} has missing values (NaN)"


def _infinite_values(name: str) -> str:
    return f"column {name!r} has infinite values"


RELEASE: Final = "release"
"""The column name in names of facts about a whole release."""
_WHOLE: Final = (
    "columns out of order",
    "kind of table and names of its axes",
    "attributes",
    "code of the attributes",
    "kind of index",
    "smallest index label",
    "largest index label",
    "index labels that are not the row's number",
    "repeated index labels",
    "index labels below the one before",
    "code of the index labels",
)
_FILE: Final = (
    "bytes of the file beyond those of plain CSV",
    "carriage returns in the file",
    "quotation marks in the file",
    "spaces in the file",
    "code of the file's first line",
)
_COLUMN: Final = (
    "place among the columns",
    "dtype as written",
    "levels of the dtype",
    "code of the dtype's levels",
    "negative zeros",
    "kinds of missing values",
    "values of another type",
    "values written otherwise",
    "characters beyond the plain form",
    "padded texts",
    "capital letters",
    "code of the texts",
)


def release_names(schema: Schema) -> list[FeatureName]:
    """Names of the facts, in the order of `release_facts`."""
    whole = [FeatureName(RELEASE, name) for name in (*_WHOLE, *_FILE)]
    return whole + [FeatureName(name, fact) for name in schema.names for fact in _COLUMN]


def release_facts(
    release: pd.DataFrame, columns: Mapping[str, npt.NDArray[Any]], schema: Schema
) -> FloatArray:
    """The facts [f] of a release, all finite.

    Args:
        release: The result of `sample`.
        columns: Its columns [n] in canonical form, as `accept_columns` gives them.
        schema: Their schema.

    Raises:
        Exception: If values of a foreign type raise it when they are written as text.
    """
    facts = [*_facts_of_table(release, schema), *_facts_of_file(release, columns)]
    places = {name: place for place, name in enumerate(release.columns.tolist())}
    dtypes = release.dtypes.tolist()
    for position, column in enumerate(schema.columns):
        place, canonical = places[column.name], columns[column.name]
        facts.append(place - position)
        if dtypes[place] == canonical.dtype and canonical.dtype.kind in "if":
            facts += [0.0, 0.0, 0.0, *_facts_of_numbers(canonical)]
        else:
            facts += _facts_of_column(release.iloc[:, place], canonical, column)
    return np.clip(np.nan_to_num(np.array(facts, dtype=np.float64)), -1e15, 1e15)


def _code(*parts: object) -> float:
    """A number in (0, 1) that encodes texts: a checksum."""
    text = "\0".join(map(str, parts))
    return (1 + zlib.crc32(text.encode("utf-8", "backslashreplace"))) / (2**32 + 1)


def _facts_of_table(release: pd.DataFrame, schema: Schema) -> list[float]:
    """The facts `_WHOLE`."""
    attributes = {key: value for key, value in release.attrs.items() if key != FILE}
    axes = _axes(release)
    return [
        _inversions(release.columns, schema.names),
        0.0 if axes == _CANONICAL_AXES else _code(*axes),
        float(len(attributes)),
        _code(sorted(map(repr, attributes.items()))) if attributes else 0.0,
        *_facts_of_index(release.index),
    ]


def _axes(frame: pd.DataFrame) -> tuple[str, ...]:
    """The kind of a table, and what its axes are called."""
    columns = frame.columns
    return type(frame).__name__, str(columns.name), str(columns.dtype), str(frame.flags)


_CANONICAL_AXES: Final = _axes(canonical_table({"name": np.zeros(0)}))


def _inversions(released: pd.Index[Any], names: list[str]) -> float:
    """Pairs of columns that are out of order."""
    if released.tolist() == names:
        return 0.0
    order = pd.Index(names).get_indexer(released)
    return float(np.triu(order[:, None] > order).sum())


def _facts_of_index(index: pd.Index[Any]) -> list[float]:
    """The facts of `_WHOLE` about the index."""
    count = len(index)
    if type(index) is pd.RangeIndex and index.equals(pd.RangeIndex(count)) and index.name is None:
        return [0.0] * 7
    kind = _code(type(index).__name__, index.dtype, *index.names)
    texts = list(map(str, index))
    try:
        labels = np.asarray(index, dtype=np.float64)
    except (TypeError, ValueError):
        labels = np.array(list(map(len, texts)), dtype=np.float64)
    return [
        kind,
        float(labels.min()),
        float(labels.max()) - (count - 1),
        float(np.count_nonzero(labels != np.arange(count))),
        float(count - len(set(texts))),
        float(np.count_nonzero(np.diff(labels) < 0)),
        _code(*sorted(texts)),
    ]


def _facts_of_file(release: pd.DataFrame, columns: Mapping[str, npt.NDArray[Any]]) -> list[float]:
    """The facts `_FILE` about the file that a worker wrote, if one did."""
    content = release.attrs.get(FILE)
    if not isinstance(content, bytes):
        return [0.0] * len(_FILE)
    plain = canonical_table(columns).to_csv(index=False).encode()
    first = content.split(b"\n", 1)[0]
    return [
        float(len(content) - len(plain)),
        *(float(content.count(mark) - plain.count(mark)) for mark in (b"\r", b'"', b" ")),
        0.0 if first == plain.split(b"\n", 1)[0] else _code(first),
    ]


def _facts_of_column(
    values: pd.Series[Any], canonical: npt.NDArray[Any], column: Column
) -> list[float]:
    """The facts `_COLUMN` about one column, except its place."""
    dtype, levels, code = values.dtype, 0.0, 0.0
    if isinstance(dtype, pd.CategoricalDtype):
        levels = float(len(dtype.categories))
        code = _code(dtype.ordered, dtype.categories.dtype, *dtype.categories)
    kind = 0.0 if dtype == canonical.dtype else _code(dtype)
    if isinstance(dtype, np.dtype) and dtype.kind in "biuf":
        return [kind, levels, code, *_facts_of_numbers(values.to_numpy())]
    cells = values.astype(object).tolist()
    named = set(column.categories)
    return [kind, levels, code, 0.0, *_facts_of_texts(cells, canonical.tolist(), named)]


def _facts_of_numbers(numbers: npt.NDArray[Any]) -> list[float]:
    """Facts about numbers, which have one spelling but for the sign of a zero."""
    is_float = numbers.dtype.kind == "f"
    zeros = np.count_nonzero(np.signbit(numbers) & (numbers == 0)) if is_float else 0
    return [float(zeros), *[0.0] * 7]


def _facts_of_texts(cells: list[Any], plain: list[Any], named: set[Any]) -> list[float]:
    """Facts about cells of a column of objects that differ from their canonical values.

    Categories that the schema does not name are compared with their plain spelling.
    """
    if named.issuperset(plain) and list(map(type, cells)) == list(map(type, plain)):
        return [0.0] * 7
    is_unnamed = [bool(named) and not _is_nan(other) and other not in named for other in plain]
    differing = [
        (cell, str(cell).strip().casefold() if unnamed else other, unnamed)
        for cell, other, unnamed in zip(cells, plain, is_unnamed, strict=True)
        if unnamed or type(cell) is not type(other)
    ]
    missing = {repr(cell) for cell, other, _ in differing if _is_nan(other)}
    present = [cell for cell in differing if not _is_nan(cell[1])]
    texts = [(str(cell), str(other), unnamed) for cell, other, unnamed in present]
    written = [cell for cell, other, unnamed in texts if unnamed or cell != other]
    return [
        _code(*sorted(missing)) if missing else 0.0,
        float(
            sum(type(cell) is not type(other) for cell, other, unnamed in present if not unnamed)
        ),
        float(len(written)),
        float(sum(len(cell) - len(other) for cell, other, _ in texts)),
        float(sum(cell != cell.strip() for cell in written)),
        float(sum(letter.isupper() for cell in written for letter in cell)),
        _code(*sorted(set(written))) if written else 0.0,
    ]


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and value != value
