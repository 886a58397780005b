"""The study of mechanisms rests on claims that are met exactly: events whose odds are e."""

from __future__ import annotations

import math

import numpy as np
import pytest

from reports.mechanisms.literature import EXACT, MECHANISMS, Mechanism

DRAWS = 400_000
[RAPPOR] = [case for case in MECHANISMS if case.what.startswith("RAPPOR")]


@pytest.mark.parametrize("case", [*EXACT, RAPPOR], ids=lambda case: case.what)
def test_an_event_meets_the_claim_exactly(case: Mechanism) -> None:
    rng = np.random.default_rng(1)
    shares = []
    for given in case.inputs:
        outputs = case.function(given, rng, DRAWS)
        is_in = outputs == 0 if outputs.ndim == 1 else (outputs[:, 0] == 1) & (outputs[:, 1] == 0)
        shares.append(is_in.mean())
    assert math.log((shares[0] - case.delta) / shares[1]) == pytest.approx(case.epsilon, abs=0.02)
