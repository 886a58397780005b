"""How a synthetic table was written, before it is brought into canonical form.

A release shows more than its values: the order of columns, the index (`to_csv`
writes it), dtypes, levels of categories, attributes, and text as it was written. Each fact says how
a release differs from the canonical table of its values (`Schema.canonical`); all are 0 for that.
"""

from __future__ import annotations

import zlib
from typing import Any, Final

import numpy as np
import pandas as pd

from dpaudit.external.session import FILE
from dpaudit.model.column import Column
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FeatureName, FloatArray

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


def release_facts(release: pd.DataFrame, table: pd.DataFrame, schema: Schema) -> FloatArray:
    """The facts [f] of a release, all finite.

    Args:
        release: What `sample` returned.
        table: The same in canonical form.
        schema: Their schema.

    Raises:
        Exception: What values of a foreign type raise when they are written as text.
    """
    found = [*_whole(release, table), *_file(release, table)]
    written = {name: (place, values) for place, (name, values) in enumerate(release.items())}
    for position, (column, dtype) in enumerate(zip(schema.columns, table.dtypes, strict=True)):
        place, values = written[column.name]
        if values.dtype == dtype and dtype.kind in "iu":  # nothing to be written otherwise
            found += [place - position, *[0.0] * (len(_COLUMN) - 1)]
        else:
            found += [place - position, *_column(values, dtype, table, column)]
    return np.clip(np.nan_to_num(np.array(found, dtype=np.float64)), -1e15, 1e15)


def _code(*parts: object) -> float:
    """A number in (0, 1) that stands for some texts."""
    text = "\0".join(map(str, parts))
    return (1 + zlib.crc32(text.encode("utf-8", "backslashreplace"))) / (2**32 + 1)


def _whole(release: pd.DataFrame, table: pd.DataFrame) -> list[float]:
    order = table.columns.get_indexer(release.columns)
    own = {key: value for key, value in release.attrs.items() if key != FILE}
    axes, usual = (
        (type(one).__name__, str(one.columns.name), str(one.columns.dtype), str(one.flags))
        for one in (release, table)
    )
    return [
        float(np.triu(order[:, None] > order).sum()),
        0.0 if axes == usual else _code(*axes),
        float(len(own)),
        _code(sorted(map(repr, own.items()))) if own else 0.0,
        *_index(release.index),
    ]


def _index(index: pd.Index[Any]) -> list[float]:
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


def _file(release: pd.DataFrame, table: pd.DataFrame) -> list[float]:
    content = release.attrs.get(FILE)
    if not isinstance(content, bytes):
        return [0.0] * len(_FILE)
    plain = table.to_csv(index=False).encode()
    first = content.split(b"\n", 1)[0]
    return [
        float(len(content) - len(plain)),
        *(float(content.count(mark) - plain.count(mark)) for mark in (b"\r", b'"', b" ")),
        0.0 if first == plain.split(b"\n", 1)[0] else _code(first),
    ]


def _column(values: pd.Series[Any], plain: Any, table: pd.DataFrame, column: Column) -> list[float]:
    dtype, levels, code = values.dtype, 0.0, 0.0
    if isinstance(dtype, pd.CategoricalDtype):
        levels = float(len(dtype.categories))
        code = _code(dtype.ordered, dtype.categories.dtype, *dtype.categories)
    kind = 0.0 if dtype == plain else _code(dtype)
    if isinstance(dtype, np.dtype) and dtype.kind in "biuf":
        numbers = values.to_numpy()
        zeros = np.count_nonzero(np.signbit(numbers) & (numbers == 0)) if dtype.kind == "f" else 0
        return [kind, levels, code, float(zeros), *[0.0] * 7]
    cells = values.astype(object).tolist()
    own = table[column.name].tolist()
    return [kind, levels, code, 0.0, *_texts(cells, own, set(column.categories))]


def _texts(cells: list[Any], plain: list[Any], named: set[Any]) -> list[float]:
    """Facts about cells that are objects: of those that are no canonical values, or not named."""
    if named.issuperset(plain) and list(map(type, cells)) == list(map(type, plain)):
        return [0.0] * 7
    strange = [bool(named) and not _is_nan(other) and other not in named for other in plain]
    differing = [
        (cell, str(cell).strip().casefold() if unnamed else other, unnamed)
        for cell, other, unnamed in zip(cells, plain, strange, strict=True)
        if unnamed or type(cell) is not type(other)
    ]
    missing = {repr(cell) for cell, other, _ in differing if _is_nan(other)}
    there = [one for one in differing if not _is_nan(one[1])]
    texts = [(str(cell), str(other), unnamed) for cell, other, unnamed in there]
    written = [cell for cell, other, unnamed in texts if unnamed or cell != other]
    return [
        _code(*sorted(missing)) if missing else 0.0,
        float(sum(type(cell) is not type(other) for cell, other, unnamed in there if not unnamed)),
        float(len(written)),
        float(sum(len(cell) - len(other) for cell, other, _ in texts)),
        float(sum(cell != cell.strip() for cell in written)),
        float(sum(letter.isupper() for cell in written for letter in cell)),
        _code(*sorted(set(written))) if written else 0.0,
    ]


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and value != value
