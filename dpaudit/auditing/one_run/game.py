"""The one-run audit: one training on a table that includes each canary by a fair coin.

Two controls, one training, guesses of all coins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import pandas as pd

from dpaudit.auditing.checks import CONFIDENCE, CONTROLS, control_claim, judge, unfinished_control
from dpaudit.auditing.game import BestAttack, Findings, Game, Run, TrainingCount
from dpaudit.auditing.one_run.attack import ATTACKS, Guessed, guess
from dpaudit.auditing.one_run.marginals import interference
from dpaudit.auditing.one_run.plan import power
from dpaudit.auditing.one_run.settings import OneRun
from dpaudit.auditing.one_run.spec import OneRunSpec, build_one_run
from dpaudit.auditing.settings import AuditSettings
from dpaudit.bounds import bonferroni, guarantee_of, one_run, one_run_gaussian
from dpaudit.bounds.table import ValidBound
from dpaudit.game.trial import Outcome, Payload, Role, Trial, TrialStatus
from dpaudit.model.claim import PrivacyClaim
from dpaudit.plugins.foreign import pickled
from dpaudit.plugins.protocols import World
from dpaudit.plugins.registry import GENERATORS, build
from dpaudit.results.outcomes import CanaryOutcome, OneRunOutcome
from dpaudit.results.record import ControlOutcome, TargetOfAudit
from dpaudit.results.verdict import Check, SampleUnit
from dpaudit.seeds import rng_of


class ReleasesItsRows:
    """The positive control: its synthetic table is its training table, shuffled and repeated."""

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> ReleasesItsRows:
        """Keeps the table."""
        del seed
        self._data = data
        return self

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        """Draws `n` training rows, each once before any is drawn twice."""
        order = rng_of(seed, "sample").permutation(len(self._data))
        return self._data.iloc[[order[i % len(order)] for i in range(n)]].reset_index(drop=True)


class OneRunGame(Game[OneRunSpec]):
    """One training with many canaries: all workers but one are idle."""

    FIRST_TRIAL: ClassVar[Trial] = Trial(Role.ONE_RUN, World.IN, 0)

    specify = staticmethod(build_one_run)

    def trainings(self, settings: AuditSettings[OneRun], together: bool) -> TrainingCount:
        """Counts one model."""
        del settings, together
        return TrainingCount(models=1, repeats=0, controls=len(CONTROLS), alone=True)

    def limit(self, settings: AuditSettings[OneRun], claim: PrivacyClaim) -> float:
        """The bound if every guess is right."""
        all_right = settings.game.canaries
        return one_run(
            *(all_right, all_right, all_right),
            delta=claim.delta,
            confidence=settings.attack_confidence,
        )

    def payload(self, spec: OneRunSpec, role: Role) -> Payload:
        """What a worker needs to run the training, or one of the controls."""
        generator: object = spec.generator.generator
        if role is Role.NULL_CONTROL:
            generator = build("null", GENERATORS, given={}, offered={"schema": spec.table.schema})
        elif role is Role.POSITIVE_CONTROL:
            generator = ReleasesItsRows()
        return Payload(
            game=spec.game,
            generators={role: pickled(generator, name=spec.generator.name)},
            attacks=[attack.scorer for attack in ATTACKS],
            root=spec.settings.seed,
            audit=spec.id,
        )

    def own_trials(self, spec: OneRunSpec) -> Sequence[Trial]:
        """The one training."""
        del spec
        return [self.FIRST_TRIAL]

    def run(self, run: Run[OneRunSpec]) -> Findings:
        """Runs the controls and, if both pass, the training, whose coins it guesses."""
        controls = {
            role: _judge_control(role, self._train(run, role), run.spec) for role in CONTROLS
        }
        if not all(control.passed for control in controls.values()):
            return _findings(run.spec, controls, None)
        return _findings(run.spec, controls, self._train(run, Role.ONE_RUN))

    def _train(self, run: Run[OneRunSpec], role: Role) -> Outcome:
        trial = self.FIRST_TRIAL._replace(role=role)
        run.train([trial], self.payload(run.spec, role))
        return run.store.outcome(trial)


def _findings(
    spec: OneRunSpec, controls: Mapping[Role, ControlOutcome], training: Outcome | None
) -> Findings:
    """Guesses the canaries; what was not trained has neither guesses nor bounds."""
    trainings = [] if training is None else [training]
    claim = spec.effective_claim(trainings)
    guarantee, confidence = guarantee_of(claim), spec.settings.attack_confidence
    guessed = _guess(training, spec)
    bounds = [attack.bound(guarantee, confidence=confidence) for attack in guessed]
    best = strongest = gaussian = None
    if bounds:
        proved = max(bounds)
        deciding = guessed[bounds.index(proved)]  # without any evidence, the first attack
        best = BestAttack(
            name=deciding.attack,
            proved=proved,
            bounds={ValidBound.ONE_RUN_IN_TURN: proved},
            auc=deciding.auc,
            scores=deciding.scores,
            member=deciding.coins,
        )
        # The bound holds for every number of most confident guesses; this is the one that gives it.
        strongest = guarantee.strongest(deciding.right, proved, confidence=confidence)
        if guarantee.delta:
            gaussian = one_run_gaussian(
                *(strongest.correct, strongest.guesses, spec.canaries),
                delta=guarantee.delta,
                confidence=spec.settings.confidence,
            )
    outcome = OneRunOutcome(
        canaries=spec.canaries,
        included=int(spec.coins.sum()),
        guesses=strongest.guesses if strongest else spec.canaries,
        correct=strongest.correct if strongest else None,
        gaussian_estimate=gaussian,
        interference=interference(spec.game.view),
        attacks=tuple(
            CanaryOutcome(
                name=attack.attack,
                auc=attack.auc,
                bound=bound,
                right=tuple(attack.right.tolist()),
            )
            for attack, bound in zip(guessed, bounds, strict=True)
        ),
        unit=spec.unit,
    )
    return Findings(
        outcome=outcome,
        claim=claim,
        target=TargetOfAudit(choice="canaries", row=None),
        controls=controls,
        trials=trainings,
        power=power(spec.canaries, claim, confidence) if best else None,
        best=best,
        checks=tuple(map(_training_check, trainings)),
        unit=SampleUnit.CANARIES,
    )


def _training_check(training: Outcome) -> Check:
    """Whether the one training finished."""
    finished = training.status is TrialStatus.FINISHED
    detail = "it finished" if finished else f"the one training failed: {training.error}"
    return Check("the one training", finished, detail)


def _guess(training: Outcome | None, spec: OneRunSpec) -> tuple[Guessed, ...]:
    """The guesses of every attack; none without a synthetic table."""
    if training is None or training.features is None:
        return ()
    return guess(training.features, spec.coins)


def _judge_control(role: Role, training: Outcome, spec: OneRunSpec) -> ControlOutcome:
    """Judges a control strictly, so that a sound one hardly ever fails."""
    claim = control_claim(spec.claim)
    confidence = bonferroni(CONFIDENCE, spec.settings.game.hypotheses)
    highest = power(spec.canaries, claim, confidence).max_provable
    guessed = _guess(training, spec)
    if not guessed:
        return unfinished_control(role, f"its training failed ({training.error})", highest=highest)
    guarantee = guarantee_of(claim)
    bounds = [attack.bound(guarantee, confidence=confidence) for attack in guessed]
    bound = max(bounds)
    best = guessed[bounds.index(bound)]
    guesses, correct = guarantee.strongest(best.right, bound, confidence=confidence)
    seen = f"{correct} of the {guesses} most confident guesses of {best.attack} were right"
    return judge(
        role,
        bound,
        auc=best.auc,
        highest=highest,
        hidden=f"a generator that ignores its data revealed no coin: {seen}",
        detected=f"a generator that ignores its data revealed coins ({seen}): the game leaks",
        caught=f"a generator that releases its training rows was caught: {seen}",
        missed="a generator that releases its training rows was not caught ({bound}): "
        f"{seen}; ask for more `rows`",
    )
