"""The study of power: what its results say, its rules of public auditors, and that it runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit.bounds import EpsilonGuarantee
from dpaudit.seeds import Stream
from reports.calibration.mechanisms import Kind
from reports.power import attacks, public
from reports.power import run as study
from reports.power.rules import OURS, RULES, Guarantee, simulate

RESULTS = Path(study.__file__).parent / "results" / "power.json"
ONE_CUT = {
    ("Gaussian μ 0.5", 400): 0.06,
    ("Gaussian μ 1", 400): 0.64,
    ("Gaussian μ 2", 400): 1.83,
    ("Gaussian μ 4", 400): 3.19,
    ("Gaussian μ 0.5", 2000): 0.33,
    ("Gaussian μ 1", 2000): 1.25,
    ("Gaussian μ 2", 2000): 2.78,
    ("Gaussian μ 4", 2000): 4.68,
    ("Laplace ε 1", 400): 0.57,
    ("Laplace ε 1", 2000): 0.81,
    ("Gaussian μ 1", 8000): 1.70,
    ("Gaussian μ 2", 8000): 3.52,
    ("Gaussian μ 4", 8000): 5.46,
}
"""Medians of the exact bound at one cut when as many trials of each world were scored."""

Case = dict[str, Any]


@pytest.fixture(scope="module")
def cases() -> dict[tuple[str, int], Case]:
    found = json.loads(RESULTS.read_text())["cases"]
    return {(one["leak"], one["models"]): one for one in found}


def test_every_case_was_run(cases: dict[tuple[str, int], Case]) -> None:
    planned = list(study.plan(tuple(study.PARTS), quick=False))
    assert list(cases) == [(str(leak), models) for leak, models, _ in planned]
    assert [one["audits"] for one in cases.values()] == [audits for *_, audits in planned]
    assert all(list(one["rules"]) == [rule.name for rule in RULES] for one in cases.values())


def test_a_gaussian_leak_of_one_is_proved_in_three_audits_of_four(
    cases: dict[tuple[str, int], Case],
) -> None:
    one = cases["Gaussian μ 1", 400]
    assert one["rules"]["dpaudit"]["above_claim"] >= 0.75 * one["audits"]


@pytest.mark.parametrize("where", ONE_CUT, ids=str)
def test_no_case_is_worse_than_one_cut_was(
    where: tuple[str, int], cases: dict[tuple[str, int], Case]
) -> None:
    assert cases[where]["rules"]["dpaudit"]["median"] >= ONE_CUT[where] - 0.05


@pytest.mark.parametrize("mechanism", study.PARTS)
@pytest.mark.parametrize("name", [rule.name for rule in RULES if rule.guarantee is Guarantee.BOUND])
def test_no_bound_exceeds_the_truth_significantly_too_often(
    name: str, mechanism: str, cases: dict[tuple[str, int], Case]
) -> None:
    own = [one for one in cases.values() if one["mechanism"] == mechanism]
    above = sum(one["rules"][name]["above_truth"] for one in own)
    audits = sum(one["audits"] for one in own)
    assert binom.sf(above - 1, audits, 0.05) > 0.005


@pytest.fixture(scope="module")
def tied() -> dict[str, np.ndarray]:
    member = np.arange(120) % 2 == 0
    scores = np.random.default_rng(12).normal(size=120) + 2.0 * member
    return {"scores": np.round(scores, 1), "member": member}


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (public.hull_bonferroni, 1.0899349),
        (partial(public.split, rng=np.random.default_rng(3)), 0.8966327),
        (partial(public.one_run_split, rng=np.random.default_rng(3)), 1.1528715),
    ],
)
def test_rules_give_what_jax_privacy_gives(
    rule: Callable[..., float], expected: float, tied: dict[str, np.ndarray]
) -> None:
    # Of jax_privacy 2.0.0 on these scores, with the same halves.
    assert rule(**tied, delta=1e-5, confidence=0.95) == pytest.approx(expected, abs=1e-6)


def test_the_hull_keeps_the_ends_and_the_corners() -> None:
    scores, member = np.array([0.0, 1.0, 1.0, 2.0, 3.0]), np.array([0, 1, 0, 0, 1], dtype=bool)
    errors = public.errors_of(scores, member)
    assert errors.thresholds.tolist() == [0.0, 1.0, 2.0, 3.0, np.inf]
    assert errors.false_negatives.tolist() == [0, 0, 1, 1, 2]
    assert errors.false_positives.tolist() == [3, 2, 1, 0, 0]
    assert public.on_hull(errors).thresholds.tolist() == [0.0, 1.0, 3.0, np.inf]


def test_the_best_threshold_on_test_exceeds_any_other(tied: dict[str, np.ndarray]) -> None:
    asked = {"delta": 1e-5, "confidence": 0.95}
    best = public.best_on_test(**tied, **asked)
    assert best >= public.hull_bonferroni(**tied, **asked)
    assert best == public.best_on_test(-tied["scores"], tied["member"], **asked)


@pytest.mark.parametrize("leak", [study.LEAKS[1], study.LEAKS[-1]], ids=str)
def test_the_deciding_bound_is_what_an_audit_reports(leak: study.Leak) -> None:
    for draw in range(4):
        audit = simulate(leak.mechanism, 100, Stream(0, "power", "test", draw))
        guarantee = EpsilonGuarantee(leak.mechanism.delta)
        reported = audit.fixed.bound(guarantee, confidence=audit.asked["confidence"])
        assert OURS[0].number(audit) == pytest.approx(reported, abs=1e-9)


@pytest.mark.ci
@pytest.mark.parametrize("name", ["exact", "equal local level", "hull, Bonferroni"])
def test_a_case_runs_again_to_the_same_numbers(
    name: str, cases: dict[tuple[str, int], Case], again: Case
) -> None:
    assert again["rules"][name] == cases[again["leak"], again["models"]]["rules"][name]


@pytest.fixture(scope="module")
def again() -> Case:
    leak = study.LEAKS[-1]
    assert leak.mechanism.kind is Kind.RANDOMISED_RESPONSE
    return study.case(leak, 200, study.AUDITS[200])


def test_the_page_has_a_line_for_each_case_and_rule(cases: dict[tuple[str, int], Case]) -> None:
    bounds, others, validity = study.page(list(cases.values())).split("\n\n")
    assert len(bounds.splitlines()) == len(others.splitlines()) == len(cases) + 2
    assert len(validity.splitlines()) == len(RULES) + 2


def test_three_rules_for_several_attacks_judge_the_same_trials() -> None:
    one = attacks.judge("target always copied", 0, 60)
    assert len(one.forecasts) == len(one.proved) == len(attacks.ATTACKS) + 1
    corrected, plain, chosen = one.bounds()
    assert 1.0 < corrected < min(plain, chosen)
    assert "100 %" in attacks.page({"target always copied": {"0": one._asdict()}})
