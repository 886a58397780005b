"""PATE's moments: its three terms, the condition on q, and the exact moments of a binary vote."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaudit.account.conversion import ORDERS, epsilon_from_moments, epsilon_from_rdp
from dpaudit.account.moments import (
    data_independent_moments,
    exact_moments,
    local_divergences,
    pate_moments,
    theorem_3_limit,
    theorem_3_moments,
    wrong_label_probability,
)
from dpaudit.account.vote_table import VoteTable
from dpaudit.errors import SettingsError

EIGHT = np.arange(1.0, 9.0)


def votes_of(sequence: dict[str, Any]) -> np.ndarray:
    n1 = sequence["n1"]
    return np.full(n1["times"], n1["repeat"]) if isinstance(n1, dict) else np.array(n1)


def theorem_3_in_full(q: float, gamma: float, moment: int) -> float:
    """The formula as printed, with digits to waste."""
    with localcontext() as context:
        context.prec = 400
        wrong, growth = Decimal(q), (2 * Decimal(gamma)).exp()
        right = (1 - wrong) * ((1 - wrong) / (1 - growth * wrong)) ** moment
        return float((right + wrong * growth**moment).ln())


def test_single_votes_match_the_reference(accounting_vectors: dict[str, Any]) -> None:
    for vote in accounting_vectors["pate_single_vote"]:
        counts, gamma = vote["counts"], vote["gamma"]
        q = wrong_label_probability(counts, gamma=gamma)
        assert q == pytest.approx(vote["q"], rel=1e-9)
        assert theorem_3_limit(gamma) == pytest.approx(vote["cond_limit_q"], rel=1e-9)
        # The reference of 2018 has the right condition, per order; PATE's script of 2017 loses
        # moments below 1e-16 and tests q < 1/2, which no vote here falls between.
        expected = EIGHT * vote["pate2018_rdp_pure_eps_orders2to9"]
        ours = pate_moments(counts, gamma=gamma, moments=EIGHT)
        np.testing.assert_allclose(ours, expected, rtol=1e-9)
        np.testing.assert_allclose(ours, vote["pate2017_logmgf_l1to8"], rtol=1e-9, atol=1e-15)
        if "exact_data_dependent_logmgf_l1to8" in vote:
            table = VoteTable.noisy_max(sum(counts), 1 / gamma)
            exact = exact_moments(table, [counts[0]], moments=EIGHT)[0]
            np.testing.assert_allclose(exact, vote["exact_data_dependent_logmgf_l1to8"], rtol=1e-9)
            assert np.all(exact <= ours * (1 + 1e-12))
            p = table.probabilities[counts[0]]
            assert p == pytest.approx(vote["p_label_is_first_class"], rel=1e-9)


def test_data_independent_bounds_match_the_reference(accounting_vectors: dict[str, Any]) -> None:
    for row in accounting_vectors["lnmax_binary_data_independent"]:
        moments = np.array(row["orders"]) - 1.0
        ours = data_independent_moments(gamma=row["gamma"], moments=moments) / moments
        np.testing.assert_allclose(ours, row["pate_bound_rdp"], rtol=1e-9)


def test_the_published_epsilons_lie_between_floor_and_ceiling(
    accounting_vectors: dict[str, Any],
) -> None:
    for row in accounting_vectors["published_PATE"]:
        unanimous = row["T"] * pate_moments([250] + 9 * [0], gamma=0.05, moments=EIGHT)
        floor = epsilon_from_moments(EIGHT, unanimous, delta=row["delta"])
        most = row["T"] * data_independent_moments(gamma=0.05, moments=EIGHT)
        ceiling = epsilon_from_moments(EIGHT, most, delta=row["delta"])
        assert floor == pytest.approx(row["floor"], abs=5.1e-4)
        assert ceiling == pytest.approx(row["ceiling_gamma0p05_L8"], abs=5.1e-4)
        assert floor < row["eps"] < ceiling


def test_the_moments_contain_the_paper_s_advanced_composition(
    accounting_vectors: dict[str, Any],
) -> None:
    # 4Tg^2 + 2g sqrt(2T ln 1/d) drops a term of 2 T g^2 l(l+1); with real l, the moments give the
    # concentrated bound 2Tg^2 + 2g sqrt(2T ln 1/d), below it.
    for row in accounting_vectors["published_PATE_advanced_composition"]:
        t, g, log_delta = row["T"], row["gamma"], math.log(1 / row["delta"])
        assert 4 * t * g**2 + 2 * g * math.sqrt(2 * t * log_delta) == pytest.approx(row["value"])
        assert abs(row["value"] - row["paper"]) < 0.7
        fine = np.linspace(0.05, 60, 20_000)
        ours = epsilon_from_moments(
            fine, t * data_independent_moments(gamma=g, moments=fine), delta=row["delta"]
        )
        concentrated = 2 * t * g**2 + 2 * g * math.sqrt(2 * t * log_delta)
        assert ours == pytest.approx(concentrated, rel=1e-5)
        assert ours < row["value"]


def test_no_moments_report_less_than_the_floor(accounting_vectors: dict[str, Any]) -> None:
    for largest, floor in accounting_vectors["zero_cost_floor_ln(1/delta)/L"].items():
        moments = np.arange(1.0, int(largest) + 1)
        free = pate_moments([10_000, 0], gamma=1.0, moments=moments)
        assert np.all(free == 0.0)
        assert epsilon_from_moments(moments, free, delta=1e-5) == pytest.approx(floor, rel=1e-12)


def test_exact_data_dependent_epsilons_match_the_reference(
    accounting_vectors: dict[str, Any],
) -> None:
    for sequence in accounting_vectors["pate_sequences"]:
        table = VoteTable.noisy_max(sequence["k"], 1 / sequence["gamma"])
        spent = exact_moments(table, votes_of(sequence), moments=ORDERS - 1).sum(axis=0)
        epsilon = epsilon_from_rdp(ORDERS, spent / (ORDERS - 1), delta=sequence["delta"])
        expected = sequence["exact_data_dependent_rdp_cks_UNSANITIZED"]
        assert epsilon == pytest.approx(expected, rel=1e-6)


def test_in_pate_s_own_regime_a_strong_consensus_is_nearly_free() -> None:
    # 250 unanimous teachers, scale 20: accounting.md, section 4.
    moments = np.arange(1.0, 400.0)
    table = VoteTable.noisy_max(250, 20.0)
    for labels, unanimous, whatever in ((1000, 0.269, 8.06), (100, 0.185, 2.13)):
        spent = labels * pate_moments([250, 0], gamma=0.05, moments=moments)
        assert epsilon_from_moments(moments, spent, delta=1e-5) == pytest.approx(
            unanimous, abs=1e-3
        )
        public = epsilon_from_rdp(ORDERS, labels * table.rdp(ORDERS), delta=1e-5)
        assert public == pytest.approx(whatever, abs=1e-2)


def test_gamma_l_is_too_small_a_cap_for_two_noisy_counts(
    accounting_vectors: dict[str, Any],
) -> None:
    wrong = accounting_vectors["must_fail"][0]
    gamma, moment = wrong["gamma"], wrong["l"]
    table = VoteTable.noisy_max(301, 1 / gamma)
    exact = exact_moments(table, np.arange(302), moments=[moment]).max()
    assert exact == pytest.approx(wrong["exact_alpha"], rel=1e-9)
    assert wrong["gamma_l"] == gamma * moment < exact
    ours = data_independent_moments(gamma=gamma, moments=[moment])[0]
    assert ours == wrong["two_gamma_l"] >= exact


def test_theorem_3_without_its_condition_credits_privacy(
    accounting_vectors: dict[str, Any],
) -> None:
    for wrong, q_limit in zip(accounting_vectors["must_fail"][1:3], (0.5, 0.46), strict=True):
        counts, gamma, moment = wrong["counts"], wrong["gamma"], wrong["l"]
        q = float(wrong_label_probability(counts, gamma=gamma))
        assert theorem_3_limit(gamma) < q <= q_limit
        credited = wrong.get("unconditioned", wrong.get("pate2017"))
        assert theorem_3_in_full(q, gamma, moment) == pytest.approx(credited, rel=1e-9)
        assert credited < 0.0
        table = VoteTable.noisy_max(sum(counts), 1 / gamma)
        exact = exact_moments(table, [counts[0]], moments=[moment])[0, 0]
        assert exact == pytest.approx(wrong["exact"], rel=1e-9)
        assert np.isinf(theorem_3_moments(q, gamma=gamma, moments=[moment])[0])
        assert pate_moments(counts, gamma=gamma, moments=[moment])[0] >= exact


def test_the_two_noise_bound_does_not_cover_one_noise(accounting_vectors: dict[str, Any]) -> None:
    wrong = accounting_vectors["must_fail"][3]
    k, n1, gamma, moment = wrong["k"], wrong["n1"], wrong["gamma"], [wrong["l"]]
    accounted = pate_moments([k - n1, n1], gamma=gamma, moments=moment)[0]
    assert accounted == pytest.approx(wrong["accounted"], rel=1e-9)
    single = exact_moments(VoteTable.laplace(k, 1 / gamma), [n1], moments=moment)[0, 0]
    assert single == pytest.approx(wrong["exact"], rel=1e-9)
    assert single > 10 * accounted
    # For the mechanism that it is about, it holds.
    double = exact_moments(VoteTable.noisy_max(k, 1 / gamma), [n1], moments=moment)[0, 0]
    assert double <= accounted


@pytest.mark.parametrize(
    ("q", "gamma", "moment"),
    [
        (1e-50, 0.5, 1),
        (1e-50, 0.5, 100),  # e^(2gl) = 1e43: no longer negligible, not yet everything
        (1e-12, 0.05, 8),
        (0.2, 0.6, 50),
        (0.2, 0.6, 1),
        (0.26, 0.5, 20),
        (0.474, 0.05, 3),
        (1e-280, 320.0, 3),
        (0.0, 0.3, 5),
    ],
)
def test_theorem_3_is_the_printed_formula_to_all_digits(
    q: float, gamma: float, moment: int
) -> None:
    ours = theorem_3_moments(q, gamma=gamma, moments=[moment])[0]
    assert ours == pytest.approx(theorem_3_in_full(q, gamma, moment), rel=1e-11)


def test_from_its_limit_on_theorem_3_says_nothing() -> None:
    limit = theorem_3_limit(0.5)
    assert limit == pytest.approx(math.expm1(1.0) / math.expm1(2.0))
    at, below = theorem_3_moments([limit, math.nextafter(limit, 0)], gamma=0.5, moments=[2.0])
    assert np.isinf(at[0])
    assert np.isfinite(below[0])


@given(
    k=st.integers(1, 60),
    share=st.floats(0, 1),
    gamma=st.floats(1e-3, 3.0),
    moment=st.floats(0.5, 100.0),
)
def test_the_bound_holds_for_every_binary_vote(
    k: int, share: float, gamma: float, moment: float
) -> None:
    n1 = round(share * k)
    exact = exact_moments(VoteTable.noisy_max(k, 1 / gamma), [n1], moments=[moment])[0, 0]
    bound = pate_moments([k - n1, n1], gamma=gamma, moments=[moment])[0]
    # Floats of 1e-16 and the table's floor of 2**-1000 leave that much undecided.
    assert exact <= bound * (1 + 1e-9) + 1e-290


def test_q_of_two_classes_is_the_table_and_of_more_a_bound() -> None:
    table = VoteTable.noisy_max(11, 3.0)
    ones = np.arange(12)
    q = wrong_label_probability(np.stack([11 - ones, ones], axis=1), gamma=1 / 3)
    np.testing.assert_allclose(q, np.minimum(table.probabilities, table.probabilities[::-1]))
    stream = np.random.default_rng(20_260_101)
    counts = np.array([9, 6, 5])
    noisy = counts + stream.laplace(scale=3.0, size=(100_000, 3))
    missed = float(np.mean(noisy.argmax(axis=1) != 0))
    bound = float(wrong_label_probability(counts, gamma=1 / 3))
    assert 0.75 * bound < missed < bound
    # Without any consensus the union bound says 1; a uniform draw is the worst there is.
    assert wrong_label_probability([4, 4, 4, 4], gamma=0.1) == pytest.approx(0.75)


def test_exact_moments_start_from_the_table_that_voted() -> None:
    table = VoteTable((0, 2**62, 2**63))
    up, down = table.divergences([2.0])
    # At n = 0 the bit is certainly 0: that tells little about n, but n = 1 could not be taken
    # for n = 0 once it has shown a 1.
    local = local_divergences(table, [2.0])[:, 0]
    assert np.isfinite(up[0, 0])
    assert np.isinf(down[0, 0])
    assert local.tolist() == [up[0, 0], np.inf, down[1, 0]]
    assert local.max() == table.rdp(2.0)


def test_a_table_that_ignores_the_votes_has_no_moments() -> None:
    assert np.all(exact_moments(VoteTable((7, 7, 7)), [0, 1, 2], moments=EIGHT) == 0.0)


def test_senseless_arguments_are_refused() -> None:
    table = VoteTable.noisy_max(3, 1.0)
    for gamma in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(SettingsError, match="`gamma` must be"):
            pate_moments([2, 1], gamma=gamma, moments=EIGHT)
        with pytest.raises(SettingsError, match="`gamma` must be"):
            data_independent_moments(gamma=gamma, moments=EIGHT)
    for counts in ([3], 3, [3, -1], [3, math.nan]):
        with pytest.raises(SettingsError, match="vote counts"):
            wrong_label_probability(counts, gamma=1.0)
    for moments in ([], [0.0], [-1.0], [math.inf], [[1.0]]):
        with pytest.raises(SettingsError, match="`moments` must"):
            exact_moments(table, [0], moments=moments)
    for votes in ([-1], [4], [0.5], [[1]], 1):
        with pytest.raises(SettingsError, match=r"counts in 0\.\.3"):
            exact_moments(table, votes, moments=EIGHT)
    for q in (-0.1, 1.1, math.nan):
        with pytest.raises(SettingsError, match="bound q"):
            theorem_3_moments(q, gamma=1.0, moments=EIGHT)
