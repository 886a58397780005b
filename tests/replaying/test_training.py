"""Whole replays of noisy gradient descent by hand: what is put together with a noisy model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpaudit
import listened_training
from dpaudit.replaying.record import ReplayRecord
from dpaudit.results.verdict import Verdict

pytestmark = pytest.mark.usefixtures("worlds")

SCHEMA = dpaudit.Schema.from_document(
    {"columns": [{"name": name, "kind": "continuous", "lower": 0.0, "upper": 1.0} for name in "ax"]}
)


def replayed(name: str, scale: float, replays: int = 4, **given: Any) -> ReplayRecord:
    table = pd.DataFrame(np.random.default_rng(3).random((40, 2)), columns=["a", "x"])
    table.loc[39] = [1.0, 0.0]
    generator = getattr(listened_training, name)(scale)
    return dpaudit.replay(
        generator, table, schema=SCHEMA, replays=replays, target="row:39", **given
    )


@pytest.mark.parametrize(
    "name",
    [
        "ToMeans",
        *(
            pytest.param(name, marks=pytest.mark.ci)
            for name in (
                "ByRows",
                "AroundCentres",
                "ByMatrix",
                "ToQuantile",
                "InTorch",
                "ToMeansInTorch",
                "ByAutograd",
            )
        ),
    ],
)
def test_training_by_hand_is_followed_and_too_little_noise_is_found(name: str) -> None:
    if "Torch" in name or "Auto" in name:
        pytest.importorskip("torch")
    honest = replayed(name, 2.0)
    assert honest.verdict is Verdict.CONSISTENT, str(honest)
    assert honest.computed is not None
    assert 2.5 < honest.computed < 4.379  # not every gradient is clipped
    found = replayed(name, 0.6)
    assert found.verdict is Verdict.VIOLATION, str(found)
    line = found.ledger[0]
    assert (line.law, line.times) == ("gaussian", 4)


def test_what_happens_only_if_coins_draw_this_record_is_tried() -> None:
    assert replayed("OnBatches", 2.0).verdict is Verdict.CONSISTENT
    record = replayed("FromARow", 2.0)
    assert record.verdict is Verdict.INCONCLUSIVE, str(record)
    assert "if coins draw this record" in record.reasons[0]


@pytest.mark.ci
def test_noise_by_inversion_is_followed() -> None:
    honest = replayed("ByInversion", 2.0)
    assert honest.verdict is Verdict.CONSISTENT, str(honest)
    record = replayed("ByInversion", 0.6, replays=10, public_coins=True)
    assert record.verdict is Verdict.VIOLATION, str(record)
    assert record.ledger[0].law == "gaussian"


@pytest.mark.ci
def test_noise_that_goes_through_a_network_and_around_it_is_a_coin() -> None:
    pytest.importorskip("torch")
    assert replayed("AroundTheNetwork", 2.0).verdict is Verdict.CONSISTENT
    assert replayed("AroundTheNetwork", 0.6).verdict is Verdict.VIOLATION
