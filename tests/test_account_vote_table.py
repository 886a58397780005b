"""The vote table: exact Rényi divergences, and a release that matches them."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaudit.account import ORDERS, VoteTable, gaussian_vote_table
from dpaudit.errors import SettingsError

WORD = 2**64
SOME_ORDERS = [1.01, 1.5, 2.0, 8.0, 65.0, 4096.0]
SCALES = st.floats(0.05, 1e5)
TEACHERS = st.integers(1, 60)


def exact_divergence(p: int, q: int, order: float) -> Decimal:
    """D_a of two Bernoullis given in words, straight from the definition with 120 digits."""
    a = Decimal(order)
    moment = Decimal(0)
    for top, bottom in ((p, q), (WORD - p, WORD - q)):
        moment += (Decimal(top) ** a) * (Decimal(bottom) ** (1 - a)) / WORD
    return moment.ln() / (a - 1)


def exact_rdp(table: VoteTable, order: float) -> float:
    with localcontext() as context:
        context.prec = 120
        steps = list(zip(table.thresholds[:-1], table.thresholds[1:], strict=True))
        return float(
            max(exact_divergence(*pair, order) for p, q in steps for pair in ((p, q), (q, p)))
        )


@pytest.mark.parametrize(
    "table",
    [
        gaussian_vote_table(teachers=1, scale=0.4),
        gaussian_vote_table(teachers=2, scale=1e-3),
        gaussian_vote_table(teachers=5, scale=1.2),
        gaussian_vote_table(teachers=10, scale=30.0),
        gaussian_vote_table(teachers=3, scale=1e7),
        VoteTable(thresholds=(1, WORD - 1, WORD // 2, WORD // 2 + 1)),
        VoteTable(thresholds=(WORD // 2, WORD // 2 + 1)),
    ],
    ids=["k1", "sharp", "k5", "noisy", "drowned", "ragged", "one-word-apart"],
)
def test_rdp_equals_the_definition_in_120_digits(table: VoteTable) -> None:
    expected = [exact_rdp(table, order) for order in SOME_ORDERS]
    np.testing.assert_allclose(table.rdp(SOME_ORDERS), expected, rtol=1e-8, atol=1e-30)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_randomised_response_has_its_pure_epsilon_as_the_limit(epsilon: float) -> None:
    lie = int(WORD / (1.0 + np.exp(epsilon)))
    table = VoteTable(thresholds=(lie, WORD - lie))
    rdp = table.rdp(ORDERS)
    assert np.all(rdp <= epsilon * (1 + 1e-12))
    assert np.all(np.diff(rdp) >= -1e-14)
    assert table.rdp([1e6])[0] == pytest.approx(epsilon, abs=1e-5)


def test_a_table_that_ignores_the_votes_costs_nothing() -> None:
    assert np.all(VoteTable(thresholds=(WORD // 3,) * 6).rdp(ORDERS) == 0.0)
    assert np.all(VoteTable(thresholds=(0, 0)).rdp(ORDERS) == 0.0)


@pytest.mark.parametrize("thresholds", [(0, WORD), (0, 1), (WORD, WORD - 1), (5, 5, WORD)])
def test_a_ruled_out_bit_costs_infinitely_much(thresholds: tuple[int, ...]) -> None:
    assert np.all(np.isinf(VoteTable(thresholds=thresholds).rdp(ORDERS)))


@given(teachers=TEACHERS, scale=SCALES)
def test_one_bit_never_costs_more_than_the_noisy_count_it_is_cut_from(
    teachers: int, scale: float
) -> None:
    # Data processing: the bit is a function of n + N(0, s^2), whose divergence is a / (2 s^2).
    orders = np.array(SOME_ORDERS)
    rdp = gaussian_vote_table(teachers=teachers, scale=scale).rdp(orders)
    # Rounding to multiples of 2**-64 shifts probabilities of 1e-6 by less than 1e-13 of them.
    assert np.all(rdp <= orders / (2 * scale**2) * (1 + 1e-6))


def test_at_much_noise_the_bit_costs_two_over_pi_of_the_noisy_count() -> None:
    # Fisher information of the sign at a tie, relative to the Gaussian's.
    table = gaussian_vote_table(teachers=301, scale=500.0)
    assert table.rdp([2.0])[0] * 500.0**2 == pytest.approx(2 / np.pi, rel=1e-4)


@given(teachers=TEACHERS, widths=st.floats(0.12, 1e3), factor=st.floats(1.01, 10.0))
def test_more_noise_costs_less(teachers: int, widths: float, factor: float) -> None:
    # From 0.12 k on no entry is clipped; below, clipping hides the steepest steps now and then.
    scale = widths * teachers
    less = gaussian_vote_table(teachers=teachers, scale=scale).rdp(SOME_ORDERS)
    more = gaussian_vote_table(teachers=teachers, scale=scale * factor).rdp(SOME_ORDERS)
    assert np.all(more < less)


@given(teachers=TEACHERS, scale=SCALES)
def test_the_gaussian_table_is_symmetric_monotone_and_never_certain(
    teachers: int, scale: float
) -> None:
    table = gaussian_vote_table(teachers=teachers, scale=scale)
    assert table.teachers == teachers
    assert all(p + q == WORD for p, q in zip(table.thresholds, table.thresholds[::-1], strict=True))
    assert list(table.thresholds) == sorted(table.thresholds)
    assert table.probabilities.min() >= 0.999999e-6
    assert table.probabilities.max() <= 1 - 0.999999e-6


def test_the_gaussian_table_holds_normal_probabilities() -> None:
    # Phi(-1), Phi(-1/2), Phi(0), ... to 15 digits.
    expected = [0.158655253931457, 0.308537538725987, 0.5, 0.691462461274013, 0.841344746068543]
    table = gaussian_vote_table(teachers=4, scale=2.0)
    np.testing.assert_allclose(table.probabilities, expected, rtol=1e-14)


def test_release_compares_the_word_with_the_threshold() -> None:
    table = VoteTable(thresholds=(0, 7, WORD))
    assert [table.release(1, word) for word in (0, 6, 7, WORD - 1)] == [1, 1, 0, 0]
    assert table.release(0, 0) == 0
    assert table.release(2, WORD - 1) == 1


def test_released_bits_have_the_accounted_frequency() -> None:
    table = gaussian_vote_table(teachers=5, scale=2.0)
    draws = 40_000
    stream = np.random.default_rng(20_240_607)
    for votes, p in enumerate(table.probabilities):
        words = stream.integers(0, WORD, size=draws, dtype=np.uint64).tolist()
        ones = sum(table.release(votes, word) for word in words)
        assert abs(ones - draws * p) < 4.5 * np.sqrt(draws * p * (1 - p))


@pytest.mark.parametrize(("votes", "word"), [(-1, 0), (3, 0), (0, -1), (0, WORD)])
def test_release_refuses_what_is_out_of_range(votes: int, word: int) -> None:
    table = gaussian_vote_table(teachers=2, scale=1.0)
    with pytest.raises(SettingsError, match="not in"):
        table.release(votes, word)


@pytest.mark.parametrize("thresholds", [(), (1,), (0, -1), (0, WORD + 1), (0, 0.5)])
def test_a_malformed_table_is_refused(thresholds: tuple[int, ...]) -> None:
    with pytest.raises(SettingsError, match="vote table"):
        VoteTable(thresholds=thresholds)


@pytest.mark.parametrize("orders", [[1.0], [0.5, 2.0], [np.inf], [np.nan], [[2.0]]])
def test_rdp_refuses_orders_without_meaning(orders: list[float]) -> None:
    with pytest.raises(SettingsError, match="orders"):
        gaussian_vote_table(teachers=2, scale=1.0).rdp(orders)


@pytest.mark.parametrize(
    ("teachers", "scale"), [(0, 1.0), (3, 0.0), (3, -1.0), (3, np.inf), (3, np.nan)]
)
def test_a_gaussian_table_refuses_senseless_settings(teachers: int, scale: float) -> None:
    with pytest.raises(SettingsError, match=r"teachers|scale"):
        gaussian_vote_table(teachers=teachers, scale=scale)
