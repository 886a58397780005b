"""The two worlds of a distinguishing game, and the record that tells them apart."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from dpaudit.claim import Neighbours
from dpaudit.encoding import encode
from dpaudit.errors import SettingsError, TargetError
from dpaudit.game.playable import without
from dpaudit.protocols import FloatArray, GameView, IntArray, World
from dpaudit.schema import Schema
from dpaudit.tables import fitting, load_table

VULNERABLE = "vulnerable"
"""The choice of target that takes trainings: `dpaudit.vulnerable`."""
NEIGHBOURS_AVERAGED = 5
"""Neighbours in the distance that makes a record "far" (papers: elusive pursuit, section 6.2)."""


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


@dataclass(frozen=True, kw_only=True)
class Game:
    """One distinguishing game: two tables that differ in one record and in nothing else.

    There is one number of requested rows, for both worlds: a game that asks for different numbers
    cannot be built.

    Attributes:
        view: What the attacker knows.
        data: Every record of either world, canonical; a replacement next to what it replaces.
        missing: Position in `data` of the one record that a world lacks, or None.

    Raises:
        SettingsError: If fewer than one row is requested, or the worlds are not neighbours.
    """

    view: GameView
    data: pd.DataFrame
    missing: dict[World, int | None]

    def __post_init__(self) -> None:
        if self.view.n_rows < 1:
            raise SettingsError(f"--rows must be at least 1, got {self.view.n_rows}")
        lacking = sorted(row for row in self.missing.values() if row is not None)
        if self.view.neighbours is Neighbours.ADD_REMOVE:
            sound = self.missing[World.IN] is None and len(lacking) == 1
        else:  # one of a pair in each world, so that they differ in one place
            sound = len(lacking) == 2 and lacking[0] + 1 == lacking[1]
        if not sound or not 0 <= lacking[0] <= lacking[-1] < len(self.data):
            raise SettingsError(
                f"of {len(self.data)} records world in lacks {self.missing[World.IN]} and world "
                f"out {self.missing[World.OUT]}: they are not {self.view.neighbours} neighbours"
            )

    def dropped_rows(self, world: World, number: int) -> tuple[int, ...]:
        """The row that every trial of a world trains without, if it lacks one."""
        del number
        row = self.missing[world]
        return () if row is None else (row,)

    def table(self, world: World, number: int) -> pd.DataFrame:
        """What every trial of a world trains on: a copy."""
        return without(self.data, self.dropped_rows(world, number))

    def rows_requested(self, world: World) -> int:
        """Synthetic rows asked of a model of this world: the same in both."""
        del world
        return self.view.n_rows


def build_game(
    data: pd.DataFrame,
    schema: Schema,
    target: Target,
    *,
    n_rows: int,
    neighbours: Neighbours,
    replacement: pd.DataFrame | None,
) -> Game:
    """Builds both worlds from a canonical table and the target.

    Args:
        data: The table handed in, canonical.
        schema: Its schema.
        target: The attacked record; where its row is None it is added to make world "in".
        n_rows: Synthetic rows to request.
        neighbours: The relation to play.
        replacement: For replace-one, the record (one canonical row) that stands in the target's
            place in world "out".

    Returns:
        The game.

    Raises:
        TargetError: If the target's record is in both worlds.
        SettingsError: If no rows are requested.
    """
    others = without(data, () if target.row is None else (target.row,))
    position = len(data) if target.row is None else target.row
    added, missing = [target.record], {World.IN: None, World.OUT: position}
    if neighbours is Neighbours.REPLACE_ONE:
        assert replacement is not None
        added, missing = [*added, replacement], {World.IN: position + 1, World.OUT: position}
    union = pd.concat([others.iloc[:position], *added, others.iloc[position:]])
    view = GameView(
        schema=schema, others=others, target=target.record, n_rows=n_rows, neighbours=neighbours
    )
    game = Game(view=view, data=schema.canonical(union), missing=missing)
    if copies_of(target.record, game.table(World.OUT, 0), schema):
        raise TargetError(
            f"the target ({target.choice}) has an identical copy in the table or as its "
            "replacement, so it is in both worlds: choose another target, or drop duplicate rows"
        )
    return game


def choose_target(choice: str, data: pd.DataFrame, schema: Schema) -> Target:
    """Finds the record to attack.

    Args:
        choice: "farthest" (largest mean distance to its 5 nearest neighbours on the encoded
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
    if choice == "farthest":
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
    raise TargetError(f"target {choice!r} is none of farthest, {VULNERABLE}, row:N, record:FILE")


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
