"""The attacked record, and how it is chosen."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from dpaudit.errors import TargetError
from dpaudit.game.choices import FARTHEST, VULNERABLE
from dpaudit.game.distances import COMPARED, farthest_first, is_exact
from dpaudit.model.schema import Schema
from dpaudit.model.tables import fitting, load_table
from dpaudit.plugins.protocols import IntArray


class Target(NamedTuple):
    """The attacked record.

    Attributes:
        choice: How it was chosen: "farthest", "row:N" or "record:FILE".
        row: Its position in the table handed in; None if it was added to it.
        record: The record, a canonical table of one row.
        compared: Of a table too large to compare all records with each other, how many were
            compared with all others to find the farthest; None where all were, or none had to be.
    """

    choice: str
    row: int | None
    record: pd.DataFrame
    compared: int | None = None


def choose_target(choice: str, data: pd.DataFrame, schema: Schema) -> Target:
    """Finds the record to attack.

    Args:
        choice: "farthest" (largest mean distance to its 5 nearest neighbours in the encoded table;
            approximately so in a table of more than 20,000 rows, see `farthest_first`), "row:N"
            (counted from 0), or "record:FILE" (a table of one row; removed from the table where it
            is in it, else added).
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
        target = _row(choice, farthest(data, schema), data)
        return target if is_exact(len(data)) else target._replace(compared=COMPARED)
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
    """Position of the record that `farthest_first` puts first.

    Raises:
        TargetError: If the table has fewer than two rows.
    """
    if len(data) < 2:
        raise TargetError("the table needs at least 2 rows to choose a target from")
    return int(farthest_first(data, schema, np.arange(len(data)))[0])


def far_records(data: pd.DataFrame, schema: Schema) -> IntArray:
    """Positions [m] of the records without an identical copy in the table, the farthest first.

    As `farthest_first` orders them.
    """
    alone = np.flatnonzero(~data.duplicated(keep=False).to_numpy())
    return alone if len(data) < 2 else farthest_first(data, schema, alone)


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
