"""The cost of a model: trains one in a worker, as an audit does."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import NamedTuple

from dpaudit.auditing.games import kind_of
from dpaudit.auditing.spec import AuditSpec
from dpaudit.errors import InputError
from dpaudit.formatting import visible
from dpaudit.game.local import LocalEngine
from dpaudit.game.pool import largest_child, workers_ended
from dpaudit.game.store import RunFolder
from dpaudit.game.trial import Outcome, Role, TrialStatus


class ModelCost(NamedTuple):
    """The cost of one model: training, sampling and features.

    Attributes:
        model: Wall time of the generator's model in seconds.
        control: The same of a control.
        memory: Peak memory of the worker and its child processes in bytes; None if unknown.
    """

    model: float
    control: float | None = None
    memory: int | None = None


def _kept(failure: Outcome | None) -> str:
    """Private file with the traceback of a failure; empty if there is none."""
    if failure is None or not failure.traceback:
        return ""
    descriptor, name = tempfile.mkstemp(prefix="dpaudit-traceback-", suffix=".log")  # mode 0600
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(visible(failure.traceback))
    return f"; traceback: {name}"


def time_one(audit: AuditSpec) -> ModelCost:
    """Trains one model of the generator and one of a control; both are dropped.

    A one-run audit has only this model, so timing it takes as long as the audit.

    Args:
        audit: The audit.

    Returns:
        How long each took, and how much memory.

    Raises:
        InputError: If the generator's model fails; says why.
        AttackError: If an attack fails on a valid synthetic table.
        InterruptedRunError: On Ctrl-C.
    """
    audit = audit.like_it
    seconds = []
    with (
        tempfile.TemporaryDirectory(prefix="dpaudit-") as folder,
        RunFolder(
            Path(folder) / "run", spec=audit.stored_specification, versions=audit.software
        ) as store,
        workers_ended(),
    ):
        session = kind_of(audit.settings.game).session(audit, store, LocalEngine(1))
        # The control first: what a new worker imports is not the generator's time.
        for role in (Role.NULL_CONTROL, session.AUDITED):
            outcome = session.train_one(role)
            if outcome.status is not TrialStatus.FINISHED:
                name = audit.generator.name if role is session.AUDITED else role.value
                failure = store.last_failure  # its message goes to the user's own terminal
                said = outcome.error if failure is None else failure.message or outcome.error
                raise InputError(
                    f"{name}: its one model could not be timed: {said}{_kept(failure)}"
                )
            seconds.append(outcome.seconds)
        memory = largest_child()
    control, model = seconds
    return ModelCost(model=model, control=control, memory=memory)
