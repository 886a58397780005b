"""The game that rows play where nothing else decides: won by leaks alone."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FloatArray, World
from dpaudit.replaying.rows import (
    WorldsIdentified,
    features,
    guesses_needed,
    separating,
    worlds_identified,
)
from samples import game_view

SCHEMA = Schema.from_document(
    {"columns": [{"name": "x", "kind": "continuous", "lower": -9.0, "upper": 9.0}]}
)


VIEW = game_view(SCHEMA, pd.DataFrame({"x": [0.0]}))


def seen(values: FloatArray) -> FloatArray:
    """The features of a synthetic table."""
    return features(pd.DataFrame({"x": values}), VIEW)


def played(shift: float, seed: int) -> tuple[WorldsIdentified | None, int]:
    """A game on rows whose mean follows the world, and how many fits it took."""
    rng, fits = np.random.default_rng(seed), 0

    def fitted(world: World) -> FloatArray:
        nonlocal fits
        fits += 1
        middle = shift if world is World.IN else 0.0
        return seen(rng.normal(middle, 1.0, size=20))

    told = worlds_identified(fitted, rng, epsilon=1.0, delta=1e-5, confidence=0.975)
    return told, fits


def test_as_few_guesses_are_made_as_can_refute_the_claim() -> None:
    assert (
        guesses_needed(epsilon=1.0, delta=0.0, confidence=0.975) == 12
    )  # (e / (1 + e))^12 = 2.3 %
    assert guesses_needed(epsilon=1.0, delta=1e-5, confidence=0.975) == 12
    assert guesses_needed(epsilon=5.0, delta=0.0, confidence=0.975) is None


def test_rows_that_tell_the_worlds_apart_refute_the_claim() -> None:
    told, fits = played(6.0, seed=1)
    assert told is not None
    assert (told.guesses, fits) == (12, 20)
    assert 1.0 < told.proved < 1.1


def test_rows_that_say_nothing_hardly_ever_win() -> None:
    games = [played(0.0, seed) for seed in range(60)]
    assert not any(told for told, _ in games)  # each wins with probability 2^-12
    assert np.mean([fits for _, fits in games]) < 11  # the first wrong guess ends it


def test_rows_of_a_leak_as_large_as_the_claim_win_as_seldom_as_they_may() -> None:
    rng = np.random.default_rng(5)

    def fitted(world: World) -> FloatArray:
        kept = rng.random() < np.e / (1.0 + np.e)
        return seen(np.full(5, float((world is World.IN) == kept)))

    won = sum(
        worlds_identified(fitted, rng, epsilon=1.0, delta=0.0, confidence=0.975) is not None
        for _ in range(200)
    )
    assert won <= 13  # 5 are allowed


def test_a_failing_fit_ends_the_game() -> None:
    game = worlds_identified(
        lambda world: None,
        np.random.default_rng(1),
        epsilon=1.0,
        delta=0.0,
        confidence=0.975,
    )
    assert game is None


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_rule_votes_with_every_number_that_separates(sign: float) -> None:
    inside, outside = sign * np.array([[1.0, 0.0], [2.0, 5.0]]), np.zeros((2, 2))
    vote = separating(inside, outside)
    assert vote is not None
    assert vote(sign * np.array([1.5, -9.0])) > 0 > vote(sign * np.array([-0.5, 9.0]))
    assert separating(outside, outside) is None
