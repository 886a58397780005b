"""The one-run audit: one training on a table that includes each canary by a fair coin.

Runs it: two controls, one training, its guesses, its record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from dpaudit.auditing.checks import (
    CONFIDENCE,
    CONTROLS,
    control_claim,
    failure_reasons,
    judge,
    unfinished,
)
from dpaudit.auditing.one_run.attack import ATTACKS, Guessed, guess
from dpaudit.auditing.one_run.marginals import interference
from dpaudit.auditing.one_run.plan import power
from dpaudit.auditing.one_run.settings import OneRun
from dpaudit.auditing.session import (
    GameKind,
    Session,
    TrainingCount,
    by_world,
    conclude,
    recorded_bounds,
)
from dpaudit.auditing.settings import AuditSettings
from dpaudit.auditing.spec import AuditSpec, built, view_of
from dpaudit.bounds import bonferroni, guarantee_of, one_run_gaussian
from dpaudit.bounds.table import ValidBound
from dpaudit.game.trial import Outcome, Payload, Role
from dpaudit.game.worlds import CanaryGame, choose_canaries, flip_coins
from dpaudit.model.claim import require_add_remove
from dpaudit.model.tables import Table
from dpaudit.plugins.adapt import check_table
from dpaudit.plugins.foreign import pickled
from dpaudit.plugins.named import claim_if_any
from dpaudit.plugins.protocols import BoolArray, IntArray, World
from dpaudit.plugins.registry import GENERATORS, build
from dpaudit.results.one_run import CanaryOutcome, OneRunOutcome
from dpaudit.results.record import AuditRecord, ControlOutcome, TargetOfAudit
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
        """The mode and the number of canaries; the table determines which ones."""
        return {"one_run": True, "canaries": self.canaries}

    @property
    def own_options(self) -> list[str]:
        """The words of the command that repeat the audit's own choices."""
        return ["--one-run", "--canaries", str(self.canaries)]

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
    named = built(generator, settings, schema=schema)
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
        """Guesses the canaries and concludes; what one training does not have is None or empty."""
        audit = self.audit
        claim = audit.effective_claim([found] if found else [])
        guarantee, each = guarantee_of(claim), audit.settings.attack_confidence
        guessed = self._guessed(found)
        bounds = [of.bound(guarantee, confidence=each) for of in guessed]
        proved = max(bounds, default=None)
        best = prefix = gaussian = None
        if proved is not None:
            best = guessed[bounds.index(proved)]  # without any evidence, the first attack
            prefix = guarantee.strongest(best.right, proved, confidence=each)
            if guarantee.delta:
                gaussian = one_run_gaussian(
                    *(prefix.correct, prefix.guesses, audit.canaries),
                    delta=guarantee.delta,
                    confidence=audit.settings.confidence,
                )
        failed = found is not None and best is None
        detail = f"the one training failed: {found.error}" if found and failed else "it finished"
        training = Check("the one training", not failed, detail)
        return conclude(
            audit,
            controls,
            claim=claim,
            proved=proved,
            power=power(audit.canaries, claim, each),
            reached=best is not None,
            checks=(training, reuse) if found else (),
            seconds=seconds,
            unit=SampleUnit.CANARIES,
            bounds=None
            if proved is None
            else recorded_bounds({ValidBound.ONE_RUN_IN_TURN: proved}),
            threshold_rule=None,
            game=OneRunOutcome(
                canaries=audit.canaries,
                included=int(audit.coins.sum()),
                guesses=prefix.guesses if prefix else audit.canaries,
                correct=prefix.correct if prefix else None,
                gaussian_estimate=gaussian,
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
            shadow_models={World.IN: int(found is not None), World.OUT: 0},
            failures={World.IN: int(failed), World.OUT: 0},
            failure_reasons=failure_reasons([found] if found else []),
            leaks=(),
            attack=best.attack if best else None,
            attacks=(),
            threshold=None,
            scores=by_world(best.scores, best.coins) if best else by_world(),
            target=TargetOfAudit(choice="canaries", row=None),
        )

    def _guessed(self, outcome: Outcome | None) -> tuple[Guessed, ...]:
        if outcome is None or outcome.features is None:
            return ()
        return guess(outcome.features, self.audit.coins)

    def control(self, role: Role) -> ControlOutcome:
        """Runs a control and judges it; strictly, so a sound one hardly ever fails."""
        outcome, claim = self.train_one(role), control_claim(self.audit.claim)
        confidence = bonferroni(CONFIDENCE, self.audit.settings.game.hypotheses)
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
        return judge(
            role,
            bound,
            auc=best.auc,
            highest=highest,
            hidden=f"a generator that ignores its data revealed no coin: {seen}",
            found=f"a generator that ignores its data revealed coins ({seen}): the game leaks",
            caught=f"a generator that releases its training rows was caught: {seen}",
            missed="a generator that releases its training rows was not caught ({bound}): "
            f"{seen}; ask for more `rows`",
        )


def _trainings(settings: AuditSettings[OneRun], together: bool) -> TrainingCount:
    del settings, together
    return TrainingCount(models=1, repeats=0, controls=len(CONTROLS), alone=True)


KIND = GameKind(build=build_one_run, session=OneRunSession, trainings=_trainings)
