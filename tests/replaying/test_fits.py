"""The fits of a replay: their seeds, their numbers, and the processes that they run in."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpaudit.replaying.processes import WorldProcess
from listened import CELLS, Mechanism, line_of, replayed

pytestmark = pytest.mark.usefixtures("worlds")


def little_noise(counts: Any, rng: Any) -> Any:
    return counts + rng.laplace(0.0, 0.1, CELLS)


def test_every_fit_has_a_seed_of_its_own_and_so_have_its_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Small or shared seeds would make pads and noise known."""
    seen: list[tuple[int, int]] = []
    fit = WorldProcess.fit

    def spied(process: Any, table: Any, **given: Any) -> Any:
        seen.append((given["seed"], given["sample_seed"]))
        return fit(process, table, **given)

    monkeypatch.setattr(WorldProcess, "fit", spied)
    record = replayed(little_noise, fits=1)
    assert record.fits == len(seen)
    seeds = Counter(seen)
    assert len(seeds) > 40
    # both worlds of a pair have the same, and one pair is replayed three times again
    assert sorted(seeds.values())[-2:] == [2, 8]
    firsts, seconds = zip(*seeds, strict=True)
    assert len({*firsts, *seconds}) == 2 * len(seeds)
    assert 0 <= min(firsts) < 2**29 < max(firsts) < 2**31


def test_the_model_of_a_generator_that_returns_itself_is_what_it_holds() -> None:
    class Itself(Mechanism):
        def fit(self, data: pd.DataFrame, *, seed: int) -> Any:
            counts = np.bincount(data["a"], minlength=CELLS)
            self.counts = counts
            self.noisy = counts + np.random.default_rng(seed).laplace(0.0, 1.0, CELLS)

        def sample(self, n: int, *, seed: int) -> pd.DataFrame:
            return pd.DataFrame({"a": np.zeros(n, dtype=int)})

    record = replayed(Itself(little_noise))
    assert record.stored[0].place == "model.counts"
    [line] = record.ledger
    assert line.place == line_of(Itself, "laplace")
