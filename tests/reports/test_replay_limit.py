"""The limit on the minutes of a study's replays."""

from __future__ import annotations

import time

import pytest

from dpaudit.errors import AttackError
from dpaudit.plugins.foreign import refusing
from reports.replay.kept import ReplayStoppedError, stopped_after


def test_a_limit_that_ends_in_an_attack_is_no_failure_of_the_attack() -> None:
    """The coin game leaves out an attack that fails; it left out the limit, too."""
    with (
        pytest.raises(ReplayStoppedError, match="stopped after"),
        stopped_after(0.001),
        refusing("an attack", as_error=AttackError),
    ):
        time.sleep(5)
