"""One audit being played: controls, trials, attacks, findings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import cloudpickle
import numpy as np

from dpaudit.checks import (
    check_failures,
    check_order,
    check_randomness,
    check_replay,
    failure_reasons,
    first_finished,
)
from dpaudit.controls import CONTROLS, ControlResult, control_generator, control_size, judge
from dpaudit.document import Attacked, Findings, build_document
from dpaudit.game.engine import OnProgress, run_trials
from dpaudit.game.store import RunFolder
from dpaudit.game.trial import Outcome, Payload, Role, Status, Trial
from dpaudit.membership import Trials, arrange, evaluate, explain, fitting_mask
from dpaudit.plan import Power, Size, power
from dpaudit.protocols import BoolArray, FloatArray, World
from dpaudit.specification import Audit
from dpaudit.verdict import Check

MOST_LEAKS = 10


class _Played(NamedTuple):
    """One attack's result, and the trials as it saw them."""

    attacked: Attacked
    trials: Trials


@dataclass(frozen=True)
class Session:
    """One audit being played in one run folder.

    Attributes:
        audit: The audit.
        store: Its run folder, locked.
        jobs: Worker processes.
        on_progress: Told after every trial.
    """

    audit: Audit
    store: RunFolder
    jobs: int
    on_progress: OnProgress

    def run(self) -> dict[str, Any]:
        """Plays what the folder does not hold yet and builds the result document.

        Raises:
            AttackError: If an attack fails on a valid synthetic table.
            InterruptedRunError: On Ctrl-C.
        """
        payload = self._payload()
        size = control_size(len(self.audit.attacks))
        controls = {}
        for control in CONTROLS:
            self._play(payload, self._planned(control.role, size))
            controls[control.role] = self._judge(control.role, size)
        findings = None
        if all(result.check.passed for result in controls.values()):
            order = self._planned(Role.AUDIT, self.audit.size)
            self._play(payload, order)
            replayed = first_finished(self.store.outcomes(Role.AUDIT))
            if replayed is not None:
                self._play(payload, [replayed._replace(role=Role.REPLAY)])
            findings = self._findings(order, replayed)
        seconds = sum(self.store.tally(role).seconds for role in Role)
        return build_document(self.audit, controls, findings, seconds=seconds)

    def _payload(self) -> Payload:
        audited: bytes = cloudpickle.dumps(self.audit.generator.generator)
        generators = {Role.AUDIT: audited, Role.REPLAY: audited}
        generators |= {c.role: control_generator(c, self.audit) for c in CONTROLS}
        return Payload(
            game=self.audit.game,
            generators=generators,
            attacks=[attack for _, attack in self.audit.attacks],
            root=self.audit.seed,
            audit=self.audit.id,
        )

    def _play(self, payload: Payload, trials: Sequence[Trial]) -> None:
        run_trials(trials, payload, self.store, jobs=self.jobs, on_progress=self.on_progress)

    def _planned(self, role: Role, size: Size) -> list[Trial]:
        """The trials of both worlds, interleaved at random."""
        trials = [Trial(role, world, n) for world in World for n in range(size.per_world)]
        order = self.audit.stream(f"{role}/order").rng().permutation(len(trials))
        return [trials[position] for position in order]

    def _masks(self, role: Role, size: Size) -> list[BoolArray]:
        """For each world, which of its trials form the fitting part."""
        return [
            fitting_mask(size.per_world, size.fitted, self.audit.stream(f"{role}/split/{w}").rng())
            for w in World
        ]

    def _attack(self, role: Role, size: Size) -> list[_Played]:
        """Plays every attack on a role's trials; empty if too few finished."""
        outcomes = self.store.outcomes(role)
        masks = self._masks(role, size)
        played = []
        start = 0
        for name, attack in self.audit.attacks:
            stop = start + len(attack.feature_names(self.audit.game.view))
            worlds = [
                [_features(outcomes[Trial(role, w, n)], start, stop) for n in range(size.per_world)]
                for w in World
            ]
            start = stop
            trials = arrange(worlds, masks)
            if trials is None:
                return []
            evaluation = evaluate(
                attack,
                trials,
                delta=self.audit.claim.delta,
                confidence=size.attack_confidence,
                rng=self.audit.stream(f"{role}/attack/{name}").rng(),
            )
            played.append(_Played(Attacked(name, attack, evaluation), trials))
        return played

    def _judge(self, role: Role, size: Size) -> ControlResult:
        played = self._attack(role, size)
        best = _best(played).attacked.evaluation if played else None
        return judge(role, best, power(size, self.audit.claim))

    def _findings(self, order: Sequence[Trial], replayed: Trial | None) -> Findings:
        """Attacks, checks and explanation of the audit's own trials."""
        size, claim = self.audit.size, self.audit.claim
        stored = self.store.outcomes(Role.AUDIT)
        outcomes = [stored[trial] for trial in order]
        failed = {
            world: sum(o.status is not Status.FINISHED for o in outcomes if o.trial.world is world)
            for world in World
        }
        played = self._attack(Role.AUDIT, size)
        whole = power(size, claim)
        left = whole
        if played:
            trials = played[0].trials
            left = power(
                size, claim, false_negatives=trials.failed_in, false_positives=trials.failed_out
            )
        checks = [
            check_failures(failed, size.per_world, _ceilings(whole, left)),
            check_randomness(outcomes),
            self._replay_check(replayed),
        ]
        findings = Findings(
            attacked=[one.attacked for one in played],
            best=None,
            member=np.array([], dtype=np.bool_),
            power=left,
            leaks=[],
            checks=checks,
            failed=failed,
            failure_reasons=failure_reasons(outcomes),
            claimed_epsilon=max((o.claimed_epsilon or 0.0 for o in outcomes), default=0.0),
        )
        if not played:
            unplayable = Check(
                "enough trials", False, "too few trials finished to fit and score an attack"
            )
            return findings._replace(checks=[unplayable, *checks])
        best = _best(played)
        name, attack, evaluation = best.attacked
        checks.append(
            check_order(evaluation.scores, best.trials.scored.member, self._places(order), name)
        )
        if evaluation.exact > 0:
            leaks = explain(
                evaluation,
                best.trials.scored,
                attack.feature_names(self.audit.game.view),
                most=MOST_LEAKS,
                rng=self.audit.stream("explain").rng(),
            )
            findings = findings._replace(leaks=leaks)
        return findings._replace(best=best.attacked, member=best.trials.scored.member)

    def _places(self, order: Sequence[Trial]) -> FloatArray:
        """Place in the planned order of every scored trial that finished, world "in" first."""
        place = {trial: float(position) for position, trial in enumerate(order)}
        stored = self.store.outcomes(Role.AUDIT)
        scored = [
            trial
            for world, mask in zip(World, self._masks(Role.AUDIT, self.audit.size), strict=True)
            for trial in (Trial(Role.AUDIT, world, int(n)) for n in np.flatnonzero(~mask))
            if stored[trial].status is Status.FINISHED
        ]
        return np.array([place[trial] for trial in scored], dtype=np.float64)

    def _replay_check(self, replayed: Trial | None) -> Check:
        first = again = None
        if replayed is not None:
            again_trial = replayed._replace(role=Role.REPLAY)
            first = self.store.outcomes(Role.AUDIT)[replayed]
            again = self.store.outcomes(Role.REPLAY)[again_trial]
        seedable = getattr(self.audit.generator.generator, "seedable", True)
        return check_replay(first, again, seedable=seedable)


def _features(outcome: Outcome, start: int, stop: int) -> FloatArray | None:
    return None if outcome.features is None else outcome.features[start:stop]


def _best(played: Sequence[_Played]) -> _Played:
    return max(played, key=lambda one: (one.attacked.evaluation.exact, one.attacked.evaluation.auc))


def _ceilings(whole: Power, left: Power) -> tuple[float, float]:
    return whole.max_provable_epsilon, left.max_provable_epsilon
