"""Whole replays of matrices in which a draw of noise occurs in several cells."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import dpaudit
import listened_matrices
from dpaudit.replaying.record import ReplayRecord
from dpaudit.results.verdict import Verdict

pytestmark = pytest.mark.usefixtures("worlds")
SCHEMA = dpaudit.Schema.from_document(
    {"columns": [{"name": "x", "kind": "continuous", "lower": 0.0, "upper": 1.0}]}
)


def replayed(name: str, factor: float, replays: int = 20) -> ReplayRecord:
    table = pd.DataFrame({"x": np.random.default_rng(0).uniform(size=40)})
    table.loc[0, "x"] = 1.0
    generator = getattr(listened_matrices, name)(factor)
    return dpaudit.replay(generator, table, schema=SCHEMA, target="row:0", mu=1.0, replays=replays)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("Symmetric", marks=pytest.mark.ci),
        pytest.param("Mirrored", marks=pytest.mark.ci),
        pytest.param("OneForAll", marks=pytest.mark.ci),
        pytest.param("SymmetricAfter", marks=pytest.mark.ci),
        pytest.param("Queried", marks=pytest.mark.ci),
        pytest.param("Cumulated", marks=pytest.mark.ci),
        pytest.param("Correlated", marks=pytest.mark.ci),
        pytest.param("ByMatrix", marks=pytest.mark.ci),
        pytest.param("Centred", marks=pytest.mark.ci),
        pytest.param("TwiceTheNoise", marks=pytest.mark.ci),
        pytest.param("MirroredInTorch", marks=pytest.mark.ci),
        pytest.param("ByMatrixInTorch", marks=pytest.mark.ci),
    ],
)
def test_cells_with_the_same_noise_count_once(name: str) -> None:
    if "Torch" in name:
        pytest.importorskip("torch")
    honest = replayed(name, 1.0)
    assert honest.verdict is Verdict.CONSISTENT, str(honest)
    assert honest.computed == pytest.approx(1.0, abs=1e-6)
    [line] = honest.ledger
    assert line.times <= 2  # one answer; two if its diagonal has other noise than the rest
    assert honest.proved is not None
    assert 0.8 < honest.proved < 1.0
    assert replayed(name, 0.3, replays=4).verdict is Verdict.VIOLATION


@pytest.mark.ci
def test_the_numbers_that_are_read_count_without_the_others() -> None:
    """Of nine noisy cells, six are read; honest code has noise for these alone."""
    assert replayed("OneTriangle", 1.0).verdict is not Verdict.VIOLATION
    record = replayed("OneTriangle", 0.3)
    assert record.verdict is Verdict.VIOLATION, str(record)
    assert record.proved is not None
    assert 2.5 < record.proved < 1.0 / 0.3


def test_a_difference_of_cells_with_the_same_noise_has_none() -> None:
    record = replayed("OneForARow", 10.0)
    assert record.verdict is Verdict.VIOLATION
    assert record.parting is not None
    assert "noise is used a second time" in record.reasons[0]


@pytest.mark.parametrize("name", ["Bare", "Balanced"])
def test_cells_of_which_draws_cancel_have_no_noise(name: str) -> None:
    record = replayed(name, 1.0)
    assert record.verdict is not Verdict.CONSISTENT, str(record)
    assert record.parting is not None or record.not_followed


def test_other_correlated_noise_is_not_followed() -> None:
    record = replayed("CumulatedLaplace", 1.0)
    assert record.verdict is Verdict.INCONCLUSIVE, str(record)
    assert any("more than once" in one for one in record.reasons), str(record)
