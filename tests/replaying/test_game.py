"""The coin game of a replay: at the claim it is lost as often as it may, and leaks are found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from dpaudit.plugins.protocols import World
from dpaudit.replaying.coins import CoinGame, run_game
from pretended_fits import Draws, PretendedFits


def game_of(
    mechanism: Callable[[Draws], Mapping[str, Any]],
    *,
    epsilon: float = 1.0,
    delta: float = 0.0,
    seed: int = 0,
    budget: int = 400,
) -> CoinGame:
    """The game of a mechanism, at error probability .05."""
    fits = PretendedFits(mechanism, epsilon=epsilon, delta=delta, seed=seed)
    return run_game(fits, alpha=0.05, budget=budget, seconds=60, without=frozenset())


def randomised_response(draws: Draws) -> Mapping[str, Any]:
    """One bit at exactly epsilon 1."""
    keeps = draws.rng.random() < np.e / (1 + np.e)
    return {"bit": [float((draws.world is World.IN) == keeps)]}


def laplace(draws: Draws) -> Mapping[str, Any]:
    """Two noisy counts at exactly epsilon 1."""
    return {"h": draws.add([5.0, 7.0], [5.0, 6.0], scale=1.0)}


def revealing(draws: Draws) -> Mapping[str, Any]:
    """Nothing, but with probability .05 everything: (0, .05)."""
    number = draws.rng.laplace()
    if draws.rng.random() < 0.05:
        number = 1000.0 if draws.world is World.IN else -1000.0
    return {"h": [number]}


AT_THE_CLAIM = [(randomised_response, 1.0, 0.0), (laplace, 1.0, 0.0), (revealing, 0.01, 0.05)]


@pytest.mark.parametrize("case", AT_THE_CLAIM, ids=["bit", "laplace", "delta"])
@pytest.mark.parametrize(
    "games", [pytest.param(20, id="few"), pytest.param(400, marks=pytest.mark.slow, id="many")]
)
def test_at_the_claim_no_more_games_are_won_than_may_be(case: Any, games: int) -> None:
    mechanism, epsilon, delta = case
    won = sum(
        game_of(mechanism, epsilon=epsilon, delta=delta, seed=seed, budget=200).guesses.decided
        for seed in range(games)
    )
    assert won <= 2 + 0.05 * games


def test_nothing_is_guessed_of_a_release_that_ignores_the_record() -> None:
    games = [game_of(lambda draws: {"h": draws.rng.laplace(size=5)}, seed=one) for one in range(5)]
    assert not any(one.guesses.decided for one in games)


def test_a_sure_leak_is_decided_by_some_two_dozen_guesses() -> None:
    game = game_of(lambda draws: {"h": draws.add([9.0], [0.0], scale=0.2)})
    assert game.guesses.decided
    assert game.guesses.right == game.guesses.guesses <= 28
    assert 1.0 < game.bound < 45
    assert game.guesses.score == "`h`"


def test_a_leak_of_twice_the_claim_is_found_by_passing_over_unsure_fits() -> None:
    games = [
        game_of(lambda draws: {"h": draws.add([5.0, 7.0], [5.0, 6.0], scale=0.5)}, seed=seed)
        for seed in range(8)
    ]
    assert sum(one.guesses.decided for one in games) >= 4
    assert all(one.guesses.guesses < one.guesses.fits for one in games)


def test_noise_that_is_used_twice_cancels_in_a_difference() -> None:
    def twice(draws: Draws) -> Mapping[str, Any]:
        [noise] = draws.add([0.0], [0.0], scale=20.0)
        one = draws.world is World.IN
        return {"h": [3.0 + noise, 5.0 + one + noise, 2.0 + noise]}

    game = game_of(twice)
    assert game.guesses.decided
    assert " - " in game.guesses.score


def test_a_place_that_only_one_world_has_is_seen() -> None:
    def keys(draws: Draws) -> Mapping[str, Any]:
        noise = draws.rng.laplace(size=3)
        return {"a": noise} if draws.world is World.OUT else {"a": noise, "b": [1.0]}

    game = game_of(keys)
    assert game.guesses.decided
    assert "`b`" in game.guesses.score


def test_a_claim_in_mu_is_played_too() -> None:
    fits = PretendedFits(lambda draws: {"h": draws.add([9.0], [0.0], scale=0.2)}, epsilon=1.0)
    from dpaudit.model.claim import GaussianClaim, Neighbours

    fits.spec.claim = GaussianClaim(mu=1.0, neighbours=Neighbours.ADD_REMOVE)
    game = run_game(fits, alpha=0.05, budget=200, seconds=60, without=frozenset())
    assert game.guesses.decided
    assert game.bound > 1.0
