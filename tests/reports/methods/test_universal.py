"""Universal inference: reference values, closed forms, e-values of mean one, refusals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.special import betaln
from scipy.stats import binom

from dpaudit.errors import SettingsError
from known_attacks import DELTA, Attack, laplace, randomised_response
from reports.methods.universal import universal_bound, universal_inference

NEEDED = math.log(20.0)


def draw(attack: Attack, pairs: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Guesses in the "in" and in the "out" world."""
    return rng.random(pairs) >= attack.fnr, rng.random(pairs) < attack.fpr


def test_universal_bound_against_reference_vectors(estimator_vectors: dict[str, Any]) -> None:
    for vector in estimator_vectors["two_world"]:
        bound = universal_bound(
            vector["n1"] - vector["tp"],
            vector["fp"],
            vector["n1"],
            vector["n0"],
            delta=vector["delta"],
            confidence=vector["confidence"],
        )
        # The vectors were found on a grid: their own error is up to 7e-5 (closed form below).
        assert bound == pytest.approx(vector["universal_inference"], abs=1e-4)


@pytest.mark.parametrize(("n_in", "n_out"), [(5, 5), (400, 400), (90, 30)])
def test_universal_bound_of_a_perfect_attack_in_closed_form(n_in: int, n_out: int) -> None:
    bound = universal_bound(0, 0, n_in, n_out, delta=DELTA, confidence=0.95)
    log_mixture = sum(betaln(0.5, n + 0.5) - betaln(0.5, 0.5) for n in (n_in, n_out))
    if n_in == n_out:  # the likelihood is largest in the corner
        corner = -math.expm1((log_mixture + math.log(0.05)) / (n_in + n_out))
        expected = math.log((1.0 - DELTA) / corner - 1.0)
    else:
        share = np.linspace(0.0, 1.0, 400_001)[1:]
        corner = (1.0 - DELTA) / (1.0 + math.exp(bound))
        steep, flat = corner * share, corner + corner * math.exp(bound) * (1.0 - share)
        log_likelihood = np.maximum(
            n_out * np.log1p(-steep) + n_in * np.log1p(-flat),
            n_in * np.log1p(-steep) + n_out * np.log1p(-flat),
        ).max()
        assert log_mixture - log_likelihood == pytest.approx(NEEDED, abs=1e-6)
        return
    assert bound == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize(
    "attack", [randomised_response(1.0), laplace(1.0), Attack(0.5, laplace(1.0).fpr)]
)
def test_the_expected_universal_e_value_is_at_most_one_for_unequal_arms(attack: Attack) -> None:
    n_in, n_out = 7, 12
    worlds_in = np.arange(n_in + n_out) < n_in
    total = 0.0
    for fn in range(n_in + 1):
        for fp in range(n_out + 1):
            guesses = np.concatenate([np.arange(n_in) >= fn, np.arange(n_out) < fp])
            log_e = universal_inference(guesses, worlds_in, epsilon=1.0, delta=DELTA)[-1]
            chance = binom.pmf(fn, n_in, attack.fnr) * binom.pmf(fp, n_out, attack.fpr)
            total += chance * math.exp(log_e)
    assert 0.01 < total <= 1.0


def test_universal_inference_holds_for_an_adaptive_order_of_worlds() -> None:
    """Each trial is taken from the world whose last guess was right."""
    rng = np.random.default_rng(17)
    attack = randomised_response(1.0)
    refuted = 0
    for _ in range(200):
        guesses, worlds = [], []
        inside = True
        for _ in range(150):
            guess = bool(rng.random() >= attack.fnr if inside else rng.random() < attack.fpr)
            guesses.append(guess)
            worlds.append(inside)
            inside = inside if guess == inside else not inside
        log_e = universal_inference(guesses, worlds, epsilon=1.0, delta=DELTA)
        refuted += bool(log_e.max() >= NEEDED)
    assert refuted <= binom.ppf(0.999, 200, 0.05)


def test_universal_inference_agrees_with_its_bound() -> None:
    rng = np.random.default_rng(23)
    worlds = rng.random(200) < 0.7
    guesses = np.where(rng.random(200) < 0.08, ~worlds, worlds)
    fn, fp = int((worlds & ~guesses).sum()), int((~worlds & guesses).sum())
    n_in, n_out = int(worlds.sum()), int((~worlds).sum())
    bound = universal_bound(fn, fp, n_in, n_out, delta=DELTA, confidence=0.95)
    last = universal_inference(guesses, worlds, epsilon=bound, delta=DELTA)[-1]
    assert bound > 0.5
    assert last == pytest.approx(NEEDED, abs=1e-6)
    assert last >= NEEDED
    swapped = universal_bound(fp, fn, n_out, n_in, delta=DELTA, confidence=0.95)
    assert swapped == pytest.approx(bound, abs=1e-8)


def test_universal_bound_of_an_attack_worse_than_chance_is_zero() -> None:
    assert universal_bound(326, 200, 400, 400, delta=DELTA, confidence=0.95) == 0.0
    assert universal_bound(5, 5, 5, 5, delta=0.0, confidence=0.5) == 0.0


@pytest.mark.parametrize(
    ("argument", "value"),
    [("epsilon", -0.1), ("epsilon", math.inf), ("delta", 1.0), ("delta", math.nan)],
)
def test_claims_without_meaning_are_refused(argument: str, value: float) -> None:
    claim = {"epsilon": 1.0, "delta": DELTA, argument: value}
    with pytest.raises(SettingsError, match=argument):
        universal_inference([True], [True], **claim)


@pytest.mark.parametrize("confidence", [0.0, 1.0, math.nan, -1.0])
def test_confidence_out_of_range_is_refused(confidence: float) -> None:
    with pytest.raises(SettingsError, match="confidence"):
        universal_bound(0, 0, 5, 5, delta=DELTA, confidence=confidence)


@pytest.mark.parametrize(
    "values", [[0.3], [2], [-1], [[True]], [math.nan], ["in"], True, [True, False]]
)
def test_worlds_that_are_not_one_truth_value_per_guess_are_refused(values: object) -> None:
    with pytest.raises(SettingsError, match="worlds_in"):
        universal_inference([True], values, epsilon=1.0, delta=DELTA)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("false_negatives", -1),
        ("false_negatives", 11),
        ("false_negatives", 1.5),
        ("false_positives", 21),
        ("false_positives", True),
        ("n_in", 0),
        ("n_out", -3),
        ("n_out", math.nan),
    ],
)
def test_counts_of_no_experiment_are_refused(argument: str, value: int) -> None:
    counts = {"false_negatives": 1, "false_positives": 1, "n_in": 10, "n_out": 20, argument: value}
    with pytest.raises(SettingsError, match=f"^`{argument}` is"):
        universal_bound(**counts, delta=DELTA, confidence=0.95)
