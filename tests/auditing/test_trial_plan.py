"""Which trial is of which world: fair coins where they are scored, halves where they are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from dpaudit.auditing.games import audit_settings
from dpaudit.auditing.two_worlds.spec import (
    FIRST_FITTED,
    TrialPlan,
    TwoWorldSpec,
    build_two_worlds,
    in_first,
    plan_trials,
)
from dpaudit.game.trial import Role
from dpaudit.model.tables import load
from dpaudit.plugins.protocols import World


@pytest.fixture(scope="module")
def audit() -> TwoWorldSpec:
    data = pd.DataFrame({"age": np.arange(20, 60)})
    table = load(data, None)
    return build_two_worlds("null", table, audit_settings(epsilon=1.0))


def planned(audit: TwoWorldSpec, **settings: Any) -> TrialPlan:
    return plan_trials(audit, Role.AUDIT, audit_settings(epsilon=1.0, **settings))


def test_the_fitting_part_is_balanced_and_the_rest_are_fair_coins(audit: TwoWorldSpec) -> None:
    plan = planned(audit, shadow_models=20_000)
    assert plan.fitted == 8000
    assert plan.worlds[: plan.fitted].count(World.IN) == 4000
    coins = np.array([world is World.IN for world in plan.worlds[plan.fitted :]])
    assert binomtest(int(coins.sum()), len(coins)).pvalue > 0.001
    turns = int(np.count_nonzero(coins[1:] != coins[:-1]))
    assert binomtest(turns, len(coins) - 1).pvalue > 0.001
    assert coins.sum() != 6000, "balanced coins would not be independent"


def test_a_sequential_audit_draws_all_but_the_first(audit: TwoWorldSpec) -> None:
    plan = planned(audit, shadow_models=400, sequential=True)
    assert plan.worlds[:FIRST_FITTED].count(World.IN) == FIRST_FITTED // 2
    assert plan.worlds[FIRST_FITTED : plan.fitted].count(World.IN) != 72
    assert plan.fitted == 160


def test_a_hold_out_has_as_many_of_each_world(audit: TwoWorldSpec) -> None:
    plan = planned(audit, shadow_models=400, threshold="hold-out")
    assert [plan.worlds.count(world) for world in World] == [200, 200]
    assert [plan.worlds[: plan.fitted].count(world) for world in World] == [120, 120]


def test_trials_are_numbered_within_their_world(audit: TwoWorldSpec) -> None:
    plan = planned(audit, shadow_models=100)
    trials = plan.trials()
    assert len(set(trials)) == 100
    for world in World:
        numbers = [trial.number for trial in trials if trial.world is world]
        assert numbers == list(range(plan.worlds.count(world)))
    assert plan.trials(10, 20) == trials[10:20]
    fitting, scored = plan.parts
    assert fitting == in_first(trials[: plan.fitted])
    assert set(scored) == set(trials[plan.fitted :])
    assert max(trial.number for trial in fitting) < min(trial.number for trial in scored)


def test_the_plan_depends_on_the_seed_and_nothing_else(audit: TwoWorldSpec) -> None:
    assert planned(audit) == planned(audit)
    assert planned(audit).worlds[:160] == planned(audit, shadow_models=600).worlds[:160]
