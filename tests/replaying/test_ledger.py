"""The ledger: what each line costs, and its lines as calls for an accountant."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dpaudit.account.accountants import CallLaw
from dpaudit.model.claim import PrivacyClaim
from dpaudit.replaying import laws
from dpaudit.replaying.ledger import LedgerLine, recorded_calls
from dpaudit.replaying.spending import spend
from dpaudit.replaying.transcript import SelectionKind
from steps import choice_step, noisy_step, selection, transcript_of

CLAIM = PrivacyClaim(epsilon=1.0, delta=1e-5)


def lines_of(*steps: object) -> tuple[LedgerLine, ...]:
    return spend([transcript_of(*steps)], CLAIM, public_coins=False).lines


def test_lines_have_the_steps_shifts_and_costs_of_their_code() -> None:
    law = laws.Gaussian(np.array([2.0, 4.0]))
    lines = lines_of(
        noisy_step([1, 4], [0, 0], law),
        noisy_step([0, -4], [0, 0], law, first=2),
        noisy_step([1], [0], laws.Laplace(np.full(1, 10.0)), first=4, line=2),
        choice_step(([0.6, 0.4], [0.5, 0.5]), ([0.5, 0.5], [0.5, 0.5]), line=3),
    )
    assert [one.place for one in lines] == ["code.py:1", "code.py:3", "code.py:2"]
    first, choice, second = lines
    assert (first.law, first.times, first.scale, first.other_scale) == ("gaussian", 2, 2.0, None)
    assert (first.l1, first.l2, first.linf) == (5.0, pytest.approx(math.sqrt(17)), 4.0)
    assert (first.epsilon, first.mu) == (None, pytest.approx(math.sqrt(0.25 + 1 + 1)))
    assert (second.epsilon, second.mu, second.counts_as) == (pytest.approx(0.1), None, "released")
    assert (choice.times, choice.counts_as) == (2, "selected")
    assert choice.epsilon == pytest.approx(math.log(0.5 / 0.4))
    assert sum(one.share for one in lines) == pytest.approx(1.0)
    assert first.share > 0.9


def test_selected_and_unknown_lines_say_so() -> None:
    chosen, unknown = lines_of(
        noisy_step([1, 2], [1, 1], laws.Laplace(np.ones(2))),
        selection(SelectionKind.LARGEST, [0, 1], 1),
        noisy_step([1], [1], None, first=2, line=2),
    )
    assert (chosen.counts_as, chosen.law) == ("selected", "laplace")
    assert (unknown.law, unknown.scale, unknown.epsilon) == ("unknown", None, 0.0)
    [moved] = lines_of(noisy_step([1], [0], None))
    assert (moved.epsilon, moved.mu, moved.share) == (None, None, 1.0)


def test_an_empty_step_has_a_line() -> None:
    [line] = lines_of(noisy_step(np.zeros(0), np.zeros(0), laws.Laplace(np.ones(1))))
    assert (line.times, line.l1, line.epsilon) == (1, 0.0, 0.0)


GAUSSIAN = LedgerLine(
    place="code.py:1",
    function="f",
    law="gaussian",
    times=2,
    scale=2.0,
    other_scale=None,
    l1=1.0,
    l2=1.0,
    linf=1.0,
    counts_as="released",
    epsilon=None,
    mu=0.5,
    share=1.0,
)


def test_lines_become_calls() -> None:
    laplace = replace(GAUSSIAN, law="laplace", epsilon=0.25, mu=None)
    still = replace(laplace, epsilon=0.0)
    hidden = replace(GAUSSIAN, mu=9.0, internal=True)
    calls, unknown = recorded_calls([GAUSSIAN, laplace, still, hidden])
    assert unknown is None
    assert [(one.law, one.sensitivity) for one in calls] == [
        (CallLaw.GAUSSIAN, 0.5),
        (CallLaw.PURE, 0.25),
    ]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"other_scale": 3.0}, "the scale of the noise at code.py:1 depends on the data"),
        ({"mu": None}, "the largest loss of a step at code.py:1 is not known"),
        ({"sampling": 0.1}, "the steps at code.py:1 are not kept one by one"),
        ({"law": "discrete gaussian"}, "the steps at code.py:1 are not kept one by one"),
    ],
)
def test_what_a_line_does_not_keep_is_not_guessed(change: dict[str, object], why: str) -> None:
    assert recorded_calls([replace(GAUSSIAN, **change)]) == ((), why)  # type: ignore[arg-type]
