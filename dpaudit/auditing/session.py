"""Runs an audit of any game: controls, trials, and the conclusion, which makes its record."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from dpaudit.auditing.checks import CONTROLS, control_check
from dpaudit.auditing.settings import AuditSettings
from dpaudit.auditing.spec import AuditSpec, Data, SchemaGiven
from dpaudit.bounds.table import ValidBound
from dpaudit.errors import SettingsError
from dpaudit.game.engine import Hopeless, never, run_trials
from dpaudit.game.flight import Engine, OnProgress, ignore_progress
from dpaudit.game.store import RunFolder
from dpaudit.game.trial import Outcome, Payload, Role, Trial
from dpaudit.model.choices import Multiplicity
from dpaudit.model.claim import Claim, EpsilonClaim, NoClaim
from dpaudit.model.column import stated_unit
from dpaudit.model.linked_files import load_given
from dpaudit.model.linked_tables import TABLE, LinkedTables
from dpaudit.model.tables import IN_MEMORY, SEVERAL, Table
from dpaudit.plugins.foreign import patches_apart
from dpaudit.plugins.named import NamedGenerator
from dpaudit.plugins.protocols import BoolArray, FloatArray, World, is_seedable
from dpaudit.results import sentences
from dpaudit.results.decide import decide
from dpaudit.results.record import (
    AuditedGenerator,
    AuditedTable,
    AuditRecord,
    ControlOutcome,
    Controls,
    Correction,
    Reach,
    SchemaOrigin,
)
from dpaudit.results.verdict import Check, Power, SampleUnit, Verdict


def conclude(
    audit: AuditSpec,
    controls: Mapping[Role, ControlOutcome],
    *,
    claim: Claim,
    proved: float | None,
    power: Power,
    reached: bool,
    checks: tuple[Check, ...],
    seconds: float,
    unit: SampleUnit = SampleUnit.TRIALS,
    leak: str | None = None,
    **own: Any,
) -> AuditRecord:
    """Decides the verdict and records it.

    Args:
        audit: The audit.
        controls: How its controls ended; empty if none was run.
        claim: The claim that the verdict is about.
        proved: The bound; None if nothing was scored.
        power: What the audit could prove.
        reached: Whether to record that; not if nothing was run.
        checks: Checks of the run; none if a control failed, so that it was not run.
        seconds: Seconds spent in trainings, over all workers.
        unit: What a larger audit would need more of.
        leak: The reason for a violation that says what leaks.
        own: The fields of the record that belong to the game.

    Returns:
        The record.
    """
    settings, table = audit.settings, audit.table
    if isinstance(claim, NoClaim):
        power = Power(power.max_provable, None)  # the other reasons concern a leak beyond a claim
    decision = decide(
        proved or 0.0,
        claim,
        power,
        [*(control_check(role, of, ran=bool(checks)) for role, of in controls.items()), *checks],
        confidence=settings.confidence,
        unit=unit,
    )
    first, *others = decision.reasons
    because = (leak,) if leak is not None and decision.verdict is Verdict.VIOLATION else ()
    inferred = (sentences.SCHEMA_INFERRED,) if table.schema.inferred else ()
    return AuditRecord(
        verdict=decision.verdict,
        reasons=(first, *because, *others, *inferred),
        claim=claim,
        proved=proved,
        confidence=settings.confidence,
        multiplicity=_correction(audit),
        **_reach(claim, power if reached else None),
        controls=Controls(
            null=controls[Role.NULL_CONTROL], positive=controls[Role.POSITIVE_CONTROL]
        )
        if controls
        else None,
        checks=checks,
        generator=_generator(audit),
        data=_data(audit),
        schema=SchemaOrigin(inferred=table.schema.inferred, source=table.schema_source),
        rows=audit.rows,
        seed=settings.seed,
        versions=audit.versions,
        seconds=round(seconds, 3),
        reproduce=audit.reproduce,
        fresh=_fresh(audit),
        replay=audit.replay,
        **own,
    )


def _correction(audit: AuditSpec) -> Correction:
    game = audit.settings.game
    selected = game.correction is Multiplicity.SELECT
    return Correction(
        rule=game.correction.value,
        hypotheses=game.hypotheses,
        probes=game.probes_share or None,
        attacks=tuple(one.name for one in audit.attacks) if selected else None,
    )


def _data(audit: AuditSpec) -> AuditedTable:
    table, schema = audit.table, audit.table.schema
    tables = None
    if isinstance(schema, LinkedTables):
        parts = table.data.groupby(TABLE, sort=False)
        tables = {str(name): len(rows) for name, rows in parts}
    return AuditedTable(
        source=table.source,
        rows=len(table.data),
        columns=len(schema.columns),
        units=None if audit.unit is None else int(table.data[audit.unit].nunique()),
        tables=tables,
        sha256=audit.specification["data"],
    )


def _generator(audit: AuditSpec) -> AuditedGenerator:
    generator = audit.generator
    return AuditedGenerator(
        name=generator.name,
        parameters=generator.parameters,
        seedable=is_seedable(generator.generator),
        source=audit.specification["generator"]["source"],
        fixes=_fixes(generator.generator),
    )


def _fixes(generator: object) -> int | None:
    """How many fixes a generator offers; None where it cannot say."""
    try:
        with patches_apart():
            offer = getattr(generator, "fixes", None)
            return len(offer()) if callable(offer) else 0
    except Exception:  # noqa: BLE001 - the generator's: the audit has ended, and explain says it
        return None


def _fresh(audit: AuditSpec) -> str | None:
    """The command with the next seed; none if the table is in memory or a seed changes nothing."""
    if audit.table.source == IN_MEMORY:
        return None
    settings = replace(audit.settings, seed=audit.settings.seed + 1)
    command = replace(audit, settings=settings).reproduce
    return None if command == audit.reproduce else command


def _reach(claim: Claim, power: Power | None) -> dict[str, Any]:
    """The fields of a record for the upper limit and the power of the audit."""
    highest, least, gaussian = power if power is not None else (None, None, None)
    if isinstance(claim, EpsilonClaim):
        return {
            "max_provable_epsilon": highest,
            "detectable_epsilon": least,
            "detectable_gaussian": gaussian,
        }
    reach = Reach(
        quantity=claim.quantity,
        claimed=claim.value,
        max_provable=highest,
        detectable=least,
        detectable_gaussian=gaussian,
    )
    return {"max_provable_epsilon": None, "detectable_epsilon": None, "reach": reach}


def recorded_bounds(bounds: Mapping[ValidBound, float]) -> dict[ValidBound, float | None]:
    """Every valid bound by key; None where it does not apply."""
    return {key: bounds.get(key) for key in ValidBound}


def by_world(
    scores: FloatArray | None = None, member: BoolArray | None = None
) -> dict[World, tuple[float, ...]]:
    """The scores of each world, from all scores and their membership; none if none are given."""
    if scores is None or member is None:
        return {World.IN: (), World.OUT: ()}
    return {
        World.IN: tuple(scores[member].tolist()),
        World.OUT: tuple(scores[~member].tolist()),
    }


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
    table = load_given(data, schema, stated_unit(settings.claim), settings.links)
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


def as_chosen(named: NamedGenerator, settings: AuditSettings) -> AuditSettings:
    """The settings themselves, for a game whose attacks see rows alone."""
    del named
    return settings


class GameKind(NamedTuple):
    """One game: `KIND` in the module `session` of its package.

    Attributes:
        build: Makes a complete, validated audit from a generator, a table and settings.
        session: Runs it.
        trainings: Counts the models it trains, given whether the generator trains many at once.
        table: Takes or makes its table.
        after_replay: Adds the attack of a replay, from the file that `dpaudit replay --json` wrote.
        visible: Leaves out default attacks that see nothing of a generator.
    """

    build: Callable[[object, Table, AuditSettings[Any]], AuditSpec]
    session: type[Session[Any, Any]]
    trainings: Callable[[AuditSettings[Any], bool], TrainingCount]
    table: Callable[[Data, SchemaGiven, AuditSettings[Any]], Table] = given_table
    after_replay: Callable[[AuditSettings[Any], Path], AuditSettings] = no_replay_before
    visible: Callable[[NamedGenerator, AuditSettings[Any]], AuditSettings] = as_chosen
