"""What many labels cost: three proofs against reference values and known answers."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import binom

from dpaudit.account import Mechanism, Method, VoteTable, epsilon_from_rdp, vote_table
from dpaudit.errors import ClaimError, SettingsError

WORD = 2**64

VECTOR_ORDERS = np.concatenate([np.arange(1.25, 20.0, 0.25), np.geomspace(20.0, 5000.0, 140)])
"""The grid of the reference values."""


@pytest.fixture(scope="module")
def sequences(accounting_vectors: dict[str, Any]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = accounting_vectors["pate_sequences"]
    assert len(rows) >= 5
    return rows


def labels_of(sequence: dict[str, Any]) -> int:
    n1 = sequence["n1"]
    return len(n1) if isinstance(n1, list) else int(n1["times"])


def fixed_vote_epsilon(table: VoteTable, labels: int, delta: float, votes: int) -> float:
    """The exact epsilon of T labels at a constant vote: no accountant may report less."""
    counts = np.arange(labels + 1)
    p, q = table.probabilities[votes], table.probabilities[votes + 1]
    pair = binom.pmf(counts, labels, p), binom.pmf(counts, labels, q)

    def excess(epsilon: float) -> float:
        return max(
            float(np.maximum(a - math.exp(epsilon) * b, 0.0).sum()) - delta
            for a, b in (pair, pair[::-1])
        )

    return float(brentq(excess, 0.0, 700.0)) if excess(0.0) > 0 else 0.0


def test_renyi_and_convolved_costs_match_the_reference_vectors(
    sequences: list[dict[str, Any]],
) -> None:
    for row in sequences:
        table, labels = VoteTable.noisy_max(row["k"], 1 / row["gamma"]), labels_of(row)
        rdp = table.epsilon(labels, delta=1e-5, method="rdp")
        assert rdp == pytest.approx(row["exact_data_independent_rdp_cks"], abs=1e-6)
        curve = labels * np.asarray(table.rdp(VECTOR_ORDERS))
        again = epsilon_from_rdp(VECTOR_ORDERS, curve, delta=1e-5)
        assert again == pytest.approx(row["exact_data_independent_rdp_cks"], abs=1e-9)
        pld = table.epsilon(labels, delta=1e-5, method="pld")
        assert pld == pytest.approx(row["exact_data_independent_pld"], abs=1e-3)
        assert table.epsilon(labels, delta=1e-5) == min(rdp, pld)
        one = VoteTable.laplace(row["k"], 1 / row["gamma"])
        pld = one.epsilon(labels, delta=1e-5, method="pld")
        assert pld == pytest.approx(row["single_noise_lap1_pld"], abs=1e-3)


@pytest.mark.ci
def test_tight_costs_lie_between_the_lower_bound_and_the_reference(
    sequences: list[dict[str, Any]],
) -> None:
    rows = [row for row in sequences if "lower_bound_fixed_margin" in row]
    assert len(rows) >= 4
    for row in rows:
        table, labels = VoteTable.noisy_max(row["k"], 1 / row["gamma"]), labels_of(row)
        tight = table.epsilon(labels, delta=1e-5, method="tight")
        assert tight >= row["lower_bound_fixed_margin"]
        if "optimal_adaptive_composition_upper" in row:
            assert tight == pytest.approx(row["optimal_adaptive_composition_upper"], abs=1.5e-3)
        assert tight < table.epsilon(labels, delta=1e-5)


def test_a_hundred_gaussian_labels_cost_ninety_two_hundredths() -> None:
    table = VoteTable.gaussian(101, 32.358)
    tight = table.epsilon(100, delta=1e-5, method="tight")
    lost = max(fixed_vote_epsilon(table, 100, 1e-5, votes) for votes in range(50))
    assert 0.916 <= lost <= tight <= 0.925
    assert table.epsilon(100, delta=1e-5, method="rdp") == pytest.approx(1.0, abs=1e-4)
    assert table.epsilon(100, delta=1e-5, method="pld") == pytest.approx(1.155, abs=2e-3)


@pytest.mark.parametrize(
    ("mechanism", "scale", "expected"),
    [
        ("noisy-max", 1 / 0.025016, 0.9222),
        pytest.param("laplace", 1 / 0.027238, 0.9999, marks=pytest.mark.ci),
    ],
)
def test_tight_costs_of_laplace_labels(mechanism: str, scale: float, expected: float) -> None:
    table = vote_table(Mechanism(mechanism), 301, scale)
    tight = table.epsilon(100, delta=1e-5, method="tight")
    assert tight == pytest.approx(expected, abs=2e-3)


@settings(deadline=None, max_examples=25)
@given(
    mechanism=st.sampled_from(Mechanism),
    k=st.integers(1, 12),
    scale=st.floats(1.0, 60.0),
    labels=st.integers(1, 40),
    delta=st.sampled_from([1e-2, 1e-5, 1e-8]),
)
def test_no_method_reports_less_than_constant_votes_lose(
    mechanism: Mechanism, k: int, scale: float, labels: int, delta: float
) -> None:
    table = vote_table(mechanism, k, scale)
    lost = max(fixed_vote_epsilon(table, labels, delta, votes) for votes in range(k))
    costs = {m: table.epsilon(labels, delta=delta, method=m) for m in Method}
    assert min(costs.values()) >= lost - 1e-7
    assert costs[Method.BEST] == min(costs[Method.RDP], costs[Method.PLD])
    assert costs[Method.TIGHT] <= costs[Method.RDP]


@pytest.mark.parametrize("method", ["pld", "tight", "best"])
def test_randomised_response_costs_its_epsilon(method: str) -> None:
    lie = int(WORD / (1.0 + math.e))
    table = VoteTable(thresholds=(lie, WORD - lie))
    one = table.epsilon(1, delta=1e-9, method=method)
    assert one == pytest.approx(1.0, abs=2e-3)
    # delta(epsilon) of one answer is p - e^epsilon q.
    p, q = math.e / (1 + math.e), 1 / (1 + math.e)
    half = table.epsilon(1, delta=p - math.exp(0.5) * q, method=method)
    assert half == pytest.approx(0.5, abs=2e-3)
    # Basic composition is exact for pure randomised response.
    assert table.epsilon(3, delta=0.0, method=method) == pytest.approx(3.0)
    assert table.epsilon(3, delta=1e-9, method=method) == pytest.approx(3.0, abs=6e-3)


def adaptive_optimum(table: VoteTable, labels: int, epsilon: float) -> float:
    """delta(epsilon) over all adaptive strategies, by recursion over every history: no grid."""
    p = table.probabilities
    steps = list(pairwise(p))
    steps += [(b, a) for a, b in steps]

    def value(loss: float, left: int) -> float:
        if left == 0:
            return max(0.0, 1.0 - math.exp(epsilon - loss))
        return max(
            a * value(loss + math.log(a / b), left - 1)
            + (1 - a) * value(loss + math.log((1 - a) / (1 - b)), left - 1)
            for a, b in steps
        )

    return value(0.0, labels)


@pytest.mark.parametrize("thresholds", [(0.1, 0.5, 0.6), (0.5, 0.55, 0.9), (0.02, 0.3, 0.98)])
def test_tight_is_the_optimum_over_every_adaptive_strategy(
    thresholds: tuple[float, ...],
) -> None:
    table = VoteTable(thresholds=tuple(int(p * WORD) for p in thresholds))
    for epsilon in (0.3, 1.0):
        delta = adaptive_optimum(table, 4, epsilon)
        assert delta > 1e-4
        tight = table.epsilon(4, delta=delta, method="tight")
        assert epsilon - 1e-9 <= tight <= epsilon * 1.01 + 1e-3


@pytest.mark.parametrize("method", Method)
def test_labels_that_ignore_the_votes_and_no_labels_cost_nothing(method: Method) -> None:
    assert VoteTable(thresholds=(WORD // 3,) * 6).epsilon(10, delta=1e-5, method=method) == 0.0
    certain = VoteTable(thresholds=(0, WORD))
    assert certain.epsilon(0, delta=1e-5, method=method) == 0.0
    assert certain.epsilon(1, delta=1e-5, method=method) == math.inf


def test_a_claim_tells_its_derivation() -> None:
    table = VoteTable.gaussian(50, 17.8)
    claim = table.claim(29, delta=1e-5)
    assert claim.epsilon == table.epsilon(29, delta=1e-5)
    assert claim.delta == 1e-5
    assert not claim.data_dependent
    for words in ("29 one-bit votes of 50 teachers", "standard deviation 17.8", "Rényi"):
        assert words in claim.source
    assert "dynamic programming" in table.claim(29, delta=1e-5, method="tight").source
    with pytest.raises(ClaimError):
        table.claim(0, delta=1e-5)


def test_importing_the_accountant_does_not_import_dp_accounting() -> None:
    import subprocess
    import sys

    code = (
        "import sys, dpaudit.account as a; "
        "a.calibrate(epsilon=1, delta=1e-5, k=50, accuracy=0.65, method='rdp'); "
        "sys.exit('dp_accounting' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": -1}, "`labels` must be .*, got -1"),
        ({"delta": 1.0}, "`delta` must be .*, got 1.0"),
        ({"delta": -0.1}, "`delta` must be .*, got -0.1"),
        ({"delta": math.nan}, "`delta` must be .*, got nan"),
        ({"method": "moments"}, "one of rdp, pld, tight, best"),
    ],
)
def test_senseless_arguments_are_refused(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"labels": 10, "delta": 1e-5, "method": "rdp"} | change
    with pytest.raises(SettingsError, match=message):
        VoteTable.gaussian(5, 2.0).epsilon(
            arguments["labels"], delta=arguments["delta"], method=arguments["method"]
        )
