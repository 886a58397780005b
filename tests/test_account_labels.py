"""What a budget buys, and the odometer that holds it."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from dpaudit.account import (
    LabelBudget,
    VoteTable,
    epsilon_of_labels,
    gaussian_vote_table,
    plan_labels,
)
from dpaudit.errors import BudgetError, SettingsError


def test_plans_match_the_reference_vectors(shared: Path) -> None:
    vectors = json.loads((shared / "vectors" / "accounting.json").read_text())
    rows = vectors["defaults_gauss1_exactRDP"]
    assert len(rows) >= 20
    for row in rows:
        plan = plan_labels(
            epsilon=row["eps"],
            delta=row["delta"],
            teachers=row["k"],
            accuracy=row["acc_at_80pct"],
        )
        assert plan.scale == pytest.approx(row["s"], rel=1e-12)
        # Small orders decide at large epsilon; there the vectors' grid is coarser, so that they
        # allow up to 0.2 % fewer labels (one more where that rounds to nothing).
        slack = 1 + row["T"] // 500 if row["eps"] >= 10 else 0
        assert row["T"] <= plan.labels <= row["T"] + slack


def test_calibrated_scales_spend_one(shared: Path) -> None:
    vectors = json.loads((shared / "vectors" / "accounting.json").read_text())
    rows = {row["T"]: row["G1_exactRDP_s"] for row in vectors["calibration_eps1_delta1e-5"]}
    for labels in (1, 10, 100, 1000, 10_000):
        table = gaussian_vote_table(teachers=101, scale=rows[labels])
        spent = epsilon_of_labels(table, labels=labels, delta=1e-5)
        assert spent == pytest.approx(1.0, rel=1e-4)


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
    try:
        plan = plan_labels(epsilon=epsilon, delta=delta, teachers=teachers, accuracy=accuracy)
        labels, scale = plan.labels, plan.scale
        assert labels >= 1
        assert plan.delta == delta
        table = gaussian_vote_table(teachers=teachers, scale=scale)
        assert plan.epsilon == epsilon_of_labels(table, labels=labels, delta=delta) <= epsilon
    except SettingsError:
        labels, scale = (
            0,
            plan_labels(epsilon=1e3, delta=delta, teachers=teachers, accuracy=accuracy).scale,
        )
        table = gaussian_vote_table(teachers=teachers, scale=scale)
    assert epsilon_of_labels(table, labels=labels + 1, delta=delta) > epsilon


def test_a_budget_met_exactly_is_met() -> None:
    plan = plan_labels(epsilon=2.0, delta=1e-5, teachers=50)
    exact = plan_labels(epsilon=plan.epsilon, delta=1e-5, teachers=50)
    assert exact == plan


def test_a_label_is_right_as_often_as_asked_at_eighty_per_cent_consensus() -> None:
    plan = plan_labels(epsilon=3.0, delta=1e-5, teachers=50, accuracy=0.8)
    table = gaussian_vote_table(teachers=50, scale=plan.scale)
    assert table.probabilities[40] == pytest.approx(0.8, rel=1e-12)
    assert table.probabilities[10] == pytest.approx(0.2, rel=1e-12)
    assert ndtr(15 / plan.scale) == pytest.approx(0.8)


def test_the_claim_is_not_below_what_the_labels_of_a_contested_vote_lose() -> None:
    # T bits at the steepest step are two binomials: their exact delta at the claimed epsilon
    # (the largest gap over threshold events) must not exceed delta, in either direction.
    plan = plan_labels(epsilon=1.0, delta=1e-5, teachers=21)
    table = gaussian_vote_table(teachers=21, scale=plan.scale)
    p, q = table.probabilities[10], table.probabilities[11]
    counts = np.arange(plan.labels + 1)
    ways = np.array([math.comb(plan.labels, int(c)) for c in counts], dtype=float)
    out = ways * p**counts * (1 - p) ** (plan.labels - counts)
    in_ = ways * q**counts * (1 - q) ** (plan.labels - counts)

    def delta_at(epsilon: float) -> float:
        ways_round = ((out, in_), (in_, out))
        return max(float(np.maximum(a - np.exp(epsilon) * b, 0).sum()) for a, b in ways_round)

    assert delta_at(plan.epsilon) <= plan.delta
    assert delta_at(0.8 * plan.epsilon) > plan.delta  # and the claim is not wildly loose


def test_no_labels_cost_nothing_whatever_the_table() -> None:
    assert epsilon_of_labels(VoteTable(thresholds=(0, 2**64)), labels=0, delta=1e-5) == 0.0
    assert epsilon_of_labels(VoteTable(thresholds=(0, 2**64)), labels=1, delta=1e-5) == math.inf


def test_a_budget_too_small_for_one_label_says_what_one_costs() -> None:
    with pytest.raises(SettingsError, match=r"costs .* at delta 1e-05\. Raise epsilon"):
        plan_labels(epsilon=0.1, delta=1e-5, teachers=10, accuracy=0.95)


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
        {"teachers": 0},
        {"accuracy": 0.5},
        {"accuracy": 1.0},
        {"accuracy": math.nan},
    ],
)
def test_senseless_settings_are_refused_by_name(change: dict[str, float]) -> None:
    arguments = {"epsilon": 1.0, "delta": 1e-5, "teachers": 50, "accuracy": 0.65} | change
    with pytest.raises(SettingsError, match=f"^{next(iter(change))} is "):
        plan_labels(**arguments)  # type: ignore[arg-type]


def test_a_negative_number_of_labels_is_refused() -> None:
    with pytest.raises(SettingsError, match="labels is -1"):
        epsilon_of_labels(gaussian_vote_table(teachers=2, scale=1.0), labels=-1, delta=1e-5)
    with pytest.raises(SettingsError, match="labels is -1"):
        LabelBudget(-1)


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


def test_an_empty_budget_pays_for_nothing() -> None:
    with pytest.raises(BudgetError):
        LabelBudget(0).spend()
