"""The vote table: exact Rényi divergences, and a release that matches them."""

from __future__ import annotations

from decimal import Decimal, localcontext
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chi2, norm

from dpaudit.account import ORDERS, Mechanism, VoteTable, vote_table
from dpaudit.errors import SettingsError
from dpaudit.model.gaussian import gaussian_delta, gaussian_epsilon

WORD = 2**64
SOME_ORDERS = [1.01, 1.5, 2.0, 8.0, 65.0, 4096.0]
SCALES = st.floats(0.05, 1e5)
TEACHERS = st.integers(1, 60)


def drawn(teachers: int, scale: float) -> VoteTable:
    """The table that labels are drawn from."""
    return VoteTable.gaussian(teachers, scale).quantised()


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
        drawn(1, 0.4),
        drawn(2, 1e-3),
        drawn(5, 1.2),
        drawn(10, 30.0),
        drawn(3, 1e7),
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
    rdp = drawn(teachers, scale).rdp(orders)
    # Rounding to multiples of 2**-64 shifts probabilities of 1e-6 by less than 1e-13 of them.
    assert np.all(rdp <= orders / (2 * scale**2) * (1 + 1e-6))


def test_at_much_noise_the_bit_costs_two_over_pi_of_the_noisy_count() -> None:
    # Fisher information of the sign at a tie, relative to the Gaussian's.
    table = drawn(301, 500.0)
    assert table.rdp([2.0])[0] * 500.0**2 == pytest.approx(2 / np.pi, rel=1e-4)


@given(teachers=TEACHERS, widths=st.floats(0.12, 1e3), factor=st.floats(1.01, 10.0))
def test_more_noise_costs_less(teachers: int, widths: float, factor: float) -> None:
    # From 0.12 k on no entry is clipped; below, clipping hides the steepest steps now and then.
    scale = widths * teachers
    less = drawn(teachers, scale).rdp(SOME_ORDERS)
    more = drawn(teachers, scale * factor).rdp(SOME_ORDERS)
    assert np.all(more < less)


@given(teachers=TEACHERS, scale=SCALES)
def test_the_gaussian_table_is_symmetric_monotone_and_never_certain(
    teachers: int, scale: float
) -> None:
    table = drawn(teachers, scale)
    assert table.teachers == teachers
    assert all(p + q == WORD for p, q in zip(table.thresholds, table.thresholds[::-1], strict=True))
    assert list(table.thresholds) == sorted(table.thresholds)
    assert table.probabilities.min() >= 0.999999e-6
    assert table.probabilities.max() <= 1 - 0.999999e-6


def test_the_gaussian_table_holds_normal_probabilities() -> None:
    # Phi(-1), Phi(-1/2), Phi(0), ... to 15 digits.
    expected = [0.158655253931457, 0.308537538725987, 0.5, 0.691462461274013, 0.841344746068543]
    table = drawn(4, 2.0)
    np.testing.assert_allclose(table.probabilities, expected, rtol=1e-14)


def test_release_compares_the_word_with_the_threshold() -> None:
    table = VoteTable(thresholds=(0, 7, WORD))
    words = np.array([0, 6, 7, WORD - 1], dtype=np.uint64)
    assert table.release(np.full(4, 1), words).tolist() == [1, 1, 0, 0]
    assert table.release(np.full(4, 0), words).tolist() == [0, 0, 0, 0]
    assert table.release(np.full(4, 2), words).tolist() == [1, 1, 1, 1]
    assert table.release(np.array([0, 2, 1]), words[:3]).tolist() == [0, 1, 0]


@pytest.mark.parametrize("mechanism", Mechanism)
def test_released_bits_have_the_accounted_frequency(mechanism: Mechanism) -> None:
    table = vote_table(mechanism, 5, 2.0).quantised()
    draws, p = 400_000, table.probabilities
    stream = np.random.default_rng(20_240_607)
    votes = np.repeat(np.arange(6), draws)
    bits = table.release(votes, stream.integers(0, WORD, size=6 * draws, dtype=np.uint64))
    ones = bits.reshape(6, draws).sum(axis=1)
    statistic = ((ones - draws * p) ** 2 / (draws * p * (1 - p))).sum()
    assert chi2.sf(statistic, df=6) > 1e-4
    # The test can fail: the same bits against a table with 1 % less noise.
    other = vote_table(mechanism, 5, 1.98).probabilities
    statistic = ((ones - draws * other) ** 2 / (draws * other * (1 - other))).sum()
    assert chi2.sf(statistic, df=6) < 1e-4


