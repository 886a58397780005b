"""One one-run audit being run: two controls, one training, its guesses."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from dpaudit.auditing.claims import effective_claim
from dpaudit.auditing.controls import CAUGHT, CONFIDENCE
from dpaudit.auditing.one_run.attack import ATTACKS, Guessed, guess
from dpaudit.auditing.one_run.conclusion import conclude_one_run
from dpaudit.auditing.one_run.plan import power
from dpaudit.auditing.one_run.spec import OneRunSpec
from dpaudit.formatting import rounded_down
from dpaudit.game.engine import run_trials
from dpaudit.game.flight import Engine
from dpaudit.game.progress import OnProgress
from dpaudit.game.store import RunFolder
from dpaudit.game.trial import Outcome, Payload, Role, Trial
from dpaudit.model.currencies import require_epsilon
from dpaudit.plugins.foreign import pickled
from dpaudit.plugins.protocols import World
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
        """Draws `n` training rows; none twice before every one was drawn."""
        order = rng_of(seed, "sample").permutation(len(self._data))
        return self._data.iloc[[order[i % len(order)] for i in range(n)]].reset_index(drop=True)


def one_run_payload(audit: OneRunSpec) -> Payload:
    """What a worker needs to run the training of a one-run audit, or one of its controls."""
    null = build("null", GENERATORS, given={}, offered={"schema": audit.table.schema})
    generators = {
        Role.NULL_CONTROL: null,
        Role.POSITIVE_CONTROL: ReleasesItsRows(),
        Role.ONE_RUN: audit.generator.generator,
    }
    return Payload(
        game=audit.game,
        generators={
            role: pickled(of, name=audit.generator.name) for role, of in generators.items()
        },
        attacks=[attack.scorer for attack in ATTACKS],
        root=audit.settings.seed,
        audit=audit.id,
    )


@dataclass(frozen=True)
class OneRunSession:
    """One one-run audit being run in one run folder.

    Attributes:
        audit: The audit.
        store: Its run folder, locked.
        engine: What runs trials; there is one training at a time, so all workers but one are idle.
        trial_timeout: Seconds after which a training has failed; derived if None.
        on_progress: Called after every training.
        reuse: Whether its training was judged before.
    """

    audit: OneRunSpec
    store: RunFolder
    engine: Engine
    trial_timeout: float | None
    on_progress: OnProgress
    reuse: Check

    def run(self) -> AuditRecord:
        """Runs what the folder does not hold yet and concludes.

        Raises:
            InterruptedRunError: On Ctrl-C.
        """
        payload = one_run_payload(self.audit)
        controls = {
            role: self._judge(role, self._outcome(payload, role))
            for role in (Role.NULL_CONTROL, Role.POSITIVE_CONTROL)
        }
        outcome = None
        if all(control.passed for control in controls.values()):
            outcome = self._outcome(payload, Role.ONE_RUN)
        claim = require_epsilon(
            effective_claim(self.audit, [outcome] if outcome else []), method="`one_run`"
        )
        return conclude_one_run(
            self.audit,
            controls,
            outcome,
            claim=claim,
            guessed=self._guessed(outcome),
            power=power(self.audit.canaries, claim, self.audit.settings.attack_confidence),
            reuse=self.reuse,
            seconds=sum(self.store.tally(role).seconds for role in Role),
        )

    def _outcome(self, payload: Payload, role: Role) -> Outcome:
        trial = Trial(role, World.IN, 0)
        run_trials(
            [trial],
            payload,
            self.store,
            engine=self.engine,
            trial_timeout=self.trial_timeout,
            on_progress=self.on_progress,
        )
        return self.store.outcome(trial)

    def _guessed(self, outcome: Outcome | None) -> tuple[Guessed, ...]:
        if outcome is None or outcome.features is None:
            return ()
        return guess(outcome.features, self.audit.coins)

    def _judge(self, role: Role, outcome: Outcome) -> ControlOutcome:
        """Whether a control ended as it must; strict, so that a sound one hardly ever fails."""
        name = role.in_words
        confidence = self.audit.settings.hypotheses.confidence(CONFIDENCE)
        highest = power(self.audit.canaries, self.audit.claim, confidence).max_provable
        guessed = self._guessed(outcome)
        if not guessed:
            detail = f"{name}: its training failed ({outcome.error})"
            return ControlOutcome(
                passed=False, bound=None, auc=None, max_provable_epsilon=highest, detail=detail
            )
        bounds = [of.bound(delta=self.audit.claim.delta, confidence=confidence) for of in guessed]
        bound = max(bounds)
        best = guessed[bounds.index(bound)]
        made, correct = best.strongest(bound)
        right = f"{correct} of the surest {made} guesses of {best.attack} were right"
        if role is Role.NULL_CONTROL:
            passed = bound == 0
            detail = (
                f"a generator that ignores its data gave no coin away: {right}"
                if passed
                else f"a generator that ignores its data gave coins away ({right}): the game leaks"
            )
        else:
            passed = bound >= CAUGHT * highest
            detail = (
                f"a generator that releases its training rows was caught: {right}"
                if passed
                else f"a generator that releases its training rows was not caught (bound "
                f"{rounded_down(bound)} of {rounded_down(highest)}): {right}; ask for more `rows`"
            )
        return ControlOutcome(
            passed=passed,
            bound=bound,
            auc=best.auc,
            max_provable_epsilon=highest,
            detail=detail,
        )
