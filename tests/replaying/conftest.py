"""What tests of replays share."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def few_pilots(monkeypatch: pytest.MonkeyPatch) -> None:
    """As few replays as of a slow generator: 40 show no more of these."""
    monkeypatch.setattr("dpaudit.replaying.run.MOST_PILOTS", 4)
