"""The games that an audit can play: a new one is a package beside these and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dpaudit.auditing.game import GameKind
from dpaudit.auditing.one_run.game import ONE_RUN
from dpaudit.auditing.records.game import MANY_RECORDS
from dpaudit.auditing.settings import AuditSettings, GameName
from dpaudit.auditing.spec import AuditSpec
from dpaudit.auditing.two_worlds.game import TWO_WORLDS
from dpaudit.model.tables import Table

GAMES: Final[Mapping[GameName, GameKind]] = {
    GameName.TWO_WORLDS: TWO_WORLDS,
    GameName.MANY_RECORDS: MANY_RECORDS,
    GameName.ONE_RUN: ONE_RUN,
}


def build_spec(generator: object, table: Table, settings: AuditSettings) -> AuditSpec:
    """From what the caller asked for to a complete, validated audit; trains nothing.

    Args:
        generator: As for `dpaudit.audit`.
        table: The table handed in.
        settings: Every choice of the audit.

    Returns:
        The audit, or the search for the most vulnerable target that comes before it.

    Raises:
        InputError: If anything is unusable; says what and how to fix it.
    """
    return GAMES[settings.game].build(generator, table, settings)
