"""The verdict in words: true, short, and cheap to import."""

from __future__ import annotations

import copy
import subprocess
import sys
from typing import Any

import pytest
from dpaudit.report.words import claim_and_proof, feature_in_words

from dpaudit.formatting import duration, percent, rounded, rounded_down, rounded_up
from dpaudit.report import headline, summary_lines

EXAMPLE: dict[str, Any] = {
    "verdict": "violation",
    "claim": {
        "epsilon": 1.0,
        "delta": 1e-05,
        "neighbours": "add-remove",
        "source": "PATE-GAN, 144 labels by 50 teachers",
    },
    "proved": 3.21,
    "multiplicity": {"rule": "bonferroni", "hypotheses": 2},
    "threshold_rule": "cross-validated",
    "sequential": None,
    "one_run": None,
    "bounds": {"exact": 3.21, "clopper_pearson": 2.58, "sequential": None, "one_run": None},
    "confidence": 0.95,
    "max_provable_epsilon": 4.38,
    "detectable_epsilon": 1.76,
    "auc": 0.981,
    "counts": {"false_negatives": 3, "false_positives": 1, "n_in": 120, "n_out": 120},
    "failures": {"in": 1, "out": 0},
    "failure_reasons": [{"world": "in", "count": 1, "error": "RuntimeError: unlucky"}],
    "controls": {"null": {"passed": True}, "positive": {"passed": True}},
    "leaks": [
        {"column": "STDs_number", "feature": "max", "importance": 0.21},
        {"column": "Age", "feature": "rows equal to the target", "importance": 0.02},
    ],
    "attack": "groundhog",
    "checks": [
        {"name": "trial order", "passed": True, "detail": "no drift", "consequence": "invalidates"}
    ],
    "schema": {"inferred": True},
    "target": {"choice": "farthest", "row": 7},
}


def changed(**changes: Any) -> dict[str, Any]:
    return {**copy.deepcopy(EXAMPLE), **changes}


NEVER_PLAYED = changed(
    verdict="invalid",
    controls={"null": {"passed": False}, "positive": {"passed": True}},
    proved=None,
    bounds=None,
    counts=None,
    auc=None,
    attack=None,
    max_provable_epsilon=None,
    detectable_epsilon=None,
    leaks=[],
    checks=[],
    failures={"in": 0, "out": 0},
    failure_reasons=[],
)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (EXAMPLE, "VIOLATION: claimed epsilon 1, proved at least 3.21 at 95 % confidence"),
        (
            changed(verdict="consistent"),
            "CONSISTENT: no violation of epsilon 1 found; not evidence of privacy",
        ),
        (
            changed(verdict="inconclusive"),
            "INCONCLUSIVE: epsilon 1 neither contradicted nor put to a fair test",
        ),
        (NEVER_PLAYED, "INVALID: the null control failed; nothing is known about epsilon 1"),
        (
            changed(
                verdict="invalid",
                checks=[
                    {
                        "name": "trial order",
                        "passed": False,
                        "detail": "",
                        "consequence": "invalidates",
                    }
                ],
            ),
            'INVALID: the check "trial order" failed; nothing is known about epsilon 1',
        ),
    ],
)
def test_headline(document: dict[str, Any], expected: str) -> None:
    assert headline(document) == expected


def test_summary_of_a_violation() -> None:
    assert summary_lines(EXAMPLE) == [
        "VIOLATION: claimed epsilon 1, proved at least 3.21 at 95 % confidence",
        "claim: (1, 1e-05)-DP, add-remove; PATE-GAN, 144 labels by 50 teachers",
        "leak: max(STDs_number); rows equal to the target (Age)",
        "attack: groundhog, AUC 0.981; missed 3 of 120 in, mistook 1 of 120 out",
        "power: epsilon 1.76 is caught with 80 % power; at most 4.38 is provable",
        "controls: null passed, positive passed, 1 of 1 checks passed",
        "failed trials: 1 in, 0 out (RuntimeError: unlucky)",
        "warning: bounds and categories were inferred from the table itself",
    ]


def test_summary_names_no_leak_without_a_violation() -> None:
    assert not [line for line in summary_lines(changed(verdict="consistent")) if "leak:" in line]


def test_summary_of_an_audit_never_played() -> None:
    lines = summary_lines(NEVER_PLAYED)
    assert "attack: none was scored" in lines
    assert "controls: null FAILED, positive passed" in lines


@pytest.mark.parametrize("verdict", ["violation", "consistent", "inconclusive", "invalid"])
@pytest.mark.parametrize("base", [EXAMPLE, NEVER_PLAYED])
def test_foreign_strings_neither_widen_nor_steer_the_terminal(
    base: dict[str, Any], verdict: str
) -> None:
    if base is NEVER_PLAYED and verdict == "violation":
        base = EXAMPLE
    hostile = "\x1b[31m" + "long name\n" * 40
    document = {**copy.deepcopy(base), "verdict": verdict, "attack": hostile}
    document["claim"] = {**document["claim"], "epsilon": 0.123456, "source": hostile}
    document["leaks"] = [{"column": hostile, "feature": hostile, "importance": 1.0}]
    document["failure_reasons"] = [{"world": "in", "count": 1, "error": hostile}]
    document["checks"] = [
        {"name": hostile, "passed": False, "detail": hostile, "consequence": "invalidates"}
    ]
    lines = summary_lines(document)
    assert 4 <= len(lines) <= 8
    assert all(len(line) <= 80 and line.isprintable() for line in lines)


def test_a_target_that_was_searched_for_is_told() -> None:
    selection = {"candidates": 64, "trainings": 400}
    target = {"choice": "vulnerable", "row": 397, "selection": selection}
    lines = summary_lines(changed(target=target))
    assert lines[2] == "target: vulnerable: row 397, best of 64 candidates in 400 trainings"
    assert len(lines) == 9


def test_a_bound_just_above_the_claim_reads_as_above() -> None:
    document = changed(
        claim={**EXAMPLE["claim"], "epsilon": 3.214},
        proved=3.21417,
        bounds={"exact": 3.21417, "clopper_pearson": 0.0, "sequential": None, "one_run": None},
    )
    claimed, proved = claim_and_proof(document)
    assert float(claimed) < float(proved) <= 3.21417


def test_features_in_words() -> None:
    assert feature_in_words({"feature": "max", "column": "Age"}) == "max(Age)"
    assert feature_in_words({"feature": "share in bin 3", "column": "A"}) == "share in bin 3 (A)"


def test_numbers_are_rounded_to_the_safe_side() -> None:
    assert (rounded_down(3.219), rounded_up(1.761), rounded(3.216)) == ("3.21", "1.77", "3.22")
    assert (rounded_down(0.0), rounded(None), rounded(1e-05)) == ("0", "none", "1e-05")
    assert (rounded(123456.0), rounded(2.0), percent(0.95), percent(0.999)) == (
        "123000",
        "2",
        "95 %",
        "99.9 %",
    )
    assert (duration(0.51234), duration(151.2), duration(3725)) == (
        "0.512 s",
        "2 min 31 s",
        "1 h 2 min",
    )


def test_importing_the_words_loads_nothing_heavy() -> None:
    code = (
        "import sys; import dpaudit.report; "
        "print(sorted({'matplotlib', 'jinja2', 'numpy', 'pandas', 'torch'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
