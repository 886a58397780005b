"""Runs a one-run audit: two controls, one training, its guesses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from dpaudit.auditing.claims import effective_claim
from dpaudit.auditing.controls import (
    CONFIDENCE,
    ControlWords,
    control_claim,
    judge,
    unfinished,
)
from dpaudit.auditing.one_run.attack import ATTACKS, Guessed, guess
from dpaudit.auditing.one_run.conclusion import conclude_one_run
from dpaudit.auditing.one_run.plan import power
from dpaudit.auditing.one_run.spec import OneRunSpec
from dpaudit.auditing.session import Session
from dpaudit.bounds import guarantee_of
from dpaudit.game.trial import Outcome, Payload, Role
from dpaudit.plugins.foreign import pickled
from dpaudit.plugins.registry import GENERATORS, build
from dpaudit.results.record import AuditRecord, ControlOutcome
from dpaudit.results.verdict import Check
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
        claim = effective_claim(audit, [found] if found else [])
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
