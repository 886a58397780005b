"""Attacks on what a fitted model discloses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpaudit.bounds import auc
from dpaudit.errors import SettingsError
from dpaudit.model.choices import Access
from dpaudit.plugins.access import Disclosure, ModelAttack, access_of
from dpaudit_attacks.groundhog import Ensemble
from dpaudit_attacks.models import SHOWN, Logan, ParameterSummary, ReleasedFacts
from dpaudit_attacks.timing import Timing
from samples import PEOPLE, game_view, people

VIEW = replace(
    game_view(PEOPLE, people().iloc[[0]], others=people().iloc[1:]), released_facts=("a", "b")
)


@pytest.mark.parametrize(
    ("attack", "disclosed"),
    [
        (Logan(), np.arange(5.0)),
        (Logan(), np.ones(1)),
        (ParameterSummary(), np.zeros(0)),
        (ParameterSummary(), np.arange(3.0)),
        (ParameterSummary(), np.random.default_rng(1).normal(size=1000)),
        (ReleasedFacts(), np.array([3.0, 4.0])),
        (Timing(), np.arange(6.0)),
    ],
)
def test_there_is_one_finite_number_for_each_name(attack: ModelAttack, disclosed) -> None:
    features = attack.model_features(disclosed, VIEW)
    assert features.shape == (len(attack.feature_names(VIEW)),)
    assert np.isfinite(features).all()
    assert isinstance(attack, ModelAttack)


def test_what_attacks_see() -> None:
    assert access_of(Ensemble()) is Access.OUTPUT
    assert access_of(Logan()) is access_of(ParameterSummary()) is Access.MODEL
    assert access_of(ReleasedFacts()) is Access.RELEASED
    assert access_of(Timing()) is Access.TIMING
    assert [one.access for one in Disclosure] == [
        Access.MODEL,
        Access.MODEL,
        Access.RELEASED,
        Access.TIMING,
    ]
    assert Access.RELEASED.includes(Access.MODEL)
    assert not Access.OUTPUT.includes(Access.MODEL)


def test_a_clock_sees_rows_and_no_model() -> None:
    assert {one for one in Access if Access.TIMING.includes(one)} == {Access.OUTPUT, Access.TIMING}
    timed = {Access.TIMING, Access.EVERYTHING}
    assert {one for one in Access if one.includes(Access.TIMING)} == timed
    assert all(Access.EVERYTHING.includes(one) for one in Access)
    assert {one for one in Access if one.includes(Access.EVERYTHING)} == {Access.EVERYTHING}


def test_logan_compares_the_target_with_records_of_both_worlds() -> None:
    scores = np.array([2.0, 1.0, 2.0, 3.0, 0.0])
    assert Logan().model_features(scores, VIEW).tolist() == [2.0, 0.5, 0.625]  # a tie counts half


def test_facts_are_weighted_by_the_effect_of_the_target_where_it_is_known() -> None:
    facts = np.array([3.0, 4.0])
    assert ReleasedFacts().model_features(facts, VIEW).tolist() == [3.0, 4.0]
    known = replace(VIEW, released_effect=np.array([-1.0, 0.5]))
    assert ReleasedFacts().model_features(facts, known).tolist() == [-1.0, 3.0, 4.0]
    assert len(ReleasedFacts().feature_names(known)) == 3


def test_few_parameters_stand_for_themselves() -> None:
    features = ParameterSummary().model_features(np.array([3.0, -4.0]), VIEW)
    assert features[:6].tolist() == [2.0, 5.0, -0.5, 3.5, -4.0, 3.0]
    assert features[6:8].tolist() == [3.0, -4.0]
    assert not features[8:].any()


def test_a_projection_keeps_distances() -> None:
    one, other = np.random.default_rng(1).normal(size=(2, 5000))
    attack = ParameterSummary()
    apart = attack.model_features(one, VIEW)[6:] - attack.model_features(other, VIEW)[6:]
    assert len(apart) == SHOWN
    # The squared length is that of the difference times chi-squared with 64 degrees / 64.
    ratio = np.sum(apart**2) / np.sum((one - other) ** 2)
    assert ratio == pytest.approx(1.0, abs=4.5 * (2 / SHOWN) ** 0.5)


def test_an_attack_learns_nothing_from_noise_and_all_from_a_shift() -> None:
    member, rng = np.arange(200) % 2 == 0, np.random.default_rng(2)

    def separation(shift: float) -> float:
        seen, fresh = rng.normal(size=(2, 200, 2)) + shift * member[:, None]
        return auc(ReleasedFacts().fit(seen, member, seed=1)(fresh), member)

    assert separation(0.0) == pytest.approx(0.5, abs=0.18)  # 4.5 deviations of an AUC by chance
    assert separation(4.0) > 0.98


def test_an_unknown_classifier_is_refused() -> None:
    with pytest.raises(SettingsError, match="oracle"):
        Logan(classifier="oracle")
