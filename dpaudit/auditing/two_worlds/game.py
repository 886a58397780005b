"""The game of two worlds: its interface to the rest of an audit."""

from __future__ import annotations

from pathlib import Path

from dpaudit.auditing.access import attacks_with_access
from dpaudit.auditing.controls import CONTROLS
from dpaudit.auditing.game import GameKind, TrainingCount
from dpaudit.auditing.settings import AuditSettings
from dpaudit.auditing.spec import AuditSpec
from dpaudit.auditing.two_worlds.after_replay import after_a_replay
from dpaudit.auditing.two_worlds.controls import first_control_settings
from dpaudit.auditing.two_worlds.pairs import audited_table
from dpaudit.auditing.two_worlds.session import TwoWorldSession
from dpaudit.auditing.two_worlds.settings import TwoWorlds
from dpaudit.auditing.two_worlds.spec import build_two_worlds, with_visible
from dpaudit.auditing.two_worlds.target_search.search import find_target
from dpaudit.auditing.two_worlds.target_search.spec import TargetSearchSpec, build_target_search
from dpaudit.auditing.two_worlds.worst_case_search.search import find_worst_case
from dpaudit.auditing.two_worlds.worst_case_search.spec import (
    MOST_CANDIDATES,
    WorstCaseSearchSpec,
    build_worst_case_search,
    per_world,
    rounds,
)
from dpaudit.game.flight import Engine, OnProgress
from dpaudit.model.choices import VULNERABLE, WorstCase
from dpaudit.model.tables import Table
from dpaudit.plugins.named import NamedGenerator
from dpaudit.plugins.protocols import World


def _build(generator: object, table: Table, settings: AuditSettings[TwoWorlds]) -> AuditSpec:
    """The audit, or the search for its target or its worst case that comes first."""
    if settings.game.worst_case is WorstCase.SEARCH:
        return build_worst_case_search(generator, table, settings)
    build = build_target_search if settings.game.target == VULNERABLE else build_two_worlds
    return build(generator, table, settings)


def _trainings(settings: AuditSettings[TwoWorlds], together: bool) -> TrainingCount:
    """If models are trained together, one of each world is repeated; not if they are timed."""
    game = settings.game
    control = first_control_settings(settings).game.shadow_models
    return TrainingCount(
        models=game.shadow_models,
        repeats=len(World) if together and not game.is_timed else 1,
        controls=len(CONTROLS) * control,
        searches=_searches(game),
        at_most=game.sequential,
    )


def _searches(game: TwoWorlds) -> int:
    """Models of the search before the audit, for a worst case more than few shadow models."""
    if not game.searches:
        return 0
    if game.worst_case is not WorstCase.SEARCH:
        return game.shadow_models
    return 2 * per_world(MOST_CANDIDATES, rounds(MOST_CANDIDATES, game.shadow_models))


def _prepared(
    spec: AuditSpec, folder: Path, engine: Engine, timeout: float | None, progress: OnProgress
) -> AuditSpec:
    """The audit, once its target or its worst case is found."""
    if isinstance(spec, TargetSearchSpec):
        return find_target(spec, folder, engine=engine, trial_timeout=timeout, on_progress=progress)
    if isinstance(spec, WorstCaseSearchSpec):
        return find_worst_case(
            spec, folder, engine=engine, trial_timeout=timeout, on_progress=progress
        )
    return spec


def _visible(named: NamedGenerator, settings: AuditSettings[TwoWorlds]) -> AuditSettings[TwoWorlds]:
    game = settings.game
    return with_visible(settings, attacks_with_access(named, game.attacks, game.access).attacks)


KIND = GameKind(
    build=_build,
    session=TwoWorldSession,
    trainings=_trainings,
    table=audited_table,
    prepared=_prepared,
    after_replay=after_a_replay,
    visible=_visible,
)
