"""Algorithm 1 of the PATE-GAN paper and what implementations made of it."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest

from dpaudit.account.conversion import epsilon_from_moments
from dpaudit.account.moments import (
    AS_PUBLISHED,
    BOREALIS_SMARTNOISE,
    PAPER_MOMENTS,
    PATE_SCRIPT_2017,
    SYNTHCITY,
    Deviation,
    algorithm_1_claim,
    algorithm_1_moments,
    data_independent_moments,
    pate_moments,
)
from dpaudit.account.vote_table import VoteTable
from dpaudit.errors import ClaimError, SettingsError

EIGHT = np.arange(1.0, 9.0)


def epsilon_of_any_votes(labels: int, *, gamma: float, delta: float) -> float:
    """What Algorithm 1 proves by its data-independent terms alone."""
    orders = np.arange(1.0, PAPER_MOMENTS + 1.0)
    spent = labels * data_independent_moments(gamma=gamma, moments=orders)
    return epsilon_from_moments(orders, spent, delta=delta)


def votes_of(sequence: dict[str, Any]) -> np.ndarray:
    n1 = sequence["n1"]
    return np.full(n1["times"], n1["repeat"]) if isinstance(n1, dict) else np.array(n1)


def reported_epsilon(votes: np.ndarray, **arguments: Any) -> float:
    return algorithm_1_claim(votes, **arguments).epsilon


def test_sequences_match_the_reference(accounting_vectors: dict[str, Any]) -> None:
    for sequence in accounting_vectors["pate_sequences"]:
        votes = votes_of(sequence)
        gamma, delta = sequence["gamma"], sequence["delta"]

        reported = partial(
            reported_epsilon, votes, teachers=sequence["k"], gamma=gamma, delta=delta
        )
        buggy = sequence["buggy"]
        for ours, expected in (
            (reported(), sequence["alg1_as_published_L100"]),
            (reported(deviations=()), sequence["alg1_with_condition_and_2gl_L100"]),
            (reported(deviations=PATE_SCRIPT_2017, moments=8), sequence["pate2017_script_L8"]),
            (reported(), buggy["updated"]),
            (reported(deviations=SYNTHCITY), buggy["synthcity"]),
            (reported(deviations=BOREALIS_SMARTNOISE), buggy["borealis_smartnoise"]),
        ):
            assert ours == pytest.approx(expected, rel=1e-9)
        public = epsilon_of_any_votes(votes.size, gamma=gamma, delta=delta)
        assert public == pytest.approx(sequence["alg1_data_independent_L100"], rel=1e-9)


def test_single_votes_match_pate_s_script(accounting_vectors: dict[str, Any]) -> None:
    for vote in accounting_vectors["pate_single_vote"]:
        ours = algorithm_1_moments(
            vote["counts"], gamma=vote["gamma"], moments=EIGHT, deviations=PATE_SCRIPT_2017
        )
        np.testing.assert_allclose(ours, vote["pate2017_logmgf_l1to8"], rtol=1e-9)


def test_wrong_formulas_are_wrong_and_named(accounting_vectors: dict[str, Any]) -> None:
    hole, half = accounting_vectors["must_fail"][1:3]
    for wrong, deviation, key in (
        (hole, Deviation.UNCONDITIONED, "unconditioned"),
        (half, Deviation.HALF, "pate2017"),
    ):
        moments = algorithm_1_moments(
            wrong["counts"], gamma=wrong["gamma"], moments=[wrong["l"]], deviations={deviation}
        )
        assert moments[0] == pytest.approx(wrong[key], rel=1e-9)
        assert moments[0] < 0.0 < wrong["exact"]
        mended = pate_moments(wrong["counts"], gamma=wrong["gamma"], moments=[wrong["l"]])
        assert mended[0] >= wrong["exact"]


def test_the_index_slip_costs_what_was_measured() -> None:
    # accounting.md, E5: k = 100, gamma = .04, 40 labels; at 80 % consensus.
    arguments: dict[str, Any] = {"teachers": 100, "gamma": 0.04, "delta": 1e-5}
    votes = np.full(40, 80)
    slipped = algorithm_1_claim(votes, **arguments, deviations=SYNTHCITY).epsilon
    published = algorithm_1_claim(votes, **arguments).epsilon
    assert slipped == pytest.approx(2.208, abs=6e-4)
    assert published == pytest.approx(1.464, abs=6e-4)


def test_the_index_slip_under_counts_only_if_two_gamma_exceeds_one() -> None:
    for gamma, under in ((0.45, False), (0.55, True)):
        counts = [2, 30]
        right = pate_moments(counts, gamma=gamma, moments=[4.0])[0]
        slipped = algorithm_1_moments(
            counts, gamma=gamma, moments=[4.0], deviations={Deviation.EXPONENT_SLIP}
        )[0]
        assert bool(slipped < right) is under
    # In Theorem 3's hole it is cut at 0: nothing is credited, nothing paid.
    free = algorithm_1_moments(
        [5, 5], gamma=0.5, moments=[1.0], deviations={Deviation.EXPONENT_SLIP}
    )
    assert free[0] == 0.0


def test_without_the_logarithm_nothing_but_the_cap_is_left() -> None:
    # t >= log t, and t is 1 + a little: any use of the votes is lost as long as the cap is below 1.
    lost = algorithm_1_moments(
        [0, 100], gamma=0.1, moments=EIGHT, deviations={Deviation.MISSING_LOG}
    )
    assert lost[0] == pytest.approx(0.04)
    assert lost[-1] == pytest.approx(1.0, abs=2e-3)
    kept = pate_moments([0, 100], gamma=0.1, moments=EIGHT)
    assert np.all(kept < 0.05 * lost)


def test_no_deviation_is_pate() -> None:
    counts = [[6, 4], [10, 0], [5, 5]]
    ours = algorithm_1_moments(counts, gamma=0.3, moments=EIGHT, deviations=())
    np.testing.assert_array_equal(ours, pate_moments(counts, gamma=0.3, moments=EIGHT))


def test_where_a_formula_has_no_value_the_others_count() -> None:
    # gamma above ln(2)/2 at a tie: 1 - e^2g q is negative, and so is its cube.
    for deviations in (AS_PUBLISHED, SYNTHCITY):
        moments = algorithm_1_moments([5, 5], gamma=0.4, moments=[3.0], deviations=deviations)
        assert moments[0] == pytest.approx(2 * 0.16 * 12)
    huge = algorithm_1_moments([0, 10**6], gamma=50.0, moments=EIGHT, deviations=AS_PUBLISHED)
    assert np.all(np.isfinite(huge))


def test_the_overshoot_of_the_published_stop_is_reproduced() -> None:
    # accounting.md, E8: 33 iterations of 320 labels spend 1.007 of 1, at gamma = .001.
    spent = epsilon_of_any_votes(33 * 320, gamma=0.001, delta=1e-5)
    assert spent == pytest.approx(1.007, abs=6e-4)
    assert epsilon_of_any_votes(32 * 320, gamma=0.001, delta=1e-5) < 1.0


def test_the_terms_whatever_the_votes_cover_what_is_exact() -> None:
    exact = VoteTable.noisy_max(100, 40.0).epsilon(100, delta=1e-5, method="rdp")
    assert exact < epsilon_of_any_votes(100, gamma=0.025, delta=1e-5)


def test_the_data_dependent_claim_says_so() -> None:
    claim = algorithm_1_claim([8, 2], teachers=10, gamma=0.1, delta=1e-5)
    assert claim.data_dependent
    assert claim.delta == 1e-5
    assert claim.source.startswith("data-dependent, not releasable: ")
    assert "accountant-uncapped, accountant-unconditioned" in claim.source
    # It says nothing about the votes but their number.
    other = algorithm_1_claim([1, 9], teachers=10, gamma=0.1, delta=1e-5)
    assert other.source == claim.source
    assert algorithm_1_claim(
        [8, 2], teachers=10, gamma=0.1, delta=1e-5, deviations=()
    ).source.endswith("none")


def test_a_credited_cost_is_no_claim() -> None:
    with pytest.raises(ClaimError, match="epsilon"):
        algorithm_1_claim([5] * 100, teachers=10, gamma=0.5, delta=1e-5, moments=1)


def test_senseless_arguments_are_refused() -> None:
    usual: dict[str, Any] = {"teachers": 10, "gamma": 0.1, "delta": 1e-5}
    for change, message in (
        ({"teachers": 0}, "teachers` must be"),
        ({"gamma": 0.0}, "`gamma` must be .*, got 0"),
        ({"delta": 0.0}, "`delta` must be .*, got 0"),
        ({"delta": math.nan}, "`delta` must be .*, got nan"),
        ({"moments": 0}, "`moments` must be .*, got 0"),
        ({"deviations": {Deviation.HALF, Deviation.MISSING_LOG}}, "contradict"),
    ):
        with pytest.raises(SettingsError, match=message):
            algorithm_1_claim([5], **(usual | change))
    with pytest.raises(SettingsError, match=r"0\.\.10"):
        algorithm_1_claim([11], **usual)
