"""Seeds, threads, processes and endless loops in a fit."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from dpaudit.replaying.listening.channel import Channel
from one_world import OneWorld, one_world


@pytest.fixture(scope="module")
def world() -> Iterator[OneWorld]:
    with one_world("heard_code") as found:
        yield found


def test_seeds_of_all_generators_are_noted(world: OneWorld) -> None:
    found = world.fit("seeded", 4.0)
    seeds = [digest for kind, digest in found.digests if kind == "seed"]
    assert len(seeds) == 4
    others = [digest for kind, digest in world.fit("seeded", 5.0).digests if kind == "seed"]
    assert [one == other for one, other in zip(seeds, others, strict=True)] == [
        False,
        *[True] * 3,
    ]
    assert sorted(one[3] for one in found.end["seeds"]) == ["4", "5"]
    assert sorted(str(step["parts"][0]["seed"]) for step in found.of("answer")) == [
        "4",
        "5",
        "None",
    ]


def test_a_natural_fit_draws_what_the_seed_says(world: OneWorld) -> None:
    [step] = world.fit("real_state", 4.0, mode="natural").of("answer")
    expected = np.random.RandomState(4).laplace(0.0, 2.0, 3)
    assert step["noise"].tolist() == expected.tolist()
    assert step["value"].tolist() == (4.0 + expected).tolist()


@pytest.mark.parametrize("mode", ["lockstep", "natural"])
def test_a_loop_without_end_is_ended(world: OneWorld, mode: str) -> None:
    found = world.fit("endless", 4.0, most_draws=50, mode=mode)
    assert found.failure == "WorldsPart"
    assert found.draws == [51]


def test_draws_in_a_thread_end_the_fit(world: OneWorld) -> None:
    found = world.fit("in_a_thread", 4.0)
    assert found.failure == "WorldsPart"
    assert found.of("tell")[0]["told"] == "thread"
    natural = world.fit("in_a_thread", 4.0, mode="natural")
    assert natural.failure is None
    assert len(natural.answers) == 1


def test_draws_of_a_child_process_are_reported(world: OneWorld) -> None:
    with ThreadPoolExecutor(1) as pool:
        child = pool.submit(world.server.accept)
        assert world.fit("in_a_process", 4.0).result == "4.0"
        with Channel(child.result(timeout=20)).connection as connection:
            hello = Channel(connection).receive()
    assert hello["role"] == "child"
    assert hello["site"][2] == "in_a_process"
