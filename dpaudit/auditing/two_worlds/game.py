"""The audit in two worlds: controls, trials, attacks, checks.

Every trial trains a model with the target or without it (or with another record in its place). This
module runs them; `attacking` attacks them, `findings` says what that shows.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from dpaudit.auditing.checks import CONTROLS, Replay, control_claim
from dpaudit.auditing.game import Findings, Game, Run, TrainingCount
from dpaudit.auditing.settings import ATTACKS_AT, AuditSettings, TwoWorlds
from dpaudit.auditing.spec import AuditSpec, attacks_with_access
from dpaudit.auditing.two_worlds.attacking import Attacked, attack_all, best
from dpaudit.auditing.two_worlds.controls import (
    ControlGame,
    control_generator,
    control_settings,
    first_control_settings,
    judge_control,
)
from dpaudit.auditing.two_worlds.findings import (
    all_failed_alike,
    cannot_prove,
    find,
    first_finished,
    stopped_by_control,
    target_of,
)
from dpaudit.auditing.two_worlds.plan import highest_provable
from dpaudit.auditing.two_worlds.sequential import run_sequential
from dpaudit.auditing.two_worlds.spec import (
    TrialPlan,
    TwoWorldSpec,
    audited_table,
    build_two_worlds,
    plan_trials,
    with_visible,
)
from dpaudit.auditing.two_worlds.target_search import build_target_search, compare_tables
from dpaudit.errors import SettingsError
from dpaudit.files import io_reason
from dpaudit.game.store import StoredOutcomes
from dpaudit.game.trial import Payload, Role, Trial, TrialEnd
from dpaudit.model.choices import EXPOSING, VULNERABLE
from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.tables import Table
from dpaudit.plugins.foreign import pickled
from dpaudit.plugins.named import NamedGenerator
from dpaudit.plugins.protocols import World
from dpaudit.results.record import ControlOutcome
from dpaudit.results.sentences import same_tables


class TwoWorldsGame(Game[TwoWorldSpec]):
    """Shadow models with and without one target."""

    FIRST_TRIAL: ClassVar[Trial] = Trial(Role.AUDIT, World.IN, 0)

    table = staticmethod(audited_table)

    def specify(
        self, generator: object, table: Table, settings: AuditSettings[TwoWorlds]
    ) -> AuditSpec:
        """Builds the audit, or the search for its target that comes first."""
        if settings.game.target == VULNERABLE:
            return build_target_search(generator, table, settings)
        return build_two_worlds(generator, table, settings)

    def trainings(self, settings: AuditSettings[TwoWorlds], together: bool) -> TrainingCount:
        """Counts shadow models, repeats, controls and the models of a search."""
        game = settings.game
        control = first_control_settings(settings).game.shadow_models
        return TrainingCount(
            models=game.shadow_models,
            # One of each world if models are trained together; models that are timed never are.
            repeats=len(World) if together and not game.is_timed else 1,
            controls=len(CONTROLS) * control,
            searches=game.shadow_models if game.target == VULNERABLE else 0,
            at_most=game.sequential,
        )

    def limit(self, settings: AuditSettings[TwoWorlds], claim: PrivacyClaim) -> float:
        """The larger of the limits of both rules."""
        return highest_provable(settings, claim)

    def visible(
        self, named: NamedGenerator, settings: AuditSettings[TwoWorlds]
    ) -> AuditSettings[TwoWorlds]:
        """The settings without default attacks that see nothing of a generator."""
        game = settings.game
        attacks, _ = attacks_with_access(named, game.attacks, game.access)
        return with_visible(settings, attacks)

    def after_replay(
        self, settings: AuditSettings[TwoWorlds], record: Path
    ) -> AuditSettings[TwoWorlds]:
        """The same audit with the attack of a replay: alone, or with those chosen.

        Its target or worst case is that of the replay unless another is named.
        """
        game = settings.game
        asked = () if game.attacks == ATTACKS_AT[game.access] else game.attacks
        given: dict[str, Any] = {"attacks": (*asked, f"after-replay,record={record}")}
        if game.worst_case is None and game.neighbours_file is None:
            choice = _target_of_replay(record)
            name = choice.removeprefix("worst-case:")
            if name != choice:
                given["worst_case"] = name
            elif game.target == EXPOSING:
                given["target"] = choice
        return settings.with_game(**given)

    def payload(self, spec: TwoWorldSpec, role: Role) -> Payload:
        """What workers need to run any trial, the same for all roles."""
        del role
        audited = pickled(spec.generator.generator, name=spec.generator.name)
        generators = {Role.AUDIT: audited, Role.REPLAY: audited}
        generators |= {role: control_generator(role, spec) for role in CONTROLS}
        return Payload(
            game=spec.game,
            generators=generators,
            attacks=[attack for _, attack in spec.every_attack],
            root=spec.settings.seed,
            audit=spec.id,
        )

    def own_trials(self, spec: TwoWorldSpec) -> Sequence[Trial]:
        """Both worlds, interleaved at random; as planned in a sequential audit."""
        if spec.settings.game.sequential:
            return plan_trials(spec, Role.AUDIT, spec.settings).trials()
        return shuffle_trials(spec, Role.AUDIT, spec.settings)

    def fail_alike(self, ends: Sequence[TrialEnd]) -> bool:
        """Whether they fail in ways that do not depend on the world."""
        return all_failed_alike(ends)

    def run(self, run: Run[TwoWorldSpec]) -> Findings:
        """Looks at a few models, then runs controls and trials, and attacks the trials."""
        spec, payload = run.spec, self.payload(run.spec, Role.AUDIT)
        stored = run.store.outcomes(Role.AUDIT)
        target = target_of(spec, compare_tables(spec, payload, run.store, jobs=run.jobs))
        if warning := same_tables(target):
            run.on_warning(warning)
        controls = {role: _run_control(run, payload, role) for role in CONTROLS}
        # Attacks that miss the planted leak of the positive control may see other ones.
        if not controls[Role.NULL_CONTROL].passed:
            return stopped_by_control(spec, target=target, controls=controls)
        order: Sequence[Trial]
        attacked: Sequence[Attacked] | None = None
        if spec.settings.game.sequential:
            order, attacked = _train_until_proved(run, payload)
            gave_up = attacked is None
        else:
            # Only the first ones if nothing can be proved any more.
            order = run.train(
                self.own_trials(spec), payload, hopeless=lambda trials: _is_hopeless(run, trials)
            )
            gave_up = len(order) < spec.settings.game.shadow_models
        replays = [] if gave_up else _replay_some(run, payload, order)
        return find(
            spec,
            stored,
            order,
            target=target,
            controls=controls,
            replays=replays,
            attacked=attacked,
            gave_up=gave_up,
        )


def shuffle_trials(
    spec: TwoWorldSpec, role: Role, settings: AuditSettings[TwoWorlds]
) -> list[Trial]:
    """All trials of a role in the order in which they run, both worlds interleaved at random.

    Args:
        spec: The audit.
        role: The role.
        settings: Settings of the role's trials.
    """
    trials = plan_trials(spec, role, settings).trials()
    order = spec.stream(f"{role}/order").rng().permutation(len(trials))
    return [trials[position] for position in order]


def _plan_of(run: Run[TwoWorldSpec]) -> TrialPlan:
    """The audit's own trials."""
    return plan_trials(run.spec, Role.AUDIT, run.spec.settings)


