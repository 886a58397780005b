"""The attacked record, and how it is chosen."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from dpaudit.errors import TargetError
from dpaudit.game.choices import FARTHEST, VULNERABLE
from dpaudit.model.encoding import encode
from dpaudit.model.schema import Schema
from dpaudit.model.tables import fitting, load_table
from dpaudit.plugins.protocols import FloatArray, IntArray

NEIGHBOURS_AVERAGED = 5
"""Nearest neighbours whose mean distance says how far a record is from the others."""


class Target(NamedTuple):
    """The attacked record.

    Attributes:
        choice: How it was chosen: "farthest", "row:N" or "record:FILE".
        row: Its position in the table handed in; None if it was added to it.
        record: The record, a canonical table of one row.
    """

    choice: str
    row: int | None
    record: pd.DataFrame


def choose_target(choice: str, data: pd.DataFrame, schema: Schema) -> Target:
    """Finds the record to attack.

    Args:
        choice: "farthest" (largest mean distance to its 5 nearest neighbours in the encoded
            table), "row:N" (counted from 0), or "record:FILE" (a table of one row; removed from the
            table where it is in it, else added).
        data: The table, canonical.
        schema: Its schema.

    Returns:
        The target.

    Raises:
        TargetError: If the choice is malformed, the row does not exist, or the file does not hold
            exactly one record.
        DataError: If the record does not fit the schema.
    """
    if choice == FARTHEST:
        return _row(choice, farthest(data, schema), data)
    kind, _, rest = choice.partition(":")
    if kind == "row":
        last = len(data) - 1
        if not re.fullmatch("-?[0-9]{1,18}", rest):
            raise TargetError(f"target {choice!r}: give a row number, as row:0 to row:{last}")
        row = int(rest)
        if not 0 <= row <= last:
            raise TargetError(f"target row {row} does not exist: the table has rows 0 to {last}")
        return _row(choice, row, data)
    if kind == "record" and rest:
        record = load_table(Path(rest), schema=schema)
        if len(record) != 1:
            raise TargetError(f"target file {rest} has {len(record)} records: give exactly one")
        record = fitting(record, schema, source=f"target {rest}")
        same = _equal_rows(record, data, schema)
        return Target(choice, int(same[0]) if len(same) else None, record)
    raise TargetError(
        f"target {choice!r} is not one of {FARTHEST}, {VULNERABLE}, row:N, record:FILE"
    )


def farthest(data: pd.DataFrame, schema: Schema) -> int:
    """Position of the record with the largest mean distance to its nearest neighbours.

    Raises:
        TargetError: If the table has fewer than two rows.
    """
    if len(data) < 2:
        raise TargetError("the table needs at least 2 rows to choose a target from")
    return int(neighbour_distances(encode(data, schema)).argmax())


def neighbour_distances(matrix: FloatArray) -> FloatArray:
    """Mean distance [n] of each row of an encoded table [n, f] to its 5 nearest neighbours."""
    from sklearn.neighbors import NearestNeighbors

    k = min(NEIGHBOURS_AVERAGED, len(matrix) - 1)
    distances, _ = NearestNeighbors(n_neighbors=k + 1).fit(matrix).kneighbors(matrix)
    means: FloatArray = distances[:, 1:].mean(axis=1)
    return means


def far_records(data: pd.DataFrame, schema: Schema) -> IntArray:
    """Positions [m] of the records without an identical copy in the table, the farthest first.

    Far is a large mean distance to the 5 nearest neighbours; ties go to the earlier record.
    """
    matrix = encode(data, schema)
    _, place, copies = np.unique(matrix, axis=0, return_inverse=True, return_counts=True)
    alone = np.flatnonzero(copies[place.ravel()] == 1)
    if len(data) < 2:
        return alone
    return alone[np.argsort(-neighbour_distances(matrix)[alone], kind="stable")]


def copies_of(record: pd.DataFrame, data: pd.DataFrame, schema: Schema) -> int:
    """How many rows of a canonical table equal a canonical record."""
    return len(_equal_rows(record, data, schema))


def _equal_rows(
    record: pd.DataFrame, data: pd.DataFrame, schema: Schema
) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    equal = np.ones(len(data), dtype=bool)
    for name in schema.names:
        value = record[name].iloc[0]
        equal &= np.asarray(
            data[name].isna() if pd.isna(value) else data[name] == value, dtype=bool
        )
    return np.flatnonzero(equal)


def _row(choice: str, row: int, data: pd.DataFrame) -> Target:
    return Target(choice, row, data.iloc[[row]].reset_index(drop=True))
