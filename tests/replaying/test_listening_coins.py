"""Coins: choices with probabilities from the data, and draws that are equal in both worlds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

from one_world import Heard, OneWorld, one_world

WEIGHTS = [1.0 / 8.0, 0.5, 3.0 / 8.0]


@pytest.fixture(scope="module")
def world() -> Iterator[OneWorld]:
    with one_world("heard_code") as found:
        yield found


def asked(world: OneWorld, name: str) -> Heard:
    """What is asked if every line that draws or compares depends on the data."""
    lines = range(1, 400)
    files = {one[0] for one in world.fit(name, 4.0).end["draws"]}
    return world.fit(name, 4.0, asked=[[file, line] for file in files for line in lines])


def test_probabilities_are_noted_and_asked_where_they_differ(world: OneWorld) -> None:
    assert "choose" in dict(world.fit("choice", 4.0).digests)
    [question] = asked(world, "choice").of("choose")
    assert question["weights"] == pytest.approx(WEIGHTS)


def test_a_draw_looked_up_in_cumulated_probabilities_is_a_choice(world: OneWorld) -> None:
    questions = asked(world, "cumulated").of("choose")
    assert len(questions) == 5
    for one in questions:
        weights = one["weights"] / sum(one["weights"])
        assert weights[:3] == pytest.approx(WEIGHTS)


def test_comparisons_of_one_draw_narrow_its_interval(world: OneWorld) -> None:
    found = asked(world, "loop").of("coin")
    assert len({int(one["name"]) for one in found}) == 1
    assert [float(one["limit"][0]) for one in found] == pytest.approx(
        [1 / 8, 5 / 8, 1][: len(found)]
    )
    for before, after in pairwise(found):
        assert after["low"] == before["limit"]


def test_randomised_response_asks_once_for_all(world: OneWorld) -> None:
    [question] = asked(world, "response").of("coin")
    assert question["limit"].tolist() == [0.4] * 5


def test_a_draw_from_a_range_is_a_coin_in_it(world: OneWorld) -> None:
    [question] = asked(world, "in_range").of("coin")
    assert question["limit"] == pytest.approx([0.75])
    assert world.fit("in_range", 4.0, edge=0.76).result == "False"
    assert world.fit("in_range", 4.0, edge=0.74).result == "True"


def test_whole_words_are_coins(world: OneWorld) -> None:
    first, second = asked(world, "whole_words").of("coin")
    assert first["limit"] == pytest.approx([0.4], abs=1e-5)
    assert second["limit"] == pytest.approx([0.4], abs=1e-5)


@pytest.mark.parametrize(("edge", "place"), [(1e-9, 0), (1.0 - 1e-9, 2)])
def test_at_an_edge_every_draw_is_there(world: OneWorld, edge: float, place: int) -> None:
    assert world.fit("choice", 4.0, edge=edge).result == str(place)
    assert world.fit("loop", 4.0, edge=edge).result == str(place)
    expected = place == 0
    assert world.fit("whole_words", 4.0, edge=edge).result == str((expected, expected))


@pytest.mark.parametrize("name", ["plain_coins", "cumulated", "loop", "response", "whole_words"])
def test_coins_are_equal_in_both_worlds_and_draw_by_themselves_in_natural_fits(
    world: OneWorld, name: str
) -> None:
    first, second = (world.fit(name, 4.0, seed=5) for _ in range(2))
    assert first.result == second.result
    natural = world.fit(name, 4.0, seed=5, mode="natural")
    assert natural.failure is None
    assert not natural.asked
    assert natural.draws == first.draws
    assert {world.fit(name, 4.0, mode="natural").result for _ in range(20)} != {first.result}
