"""What a verdict means in odds, and what to do next."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from dpaudit.model.claim import ConcentratedClaim, CurveClaim, CurvePoint, GaussianClaim
from dpaudit.model.tables import IN_MEMORY
from dpaudit.plugins.protocols import THE_TRIAL
from dpaudit.results.record import AuditRecord, SameTables
from dpaudit.results.sentences import hidden_target, in_odds, lead
from dpaudit.results.summary import next_step, summary_lines
from dpaudit.results.verdict import FRESH_TRIALS

Make = Callable[..., AuditRecord]


def test_odds_are_rounded_so_that_they_never_say_too_much(record_of: Make) -> None:
    bound = math.log(15.59)
    said = in_odds(record_of(verdict="violation", proved=bound, claim={"epsilon": 1.0}))
    assert "change the odds that a record was in the table by a factor of at least 15.5," in said
    assert "where the claim allows 2.72" in said


def test_delta_is_said_where_there_is_one(record_of: Make) -> None:
    none = in_odds(record_of(claim={"delta": 0.0}))
    some = in_odds(record_of(claim={"delta": 1e-5}))
    assert none.endswith("where the claim allows 2.72")
    assert some.endswith("2.72, apart from outputs of total probability 1e-05")


def test_what_has_no_meaning_in_odds_says_nothing(record_of: Make, never_run: AuditRecord) -> None:
    assert in_odds(never_run) == ""
    for verdict in ("inconclusive", "consistent"):
        assert in_odds(record_of(verdict=verdict)) == ""
    assert in_odds(record_of(claim={"epsilon": 1e300}, proved=2e300)) == ""
    assert in_odds(replace(record_of(), claim=GaussianClaim(mu=1.0))) == ""
    assert "by a factor of at least a million, where" in in_odds(record_of(proved=30.0))


def test_a_violation_is_explained_where_it_can_be(record_of: Make) -> None:
    found = record_of(verdict="violation")
    assert next_step(found, run="runs/a b").command == "dpaudit explain 'runs/a b'"
    in_memory = record_of(verdict="violation", data={"source": IN_MEMORY})
    assert next_step(in_memory).command == ""
    assert "from a file" in next_step(in_memory).why


def test_a_record_that_changes_the_table_is_proposed_after_one_that_does_not(
    record_of: Make,
) -> None:
    found = record_of(verdict="consistent")
    for same, proposed in ((SameTables(seeds=2, other=17), True), (SameTables(seeds=2), False)):
        step = next_step(replace(found, target=replace(found.target, same_tables=same)))
        assert ("--target row:17" in step.why) == proposed
        assert "a fresh seed" in step.then[0]


def test_a_proved_leak_leaves_no_doubt_that_the_record_shows(record_of: Make) -> None:
    for verdict, said in (("consistent", True), ("violation", False)):
        found = record_of(verdict=verdict)
        same = SameTables(seeds=2, other=17)
        found = replace(found, target=replace(found.target, same_tables=same))
        assert (
            "may rarely or never change the synthetic table" in "\n".join(summary_lines(found))
        ) == said
        assert ("may rarely or never change the synthetic table" in hidden_target(found)) == said


def test_explain_is_proposed_where_there_is_something_to_fix_with_its_cost(record_of: Make) -> None:
    found = record_of(verdict="violation")
    offers = replace(found, generator=replace(found.generator, fixes=2), seconds=60.0)
    models = sum(found.shadow_models.values())
    assert models <= 400
    step = next_step(offers, run="runs/a")
    assert step.cost == "4 suspects, some 4 min 0 s of computing, shared by all workers"
    assert step.command == "dpaudit explain runs/a"
    replay = "dpaudit replay gan.py:Gan --data 'a b.csv' --target row:3"
    none = replace(found, generator=replace(found.generator, fixes=0), replay=replay)
    assert next_step(none).command == replay
    assert "explain" not in next_step(none).why
    in_memory = replace(none, data=replace(none.data, source=IN_MEMORY))
    assert "dpaudit.replay(" in next_step(in_memory).why


@pytest.mark.parametrize(
    ("claim", "options"),
    [
        (GaussianClaim(mu=0.5), "--set mu=0.5"),
        (ConcentratedClaim(rho=0.1), "--set rho=0.1"),
        (CurveClaim(points=(CurvePoint(1.0, 1e-5),)), "--set curve=FILE"),
    ],
)
def test_the_plan_is_of_the_claim(record_of: Make, claim: object, options: str) -> None:
    found = replace(record_of(verdict="inconclusive"), claim=claim)  # type: ignore[arg-type]
    assert next_step(found).command == f"dpaudit audit --plan {options}"


def test_more_models_are_planned_for_a_leak_between_the_claim_and_what_is_caught(
    record_of: Make,
) -> None:
    found = record_of(
        verdict="consistent", claim={"epsilon": 1.0, "delta": 0.0}, detectable_epsilon=1.5
    )
    step = next_step(found)
    assert step.command == "dpaudit audit --plan --epsilon 1 --delta 0 --detect 1.25"
    assert "its --detect 1.25 is half-way from the claim to what this audit detects" in step.why


@pytest.mark.parametrize("verdict", ["consistent", "inconclusive"])
def test_a_further_audit_has_a_fresh_seed_and_says_what_is_spent(
    record_of: Make, verdict: str
) -> None:
    found = record_of(verdict=verdict, seed=7, confidence=0.95)
    assert next_step(found).then == (
        "audit with a fresh seed (--seed 8); it adds 5 % error probability to the 5 % spent here, "
        "so report both",
    )


def test_a_second_look_at_the_same_trials_is_repeated_with_a_fresh_seed(record_of: Make) -> None:
    judged = {"name": FRESH_TRIALS, "passed": False, "detail": "", "consequence": "withholds"}
    found = record_of(
        verdict="inconclusive",
        proved=3.0,
        claim={"epsilon": 1.0},
        seed=7,
        checks=[judged],
        fresh="dpaudit audit 'my gan' --data a.csv --seed 8 --shadow-models 100",
    )
    assert next_step(found).command == found.fresh
    in_memory = replace(found, fresh=None)
    assert next_step(in_memory).command == ""
    assert "--seed 8" in next_step(in_memory).then[0]
    assert "its bound proves nothing" in lead(found)[-1]


def test_an_invalid_audit_is_repaired_first(never_run: AuditRecord) -> None:
    step = next_step(never_run)
    assert step.command == ""
    assert "Repair what failed" in step.why
    assert f"--seed {never_run.seed + 1}" in step.why


def test_no_replay_is_proposed_for_a_leak_through_how_trainings_run(record_of: Make) -> None:
    leaks = [{"column": THE_TRIAL, "feature": "wall seconds of training", "importance": 0.5}]
    step = next_step(record_of(verdict="violation", leaks=leaks))
    assert step.command == ""
    assert "A replay does not see that" in step.why
