"""Noise that code makes by hand, of coins and uniform draws: its law, and what coins may hide."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpaudit
import listened
import listened_coins
from dpaudit.replaying.record import ReplayRecord
from dpaudit.results.verdict import Verdict

pytestmark = pytest.mark.usefixtures("worlds")


def replayed(generator: Any, **given: Any) -> ReplayRecord:
    rng = np.random.default_rng(3)
    cells = np.append(rng.integers(0, listened.CELLS - 1, size=39), listened.CELLS - 1)
    data = pd.DataFrame({"a": cells, "x": np.linspace(0.0, 1.0, 40)})
    return dpaudit.replay(generator, data, **{"replays": 4, "target": "row:39", **given})


@pytest.mark.parametrize("name", ["SignByBranch", "SignByChoice", "ScaleByCoin"])
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.ci)])
def test_a_law_that_follows_a_secret_coin_is_a_mixture_and_no_violation(
    name: str, seed: int
) -> None:
    """Given the coin, the noise lies on one side of 0 or is too narrow: without it, it suffices."""
    record = replayed(getattr(listened_coins, name)(), seed=seed, replays=8)
    assert record.verdict is not Verdict.VIOLATION, str(record)
    assert record.proved == 0.0
    assert "even if all coins are public" not in str(record.reasons)
    assert "depends on coins (listened_coins.py" in str(record.reasons)
