"""Of a claim without delta, what is rare counts as much as what is common."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpaudit
from dpaudit.replaying import laws
from dpaudit.results.verdict import Verdict

pytestmark = pytest.mark.usefixtures("worlds")

SCHEMA = dpaudit.Schema.from_document(
    {"columns": [{"name": "a", "kind": "integer", "lower": 0, "upper": 2}]}
)
TABLE = pd.DataFrame({"a": np.repeat([0, 1, 2], [40, 10, 10])})
SCALE = 0.8


class Winner:
    """Releases which cell has most records, by noise: another than the first is rare."""

    def __init__(self, law: str, scale: float = SCALE) -> None:
        self.law, self.scale = law, scale

    def fit(self, data: pd.DataFrame, *, seed: int) -> Winner:
        """Selects."""
        counts = np.bincount(data["a"], minlength=3).astype(float)
        noise = getattr(np.random.default_rng(seed), self.law)(0.0, self.scale, size=3)
        self.winner = int(np.argmax(counts + noise))
        return self

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """The cell, again and again."""
        del seed
        return pd.DataFrame({"a": np.full(n, self.winner)})


@pytest.mark.ci
@pytest.mark.parametrize("law", ["gumbel", pytest.param("laplace", marks=pytest.mark.ci)])
def test_a_rare_winner_is_drawn(law: str) -> None:
    """Without the first cell's record, another winner is e^(1 / scale) times as likely."""
    for epsilon, verdict in ((1.1, Verdict.VIOLATION), (1 / SCALE, Verdict.CONSISTENT)):
        record = dpaudit.replay(
            Winner(law), TABLE, schema=SCHEMA, epsilon=epsilon, delta=0.0, target="row:0"
        )
        assert record.verdict is verdict, str(record)
        assert record.proved == pytest.approx(1 / SCALE, rel=0.1)
        assert record.proved <= 1 / SCALE + 1e-9


@pytest.mark.ci
def test_winners_that_are_too_rare_for_a_number_accuse_nobody() -> None:
    record = dpaudit.replay(
        Winner("gumbel", 0.03), TABLE, schema=SCHEMA, epsilon=40.0, target="row:0", replays=4
    )
    assert record.verdict is Verdict.CONSISTENT
    assert record.proved == 0.0


def test_wider_noise_is_possible_noise() -> None:
    one = np.ones(200)
    for law in (
        laws.Laplace(one),
        laws.Geometric(one, 0.5 * one, -1.0),
        laws.DiscreteLaplace(one),
        laws.BoundedLaplace(one, -2.0 * one, 3.0 * one),
    ):
        noise = law.widened(30.0, np.random.default_rng(0), (200,))
        assert np.all(np.isfinite(law.log_density(noise)))
        assert np.max(np.abs(noise)) > np.max(np.abs(law.sample(np.random.default_rng(1), (200,))))


def test_differences_of_geometric_draws_are_followed_in_any_order() -> None:
    class Geometric:
        def fit(self, data: pd.DataFrame, *, seed: int) -> Any:
            rng, p = np.random.default_rng(seed), 1 - np.exp(-0.5)
            counts = np.bincount(data["a"], minlength=3)
            self.counts = counts + rng.geometric(p, 3) - rng.geometric(p, 3)
            return self

        def sample(self, n: int, *, seed: int) -> pd.DataFrame:
            shares = np.clip(self.counts, 1, None)
            drawn = np.random.default_rng(seed).choice(3, n, p=shares / shares.sum())
            return pd.DataFrame({"a": drawn})

    record = dpaudit.replay(Geometric(), TABLE, schema=SCHEMA, epsilon=0.4, replays=2)
    assert record.verdict is Verdict.VIOLATION
    assert record.proved == pytest.approx(0.5)
