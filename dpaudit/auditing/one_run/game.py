"""The one-run audit: one training on a table that includes each canary by a fair coin.

Two controls, one training, guesses of all coins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from dpaudit.auditing.checks import (
    CONFIDENCE,
    CONTROLS,
    control_claim,
    judge_guesses,
    unfinished_control,
)
from dpaudit.auditing.game import BestAttack, Findings, Game, Run, TrainingCount
from dpaudit.auditing.one_run.attack import ATTACKS, Guessed, guess, interference
from dpaudit.auditing.one_run.plan import power
from dpaudit.auditing.settings import AuditSettings, OneRun
from dpaudit.auditing.spec import AuditSpec, build_generator, view_of
from dpaudit.bounds import bonferroni, guarantee_of, one_run, one_run_gaussian
from dpaudit.bounds.table import ValidBound
from dpaudit.game.trial import Outcome, Payload, Role, Trial, TrialStatus
from dpaudit.game.worlds import CanaryGame, choose_canaries, flip_coins
from dpaudit.model.claim import PrivacyClaim, require_add_remove
from dpaudit.model.tables import Table
from dpaudit.plugins.foreign import pickled
from dpaudit.plugins.named import check_table, claim_if_any
from dpaudit.plugins.protocols import BoolArray, IntArray, World
from dpaudit.plugins.registry import GENERATORS, build
from dpaudit.results.outcomes import CanaryOutcome, OneRunOutcome
from dpaudit.results.record import ControlOutcome, TargetOfAudit
from dpaudit.results.verdict import Check, SampleUnit
from dpaudit.seeds import rng_of


@dataclass(frozen=True, kw_only=True)
class OneRunSpec(AuditSpec):
    """A complete one-run audit.

    Attributes:
        canary_rows: Positions [r] of the rows of all m canaries in the table handed in, ascending.

    Raises:
        SettingsError: If there are fewer than 20 canaries or more than half of the rows or units.
        ClaimError: If the claim is not for add-remove neighbours.
    """

    TRAINED: ClassVar[tuple[str, ...]] = ("neighbours", "canaries")

    settings: AuditSettings[OneRun]
    canary_rows: IntArray

    def __post_init__(self) -> None:
        self.settings.game.check_population(self.table.population)
        require_add_remove(self.claim.neighbours, method="`one_run`")

    @property
    def canaries(self) -> int:
        """Number of canaries."""
        return self.settings.game.canaries

    @property
    def own_specification(self) -> dict[str, Any]:
        """The mode and its choices; the table determines which records are canaries."""
        return {"one_run": True, **self.settings.game.plain()}

    @property
    def own_options(self) -> list[str]:
        """The words of the command that repeat the audit's own choices."""
        return ["--one-run", *self.settings.game.words()]

    @cached_property
    def coins(self) -> BoolArray:
        """Which canaries [m] are included."""
        return flip_coins(self.canaries, self.stream("coins").rng())

    @cached_property
    def game(self) -> CanaryGame:
        """The one training."""
        data = self.table.data
        view = view_of(
            self.table, self.canary_rows, rows=self.rows, neighbours=self.claim.neighbours
        )
        included = self.coins[self.table.schema.owners(view.target)]
        left_out = np.isin(np.arange(len(data)), self.canary_rows[~included])
        return CanaryGame(view=view, data=data[~left_out].reset_index(drop=True))


def build_one_run(generator: object, table: Table, settings: AuditSettings[OneRun]) -> OneRunSpec:
    """Validates everything that a one-run audit needs.

    Args:
        generator: As for `dpaudit.audit`.
        table: The table handed in.
        settings: Every choice of the audit.

    Returns:
        The audit.

    Raises:
        InputError: If anything is unusable; says what and how to fix it.
    """
    data, schema = table.data, table.schema
    settings.game.check_population(table.population)
    named = build_generator(generator, settings, schema=schema)
    spec = OneRunSpec(
        given=generator,
        generator=named,
        table=table,
        settings=settings,
        claim=claim_if_any(named, settings.claim, table),
        canary_rows=choose_canaries(data, schema, settings.game.canaries),
    )
    _ = spec.game  # validates
    check_table(named.generator, data)
    return spec


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
                name=attack.attack, auc=attack.auc, bound=bound, right=tuple(attack.right.tolist())
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
    return judge_guesses(
        role,
        bound,
        auc=best.auc,
        highest=highest,
        seen=seen,
        leaks="releases its training rows",
        remedy="ask for more `rows`",
    )
