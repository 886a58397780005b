"""Draws that are weights of data: random features, the first weights of a network."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpaudit.results.verdict import Verdict
from listened import CELLS, Released, replayed, same_rows

pytestmark = pytest.mark.usefixtures("worlds")

CLAIM = {"epsilon": 4.3772, "delta": 1e-5}
"""What Gaussian noise of mu 1 spends."""


class Features:
    """Random features of the records, summed; noise is on the sums."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> Any:
        rng = np.random.default_rng(seed)
        return Released(self.learn(np.eye(CELLS)[data["a"]], rng), same_rows)

    def learn(self, records: Any, rng: np.random.Generator) -> Any:
        weights = rng.normal(size=(CELLS, 3))
        length = np.sqrt(np.square(weights).sum(axis=1).max())
        return weights, self.of(records, weights).sum(axis=0) / length + self.noise(rng)

    def of(self, records: Any, weights: Any) -> Any:
        return records @ weights

    def noise(self, rng: np.random.Generator) -> Any:
        return rng.normal(size=3)


class Cosines(Features):
    """Of single numbers, as numpy's outer product makes them."""

    def learn(self, records: Any, rng: np.random.Generator) -> Any:
        weights = rng.normal(size=3)
        sums = np.cos(np.outer(records.argmax(axis=1), weights)).sum(axis=0)
        return weights, sums / np.sqrt(3.0) + self.noise(rng)


class Network(Features):
    """Weights of a layer, from which a noisy gradient is taken."""

    def learn(self, records: Any, rng: np.random.Generator) -> Any:
        weights = rng.normal(size=(CELLS, 2))
        for _ in range(2):
            errors = np.tanh(records @ weights)
            gradient = records.T @ (errors / np.sqrt(2.0))
            weights = weights - 0.1 * (gradient + rng.normal(0.0, np.sqrt(2.0), (CELLS, 2)))
        return weights


class Bare(Features):
    """The sums have no noise."""

    def noise(self, rng: np.random.Generator) -> Any:
        return 0.0


class Halved(Features):
    """They have half of it."""

    def noise(self, rng: np.random.Generator) -> Any:
        return rng.normal(0.0, 0.5, 3)


@pytest.mark.parametrize("generator", [Features, Cosines, Network])
def test_weights_that_are_drawn_are_no_noise(generator: Any) -> None:
    record = replayed(generator(), **CLAIM)
    assert record.verdict is Verdict.CONSISTENT, str(record)
    assert record.spent is not None
    assert 0 < record.spent <= CLAIM["epsilon"]


def test_weights_protect_nothing() -> None:
    assert replayed(Bare(), **CLAIM).verdict is Verdict.INCONCLUSIVE
    assert replayed(Halved(), **CLAIM).verdict is Verdict.OVERSPENT
