"""The table of an audit, and the pair of tables if the audit names a pair instead of a target."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from dpaudit.auditing.game import Data, SchemaGiven
from dpaudit.auditing.settings import AuditSettings
from dpaudit.auditing.two_worlds.settings import TwoWorlds
from dpaudit.errors import SchemaError, SettingsError
from dpaudit.model.choices import EXPOSING, VULNERABLE, Access, WorstCase
from dpaudit.model.linked_files import load_given
from dpaudit.model.linked_tables import LinkedTables
from dpaudit.model.neighbouring_tables import (
    NeighbouringTables,
    read_neighbours,
    searched_tables,
    worst_case_tables,
)
from dpaudit.model.schema import Schema
from dpaudit.model.tables import Table, load_schema


def audited_table(data: Data, schema: SchemaGiven, settings: AuditSettings[TwoWorlds]) -> Table:
    """The audited table: the caller's, or that of its worst case.

    Raises:
        InputError: As `dpaudit.auditing.games.audited_table`.
    """
    unit = settings.claim.stated_unit
    if settings.game.worst_case is None:
        if data is None:
            raise SettingsError("no table to audit on: give `data`, or `worst_case`")
        table = load_given(data, schema, unit, settings.links)
        _check_choice(table.schema, settings.game)
        return table
    if data is not None:
        raise SettingsError(
            "`worst_case` builds its table from a public schema alone: leave out `data`, or leave "
            "out `worst_case`"
        )
    path = str(schema) if isinstance(schema, str | Path) else None
    public = load_schema(schema, _no_table) if isinstance(schema, str | Path) else schema
    if unit is not None or (public is not None and public.unit is not None):
        raise SettingsError(
            "a worst case has single rows and no units: leave out the unit, or leave out "
            "`worst_case`"
        )
    named = settings.game.worst_case
    if named is WorstCase.SEARCH:
        first, *_ = searched_tables(public).values()
        return Table(first.data, first.schema, f"worst-case:{named}", path)
    pair = worst_case_tables(named, public)
    return Table(pair.data, pair.schema, pair.choice, path)


def _check_choice(schema: Schema, game: TwoWorlds) -> None:
    """Refuses choices that are of single rows or of one table where the audit is not."""
    if isinstance(schema, LinkedTables):
        of_one = {
            "neighbours_file": game.neighbours_file is not None,
            f'access="{game.access}"': game.access in (Access.MODEL, Access.RELEASED),
        }
        for name, is_given in of_one.items():
            if is_given:
                raise SettingsError(f"`{name}` is for audits of one table: leave it out")
    if schema.unit is not None and game.target == VULNERABLE:
        raise SettingsError(
            f"the search for the most vulnerable target compares rows, not units: give "
            f'`target="{EXPOSING}"` or unit:VALUE, or leave out the unit'
        )


def audited_pair(table: Table, settings: AuditSettings[TwoWorlds]) -> NeighbouringTables | None:
    """Both tables of an audit that names a pair; None for one that names a target.

    Raises:
        DataError: If the neighbours file is not a neighbour of the table.
        SchemaError: If the schema is not public.
        SettingsError: If the tables do not have the neighbouring relation that was asked for.
    """
    if settings.game.worst_case is not None:
        return worst_case_tables(settings.game.worst_case, table.schema)
    if settings.game.neighbours_file is None:
        return None
    pair = read_neighbours(settings.game.neighbours_file, table)
    if settings.claim.neighbours not in (None, pair.neighbours):
        raise SettingsError(
            f"`neighbours` is {settings.claim.neighbours}, and the tables of `neighbours_file` are "
            f"{pair.neighbours}: leave out `neighbours`"
        )
    return pair


def _no_table() -> pd.DataFrame:
    raise SchemaError(
        "SDV metadata has no bounds and categories of its own: a worst case needs a schema with "
        "them; see docs/schema.md"
    )
