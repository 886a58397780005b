"""Runs a one-run audit: two controls, one training, its guesses, its record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from dpaudit.auditing.conclusion import conclude, recorded_bounds
from dpaudit.auditing.controls import (
    CONFIDENCE,
    CONTROLS,
    ControlWords,
    control_claim,
    judge,
    unfinished,
)
from dpaudit.auditing.one_run.attack import ATTACKS, Guessed, guess
from dpaudit.auditing.one_run.marginals import interference
from dpaudit.auditing.one_run.plan import power
from dpaudit.auditing.one_run.settings import OneRun
from dpaudit.auditing.one_run.spec import OneRunSpec, build_one_run
from dpaudit.auditing.session import GameKind, Session, TrainingCount
from dpaudit.auditing.settings import AuditSettings
from dpaudit.bounds import Prefix, guarantee_of, one_run_gaussian
from dpaudit.bounds.table import ValidBound
from dpaudit.game.trial import Outcome, Payload, Role
from dpaudit.model.currencies import Claim
from dpaudit.plugins.foreign import pickled
from dpaudit.plugins.protocols import World
from dpaudit.plugins.registry import GENERATORS, build
from dpaudit.results.one_run import CanaryOutcome, OneRunOutcome
from dpaudit.results.record import AuditRecord, ControlOutcome, FailureReason, TargetOfAudit
from dpaudit.results.verdict import Check, Power, SampleUnit
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


@dataclass(frozen=True)
class OneRunSession(Session[OneRunSpec, Outcome]):
    """A one-run audit in progress: one training at a time, so all workers but one are idle."""

    AUDITED: ClassVar[Role] = Role.ONE_RUN

    def payload(self, role: Role) -> Payload:
        """What a worker needs to run the training, or one of the controls."""
        audit = self.audit
        generator: object = audit.generator.generator
        if role is Role.NULL_CONTROL:
            generator = build("null", GENERATORS, given={}, offered={"schema": audit.table.schema})
        elif role is Role.POSITIVE_CONTROL:
            generator = ReleasesItsRows()
        return Payload(
            game=audit.game,
            generators={role: pickled(generator, name=audit.generator.name)},
            attacks=[attack.scorer for attack in ATTACKS],
            root=audit.settings.seed,
            audit=audit.id,
        )

    def audited(self) -> Outcome:
        """The one training."""
        return self.train_one(Role.ONE_RUN)

    def record(
        self,
        controls: Mapping[Role, ControlOutcome],
        found: Outcome | None,
        *,
        reuse: Check,
        seconds: float,
    ) -> AuditRecord:
        """Guesses the canaries and concludes."""
        audit = self.audit
        claim = audit.effective_claim([found] if found else [])
        return conclude_one_run(
            audit,
            controls,
            found,
            claim=claim,
            guessed=self._guessed(found),
            power=power(audit.canaries, claim, audit.settings.attack_confidence),
            reuse=reuse,
            seconds=seconds,
        )

    def _guessed(self, outcome: Outcome | None) -> tuple[Guessed, ...]:
        if outcome is None or outcome.features is None:
            return ()
        return guess(outcome.features, self.audit.coins)

    def control(self, role: Role) -> ControlOutcome:
        """Runs a control and judges it; strictly, so a sound one hardly ever fails."""
        outcome, claim = self.train_one(role), control_claim(self.audit.claim)
        confidence = self.audit.settings.game.hypotheses.confidence(CONFIDENCE)
        highest = power(self.audit.canaries, claim, confidence).max_provable
        guessed = self._guessed(outcome)
        if not guessed:
            return unfinished(role, f"its training failed ({outcome.error})", highest=highest)
        guarantee = guarantee_of(claim)
        bounds = [of.bound(guarantee, confidence=confidence) for of in guessed]
        bound = max(bounds)
        best = guessed[bounds.index(bound)]
        made, correct = guarantee.strongest(best.right, bound, confidence=confidence)
        seen = f"{correct} of the {made} most confident guesses of {best.attack} were right"
        words = ControlWords(
            hidden=f"a generator that ignores its data revealed no coin: {seen}",
            found=f"a generator that ignores its data revealed coins ({seen}): the game leaks",
            caught=f"a generator that releases its training rows was caught: {seen}",
            missed="a generator that releases its training rows was not caught ({bound}): "
            f"{seen}; ask for more `rows`",
        )
        return judge(role, bound, auc=best.auc, highest=highest, words=words)


def conclude_one_run(
    audit: OneRunSpec,
    controls: Mapping[Role, ControlOutcome],
    outcome: Outcome | None,
    *,
    claim: Claim,
    guessed: Sequence[Guessed],
    power: Power,
    reuse: Check,
    seconds: float,
) -> AuditRecord:
    """Decides the verdict and records it; fields that one training does not have are None or empty.

    Args:
        audit: The audit.
        controls: How its controls ended.
        outcome: The training; None if a control failed, so that it was not run.
        claim: The claim that the verdict is about.
        guessed: The guesses of each attack; none unless the training finished.
        power: What this audit could prove.
        reuse: Whether the training was judged before.
        seconds: Seconds spent in trainings.

    Returns:
        The record.
    """
    guarantee, each = guarantee_of(claim), audit.settings.attack_confidence
    bounds = [of.bound(guarantee, confidence=each) for of in guessed]
    # The first of equals: without any evidence, the first attack.
    deciding = max(range(len(bounds)), key=bounds.__getitem__, default=None)
    best = None if deciding is None else guessed[deciding]
    proved = None if deciding is None else bounds[deciding]
    checks = (_training_check(outcome, guessed), reuse) if outcome else ()
    failed = outcome is not None and best is None
    prefix = best and guarantee.strongest(best.right, max(bounds), confidence=each)
    return conclude(
        audit,
        controls,
        claim=claim,
        proved=proved,
        power=power,
        reached=best is not None,
        checks=checks,
        seconds=seconds,
        unit=SampleUnit.CANARIES,
        bounds=None if proved is None else recorded_bounds({ValidBound.ONE_RUN_IN_TURN: proved}),
        threshold_rule=None,
        game=OneRunOutcome(
            canaries=audit.canaries,
            included=int(audit.coins.sum()),
            guesses=prefix.guesses if prefix else audit.canaries,
            correct=prefix.correct if prefix else None,
            gaussian_estimate=_gaussian(prefix, audit, guarantee.delta),
            interference=interference(audit.game.view),
            attacks=tuple(
                CanaryOutcome(
                    name=of.attack, auc=of.auc, bound=bound, right=tuple(of.right.tolist())
                )
                for of, bound in zip(guessed, bounds, strict=True)
            ),
            unit=audit.unit,
        ),
        auc=best.auc if best else None,
        counts=None,
        shadow_models={World.IN: int(outcome is not None), World.OUT: 0},
        failures={World.IN: int(failed), World.OUT: 0},
        failure_reasons=(FailureReason(world=World.IN, count=1, error=outcome.error),)
        if outcome and failed
        else (),
        leaks=(),
        attack=best.attack if best else None,
        attacks=(),
        threshold=None,
        scores={
            World.IN: tuple(best.scores[best.coins].tolist()) if best else (),
            World.OUT: tuple(best.scores[~best.coins].tolist()) if best else (),
        },
        target=TargetOfAudit(choice="canaries", row=None),
    )


def _training_check(outcome: Outcome, guessed: Sequence[Guessed]) -> Check:
    name = "the one training"
    if not guessed:
        return Check(name, False, f"the one training failed: {outcome.error}")
    return Check(name, True, "it finished")


def _gaussian(prefix: Prefix | None, audit: OneRunSpec, delta: float | None) -> float | None:
    """An estimate of epsilon next to its bound; None without guesses or a positive delta."""
    if prefix is None or not delta:
        return None
    return one_run_gaussian(
        *(prefix.correct, prefix.guesses, audit.canaries),
        delta=delta,
        confidence=audit.settings.confidence,
    )


def _trainings(settings: AuditSettings[OneRun], together: bool) -> TrainingCount:
    del settings, together
    return TrainingCount(models=1, repeats=0, controls=len(CONTROLS), alone=True)


KIND = GameKind(build=build_one_run, session=OneRunSession, trainings=_trainings)
