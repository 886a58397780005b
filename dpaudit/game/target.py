"""The attacked record, and how it is chosen."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from dpaudit.errors import TargetError
from dpaudit.game.distances import COMPARED, farthest_first, is_exact
from dpaudit.game.exposure import Exposure, exposure_scores, exposures_of, find_holders
from dpaudit.model.choices import EXPOSING, FARTHEST, VULNERABLE
from dpaudit.model.schema import Schema
from dpaudit.model.tables import fitting, load_table
from dpaudit.plugins.protocols import IntArray


class Target(NamedTuple):
    """The attacked record.

    Attributes:
        choice: How it was chosen: "exposing", "farthest", "row:N" or "record:FILE".
        row: Its position in the table handed in; None if it was added to it.
        record: The record, a canonical table of one row.
        exposures: Of an exposing record, the facts that it was chosen for; empty if the table has
            none of any record, so that the farthest was taken.
        compared: Of a table too large to compare all records with each other, how many were
            compared with all others to find the farthest; None where all were, or none had to be.
    """

    choice: str
    row: int | None
    record: pd.DataFrame
    exposures: tuple[Exposure, ...] | None = None
    compared: int | None = None


def choose_target(choice: str, data: pd.DataFrame, schema: Schema) -> Target:
    """Finds the record to attack.

    Args:
        choice: "exposing" (most facts of the table hold of it alone, see `find_holders`; of several
            the farthest; if there is none, the farthest record without a copy), "farthest" (largest
            mean distance to its 5 nearest neighbours in the encoded table; approximately so in a
            table of more than 20,000 rows, see `farthest_first`), "row:N" (counted from 0), or
            "record:FILE" (a table of one row; removed from the table where it is in it, else
            added).
        data: The table, canonical.
        schema: Its schema.

    Returns:
        The target.

    Raises:
        TargetError: If the choice is malformed, the table has fewer than two rows to choose from,
            the row does not exist, or the file does not hold exactly one record.
        DataError: If the record does not fit the schema.
    """
    if choice == EXPOSING:
        return _exposing(data, schema)
    if choice == FARTHEST:
        return _row(choice, farthest(data, schema), data)._replace(compared=_compared(data))
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
        f"target {choice!r} is not one of {EXPOSING}, {FARTHEST}, {VULNERABLE}, row:N, record:FILE"
    )


def farthest(data: pd.DataFrame, schema: Schema) -> int:
    """Position of the record that `farthest_first` puts first.

    Raises:
        TargetError: If the table has fewer than two rows.
    """
    _check_choice(data)
    return int(farthest_first(data, schema, np.arange(len(data)))[0])


def far_records(data: pd.DataFrame, schema: Schema) -> IntArray:
    """Positions [m] of the records without an identical copy in the table, the farthest first.

    As `farthest_first` orders them.
    """
    alone = np.flatnonzero(~data.duplicated(keep=False).to_numpy())
    return alone if len(data) < 2 else farthest_first(data, schema, alone)


def exposing_first(data: pd.DataFrame, schema: Schema) -> IntArray:
    """Positions [m] of the records without an identical copy: the exposing ones first.

    These by what they expose, the others by how far they are, as `far_records` has them.
    """
    far = far_records(data, schema)
    scores = exposure_scores(find_holders(data, schema), len(data))
    ordered: IntArray = far[np.argsort(-scores[far], kind="stable")]
    return ordered


def copies_of(record: pd.DataFrame, data: pd.DataFrame, schema: Schema) -> int:
    """How many rows of a canonical table equal a canonical record."""
    return len(_equal_rows(record, data, schema))


def _exposing(data: pd.DataFrame, schema: Schema) -> Target:
    """The record that exposes most; distances are computed only where that leaves a choice."""
    _check_choice(data)
    holders = find_holders(data, schema)
    scores = exposure_scores(holders, len(data))
    if not scores.any():
        far = far_records(data, schema)
        row = int(far[0]) if len(far) else farthest(data, schema)  # a copy: the game refuses it
        return _row(EXPOSING, row, data)._replace(exposures=(), compared=_compared(data))
    most = np.flatnonzero(scores == scores.max())
    row = int(most[0] if len(most) == 1 else farthest_first(data, schema, most)[0])
    return _row(EXPOSING, row, data)._replace(exposures=exposures_of(row, holders))


def _check_choice(data: pd.DataFrame) -> None:
    if len(data) < 2:
        raise TargetError("the table needs at least 2 rows to choose a target from")


def _compared(data: pd.DataFrame) -> int | None:
    return None if is_exact(len(data)) else COMPARED


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
