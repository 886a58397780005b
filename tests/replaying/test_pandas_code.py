"""Noise added to series and frames of pandas is followed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpaudit
from dpaudit.results.verdict import Verdict

pytestmark = pytest.mark.usefixtures("worlds")

CELLS = 4
SCHEMA = dpaudit.Schema.from_document(
    {"columns": [{"name": "a", "kind": "integer", "lower": 0, "upper": CELLS - 1}]}
)


def table() -> pd.DataFrame:
    """Forty records, of which the last is alone in its cell."""
    return pd.DataFrame({"a": np.append(np.arange(39) % (CELLS - 1), CELLS - 1)})


def counted(data: pd.DataFrame) -> pd.Series:
    """Records of each cell."""
    return data["a"].value_counts().reindex(range(CELLS), fill_value=0)


def added(data: pd.DataFrame, rng: np.random.Generator, scale: float) -> Any:
    return (counted(data) + rng.laplace(0.0, scale, size=CELLS)).clip(lower=0)


def around(data: pd.DataFrame, rng: np.random.Generator, scale: float) -> Any:
    return rng.laplace(counted(data), scale)


def applied(data: pd.DataFrame, rng: np.random.Generator, scale: float) -> Any:
    return counted(data).apply(lambda count: count + rng.laplace(0.0, scale))


def in_a_column(data: pd.DataFrame, rng: np.random.Generator, scale: float) -> Any:
    frame = counted(data).rename("n").reset_index()
    frame["noisy"] = frame["n"] + rng.laplace(0.0, scale, size=len(frame))
    frame.loc[frame["noisy"] < 0, "noisy"] = 0.0
    return frame["noisy"].to_numpy()


class Counts:
    """Releases noisy counts as shares of rows."""

    def __init__(self, noisy: Callable[..., Any], scale: float) -> None:
        self.noisy, self.scale = noisy, scale

    def fit(self, data: pd.DataFrame, *, seed: int) -> Any:
        """Counts."""
        self.shares = self.noisy(data, np.random.default_rng(seed), self.scale)
        return self

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Rows by these shares."""
        shares = np.clip(np.asarray(self.shares, dtype=float), 1e-9, None)
        drawn = np.random.default_rng(seed).choice(CELLS, size=n, p=shares / shares.sum())
        return pd.DataFrame({"a": drawn})


@pytest.mark.parametrize(
    "noisy",
    [
        pytest.param(added, marks=pytest.mark.ci),
        pytest.param(around, marks=pytest.mark.ci),
        pytest.param(applied, marks=pytest.mark.ci),
        in_a_column,
    ],
    ids=lambda one: one.__name__,
)
def test_counts_cost_what_their_noise_allows(noisy: Callable[..., Any]) -> None:
    for scale, verdict in ((1.0, Verdict.CONSISTENT), (0.5, Verdict.VIOLATION)):
        record = dpaudit.replay(
            Counts(noisy, scale),
            table(),
            schema=SCHEMA,
            epsilon=1.0,
            delta=0.0,
            replays=3,
        )
        assert record.verdict is verdict, str(record)
        assert record.target == "row:39"  # alone in its cell
        assert record.proved == pytest.approx(1.0 / scale)


def evaluated(data: pd.DataFrame, rng: np.random.Generator, scale: float) -> Any:
    frame = pd.DataFrame({"n": counted(data).to_numpy(), "z": rng.laplace(0.0, scale, size=CELLS)})
    return frame.eval("n + z").tolist()


def test_noise_added_out_of_sight_is_secret_and_accuses_nobody() -> None:
    """The rows alone, given the noise, lose far more than they do when it is secret."""
    record = dpaudit.replay(
        Counts(evaluated, 20.0), table(), schema=SCHEMA, epsilon=0.05, rows=5000, replays=6
    )
    assert record.verdict is Verdict.INCONCLUSIVE
    assert "that may be secret" in record.reasons[0]


def test_nothing_is_proved_given_noise_that_may_be_secret() -> None:
    """Below the claim, too: the rows' loss given the noise is no bound."""
    record = dpaudit.replay(
        Counts(evaluated, 20.0), table(), schema=SCHEMA, epsilon=1e9, rows=5000, replays=6
    )
    assert record.verdict is Verdict.CONSISTENT
    assert record.proved == 0.0
    assert record.reasons[1].startswith(
        "nothing is proved, because what is released depends on coins"
    )
