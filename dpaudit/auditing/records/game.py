"""The audit of many records: two controls, models that each serve all records, attacks, checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Final, cast

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
)
from dpaudit.auditing.game import BestAttack, Findings, Game, Run, TrainingCount, recorded_bounds
from dpaudit.auditing.records.attack import (
    CopiesRecords,
    FeaturesOfRecords,
    RecordsEvaluation,
    control_settings,
    evaluate_records,
    fit_records,
    judge_control,
)
from dpaudit.auditing.records.plan import coin_plan, power
from dpaudit.auditing.settings import AuditSettings, ManyRecords
from dpaudit.auditing.spec import AuditSpec, attacks_with_access, build_generator, view_of
from dpaudit.bounds import Counts, Direction, Threshold
from dpaudit.errors import RegistryError, SettingsError
from dpaudit.game.store import StoredOutcome, StoredOutcomes
from dpaudit.game.trial import Payload, Role, Trial
from dpaudit.game.worlds import Records, SelectionGame, choose_records, draw_included
from dpaudit.model.choices import Multiplicity
from dpaudit.model.claim import EpsilonClaim, PrivacyClaim, require_add_remove, require_on_epsilon
from dpaudit.model.tables import Table
from dpaudit.plugins.foreign import pickled
from dpaudit.plugins.named import check_table, claim_if_any
from dpaudit.plugins.protocols import (
    Attack,
    GameView,
    Generator,
    LastBitsName,
    World,
    is_seedable,
    trains_many,
)
from dpaudit.plugins.registry import GENERATORS, build
from dpaudit.results.outcomes import AttackOutcome, RecordOutcome, RecordsOutcome
from dpaudit.results.record import ControlOutcome, TargetOfAudit
from dpaudit.results.verdict import DIFFERENT_SEEDS, Check, Consequence


@dataclass(frozen=True, kw_only=True)
class RecordsSpec(AuditSpec):
    """A complete audit of many records per shadow model.

    Attributes:
        claim: The claim under audit, one of epsilon.
        records: Positions of the rows of each of the k records in the table handed in.

    Raises:
        ClaimError: If the claim is not for add-remove neighbours.
        SettingsError: If the records are more than a quarter of the rows or units.
    """

    TRAINED: ClassVar[tuple[str, ...]] = ("neighbours", "records")

    settings: AuditSettings[ManyRecords]
    claim: EpsilonClaim
    records: Records

    def __post_init__(self) -> None:
        self.settings.game.check_population(self.table.population)
        require_add_remove(self.claim.neighbours, method="`records`")

    @property
    def positions(self) -> tuple[int, ...]:
        """Position of the (first) row of each record [k]."""
        return tuple(rows[0] for rows in self.records)

    @property
    def all_rows(self) -> list[int]:
        """Positions of the rows of all records, one record after another."""
        return [row for rows in self.records for row in rows]

    @property
    def own_specification(self) -> dict[str, Any]:
        """Number of records (the table determines which ones), attacks, models."""
        return {
            "records": len(self.records),
            "attacks": self.attacks_specified,
            **self.settings.game.plain("records", "attacks"),
        }

    @property
    def own_options(self) -> list[str]:
        """The words of the command that repeat the audit's own choices."""
        words = ["--records", str(len(self.records)), *self.attack_options]
        return words + self.settings.game.words("records", "attacks")

    @cached_property
    def view(self) -> GameView:
        """The attacker's knowledge: all rows except the records."""
        return view_of(self.table, self.all_rows, rows=self.rows, neighbours=self.claim.neighbours)

    @cached_property
    def views(self) -> tuple[GameView, ...]:
        """The same for each target [k]."""
        data = self.table.data
        return tuple(
            replace(self.view, target=data.iloc[list(rows)].reset_index(drop=True))
            for rows in self.records
        )

    def game(self, role: Role, settings: AuditSettings[ManyRecords]) -> SelectionGame:
        """The models of one role, with coins of their own.

        Args:
            role: The role.
            settings: Settings of the role's trials.
        """
        included = draw_included(
            settings.game.shadow_models,
            fitted=2 * settings.game.fitted,
            records=len(self.records),
            rng=self.stream(f"{role}/coins").rng(),
        )
        return SelectionGame(
            view=self.view, data=self.table.data, candidates=self.records, included=included
        )


