"""Ceiling and detectable leak of an audit, against brute force over all outcomes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ndtr
from scipy.stats import binom

from dpaudit.bounds import Counts, Detectable, EpsilonGuarantee, clopper_pearson, exact
from dpaudit.bounds.exact import RejectionRegion
from dpaudit.errors import SettingsError
from dpaudit.model.gaussian import gaussian_epsilon


def detectable(
    *,
    claim_epsilon: float,
    n_in: int,
    n_out: int,
    delta: float,
    confidence: float,
    power: float = 0.8,
    false_negatives: int = 0,
    false_positives: int = 0,
) -> Detectable:
    return EpsilonGuarantee(delta).detectable(
        claim_epsilon,
        Counts(false_negatives, false_positives, n_in, n_out),
        confidence=confidence,
        power=power,
    )


def detection_power(*, claim_epsilon: float, delta: float, **options: Any) -> float:
    return EpsilonGuarantee(delta).detection_power(claim_epsilon, **options)


def brute_force_power(
    epsilon: float,
    claim: float,
    n_in: int,
    n_out: int,
    *,
    delta: float,
    confidence: float,
    failed: tuple[int, int] = (0, 0),
) -> float:
    """Power of randomised response from the bound of every outcome."""
    rate = (1.0 - delta) / (1.0 + math.exp(epsilon))
    total = 0.0
    for fn in range(failed[0], n_in + 1):
        for fp in range(failed[1], n_out + 1):
            if exact(fn, fp, n_in, n_out, delta=delta, confidence=confidence) > claim:
                total += binom.pmf(fn - failed[0], n_in - failed[0], rate) * binom.pmf(
                    fp - failed[1], n_out - failed[1], rate
                )
    return total


@pytest.mark.parametrize(
    ("claim", "n_in", "n_out", "delta", "confidence", "failed"),
    [
        (0.0, 10, 10, 1e-5, 0.95, (0, 0)),
        (0.5, 12, 12, 0.0, 0.95, (0, 0)),
        pytest.param(1.0, 14, 14, 0.05, 0.9, (0, 0), marks=pytest.mark.ci),
        pytest.param(0.5, 13, 11, 0.2, 0.9, (0, 0), marks=pytest.mark.slow),
        (1.0, 15, 11, 1e-5, 0.9, (0, 0)),
        (0.5, 16, 16, 1e-5, 0.95, (1, 2)),
    ],
)
def test_detectable_epsilon_agrees_with_brute_force(
    claim: float,
    n_in: int,
    n_out: int,
    delta: float,
    confidence: float,
    failed: tuple[int, int],
) -> None:
    found = detectable(
        claim_epsilon=claim,
        n_in=n_in,
        n_out=n_out,
        delta=delta,
        confidence=confidence,
        power=0.7,
        false_negatives=failed[0],
        false_positives=failed[1],
    ).best
    assert found is not None
    assert found > claim
    power = brute_force_power(
        found, claim, n_in, n_out, delta=delta, confidence=confidence, failed=failed
    )
    assert power == pytest.approx(0.7, abs=1e-6)


def test_no_region_of_outcomes_is_tested_twice_for_one_plan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tested: list[bytes] = []
    size = RejectionRegion.worst_case

    def counted(region: RejectionRegion, epsilon: float, delta: float) -> float:
        tested.append(region.most_fn.tobytes())
        return size(region, epsilon, delta)

    monkeypatch.setattr(RejectionRegion, "worst_case", counted)
    leak = {"claim_epsilon": 1.0, "n_in": 31, "n_out": 31, "delta": 1e-5, "confidence": 0.97}
    assert None not in detectable(**leak)
    assert len(tested) == len(set(tested)) > 3


def test_nothing_is_detectable_at_the_ceiling_and_something_just_below() -> None:
    size = {"n_in": 30, "n_out": 30, "delta": 1e-5, "confidence": 0.95}
    for failed in ({}, {"false_negatives": 2, "false_positives": 1}):
        errors = (failed.get("false_negatives", 0), failed.get("false_positives", 0))
        ceiling = exact(*errors, **size)
        assert detectable(claim_epsilon=ceiling + 1e-5, **size, **failed).best is None
        below = detectable(claim_epsilon=ceiling - 1e-5, **size, **failed).best
        assert below is not None
        assert below > ceiling


def test_an_absurd_claim_is_simply_undetectable() -> None:
    found = detectable(claim_epsilon=1e6, n_in=10, n_out=10, delta=1e-5, confidence=0.95).best
    assert found is None


def test_detection_needs_a_larger_leak_with_fewer_trials_more_power_and_failures() -> None:
    def least(n: int, **options: Any) -> float:
        leak = detectable(
            claim_epsilon=1.0, n_in=n, n_out=n, delta=1e-5, confidence=0.95, **options
        )
        assert leak.best is not None
        return leak.best

    assert 1.0 < least(400) < least(100) < least(100, power=0.95)
    assert least(100) < least(100, false_negatives=5, false_positives=5)


def test_detected_as_often_as_promised() -> None:
    epsilon = detectable(
        claim_epsilon=1.0, n_in=50, n_out=50, delta=1e-5, confidence=0.95, power=0.8
    ).best
    assert epsilon is not None
    rate = (1.0 - 1e-5) / (1.0 + math.exp(epsilon))
    errors = np.random.default_rng(5).binomial(50, rate, size=(300, 2))
    caught = [
        exact(int(fn), int(fp), 50, 50, delta=1e-5, confidence=0.95) > 1.0 for fn, fp in errors
    ]
    assert np.mean(caught) == pytest.approx(0.8, abs=0.07)


def test_ceiling_of_the_paper_sized_audit() -> None:
    ceiling = exact(0, 0, 400, 400, delta=1e-5, confidence=0.95)
    assert ceiling == pytest.approx(5.5855, abs=1e-4)
    assert exact(3, 1, 400, 400, delta=1e-5, confidence=0.95) < ceiling


@pytest.mark.parametrize("power", [0.0, 0.05, 1.0])
def test_power_must_exceed_the_false_alarm_rate(power: float) -> None:
    with pytest.raises(SettingsError, match="power"):
        detectable(claim_epsilon=1.0, n_in=9, n_out=9, delta=0.0, confidence=0.95, power=power)


def test_the_ceiling_is_above_that_of_clopper_pearson() -> None:
    size = {"delta": 1e-5, "confidence": 0.95}
    ceiling = clopper_pearson(0, 0, 400, 400, **size)
    assert ceiling == pytest.approx(4.6815, abs=1e-4)
    assert exact(0, 0, 400, 400, **size) > ceiling
    with pytest.raises(SettingsError, match=r"^`n_in` must be .*, got 0"):
        exact(0, 0, 0, 400, **size)


def test_detection_power_agrees_with_what_is_detectable() -> None:
    level = {"delta": 1e-5, "confidence": 0.95}
    sized = {"claim_epsilon": 1.0, "n_in": 60, "n_out": 60, **level}
    epsilon = detectable(**sized, power=0.8).best
    assert epsilon is not None
    error = (1 - 1e-5) / (1 + math.exp(epsilon))
    assert detection_power(**sized, fpr=error, tpr=1 - error) == pytest.approx(0.8, abs=1e-6)
    assert detection_power(**sized, fpr=0.0, tpr=1.0) == pytest.approx(1.0)
    honest = 1 / (1 + math.e)
    assert detection_power(**sized, fpr=honest, tpr=1 - honest) <= 0.05
    with pytest.raises(SettingsError, match=r"`tpr` must be .*, got 2"):
        detection_power(**sized, fpr=0.0, tpr=2.0)


@pytest.mark.parametrize(
    ("n", "confidence", "epsilon"), [(120, 0.975, 6.6786), (30, 0.975, 11.7036)]
)
def test_a_gaussian_leak_must_be_larger_to_be_caught(
    n: int, confidence: float, epsilon: float
) -> None:
    size = {"n_in": n, "n_out": n, "delta": 1e-5, "confidence": confidence}
    found = detectable(claim_epsilon=1.0, **size).gaussian
    assert found == pytest.approx(epsilon, abs=1e-3)
    assert found > detectable(claim_epsilon=1.0, **size).best


def test_the_power_at_the_detectable_gaussian_leak_is_as_asked() -> None:
    size = {"n_in": 60, "n_out": 60, "delta": 1e-5, "confidence": 0.95, "claim_epsilon": 1.0}
    found = detectable(**size).gaussian
    mu = brentq(lambda mu: gaussian_epsilon(mu, 1e-5) - found, 0.01, 20)
    cuts = np.linspace(0, mu, 200)
    reached = max(
        detection_power(fpr=float(ndtr(-cut)), tpr=float(ndtr(mu - cut)), **size) for cut in cuts
    )
    assert reached == pytest.approx(0.8, abs=0.005)


def test_no_finite_gaussian_leak_is_caught_at_delta_0_or_by_too_few_trials() -> None:
    assert (
        detectable(claim_epsilon=1.0, n_in=120, n_out=120, delta=0.0, confidence=0.95).gaussian
        is None
    )
    assert (
        detectable(claim_epsilon=3.0, n_in=10, n_out=10, delta=1e-5, confidence=0.95).gaussian
        is None
    )
