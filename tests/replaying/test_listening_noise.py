"""Which noise a world hears in unmodified code, and which values it is added to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from one_world import OneWorld, one_world

LAPLACE, GAUSSIAN = ["laplace"], ["gaussian"]


@pytest.fixture(scope="module")
def world() -> Iterator[OneWorld]:
    with one_world("heard_code") as found:
        yield found


@pytest.mark.parametrize(
    ("name", "answers"),
    [
        ("added", [(LAPLACE, [4.0], [1.5])]),
        ("on_counts", [(["gumbel"], [0.0, 4.0, 8.0, 12.0], [2.0] * 4)]),
        ("in_place", [(LAPLACE, [1.0, 4.0], [1.0] * 2)]),
        ("on_some", [(LAPLACE, [4.0], [1.0])]),
        ("in_blank_rows", [(LAPLACE, [4.0] * 4, [1.0] * 4)]),
        ("padded", [(LAPLACE, [4.0] * 2, [1.0] * 2)]),
        ("of_shares", [(["gamma"] * 4, [4.0], [2.0])]),
        ("by_matrix", [(GAUSSIAN * 2, [4.0, 1.0], pytest.approx([3.0, 3.0 * 5**0.5]))]),
        ("correlated", [(GAUSSIAN * 2, [4.0] * 2, pytest.approx([2**0.5] * 2))]),
        ("from_python", [(GAUSSIAN, [4.0], [2.0]), (["exponential"], [4.0], [2.0])]),
        ("by_scipy", [(GAUSSIAN, [4.0] * 3, [2.0] * 3), (["discrete_laplace"], [4.0], [2.0])]),
        (
            "on_series",
            [(LAPLACE, [1.0, 4.0], [1.0] * 2), (GAUSSIAN, [1.0], [1.0]), (GAUSSIAN, [4.0], [1.0])],
        ),
        ("by_inversion", [(LAPLACE, [4.0] * 3, pytest.approx([2.0] * 3))]),
        ("one_by_one", [(LAPLACE, [4.0], pytest.approx([2.0]))]),
        ("listed", [(LAPLACE, [4.0] * 3, pytest.approx([2.0] * 3))]),
    ],
)
@pytest.mark.parametrize("mode", ["lockstep", "natural"])
def test_noise_is_followed_to_the_values_that_it_is_added_to(
    world: OneWorld, name: str, answers: list[Any], mode: str
) -> None:
    world.fit(name, 4.0)  # a line that makes noise of uniform draws is known from here on
    found = world.fit(name, 4.0, mode=mode)
    assert found.failure is None
    assert found.answers == answers
    assert not found.lost
    assert [one["kind"] for one in found.asked] == ["answer"] * len(answers) * (mode == "lockstep")


def test_a_value_that_differs_between_the_worlds_is_before_noise(world: OneWorld) -> None:
    assert not world.fit("around", 4.0).answers
    asked = [[one[0], one[1]] for one in world.fit("around", 4.0).end["draws"]]
    assert world.fit("around", 4.0, asked=asked).answers == [(GAUSSIAN, [4.0] * 3, [2.0] * 3)]


def test_each_draw_has_its_number(world: OneWorld) -> None:
    [step] = world.fit("symmetric", 4.0).of("answer")
    ids, factors = (np.stack([part[name] for part in step["parts"]]) for name in ("ids", "factor"))
    for row, column in ((0, 1), (1, 2)):
        draws = [
            set(ids[:, *cell][factors[:, *cell] != 0]) for cell in ((row, column), (column, row))
        ]
        assert draws[0] == draws[1]
        assert len(draws[0]) == 1


def test_wide_noise_is_that_noise_multiplied(world: OneWorld) -> None:
    narrow, wide = (world.fit("added", 4.0, wide=one) for one in (1.0, 30.0))
    assert wide.of("answer")[0]["noise"] == pytest.approx(30.0 * narrow.of("answer")[0]["noise"])
    assert wide.answers == narrow.answers


@pytest.mark.parametrize("mode", ["lockstep", "natural"])
def test_noise_whose_value_decides_something_is_lost(world: OneWorld, mode: str) -> None:
    found = world.fit("truncated", 4.0, mode=mode)
    assert [part["lost"] for part in found.of("answer")[0]["parts"]] == [True]
    assert found.lost == ["noise is used by `absolute`, not only added to data"]


def test_noise_that_is_also_published_is_lost(world: OneWorld) -> None:
    assert world.fit("published", 4.0).lost == ["noise is used by `float`, not only added to data"]


def test_noise_that_is_never_used_is_said(world: OneWorld) -> None:
    assert world.fit("never_used", 4.0).lost == ["its use was not seen"]


def test_noise_that_meets_no_data_is_a_coin(world: OneWorld) -> None:
    found = world.fit("sampled_rows", 4.0)
    assert not found.lost
    assert not found.answers
