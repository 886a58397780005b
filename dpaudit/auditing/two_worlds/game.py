"""The game of two worlds, as the rest of an audit needs it."""

from __future__ import annotations

from dpaudit.auditing.controls import CONTROLS
from dpaudit.auditing.game import GameKind, TrainingCount
from dpaudit.auditing.settings import AuditSettings
from dpaudit.auditing.spec import AuditSpec
from dpaudit.auditing.two_worlds.controls import first_control_settings
from dpaudit.auditing.two_worlds.session import TwoWorldSession
from dpaudit.auditing.two_worlds.spec import build_two_worlds
from dpaudit.auditing.two_worlds.target_search.spec import build_target_search
from dpaudit.model.choices import VULNERABLE
from dpaudit.model.tables import Table
from dpaudit.plugins.protocols import World


def _build(generator: object, table: Table, settings: AuditSettings) -> AuditSpec:
    """The audit, or the search for its target that comes first."""
    build = build_target_search if settings.target == VULNERABLE else build_two_worlds
    return build(generator, table, settings)


def _trainings(settings: AuditSettings, together: bool) -> TrainingCount:
    """Of models that are trained together, one of each world is repeated."""
    control = first_control_settings(settings).shadow_models
    repeats = len(World) if together else 1
    return TrainingCount(settings.shadow_models, repeats, controls=len(CONTROLS) * control)


TWO_WORLDS = GameKind(build=_build, session=TwoWorldSession, trainings=_trainings)
