"""What a budget buys, and the odometer that holds it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.account import (
    LabelBudget,
    LabelPlan,
    Mechanism,
    VoteTable,
    calibrate,
    calibrate_gaussian,
    vote_table,
)
from dpaudit.errors import BudgetError, SettingsError
from dpaudit.model.gaussian import gaussian_epsilon


def test_plans_match_the_reference_vectors(accounting_vectors: dict[str, Any]) -> None:
    rows = accounting_vectors["defaults_gauss1_exactRDP"]
    assert len(rows) >= 20
    for row in rows:
        plan = calibrate(
            epsilon=row["eps"],
            delta=row["delta"],
            k=row["k"],
            accuracy=row["acc_at_80pct"],
            method="rdp",
        )
        assert plan.scale == pytest.approx(row["s"], rel=1e-12)
        assert plan.labels == row["T"]


COLUMNS = {
    Mechanism.GAUSSIAN: ("G1_exactRDP_s", "rdp", False),
    Mechanism.LAPLACE: ("L1_PLD_gamma", "pld", True),
    Mechanism.NOISY_MAX: ("LN_exactRDP_gamma", "rdp", True),
}


@pytest.mark.parametrize("mechanism", Mechanism)
def test_calibrated_noise_matches_the_reference_vectors(
    mechanism: Mechanism, accounting_vectors: dict[str, Any]
) -> None:
    rows = accounting_vectors["calibration_eps1_delta1e-5"]
    assert [row["T"] for row in rows] == [1, 10, 100, 1000, 10_000]
    column, method, inverted = COLUMNS[mechanism]
    for row in rows[:4] if method == "pld" else rows:
        plan = calibrate(
            epsilon=1.0, delta=1e-5, k=301, labels=row["T"], mechanism=mechanism, method=method
        )
        expected = 1 / row[column] if inverted else row[column]
        assert plan.scale == pytest.approx(expected, rel=5e-4)
        assert plan.epsilon <= 1.0
        assert plan.epsilon == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize(
    ("mechanism", "scale", "wrong"),
    [("noisy-max", 40.0, 80.9), ("laplace", 36.7, 39.4), ("gaussian", 32.4, 37.3)],
)
def test_a_hundred_labels_at_epsilon_one(mechanism: str, scale: float, wrong: float) -> None:
    # The goal's figures; a looser accountant (CDP, Rényi for Laplace, additive for normal noise)
    # needs the scale in the last column.
    plan = calibrate(epsilon=1.0, delta=1e-5, k=301, labels=100, mechanism=Mechanism(mechanism))
    assert plan.scale == pytest.approx(scale, abs=0.06)
    for k in (51, 101, 301):  # for even k, where no step crosses the tie, they are a bit smaller
        table = vote_table(Mechanism(mechanism), k, plan.scale)
        assert table.epsilon(100, delta=1e-5) == pytest.approx(1.0, abs=1e-3)
        assert vote_table(Mechanism(mechanism), k, wrong).epsilon(100, delta=1e-5) < 0.95


@pytest.mark.ci
@settings(deadline=None, max_examples=60)
@given(
    epsilon=st.floats(0.05, 20.0),
    delta=st.floats(1e-12, 1e-2),
    teachers=st.integers(1, 80),
    accuracy=st.floats(0.501, 0.999),
)
def test_a_plan_stays_within_the_budget_and_one_more_label_would_not(
    epsilon: float, delta: float, teachers: int, accuracy: float
) -> None:
    def plan(budget: float) -> LabelPlan:
        return calibrate(epsilon=budget, delta=delta, k=teachers, accuracy=accuracy, method="rdp")

    try:
        labels, table = plan(epsilon).labels, plan(epsilon).table
        assert labels >= 1
        assert plan(epsilon).delta == delta
        spent = table.epsilon(labels, delta=delta, method="rdp")
        assert plan(epsilon).epsilon == spent <= epsilon
    except SettingsError:
        labels, table = 0, plan(1e3).table
    assert table.epsilon(labels + 1, delta=delta, method="rdp") > epsilon


def test_a_budget_met_exactly_is_met() -> None:
    plan = calibrate(epsilon=2.0, delta=1e-5, k=50, accuracy=0.65)
    exact = calibrate(epsilon=plan.epsilon, delta=1e-5, k=50, accuracy=0.65)
    assert exact == plan


def test_a_label_is_right_as_often_as_asked_at_eighty_per_cent_consensus() -> None:
    for mechanism in Mechanism:
        plan = calibrate(epsilon=3.0, delta=1e-5, k=50, accuracy=0.8, mechanism=mechanism)
        assert plan.table.probabilities[40] == pytest.approx(0.8, rel=1e-12)
        assert plan.table.probabilities[10] == pytest.approx(0.2, rel=1e-12)
        assert plan.table.accuracy(0.8) == pytest.approx(0.8)


def test_the_claim_is_not_below_what_the_labels_of_a_contested_vote_lose() -> None:
    # T bits at the steepest step are two binomials: their exact delta at the claimed epsilon
    # (the largest gap over threshold events) must not exceed delta, in either direction.
    plan = calibrate(epsilon=1.0, delta=1e-5, k=21, accuracy=0.65)
    p, q = plan.table.probabilities[10], plan.table.probabilities[11]
    counts = np.arange(plan.labels + 1)
    ways = np.array([math.comb(plan.labels, int(c)) for c in counts], dtype=float)
    out = ways * p**counts * (1 - p) ** (plan.labels - counts)
    in_ = ways * q**counts * (1 - q) ** (plan.labels - counts)

    def delta_at(epsilon: float) -> float:
        ways_round = ((out, in_), (in_, out))
        return max(float(np.maximum(a - np.exp(epsilon) * b, 0).sum()) for a, b in ways_round)

    assert delta_at(plan.epsilon) <= plan.delta
    assert delta_at(0.8 * plan.epsilon) > plan.delta  # and the claim is not wildly loose


def test_a_budget_too_small_for_one_label_says_what_one_costs() -> None:
    with pytest.raises(SettingsError, match=r"costs .* at delta 1e-05\. Raise epsilon"):
        calibrate(epsilon=0.1, delta=1e-5, k=10, accuracy=0.95)


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": 0.0},
        {"epsilon": -1.0},
        {"epsilon": math.inf},
        {"epsilon": math.nan},
        {"delta": 0.0},
        {"delta": 1.0},
        {"delta": math.nan},
        {"accuracy": 0.5},
        {"accuracy": 1.0},
        {"accuracy": math.nan},
        {"consensus": 0.5},
        {"consensus": 1.01},
        {"labels": 0, "accuracy": None},
        {"labels": 10**13, "accuracy": None},
    ],
)
def test_senseless_settings_are_refused_by_name(change: dict[str, float | None]) -> None:
    arguments = {"epsilon": 1.0, "delta": 1e-5, "k": 50, "accuracy": 0.65} | change
    with pytest.raises(SettingsError, match=f"^`{next(iter(change))}` (is|must be) "):
        calibrate(**arguments)  # type: ignore[arg-type]


def test_labels_and_accuracy_are_two_ways_of_asking() -> None:
    for choice in ({}, {"labels": 10, "accuracy": 0.65}):
        with pytest.raises(SettingsError, match="either the number of labels or the accuracy"):
            calibrate(epsilon=1.0, delta=1e-5, k=50, **choice)  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match=r"`teachers` must be .*, got 0"):
        calibrate(epsilon=1.0, delta=1e-5, k=0, labels=10)


def test_the_least_noise_is_the_least() -> None:
    plan = calibrate(epsilon=1.0, delta=1e-5, k=50, labels=29)
    table = VoteTable.gaussian(50, plan.scale * (1 - 1e-6)).quantised()
    assert plan.epsilon <= 1.0 < table.epsilon(29, delta=1e-5)


def test_a_negative_number_of_labels_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"`labels` must be .*, got -1"):
        LabelBudget(-1)
    with pytest.raises(SettingsError, match=r"`labels` must be .*, got 0"):
        LabelBudget(1).spend(0)


def test_the_odometer_counts_and_refuses_before_spending() -> None:
    budget = LabelBudget(2)
    assert (budget.spent, budget.left) == (0, 2)
    budget.spend()
    budget.spend()
    assert (budget.spent, budget.left) == (2, 0)
    for _ in range(2):
        with pytest.raises(BudgetError, match="all 2 labels"):
            budget.spend()
        assert (budget.spent, budget.left) == (2, 0)
    several = LabelBudget(5)
    several.spend(3)
    with pytest.raises(BudgetError, match="3 labels asked, 2 of all 5"):
        several.spend(3)
    assert (several.spent, several.left) == (3, 2)


def test_an_empty_budget_pays_for_nothing() -> None:
    with pytest.raises(BudgetError):
        LabelBudget(0).spend()


# Labels beside other Gaussian mechanisms.


@pytest.mark.parametrize("mu", [1e-4, 0.01, 0.085, 0.27, 2.0, 50.0])
@pytest.mark.parametrize("k", [1, 50])
def test_labels_cost_no_more_mu_than_there_is_and_hardly_less(mu: float, k: int) -> None:
    plan = calibrate_gaussian(mu=mu, delta=1e-5, k=k, accuracy=0.65, most=1000)
    spent = math.sqrt(plan.labels) * plan.table.mu
    assert 1 <= plan.labels <= 1000
    assert spent <= mu
    sharpest = 4.753424 * (1 + k % 2)  # of a clipped table; with an even k there are ties
    assert spent == pytest.approx(min(mu, math.sqrt(plan.labels) * sharpest), rel=1e-5)
    assert plan.epsilon == gaussian_epsilon(spent, 1e-5)
    if 1 < plan.labels < 1000:
        right = plan.table.accuracy(0.8)
        assert right == pytest.approx(0.65, abs=0.1 / plan.labels + 0.002)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"mu": 0.0}, "`mu` must be .*, got 0"),
        ({"delta": 0.0}, "delta"),
        ({"k": 0}, "`teachers` must be"),
    ],
)
def test_a_senseless_budget_in_mu_is_refused(change: dict[str, Any], said: str) -> None:
    arguments: dict[str, Any] = {"mu": 1.0, "delta": 1e-5, "k": 5, "accuracy": 0.65, "most": 9}
    with pytest.raises(SettingsError, match=said):
        calibrate_gaussian(**arguments | change)
