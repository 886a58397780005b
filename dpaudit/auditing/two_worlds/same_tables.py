"""Whether both worlds give the same table for the target, from a few models before the audit.

A generator may use few facts of its data, so that most records show nowhere: an audit of such a
record proves nothing, and one of another record might. Here both worlds are trained with the same
seeds. If that gives the same tables, one record for which it does not is searched for by halving
the candidates of a target search: as long as the table changes without a group of them, it does so
without one of the two halves or without both. The last one is compared alone.

The verdict does not depend on any of this, and the target stays as it was. These models have a role
of their own, so their random streams are independent of the audit's, and none of them is scored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Final

import numpy as np
import pandas as pd

from dpaudit.auditing.two_worlds.spec import TwoWorldSpec
from dpaudit.auditing.two_worlds.target_search.spec import candidates_of
from dpaudit.errors import TargetError, TrialError
from dpaudit.files import parse_json, write_whole
from dpaudit.game.errand import run_errand
from dpaudit.game.store import PRIVATE_FILE, RunFolder
from dpaudit.game.training import run_trial
from dpaudit.game.trial import Payload, Role, Trial
from dpaudit.game.worlds import OneTable, without
from dpaudit.model.tables import Table
from dpaudit.plugins.protocols import World, is_seedable
from dpaudit.results.document import from_document, to_document
from dpaudit.results.record import SameTables

SAME_TABLES_FILE: Final = "same_tables.json"
"""File of a run folder that keeps what was found."""
MODELS_PER_SEED: Final = 100
"""Both worlds are trained with one seed for so many models of the audit: 2 % of its trainings."""
FEWEST_SEEDS: Final = 2
FEWEST_MODELS: Final = 100
"""Smallest audit that is looked at: of a smaller one two models are over 2 %."""
MOST_SECONDS: Final = 60.0
"""No model is trained for this once so many seconds have passed."""
STOPPED_AFTER: Final = 3 * MOST_SECONDS
"""Hard time limit, in seconds."""


def compare_tables(
    audit: TwoWorldSpec, payload: Payload, store: RunFolder, *, jobs: int
) -> SameTables | None:
    """Compares the tables of both worlds in a worker, or reads the outcome from the run folder.

    If the first seed gives different tables, it takes two models. Else other seeds follow, and a
    search of at most nine models.

    Args:
        audit: The audit.
        payload: What workers need to run its trials; has a generator for `TARGET_SELECTION`.
        store: Its run folder, locked.
        jobs: Worker processes of the audit; one of them trains.

    Returns:
        What was found if the tables are the same; None if they differ or were not compared.

    Raises:
        AttackError: If an attack fails on a valid synthetic table.
        InterruptedRunError: On Ctrl-C; the same call compares again.
        OSError: If the outcome cannot be written.
    """
    if audit.settings.game.shadow_models < FEWEST_MODELS:
        return None
    if audit.is_timed:  # equal tables may take different times
        return None
    if not is_seedable(audit.generator.generator):
        return None
    file = store.path / SAME_TABLES_FILE
    try:
        return _read(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError, AttributeError):
        found = run_errand(_comparison(audit, payload), store, jobs=jobs, seconds=STOPPED_AFTER)
    text = json.dumps(None if found is None else to_document(found)) + "\n"
    write_whole(file, text, mode=PRIVATE_FILE)
    return found


def kept_comparison(store: RunFolder) -> SameTables | None:
    """What `compare_tables` found, from the run folder; None if it found or kept nothing."""
    file = store.path / SAME_TABLES_FILE
    return _read(file.read_text(encoding="utf-8")) if file.is_file() else None


def _read(text: str) -> SameTables | None:
    kept = parse_json(text)
    if kept is None:
        return None
    found: SameTables = from_document(SameTables, kept)
    return found


def _comparison(audit: TwoWorldSpec, payload: Payload) -> _Comparison:
    added = audit.game.missing[World.IN]
    return _Comparison(
        payload=payload,
        worlds=tuple(audit.game.table(world, 0) for world in World),
        replacement=audit.game.data.iloc[list(added)] if added else None,
        table=audit.table if audit.pair is None and audit.table.schema.unit is None else None,
        target=audit.target.row,
        seeds=max(FEWEST_SEEDS, audit.settings.game.shadow_models // MODELS_PER_SEED),
    )


@dataclass(frozen=True, kw_only=True)
class _Comparison:
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

    def __call__(self) -> SameTables | None:
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
            return SameTables(seeds=self.seeds)

    def _another(self, changes: Callable[[Sequence[int]], bool]) -> SameTables:
        """Searches for a record that changes the table."""
        rows = self._candidates()
        if not rows or not changes(rows):
            return SameTables(seeds=self.seeds, compared=len(rows))
        while len(rows) > 1:
            first, second = rows[: len(rows) // 2], rows[len(rows) // 2 :]
            rows = first if changes(first) else second
        return SameTables(seeds=self.seeds, other=rows[0] if changes(rows) else None)

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
