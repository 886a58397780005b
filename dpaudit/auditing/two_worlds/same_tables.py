"""Whether both worlds give the same table for the target, seen in a few models before an audit.

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
from dataclasses import replace
from typing import Final

from dpaudit.auditing.two_worlds.comparison import MOST_SECONDS, TableComparison
from dpaudit.auditing.two_worlds.spec import TwoWorldSpec
from dpaudit.files import parse_json, write_whole
from dpaudit.game.local import run_errand
from dpaudit.game.store import PRIVATE_FILE, RunFolder
from dpaudit.game.trial import Payload, Role
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
        payload: What workers need to run its trials.
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
        seen = run_errand(_comparison(audit, payload), store, jobs=jobs, seconds=STOPPED_AFTER)
    same = None if seen is None else SameTables(**seen._asdict())
    text = json.dumps(None if same is None else to_document(same)) + "\n"
    write_whole(file, text, mode=PRIVATE_FILE)
    return same


def _read(text: str) -> SameTables | None:
    kept = parse_json(text)
    if kept is None:
        return None
    same: SameTables = from_document(SameTables, kept)
    return same


def _comparison(audit: TwoWorldSpec, payload: Payload) -> TableComparison:
    audited = {Role.TARGET_SELECTION: payload.generators[Role.AUDIT]}
    added = audit.game.missing[World.IN]
    return TableComparison(
        payload=replace(payload, generators=audited),
        worlds=tuple(audit.game.table(world, 0) for world in World),
        replacement=audit.game.data.iloc[list(added)] if added else None,
        table=audit.table if audit.pair is None and audit.table.schema.unit is None else None,
        target=audit.target.row,
        seeds=max(FEWEST_SEEDS, audit.settings.game.shadow_models // MODELS_PER_SEED),
    )
