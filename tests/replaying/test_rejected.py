"""Draws that are rejected and made again: which may be, and what tells them from used ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dpaudit.model.claim import PrivacyClaim
from dpaudit.replaying.conclusion import outcomes_above
from dpaudit.replaying.guarantee import replay_guarantee
from dpaudit.replaying.influence import (
    AskedAgain,
    answers_without,
    repeats,
    was_rejected,
)
from dpaudit.replaying.laws import Laplace
from dpaudit.replaying.lockstep import Played
from dpaudit.replaying.loss import losses
from dpaudit.replaying.transcript import ChoiceStep, Pair, Question, Site, Transcript
from steps import noisy_step

SITE, OTHER = Site("code.py", 1, "f"), Site("code.py", 2, "f")
TABLE = Pair(np.array([0.5, 0.3, 0.2]), np.array([0.4, 0.35, 0.25]))
LINES = {("choose", SITE)}


def key(number: int, site: Site = SITE) -> Question:
    return "choose", site, number


def choice(number: int, place: int, table: Pair = TABLE) -> ChoiceStep:
    logs = [np.log(one[[place]]) for one in table]
    return ChoiceStep(
        site=SITE,
        log_probability=Pair(logs[0], logs[1]),
        largest=0.2,
        table=table,
        keys=frozenset({key(number)}),
    )


def drawn(*places: int) -> Transcript:
    """One choice after another, and a coin of another line after each."""
    given = {}
    for number, place in enumerate(places, 1):
        given[key(number)] = np.array([place])
        given["coin", OTHER, number] = number
    choices = [choice(number, place) for number, place in enumerate(places, 1)]
    return Transcript(choices=choices, given=given)


def played(transcript: Transcript, rows: int) -> Played:
    table = pd.DataFrame({"x": [rows]})
    return Played(transcript, (table, table), None)


@pytest.mark.parametrize(
    ("epsilon", "delta", "said"), [(0.6, 0.0, 1), (1.1, 0.0, 0), (0.6, 0.1, 0)]
)
def test_outcomes_that_were_not_drawn_are_named_if_they_cost_more_than_the_claim(
    epsilon: float, delta: float, said: int
) -> None:
    claim = replay_guarantee(PrivacyClaim(epsilon=epsilon, delta=delta))
    found = list(outcomes_above([drawn(0, 1, 0, 2, 0)], claim))
    assert len(found) == said
    assert all("outcomes at code.py:1 that were not drawn" in one for one in found)
    assert all("(1 in all)" in one for one in found)


def test_all_but_the_last_of_like_questions_may_be_rejected() -> None:
    transcript = drawn(0, 1, 0)
    found = repeats(transcript, losses(transcript), LINES)
    assert [(one.key, one.again) for one in found] == [(key(1), key(2)), (key(2), key(3))]
    assert repeats(transcript, losses(transcript), set()) == []
    other = Pair(TABLE.outside, TABLE.inside)
    unlike = replace(transcript, choices=[choice(1, 0), choice(2, 1, other), choice(3, 0)])
    assert [one.key for one in repeats(unlike, losses(unlike), LINES)] == [key(1)]


def test_a_question_less_moves_the_answers_of_its_lines_up() -> None:
    transcript = drawn(0, 1, 2)
    left = answers_without(transcript, AskedAgain(key(2), key(3), 1.0))
    assert left == {
        key(1): np.array([0]),
        ("coin", OTHER, 1): 1,
        key(2): np.array([2]),
        ("coin", OTHER, 2): 3,
    }


def test_a_draw_is_rejected_if_all_else_stays() -> None:
    repeat = AskedAgain(key(1), key(2), 1.0)
    first = played(drawn(0, 1), 1)
    assert was_rejected(first, played(drawn(1), 1), repeat)
    assert not was_rejected(first, played(drawn(1), 2), repeat)  # other rows
    assert not was_rejected(first, played(drawn(1, 2), 1), repeat)  # as many draws


def test_a_number_that_is_used_is_not_rejected() -> None:
    law = Laplace(np.ones(1))
    steps = [
        replace(noisy_step([3], [2], [answer], law, number), keys=frozenset({key(number)}))
        for number, answer in enumerate([1.0, 4.0])
    ]
    given = {key(0): 1.0, key(1): 4.0}
    unseen = Transcript(noisy=steps, given=given)
    assert [one.key for one in repeats(unseen, losses(unseen), LINES)] == [key(0)]
    used = Transcript(noisy=steps, given=given, released=[np.array([0, 1])])
    assert repeats(used, losses(used), LINES) == []
