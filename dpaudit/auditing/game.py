"""A game, as the rest of an audit needs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from dpaudit.auditing.session import Session
from dpaudit.auditing.settings import AuditSettings
from dpaudit.auditing.spec import AuditSpec
from dpaudit.model.tables import Table


class TrainingCount(NamedTuple):
    """Models that an audit trains.

    Attributes:
        models: Shadow models.
        repeats: Of these, trained a second time to see whether they come out the same.
        controls: Of the controls, which train nothing: they are sampled and attacked only. A
            small one that does not pass at once is run again with more, which is not counted.
    """

    models: int
    repeats: int
    controls: int

    def seconds(self, *, per_model: float, per_control: float) -> float:
        """Time of all, one after the other, in seconds."""
        return (self.models + self.repeats) * per_model + self.controls * per_control


class GameKind(NamedTuple):
    """One game.

    Attributes:
        build: Makes a complete, validated audit of a generator, a table and settings.
        session: Runs it.
        trainings: Counts what it trains, given whether the generator trains many models at once.
    """

    build: Callable[[object, Table, AuditSettings], AuditSpec]
    session: type[Session[Any, Any]]
    trainings: Callable[[AuditSettings, bool], TrainingCount]
