"""Runs an audit of many records: two controls, the models, attacks, checks, its record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, cast

import numpy as np

from dpaudit.auditing.checks import (
    CONTROLS,
    NONE_FAILED,
    SEEDS_NOT_COMPARED,
    TOO_FEW_MODELS,
    Replay,
    check_drift,
    check_failing,
    check_repeats,
    check_replay,
    drift_p_value,
    failure_reasons,
)
from dpaudit.auditing.records.attack import (
    CopiesRecords,
    FeaturesOfRecords,
    RecordsEvaluation,
    control_settings,
    evaluate_records,
    fit_records,
    judged,
)
from dpaudit.auditing.records.plan import power
from dpaudit.auditing.records.settings import ManyRecords
from dpaudit.auditing.records.spec import RecordsSpec, build_records
from dpaudit.auditing.session import (
    GameKind,
    Session,
    TrainingCount,
    by_world,
    conclude,
    recorded_bounds,
)
from dpaudit.auditing.settings import AuditSettings
from dpaudit.bounds import Counts, Direction, Threshold
from dpaudit.game.outcomes import StoredOutcome
from dpaudit.game.trial import Payload, Role, Trial
from dpaudit.model.choices import Multiplicity
from dpaudit.model.claim import EpsilonClaim, require_on_epsilon
from dpaudit.plugins.foreign import pickled
from dpaudit.plugins.protocols import Attack, BoolArray, Generator, World, is_seedable, trains_many
from dpaudit.plugins.registry import GENERATORS, build
from dpaudit.results.game import AttackOutcome
from dpaudit.results.record import AuditRecord, ControlOutcome, TargetOfAudit
from dpaudit.results.records import RecordOutcome, RecordsOutcome
from dpaudit.results.verdict import DIFFERENT_SEEDS, Check, Consequence

EVEN_ODDS = Threshold(0.0, Direction.HIGHER)
"""A model more probably had a record than not if its log odds are at least this."""


class RecordsFindings(NamedTuple):
    """The findings of the audit's own models.

    Attributes:
        claim: The claim that the verdict is about.
        outcomes: How every model that was run ended, by number.
        included: Which records each model had [n, k], those that were not run included.
        attacked: Every attack that was scored; empty if too few models finished.
        replays: A model and its second run.
    """

    claim: EpsilonClaim
    outcomes: Sequence[StoredOutcome]
    included: BoolArray
    attacked: Sequence[RecordsEvaluation]
    replays: Sequence[Replay]


def _records(audit: RecordsSpec, best: RecordsEvaluation | None) -> RecordsOutcome:
    nothing = np.zeros(len(audit.positions), dtype=int)
    made, right = (best.made, best.right) if best else (nothing, nothing)
    return RecordsOutcome(
        scored=len(best.odds) if best else 0,
        each=tuple(
            RecordOutcome(row=row, guesses=int(guesses), correct=int(correct))
            for row, guesses, correct in zip(audit.positions, made, right, strict=True)
        ),
        unit=audit.unit,
    )


def _counts(one: RecordsEvaluation) -> Counts:
    """Errors at odds of 1 : 1, over all records of the scored models that finished."""
    said = one.odds >= EVEN_ODDS.value
    return Counts(
        false_negatives=int((~said & one.included).sum()),
        false_positives=int((said & ~one.included).sum()),
        n_in=int(one.included.sum()),
        n_out=int((~one.included).sum()),
    )


def _attack(one: RecordsEvaluation) -> AttackOutcome:
    return AttackOutcome(
        name=one.name,
        auc=one.auc,
        bounds=recorded_bounds(one.bounds),
        counts=_counts(one),
        threshold=EVEN_ODDS,
        guesses=one.guesses,
    )


def _checks(
    audit: RecordsSpec, findings: RecordsFindings, best: RecordsEvaluation | None
) -> list[Check]:
    outcomes, generator = findings.outcomes, audit.generator.generator
    checks = [
        *([TOO_FEW_MODELS] if best is None else []),
        _failures(findings),
        _randomness(outcomes),
        check_repeats(outcomes, audit.stream("repeats").rng()),
        check_replay(
            findings.replays, seedable=is_seedable(generator), together=trains_many(generator)
        ),
    ]
    if best is not None:
        # Kendall's rank test on the mean odds of each model.
        p_value = drift_p_value(best.odds.mean(axis=1))
        checks.append(check_drift(f"scores of {best.name}", p_value))
    return checks


def _failures(findings: RecordsFindings) -> Check:
    """Whether failing depends on any record (Fisher's exact test for each, Bonferroni)."""
    from scipy.stats import fisher_exact

    failed = np.array([not end.finished for end in findings.outcomes])
    if not failed.any():
        return NONE_FAILED
    detail = f"{int(failed.sum())} of {len(failed)} models failed; nothing is guessed on them"
    smallest = 1.0
    for had in findings.included[[end.trial.number for end in findings.outcomes]].T:
        sides = (had, ~had)
        table = np.array([[(failed & one).sum(), (~failed & one).sum()] for one in sides])
        smallest = min(smallest, float(fisher_exact(table)[1]))
    p_value = min(1.0, smallest * findings.included.shape[1])
    return check_failing(detail, p_value, on="a record")


def _randomness(outcomes: Sequence[StoredOutcome]) -> Check:
    """Whether different seeds give different tables: of the first two models, trained alike."""
    first, second = (
        next((end.table for end in outcomes if end.trial.number == number), None)
        for number in (0, 1)
    )
    if first is None or second is None:
        return SEEDS_NOT_COMPARED
    if first != second:
        detail = "two models of one table with different seeds differ: the output is not a constant"
        return Check(DIFFERENT_SEEDS, True, detail, Consequence.NOTED)
    detail = "two models of one table with different seeds gave the same synthetic table"
    return Check(DIFFERENT_SEEDS, False, detail, Consequence.NOTED)


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
        claim = require_on_epsilon(self.audit.effective_claim(outcomes), method="`records`")
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
        """Concludes; all models count as trials of world out, because each lacks records."""
        audit = self.audit
        settings = audit.settings
        claim = found.claim if found else audit.claim
        outcomes = found.outcomes if found else ()
        fitted = 2 * settings.game.fitted
        lost = sum(not end.finished for end in outcomes if end.trial.number >= fitted)
        left = power(settings, claim, failed=lost)
        attacked = found.attacked if found else ()
        best = max(attacked, key=lambda one: (one.proved, one.auc), default=None)
        checks = (*_checks(audit, found, best), reuse) if found else ()
        failed = sum(not end.finished for end in outcomes)
        return conclude(
            audit,
            controls,
            claim=claim,
            proved=best.proved if best else None,
            power=left,
            reached=found is not None,
            checks=checks,
            seconds=seconds,
            bounds=recorded_bounds(best.bounds) if best else None,
            threshold_rule=settings.game.rule,
            game=_records(audit, best),
            auc=best.auc if best else None,
            counts=_counts(best) if best else None,
            shadow_models={World.IN: 0, World.OUT: len(outcomes)},
            failures={World.IN: 0, World.OUT: failed},
            failure_reasons=failure_reasons(outcomes),
            leaks=(),
            attack=best.name if best else None,
            attacks=tuple(_attack(one) for one in attacked),
            threshold=EVEN_ODDS if best else None,
            scores=by_world(best.odds, best.included) if best else by_world(),
            target=TargetOfAudit(choice="records", row=None),
        )

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


def _trainings(settings: AuditSettings[ManyRecords], together: bool) -> TrainingCount:
    del together
    control = control_settings(settings).game.shadow_models
    models = settings.game.shadow_models
    return TrainingCount(models, repeats=1, controls=len(CONTROLS) * control)


KIND = GameKind(build=build_records, session=RecordsSession, trainings=_trainings)