def build_records(
    generator: object, table: Table, settings: AuditSettings[ManyRecords]
) -> RecordsSpec:
    """Validates everything that an audit of many records needs.

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
    records = choose_records(data, schema, settings.game.records)
    try:
        named = build_generator(generator, settings, schema=schema)
    except RegistryError:
        # Raises that error again unless all that it lacks is a target.
        first = data.iloc[list(records[0])].reset_index(drop=True)
        named = build_generator(generator, settings, schema=schema, target=first)
        raise SettingsError(
            f"{named.name} takes one target when it is built, and `records` attacks many: leave "
            "out `records`"
        ) from None
    attacks, _ = attacks_with_access(named, settings.game.attacks)
    spec = RecordsSpec(
        given=generator,
        generator=named,
        table=table,
        settings=settings,
        claim=require_on_epsilon(claim_if_any(named, settings.claim, table), method="`records`"),
        records=records,
        attacks=attacks,
    )
    for attack in attacks:
        for view in spec.views:
            attack.check(view)
    check_table(named.generator, data)
    return spec


EVEN_ODDS = Threshold(0.0, Direction.HIGHER)
"""A model more probably had a record than not if its log odds are at least this."""

TARGET: Final = TargetOfAudit(choice="records", row=None)


class RecordsGame(Game[RecordsSpec]):
    """Shadow models that each serve many records.

    All count as trials of world out, because each lacks some of the records.
    """

    FIRST_TRIAL: ClassVar[Trial] = Trial(Role.AUDIT, World.OUT, 0)

    specify = staticmethod(build_records)

    def trainings(self, settings: AuditSettings[ManyRecords], together: bool) -> TrainingCount:
        """Counts the models, of which one is repeated."""
        del together
        control = control_settings(settings).game.shadow_models
        models = settings.game.shadow_models
        return TrainingCount(models, repeats=1, controls=len(CONTROLS) * control)

    def limit(self, settings: AuditSettings[ManyRecords], claim: PrivacyClaim) -> float:
        """The limit of as many fair coins as scored models times records."""
        return coin_plan(settings, claim, records=settings.game.records).provable()

    def payload(self, spec: RecordsSpec, role: Role) -> Payload:
        """What workers need to run the models of a role, which have coins of their own."""
        schema = spec.table.schema
        role = Role.AUDIT if role is Role.REPLAY else role
        game = spec.game(role, _settings(spec, role))
        null = cast(Generator, build("null", GENERATORS, given={}, offered={"schema": schema}))
        generator: object = {
            Role.NULL_CONTROL: null,
            Role.POSITIVE_CONTROL: CopiesRecords(
                schema=schema, records=game.view.target, null=null
            ),
        }.get(role, spec.generator.generator)
        trained = pickled(generator, name=spec.generator.name)
        return Payload(
            game=game,
            generators={role: trained, Role.REPLAY: trained},
            attacks=[
                FeaturesOfRecords(cast(Attack, attack), spec.views) for _, attack in spec.attacks
            ],
            root=spec.settings.seed,
            audit=spec.id,
        )

    def own_trials(self, spec: RecordsSpec) -> Sequence[Trial]:
        """The models by number."""
        return _trials(spec, Role.AUDIT)

    def run(self, run: Run[RecordsSpec]) -> Findings:
        """Runs the controls and, if both pass, the models, one of them twice."""
        spec = run.spec
        controls = {role: self._control(run, role) for role in CONTROLS}
        if not all(control.passed for control in controls.values()):
            return Findings(
                outcome=_outcome(spec, None), claim=spec.claim, target=TARGET, controls=controls
            )
        trials = self._train(run, Role.AUDIT)
        stored = run.store.outcomes(Role.AUDIT)
        outcomes = [stored[trial] for trial in trials]
        claim = require_on_epsilon(spec.effective_claim(outcomes), method="`records`")
        attacked = _attack_all(spec, stored, Role.AUDIT, trials, claim)
        replays = self._replay(run, [end.trial for end in outcomes if end.finished])
        findings = _find(spec, controls, claim, outcomes, attacked, replays)
        is_violated = findings.best is not None and findings.best.proved > claim.value
        if not is_violated or spec.settings.game.ignore_bits:
            return findings
        spec = replace(spec, settings=spec.settings.with_game(ignore_bits=True))
        without = _attack_all(spec, stored, Role.AUDIT, trials, claim)
        proved = max(attack.proved for attack in without)
        return replace(findings, proved_without_bits=proved if proved <= claim.value else None)

    def _control(self, run: Run[RecordsSpec], role: Role) -> ControlOutcome:
        """Runs a control and judges it."""
        spec, trials = run.spec, self._train(run, role)
        attacked = _attack_all(spec, run.store.outcomes(role), role, trials, spec.claim)
        highest = power(_settings(spec, role), spec.claim).max_provable
        return judge_control(role, attacked[0] if attacked else None, highest=highest)

    def _train(self, run: Run[RecordsSpec], role: Role) -> Sequence[Trial]:
        """Runs the models of a role; gives up if none of the first ones finishes."""
        stored = run.store.outcomes(role)
        return run.train(
            _trials(run.spec, role),
            self.payload(run.spec, role),
            hopeless=lambda first: not any(stored[trial].finished for trial in first),
        )

    def _replay(self, run: Run[RecordsSpec], finished: Sequence[Trial]) -> list[Replay]:
        """Runs the last model that finished again, in a new worker."""
        if not finished:
            return []
        last = finished[-1]
        again = last._replace(role=Role.REPLAY)
        run.train([again], self.payload(run.spec, Role.REPLAY), engine=run.engine.renewed(1))
        return [Replay(run.store.outcome(last), run.store.outcome(again))]


def _trials(spec: RecordsSpec, role: Role) -> list[Trial]:
    models = _settings(spec, role).game.shadow_models
    return [Trial(role, World.OUT, number) for number in range(models)]


def _settings(spec: RecordsSpec, role: Role) -> AuditSettings[ManyRecords]:
    """The settings of a role's models."""
    return spec.settings if role is Role.AUDIT else control_settings(spec.settings)


