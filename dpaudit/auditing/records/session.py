"""One audit of many records being run: two controls, the models, attacks, checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from dpaudit.auditing.checks import Replay
from dpaudit.auditing.claims import effective_claim
from dpaudit.auditing.records.attack import (
    FeaturesOfRecords,
    RecordsEvaluation,
    evaluate_records,
    fit_records,
)
from dpaudit.auditing.records.conclusion import RecordsFindings, conclude_records
from dpaudit.auditing.records.controls import CopiesRecords, control_settings, judge
from dpaudit.auditing.records.plan import power
from dpaudit.auditing.records.spec import RecordsSpec
from dpaudit.auditing.settings import AuditSettings
from dpaudit.game.engine import run_trials
from dpaudit.game.flight import Engine
from dpaudit.game.progress import OnProgress
from dpaudit.game.store import RunFolder
from dpaudit.game.trial import Payload, Role, Trial
from dpaudit.model.choices import Multiplicity
from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.currencies import require_epsilon
from dpaudit.plugins.foreign import pickled
from dpaudit.plugins.protocols import Attack, Generator, World
from dpaudit.plugins.registry import GENERATORS, build
from dpaudit.results.record import AuditRecord, ControlOutcome
from dpaudit.results.verdict import Check

CONTROLS = (Role.NULL_CONTROL, Role.POSITIVE_CONTROL)


@dataclass(frozen=True)
class RecordsSession:
    """One audit of many records per shadow model being run in one run folder.

    Attributes:
        audit: The audit.
        store: Its run folder, locked.
        engine: What runs trials.
        trial_timeout: Seconds after which a trial has failed; derived if None.
        on_progress: Called after every trial.
        reuse: Whether its trials were judged before.
    """

    audit: RecordsSpec
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
        controls = {role: self._control(role) for role in CONTROLS}
        findings = None
        if all(outcome.passed for outcome in controls.values()):
            findings = self._audit()
        seconds = sum(self.store.tally(role).seconds for role in Role)
        return conclude_records(self.audit, controls, findings, reuse=self.reuse, seconds=seconds)

    def _control(self, role: Role) -> ControlOutcome:
        settings = control_settings(self.audit.settings)
        trials = self._run(role, settings)
        attacked = self._attacked(role, trials, settings, self.audit.claim)
        highest = power(settings, self.audit.claim).max_provable
        return judge(role, attacked[0] if attacked else None, highest=highest)

    def _audit(self) -> RecordsFindings:
        settings = self.audit.settings
        trials = self._run(Role.AUDIT, settings)
        stored = self.store.outcomes(Role.AUDIT)
        outcomes = [stored[trial] for trial in trials]
        claim = require_epsilon(effective_claim(self.audit, outcomes), method="`records`")
        attacked = self._attacked(Role.AUDIT, trials, settings, claim)
        finished = [end.trial for end in outcomes if end.finished]
        replays = []
        if finished:
            again = Trial(Role.REPLAY, World.OUT, finished[-1].number)
            run_trials(
                [again],
                self._payload(Role.AUDIT, settings),
                self.store,
                engine=self.engine.renewed(1),
                trial_timeout=self.trial_timeout,
                on_progress=self.on_progress,
            )
            replays = [Replay(self.store.outcome(finished[-1]), self.store.outcome(again))]
        return RecordsFindings(
            claim=claim,
            outcomes=outcomes,
            included=self.audit.game(Role.AUDIT, settings).included,
            attacked=attacked,
            replays=replays,
        )

    def _run(self, role: Role, settings: AuditSettings) -> Sequence[Trial]:
        stored = self.store.outcomes(role)
        return run_trials(
            [Trial(role, World.OUT, number) for number in range(settings.shadow_models)],
            self._payload(role, settings),
            self.store,
            engine=self.engine,
            trial_timeout=self.trial_timeout,
            generator=self.audit.generator.generator if role is Role.AUDIT else None,
            on_progress=self.on_progress,
            hopeless=lambda first: not any(stored[trial].finished for trial in first),
        )

    def _payload(self, role: Role, settings: AuditSettings) -> Payload:
        audit, schema = self.audit, self.audit.table.schema
        game, views = audit.game(role, settings), audit.views
        null = cast(Generator, build("null", GENERATORS, given={}, offered={"schema": schema}))
        generator: object = {
            Role.NULL_CONTROL: null,
            Role.POSITIVE_CONTROL: CopiesRecords(
                schema=schema, records=game.view.target, null=null
            ),
        }.get(role, audit.generator.generator)
        trained = pickled(generator, name=audit.generator.name)
        return Payload(
            game=game,
            generators={role: trained, Role.REPLAY: trained},
            attacks=[FeaturesOfRecords(cast(Attack, attack), views) for _, attack in audit.attacks],
            root=audit.settings.seed,
            audit=audit.id,
        )

    def _attacked(
        self, role: Role, trials: Sequence[Trial], settings: AuditSettings, claim: PrivacyClaim
    ) -> list[RecordsEvaluation]:
        """Every attack that is scored; empty if too few models finished."""
        stored = self.store.outcomes(role)
        included = self.audit.game(role, settings).included
        fitted = 2 * settings.fitted
        used = [trial for trial in trials if stored[trial].finished]
        parts = [
            [trial for trial in used if (trial.number < fitted) == fits] for fits in (True, False)
        ]
        if len(parts[0]) < 2 or not parts[1]:
            return []
        coins = [included[[trial.number for trial in part]] for part in parts]
        asked = {"delta": claim.delta, "confidence": settings.attack_confidence}
        records = len(self.audit.positions)
        fixed, start = [], 0
        for named in self.audit.attacks:
            width = records * len(named.feature_names(self.audit.views[0]))
            place = slice(start, start + width)
            start += width
            features = [
                stored.features(part, place)[:].reshape(len(part), records, -1) for part in parts
            ]
            found = fit_records(
                named,
                features[0],
                coins[0],
                trainings=settings.scored,
                rng=self.audit.stream(f"{role}/attack/{named.name}").rng(),
                **asked,
            )
            fixed.append((found, features[1]))
        if settings.multiplicity is Multiplicity.SELECT:
            fixed = [max(fixed, key=lambda one: one[0].promise)]
        failed = settings.scored - len(parts[1])
        return [
            evaluate_records(found, features, coins[1], failed=failed, **asked)
            for found, features in fixed
        ]
