"""The games that the engine runs: a table, and the rows that each trial lacks.

`TargetGame` has two worlds that differ in one record, or in the rows of one unit. `CanaryGame` has
one training with many canaries, each in or out by a fair coin. In a `SelectionGame` each model
lacks a random half of some records. In an audit of units, canaries and records are units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pandas as pd

from dpaudit.errors import SettingsError, TargetError
from dpaudit.game.target import Target, exposing_first, exposing_units_first, far_records, far_units
from dpaudit.model.claim import Neighbours
from dpaudit.model.neighbouring_tables import equal_records
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import BoolArray, FloatArray, GameView, IntArray, World

Records: TypeAlias = tuple[tuple[int, ...], ...]
"""Positions of the rows of some records: one row each, or all rows of a unit, ascending."""


def without(data: pd.DataFrame, rows: Sequence[int]) -> pd.DataFrame:
    """A copy of a canonical table without some rows, numbered from 0."""
    kept = data.take(np.delete(np.arange(len(data)), list(rows)))
    kept.index = pd.RangeIndex(len(kept))
    return kept


@dataclass(frozen=True, kw_only=True)
class OneTable:
    """A game on one table: every trial trains on all of it; in subclasses trials lack rows.

    Attributes:
        view: What the attacker knows.
        data: Every record of any trial, canonical; models that train together are given all of it.
    """

    view: GameView
    data: pd.DataFrame

    def dropped_rows(self, world: World, number: int) -> tuple[int, ...]:
        """Positions in `data` of the records that a trial trains without: none."""
        del world, number
        return ()

    def table(self, world: World, number: int) -> pd.DataFrame:
        """The table of a trial, canonical: a copy of `data` without its dropped rows."""
        return without(self.data, self.dropped_rows(world, number))

    def rows_requested(self, world: World) -> int:
        """Synthetic rows requested from a model of this world; the same number in both."""
        del world
        return self.view.n_rows


@dataclass(frozen=True, kw_only=True)
class TargetGame(OneTable):
    """A distinguishing game: two tables that differ in the target's rows and in nothing else.

    Both worlds request the same number of rows: a game with two numbers cannot be built. A
    replacement stands in `data` next to the record that it replaces.

    Attributes:
        missing: Positions in `data` of the records that a world lacks, ascending.

    Raises:
        SettingsError: If the worlds are not neighbours.
    """

    missing: dict[World, tuple[int, ...]]

    def __post_init__(self) -> None:
        inside, outside = self.missing[World.IN], self.missing[World.OUT]
        if self.view.neighbours is Neighbours.ADD_REMOVE:
            are_neighbours = not inside
        else:  # each world lacks one row of each pair, so they differ in these rows alone
            are_neighbours = len(inside) == len(outside) and all(
                abs(row - other) == 1 for row, other in zip(inside, outside, strict=True)
            )
        missing = {*inside, *outside}
        is_disjoint = len(missing) == len(inside) + len(outside)
        are_rows = all(0 <= row < len(self.data) for row in missing)
        if not (outside and are_neighbours and is_disjoint and are_rows):
            raise SettingsError(
                f"of {len(self.data)} records world in lacks {inside} and world out {outside}: "
                f"they are not {self.view.neighbours} neighbours"
            )

    def dropped_rows(self, world: World, number: int) -> tuple[int, ...]:
        """The rows that every trial of a world trains without."""
        del number
        return self.missing[world]


def build_game(
    data: pd.DataFrame,
    schema: Schema,
    target: Target,
    *,
    n_rows: int,
    neighbours: Neighbours,
    replacement: pd.DataFrame | None,
    released_facts: tuple[str, ...] = (),
    released_effect: FloatArray | None = None,
) -> TargetGame:
    """Builds both worlds from a canonical table and the target.

    Args:
        data: The table handed in, canonical.
        schema: Its schema.
        target: The attacked record or unit; if it has no rows in the table, it is added for world
            "in".
        n_rows: Synthetic rows to request.
        neighbours: The neighbouring relation.
        replacement: For replace-one, the records (canonical rows) that replace the target's in
            world "out".
        released_facts: Names of the numbers that every model releases, if the attacker sees them.
        released_effect: As in `GameView`.

    Returns:
        The game.

    Raises:
        TargetError: If the replacement equals the target, so that both worlds are the same.
        SettingsError: If fewer than one row is requested.
    """
    added = target.record if not target.rows else target.record.iloc[:0]
    with_target = pd.concat([data, added], ignore_index=True)
    rows = target.rows or tuple(range(len(data), len(with_target)))
    missing: dict[World, tuple[int, ...]] = {World.IN: (), World.OUT: rows}
    union = with_target
    if neighbours is Neighbours.REPLACE_ONE:
        assert replacement is not None
        if equal_records(target.record[schema.names], replacement[schema.names]).all():
            raise TargetError(
                f"the replacement of the target ({target.choice}) equals it, so both worlds are "
                "the same: give another"
            )
        after = len(with_target) + np.arange(len(rows))
        order = np.insert(np.arange(len(with_target)), np.array(rows) + 1, after)
        union = pd.concat([with_target, replacement], ignore_index=True).iloc[order]
        places = tuple(row + before for before, row in enumerate(rows))
        missing = {World.IN: tuple(place + 1 for place in places), World.OUT: places}
    view = GameView(
        schema=schema,
        others=without(with_target, rows),
        target=target.record,
        n_rows=n_rows,
        neighbours=neighbours,
        released_facts=released_facts,
        released_effect=released_effect,
    )
    return TargetGame(view=view, data=schema.canonical(union), missing=missing)


class CanaryGame(OneTable):
    """One training with many canaries, each included by its own fair coin.

    The view's target is the table of all canaries, each of them a row or all rows of a unit. The
    training table has the other rows and the included canaries, in the order of the table handed
    in.
    """


def choose_canaries(data: pd.DataFrame, schema: Schema, canaries: int) -> IntArray:
    """The records without a copy in the table that are farthest from their nearest neighbours.

    The choice depends on the table alone, never on the coins, so the bound holds. Far records make
    the attack stronger: a synthetic record near one of them hardly has another source. Units are
    chosen by their farthest record.

    Args:
        data: The table, canonical.
        schema: Its schema.
        canaries: Number of canaries m.

    Returns:
        Positions of their rows, ascending: one for each canary, or all rows of each unit.

    Raises:
        SettingsError: If too few records are without a copy.
    """
    if schema.unit is not None:
        chosen = far_units(data, schema)[:canaries]
        return np.flatnonzero(np.isin(schema.owners(data), chosen))
    return np.sort(_take_first("canaries", canaries, far_records(data, schema)))


def _take_first(setting: str, number: int, alone: IntArray) -> IntArray:
    """The first records without a copy, as many as a setting asks for.

    Raises:
        SettingsError: If there are too few.
    """
    if len(alone) < number:
        raise SettingsError(
            f"`{setting}` is {number}, but only {len(alone)} records of the table have no "
            "identical copy: give fewer, or drop duplicate rows"
        )
    return alone[:number]


def flip_coins(canaries: int, rng: np.random.Generator) -> BoolArray:
    """Flips independent fair coins [m] for which canaries are included."""
    return rng.integers(0, 2, canaries).astype(np.bool_)


@dataclass(frozen=True, kw_only=True)
class SelectionGame(OneTable):
    """One set of models for all candidates: each candidate is in a random half of them.

    It adds and removes records, whichever neighbouring relation the audit uses: a record that
    stands out when it is removed also stands out when it is replaced. All trials belong to world
    "out", because each lacks records of the table. The view's target is the table of all
    candidates.

    Attributes:
        candidates: Positions in the table of the rows of each of the m candidates.
        included: Which candidates each trial trains with [n, m].
    """

    candidates: Records
    included: BoolArray

    def dropped_rows(self, world: World, number: int) -> tuple[int, ...]:
        """The candidates that a trial trains without."""
        del world
        left_out = np.flatnonzero(~self.included[number])
        return tuple(row for candidate in left_out for row in self.candidates[candidate])


def halves(trials: int, candidates: int, rng: np.random.Generator) -> BoolArray:
    """Draws, for each candidate, the half of the trials that train with it.

    Args:
        trials: Number of trials n; even.
        candidates: Number of candidates m.
        rng: Draws the halves, independently for each candidate.

    Returns:
        Which candidates each trial trains with [n, m].
    """
    column = np.arange(trials) < trials // 2
    return rng.permuted(np.repeat(column[:, None], candidates, axis=1), axis=0)


def choose_records(data: pd.DataFrame, schema: Schema, records: int) -> Records:
    """The most exposed records without a copy in the table, or the most exposed units.

    The choice depends on the table alone, never on the coins, so the bound holds.

    Args:
        data: The table, canonical.
        schema: Its schema.
        records: Number of records k.

    Returns:
        The rows of each of the k records, the most exposed first.

    Raises:
        SettingsError: If too few records are without a copy.
    """
    if schema.unit is not None:
        owners = schema.owners(data)
        ends = np.cumsum(np.bincount(owners))
        rows = np.split(np.argsort(owners, kind="stable"), ends[:-1])
        first = exposing_units_first(data, schema)[:records]
        return tuple(tuple(rows[unit].tolist()) for unit in first)
    return tuple(
        (int(row),) for row in _take_first("records", records, exposing_first(data, schema))
    )


def draw_included(
    trainings: int, *, fitted: int, records: int, rng: np.random.Generator
) -> BoolArray:
    """Draws which records each model is trained with, before any model is trained.

    In the fitting part each record is in half of the models; the first two models have the same
    records, so only their seeds differ. In the rest each record is in each model by an independent
    fair coin.

    Args:
        trainings: Number of models R.
        fitted: Number of models in the fitting part, the first ones; even, at least 4.
        records: Number of records k.
        rng: Draws the records.

    Returns:
        Which records each model is trained with [R, k].
    """
    first = rng.integers(2, size=records).astype(np.bool_)
    balanced = np.vstack([first, first, ~first, ~first, halves(fitted - 4, records, rng)])
    coins = rng.integers(2, size=(trainings - fitted, records)).astype(np.bool_)
    included: BoolArray = np.vstack([balanced, coins])
    return included
