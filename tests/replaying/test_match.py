"""What the coordinator compares, and how it answers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dpaudit.plugins.protocols import World
from dpaudit.replaying.fits import Fits
from dpaudit.replaying.laws import DiscreteLaplace, Laplace
from dpaudit.replaying.messages import are_same, as_text, table_of
from listened import CELLS, replayed


@pytest.mark.parametrize(
    ("first", "second", "equal"),
    [
        (1.0, 1.0 + 1e-12, True),
        (1.0, 1.0 + 1e-6, False),
        (np.nan, np.nan, True),
        (np.zeros(2), np.zeros(3), False),
        (np.array([1], np.uint8), np.array([1], np.uint8), True),
        (np.array([1], np.uint8), np.array([2], np.uint8), False),
    ],
)
def test_values_are_equal_up_to_rounding_and_bytes_exactly(
    first: Any, second: Any, equal: bool
) -> None:
    assert are_same(first, second) is equal


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.25, "1.25"),
        ([1.0, 2.0, 3.0, 4.0], "[1, 2, 3, ...] (4 numbers)"),
        (np.array([1, 2], np.uint8), "another value"),
    ],
)
def test_a_value_is_shown_in_a_few_characters(value: Any, text: str) -> None:
    assert as_text(value) == text


def test_comparisons_of_one_uniform_draw_are_one_choice() -> None:
    """A loop over cumulated probabilities leaves the intervals that the draw does not lie in."""
    comparisons = [(0.2, 0.3, False), (0.5, 0.5, True)]
    inside, outside = table_of(comparisons)
    assert inside.tolist() == pytest.approx([0.2, 0.4, 0.4])
    assert outside.tolist() == pytest.approx([0.3, 0.35, 0.35])
    assert inside.sum() == outside.sum() == pytest.approx(1.0)


# -- answers of whole fits -----------------------------------------------------------------------


def laplace(counts: Any, rng: Any) -> Any:
    return counts + rng.laplace(0.0, 2.0, CELLS)


def geometric(counts: Any, rng: Any) -> Any:
    return counts + (rng.geometric(0.4, CELLS) - rng.geometric(0.4, CELLS))


def one_uniform(counts: Any, rng: Any) -> Any:
    u, passed = rng.random(), 0.0
    for place, share in enumerate(np.exp(0.5 * counts) / np.exp(0.5 * counts).sum()):
        passed += share
        if u < passed:
            return place
    return CELLS


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs what is given with the fits of a replay, in its processes."""

    def play(train: Any, look: Any) -> Any:
        found: list[Any] = []

        def ended(own: Fits, *_: Any) -> Any:
            found.append(look(own))
            return SimpleNamespace()

        monkeypatch.setattr("dpaudit.replaying.run.replay_record", ended)
        replayed(train)
        return found[0]

    return play


@pytest.mark.usefixtures("worlds")
@pytest.mark.parametrize(("train", "law"), [(laplace, Laplace), (geometric, DiscreteLaplace)])
def test_an_answer_lies_where_it_is_ordered_and_is_equal_in_both_worlds(
    fits: Any, train: Any, law: Any
) -> None:
    def look(own: Fits) -> Any:
        return [own.pair(1, **given) for given in ({}, {"apart": 6.0}, {"base": World.OUT})]

    drawn, apart, other = fits(train, look)
    [step] = drawn.noisy
    assert isinstance(step.laws[0], law)
    assert step.before.shift.tolist() == [0.0, 0.0, 0.0, 1.0]
    assert step.moved.tolist() == [False, False, False, True]
    for one in (drawn, apart, other):
        first, second = one.releases
        assert first.digests == second.digests
        assert first.numbers["model.m"].tolist() == one.noisy[0].answer.tolist()
    [far] = apart.noisy
    wanted = 6.0 * step.scales.inside[3]
    assert far.answer[3] - far.before.inside[3] == pytest.approx(wanted, abs=0.5)
    assert far.answer[:3].tolist() == step.answer[:3].tolist()
    # the same noise, around the value of the other world
    assert other.noisy[0].answer[3] == pytest.approx(step.answer[3] - 1.0)


@pytest.mark.usefixtures("worlds")
def test_uniform_draws_lie_at_an_edge_on_request(fits: Any) -> None:
    def look(own: Fits) -> Any:
        return [own.pair(1, edge=one) for one in (1e-9, 1.0 - 1e-9)]

    low, high = fits(one_uniform, look)
    assert [one.releases[0].numbers["model.m"].tolist() for one in (low, high)] == [[0.0], [3.0]]
    [choice] = low.choices
    assert len(choice.tables) == 1


@pytest.mark.usefixtures("worlds")
def test_a_natural_fit_draws_by_itself_and_notes_its_answers(fits: Any) -> None:
    def look(own: Fits) -> Any:
        return list(own.natural([(World.IN, 1), (World.OUT, 2), (World.IN, 1)]))

    first, other, again = fits(laplace, look)
    assert first.noisy[0].answer.tolist() == again.noisy[0].answer.tolist()
    assert first.noisy[0].answer.tolist() != other.noisy[0].answer.tolist()
    assert first.noisy[0].before.inside.tolist() == [20.0, 12.0, 7.0, 1.0]
    assert other.noisy[0].before.inside.tolist() == [20.0, 12.0, 7.0, 0.0]
    assert first.releases[0].numbers["model.m"].tolist() == first.noisy[0].answer.tolist()
    assert first.draws == other.draws
    assert first.releases[1] is other.releases[0] is None