def _attack_all(
    spec: RecordsSpec,
    stored: StoredOutcomes,
    role: Role,
    trials: Sequence[Trial],
    claim: EpsilonClaim,
) -> list[RecordsEvaluation]:
    """Fits every attack on the first models and scores it on the others, once.

    Returns:
        Every attack that is scored, or the selected one; empty if too few models finished.
    """
    settings = _settings(spec, role)
    included = spec.game(role, settings).included
    fitted = 2 * settings.game.fitted
    finished = [trial for trial in trials if stored[trial].finished]
    parts = [
        [trial for trial in finished if (trial.number < fitted) == fits] for fits in (True, False)
    ]
    if len(parts[0]) < 2 or not parts[1]:
        return []
    coins = [included[[trial.number for trial in part]] for part in parts]
    records = len(spec.records)
    # Views of units with equally many rows have the same features.
    kinds = {len(view.target): view for view in spec.views}.values()
    contenders, start = [], 0
    for named in spec.attacks:
        names = max((named.feature_names(view) for view in kinds), key=len)
        place = slice(start, start + records * len(names))
        start = place.stop
        sees_bits = not settings.game.ignore_bits
        kept = [sees_bits or not isinstance(name, LastBitsName) for name in names]
        features = [
            stored.features(part, place)[:].reshape(len(part), records, -1)[:, :, kept]
            for part in parts
        ]
        attack = fit_records(
            named,
            features[0],
            coins[0],
            trainings=settings.game.scored,
            delta=claim.delta,
            confidence=settings.attack_confidence,
            rng=spec.stream(f"{role}/attack/{named.name}").rng(),
        )
        contenders.append((attack, features[1]))
    if settings.game.multiplicity is Multiplicity.SELECT:
        contenders = [max(contenders, key=lambda contender: contender[0].forecast)]
    return [
        evaluate_records(
            attack,
            scored,
            coins[1],
            failed=settings.game.scored - len(parts[1]),
            delta=claim.delta,
            confidence=settings.attack_confidence,
        )
        for attack, scored in contenders
    ]


