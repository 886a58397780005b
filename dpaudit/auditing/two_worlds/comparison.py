"""The trainings of `compare_tables`: what a worker does to compare the tables of both worlds.

A module of its own, which imports neither specifications nor results: that would take the worker
longer than a few small models do. So the candidates of a target search, among which it proposes
another record, are chosen here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from dpaudit.errors import TargetError, TrialError
from dpaudit.game.target import exposing_first
from dpaudit.game.training import run_trial
from dpaudit.game.trial import Payload, Role, Trial
from dpaudit.game.worlds import OneTable, without
from dpaudit.model.choices import VULNERABLE
from dpaudit.model.tables import Table
from dpaudit.plugins.protocols import World

MOST_CANDIDATES = 64
"""As in the published audits of PATE-GAN."""
LARGEST_SHARE = 1 / 4
"""Largest share of the table; a model is trained without half of it."""


def candidates_of(table: Table) -> tuple[int, ...]:
    """The records that a search compares: exposed ones, then far ones, none with a copy.

    Returns:
        Their positions, the most exposed first: 64, or a quarter of the table's rows.

    Raises:
        TargetError: If there are fewer than two.
    """
    order = exposing_first(table.data, table.schema)
    rows = order[: min(MOST_CANDIDATES, int(LARGEST_SHARE * len(table.data)))]
    if len(rows) < 2:
        raise TargetError(
            f'`target="{VULNERABLE}"` compares records without an identical copy, at most a '
            f'quarter of the table, and finds {len(rows)}: name the target with `target="row:N"`'
        )
    return tuple(int(row) for row in rows)


MOST_SECONDS: Final = 60.0
"""No model is trained for this once so many seconds have passed."""


class EqualTables(NamedTuple):
    """That both worlds gave the same tables; the fields of `dpaudit.results.record.SameTables`."""

    seeds: int
    compared: int = 0
    other: int | None = None


@dataclass(frozen=True, kw_only=True)
class TableComparison:
    """The input of a worker that compares the tables of both worlds; calling it does.

    Attributes:
        payload: What trials are run from.
        worlds: The tables of world "in" and of world "out".
        replacement: The record (one canonical row) that stands in for another; None to leave out.
        table: The table whose other records may be proposed; None to propose none.
        target: Position of the target in it, if it is there.
        seeds: Most seeds that both worlds are trained with.
    """

    payload: Payload
    worlds: tuple[pd.DataFrame, ...]
    replacement: pd.DataFrame | None
    table: Table | None
    target: int | None
    seeds: int

    def __call__(self) -> EqualTables | None:
        """Compares them."""
        start = perf_counter()

        def seen(data: pd.DataFrame, number: int = 0) -> bytes:
            if perf_counter() - start > MOST_SECONDS:
                raise TrialError("there is no time for another model")
            return self._seen(data, number)

        inside, outside = self.worlds
        try:
            usual = seen(inside)
            if seen(outside) != usual:
                return None
            if any(seen(inside, n) != seen(outside, n) for n in range(1, self.seeds)):
                return None
            if seen(inside) != usual:
                return None  # the seed does not decide the table: the worlds agreed by chance
        except TrialError:
            return None
        try:
            return self._another(lambda rows: seen(self._lacking(rows)) != usual)
        except TrialError:
            return EqualTables(seeds=self.seeds)

    def _another(self, changes: Callable[[Sequence[int]], bool]) -> EqualTables:
        """Searches for a record that changes the table."""
        rows = self._candidates()
        if not rows or not changes(rows):
            return EqualTables(seeds=self.seeds, compared=len(rows))
        while len(rows) > 1:
            first, second = rows[: len(rows) // 2], rows[len(rows) // 2 :]
            rows = first if changes(first) else second
        return EqualTables(seeds=self.seeds, other=rows[0] if changes(rows) else None)

    def _candidates(self) -> list[int]:
        """Positions of the records that may be proposed, the most exposed first."""
        try:
            rows = () if self.table is None else candidates_of(self.table)
        except TargetError:  # the table has too few records without a copy
            rows = ()
        return [row for row in rows if row != self.target]

    def _lacking(self, rows: Sequence[int]) -> pd.DataFrame:
        """The table of world "in" without some records, or with the replacement in their place."""
        inside = self.worlds[0]
        if self.replacement is None:
            return without(inside, rows)
        places = np.arange(len(inside))
        places[list(rows)] = len(inside)
        both = pd.concat([inside, self.replacement])
        return self.payload.game.view.schema.canonical(both.iloc[places])

    def _seen(self, data: pd.DataFrame, number: int) -> bytes:
        """All that attacks see of a model that is trained on a table: its rows and its features."""
        game = OneTable(view=self.payload.game.view, data=data)
        trial = Trial(Role.TARGET_SELECTION, World.IN, number)
        outcome = run_trial(replace(self.payload, game=game), trial)
        if outcome.table is None or outcome.features is None:
            raise TrialError(outcome.error)
        return outcome.table + outcome.features.tobytes()
