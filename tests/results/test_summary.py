"""A result in a few lines, for a terminal and for a failing test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpaudit.results.document import to_document
from dpaudit.results.record import AuditRecord
from dpaudit.results.result import AuditResult
from dpaudit.results.sentences import compared_bound, headline
from dpaudit.results.summary import failure_lines, rows, summary_lines

Make = Callable[..., AuditRecord]


def facts(record: AuditRecord, *, folder: Path | None = None) -> list[str]:
    """The rows of a terminal before they are wrapped, each as "label: fact"."""
    return [f"{label}: {fact}" for label, fact, _ in rows(record, folder=folder)]


def test_summary_of_a_violation(record_of: Make) -> None:
    assert summary_lines(record_of()) == [
        "VIOLATION  claimed epsilon 1, empirical epsilon at least 3.21 (95 % confidence)",
        "",
        "claim     (1, 1e-05)-DP, add or remove one record; PATE-GAN, 144 labels by 50",
        "          teachers",
        "bound     3.21 (exact; quote this), Clopper-Pearson 2.58; at most 4.38 with 400",
        "          models",
        "method    exact tests both counts at once, Clopper-Pearson bounds each rate",
        "attack    groundhog: AUC 0.981, FNR 3/120, FPR 1/120; 160 models trained it;",
        "          best of 2 attacks on the same models, so optimistic",
        "leak      maximum (STDs_number); rows equal to the target (Age)",
        "power     detects epsilon 1.76 with 80 % power",
        "checks    null and positive control passed, 1 of 1 checks",
        "failed    1 in, 0 out: RuntimeError: unlucky; tracebacks: workers.log, if `out`",
        "          is given",
        "warning   bounds and categories were inferred from the table itself: write a",
        "          public schema (start from dpaudit schema) and give it with --schema",
    ]


def test_summary_names_no_leak_without_a_violation(record_of: Make) -> None:
    lines = facts(record_of(verdict="consistent"))
    assert not [line for line in lines if "leak:" in line]


def test_summary_of_an_audit_that_never_ran(never_run: AuditRecord) -> None:
    lines = facts(never_run)
    assert "attack: none was scored" in lines
    assert "checks: null control FAILED, positive control passed" in lines


def test_a_bound_just_above_the_claim_reads_as_in_the_headline(record_of: Make) -> None:
    close = record_of(proved=1.0074, claim={"epsilon": 1.0})
    assert [line for line in facts(close) if line.startswith("bound: 1.007 (")]


def test_a_check_that_failed_is_named(record_of: Make) -> None:
    check = {"name": "different seeds", "passed": False, "detail": "", "consequence": "noted"}
    said = "null and positive control passed, 0 of 1 checks (failed: different seeds)"
    assert f"checks: {said}" in facts(record_of(checks=[check]))


def test_an_invalid_audit_detects_nothing(record_of: Make) -> None:
    assert [one for one in facts(record_of()) if one.startswith("power: ")]
    assert not [one for one in facts(record_of(verdict="invalid")) if one.startswith("power: ")]


def test_the_main_reason_and_each_error_stand_once_where_nothing_was_found(
    record_of: Make,
) -> None:
    reasons = ["stopped after 18 of 100 shadow models: every one of them failed", "another"]
    failed = [{"world": world, "count": 9, "error": "OSError"} for world in ("in", "out")]
    changes = {"failures": {"in": 9, "out": 9}, "failure_reasons": failed, "reasons": reasons}
    result = record_of(verdict="inconclusive", **changes)
    lines = facts(result)
    assert lines[0] == f"why: {reasons[0]}"
    folder = Path("runs/9")
    said = "9 in, 9 out: OSError; tracebacks: runs/9/workers.log"
    assert f"failed: {said}" in facts(result, folder=folder)
    assert said in AuditResult.of(result, folder=folder).failure_message()
    assert not any(line.startswith("why") for line in facts(record_of(**changes)))


HOSTILE = "\x1b[31m" + "long name\n" * 40


def test_no_fact_is_cut_off_and_lines_fit_a_terminal(record_of: Make) -> None:
    reason = " ".join(f"reason{number}" for number in range(40))
    record = record_of(verdict="inconclusive", reasons=[reason], proved=0.4)
    assert f"why: {reason}" in facts(record)
    shown = str(AuditResult.of(record, folder=None))
    assert max(map(len, shown.splitlines())) <= 80
    assert f"why {reason}" in " ".join(shown.split())
    assert "empirical epsilon at least 0.4" in " ".join(shown.split())
    assert "…" not in shown


EVERYWHERE: dict[str, Any] = {
    "attack": HOSTILE,
    "claim": {"epsilon": 0.123456, "source": HOSTILE},
    "leaks": [{"column": HOSTILE, "feature": HOSTILE, "importance": 1.0}],
    "failure_reasons": [{"world": "in", "count": 1, "error": HOSTILE}],
    "checks": [{"name": HOSTILE, "passed": False, "detail": HOSTILE, "consequence": "invalidates"}],
}
NOT_SCORED: dict[str, Any] = {
    **dict.fromkeys(("proved", "bounds", "counts", "auc", "attack", "threshold")),
    "max_provable_epsilon": None,
    "detectable_epsilon": None,
    "attacks": [],
    "failures": {"in": 0, "out": 0},
}


@pytest.mark.parametrize(
    "changes",
    [
        *({"verdict": verdict} for verdict in ("violation", "consistent")),
        *({"verdict": verdict} for verdict in ("inconclusive", "invalid")),
        *({"verdict": verdict, **NOT_SCORED} for verdict in ("inconclusive", "invalid")),
    ],
    ids=lambda changes: " ".join([changes["verdict"], "not scored" * (len(changes) > 1)]),
)
def test_foreign_strings_neither_widen_nor_steer_the_terminal(
    changes: dict[str, Any], record_of: Make
) -> None:
    record = record_of(**{**EVERYWHERE, **changes})
    lines = facts(record)
    assert 3 <= len(lines) <= 10
    assert all(line.isprintable() for line in lines)
    shown = str(AuditResult.of(record, folder=None)).splitlines()
    assert all(len(line) <= 80 and line.isprintable() for line in shown)


def test_a_target_that_was_searched_for_is_named(record_of: Make) -> None:
    selection = {"candidates": 64, "trainings": 400}
    target = {"choice": "vulnerable", "row": 397, "selection": selection}
    lines = facts(record_of(target=target))
    assert "target: row 397, the most vulnerable of 64 candidates (400 trainings)" in lines
    assert len(lines) == 10


def test_an_exposing_target_is_named_with_its_facts(record_of: Make) -> None:
    maxima = [{"fact": "sole maximum", "column": name} for name in ("age", "pay")]
    missing = {"fact": "only missing value", "column": "town"}
    exposing = {"choice": "exposing", "row": 397}
    for exposures, said in (
        ([*maxima, missing], "sole maximum of age and pay; only missing value in town"),
        ([maxima[0], missing, maxima[1]], "sole maximum of age and pay; only missing value in…"),
        ([], "no record alone has an extreme or unique value, s…"),
    ):
        [line] = [
            line
            for line in facts(record_of(target={**exposing, "exposures": exposures}))
            if line.startswith("target")
        ]
        line = line.removeprefix("target: row 397").removeprefix(", the most exposed record")
        assert line.removeprefix(": ")[:40] == said[:40]
    farthest = {"choice": "farthest", "row": 3}
    assert "target: row 3, the farthest record" in facts(record_of(target=farthest))


NO_BOUND = dict.fromkeys(("exact", "fair_coin", "clopper_pearson", "sequential", "one_run"))
STOPPED = {"name": "two worlds", "sequential": {"trials": 32, "cap": 400, "stopped_early": True}}


def test_the_clopper_pearson_bound_stands_next_to_the_one_that_decides(record_of: Make) -> None:
    coins = record_of(
        bounds={**NO_BOUND, "fair_coin": 0.52, "clopper_pearson": 0.71},
        proved=0.52,
        verdict="consistent",
    )
    assert facts(coins)[1:3] == [
        "bound: 0.52 (fair coin; quote this), Clopper-Pearson 0.71; at most 4.38 with 400 models",
        "method: fair coin weighs each guess, Clopper-Pearson bounds each rate",
    ]
    attack, *_ = coins.attacks
    guesses = {"right": [0, 97], "made": [0, 98], "trials": 240}
    weighed = record_of(
        bounds=dict(coins.bounds or {}),
        proved=0.52,
        verdict="consistent",
        attacks=[{**to_document(attack), "guesses": guesses}],
        multiplicity={"rule": "bonferroni", "hypotheses": 3},
    )
    assert "guesses: 97 of 98 right, abstains on 142 (fair coin)" in facts(weighed)
    [said] = compared_bound(weighed)
    assert "Fair coin weighs each guess (97 of 98 right, abstains on 142)" in said
    assert "right with probability at most e^epsilon / (1 + e^epsilon). The Clopper" in said
    assert "is corrected for 3 attacks too, and holds at 95 % confidence" in said
    assert headline(coins).startswith("CONSISTENT")
    [said] = compared_bound(coins)
    assert "FNR 3/120, FPR 1/120" in said
    assert "and holds at 95 % confidence. It does not decide: the fair coin rule was" in said
    equal = record_of(bounds={**NO_BOUND, "fair_coin": 0.0, "clopper_pearson": 0.0}, proved=0.0)
    assert not [line for line in facts(equal) if line.startswith("method")]
    assert not [line for line in facts(record_of(verdict="invalid")) if "bound:" in line]


def test_an_audit_that_could_stop_says_how_much_of_the_error_it_has(record_of: Make) -> None:
    bounds = {**NO_BOUND, "exact": 0.4, "clopper_pearson": 0.3, "sequential": 0.5}
    at_cap = {"name": "two worlds", "sequential": {**STOPPED["sequential"], "stopped_early": False}}
    [said] = compared_bound(record_of(bounds=bounds, proved=0.5, game=at_cap))
    assert "holds at 97.5 % confidence" in said
    early = record_of(bounds={**NO_BOUND, "sequential": 1.03}, proved=1.03, game=STOPPED)
    assert facts(early)[1] == (
        "bound: 1.03 (sequential); no Clopper-Pearson bound: the audit stopped early; at most 4.38 "
        "with 400 models"
    )
    assert compared_bound(early) == ("There is no Clopper-Pearson bound: the audit stopped early.",)


def test_a_consistent_result_says_what_was_tried(record_of: Make) -> None:
    tried = "tried: groundhog and query-target on 400 shadow models"
    assert tried in facts(record_of(verdict="consistent"))
    for verdict in ("violation", "inconclusive", "invalid"):
        assert tried not in facts(record_of(verdict=verdict))


ALARM = {"id": "seed-ignored", "severity": "violation", "correct": "fresh noise", "p_value": 1e-6}


def probes(*alarms: dict[str, Any]) -> dict[str, Any]:
    return {
        "alarms": list(alarms),
        "passed": ["range-follows-record", "nothing-random"],
        "not_applicable": ["missing-follows-record"],
        "failed": [],
        "left_out": ["epsilon-ignored"],
        "confidence": 0.99,
        "fits": 41,
        "why_left_out": "enough",
    }


@pytest.mark.parametrize("verdict", ["violation", "consistent", "inconclusive", "invalid"])
def test_an_alarm_of_a_probe_is_shown_with_any_verdict(verdict: str, record_of: Make) -> None:
    record = record_of(verdict=verdict, probes=probes(ALARM))
    lines = facts(record)
    assert lines[0] == "alarm: probe seed-ignored (violation)"
    said = "CONSISTENT  no violation of epsilon 1 found, but 1 probe raised an alarm; detects "
    assert headline(record).startswith(said) == (verdict == "consistent")
    assert not [line for line in lines if "no alarm" in line]


def test_probes_without_alarm_are_counted_and_are_no_evidence(record_of: Make) -> None:
    record = record_of(verdict="consistent", probes=probes())
    assert headline(record).endswith("power; not evidence of privacy")
    [checks] = [line for line in facts(record) if line.startswith("checks: ")]
    assert checks.endswith(", no alarm from 2 probes (1 not run)")
    none_ran = {**probes(), "passed": []}
    assert not [line for line in facts(record_of(probes=none_ran)) if "alarm" in line]


def test_a_failing_test_has_everything_to_repeat_the_audit(
    record_of: Make, never_run: AuditRecord
) -> None:
    lines = failure_lines(record_of())
    assert lines[: len(summary_lines(record_of()))] == summary_lines(record_of())
    assert [line for line in lines if line.startswith("leak")] == [
        "leak      maximum (STDs_number); rows equal to the target (Age)"
    ]
    assert lines[-1] == "seed      0"
    assert not [line for line in failure_lines(never_run) if line.startswith("leak")]


def test_a_failure_message_steers_no_terminal(record_of: Make) -> None:
    steering = "a\x1b[31m\u202e"
    record = record_of(
        **EVERYWHERE, generator={"name": steering, "parameters": {}, "seedable": True}
    )
    result = AuditResult.of(record, folder=Path(f"runs/{steering}"))
    for text in (result.failure_message(), repr(result), str(result)):
        assert all(line.isprintable() for line in text.splitlines()), text


def test_units_of_one_row_each_are_warned_of(record_of: Make) -> None:
    result = record_of()
    claim = replace(result.claim, unit="patient")
    for units in (result.data.rows, result.data.rows - 1):
        found = replace(result, claim=claim, data=replace(result.data, units=units))
        shown = "every patient has one row, as in an audit of rows" in "\n".join(
            summary_lines(found)
        )
        assert shown == (units == result.data.rows)
