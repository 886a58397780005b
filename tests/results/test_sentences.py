"""The sentences about a verdict: true, short, on the safe side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dpaudit.game.target import Exposure, Fact
from dpaudit.results.record import AuditRecord
from dpaudit.results.sentences import (
    EXPOSURES_NAMED,
    claim_and_proof,
    exposure_text,
    headline,
    lead,
    reaches_limit,
)
from dpaudit.results.summary import rows

Make = Callable[..., AuditRecord]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "VIOLATION  claimed epsilon 1, empirical epsilon at least 3.21 (95 % confidence)"),
        (
            {"proved_without_bits": 0.987},
            "VIOLATION in floating point  claimed epsilon 1, empirical epsilon at least 3.21 (95 % "
            "confidence)",
        ),
        (
            {"proved_without_bits": 1.5},
            "VIOLATION  claimed epsilon 1, empirical epsilon at least 3.21 (95 % confidence)",
        ),
        (
            {"verdict": "consistent"},
            "CONSISTENT  no violation of epsilon 1 found; detects epsilon 1.76 with 80 % power; "
            "not evidence of privacy",
        ),
        (
            {"verdict": "inconclusive"},
            "INCONCLUSIVE  claimed epsilon 1 not decided",
        ),
        (
            {"verdict": "inconclusive", "proved": 0.4567},
            "INCONCLUSIVE  claimed epsilon 1 not decided; empirical epsilon at least 0.456 "
            "(95 % confidence)",
        ),
        (
            {
                "verdict": "invalid",
                "checks": [
                    {
                        "name": "order of shadow models",
                        "passed": False,
                        "detail": "",
                        "consequence": "invalidates",
                    }
                ],
            },
            'INVALID  the check "order of shadow models" failed; nothing is known about epsilon 1',
        ),
    ],
)
def test_headline(changes: dict[str, Any], expected: str, record_of: Make) -> None:
    assert headline(record_of(**changes)) == expected


@pytest.mark.parametrize("proved", [0.987, 1.5])
def test_what_is_proved_without_last_bits_stands_beside_the_bound(
    proved: float, record_of: Make
) -> None:
    record = record_of(proved_without_bits=proved)
    assert f"epsilon at least {proved}" in " ".join(lead(record))
    assert ("public grid" in " ".join(lead(record))) == (proved <= 1.0)
    [row] = [row.fact for row in rows(record) if row.label == "bits"]
    assert row.startswith(f"{proved} ")


def test_headline_of_an_audit_that_never_ran(never_run: AuditRecord) -> None:
    expected = "INVALID  the null control failed; nothing is known about epsilon 1"
    assert headline(never_run) == expected


def test_a_bound_just_above_the_claim_reads_as_above(record_of: Make) -> None:
    record = record_of(claim={"epsilon": 3.214}, proved=3.21417)
    claimed, proved = claim_and_proof(record.claim, record.proved)
    assert float(claimed) < float(proved) <= 3.21417


def test_the_opening_of_a_violation_ends_in_the_odds(record_of: Make) -> None:
    assert lead(record_of()) == (
        "The generator claims (1, 1e-05)-differential privacy. This audit shows that it does not "
        "hold: an attacker who sees synthetic rows alone learns more than the claim allows. With "
        "95 % confidence the true epsilon is at least 3.21; some outputs change the odds that a "
        "record was in the table by a factor of at least 24.7, where the claim allows 2.72, apart "
        "from outputs of total probability 1e-05.",
        "Do not rely on epsilon 1 for tables of this generator, including those already released.",
        "No audit of this size proves more than 4.38; the true epsilon may be larger.",
    )


def test_a_bound_at_its_limit_reads_as_a_limit_and_not_as_the_truth(record_of: Make) -> None:
    no_error = {"false_negatives": 0, "false_positives": 0, "n_in": 120, "n_out": 120}
    perfect = record_of(proved=4.38, max_provable_epsilon=4.38, counts=no_error)
    assert lead(perfect)[-1] == (
        "The attack made no error, so the bound is all that this many shadow models can prove: the "
        "true epsilon may be much larger."
    )
    assert reaches_limit(perfect)
    assert not reaches_limit(record_of())
    assert not reaches_limit(record_of(proved=0.0, max_provable_epsilon=0.0, counts=no_error))


def test_the_opening_of_a_consistent_audit_says_what_it_would_have_detected(
    record_of: Make,
) -> None:
    opening, tried = lead(record_of(verdict="consistent", proved=0.4))
    assert opening == (
        "The generator claims (1, 1e-05)-differential privacy. No violation was found. This is not "
        "evidence of privacy. With 95 % confidence the true epsilon is at least 0.4, which the "
        "claim of 1 allows. This audit detects epsilon 1.76 with 80 % power; no audit of this size "
        "proves more than 4.38. Smaller leaks, other records and stronger attackers are not ruled "
        "out."
    )
    assert tried.startswith("Tried: ")


def test_a_bound_of_zero_is_not_said_to_be_allowed(record_of: Make) -> None:
    opening, _ = lead(record_of(verdict="consistent", proved=0.0))
    assert "The attacks proved no leak of any size." in opening
    assert "at least 0" not in opening


@pytest.mark.parametrize("verdict", ["consistent", "inconclusive"])
def test_what_was_tried_in_vain_is_said(verdict: str, record_of: Make) -> None:
    said = "Tried: groundhog and query-target on 400 shadow models; target: row 397."
    assert said in lead(record_of(verdict=verdict))
    assert said not in lead(record_of())


def probes_with(*alarms: dict[str, Any]) -> dict[str, Any]:
    """Probes before an audit with these alarms, as a result has them."""
    return {
        "alarms": list(alarms),
        **{key: [] for key in ("passed", "not_applicable", "failed", "left_out")},
        "confidence": 0.9975,
        "fits": 9,
    }


BUG = {"id": "row-count-leaks", "severity": "bug", "correct": "n rows", "p_value": None}
PROOF = {
    "id": "seed-ignored",
    "severity": "violation",
    "correct": "fresh noise",
    "p_value": 1e-6,
    "shows": "one record shows, which contradicts the claim under audit",
}
PROVED = (
    "Probe seed-ignored proves a violation: one record shows, which contradicts the claim under "
    "audit; under that claim the probability of what it saw is at most 1e-06."
)


@pytest.mark.parametrize("verdict", ["violation", "consistent", "inconclusive", "invalid"])
def test_an_alarm_of_a_probe_that_proves_nothing_is_no_part_of_any_verdict(
    verdict: str, record_of: Make
) -> None:
    said = (
        "Probes before the audit raised an alarm: row-count-leaks (bug). It is no part of the "
        "verdict."
    )
    assert said in lead(record_of(verdict=verdict, probes=probes_with(BUG)))
    for quiet in (None, probes_with()):
        assert not [one for one in lead(record_of(verdict=verdict, probes=quiet)) if "robe" in one]


def test_what_a_probe_proves_is_said_after_the_bound_or_instead_of_it(record_of: Make) -> None:
    both = record_of(verdict="violation", probes=probes_with(PROOF, BUG))
    assert headline(both).startswith(
        "VIOLATION  claimed epsilon 1, empirical epsilon at least 3.21"
    )
    assert any(PROVED in one for one in lead(both)[2:])
    alone = record_of(verdict="violation", proved=0.25, probes=probes_with(PROOF))
    assert headline(alone) == (
        "VIOLATION  claimed epsilon 1, probe seed-ignored proves a violation (empirical epsilon at "
        "least 0.25, 95 % confidence)"
    )
    assert PROVED in lead(alone)[0]
    assert "at least 0.25" in lead(alone)[1]
    assert not any("factor" in one or "learns more" in one for one in lead(alone))


def test_nothing_was_tried_where_no_attack_was_scored(record_of: Make) -> None:
    assert not [
        said for said in lead(record_of(verdict="inconclusive", attacks=[])) if "Tried" in said
    ]


def test_a_record_with_many_facts_is_described_by_the_first() -> None:
    facts = [Exposure(Fact.MAXIMUM, "a"), *(Exposure(Fact.CATEGORY, str(n)) for n in range(9))]
    said = exposure_text(facts)
    assert said.startswith("sole maximum of a; only one of its category in 0, 1,")
    assert said.endswith("5 and 6; 2 more")
    assert len(facts) - EXPOSURES_NAMED == 2
    assert exposure_text([]) == "no record alone has an extreme or unique value, so the farthest"


def test_an_upper_limit_below_the_detectable_epsilon_is_said_once(record_of: Make) -> None:
    small = record_of(verdict="consistent", proved=0.2, max_provable_epsilon=1.6)
    text = " ".join(lead(small))
    assert text.count("by a lower bound of at most 1.6") == 1
    assert "no audit of this size" not in text
