"""Controls in two worlds: their number of trials, and their sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Final

import cloudpickle
import numpy as np
import pandas as pd

from dpaudit.auditing.checks import (
    BEYOND_CHANCE,
    CONFIDENCE,
    CONTROLS,
    auc_by_chance,
    judge,
    unfinished_control,
)
from dpaudit.auditing.settings import AuditSettings, TwoWorlds
from dpaudit.auditing.two_worlds.attacking import MIN_FITTED, Evaluation
from dpaudit.auditing.two_worlds.spec import TwoWorldSpec
from dpaudit.bounds.table import deciding
from dpaudit.formatting import auc_text, percent, rounded_down
from dpaudit.game.trial import Role
from dpaudit.model.choices import Multiplicity
from dpaudit.model.linked_tables import LinkedTables
from dpaudit.model.setting import NumberRange
from dpaudit.plugins.named import train
from dpaudit.plugins.protocols import Generator, Model, World
from dpaudit.plugins.registry import GENERATORS, build
from dpaudit.results.record import ControlOutcome
from dpaudit.seeds import rng_of

TRIALS_PER_WORLD = 30
"""Trials of a full control; fewer if the audit itself is small (`control_settings`)."""
FEWEST_PER_WORLD = 7
"""Trials of a small control: just enough for a perfect separation to prove a leak."""
GENERATORS_OF: Final = {Role.NULL_CONTROL: "null", Role.POSITIVE_CONTROL: "copycat"}
"""The registered generator that a control audits."""
LEAKS_BY_TIME: Final = "dawdler"
"""The same of the positive control where trainings are timed: a copy shows without a clock."""


@dataclass(frozen=True, kw_only=True)
class ControlGame(TwoWorlds):
    """The game of a control; it may have fewer trials than an audit."""

    shadow_models: Annotated[int, NumberRange(least=10)] = 2 * TRIALS_PER_WORLD

    @property
    def fitted(self) -> int:
        """Trials of each world that train the attack, at least as many as that needs."""
        return max(MIN_FITTED, super().fitted)

    @property
    def is_full(self) -> bool:
        """Whether it is a full control."""
        return self.per_world == TRIALS_PER_WORLD


def control_settings(settings: AuditSettings[TwoWorlds]) -> AuditSettings[ControlGame]:
    """The settings of a full control: 60 trials, the same rules, one analysis, no secret."""
    same = {field.name: getattr(settings.game, field.name) for field in fields(settings.game)}
    own = {"shadow_models": 2 * TRIALS_PER_WORLD, "sequential": False, "secret": None}
    game = ControlGame(**same | own)
    return AuditSettings(game=game, confidence=CONFIDENCE)


def first_control_settings(settings: AuditSettings[TwoWorlds]) -> AuditSettings[ControlGame]:
    """The settings of a small control, run first: both together cost at most half the audit.

    For the smallest audits they may cost as much. So few trials show only a gross fault, and only
    if the attack separates them perfectly: the confidence is the strictest at which a perfect
    separation still proves a leak. One attack is selected, so no error probability has to be
    divided. A control that does not pass is run in full before it is judged, so small controls
    never invalidate a sound audit more often.

    Args:
        settings: Settings of the audit.

    Returns:
        A full control's settings if the audit is large enough for it.
    """
    full = control_settings(settings)
    # Of each world, if both controls together have as many trials as the audit.
    most = settings.game.shadow_models // (len(World) * len(CONTROLS))
    per_world = min(most, max(FEWEST_PER_WORLD, most // 2))
    if per_world >= TRIALS_PER_WORLD:
        return full
    small = full.with_game(shadow_models=2 * per_world, multiplicity=Multiplicity.SELECT)
    by_chance = 0.5**small.game.scored  # the probability of a perfect separation without any leak
    return replace(small, confidence=min(CONFIDENCE, 1 - BEYOND_CHANCE * by_chance))


def control_generator(role: Role, audit: TwoWorldSpec) -> bytes:
    """The pickled generator of a control, built for this audit's schema and target."""
    offered = {
        "schema": audit.table.schema,
        "target": audit.copied,
        "repeats": audit.target_repeats,
        "released_facts": audit.game.view.released_facts,
    }
    by_time = role is Role.POSITIVE_CONTROL and audit.is_timed
    name = LEAKS_BY_TIME if by_time else GENERATORS_OF[role]
    schema = audit.table.schema
    if isinstance(schema, LinkedTables):
        built: object = _build_linked(name, schema, audit, offered)
    else:
        built = build(name, GENERATORS, given={}, offered=offered)
    pickled: bytes = cloudpickle.dumps(built)
    return pickled


