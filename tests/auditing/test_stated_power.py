"""The stated power is that of the rule that runs: audits simulated at the stated epsilon.

Scores are drawn, not trained for: everything after them is what an audit does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import binom

from dpaudit.auditing.games import audit_settings
from dpaudit.auditing.one_run.attack import ATTACKS, guess
from dpaudit.auditing.one_run.plan import power as one_run_power
from dpaudit.auditing.records.plan import needed_shadow_models
from dpaudit.auditing.records.plan import power as records_power
from dpaudit.bounds import fair_coin_p_value, guarantee_of
from dpaudit.bounds.calibration import calibrate_records, count_record_guesses
from dpaudit.model.claim import GaussianClaim, Neighbours, PrivacyClaim
from dpaudit.plugins.protocols import BoolArray, FloatArray, GameView
from reports.calibration import honest
from reports.calibration.mechanisms import Kind, Mechanism, Shifted, gaussian_shift
from reports.calibration.simulations import TwoWorlds

CLAIM = PrivacyClaim(epsilon=1.0, delta=1e-5, source="test")
LEVEL: dict[str, Any] = {"delta": CLAIM.delta, "confidence": 0.95}
STATED = (0.7, 0.92)
"""Where the share of simulated audits that catch a leak of 80 % power has to lie."""


class Simulated:
    """Simulated audits of one size: how many catch the leak, and how many never abstain."""

    def __init__(self, *, models: int, records: int, seed: int) -> None:
        self.settings = audit_settings(shadow_models=models, records=records, attacks=("form",))
        self.rng = np.random.default_rng(seed)
        self.stated = records_power(self.settings, CLAIM)

    def run(self, audits: int, *, gaussian: bool = False) -> tuple[float, float]:
        """Shares of the audits that prove more than the claim, and that abstain from nothing."""
        found = np.array([self._audit(gaussian) for _ in range(audits)])
        caught, guessing = found.mean(axis=0).tolist()
        return caught, guessing

    def _audit(self, gaussian: bool) -> tuple[bool, bool]:
        scored = self.settings.game.scored
        fixed = calibrate_records(
            *self._scores(2 * self.settings.game.fitted, gaussian),
            trainings=scored,
            rng=self.rng,
            **LEVEL,
        )
        scores, included = self._scores(scored, gaussian)
        guesses = count_record_guesses(fixed.calibration.guesses(scores), included)
        p_value = fair_coin_p_value(*guesses, epsilon=CLAIM.epsilon, **LEVEL)
        return p_value < 0.05, fixed.calibration.margin == 0.0

    def _scores(self, models: int, gaussian: bool) -> tuple[FloatArray, BoolArray]:
        included = self.rng.random((models, self.settings.game.records)) < 0.5
        if gaussian:
            assert self.stated.detectable_gaussian is not None
            shift = gaussian_shift(self.stated.detectable_gaussian)
            return self.rng.normal(size=included.shape) + shift * included, included
        assert self.stated.detectable is not None
        truthful = self.rng.random(included.shape) < expit(self.stated.detectable)
        return np.where(truthful, included, ~included).astype(float), included


@pytest.mark.parametrize("audits", [40, pytest.param(80, marks=pytest.mark.ci)])
def test_many_records_catch_randomised_response_as_often_as_stated_and_keep_all_guesses(
    audits: int,
) -> None:
    caught, guessing = Simulated(models=24, records=6, seed=1).run(audits)
    assert STATED[0] <= caught <= STATED[1]
    assert guessing >= 0.8


@pytest.mark.parametrize("records", [2, 16])
def test_as_many_models_as_many_records_need_are_enough_and_fewer_are_not(records: int) -> None:
    settings = audit_settings(records=records)
    needed = needed_shadow_models(CLAIM, 2.0, settings)
    assert needed is not None
    for models, enough in ((needed, True), (needed - 4, False)):
        found = records_power(settings.with_game(shadow_models=models), CLAIM).detectable
        assert (found is not None and found <= 2.0) is enough


@pytest.mark.ci
def test_many_records_do_not_flag_randomised_response_at_the_claim() -> None:
    honest_audits = Simulated(models=24, records=6, seed=8)
    honest_audits.stated = honest_audits.stated._replace(detectable=CLAIM.epsilon)
    caught, _ = honest_audits.run(80)
    assert caught * 80 <= binom.ppf(0.999, 80, 0.05)


@pytest.mark.ci
def test_many_records_catch_a_gaussian_leak_as_often_as_stated_by_abstaining() -> None:
    caught, guessing = Simulated(models=24, records=6, seed=2).run(60, gaussian=True)
    assert STATED[0] <= caught <= STATED[1]
    assert guessing <= 0.5


@pytest.mark.ci
def test_one_run_catches_randomised_response_as_often_as_stated() -> None:
    assert STATED[0] <= one_run_caught(60) <= STATED[1]


def one_run_caught(audits: int) -> float:
    confidence = audit_settings(one_run=True).attack_confidence
    stated = one_run_power(honest.CANARIES, CLAIM, confidence).detectable
    assert stated is not None
    answers = honest.AnswersEach(claim=PrivacyClaim(epsilon=stated, source="test"))
    return float(np.mean([_one_run(answers, seed, confidence) for seed in range(audits)]))


def _one_run(answers: honest.AnswersEach, seed: int, confidence: float) -> bool:
    table = honest.id_table()
    canaries, others = table.iloc[: honest.CANARIES], table.iloc[honest.CANARIES :]
    coins = np.random.default_rng(seed).random(len(canaries)) < 0.5
    view = GameView(
        schema=honest.ID_SCHEMA,
        others=others,
        target=canaries,
        n_rows=len(table),
        neighbours=Neighbours.ADD_REMOVE,
    )
    released = answers.fit(pd.concat([others, canaries[coins]]), seed=seed)
    drawn = released.sample(len(table), seed=None)
    scores = np.concatenate([one.scorer.features(drawn, view) for one in ATTACKS])
    guarantee = guarantee_of(CLAIM)
    bounds = [one.bound(guarantee, confidence=confidence) for one in guess(scores, coins)]
    return max(bounds) > CLAIM.epsilon


@pytest.mark.parametrize(
    ("audits", "sequential"),
    [(30, False), *(pytest.param(60, of, marks=pytest.mark.ci) for of in (False, True))],
)
def test_one_target_is_caught_as_often_as_stated(audits: int, sequential: bool) -> None:
    caught = one_target_caught(40, sequential=sequential, audits=audits, seed=3)
    assert STATED[0] <= caught <= STATED[1]


def one_target_caught(models: int, *, sequential: bool, audits: int, seed: int) -> float:
    settings = {"shadow_models": models, "sequential": sequential}
    path = TwoWorlds(claim=CLAIM, settings=settings)
    stated = path.power().detectable
    assert stated is not None
    leak = Mechanism(Kind.RANDOMISED_RESPONSE, stated)
    seeds = range(seed * audits, (seed + 1) * audits)
    return float(np.mean([path.exceeds(leak, CLAIM.epsilon, one) for one in seeds]))


@pytest.mark.ci
@pytest.mark.parametrize("audits", [30, pytest.param(200, marks=pytest.mark.slow)])
def test_a_sequential_audit_of_mu_keeps_its_claim_and_its_power(audits: int) -> None:
    claim = GaussianClaim(mu=1.0)
    path = TwoWorlds(claim=claim, settings={"shadow_models": 100, "sequential": True})
    stated = path.power().detectable
    assert stated is not None
    honest_ones = [path.exceeds(Shifted(claim.mu), claim.mu, seed) for seed in range(audits)]
    assert sum(honest_ones) <= binom.ppf(0.999, audits, 0.05)
    caught = np.mean([path.exceeds(Shifted(stated), claim.mu, seed) for seed in range(audits)])
    assert STATED[0] <= caught <= STATED[1]


@pytest.mark.slow
@pytest.mark.parametrize(("models", "records"), [(16, 6), (24, 6), (60, 6), (200, 6), (60, 16)])
def test_stated_power_of_many_records_in_many_audits(models: int, records: int) -> None:
    caught, guessing = Simulated(models=models, records=records, seed=5).run(400)
    assert 0.75 <= caught <= 0.9
    assert guessing >= 0.85


@pytest.mark.slow
@pytest.mark.parametrize("sequential", [False, True])
@pytest.mark.parametrize("models", [100, 200])
def test_stated_power_of_one_target_in_many_audits(models: int, sequential: bool) -> None:
    assert 0.73 <= one_target_caught(models, sequential=sequential, audits=200, seed=7) <= 0.9


@pytest.mark.slow
def test_stated_power_of_one_run_in_many_audits() -> None:
    assert 0.75 <= one_run_caught(200) <= 0.9
