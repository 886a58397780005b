"""One audit in two worlds being run: controls, trials, attacks, checks, verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpaudit.auditing.attacking.run import Attacked, attack_all, best, masks
from dpaudit.auditing.checks import Replay, first_finished
from dpaudit.auditing.claims import effective_claim
from dpaudit.auditing.conclusion import conclude
from dpaudit.auditing.controls import (
    CONTROLS,
    ControlSettings,
    control_claim,
    control_generator,
    control_settings,
    first_control_settings,
    judge,
)
from dpaudit.auditing.findings import Findings, find
from dpaudit.auditing.plan import highest_provable
from dpaudit.auditing.prospects import all_failed_alike, cannot_prove
from dpaudit.auditing.sequential import run_sequential
from dpaudit.auditing.settings import AuditSettings
from dpaudit.auditing.trial_plan import FIRST_FITTED, TrialPlan, plan_trials
from dpaudit.auditing.two_worlds import TwoWorldSpec
from dpaudit.game.engine import FIRST_REVIEW, Hopeless, never, run_trials
from dpaudit.game.flight import Engine
from dpaudit.game.outcomes import StoredOutcomes
from dpaudit.game.progress import OnProgress
from dpaudit.game.store import RunFolder
from dpaudit.game.trial import Payload, Role, Trial
from dpaudit.plugins.foreign import pickled
from dpaudit.plugins.protocols import World, trains_many
from dpaudit.results.record import AuditRecord, ControlOutcome
from dpaudit.results.verdict import Check


@dataclass(frozen=True)
class Session:
    """One audit in two worlds being run in one run folder.

    Attributes:
        audit: The audit.
        store: Its run folder, locked.
        engine: What runs trials.
        trial_timeout: Seconds after which a trial has failed; derived if None.
        on_progress: Called after every trial.
        reuse: Whether its trials were judged before.
    """

    audit: TwoWorldSpec
    store: RunFolder
    engine: Engine
    trial_timeout: float | None
    on_progress: OnProgress
    reuse: Check

    def run(self) -> AuditRecord:
        """Runs what the folder does not hold yet and concludes.

        Raises:
            AttackError: If an attack fails on a valid synthetic table.
            InterruptedRunError: On Ctrl-C.
        """
        payload = payload_of(self.audit)
        controls: dict[Role, ControlOutcome] = {}
        findings = self._tried(payload)
        if findings is None:
            controls = {one.role: self._control(payload, one.role) for one in CONTROLS}
            if all(outcome.passed for outcome in controls.values()):
                findings = self._audit(payload)
        seconds = sum(self.store.tally(role).seconds for role in Role)
        return conclude(self.audit, controls, findings, seconds=seconds)

    def _tried(self, payload: Payload) -> Findings | None:
        """Trains a model in each world; if both fail, a few more: the findings if all of them fail.

        They are trials of the audit as any other.
        """
        first = [Trial(Role.AUDIT, world, 0) for world in World]
        self._run(payload, first, among=self._cap)
        stored = self.store.outcomes(Role.AUDIT)
        if any(stored[trial].finished for trial in first):
            return None
        if self.audit.settings.sequential:
            order = self._plan.trials(0, FIRST_FITTED)[:FIRST_REVIEW]
        else:
            order = self._shuffled(Role.AUDIT, self.audit.settings)[:FIRST_REVIEW]
        self._run(payload, order, among=self._cap)
        tried = [*first, *(trial for trial in order if trial not in first)]
        if not all_failed_alike([stored[trial] for trial in tried]):
            return None
        return self._found(tried, gave_up=True)

    def _control(self, payload: Payload, role: Role) -> ControlOutcome:
        """Runs a control: with few trials if the audit has few, in full if those do not pass."""
        first = first_control_settings(self.audit.settings)
        outcome = self._controlled(payload, role, first)
        if outcome.passed or first.is_full:
            return outcome
        return self._controlled(payload, role, control_settings(self.audit.settings))

    def _controlled(
        self, payload: Payload, role: Role, settings: ControlSettings
    ) -> ControlOutcome:
        self._run(payload, self._shuffled(role, settings))
        claim = control_claim(self.audit.claim)
        attacked = attack_all(self.audit, self.store.outcomes(role), role, settings, claim)
        evaluation = best(attacked).evaluation if attacked else None
        return judge(role, evaluation, settings, highest=highest_provable(settings, claim))

    def _audit(self, payload: Payload) -> Findings:
        """Runs the audit's own trials: all at once, or until a violation is proved."""
        attacked: list[Attacked] | None = None
        if self.audit.settings.sequential:
            order: list[Trial] = []

            def run(start: int, stop: int) -> StoredOutcomes:
                batch = self._plan.trials(start, stop)
                order.extend(batch)
                self._run(payload, batch, among=self._cap)
                return self.store.outcomes(Role.AUDIT)

            attacked = run_sequential(self.audit, run, lambda: self._hopeless(order))
            gave_up = attacked is None
        else:
            planned = self._shuffled(Role.AUDIT, self.audit.settings)
            order = list(self._run(payload, planned, hopeless=self._hopeless))
            gave_up = len(order) < len(planned)
        if gave_up:
            return self._found(order, gave_up=True)
        replays = self._replays(order)
        if replays:
            self._run(payload, replays, engine=self.engine.renewed(len(replays)))
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
        found = find(
            self.audit,
            self.store.outcomes(Role.AUDIT),
            order,
            replays=[
                Replay(whole(trial._replace(role=Role.AUDIT)), whole(trial)) for trial in replays
            ],
            attacked=attacked,
            gave_up=gave_up,
        )
        return found._replace(checks=(*found.checks, self.reuse))

    @property
    def _cap(self) -> list[Trial]:
        """Every trial that the audit may run."""
        return self._plan.trials()

    @property
    def _plan(self) -> TrialPlan:
        return plan_trials(self.audit, Role.AUDIT, self.audit.settings)

    def _hopeless(self, trials: Sequence[Trial]) -> bool:
        """Whether nothing can come of the audit any more, now that these first trials are run."""
        audit, stored = self.audit, self.store.outcomes(Role.AUDIT)
        outcomes = [stored[trial] for trial in trials]
        if all_failed_alike(outcomes):
            return True
        parts = masks(audit, Role.AUDIT, audit.settings)
        fits = dict(zip(World, parts, strict=True))
        scored = {trial for trial in trials if not fits[trial.world][trial.number]}
        claim = effective_claim(audit, outcomes)
        return cannot_prove(outcomes, audit.settings, claim, scored=scored)

    def _replays(self, order: Sequence[Trial]) -> list[Trial]:
        """What to run twice: of models trained together one in each world, else one.

        From the second half of the order: nothing came before a worker's first trial that could
        have left something to it. Nor number 0 of a world, whatever its place in the order:
        `_tried` ran this pair first, in a batch of its own if models are trained together.
        """
        stored = self.store.outcomes(Role.AUDIT)
        later = [stored[trial] for trial in order[len(order) // 2 :] if trial.number > 0]
        found = [first_finished(later, world) for world in World]
        replays = [trial._replace(role=Role.REPLAY) for trial in found if trial is not None]
        return replays if self._together else replays[:1]

    @property
    def _together(self) -> bool:
        return trains_many(self.audit.generator.generator)

    def _run(
        self,
        payload: Payload,
        trials: Sequence[Trial],
        *,
        engine: Engine | None = None,
        among: Sequence[Trial] | None = None,
        hopeless: Hopeless = never,
    ) -> Sequence[Trial]:
        return run_trials(
            trials,
            payload,
            self.store,
            engine=engine or self.engine,
            trial_timeout=self.trial_timeout,
            generator=self.audit.generator.generator if trials[0].role is Role.AUDIT else None,
            on_progress=self.on_progress,
            among=among,
            hopeless=hopeless,
        )

    def _shuffled(self, role: Role, settings: AuditSettings) -> list[Trial]:
        """All trials of a role, both worlds interleaved at random."""
        trials = plan_trials(self.audit, role, settings).trials()
        order = self.audit.stream(f"{role}/order").rng().permutation(len(trials))
        return [trials[position] for position in order]


def payload_of(audit: TwoWorldSpec) -> Payload:
    """What workers need to run any trial of an audit."""
    audited = pickled(audit.generator.generator, name=audit.generator.name)
    generators = {Role.AUDIT: audited, Role.REPLAY: audited}
    generators |= {c.role: control_generator(c, audit) for c in CONTROLS}
    return Payload(
        game=audit.game,
        generators=generators,
        attacks=[attack for _, attack in audit.attacks],
        root=audit.settings.seed,
        audit=audit.id,
    )
