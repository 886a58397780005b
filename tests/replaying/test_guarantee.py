"""The levels that replays prove: what is sooner known of them is never wrong."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit.model.currencies import CurveClaim, CurvePoint
from dpaudit.replaying.checks import redraws_of_coins
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
        group = Replays(*(one[None] for one in replays))
        points = [one for one in guarantee.points[::3] if one < 5.0]
        proved = {at: guarantee.proved(replays, at=at, confidence=0.95) for at in points}
        near = [factor * max(proved.values()) for factor in (0.99, 1.01)]
        for level in (-np.inf, 0.0, 0.3, *near, 1.0, 3.0):
            may = guarantee.promising(points, group, level, confidence=0.95)
            assert may == [at for at in points if level <= 0 or proved[at] > level]
            seen |= {(level > 0, at in may) for at in points}
    assert seen == {(True, True), (True, False), (False, True)}


def test_half_of_the_groups_decide() -> None:
    shown, none = np.full(20, 9.0), np.full(20, -9.0)
    for guarantee in (EpsilonReplays(1.0, 1e-2), GaussianReplays(1.0)):
        for losses, promising in (([shown, none], True), ([shown, none, none], False)):
            groups = Replays(np.array(losses), np.zeros((len(losses), 20)))
            found = guarantee.promising([1.0], groups, 0.5, confidence=0.95)
            assert found == [1.0] * promising


@pytest.mark.parametrize(
    ("guarantee", "chance"),
    [
        (EpsilonReplays(1.0, 0.0), 0.26894),
        (EpsilonReplays(1.0, 0.1), 0.24205),
        (GaussianReplays(1.0), 0.30854),
        (ConcentratedReplays(0.5), 0.22798),  # of its curve, which is an upper bound
    ],
)
def test_coins_are_drawn_again_until_one_that_excuses_a_difference_would_show(
    guarantee: ReplayGuarantee, chance: float
) -> None:
    """Randomised response lies with that probability; for mu it is the standard normal's."""
    assert guarantee.rarest_excuse == pytest.approx(chance, abs=1e-4)
    tries = redraws_of_coins(guarantee, 0.95)
    assert (1.0 - chance) ** tries <= 0.05 < (1.0 - chance) ** (tries - 1)
