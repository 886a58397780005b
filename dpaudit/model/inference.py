"""Columns read off private data, or from the metadata of other tools.

Bounds and categories come from the table, so a schema made of them marks itself `inferred`.
"""

from __future__ import annotations

import math
import typing
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from dpaudit.errors import SchemaError
from dpaudit.model.column import Category, Column, Kind

MAX_CATEGORIES = 1000
"""More distinct strings than this look like an identifier or free text."""


def infer_columns(data: pd.DataFrame) -> tuple[Column, ...]:
    """Reads columns off a table; see `Schema.infer`.

    Raises:
        SchemaError: As there.
    """
    return _infer(data, dict.fromkeys(map(str, data.columns)))


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
        raise SchemaError("; ".join(problems))
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
    is_number = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    if kind is None:
        kind = _guess_kind(distinct, is_number=is_number)
    if kind.numeric:
        if not is_number:
            raise SchemaError(f"column {name!r} is declared {kind} but holds no numbers")
        lower, upper = float(present.min()), float(present.max())
        if lower < upper:
            return Column(name=name, kind=kind, lower=lower, upper=upper, missing=missing)
        kind = Kind.CATEGORICAL  # one number, or missing: two possible values in all
    if len(distinct) > MAX_CATEGORIES:
        raise SchemaError(
            f"column {name!r} has {len(distinct)} distinct values that are not numbers: drop an "
            "identifier, or convert dates and text to numbers or fewer categories"
        )
    categories = tuple(sorted((_plain(value) for value in distinct), key=_order))
    kind = Kind.BINARY if len(categories) == 2 else Kind.CATEGORICAL
    return Column(name=name, kind=kind, categories=categories, missing=missing)


def _refuse_what_json_lacks(name: str, present: pd.Series[Any]) -> None:
    """Dates, lists and other objects are neither numbers nor categories; nor is infinity."""
    numeric = present.dtype.kind in "iufb"
    odd = [] if numeric else [v for v in present if not isinstance(v, str | int | float | np.bool_)]
    if odd:
        raise SchemaError(
            f"column {name!r} holds {type(odd[0]).__name__} values: convert them to numbers (for "
            "example days) or to text"
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
