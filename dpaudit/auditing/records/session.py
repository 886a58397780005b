"""Runs an audit of many records: two controls, the models, attacks, checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

from dpaudit.auditing.checks import Replay
from dpaudit.auditing.claims import effective_claim
from dpaudit.auditing.records.attack import (
    FeaturesOfRecords,
    RecordsEvaluation,
    evaluate_records,
    fit_records,
)
from dpaudit.auditing.records.conclusion import RecordsFindings, conclude_records
from dpaudit.auditing.records.controls import CopiesRecords, control_settings, judged
from dpaudit.auditing.records.plan import power
from dpaudit.auditing.records.settings import ManyRecords
from dpaudit.auditing.records.spec import RecordsSpec
from dpaudit.auditing.session import Session
from dpaudit.auditing.settings import AuditSettings
from dpaudit.game.trial import Payload, Role, Trial
from dpaudit.model.choices import Multiplicity
from dpaudit.model.currencies import EpsilonClaim, require_on_epsilon
from dpaudit.plugins.foreign import pickled
from dpaudit.plugins.protocols import Attack, Generator, World
from dpaudit.plugins.registry import GENERATORS, build
from dpaudit.results.record import AuditRecord, ControlOutcome
from dpaudit.results.verdict import Check


@dataclass(frozen=True)
class RecordsSession(Session[RecordsSpec, RecordsFindings]):
    """An audit of many records per shadow model, running in one run folder."""

    WORLD: ClassVar[World] = World.OUT

    def payload(self, role: Role) -> Payload:
        """What workers need to run the models of a role, which have coins of their own."""
        audit, schema = self.audit, self.audit.table.schema
        role = Role.AUDIT if role is Role.REPLAY else role
        game, views = audit.game(role, self._settings(role)), audit.views
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

    def control(self, role: Role) -> ControlOutcome:
        """Runs a control and judges it."""
        trials, claim = self._models(role), self.audit.claim
        attacked = self._attacked(role, trials, claim)
        highest = power(self._settings(role), claim).max_provable
        return judged(role, attacked[0] if attacked else None, highest=highest)

    def audited(self) -> RecordsFindings:
        """Runs the models, one of them twice, and attacks them."""
        trials = self._models(Role.AUDIT)
        stored = self.store.outcomes(Role.AUDIT)
        outcomes = [stored[trial] for trial in trials]
        claim = require_on_epsilon(effective_claim(self.audit, outcomes), method="`records`")
        attacked = self._attacked(Role.AUDIT, trials, claim)
        finished = [end.trial for end in outcomes if end.finished]
        replays = []
        if finished:
            again = Trial(Role.REPLAY, World.OUT, finished[-1].number)
            self.train([again], engine=self.engine.renewed(1))
            replays = [Replay(self.store.outcome(finished[-1]), self.store.outcome(again))]
        return RecordsFindings(
            claim=claim,
            outcomes=outcomes,
            included=self.audit.game(Role.AUDIT, self.audit.settings).included,
            attacked=attacked,
            replays=replays,
        )

    def record(
        self,
        controls: Mapping[Role, ControlOutcome],
        found: RecordsFindings | None,
        *,
        reuse: Check,
        seconds: float,
    ) -> AuditRecord:
        """Concludes."""
        return conclude_records(self.audit, controls, found, reuse=reuse, seconds=seconds)

    def _settings(self, role: Role) -> AuditSettings[ManyRecords]:
        settings = self.audit.settings
        return settings if role is Role.AUDIT else control_settings(settings)

    def _models(self, role: Role) -> Sequence[Trial]:
        """Runs the models of a role."""
        stored = self.store.outcomes(role)
        return self.train(
            [
                Trial(role, World.OUT, number)
                for number in range(self._settings(role).game.shadow_models)
            ],
            hopeless=lambda first: not any(stored[trial].finished for trial in first),
        )

    def _attacked(
        self, role: Role, trials: Sequence[Trial], claim: EpsilonClaim
    ) -> list[RecordsEvaluation]:
        """Every attack that is scored; empty if too few models finished."""
        stored, settings = self.store.outcomes(role), self._settings(role)
        included = self.audit.game(role, settings).included
        fitted = 2 * settings.game.fitted
        used = [trial for trial in trials if stored[trial].finished]
        parts = [
            [trial for trial in used if (trial.number < fitted) == fits] for fits in (True, False)
        ]
        if len(parts[0]) < 2 or not parts[1]:
            return []
        coins = [included[[trial.number for trial in part]] for part in parts]
        asked = {"delta": claim.delta, "confidence": settings.attack_confidence}
        records = len(self.audit.records)
        # Views of units with equally many rows have the same features.
        kinds = {len(view.target): view for view in self.audit.views}.values()
        fixed, start = [], 0
        for named in self.audit.attacks:
            width = records * max(len(named.feature_names(view)) for view in kinds)
            place = slice(start, start + width)
            start += width
            features = [
                stored.features(part, place)[:].reshape(len(part), records, -1) for part in parts
            ]
            found = fit_records(
                named,
                features[0],
                coins[0],
                trainings=settings.game.scored,
                rng=self.audit.stream(f"{role}/attack/{named.name}").rng(),
                **asked,
            )
            fixed.append((found, features[1]))
        if settings.game.multiplicity is Multiplicity.SELECT:
            fixed = [max(fixed, key=lambda one: one[0].forecast)]
        failed = settings.game.scored - len(parts[1])
        return [
            evaluate_records(found, features, coins[1], failed=failed, **asked)
            for found, features in fixed
        ]
