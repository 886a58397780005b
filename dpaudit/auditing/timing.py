"""What an audit trains, and what a model costs: one is trained in a worker as there."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import NamedTuple

from dpaudit.auditing.controls import CONTROLS, first_control_settings
from dpaudit.auditing.one_run.session import one_run_payload
from dpaudit.auditing.one_run.spec import OneRunSpec
from dpaudit.auditing.records.controls import control_settings as records_control_settings
from dpaudit.auditing.session import payload_of
from dpaudit.auditing.settings import AuditSettings
from dpaudit.auditing.two_worlds import TwoWorldSpec
from dpaudit.errors import InputError
from dpaudit.game.engine import run_trials
from dpaudit.game.local import LocalEngine
from dpaudit.game.memory import largest_child
from dpaudit.game.pool import workers_ended
from dpaudit.game.store import RunFolder
from dpaudit.game.trial import Role, Trial, TrialStatus
from dpaudit.plugins.protocols import World


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


def trainings(settings: AuditSettings, *, together: bool) -> TrainingCount:
    """How many models an audit with shadow models trains, its controls included.

    Args:
        settings: Every choice of the audit.
        together: Whether the generator trains many models at once; one of each world is repeated.
    """
    if settings.records > 1:
        control, repeats = records_control_settings(settings).shadow_models, 1
    else:
        control = first_control_settings(settings).shadow_models
        repeats = len(World) if together else 1
    return TrainingCount(
        models=settings.shadow_models, repeats=repeats, controls=len(CONTROLS) * control
    )


class ModelCost(NamedTuple):
    """What one model costs: training, sampling and features.

    Attributes:
        model: Wall time of the generator's model in seconds.
        control: The same of a control.
        memory: Bytes that the worker and whatever it started have held at most; None if unknown.
    """

    model: float
    control: float | None = None
    memory: int | None = None


def time_one(audit: TwoWorldSpec | OneRunSpec) -> ModelCost:
    """Trains one model of the generator and one of a control; both are dropped.

    A one-run audit has no other model than this, so that timing it takes as long as the audit.

    Args:
        audit: The audit.

    Returns:
        How long each took, and how much memory.

    Raises:
        InputError: If the generator's model fails; says why.
        AttackError: If an attack fails on a valid synthetic table.
        InterruptedRunError: On Ctrl-C.
    """
    if isinstance(audit, OneRunSpec):
        payload, audited = one_run_payload(audit), Role.ONE_RUN
    else:
        payload, audited = payload_of(audit), Role.AUDIT
    # The control first: what a new worker imports is not the generator's time.
    trials = [Trial(role, World.IN, 0) for role in (Role.NULL_CONTROL, audited)]
    seconds = []
    with (
        tempfile.TemporaryDirectory(prefix="dpaudit-") as folder,
        RunFolder(
            Path(folder) / "run", spec=audit.stored_specification, versions=audit.software
        ) as store,
        workers_ended(),
    ):
        for trial in trials:
            run_trials([trial], payload, store, engine=LocalEngine(1))
            outcome = store.outcome(trial)
            if outcome.status is not TrialStatus.FINISHED:
                name = audit.generator.name if trial.role is audited else trial.role.value
                said = store.last_message  # for the terminal of who runs it: nothing is kept
                reason = said if said.startswith(f"{outcome.error}:") else outcome.error
                raise InputError(f"{name}: its one model could not be timed: {reason}")
            seconds.append(outcome.seconds)
        memory = largest_child()
    control, model = seconds
    return ModelCost(model=model, control=control, memory=memory)