def _build_linked(
    name: str, schema: LinkedTables, audit: TwoWorldSpec, offered: Mapping[str, object]
) -> EachTable:
    """A control of several tables: the root's rows come from that of one table, the rest is null.

    Args:
        name: The registered generator of the control.
        schema: The public schema.
        audit: The audit.
        offered: As for one table.
    """
    own = schema.handed(audit.copied)[schema.root]
    generators: dict[str, Any] = {}
    for table, part in schema.tables.items():
        is_root = table == schema.root
        generators[table] = build(
            name if is_root else GENERATORS_OF[Role.NULL_CONTROL],
            GENERATORS,
            given={},
            offered={**offered, "schema": part, "target": part.canonical(own) if is_root else None},
        )
    sizes = {table: len(rows) for table, rows in schema.handed(audit.table.data).items()}
    return EachTable(schema, generators, sizes)


@dataclass(frozen=True)
class EachTable:
    """A generator for each table, which sees that table alone and without keys.

    Attributes:
        schema: The public schema.
        generators: The generators by table.
        sizes: Rows of each table, the same in both worlds; children keep their number a parent.
    """

    schema: LinkedTables
    generators: Mapping[str, Generator]
    sizes: Mapping[str, int]

    def fit(self, data: dict[str, pd.DataFrame], *, seed: int | None) -> EachTableModel:
        """Trains each generator on its table."""
        models = {
            name: train(generator, data[name][self.schema.tables[name].names], seed=seed)
            for name, generator in self.generators.items()
        }
        return EachTableModel(self, models)


@dataclass(frozen=True)
class EachTableModel:
    """A model of each table."""

    generator: EachTable
    models: Mapping[str, Model]

    def sample(self, n: int, *, seed: int | None) -> dict[str, pd.DataFrame]:
        """Draws `n` rows of the root and rows of the other tables that refer to random ones."""
        schema, sizes = self.generator.schema, self.generator.sizes
        rows = {name: -(-size * n // sizes[schema.root]) for name, size in sizes.items()}
        tables = {}
        for name in schema.order:
            rng = rng_of(seed, f"links of {name}")
            link, own = schema.link_of(name), schema.key_of(name)
            keys = {} if own is None else {own: np.arange(rows[name])}
            if link is not None:
                keys[link.column] = rng.integers(rows[link.parent], size=rows[name])
            tables[name] = self.models[name].sample(rows[name], seed=seed).assign(**keys)
        return tables


def _none_of(attacks: int) -> str:
    return "the attack does not see" if attacks == 1 else f"none of the {attacks} attacks sees"


def judge_control(
    role: Role,
    best: Evaluation | None,
    game: ControlGame,
    *,
    attacks: int,
    highest: float,
    confidence: float,
    is_timed: bool = False,
) -> ControlOutcome:
    """Whether a control ended as it must.

    Args:
        role: Which control.
        best: The attack with the largest bound; None if too few trials finished.
        game: The control's game.
        attacks: Number of the audit's attacks.
        highest: The largest epsilon that the control could prove.
        confidence: Confidence of its bounds.
        is_timed: Whether the positive control leaks by time.

    Returns:
        The result.
    """
    if best is None:
        return unfinished_control(role, "too few of its models finished", highest=highest)
    counts = best.counts
    scored = counts.n_in + counts.n_out
    right = scored - counts.false_negatives - counts.false_positives
    perfect = right == scored and math.isclose(best.proved, highest)
    most = ", the most that so few can prove" if perfect else ""
    low, high = auc_by_chance(counts.n_in, counts.n_out)
    by_chance = f"by chance {low:.2f} to {high:.2f} in 95 % of cases"
    seen = (
        f"AUC {auc_text(best.auc)}, {by_chance}"
        if round(low, 2) > 0.0
        else f"{{bound}}; too few models to judge by AUC ({auc_text(best.auc)}, {by_chance})"
    )
    entry = deciding(best.bounds)
    level = f" at {percent(float(rounded_down(confidence)))} confidence"
    level += f", {entry.label}" if entry else ""
    leaks = "takes longer for the target" if is_timed else "copies the target"
    blind = (
        f"{_none_of(attacks)} that through the load of this machine, so that finding nothing would "
        "say nothing about time"
        if is_timed
        else f"{_none_of(attacks)} copies of this target, so that finding nothing would say "
        "nothing about copies"
    )
    outcome = judge(
        role,
        best.proved,
        auc=best.auc,
        highest=highest,
        hidden=f"nothing was found in a generator that ignores its data: {seen}",
        detected="a generator that ignores its data seems to leak ({bound}): the two worlds differ "
        "in more than the record",
        caught=f"a generator that {leaks} was caught: {right} of {scored} scored models "
        f"right{most} ({{bound}}{level})",
        missed=f"a generator that {leaks} was not caught ({{bound}}{level}): {blind}",
    )
    if game.is_full:
        return outcome
    small = (
        f"; {game.shadow_models} models instead of the {len(World) * TRIALS_PER_WORLD} of a "
        "full control show gross faults only"
    )
    return replace(outcome, detail=outcome.detail + small)
