"""From bounds and checks to a verdict."""

from __future__ import annotations

import math

import pytest

from dpaudit.model.claim import PrivacyClaim
from dpaudit.results.decide import decide
from dpaudit.results.verdict import Check, Consequence, Decision, Power, SampleUnit, Verdict

CLAIM = PrivacyClaim(epsilon=1.0, delta=1e-5)
GOOD = Power(max_provable=4.0, detectable=2.0)

PASSED = Check("fine", True, "all is well")
BROKEN = Check("control", False, "the null control was caught")
WEAK = Check("failures", False, "failing depends on the world", Consequence.WEAKENS)
NOTED = Check("replay", False, "cannot be repeated", Consequence.NOTED)


def decided(
    bound: float, *checks: Check, power: Power = GOOD, claim: PrivacyClaim = CLAIM
) -> Decision:
    return decide(bound, claim, power, checks, confidence=0.95)


def test_a_bound_above_the_claim_is_a_violation() -> None:
    decision = decided(1.5, PASSED)
    assert decision.verdict is Verdict.VIOLATION
    assert decision.reasons == (
        "violates (1, 1e-05)-DP: at 95 % confidence the true epsilon is at least 1.5",
    )


def test_a_bound_that_only_reaches_the_claim_is_none() -> None:
    assert decided(1.0).verdict is Verdict.CONSISTENT
    assert decided(math.nextafter(1.0, 2)).verdict is Verdict.VIOLATION


def test_words_round_to_the_safe_side() -> None:
    assert decided(1.2999).reasons[0].endswith("at least 1.29")
    assert decided(12.999, power=Power(20, 2)).reasons[0].endswith("at least 12.9")
    assert "detects epsilon 2.01 with" in decided(0, power=Power(4, 2.0001)).reasons[0]


def test_consistent_is_never_worded_as_private() -> None:
    decision = decided(0.0, PASSED)
    assert decision.verdict is Verdict.CONSISTENT
    assert len(decision.reasons) == 1
    assert "no violation found" in decision.reasons[0]
    assert "this audit detects epsilon 2 with 80 % power" in decision.reasons[0]
    assert "not evidence of privacy" in decision.reasons[0]


@pytest.mark.parametrize(
    ("seen", "says"),
    [
        (Power(1.0, None), "the upper limit for this many shadow models is epsilon 1;"),
        (Power(0.5, None), "the upper limit for this many"),
        (Power(1.2, None), "cannot detect any leak with 80 % power"),
        (Power(40, 10.5), "detects only epsilon 10.5 with 80 % power"),
    ],
)
def test_without_power_nothing_found_means_nothing(seen: Power, says: str) -> None:
    decision = decided(0.0, power=seen)
    assert decision.verdict is Verdict.INCONCLUSIVE
    assert says in decision.reasons[0]
    assert "audit with more shadow models and a fresh seed" in decision.reasons[0]


def test_a_bound_on_trials_that_were_judged_before_proves_no_violation() -> None:
    judged = Check("fresh trials", False, "judged before", Consequence.WITHHOLDS)
    above = decided(2.0, judged)
    assert above == (Verdict.INCONCLUSIVE, ("judged before",))
    below = decided(0.5, judged)
    assert below.verdict is Verdict.CONSISTENT
    assert below.reasons[-1] == "judged before"
    assert decided(2.0, judged, Check("order", False, "drift")).verdict is Verdict.INVALID


@pytest.mark.parametrize(
    ("unit", "counted", "remedy"),
    [
        (
            SampleUnit.TRIALS,
            "this many shadow models",
            "audit with more shadow models and a fresh seed",
        ),
        (SampleUnit.CANARIES, "this many canaries", "audit with more canaries and a fresh seed"),
        (
            SampleUnit.RUNS,
            "this many simulated runs",
            "audit with more simulated runs and a fresh seed",
        ),
    ],
)
def test_the_remedy_is_more_of_what_was_counted(
    unit: SampleUnit, counted: str, remedy: str
) -> None:
    decision = decide(0.0, CLAIM, Power(1.0, None), (), confidence=0.95, unit=unit)
    assert counted in decision.reasons[0]
    assert remedy in decision.reasons[0]


@pytest.mark.parametrize(("claim", "enough"), [(0.1, 1.1), (0.5, 1.5), (1.0, 3.0), (5.0, 15.0)])
def test_power_is_poor_beyond_three_times_the_claim_and_beyond_one_more(
    claim: float, enough: float
) -> None:
    promise = PrivacyClaim(epsilon=claim, delta=1e-5)
    decision = decided(0.0, power=Power(40, enough), claim=promise)
    assert decision.verdict is Verdict.CONSISTENT
    decision = decided(0.0, power=Power(40, math.nextafter(enough, 100)), claim=promise)
    assert decision.verdict is Verdict.INCONCLUSIVE


def test_consistent_says_which_leaks_would_have_been_caught() -> None:
    [reason] = decided(0.0, power=Power(4.0, 1.46, 6.68)).reasons
    assert "detects epsilon 1.46 with 80 % power (Gaussian leak: 6.68)" in reason
    [reason] = decided(0.0, power=Power(4.0, 1.46)).reasons
    assert "Gaussian" not in reason


def test_a_leak_beyond_the_upper_limit_is_detected_but_not_measured() -> None:
    small = Power(max_provable=1.92, detectable=2.69, detectable_gaussian=9.7)
    [reason] = decided(0.0, power=small).reasons
    said = "detects epsilon 2.69 with 80 % power (Gaussian leak: 9.7), by a lower bound of at most"
    assert f"{said} 1.92" in reason
    [reason] = decided(0.0, power=GOOD).reasons
    assert "by a lower bound" not in reason


def test_a_proof_needs_no_power() -> None:
    assert decided(1.1, power=Power(1.2, None)).verdict is Verdict.VIOLATION


@pytest.mark.parametrize("bound", [0.0, 3.0])
def test_a_broken_check_makes_the_run_invalid_whatever_was_found(bound: float) -> None:
    decision = decided(bound, NOTED, PASSED, WEAK, BROKEN, power=Power(0.1, None))
    assert decision.verdict is Verdict.INVALID
    assert decision.reasons == (BROKEN.detail, WEAK.detail, NOTED.detail)


def test_a_weakening_check_takes_back_consistent_but_no_violation() -> None:
    weak = decided(0.0, WEAK, NOTED)
    assert weak.verdict is Verdict.INCONCLUSIVE
    assert weak.reasons == (WEAK.detail, NOTED.detail)
    proved = decided(2.0, WEAK, NOTED)
    assert proved.verdict is Verdict.VIOLATION
    assert proved.reasons[1:] == (WEAK.detail, NOTED.detail)
    unable = decided(0.0, WEAK, power=Power(0.5, None))
    assert unable.reasons[1:] == (WEAK.detail,)


def test_a_noted_check_is_only_reported() -> None:
    decision = decided(0.0, NOTED)
    assert decision.verdict is Verdict.CONSISTENT
    assert decision.reasons[1:] == (NOTED.detail,)
