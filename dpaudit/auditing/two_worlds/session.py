"""Runs an audit in two worlds: controls, trials, attacks, checks, verdict.

Before it, a few models may show whether both worlds give the same table for the target. A generator
may use few facts of its data, so that most records show nowhere: an audit of such a record proves
nothing, and one of another record might. Here both worlds are trained with the same seeds. If that
gives the same tables, one record for which it does not is searched for by halving the candidates of
a target search: as long as the table changes without a group of them, it does so without one of the
two halves or without both. The last one is compared alone.

The verdict does not depend on any of this, and the target stays as it was. These models have a role
of their own, so their random streams are independent of the audit's, and none of them is scored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from dpaudit.auditing.checks import CONTROLS, Replay, control_claim
from dpaudit.auditing.session import GameKind, Session, TrainingCount
from dpaudit.auditing.settings import ATTACKS_AT, AuditSettings
from dpaudit.auditing.spec import AuditSpec, attacks_with_access
from dpaudit.auditing.two_worlds.attacking.run import Attacked, attack_all, best
from dpaudit.auditing.two_worlds.checks import all_failed_alike, cannot_prove, first_finished
from dpaudit.auditing.two_worlds.comparison import MOST_SECONDS, TableComparison
from dpaudit.auditing.two_worlds.conclusion import Findings, conclude_two_worlds, find, target_of
from dpaudit.auditing.two_worlds.controls import (
    ControlGame,
    control_generator,
    control_settings,
    first_control_settings,
    judged,
)
from dpaudit.auditing.two_worlds.plan import highest_provable
from dpaudit.auditing.two_worlds.sequential import run_sequential
from dpaudit.auditing.two_worlds.settings import TwoWorlds
from dpaudit.auditing.two_worlds.spec import (
    FIRST_FITTED,
    TrialPlan,
    TwoWorldSpec,
    audited_table,
    build_two_worlds,
    plan_trials,
    with_visible,
)
from dpaudit.auditing.two_worlds.target_search import build_target_search
from dpaudit.auditing.two_worlds.worst_case_search import (
    MOST_CANDIDATES,
    build_worst_case_search,
    per_world,
    rounds,
)
from dpaudit.errors import SettingsError
from dpaudit.files import io_reason, parse_json, write_whole
from dpaudit.game.engine import FIRST_REVIEW
from dpaudit.game.local import run_errand
from dpaudit.game.outcomes import StoredOutcomes
from dpaudit.game.store import PRIVATE_FILE, RunFolder
from dpaudit.game.trial import Payload, Role, Trial
from dpaudit.model.choices import EXPOSING, VULNERABLE, WorstCase
from dpaudit.model.tables import Table
from dpaudit.plugins.foreign import pickled
from dpaudit.plugins.named import NamedGenerator
from dpaudit.plugins.protocols import World, is_seedable
from dpaudit.results.document import from_document, to_document
from dpaudit.results.record import AuditRecord, ControlOutcome, SameTables
from dpaudit.results.sentences import same_tables
from dpaudit.results.verdict import Check

SAME_TABLES_FILE: Final = "same_tables.json"
"""File of a run folder that keeps what was found."""
MODELS_PER_SEED: Final = 100
"""Both worlds are trained with one seed for so many models of the audit: 2 % of its trainings."""
FEWEST_SEEDS: Final = 2
FEWEST_MODELS: Final = 100
"""Smallest audit that is looked at: of a smaller one two models are over 2 %."""
STOPPED_AFTER: Final = 3 * MOST_SECONDS
"""Hard time limit, in seconds."""


def compare_tables(
    audit: TwoWorldSpec, payload: Payload, store: RunFolder, *, jobs: int
) -> SameTables | None:
    """Compares the tables of both worlds in a worker, or reads the outcome from the run folder.

    If the first seed gives different tables, it takes two models. Else other seeds follow, and a
    search of at most nine models.

    Args:
        audit: The audit.
        payload: What workers need to run its trials; has a generator for `TARGET_SELECTION`.
        store: Its run folder, locked.
        jobs: Worker processes of the audit; one of them trains.

    Returns:
        What was found if the tables are the same; None if they differ or were not compared.

    Raises:
        AttackError: If an attack fails on a valid synthetic table.
        InterruptedRunError: On Ctrl-C; the same call compares again.
        OSError: If the outcome cannot be written.
    """
    if audit.settings.game.shadow_models < FEWEST_MODELS:
        return None
    if audit.is_timed:  # equal tables may take different times
        return None
    if not is_seedable(audit.generator.generator):
        return None
    file = store.path / SAME_TABLES_FILE
    try:
        return _read(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError, AttributeError):
        seen = run_errand(_comparison(audit, payload), store, jobs=jobs, seconds=STOPPED_AFTER)
    found = None if seen is None else SameTables(**seen._asdict())
    text = json.dumps(None if found is None else to_document(found)) + "\n"
    write_whole(file, text, mode=PRIVATE_FILE)
    return found


def kept_comparison(store: RunFolder) -> SameTables | None:
    """What `compare_tables` found, from the run folder; None if it found or kept nothing."""
    file = store.path / SAME_TABLES_FILE
    return _read(file.read_text(encoding="utf-8")) if file.is_file() else None


def _read(text: str) -> SameTables | None:
    kept = parse_json(text)
    if kept is None:
        return None
    found: SameTables = from_document(SameTables, kept)
    return found


def _comparison(audit: TwoWorldSpec, payload: Payload) -> TableComparison:
    added = audit.game.missing[World.IN]
    return TableComparison(
        payload=payload,
        worlds=tuple(audit.game.table(world, 0) for world in World),
        replacement=audit.game.data.iloc[list(added)] if added else None,
        table=audit.table if audit.pair is None and audit.table.schema.unit is None else None,
        target=audit.target.row,
        seeds=max(FEWEST_SEEDS, audit.settings.game.shadow_models // MODELS_PER_SEED),
    )


@dataclass(frozen=True)
class TwoWorldSession(Session[TwoWorldSpec, Findings]):
    """An audit in two worlds, running in one run folder."""

    def looked_at_first(self, *, jobs: int) -> str:
        """Whether both worlds give the same tables."""
        payload = self._payload
        audited = {Role.TARGET_SELECTION: payload.generators[Role.AUDIT]}
        found = compare_tables(
            self.audit, replace(payload, generators=audited), self.store, jobs=jobs
        )
        return same_tables(target_of(self.audit, found))

    def payload(self, role: Role) -> Payload:
        """What workers need to run any trial."""
        del role
        return self._payload

    @cached_property
    def _payload(self) -> Payload:
        audit = self.audit
        audited = pickled(audit.generator.generator, name=audit.generator.name)
        generators = {Role.AUDIT: audited, Role.REPLAY: audited}
        generators |= {role: control_generator(role, audit) for role in CONTROLS}
        return Payload(
            game=audit.game,
            generators=generators,
            attacks=[attack for _, attack in audit.attacks],
            root=audit.settings.seed,
            audit=audit.id,
        )

    def tried(self) -> Findings | None:
        """Trains a model in each world and, if both fail, a few more: findings if all fail alike.

        These are ordinary trials of the audit.
        """
        first = [Trial(Role.AUDIT, world, 0) for world in World]
        self.train(first, among=self._cap)
        stored = self.store.outcomes(Role.AUDIT)
        if any(stored[trial].finished for trial in first):
            return None
        if self.audit.settings.game.sequential:
            order = self._plan.trials(0, FIRST_FITTED)[:FIRST_REVIEW]
        else:
            order = self._shuffled(Role.AUDIT, self.audit.settings)[:FIRST_REVIEW]
        self.train(order, among=self._cap)
        tried = [*first, *(trial for trial in order if trial not in first)]
        if not all_failed_alike([stored[trial] for trial in tried]):
            return None
        return self._found(tried, gave_up=True)

    def control(self, role: Role) -> ControlOutcome:
        """Runs a control: a small one if the audit is small, a full one if that does not pass."""
        first = first_control_settings(self.audit.settings)
        outcome = self._controlled(role, first)
        if outcome.passed or first.game.is_full:
            return outcome
        return self._controlled(role, control_settings(self.audit.settings))

    def goes_on(self, controls: Mapping[Role, ControlOutcome]) -> bool:
        """Whether the null control passed: attacks that miss a planted leak may see other ones."""
        return controls[Role.NULL_CONTROL].passed

    def _controlled(self, role: Role, settings: AuditSettings[ControlGame]) -> ControlOutcome:
        self.train(self._shuffled(role, settings))
        claim = control_claim(self.audit.claim)
        attacked = attack_all(self.audit, self.store.outcomes(role), role, settings, claim)
        evaluation = best(attacked).evaluation if attacked else None
        return judged(
            role,
            evaluation,
            settings.game,
            attacks=len(self.audit.attacks),
            highest=highest_provable(settings, claim),
            confidence=settings.confidence,
            is_timed=self.audit.is_timed,
        )

    def audited(self) -> Findings:
        """Runs the audit's own trials: all at once, or until a violation is proved."""
        attacked: list[Attacked] | None = None
        if self.audit.settings.game.sequential:
            order: list[Trial] = []

            def run(start: int, stop: int) -> StoredOutcomes:
                batch = self._plan.trials(start, stop)
                order.extend(batch)
                self.train(batch, among=self._cap)
                return self.store.outcomes(Role.AUDIT)

            attacked = run_sequential(self.audit, run, lambda: self._hopeless(order))
            gave_up = attacked is None
        else:
            planned = self._shuffled(Role.AUDIT, self.audit.settings)
            order = list(self.train(planned, hopeless=self._hopeless))
            gave_up = len(order) < len(planned)
        if gave_up:
            return self._found(order, gave_up=True)
        replays = self._replays(order)
        if replays:
            self.train(replays, engine=self.engine.renewed(len(replays)))
        return self._found(order, replays=replays, attacked=attacked)

    def _found(
        self,
        order: Sequence[Trial],
        *,
        replays: Sequence[Trial] = (),
        attacked: Sequence[Attacked] | None = None,
        gave_up: bool = False,
    ) -> Findings:
        whole = self.store.outcome
        return find(
            self.audit,
            self.store.outcomes(Role.AUDIT),
            order,
            replays=[
                Replay(whole(trial._replace(role=Role.AUDIT)), whole(trial)) for trial in replays
            ],
            attacked=attacked,
            gave_up=gave_up,
        )

    def record(
        self,
        controls: Mapping[Role, ControlOutcome],
        found: Findings | None,
        *,
        reuse: Check,
        seconds: float,
    ) -> AuditRecord:
        """Concludes the audit from its findings."""
        target = target_of(self.audit, kept_comparison(self.store))
        return conclude_two_worlds(
            self.audit, controls, found, target=target, reuse=reuse, seconds=seconds
        )

    @property
    def _cap(self) -> list[Trial]:
        """Every trial that the audit may run."""
        return self._plan.trials()

    @property
    def _plan(self) -> TrialPlan:
        return plan_trials(self.audit, Role.AUDIT, self.audit.settings)

    def _hopeless(self, trials: Sequence[Trial]) -> bool:
        """Whether the audit cannot prove anything any more, given these first trials."""
        audit, stored = self.audit, self.store.outcomes(Role.AUDIT)
        outcomes = [stored[trial] for trial in trials]
        if all_failed_alike(outcomes):
            return True
        scored = set(self._plan.scored(trials))
        claim = audit.effective_claim(outcomes)
        return cannot_prove(outcomes, audit.settings, claim, scored=scored)

    def _replays(self, order: Sequence[Trial]) -> list[Trial]:
        """The trials to run twice: one in each world if models are trained together, else one.

        They come from the second half of the order: nothing precedes a worker's first trial that
        could affect it. Number 0 of a world is never chosen: `tried` ran this pair first, in a
        separate batch if models are trained together.
        """
        stored = self.store.outcomes(Role.AUDIT)
        later = [stored[trial] for trial in order[len(order) // 2 :] if trial.number > 0]
        found = [first_finished(later, world) for world in World]
        replays = [trial._replace(role=Role.REPLAY) for trial in found if trial is not None]
        return replays if self.audit.trains_together else replays[:1]

    def _shuffled(self, role: Role, settings: AuditSettings[TwoWorlds]) -> list[Trial]:
        """All trials of a role, both worlds interleaved at random."""
        trials = plan_trials(self.audit, role, settings).trials()
        order = self.audit.stream(f"{role}/order").rng().permutation(len(trials))
        return [trials[position] for position in order]


def _build(generator: object, table: Table, settings: AuditSettings[TwoWorlds]) -> AuditSpec:
    """The audit, or the search for its target or its worst case that comes first."""
    if settings.game.worst_case is WorstCase.SEARCH:
        return build_worst_case_search(generator, table, settings)
    build = build_target_search if settings.game.target == VULNERABLE else build_two_worlds
    return build(generator, table, settings)


def _trainings(settings: AuditSettings[TwoWorlds], together: bool) -> TrainingCount:
    """If models are trained together, one of each world is repeated; not if they are timed."""
    game = settings.game
    control = first_control_settings(settings).game.shadow_models
    return TrainingCount(
        models=game.shadow_models,
        repeats=len(World) if together and not game.is_timed else 1,
        controls=len(CONTROLS) * control,
        searches=_searches(game),
        at_most=game.sequential,
    )


def _searches(game: TwoWorlds) -> int:
    """Models of the search before the audit, for a worst case more than few shadow models."""
    if not game.searches:
        return 0
    if game.worst_case is not WorstCase.SEARCH:
        return game.shadow_models
    return 2 * per_world(MOST_CANDIDATES, rounds(MOST_CANDIDATES, game.shadow_models))


def _visible(named: NamedGenerator, settings: AuditSettings[TwoWorlds]) -> AuditSettings[TwoWorlds]:
    game = settings.game
    attacks, _ = attacks_with_access(named, game.attacks, game.access)
    return with_visible(settings, attacks)


def after_a_replay(settings: AuditSettings[TwoWorlds], record: Path) -> AuditSettings[TwoWorlds]:
    """The same audit with the attack of a replay: alone, or with those chosen.

    Args:
        settings: Every choice of the audit.
        record: The file that `dpaudit replay --json` wrote.

    Returns:
        The settings; their target or worst case is that of the replay unless another is named.

    Raises:
        SettingsError: If the file is no record of a replay.
    """
    game = settings.game
    asked = () if game.attacks == ATTACKS_AT[game.access] else game.attacks
    given: dict[str, Any] = {"attacks": (*asked, f"after-replay,record={record}")}
    if game.worst_case in (None, WorstCase.SEARCH) and game.neighbours_file is None:
        choice = _target_of_replay(record)
        name = choice.removeprefix("worst-case:")
        if name != choice:
            given["worst_case"] = name
        elif game.worst_case is None and game.target == EXPOSING:
            given["target"] = choice
    return settings.with_game(**given)


def _target_of_replay(record: Path) -> str:
    """The target of a replay."""
    try:
        target: str = json.loads(record.read_text(encoding="utf-8"))["target"]
    except OSError as error:
        raise SettingsError(f"{record} cannot be read: {io_reason(error)}") from None
    except (ValueError, KeyError, TypeError):
        raise SettingsError(
            f"{record} is no record of a replay: write one with `dpaudit replay --json`"
        ) from None
    return target


KIND = GameKind(
    build=_build,
    session=TwoWorldSession,
    trainings=_trainings,
    table=audited_table,
    after_replay=after_a_replay,
    visible=_visible,
)
