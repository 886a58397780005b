"""The levels that replays prove: what is sooner known of them is never wrong."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit.model.currencies import CurveClaim, CurvePoint
from dpaudit.replaying.guarantee import (
    ConcentratedReplays,
    CurveReplays,
    EpsilonReplays,
    GaussianReplays,
    ReplayGuarantee,
    Replays,
)

CURVE = CurveClaim(points=(CurvePoint(0.5, 0.1), CurvePoint(1.0, 0.01), CurvePoint(3.0, 1e-5)))


@pytest.mark.parametrize(
    "guarantee",
    [
        EpsilonReplays(1.0, 1e-2),
        GaussianReplays(1.0),
        ConcentratedReplays(0.5),
        CurveReplays(CURVE),
    ],
)
def test_replays_may_exceed_exactly_the_levels_below_what_they_prove(
    guarantee: ReplayGuarantee,
) -> None:
    rng, seen = np.random.default_rng(4), set()
    for _ in range(12):
        replays = Replays(rng.normal(2.0, 2.0, size=20), rng.normal(-1.0, 1.0, size=20))
        for at in (one for one in guarantee.points[::3] if one < 5.0):
            proved = guarantee.proved(replays, at=at, confidence=0.95)
            for level in (-np.inf, 0.0, 0.3, 0.99 * proved, 1.01 * proved, 1.0, 3.0):
                may = guarantee.may_exceed(replays, level, at=at, confidence=0.95)
                if level > 0:
                    assert may == (proved > level), (at, level)
                else:
                    assert may
                seen.add((level > 0, may))
    assert seen == {(True, True), (True, False), (False, True)}
