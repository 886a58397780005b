"""Which noise a world hears in code that draws with torch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from one_world import OneWorld, one_world

pytest.importorskip("torch")
GAUSSIAN = ["gaussian"]


@pytest.fixture(scope="module")
def world() -> Iterator[OneWorld]:
    with one_world("heard_torch") as found:
        yield found


@pytest.mark.parametrize(
    ("name", "answers"),
    [
        ("added_to_gradients", [(GAUSSIAN, [12.0] * 2, [0.5] * 2)]),
        ("like_opacus", [(GAUSSIAN, [12.0] * 2, [1.5] * 2)]),
        ("assigned_first", [(GAUSSIAN, [4.0] * 2, [3.0] * 2)]),
        (
            "moved",
            [
                (GAUSSIAN, [4.0] * 2, [1.0] * 2),
                (["exponential"], [4.0] * 2, [0.5] * 2),
                (["exponential"] * 2, [4.0], pytest.approx([1.5 * 2**0.5])),
            ],
        ),
        ("from_numpy", [(["laplace"], [4.0] * 2, [1.0] * 2)]),
        ("distributions", [(["laplace"], [4.0], [2.0]), (GAUSSIAN, [4.0], [3.0])]),
    ],
)
@pytest.mark.parametrize("mode", ["lockstep", "natural"])
def test_noise_is_followed_to_the_tensors_that_it_is_added_to(
    world: OneWorld, name: str, answers: list[Any], mode: str
) -> None:
    found = world.fit(name, 4.0, mode=mode)
    assert found.failure is None
    assert found.answers == answers
    assert not found.lost
    assert not found.asked or mode == "lockstep"


@pytest.mark.parametrize("mode", ["lockstep", "natural"])
def test_noise_in_a_network_does_not_hide_that_of_the_gradients(world: OneWorld, mode: str) -> None:
    found = world.fit("after_an_autoencoder", 4.0, mode=mode)
    assert found.failure is None
    [(laws, before, widths)] = found.answers
    assert (laws, len(before), widths) == (GAUSSIAN, 3, [0.5] * 3)
    assert not found.lost


def test_the_answer_is_what_the_coordinator_gave(world: OneWorld) -> None:
    found = world.fit("from_numpy", 4.0)
    [step] = found.of("answer")
    assert eval(str(found.result)) == pytest.approx((step["before"] + step["noise"]).tolist())
    assert found.released == [0, 1]


def test_seeds_are_noted(world: OneWorld) -> None:
    first, second = (
        [digest for kind, digest in world.fit("like_opacus", n).digests if kind == "seed"]
        for n in (4.0, 5.0)
    )
    assert len(first) == len(second) == 1
    assert first != second
    assert [one[3] for one in world.fit("added_to_gradients", 4.0).end["seeds"]] == ["3"]


def test_noise_that_is_clipped_is_a_coin(world: OneWorld) -> None:
    found = world.fit("clipped", 4.0)
    assert found.failure is None
    assert not found.answers


def test_coins_are_equal_in_both_worlds(world: OneWorld) -> None:
    first, second = (world.fit("coins", 4.0, seed=5) for _ in range(2))
    assert first.result == second.result
    assert world.fit("coins", 4.0, mode="natural").draws == first.draws
