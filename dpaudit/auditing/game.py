"""The interface of a game to the rest of an audit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from dpaudit.auditing.session import Session
from dpaudit.auditing.settings import AuditSettings
from dpaudit.auditing.spec import AuditSpec
from dpaudit.errors import SettingsError
from dpaudit.game.flight import Engine, OnProgress
from dpaudit.model.linked_files import Given, load_given
from dpaudit.model.linked_tables import LinkedTables
from dpaudit.model.schema import Schema
from dpaudit.model.tables import SEVERAL, Table
from dpaudit.plugins.named import NamedGenerator

Data: TypeAlias = Given | None
"""A table from the caller, or several by name; None for a game that makes its own."""
SchemaGiven: TypeAlias = Schema | str | Path | None
"""Its schema from the caller; None to infer it."""


class TrainingCount(NamedTuple):
    """Models that an audit trains.

    Attributes:
        models: Shadow models.
        repeats: How many of these are trained a second time, to check that they are reproducible.
        controls: Models of the controls, which are only sampled and attacked, not trained. A small
            control that does not pass at once is run again with more models, which are not counted.
        searches: Models trained before the audit, to find its target.
        at_most: Whether the audit may stop before all are trained.
        alone: Whether they are trained one after the other, regardless of the number of workers.
    """

    models: int
    repeats: int
    controls: int
    searches: int = 0
    at_most: bool = False
    alone: bool = False

    def seconds(self, *, per_model: float, per_control: float, workers: int) -> float:
        """Wall time of all in seconds."""
        trained = (self.models + self.repeats + self.searches) * per_model
        return (trained + self.controls * per_control) / (1 if self.alone else workers)


def given_table(data: Data, schema: SchemaGiven, settings: AuditSettings) -> Table:
    """The table that is handed in, whose rows or units are audited.

    Raises:
        DataError: If the table cannot be read or does not fit.
        SchemaError: If the schema is malformed.
        SettingsError: If the table is missing.
    """
    if data is None:
        raise SettingsError("no table to audit on: give `data`")
    table = load_given(data, schema, settings.claim.stated_unit, settings.links)
    if isinstance(table.schema, LinkedTables):
        raise SettingsError(f"the game of {settings.game.NAME} audits one table: {SEVERAL}")
    return table


def no_replay_before(settings: AuditSettings, record: Path) -> AuditSettings:
    """Refuses the record of a replay, for a game without an attack that reads it.

    Raises:
        SettingsError: Always.
    """
    del record
    raise SettingsError(
        f"`after_replay` is for audits in two worlds, not of {settings.game.NAME}: leave one out"
    )


def prepared_already(
    spec: AuditSpec, folder: Path, engine: Engine, timeout: float | None, progress: OnProgress
) -> AuditSpec:
    """The audit itself, for a game that trains nothing before it."""
    del folder, engine, timeout, progress
    return spec


def as_chosen(named: NamedGenerator, settings: AuditSettings) -> AuditSettings:
    """The settings themselves, for a game whose attacks see rows alone."""
    del named
    return settings


class GameKind(NamedTuple):
    """One game: `KIND` in the module `game` of its package.

    Attributes:
        build: Makes a complete, validated audit from a generator, a table and settings.
        session: Runs it.
        trainings: Counts the models it trains, given whether the generator trains many at once.
        table: Takes or makes its table.
        prepared: Runs anything that comes before the audit, in the run folder, and makes the audit.
        after_replay: Adds the attack of a replay, from the file that `dpaudit replay --json` wrote.
        visible: Leaves out default attacks that see nothing of a generator.
    """

    build: Callable[[object, Table, AuditSettings[Any]], AuditSpec]
    session: type[Session[Any, Any]]
    trainings: Callable[[AuditSettings[Any], bool], TrainingCount]
    table: Callable[[Data, SchemaGiven, AuditSettings[Any]], Table] = given_table
    prepared: Callable[[AuditSpec, Path, Engine, float | None, OnProgress], AuditSpec] = (
        prepared_already
    )
    after_replay: Callable[[AuditSettings[Any], Path], AuditSettings] = no_replay_before
    visible: Callable[[NamedGenerator, AuditSettings[Any]], AuditSettings] = as_chosen
