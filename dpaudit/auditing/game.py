"""What a game of an audit must implement, what a run of it is given, and what it finds.

`dpaudit.auditing.entry.run_audit` knows games by this protocol alone. The games are in the packages
`two_worlds`, `records` and `one_run`; the table in `dpaudit.auditing.games` names them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from dpaudit.auditing.settings import AuditSettings
from dpaudit.auditing.spec import AuditSpec, Data, SchemaGiven
from dpaudit.bounds import Counts, Threshold
from dpaudit.bounds.table import ValidBound
from dpaudit.errors import GeneratorError, SettingsError
from dpaudit.formatting import counted
from dpaudit.game.engine import FIRST_REVIEW, Hopeless, never, run_trials
from dpaudit.game.flight import Engine, OnProgress, OnWarning, ignore_progress, ignore_warning
from dpaudit.game.store import RunFolder, StoredOutcome
from dpaudit.game.trial import Payload, Role, Trial, TrialEnd, TrialStatus
from dpaudit.model.choices import Access
from dpaudit.model.claim import Claim, PrivacyClaim
from dpaudit.model.column import stated_unit
from dpaudit.model.linked_files import load_given
from dpaudit.model.linked_tables import LinkedTables
from dpaudit.model.tables import SEVERAL, Table
from dpaudit.plugins.named import NamedGenerator
from dpaudit.plugins.protocols import BoolArray, FloatArray
from dpaudit.results.outcomes import AttackOutcome, OneRunOutcome, RecordsOutcome, TwoWorldsOutcome
from dpaudit.results.record import ControlOutcome, Leak, TargetOfAudit
from dpaudit.results.verdict import Check, Power, SampleUnit

SpecT = TypeVar("SpecT", bound=AuditSpec)


@dataclass(frozen=True, kw_only=True)
class Run(Generic[SpecT]):
    """One audit under way in its run folder.

    Attributes:
        spec: The audit.
        store: Its run folder, locked.
        engine: What runs trials.
        jobs: Worker processes of this machine, for what comes before the trials.
        trial_timeout: Seconds after which a trial has failed; derived if None.
        on_progress: Called after every trial.
        on_warning: Called with a warning before the trials, if there is one.
    """

    spec: SpecT
    store: RunFolder
    engine: Engine
    jobs: int = 1
    trial_timeout: float | None = None
    on_progress: OnProgress = ignore_progress
    on_warning: OnWarning = ignore_warning

    def train(
        self,
        trials: Sequence[Trial],
        payload: Payload,
        *,
        engine: Engine | None = None,
        among: Sequence[Trial] | None = None,
        hopeless: Hopeless = never,
    ) -> Sequence[Trial]:
        """Runs the trials of one role that the folder does not hold yet.

        Args:
            trials: The trials, in their order.
            payload: What workers need to run them.
            engine: What runs them; that of the audit if None.
            among: As for `run_trials`.
            hopeless: As for `run_trials`.

        Returns:
            The trials that count: all, or the first ones if the rest is hopeless.

        Raises:
            AttackError: If an attack fails on a valid synthetic table.
            InterruptedRunError: On Ctrl-C.
        """
        own = trials[0].role is Role.AUDIT  # many models at once: only of what is audited
        return run_trials(
            trials,
            payload,
            self.store,
            engine=engine or self.engine,
            trial_timeout=self.trial_timeout,
            generator=self.spec.generator.generator if own else None,
            on_progress=self.on_progress,
            among=among,
            hopeless=hopeless,
        )

    @property
    def seconds(self) -> float:
        """Seconds spent in trials so far, over all workers."""
        return sum(self.store.seconds(role) for role in Role)


@dataclass(frozen=True, kw_only=True)
class BestAttack:
    """The attack that decides: that with the largest bound.

    Attributes:
        name: Its name.
        proved: Its bound.
        bounds: All its bounds.
        auc: Area under its ROC curve.
        scores: Its scores; larger means "in".
        member: Whether each of them is of world "in".
        counts: Its errors; None in a game without thresholds.
        threshold: Its threshold; None in a game without thresholds.
    """

    name: str
    proved: float
    bounds: Mapping[ValidBound, float]
    auc: float
    scores: FloatArray
    member: BoolArray
    counts: Counts | None = None
    threshold: Threshold | None = None


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What an audit found, in any game; the defaults describe an audit that a control ended.

    Attributes:
        outcome: What only this game finds.
        claim: The claim that the verdict is about.
        target: What is attacked.
        controls: How the controls ended; empty if none was run.
        trials: How the audit's own trials ended.
        power: What these could prove; None if nothing was run.
        best: The attack with the largest bound; None if none was scored.
        attacks: Every attack that was scored at a threshold.
        leaks: Features that carry the best attack.
        proved_without_bits: What an audit of the same trials proves without the last bits of
            numbers; None unless these carry a bound above the claim.
        checks: Checks of the run; empty only if a control ended the audit.
        unit: What a larger audit would need more of.
        access: What the attacker sees in addition to synthetic rows; None if nothing.
    """

    outcome: TwoWorldsOutcome | RecordsOutcome | OneRunOutcome
    claim: Claim
    target: TargetOfAudit
    controls: Mapping[Role, ControlOutcome] = field(default_factory=dict)
    trials: Sequence[TrialEnd] = ()
    power: Power | None = None
    best: BestAttack | None = None
    attacks: tuple[AttackOutcome, ...] = ()
    leaks: tuple[Leak, ...] = ()
    proved_without_bits: float | None = None
    checks: tuple[Check, ...] = ()
    unit: SampleUnit = SampleUnit.TRIALS
    access: Access | None = None