@pytest.mark.parametrize("mechanism", Mechanism)
def test_the_table_is_what_the_noise_does_to_the_counts(mechanism: Mechanism) -> None:
    # Drawn as the papers describe it, with noise on counts: nothing of the table's formulas.
    k, scale, draws = 7, 3.0, 300_000
    stream = np.random.default_rng(7)
    for ones in range(k + 1):
        if mechanism is Mechanism.NOISY_MAX:
            noise = stream.laplace(scale=scale, size=(2, draws))
            bits = ones + noise[0] > k - ones + noise[1]
        elif mechanism is Mechanism.LAPLACE:
            bits = ones + stream.laplace(scale=scale, size=draws) > k / 2
        else:
            bits = ones + stream.normal(scale=scale, size=draws) > k / 2
        p = vote_table(mechanism, k, scale).probabilities[ones]
        assert abs(bits.sum() - draws * p) < 4.5 * np.sqrt(draws * p * (1 - p))


def words(*values: int) -> NDArray[np.uint64]:
    return np.array(values, dtype=np.uint64)


@pytest.mark.parametrize(
    ("votes", "drawn_words"),
    [
        ([-1], words(0)),
        ([3], words(0)),
        ([1.0], words(0)),
        ([1, 1], words(0)),
        ([1], np.array([0])),
        ([1], np.array([0.5])),
    ],
)
def test_release_refuses_what_is_out_of_range(
    votes: list[float], drawn_words: NDArray[np.uint64]
) -> None:
    with pytest.raises(SettingsError, match="not"):
        drawn(2, 1.0).release(votes, drawn_words)


def test_labels_are_drawn_from_a_quantised_table_only() -> None:
    with pytest.raises(SettingsError, match="quantised"):
        VoteTable.gaussian(2, 1.0).release([1], words(0))


def test_exact_tables_match_the_reference_vectors(accounting_vectors: dict[str, Any]) -> None:
    rows = accounting_vectors["lnmax_binary_data_independent"]
    assert len(rows) >= 10
    for row in rows:
        table = VoteTable.noisy_max(row["k"], 1 / row["gamma"])
        np.testing.assert_allclose(table.rdp(row["orders"]), row["exact_rdp"], rtol=1e-9)
        p = table.probabilities
        pure = np.abs(np.diff(np.log(p))).max()
        assert pure == pytest.approx(row["exact_pure_eps"], rel=1e-9)
        assert pure < row["bound_pure_eps"]
        assert np.all(table.rdp(row["orders"]) <= row["pate_bound_rdp"])
    binary = [
        row for row in accounting_vectors["pate_single_vote"] if "p_label_is_first_class" in row
    ]
    assert len(binary) >= 5
    for row in binary:
        first, second = row["counts"]
        p = VoteTable.noisy_max(first + second, 1 / row["gamma"]).probabilities[first]
        assert p == pytest.approx(row["p_label_is_first_class"], rel=1e-12)


@pytest.mark.parametrize("mechanism", Mechanism)
def test_quantising_clips_and_otherwise_keeps_the_table(mechanism: Mechanism) -> None:
    exact = vote_table(mechanism, 60, 4.0)
    quantised = exact.quantised()
    assert quantised.bits == 64
    assert quantised.quantised() == quantised
    np.testing.assert_allclose(
        quantised.probabilities, np.clip(exact.probabilities, 1e-6, 1 - 1e-6), rtol=1e-12
    )


def test_divergences_are_told_by_step_and_direction() -> None:
    table = VoteTable.laplace(3, 2.0)
    each = table.divergences([2.0, 9.0])
    assert each.shape == (2, 3, 2)
    np.testing.assert_allclose(each.max(axis=(0, 1)), table.rdp([2.0, 9.0]))
    p = table.probabilities
    by_hand = np.log(p[0] ** 2 / p[1] + (1 - p[0]) ** 2 / (1 - p[1]))
    assert each[0, 0, 0] == pytest.approx(by_hand)
    assert isinstance(table.rdp(2.0), float)


