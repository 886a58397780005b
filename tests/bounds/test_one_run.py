"""One-run bounds: reference values, closed forms, validity by enumeration, refusals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, norm

from dpaudit.bounds import one_run, one_run_gaussian, one_run_p_value
from dpaudit.errors import SettingsError
from dpaudit.model.gaussian import gaussian_epsilon


def test_reference_vectors(estimator_vectors: dict[str, Any]) -> None:
    entries = estimator_vectors["one_run"]
    assert len(entries) >= 6
    for entry in entries:
        outcome = entry["v"], entry["r"], entry["m"]
        setting = {"delta": entry["delta"], "confidence": entry["confidence"]}
        assert one_run(*outcome, **setting) == pytest.approx(entry["steinke"], abs=1e-6)
        if entry["fdp_gaussian"] is not None:
            # Relative: these were found by a search that stopped up to 3e-6 above the root.
            found = one_run_gaussian(*outcome, **setting)
            assert found == pytest.approx(entry["fdp_gaussian"], rel=1e-6)


@pytest.mark.parametrize("guesses", [5, 80, 3000])
def test_all_right_guesses_have_a_closed_form(guesses: int) -> None:
    success = 0.05 ** (1.0 / guesses)
    expected = math.log(success / (1.0 - success))
    found = one_run(guesses, guesses, 5000, delta=0.0, confidence=0.95)
    assert expected - 1e-8 < found < expected + 1e-12


def test_delta_enters_as_the_theorem_says() -> None:
    v, r, m, delta = 42, 50, 400, 1e-4
    bound = one_run(v, r, m, delta=delta, confidence=0.95)
    success = 1.0 / (1.0 + math.exp(-bound))
    pure = binom.sf(v - 1, r, success)
    just_fewer = [binom.pmf(np.arange(v - i, v), r, success).sum() / i for i in range(1, v + 1)]
    assert pure + 2.0 * m * delta * max(just_fewer) == pytest.approx(0.05, rel=1e-6)
    assert 0.2 < bound < one_run(v, r, m, delta=0.0, confidence=0.95) - 0.01


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_a_bound_is_refuted_itself_and_not_only_what_lies_below_it(delta: float) -> None:
    # A root found to a tolerance may lie a little above the true one.
    for correct in range(60, 121):
        bound = one_run(correct, 120, 300, delta=delta, confidence=0.95)
        if bound > 0.0:
            assert one_run_p_value(correct, 120, 300, epsilon=bound, delta=delta) <= 0.05


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("guesses", [20, 150])
def test_randomised_response_is_flagged_as_rarely_as_promised(epsilon: float, guesses: int) -> None:
    bounds = np.array(
        [one_run(v, guesses, guesses, delta=0.0, confidence=0.95) for v in range(guesses + 1)]
    )
    mass = binom.pmf(np.arange(guesses + 1), guesses, 1.0 / (1.0 + math.exp(-epsilon)))
    rate = mass[bounds > epsilon].sum()
    assert rate <= 0.05
    if epsilon < 3.0:
        assert rate > 0.005, "a bound this loose is not this one"


@pytest.mark.parametrize("mu", [0.3, 1.0, 2.0])
def test_gaussian_noise_is_flagged_as_rarely_as_promised_and_more_tightly(mu: float) -> None:
    # Each canary answers for itself with N(-mu/2, 1) or N(mu/2, 1); the sign guesses its coin.
    n, delta = 120, 1e-5
    setting = {"delta": delta, "confidence": 0.95}
    estimates = np.array([one_run_gaussian(v, n, n, **setting) for v in range(n + 1)])
    mass = binom.pmf(np.arange(n + 1), n, norm.cdf(mu / 2.0))
    assert mass[estimates > gaussian_epsilon(mu, delta)].sum() <= 0.05
    typical = round(n * norm.cdf(mu / 2.0))
    assert estimates[typical] >= one_run(typical, n, n, **setting)
    if mu >= 1.0:
        assert estimates[typical] > 1.2 * one_run(typical, n, n, **setting)


@pytest.mark.parametrize("correct", [0, 10, 25])
def test_chance_and_worse_give_zero(correct: int) -> None:
    assert one_run(correct, 50, 100, delta=1e-5, confidence=0.95) == 0.0
    assert one_run_gaussian(correct, 50, 100, delta=1e-5, confidence=0.95) == 0.0


@given(
    data=st.data(),
    canaries=st.integers(1, 300),
    delta=st.sampled_from([0.0, 1e-6, 1e-4, 0.01]),
    confidence=st.floats(0.5, 0.999),
)
@settings(max_examples=60, deadline=None)
def test_bound_is_monotone(
    data: st.DataObject, canaries: int, delta: float, confidence: float
) -> None:
    guesses = data.draw(st.integers(1, canaries))
    correct = data.draw(st.integers(0, guesses))
    bound = one_run(correct, guesses, canaries, delta=delta, confidence=confidence)
    assert 0.0 <= bound < math.inf
    weaker = [
        one_run(max(correct - 1, 0), guesses, canaries, delta=delta, confidence=confidence),
        one_run(correct, guesses, canaries, delta=delta * 1.5, confidence=confidence),
        one_run(correct, guesses, canaries + 5, delta=delta, confidence=confidence),
        one_run(correct, guesses, canaries, delta=delta, confidence=(1.0 + confidence) / 2.0),
    ]
    assert max(weaker) <= bound + 1e-8


@pytest.mark.parametrize(
    ("broken", "name"),
    [
        ((0, 0, 0), "canaries"),
        ((0, 0, 5), "guesses"),
        ((1, 6, 5), "guesses"),
        ((1, 2.5, 5), "guesses"),
        ((-1, 3, 5), "correct"),
        ((4, 3, 5), "correct"),
        ((0.5, 3, 5), "correct"),
    ],
)
def test_impossible_counts_are_refused_by_name(broken: tuple[Any, ...], name: str) -> None:
    for bound in (one_run, one_run_gaussian):
        with pytest.raises(SettingsError, match=f"^`{name}` (is|must be) "):
            bound(*broken, delta=1e-5, confidence=0.95)


def test_settings_out_of_range_are_refused_by_name() -> None:
    for delta in (-1e-9, 1.0, math.nan):
        with pytest.raises(SettingsError, match=r"^`delta` (is|must be)"):
            one_run(1, 2, 3, delta=delta, confidence=0.95)
    with pytest.raises(SettingsError, match=r"^`delta` must be .*, got 0"):
        one_run_gaussian(1, 2, 3, delta=0.0, confidence=0.95)
    for bound in (one_run, one_run_gaussian):
        with pytest.raises(SettingsError, match=r"^`confidence` (is|must be)"):
            bound(1, 2, 3, delta=1e-5, confidence=1.0)
