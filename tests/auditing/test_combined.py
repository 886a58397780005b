"""The combination of all attacks, and how one candidate is selected."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit.auditing.games import audit_settings
from dpaudit.auditing.two_worlds.attacking import (
    PREFERENCE,
    Combined,
    FittingScore,
    WeightedSum,
    attack_all,
    select,
)
from dpaudit.auditing.two_worlds.spec import plan_trials
from dpaudit.game.trial import Role
from dpaudit.model.choices import Multiplicity
from dpaudit.model.claim import PrivacyClaim
from dpaudit.plugins.named import NamedAttack
from dpaudit.plugins.protocols import BoolArray, FloatArray, World
from reports.calibration.pipeline import FirstFeature
from reports.calibration.simulated import outcomes_of, simulated_audit

ATTACKS = tuple(NamedAttack(name, FirstFeature()) for name in ("first", "second", "third"))
MEMBER = np.arange(200) < 100


def fitted(features: FloatArray, member: BoolArray = MEMBER, *widths: int) -> WeightedSum:
    """The combination of three attacks, fitted on these features."""
    scorer = Combined(ATTACKS, widths or (1, 1, 1)).fit(features, member, seed=0)
    assert isinstance(scorer, WeightedSum)
    return scorer


def drawn(shifts: FloatArray, seed: int) -> FloatArray:
    """Normal features that are shifted in world "in"."""
    return np.random.default_rng(seed).normal(size=(200, len(shifts))) + shifts * MEMBER[:, None]


def test_equal_shifts_get_equal_weights_and_noise_gets_none() -> None:
    scorer = fitted(drawn(np.array([2.0, -2.0, 0.0]), seed=1))
    assert scorer.places.tolist() == [0, 1]
    assert scorer.weights[0] > 0.3
    assert scorer.weights[1] < -0.3
    assert sum(scorer.shares.values()) == pytest.approx(1.0)
    assert set(scorer.shares) == {"first", "second"}


def test_two_features_of_different_attacks_say_more_together() -> None:
    shifts = np.array([1.0, 1.0, 0.0])
    scorer = fitted(drawn(shifts, seed=2))
    scores = scorer(drawn(shifts, seed=3))
    shift = (scores[MEMBER].mean() - scores[~MEMBER].mean()) / scores[~MEMBER].std()
    assert shift > 1.2  # the square root of 2 but for what is estimated


def test_features_belong_to_their_attacks() -> None:
    scorer = fitted(drawn(np.array([0.0, 0.0, 3.0, 0.0, 0.0]), seed=4), MEMBER, 2, 2, 1)
    assert scorer.shares == {"second": 1.0}


@pytest.mark.parametrize("features", [np.zeros((200, 3)), np.full((200, 3), 1e300)])
def test_features_that_never_vary_score_nothing(features: FloatArray) -> None:
    scorer = fitted(features)
    assert scorer.shares == {}
    assert (scorer(features) == 0.0).all()


def test_a_score_depends_on_its_own_vector_alone() -> None:
    features = drawn(np.array([1.0, 1.0, 0.0]), seed=5)
    scorer = fitted(features)
    assert (scorer(features)[:7] == scorer(features[:7])).all()


def test_an_attack_is_selected_only_if_it_promises_clearly_more() -> None:
    weak, strong = FittingScore(1.0, 0.2), FittingScore(1.0 + PREFERENCE + 0.01, 0.3)
    assert select([weak, strong], weak) == 1
    assert select([weak, weak], FittingScore(1.0 - PREFERENCE, 0.1)) == 2
    assert select([weak], strong) == 1
    sure = FittingScore(strong.bound, 0.5)
    assert select([weak, sure], sure) == 1  # its features name the leak


def simulated(shift: float, seed: int, **given: Any) -> list[Any]:
    """The attacks that are scored in an audit whose second attack sees a Gaussian shift."""
    settings = audit_settings(
        shadow_models=100, attacks=(FirstFeature(), FirstFeature()), seed=seed, **given
    )
    audit = simulated_audit(settings, PrivacyClaim(epsilon=1.0, delta=1e-5))
    trials = plan_trials(audit, Role.AUDIT, settings).trials()
    member = np.array([trial.world is World.IN for trial in trials])
    features = np.random.default_rng(seed).normal(size=(len(trials), 2))
    features[:, 1] += shift * member
    outcomes = outcomes_of(trials, features, [None] * len(trials))
    return attack_all(audit, outcomes, Role.AUDIT, settings, audit.claim)


def test_one_candidate_is_scored_by_default_and_all_attacks_with_bonferroni() -> None:
    (only,) = simulated(3.0, 1)
    assert only.attack.name in ("attack 1", "combined")
    assert only.evaluation.proved > 1.0
    every = simulated(3.0, 1, multiplicity=Multiplicity.BONFERRONI)
    assert [one.attack.name for one in every] == ["attack 0", "attack 1"]


@pytest.mark.ci
@pytest.mark.parametrize("audits", [40, pytest.param(300, marks=pytest.mark.slow)])
def test_worlds_that_do_not_differ_are_seldom_told_apart(audits: int) -> None:
    above = sum(simulated(0.0, seed)[0].evaluation.proved > 0.0 for seed in range(audits))
    assert above <= binom.ppf(0.999, audits, 0.05)