def test_a_label_is_right_as_often_as_the_consensus_says() -> None:
    table = VoteTable.gaussian(10, 3.0)
    assert table.accuracy(0.8) == pytest.approx(norm.cdf(1.0))
    assert table.accuracy(0.5) == 0.5
    assert table.probabilities[9] < table.accuracy(0.95) < table.probabilities[10]
    for consensus in (0.4, 1.1, np.nan):
        with pytest.raises(SettingsError, match="consensus"):
            table.accuracy(consensus)


@pytest.mark.parametrize("thresholds", [(), (1,), (0, -1), (0, WORD + 1), (0, 0.5)])
def test_a_malformed_table_is_refused(thresholds: tuple[int, ...]) -> None:
    with pytest.raises(SettingsError, match="vote table"):
        VoteTable(thresholds=thresholds)


@pytest.mark.parametrize("orders", [[1.0], [0.5, 2.0], [np.inf], [np.nan], [[2.0]]])
def test_rdp_refuses_orders_without_meaning(orders: list[float]) -> None:
    with pytest.raises(SettingsError, match="orders"):
        drawn(2, 1.0).rdp(orders)


@pytest.mark.parametrize("mechanism", Mechanism)
@pytest.mark.parametrize(
    ("teachers", "scale"), [(0, 1.0), (3, 0.0), (3, -1.0), (3, np.inf), (3, np.nan)]
)
def test_a_table_refuses_senseless_settings(
    mechanism: Mechanism, teachers: int, scale: float
) -> None:
    with pytest.raises(SettingsError, match=r"teachers|scale"):
        vote_table(mechanism, teachers, scale)


# In Gaussian differential privacy.


@pytest.mark.parametrize(("k", "s"), [(1, 0.3), (10, 4.0), (50, 38.9), (51, 38.9), (300, 1e5)])
def test_mu_of_normal_noise_is_one_over_its_deviation(k: int, s: float) -> None:
    assert VoteTable.gaussian(k, s).mu == pytest.approx(1.0 / s, rel=1e-8)
    assert VoteTable.gaussian(k, s).quantised().mu == pytest.approx(1.0 / s, rel=1e-8)


def test_mu_of_a_clipped_table_is_finite_and_that_of_a_certain_one_is_not() -> None:
    assert VoteTable.gaussian(11, 1e-3).quantised().mu == pytest.approx(2 * 4.753424, abs=1e-5)
    half, one = 1 << 63, 1 << 64
    assert VoteTable((0, half, one)).mu == np.inf
    assert VoteTable((half, half)).mu == pytest.approx(0.0, abs=1e-13)
    assert VoteTable((0, 0)).mu == pytest.approx(0.0, abs=1e-13)


@pytest.mark.parametrize("make", [VoteTable.gaussian, VoteTable.laplace, VoteTable.noisy_max])
def test_mu_covers_a_label_at_every_epsilon_and_no_smaller_one_does(make: Any) -> None:
    table = make(20, 9.0).quantised()
    p = table.probabilities
    pairs = [(a, b) for a, b in pairwise(p)] + [(b, a) for a, b in pairwise(p)]

    def excess(mu: float) -> float:
        """By how much delta of the worst pair is above that of mu-GDP, at most."""
        return max(
            max(a - np.exp(e) * b, 0.0)
            + max(1 - a - np.exp(e) * (1 - b), 0.0)
            - gaussian_delta(e, mu)
            for e in np.geomspace(1e-4, 1.0, 60)
            for a, b in pairs
        )

    assert excess(table.mu) <= 1e-12
    assert excess(0.97 * table.mu) > 1e-6


def test_labels_in_turn_cost_at_most_what_squares_of_mu_add_up_to() -> None:
    table = VoteTable.gaussian(20, 8.0).quantised()
    for labels in (1, 5, 20):
        tight = table.epsilon(labels, delta=1e-3, method="tight")
        assert 0.0 < tight <= gaussian_epsilon(np.sqrt(labels) * table.mu, 1e-3)
