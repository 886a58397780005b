"""The cost of a model: trains one in a worker, as an audit does."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from dpaudit.auditing.games import game_of
from dpaudit.auditing.spec import AuditSpec
from dpaudit.errors import InputError
from dpaudit.formatting import visible
from dpaudit.game.flight import FIRST_SECONDS
from dpaudit.game.pool import run_errand, workers_ended
from dpaudit.game.store import RunFolder
from dpaudit.game.training import TimedModel, run_timed
from dpaudit.game.trial import Role, TrialStatus

TIMES_THE_ROWS: Final = 10
"""How many times the rows of the audit's tables a larger table has."""
MOST_ROWS: Final = 200_000
"""The largest table that is asked for only to time it: a worker may lack the memory for more."""


class RowsCost(NamedTuple):
    """What larger synthetic tables cost: sampling and features, without training.

    Attributes:
        rows: Their rows.
        seconds: By how much a model takes longer; None if it does not give such a table.
    """

    rows: int
    seconds: float | None


class ModelCost(NamedTuple):
    """The cost of one model: training, sampling and features.

    Attributes:
        model: Wall time of the generator's model in seconds.
        control: The same of a control.
        memory: Peak memory of the worker and its child processes in bytes, without larger tables;
            None if unknown.
        larger: The cost of larger synthetic tables; None if it was not measured.
    """

    model: float
    control: float
    memory: int | None
    larger: RowsCost | None


def time_one(audit: AuditSpec) -> ModelCost:
    """Trains one model of the generator and one of a control; both are dropped.

    Sampling larger tables is timed too, apart from training.

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
    audit = audit.timed_audit
    rows = TIMES_THE_ROWS * audit.rows
    asked = rows if rows <= MOST_ROWS else None
    with (
        tempfile.TemporaryDirectory(prefix="dpaudit-") as folder,
        RunFolder(
            Path(folder) / "run", spec=audit.stored_specification, versions=audit.software
        ) as store,
        workers_ended(),
    ):
        game = game_of(audit.settings.game)

        def timed(role: Role, name: str, *, larger: int | None) -> TimedModel:
            trial = game.FIRST_TRIAL._replace(role=role)
            errand = partial(run_timed, game.payload(audit, role), trial, larger=larger)
            timed_model = run_errand(errand, store, jobs=1, seconds=FIRST_SECONDS)
            if timed_model is None or timed_model.outcome.status is not TrialStatus.FINISHED:
                raise InputError(f"{name}: its one model could not be timed: {_why(timed_model)}")
            return timed_model

        # The control first: what a new worker imports is not the generator's time.
        control = timed(Role.NULL_CONTROL, Role.NULL_CONTROL.value, larger=None)
        model = timed(game.FIRST_TRIAL.role, audit.generator.name, larger=asked)
    return ModelCost(
        model=model.outcome.seconds,
        control=control.outcome.seconds,
        memory=model.memory,
        larger=None if asked is None else RowsCost(asked, model.more),
    )


def _why(failed: TimedModel | None) -> str:
    """Why a model could not be timed, for the user's own terminal, and where the traceback is."""
    if failed is None:
        return f"its worker process died or took over {FIRST_SECONDS / 3600:g} hours"
    outcome = failed.outcome
    why = outcome.message or outcome.error
    if not outcome.traceback:
        return why
    descriptor, name = tempfile.mkstemp(prefix="dpaudit-traceback-", suffix=".log")  # mode 0600
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(visible(outcome.traceback))
    return f"{why}; traceback: {name}"
