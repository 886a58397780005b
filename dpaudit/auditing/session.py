"""One audit in two worlds being run: controls, trials, attacks, checks, verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpaudit.auditing.attacking.attribution import attribute
from dpaudit.auditing.attacking.run import Attacked, Outcomes, attack_all, best
from dpaudit.auditing.checks import (
    Replay,
    check_agreement,
    check_failures,
    check_order,
    check_randomness,
    check_repeats,
    check_replay,
    failure_reasons,
    first_finished,
)
from dpaudit.auditing.claims import effective_claim
from dpaudit.auditing.conclusion import Findings, conclude
from dpaudit.auditing.controls import CONTROLS, control_generator, control_settings, judge
from dpaudit.auditing.plan import power
from dpaudit.auditing.sequential import run_sequential
from dpaudit.auditing.settings import AuditSettings
from dpaudit.auditing.two_worlds import TwoWorldSpec
from dpaudit.game.engine import run_trials
from dpaudit.game.progress import OnProgress
from dpaudit.game.store import RunFolder
from dpaudit.game.trial import Payload, Role, Trial, TrialStatus
from dpaudit.plugins.foreign import pickled
from dpaudit.plugins.protocols import World, is_seedable, trains_many
from dpaudit.results.record import AuditRecord, ControlOutcome, Leak
from dpaudit.results.verdict import Check

MOST_LEAKS = 10


@dataclass(frozen=True)
class Session:
    """One audit in two worlds being run in one run folder.

    Attributes:
        audit: The audit.
        store: Its run folder, locked.
        jobs: Worker processes.
        on_progress: Called after every trial.
        reuse: Whether its trials were judged before.
    """

    audit: TwoWorldSpec
    store: RunFolder
    jobs: int
    on_progress: OnProgress
    reuse: Check

    def run(self) -> AuditRecord:
        """Runs what the folder does not hold yet and concludes.

        Raises:
            AttackError: If an attack fails on a valid synthetic table.
            InterruptedRunError: On Ctrl-C.
        """
        payload = payload_of(self.audit)
        settings = control_settings(self.audit.settings)
        controls = {}
        for control in CONTROLS:
            self._run(payload, self._planned(control.role, range(settings.per_world)))
            controls[control.role] = self._judge(control.role, settings)
        findings = None
        if all(outcome.passed for outcome in controls.values()):
            findings = self._audit(payload)
        seconds = sum(self.store.tally(role).seconds for role in Role)
        return conclude(self.audit, controls, findings, seconds=seconds)

    def _audit(self, payload: Payload) -> Findings:
        """Runs the audit's own trials: all at once, or until a violation is proved."""
        settings = self.audit.settings
        attacked: list[Attacked] | None = None
        if settings.sequential:
            order: list[Trial] = []
            cap = self._planned(Role.AUDIT, range(settings.per_world))

            def run_pairs(numbers: Sequence[int]) -> Outcomes:
                batch = self._planned(Role.AUDIT, numbers)
                order.extend(batch)
                self._run(payload, batch, among=cap)
                return self.store.outcomes(Role.AUDIT)

            attacked = run_sequential(self.audit, run_pairs)
        else:
            order = self._planned(Role.AUDIT, range(settings.per_world))
            self._run(payload, order)
        replays = self._replays()
        if replays:
            self._run(payload, replays)
        return self._findings(order, replays, attacked)

    def _replays(self) -> list[Trial]:
        """What to run twice: of models trained together one in each world, else one."""
        stored = self.store.outcomes(Role.AUDIT)
        found = [first_finished(stored, world) for world in World]
        replays = [trial._replace(role=Role.REPLAY) for trial in found if trial is not None]
        return replays if self._together else replays[:1]

    @property
    def _together(self) -> bool:
        return trains_many(self.audit.generator.generator)

    def _run(
        self, payload: Payload, trials: Sequence[Trial], *, among: Sequence[Trial] | None = None
    ) -> None:
        run_trials(
            trials,
            payload,
            self.store,
            jobs=self.jobs,
            generator=self.audit.generator.generator if trials[0].role is Role.AUDIT else None,
            on_progress=self.on_progress,
            among=among,
        )

    def _planned(self, role: Role, numbers: Sequence[int]) -> list[Trial]:
        """The trials of both worlds with these numbers, interleaved at random."""
        trials = [Trial(role, world, number) for world in World for number in numbers]
        order = self.audit.stream(f"{role}/order/{numbers[0]}").rng().permutation(len(trials))
        return [trials[position] for position in order]

    def _judge(self, role: Role, settings: AuditSettings) -> ControlOutcome:
        attacked = attack_all(
            self.audit, self.store.outcomes(role), role, settings, self.audit.claim
        )
        evaluation = best(attacked).evaluation if attacked else None
        return judge(role, evaluation, power(settings, self.audit.claim))

    def _findings(
        self, order: Sequence[Trial], replays: Sequence[Trial], attacked: Sequence[Attacked] | None
    ) -> Findings:
        """Attacks, checks and explanation of the audit's own trials."""
        settings, stored = self.audit.settings, self.store.outcomes(Role.AUDIT)
        outcomes = [stored[trial] for trial in order]
        claim = effective_claim(self.audit, outcomes)
        failed = {
            world: sum(
                o.status is not TrialStatus.FINISHED for o in outcomes if o.trial.world is world
            )
            for world in World
        }
        pairs = len(order) // 2
        if attacked is None:
            attacked = attack_all(self.audit, stored, Role.AUDIT, settings, claim)
        deciding = best(attacked) if attacked else None
        whole = left = power(settings, claim)
        if deciding is not None and not deciding.evaluation.stopped_early:
            left = power(
                settings,
                claim,
                false_negatives=deciding.failed_in,
                false_positives=deciding.failed_out,
            )
        checks = [
            check_failures(
                failed,
                pairs,
                highest=whole.max_provable_epsilon,
                left=left.max_provable_epsilon,
            ),
            check_randomness(outcomes),
            check_repeats(outcomes, self.audit.stream("repeats").rng()),
            self._replay_check(replays),
        ]
        if deciding is None:
            detail = "too few trials finished to fit and score an attack"
            checks.insert(0, Check("enough trials", False, detail))
        elif not deciding.evaluation.stopped_early:  # else later attacks had learnt more
            checks.append(_order_check(order, deciding))
            checks.append(
                check_agreement(
                    deciding.evaluation,
                    deciding.scored.member,
                    left.max_provable_epsilon,
                    delta=claim.delta,
                    confidence=settings.attack_confidence,
                )
            )
        return Findings(
            attacked=attacked,
            best=deciding,
            pairs=pairs,
            power=left,
            leaks=self._leaks(deciding) if deciding else (),
            checks=(*checks, self.reuse),
            failed=failed,
            failure_reasons=failure_reasons(outcomes),
            claim=claim,
        )

    def _leaks(self, deciding: Attacked) -> tuple[Leak, ...]:
        if deciding.evaluation.proved == 0:
            return ()
        return attribute(
            deciding.evaluation,
            deciding.scored,
            deciding.attack.feature_names(self.audit.game.view),
            most=MOST_LEAKS,
            rng=self.audit.stream("explain").rng(),
        )

    def _replay_check(self, replays: Sequence[Trial]) -> Check:
        stored = self.store.outcomes(Role.AUDIT) | self.store.outcomes(Role.REPLAY)
        return check_replay(
            [Replay(stored[trial._replace(role=Role.AUDIT)], stored[trial]) for trial in replays],
            seedable=is_seedable(self.audit.generator.generator),
            together=self._together,
        )


def _order_check(order: Sequence[Trial], deciding: Attacked) -> Check:
    """Whether scores drift with the places of their trials in the planned order."""
    place = {trial: position for position, trial in enumerate(order)}
    places = np.array([place[trial] for trial in deciding.trials], dtype=np.float64)
    return check_order(
        deciding.evaluation.scores, deciding.scored.member, places, deciding.attack.name
    )


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
