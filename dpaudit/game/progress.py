"""The progress of a run, as its callback receives it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from dpaudit.game.trial import Role


class TrialProgress(NamedTuple):
    """How many trials of one role are done.

    Attributes:
        role: What the trials are for.
        done: Trials with an outcome, those of an earlier run of the same audit included.
        total: Trials there will be; fewer may do for a sequential audit.
        failed: Those of the done trials that failed.
    """

    role: Role
    done: int
    total: int
    failed: int


OnProgress = Callable[[TrialProgress], None]
"""Called after every trial, and once before the first."""


def ignore_progress(progress: TrialProgress) -> None:
    """Does nothing with progress: the default callback."""
