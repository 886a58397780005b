"""What tests of replays share."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def few_replays(monkeypatch: pytest.MonkeyPatch) -> None:
    """As few replays as of a slow generator: more show no more here."""
    monkeypatch.setattr("dpaudit.replaying.run.MOST_PILOTS", 4)
    monkeypatch.setattr("dpaudit.replaying.run._ANSWER_EDGES", (30.0, -30.0))