def _find(
    spec: RecordsSpec,
    controls: Mapping[Role, ControlOutcome],
    claim: EpsilonClaim,
    outcomes: Sequence[StoredOutcome],
    attacked: Sequence[RecordsEvaluation],
    replays: Sequence[Replay],
) -> Findings:
    """What the models show, from how they ended and what the attacks achieved."""
    fitted = 2 * spec.settings.game.fitted
    # Only failures among the scored models cost guesses.
    failed = sum(not end.finished for end in outcomes if end.trial.number >= fitted)
    best = max(attacked, key=lambda attack: (attack.proved, attack.auc), default=None)
    return Findings(
        outcome=_outcome(spec, best),
        claim=claim,
        target=TARGET,
        controls=controls,
        trials=outcomes,
        power=power(spec.settings, claim, failed=failed),
        best=None if best is None else _best_attack(best),
        attacks=tuple(_attack_outcome(attack) for attack in attacked),
        checks=_checks(spec, outcomes, best, replays),
    )


def _outcome(spec: RecordsSpec, best: RecordsEvaluation | None) -> RecordsOutcome:
    """The guesses of each record; none if nothing was scored."""
    nothing = np.zeros(len(spec.positions), dtype=int)
    guesses, correct = (best.made, best.right) if best else (nothing, nothing)
    return RecordsOutcome(
        scored=len(best.odds) if best else 0,
        each=tuple(
            RecordOutcome(row=row, guesses=int(of_record), correct=int(right))
            for row, of_record, right in zip(spec.positions, guesses, correct, strict=True)
        ),
        unit=spec.unit,
    )


def _best_attack(best: RecordsEvaluation) -> BestAttack:
    return BestAttack(
        name=best.name,
        proved=best.proved,
        bounds=best.bounds,
        auc=best.auc,
        scores=best.odds,
        member=best.included,
        counts=_counts(best),
        threshold=EVEN_ODDS,
    )


def _attack_outcome(attack: RecordsEvaluation) -> AttackOutcome:
    return AttackOutcome(
        name=attack.name,
        auc=attack.auc,
        bounds=recorded_bounds(attack.bounds),
        counts=_counts(attack),
        threshold=EVEN_ODDS,
        guesses=attack.guesses,
    )


def _counts(attack: RecordsEvaluation) -> Counts:
    """Errors at odds of 1 : 1, over all records of the scored models that finished."""
    guessed = attack.odds >= EVEN_ODDS.value
    return Counts(
        false_negatives=int((~guessed & attack.included).sum()),
        false_positives=int((guessed & ~attack.included).sum()),
        n_in=int(attack.included.sum()),
        n_out=int((~attack.included).sum()),
    )


def _checks(
    spec: RecordsSpec,
    outcomes: Sequence[StoredOutcome],
    best: RecordsEvaluation | None,
    replays: Sequence[Replay],
) -> tuple[Check, ...]:
    """Checks of the run."""
    generator = spec.generator.generator
    checks = [
        *([TOO_FEW_MODELS] if best is None else []),
        _check_failures(spec, outcomes),
        _check_randomness(outcomes),
        check_repeats(outcomes, spec.stream("repeats").rng()),
        check_replay(replays, seedable=is_seedable(generator), together=trains_many(generator)),
    ]
    if best is not None:
        # Kendall's rank test on the mean odds of each model.
        p_value = drift_p_value(best.odds.mean(axis=1))
        checks.append(check_drift(f"scores of {best.name}", p_value))
    return tuple(checks)


def _check_failures(spec: RecordsSpec, outcomes: Sequence[StoredOutcome]) -> Check:
    """Whether failing depends on any record (Fisher's exact test for each, Bonferroni)."""
    from scipy.stats import fisher_exact

    failed = np.array([not end.finished for end in outcomes])
    if not failed.any():
        return NONE_FAILED
    detail = f"{int(failed.sum())} of {len(failed)} models failed; nothing is guessed on them"
    included = spec.game(Role.AUDIT, spec.settings).included
    smallest = 1.0
    for had in included[[end.trial.number for end in outcomes]].T:
        sides = (had, ~had)
        table = np.array([[(failed & side).sum(), (~failed & side).sum()] for side in sides])
        smallest = min(smallest, float(fisher_exact(table)[1]))
    p_value = min(1.0, smallest * included.shape[1])
    return check_failing(detail, p_value, on="a record")


def _check_randomness(outcomes: Sequence[StoredOutcome]) -> Check:
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
