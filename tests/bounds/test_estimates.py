"""Estimates of epsilon: reference values, independent computations, labels, refusals."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta, norm

from dpaudit.bounds import gdp, jeffreys, joint_beta, one_run_gaussian
from dpaudit.errors import SettingsError
from dpaudit.model.gaussian import gaussian_delta, gaussian_epsilon

SETTING = {"delta": 1e-5, "confidence": 0.95}


def test_reference_vectors(estimator_vectors: dict[str, Any]) -> None:
    entries = estimator_vectors["two_world"]
    assert len(entries) >= 15
    for entry in entries:
        counts = entry["n1"] - entry["tp"], entry["fp"], entry["n1"], entry["n0"]
        setting = {"delta": entry["delta"], "confidence": entry["confidence"]}
        assert jeffreys(*counts, **setting) == pytest.approx(entry["jeffreys"], abs=1e-9)
        assert joint_beta(*counts, **setting) == pytest.approx(entry["joint_beta"], abs=2e-3)
        if entry["gdp"] is not None:
            found = gdp(*counts, **setting, assume="gaussian")
            assert found == pytest.approx(entry["gdp"], abs=1e-6)


@pytest.mark.parametrize("estimate", [jeffreys, joint_beta, gdp, one_run_gaussian])
def test_an_estimate_says_so_first(estimate: object) -> None:
    documentation = inspect.getdoc(estimate)
    assert documentation is not None
    assert documentation.startswith("Estimate, not a proof")


@pytest.mark.parametrize(
    ("counts", "delta", "confidence"),
    [((30, 40, 100, 200), 1e-5, 0.95), ((0, 0, 60, 60), 0.02, 0.9), ((35, 3, 50, 90), 0.0, 0.99)],
)
def test_joint_beta_is_a_quantile_of_epsilon_under_the_posterior(
    counts: tuple[int, int, int, int], delta: float, confidence: float
) -> None:
    fn, fp, n_in, n_out = counts
    rng = np.random.default_rng(11)
    fnr = rng.beta(fn + 0.5, n_in - fn + 0.5, 400_000)
    fpr = rng.beta(fp + 0.5, n_out - fp + 0.5, 400_000)
    ratios = [
        (1 - delta - fnr) / fpr,
        (1 - delta - fpr) / fnr,
        (fnr - delta) / (1 - fpr),
        (fpr - delta) / (1 - fnr),
    ]
    epsilon = np.log(np.maximum(np.max(ratios, axis=0), 1.0))
    expected = np.quantile(epsilon, 1.0 - confidence)
    assert joint_beta(*counts, delta=delta, confidence=confidence) == pytest.approx(
        expected, abs=0.02
    )


def test_jeffreys_agrees_with_the_quantiles_of_its_posterior() -> None:
    fpr, fnr = beta.ppf(0.975, [20.5, 7.5], [280.5, 193.5])
    expected = max(math.log((1 - 1e-5 - fnr) / fpr), math.log((1 - 1e-5 - fpr) / fnr))
    assert jeffreys(7, 20, 200, 300, **SETTING) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("epsilon", "mu"), [(0.0, 0.3), (1.0, 1.0), (3.0, 1.2), (12.0, 3.0)])
def test_gaussian_profile_agrees_with_its_integral(epsilon: float, mu: float) -> None:
    # The mechanism's outputs are N(0, 1) and N(mu, 1); their ratio is e^epsilon at the cut.
    cut = epsilon / mu + mu / 2.0
    expected = quad(
        lambda x: norm.pdf(x - mu) - math.exp(epsilon) * norm.pdf(x), cut, cut + 40.0, epsabs=1e-13
    )[0]
    assert gaussian_delta(epsilon, mu) == pytest.approx(expected, rel=1e-6)
    assert gaussian_epsilon(mu, expected) == pytest.approx(epsilon, abs=1e-5)


def test_gdp_finds_the_epsilon_of_a_gaussian_mechanism_from_below() -> None:
    error = norm.cdf(-0.5)  # mu = 1, threshold in the middle
    true = gaussian_epsilon(1.0, 1e-5)
    n = 100_000
    found = gdp(round(n * error), round(n * error), n, n, **SETTING, assume="gaussian")
    assert 0.95 * true < found < true


def test_chance_and_worse_give_zero() -> None:
    for counts in ((200, 200, 400, 400), (326, 200, 400, 400), (400, 0, 400, 400)):
        assert jeffreys(*counts, **SETTING) == 0.0
        assert gdp(*counts, **SETTING, assume="gaussian") == 0.0
    # Its region is symmetric about chance: a little worse than chance is no evidence either.
    assert joint_beta(210, 200, 400, 400, **SETTING) < 0.01


def test_unusable_arguments_are_refused_by_name() -> None:
    for estimate in (jeffreys, joint_beta):
        with pytest.raises(SettingsError, match=r"^`false_negatives` (is|must be)"):
            estimate(11, 0, 10, 10, **SETTING)
        with pytest.raises(SettingsError, match=r"^`delta` (is|must be)"):
            estimate(1, 0, 10, 10, delta=1.0, confidence=0.95)
        with pytest.raises(SettingsError, match=r"^`confidence` (is|must be)"):
            estimate(1, 0, 10, 10, delta=0.0, confidence=math.nan)
    with pytest.raises(SettingsError, match=r"^`delta` must be .*, got 0"):
        gdp(1, 0, 10, 10, delta=0.0, confidence=0.95, assume="gaussian")
    with pytest.raises(SettingsError, match=r"^`assume` is 'laplace'"):
        gdp(1, 0, 10, 10, **SETTING, assume="laplace")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="assume"):
        gdp(1, 0, 10, 10, **SETTING)  # type: ignore[call-arg]