def _run_control(run: Run[TwoWorldSpec], payload: Payload, role: Role) -> ControlOutcome:
    """Runs a control: a small one if the audit is small, a full one if that does not pass."""
    first = first_control_settings(run.spec.settings)
    outcome = _run_control_of(first, run, payload, role)
    if outcome.passed or first.game.is_full:
        return outcome
    return _run_control_of(control_settings(run.spec.settings), run, payload, role)


def _run_control_of(
    settings: AuditSettings[ControlGame], run: Run[TwoWorldSpec], payload: Payload, role: Role
) -> ControlOutcome:
    """Runs a control of one size and judges it."""
    spec = run.spec
    run.train(shuffle_trials(spec, role, settings), payload)
    claim = control_claim(spec.claim)
    attacked = attack_all(spec, run.store.outcomes(role), role, settings, claim)
    return judge_control(
        role,
        best(attacked).evaluation if attacked else None,
        settings.game,
        attacks=len(spec.attacks),
        highest=highest_provable(settings, claim),
        confidence=settings.confidence,
        is_timed=spec.is_timed,
    )


def _train_until_proved(
    run: Run[TwoWorldSpec], payload: Payload
) -> tuple[list[Trial], list[Attacked] | None]:
    """Runs trials in batches until a violation is proved.

    Returns:
        The trials, and the attacks on them; None if nothing can be proved any more.
    """
    plan, order = _plan_of(run), list[Trial]()

    def train(start: int, stop: int) -> StoredOutcomes:
        batch = plan.trials(start, stop)
        order.extend(batch)
        run.train(batch, payload, among=plan.trials())
        return run.store.outcomes(Role.AUDIT)

    attacked = run_sequential(run.spec, train, lambda: _is_hopeless(run, order))
    return order, attacked


def _is_hopeless(run: Run[TwoWorldSpec], trials: Sequence[Trial]) -> bool:
    """Whether the audit cannot prove anything any more, given these first trials."""
    stored = run.store.outcomes(Role.AUDIT)
    outcomes = [stored[trial] for trial in trials]
    if all_failed_alike(outcomes):
        return True
    scored = set(_plan_of(run).parts[1])
    claim = run.spec.effective_claim(outcomes)
    return cannot_prove(outcomes, run.spec.settings, claim, scored=scored)


def _replay_some(run: Run[TwoWorldSpec], payload: Payload, order: Sequence[Trial]) -> list[Replay]:
    """Runs a trial again in a new worker, or one of each world if models are trained together.

    They come from the second half of the order: nothing precedes a worker's first trial that could
    affect it. Number 0 of a world is never chosen: this pair ran first (`run_first`), in a batch
    of its own if models are trained together.
    """
    stored = run.store.outcomes(Role.AUDIT)
    later = [stored[trial] for trial in order[len(order) // 2 :] if trial.number > 0]
    finished = [first_finished(later, world) for world in World]
    firsts = [trial for trial in finished if trial is not None]
    if not run.spec.trains_together:
        firsts = firsts[:1]
    again = [trial._replace(role=Role.REPLAY) for trial in firsts]
    if again:
        run.train(again, payload, engine=run.engine.renewed(len(again)))
    whole = run.store.outcome
    return [
        Replay(whole(first), whole(second)) for first, second in zip(firsts, again, strict=True)
    ]


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
