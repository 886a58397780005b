"""Changes of noisy numbers, and losses of the numbers that count by themselves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpaudit.replaying.laws import Laplace
from dpaudit.replaying.loss import Influence, ShownAnswers, losses, total
from dpaudit.replaying.resting import NoisyNumbers
from dpaudit.replaying.transcript import Question, Site, Transcript
from steps import noisy_step

SITE = Site("code.py", 1, "f")
RNG = np.random.default_rng(0)


def key(number: int) -> Question:
    return "answer", SITE, number


def transcript_of(*pairs: tuple[list[float], list[float]]) -> Transcript:
    """One answer for each pair of values before noise, two scales above that in world "in"."""
    steps, first = [], 0
    for number, (before, other) in enumerate(pairs):
        law = Laplace(np.ones(len(before)))
        step = noisy_step(before, other, np.asarray(before) + 2.0, law, first=first)
        steps.append(replace(step, keys=frozenset({key(number)})))
        first += len(before)
    given = {key(number): step.answer for number, step in enumerate(steps)}
    return Transcript(noisy=steps, released=[np.arange(first)], given=given)


SEVERAL = transcript_of(([5.0, 9.0, 1.0, 2.0], [4.0, 7.0, 1.0, 1.99]))
IN_A_LOOP = transcript_of(([5.0], [4.0]), ([9.0], [7.0]), ([1.0, 2.0], [1.0, 2.0]))


def test_the_costliest_numbers_come_first_and_one_that_is_a_whole_answer_is_none() -> None:
    numbers = NoisyNumbers.together_with(SEVERAL, key(0), SITE)
    assert numbers.costly() == [1, 0]
    assert numbers.ranked() == [1, 0, 3]
    one_of_two = transcript_of(([5.0, 1.0], [4.0, 1.0]))
    assert NoisyNumbers.together_with(one_of_two, key(0), SITE).costly() == [0]
    whole = transcript_of(([5.0], [4.0]), ([1.0], [1.0]))
    assert NoisyNumbers.together_with(whole, key(0), SITE).costly() == []


def test_numbers_that_a_loop_asks_one_by_one_belong_together() -> None:
    numbers = NoisyNumbers.together_with(IN_A_LOOP, key(0), SITE)
    assert (len(numbers), numbers.costly()) == (2, [1, 0])
    assert numbers.place_of(1) == (key(1), 0)
    assert len(NoisyNumbers.together_with(IN_A_LOOP, key(2), SITE)) == 2
    assert len(NoisyNumbers.of_line(IN_A_LOOP, SITE)) == 4


def test_balanced_changes_add_up_to_0_and_equal_ones_are_equal() -> None:
    numbers = NoisyNumbers.of_line(IN_A_LOOP, SITE)
    balanced = np.concatenate(list(numbers.balanced([0, 1, 3], 1.0, RNG).values()))
    assert balanced.sum() == pytest.approx(0.0, abs=1e-12)
    assert np.flatnonzero(balanced).tolist() == [0, 1, 3]
    assert set(np.concatenate(list(numbers.equal(0.5).values()))) == {0.5}
    alone = numbers.alone(2, 0.5)
    assert {name: moved.tolist() for name, moved in alone.items()} == {
        key(0): [0.0],
        key(1): [0.0],
        key(2): [0.5, 0.0],
    }


def test_a_number_is_put_above_below_and_amid_all_others() -> None:
    numbers = NoisyNumbers.together_with(SEVERAL, key(0), SITE)
    ranks = [
        {int(np.sum(given[key(0)] > given[key(0)][2])) for given in every}
        for every in numbers.positions(2, RNG)
    ]
    assert ranks == [{0}, {3}, {2}]


def test_numbers_that_are_selected_from_are_not_plain() -> None:
    hidden = replace(SEVERAL, released=[], reduced=[np.arange(4)])
    assert NoisyNumbers.together_with(SEVERAL, key(0), SITE).are_plain
    assert not NoisyNumbers.together_with(hidden, key(0), SITE).are_plain


def test_only_the_numbers_that_count_have_a_loss() -> None:
    assert total(losses(SEVERAL)) == pytest.approx(3.01)
    shown = ShownAnswers(frozenset({key(0)}), {key(0): frozenset({0, 2})})
    assert total(losses(SEVERAL, influence=Influence(shown, 1))) == pytest.approx(1.0)
    assert total(losses(SEVERAL, influence=Influence(ShownAnswers(frozenset()), 1))) == 0.0
