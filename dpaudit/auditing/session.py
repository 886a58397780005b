"""Runs an audit of any game: controls, trials, conclusion."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from dpaudit.auditing.controls import CONTROLS
from dpaudit.auditing.spec import AuditSpec
from dpaudit.game.engine import Hopeless, never, run_trials
from dpaudit.game.flight import Engine, OnProgress, ignore_progress
from dpaudit.game.store import RunFolder
from dpaudit.game.trial import Outcome, Payload, Role, Trial
from dpaudit.plugins.protocols import World
from dpaudit.results.record import AuditRecord, ControlOutcome
from dpaudit.results.verdict import Check

SpecT = TypeVar("SpecT", bound=AuditSpec)
FoundT = TypeVar("FoundT")


@dataclass(frozen=True)
class Session(ABC, Generic[SpecT, FoundT]):
    """One audit being run in one run folder.

    Attributes:
        audit: The audit.
        store: Its run folder, locked.
        engine: What runs trials.
        trial_timeout: Seconds after which a trial has failed; derived if None.
        on_progress: Called after every trial.
    """

    AUDITED: ClassVar[Role] = Role.AUDIT
    """The role of the audit's own trials."""
    WORLD: ClassVar[World] = World.IN
    """The world of a single trial."""

    audit: SpecT
    store: RunFolder
    engine: Engine
    trial_timeout: float | None = None
    on_progress: OnProgress = ignore_progress

    def run(self, reuse: Check) -> AuditRecord:
        """Runs the trials that the folder does not hold yet, and concludes.

        Args:
            reuse: Whether its trials were judged before.

        Raises:
            AttackError: If an attack fails on a valid synthetic table.
            InterruptedRunError: On Ctrl-C.
        """
        controls: dict[Role, ControlOutcome] = {}
        found = self.tried()
        if found is None:
            controls = {role: self.control(role) for role in CONTROLS}
            if self.goes_on(controls):
                found = self.audited()
        seconds = sum(self.store.seconds(role) for role in Role)
        return self.record(controls, found, reuse=reuse, seconds=seconds)

    def tried(self) -> FoundT | None:
        """The findings if the first trials already end the audit; None to go on."""
        return None

    def looked_at_first(self, *, jobs: int) -> str:
        """Trains a few models before the audit, if that is cheap; says what the user should know.

        Args:
            jobs: Worker processes of this machine.

        Returns:
            A sentence; empty if there is nothing to say.
        """
        del jobs
        return ""

    @abstractmethod
    def payload(self, role: Role) -> Payload:
        """What workers need to run the trials of a role."""

    @abstractmethod
    def control(self, role: Role) -> ControlOutcome:
        """Runs a control and judges it."""

    def goes_on(self, controls: Mapping[Role, ControlOutcome]) -> bool:
        """Whether the audit's own trials are run after these controls."""
        return all(outcome.passed for outcome in controls.values())

    @abstractmethod
    def audited(self) -> FoundT:
        """Runs the audit's own trials and returns the findings."""

    @abstractmethod
    def record(
        self,
        controls: Mapping[Role, ControlOutcome],
        found: FoundT | None,
        *,
        reuse: Check,
        seconds: float,
    ) -> AuditRecord:
        """Concludes.

        Args:
            controls: How the controls ended; empty if none was run.
            found: The findings of the audit's own trials; None if a control failed.
            reuse: Whether they were judged before.
            seconds: Seconds spent in trials, over all workers.
        """

    def train_one(self, role: Role) -> Outcome:
        """Runs the first trial of a role."""
        trial = Trial(role, self.WORLD, 0)
        self.train([trial])
        return self.store.outcome(trial)

    def train(
        self,
        trials: Sequence[Trial],
        *,
        engine: Engine | None = None,
        among: Sequence[Trial] | None = None,
        hopeless: Hopeless = never,
    ) -> Sequence[Trial]:
        """Runs trials of one role, as `run_trials` does."""
        role = trials[0].role
        return run_trials(
            trials,
            self.payload(role),
            self.store,
            engine=engine or self.engine,
            trial_timeout=self.trial_timeout,
            generator=self.audit.generator.generator if role is Role.AUDIT else None,
            on_progress=self.on_progress,
            among=among,
            hopeless=hopeless,
        )
