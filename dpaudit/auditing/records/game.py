"""The game of many records: its interface to the rest of an audit."""

from __future__ import annotations

from dpaudit.auditing.controls import CONTROLS
from dpaudit.auditing.game import GameKind, TrainingCount
from dpaudit.auditing.records.controls import control_settings
from dpaudit.auditing.records.session import RecordsSession
from dpaudit.auditing.records.settings import ManyRecords
from dpaudit.auditing.records.spec import build_records
from dpaudit.auditing.settings import AuditSettings


def _trainings(settings: AuditSettings[ManyRecords], together: bool) -> TrainingCount:
    del together
    control = control_settings(settings).game.shadow_models
    models = settings.game.shadow_models
    return TrainingCount(models, repeats=1, controls=len(CONTROLS) * control)


KIND = GameKind(build=build_records, session=RecordsSession, trainings=_trainings)
