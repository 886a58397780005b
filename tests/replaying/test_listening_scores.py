"""Noisy answers that are only selected from, and how their mark ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from one_world import OneWorld, one_world


@pytest.fixture(scope="module")
def world() -> Iterator[OneWorld]:
    with one_world("heard_code") as found:
        yield found


def selections(world: OneWorld, name: str) -> list[dict[str, Any]]:
    found = world.fit(name, 4.0)
    assert found.failure is None
    assert not found.released, name
    fields = {one: None for one in ("how", "ids", "factor", "offset", "limits", "limit_ids")}
    return [
        {key: list(one[key]) if key != "how" else one[key] for key in fields if key in one}
        for one in found.of("select")
    ]


@pytest.mark.parametrize("name", ["noisy_max", "noisy_max_of_list"])
def test_the_place_of_the_largest_is_a_selection(world: OneWorld, name: str) -> None:
    plain = {"ids": [0, 1, 2], "factor": [1.0] * 3, "offset": [0.0] * 3}
    assert selections(world, name) == [{"how": "largest", **plain}]


def test_the_smallest_is_the_largest_of_the_reverse(world: OneWorld) -> None:
    [one] = selections(world, "smallest")
    assert one == {"how": "largest", "ids": [0, 1], "factor": [-2.0] * 2, "offset": [1.0] * 2}


def test_the_outcome_is_what_the_code_saw(world: OneWorld) -> None:
    found = world.fit("noisy_max", 4.0)
    assert found.of("select")[0]["outcome"].tolist() == [int(str(found.result))]
    found = world.fit("top_two", 4.0)
    assert found.of("select")[0]["outcome"].tolist()[:0:-1] == eval(str(found.result))


def test_a_number_among_answers_is_no_answer(world: OneWorld) -> None:
    first, second = selections(world, "peeled")
    assert first["ids"] == [0, 1, 2]
    assert sorted(second["ids"])[0] == -1
    assert second["factor"].count(0.0) == 1
    assert min(second["offset"]) == float("-inf")


def test_comparisons_with_a_noisy_limit_are_selections(world: OneWorld) -> None:
    found = selections(world, "sparse_vector")
    assert [(one["how"], one["ids"], one["limit_ids"]) for one in found] == [
        ("compared", [1], [0]),
        ("compared", [2], [0]),
    ]


def test_ties_of_whole_numbers_lie_above_the_limit(world: OneWorld) -> None:
    [one] = selections(world, "whole")
    assert one["limits"] == [pytest.approx(7.0)]
    assert one["limits"][0] < 7.0


def test_comparisons_by_key_are_selections(world: OneWorld) -> None:
    [one] = selections(world, "by_key")
    assert (one["how"], one["ids"], one["limit_ids"]) == ("compared", [1], [0])


@pytest.mark.parametrize(
    ("name", "released"),
    [
        ("thresholded", 1),
        ("largest_value", 0),
        ("printed", 1),
        ("added", 1),
        ("on_series", 4),
        ("in_place", 2),
    ],
)
def test_every_other_use_is_a_release(world: OneWorld, name: str, released: int) -> None:
    found = world.fit(name, 4.0)
    assert len(found.released) >= released
    assert found.failure is None


@pytest.mark.parametrize("name", ["written", "in_a_table", "through_math"])
def test_code_in_c_that_reads_an_answer_releases_it(world: OneWorld, name: str) -> None:
    found = world.fit(name, 4.0)
    assert found.failure is None
    assert found.of("select"), "it is compared before"
    assert found.released == [0]


def test_an_answer_is_a_number_once_it_was_compared_with_many(world: OneWorld) -> None:
    found = world.fit("against_data", 4.0)
    assert found.failure is None
    assert len(found.of("select")) <= 3
    assert found.released == [0, 1]


def test_noise_on_an_answer_names_it_and_releases_the_sum_alone(world: OneWorld) -> None:
    found = world.fit("noised_again", 4.0)
    first, second = found.of("answer")
    assert second["before"] == pytest.approx(first["before"] + first["noise"])
    assert (np.ravel(second["on"]).tolist(), np.ravel(second["factor"]).tolist()) == ([0], [1.0])
    assert "on" not in first
    assert found.released == [1]


def test_natural_answers_are_plain(world: OneWorld) -> None:
    found = world.fit("noisy_max", 4.0, mode="natural")
    assert not found.of("select")
    [step] = found.of("answer")
    assert step["value"] == pytest.approx(step["before"] + step["noise"])
    assert int(str(found.result)) == step["value"].argmax()