def recorded_bounds(bounds: Mapping[ValidBound, float]) -> dict[ValidBound, float | None]:
    """Every valid bound by key; None where it does not apply."""
    return {key: bounds.get(key) for key in ValidBound}


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


class Game(Protocol[SpecT]):
    """One game: how an audit of it is specified and run. What it can prove is planned without it.

    A game keeps no state. Its settings say what the user chose, its spec what follows from that,
    and a `Run` where trials go.
    """

    FIRST_TRIAL: ClassVar[Trial]
    """The first of the audit's own trials, by which models are timed."""

    @abstractmethod
    def specify(self, generator: object, table: Table, settings: AuditSettings[Any]) -> AuditSpec:
        """Builds a complete, validated audit; trains nothing.

        Args:
            generator: As for `dpaudit.audit`.
            table: The table handed in.
            settings: Every choice of the audit.

        Raises:
            InputError: If anything is unusable; says what and how to fix it.
        """

    @abstractmethod
    def trainings(self, settings: AuditSettings[Any], together: bool) -> TrainingCount:
        """Counts the models that an audit trains.

        Args:
            settings: Every choice of the audit.
            together: Whether the generator trains many models at once.
        """

    @abstractmethod
    def limit(self, settings: AuditSettings[Any], claim: PrivacyClaim) -> float:
        """The epsilon that a perfect attack proves, above which no audit of this size decides.

        Args:
            settings: Every choice of the audit.
            claim: The claim under audit.
        """

    @abstractmethod
    def payload(self, spec: SpecT, role: Role) -> Payload:
        """What workers need to run the trials of a role."""

    @abstractmethod
    def own_trials(self, spec: SpecT) -> Sequence[Trial]:
        """The audit's own trials, in the order in which they are run."""

    def fail_alike(self, ends: Sequence[TrialEnd]) -> bool:
        """Whether first trials that all failed show nothing of any record."""
        del ends
        return True

    @abstractmethod
    def run(self, run: Run[SpecT]) -> Findings:
        """Runs controls and trials that the folder does not hold yet, and attacks them.

        Args:
            run: The audit under way.

        Raises:
            AttackError: If an attack fails on a valid synthetic table.
            InterruptedRunError: On Ctrl-C; the same call resumes.
        """

    def table(self, data: Data, schema: SchemaGiven, settings: AuditSettings[Any]) -> Table:
        """The table whose rows or units are audited: the caller's, unless the game makes its own.

        Raises:
            DataError: If the table cannot be read or does not fit.
            SchemaError: If the schema is malformed.
            SettingsError: If the table is missing, or there are several.
        """
        if data is None:
            raise SettingsError("no table to audit on: give `data`")
        table = load_given(data, schema, stated_unit(settings.claim), settings.links)
        if isinstance(table.schema, LinkedTables):
            raise SettingsError(f"the game of {settings.game.NAME} audits one table: {SEVERAL}")
        return table

    def after_replay(self, settings: AuditSettings[Any], record: Path) -> AuditSettings:
        """The same audit with the attack of a replay; refused by games without such an attack.

        Args:
            settings: Every choice of the audit.
            record: The file that `dpaudit replay --json` wrote.

        Raises:
            SettingsError: If the game has none, or the file is no record of a replay.
        """
        del record
        raise SettingsError(
            f"`after_replay` is for audits in two worlds, not of {settings.game.NAME}: leave one "
            "out"
        )

    def visible(self, named: NamedGenerator, settings: AuditSettings[Any]) -> AuditSettings:
        """The settings without default attacks that see nothing of a generator.

        Args:
            named: The generator.
            settings: Every choice of the audit.
        """
        del named
        return settings


def run_first(game: Game[Any], run: Run[Any]) -> float:
    """Trains a model of each world and, if none gives a table, a few more, before anything else.

    These are ordinary trials of the audit.

    Args:
        game: The game.
        run: The audit under way.

    Returns:
        The seconds of a training that finished; 0 if none did, in a way that may show a record.

    Raises:
        GeneratorError: If all fail alike; says why.
    """
    trials = game.own_trials(run.spec)
    tried = [trial for trial in trials if trial.number == 0]
    ends = _train_first(tried, game, run)
    finished = [end.seconds for end in ends if end.finished]
    # A model that crashed has ended its worker three times: further ones would say no more.
    if not finished and any(end.status is not TrialStatus.CRASHED for end in ends):
        ends = _train_first([*tried, *(t for t in trials[:FIRST_REVIEW] if t.number)], game, run)
        finished = [end.seconds for end in ends if end.finished]
    if finished or not game.fail_alike(ends):
        return finished[0] if finished else 0.0
    [(why, _)] = Counter(end.error for end in ends).most_common(1)
    raise GeneratorError(
        f"{run.spec.generator.name} gave no synthetic table in {counted(len(ends), 'training')}: "
        f"{why}; tracebacks: {run.store.log} (after the repair give another `out`)"
    )


def _train_first(trials: Sequence[Trial], game: Game[Any], run: Run[Any]) -> list[StoredOutcome]:
    """Runs the trials that the folder does not hold yet."""
    role = game.FIRST_TRIAL.role
    run.train(trials, game.payload(run.spec, role), among=game.own_trials(run.spec))
    stored = run.store.outcomes(role)
    return [stored[trial] for trial in trials]
