"""The one-run game: its interface to the rest of an audit."""

from __future__ import annotations

from dpaudit.auditing.controls import CONTROLS
from dpaudit.auditing.game import GameKind, TrainingCount
from dpaudit.auditing.one_run.session import OneRunSession
from dpaudit.auditing.one_run.settings import OneRun
from dpaudit.auditing.one_run.spec import build_one_run
from dpaudit.auditing.settings import AuditSettings


def _trainings(settings: AuditSettings[OneRun], together: bool) -> TrainingCount:
    del settings, together
    return TrainingCount(models=1, repeats=0, controls=len(CONTROLS), alone=True)


KIND = GameKind(build=build_one_run, session=OneRunSession, trainings=_trainings)
