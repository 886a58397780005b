"""Noise that code makes by hand, of coins and uniform draws: its law, and what coins may hide."""

from __future__ import annotations

from typing import Any

import pytest

import dpaudit
import listened_coins
from dpaudit.replaying.record import ReplayRecord
from dpaudit.results.verdict import Verdict
from listened import table

pytestmark = pytest.mark.usefixtures("worlds")


def replayed(generator: Any, **given: Any) -> ReplayRecord:
    settings: dict[str, Any] = {"replays": 4, "target": "row:39", **given}
    return dpaudit.replay(generator, table(), **settings)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("SignByBranch", marks=pytest.mark.ci),
        pytest.param("SignByChoice", marks=pytest.mark.ci),
        "ScaleByCoin",
    ],
)
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.ci)])
def test_a_law_that_follows_a_secret_coin_is_a_mixture_and_no_violation(
    name: str, seed: int
) -> None:
    """Given the coin, the noise lies on one side of 0 or is too narrow: without it, it suffices."""
    record = replayed(getattr(listened_coins, name)(), seed=seed)
    assert record.verdict is not Verdict.VIOLATION, str(record)
    assert record.proved == 0.0
    assert "even if all coins are public" not in str(record.reasons)
    assert "depends on coins (listened_coins.py" in str(record.reasons)


@pytest.mark.parametrize(
    "name",
    [
        "ByInversion",
        pytest.param("OneByOne", marks=pytest.mark.ci),
        pytest.param("ByScipy", marks=pytest.mark.ci),
        pytest.param("OfLogarithms", marks=pytest.mark.ci),
        pytest.param("BoxMuller", marks=pytest.mark.ci),
    ],
)
def test_noise_that_code_makes_of_uniform_draws_is_followed(name: str) -> None:
    make = getattr(listened_coins, name)
    honest = replayed(make())
    # For a claim of 4.38, coins with a probability of 1 % could excuse the loss: too many redraws.
    narrow = replayed(make(0.5), replays=10, public_coins=name == "BoxMuller")
    assert honest.verdict is Verdict.CONSISTENT, str(honest)
    assert honest.computed == pytest.approx(make.epsilon, rel=1e-3)
    assert narrow.verdict is Verdict.VIOLATION, str(narrow)
    assert narrow.ledger[0].law == ("gaussian" if name == "BoxMuller" else "laplace")


def test_the_same_function_of_the_same_draws_is_the_same_noise() -> None:
    record = replayed(listened_coins.Twice())
    assert record.verdict is Verdict.VIOLATION, str(record)
    assert "used a second time" in record.reasons[0]


@pytest.mark.parametrize("name", [pytest.param("SignFirst", marks=pytest.mark.ci), "Truncated"])
def test_draws_that_were_compared_have_another_law(name: str) -> None:
    """What is left of such a draw is not the noise that the formula suggests."""
    record = replayed(getattr(listened_coins, name)(), seed=1)
    assert record.verdict is not Verdict.VIOLATION, str(record)
    assert {line.law for line in record.ledger} <= {"choice"}


def test_a_number_of_an_answer_that_nothing_reads_does_not_count() -> None:
    """The record moves one count, which is not released: others of the same answer are."""
    record = replayed(listened_coins.PartlyUsed(0.5))
    assert record.verdict is Verdict.INCONCLUSIVE, str(record)
    assert "few of them are used" in record.reasons[0]
    assert record.proved == 0.0


@pytest.mark.ci
def test_for_a_large_claim_coins_that_change_nothing_may_still_hide_a_loss() -> None:
    record = replayed(listened_coins.BoxMuller(0.5), replays=10)
    assert record.verdict is Verdict.INCONCLUSIVE
    assert "rarer ones could excuse a loss above so large a claim" in record.reasons[0]


@pytest.mark.parametrize("name", ["ToldByChoice", "ToldByGeometric"])
@pytest.mark.parametrize("epsilon", [1.0, pytest.param(4.0, marks=pytest.mark.ci)])
@pytest.mark.parametrize("seed", [0, *(pytest.param(one, marks=pytest.mark.ci) for one in (1, 2))])
def test_coins_that_seldom_matter_excuse_what_they_hide(
    name: str, epsilon: float, seed: int
) -> None:
    record = replayed(getattr(listened_coins, name)(epsilon), seed=seed, epsilon=epsilon)
    assert record.verdict is Verdict.INCONCLUSIVE, str(record)
    assert record.proved == 0.0
