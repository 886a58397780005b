"""`dpaudit account`: the practitioner's table, its warning, and what it refuses."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from dpaudit.account import Mechanism, Method, VoteTable, vote_table
from dpaudit.account.calibration import COIN_FLIP
from dpaudit.cli.console import ExitCode
from dpaudit.cli.main import app

BUDGET = ["--epsilon", "1"]
"""At the default delta, 1e-5."""


def account(*words: str) -> Result:
    return CliRunner().invoke(app, ["account", *words])


def document(*words: str) -> dict[str, Any]:
    done = account(*words, "--json")
    assert done.exit_code == ExitCode.PASS, done.output
    assert done.stderr == ""
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def first_plan(*words: str) -> dict[str, Any]:
    """The first plan of a document, with the chance that a label is right by consensus."""
    row = document(*words)["plans"][0]
    right = {one["consensus"]: one["right"] for one in row["qualities"]}
    return {**row["plan"], "proof": row["proof"], "right": right}


def test_the_table_fits_a_terminal_and_says_what_spends_and_what_is_right() -> None:
    done = account(*BUDGET, "--teachers", "100", "--method", "rdp", "--mechanism", "all")
    assert done.exit_code == ExitCode.PASS, done.output
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0] == "ACCOUNT  epsilon 1 pays for 1000 labels better than coin flips"
    assert lines[2] == "budget    epsilon 1, delta 1e-05, add or remove one record"
    assert re.split(r"  +", lines[7]) == [
        *("mechanism", "labels", "noise", "epsilon", "proof", "80 %", "95 %")
    ]
    rows = [line.split() for line in lines[8:20]]
    assert [row[:2] for row in rows] == [
        [mechanism, str(labels)] for mechanism in Mechanism for labels in (10, 100, 1000, 10000)
    ]
    assert rows[1] == ["gaussian", "100", "32.36", "1", "rdp", "0.823", "0.917"]
    assert "coin flip" in lines[11]
    assert "warning   near coin flips" in done.stdout


def test_one_document_with_everything_the_table_says() -> None:
    found = document(*BUDGET, "--teachers", "100", "--labels", "100", "--consensus", "0.7")
    plan = found.pop("plans")
    assert found == {
        "schema_version": 1,
        "budget": 1.0,
        "delta": 1e-5,
        "teachers": 100,
        "neighbours": "add-remove",
        "method": "best",
        "warnings": [],
    }
    [found] = plan
    spent = found["plan"]
    assert (spent["mechanism"], spent["labels"], found["proof"]) == ("gaussian", 100, "rdp")
    table = VoteTable.gaussian(100, spent["scale"]).quantised()
    assert [(one["consensus"], one["right"]) for one in found["qualities"]] == [
        (share, table.accuracy(share)) for share in (0.7, 0.8, 0.95)
    ]
    assert spent["epsilon"] == table.epsilon(100, delta=1e-5)


@pytest.mark.parametrize(
    ("mechanism", "method", "key", "tolerance"),
    [
        ("gaussian", "rdp", "G1_exactRDP_s", 1e-5),
        ("laplace", "rdp", "L1_exactRDP_gamma", 1e-5),
        ("noisy-max", "rdp", "LN_exactRDP_gamma", 1e-5),
    ],
)
def test_noise_of_a_budget_is_the_reference(
    accounting_vectors: dict[str, Any], mechanism: str, method: str, key: str, tolerance: float
) -> None:
    words = [*BUDGET, "--teachers", "301", "--mechanism", mechanism, "--method", method]
    plans = [one["plan"] for one in document(*words)["plans"]]
    wanted = {one["T"]: one[key] for one in accounting_vectors["calibration_eps1_delta1e-5"]}
    assert [plan["labels"] for plan in plans] == [10, 100, 1000, 10000]
    for plan in plans:
        noise = wanted[plan["labels"]]
        assert plan["scale"] == pytest.approx(1 / noise if "gamma" in key else noise, rel=tolerance)
        assert 1 - 1e-6 < plan["epsilon"] <= 1


@pytest.mark.ci
def test_a_smaller_proof_buys_less_noise(accounting_vectors: dict[str, Any]) -> None:
    words = [*BUDGET, "--teachers", "301", "--labels", "100", "--mechanism", "laplace"]
    reference = accounting_vectors["calibration_eps1_delta1e-5"][2]
    best = first_plan(*words)
    assert best["scale"] == pytest.approx(1 / reference["L1_PLD_gamma"], rel=1e-3)
    assert best["proof"] == "pld"
    plan = first_plan(*BUDGET, "--teachers", "100", "--labels", "100", "--method", "tight")
    assert plan["proof"] == "tight"
    assert plan["scale"] < 0.94 * reference["G1_exactRDP_s"]


def test_labels_of_a_wanted_accuracy_are_the_reference(accounting_vectors: dict[str, Any]) -> None:
    for row in accounting_vectors["defaults_gauss1_exactRDP"]:
        words = ["--epsilon", str(row["eps"]), "--teachers", str(row["k"]), "--method", "rdp"]
        plan = first_plan(*words, "--accuracy", str(row["acc_at_80pct"]))
        assert plan["labels"] == row["T"]
        assert plan["scale"] == pytest.approx(row["s"], rel=1e-9)
        assert plan["epsilon"] <= row["eps"]
        assert plan["right"][0.8] == pytest.approx(row["acc_at_80pct"], abs=1e-12)


def test_accuracy_can_be_asked_where_fewer_teachers_agree() -> None:
    words = [*BUDGET, "--teachers", "100", "--accuracy", "0.65", "--consensus", "0.7"]
    plan = first_plan(*words)
    assert plan["right"][0.7] == pytest.approx(0.65)
    assert plan["right"][0.8] > 0.7


def test_probabilities_that_labels_are_right_are_the_reference(
    accounting_vectors: dict[str, Any],
) -> None:
    named = {"LN exact": "noisy-max", "L1 PLD": "laplace", "G1 exact": "gaussian"}
    compared = 0
    for row in accounting_vectors["utility_eps1_delta1e-5"]:
        name = next((to for start, to in named.items() if row["mech"].startswith(start)), None)
        if name is None:
            continue
        scale = row["param"] if name == "gaussian" else 1 / row["param"]
        for k, clear, almost_all in zip(
            (10, 50, 100, 300), row["acc"][::2], row["acc"][1::2], strict=True
        ):
            words = ["--teachers", str(k), "--labels", "1", "--scale", str(scale)]
            plan = first_plan(*words, "--mechanism", name, "--method", "rdp")
            # At 95 % of 10 or 50 teachers the reference counts half votes.
            assert plan["right"][0.8] == pytest.approx(clear, abs=5.1e-4)
            assert plan["right"][0.95] == pytest.approx(almost_all, abs=2e-3)
            compared += 1
    assert compared == 3 * 4 * 4


def test_given_noise_has_a_price_by_every_proof() -> None:
    words = ["--teachers", "100", "--labels", "100", "--scale", "32.358"]
    table = VoteTable.gaussian(100, 32.358).quantised()
    for method in ("rdp", "pld", "tight"):
        found = document(*words, "--method", method)
        assert found["budget"] is None
        [row] = found["plans"]
        plan = row["plan"]
        assert plan["epsilon"] == table.epsilon(100, delta=1e-5, method=method)
        assert row["proof"] == method
        assert plan["scale"] == 32.358
    lines = account(*words).stdout.splitlines()
    assert lines[0] == "ACCOUNT  100 labels cost epsilon 1 with gaussian noise"
    assert lines[8].split()[:5] == ["gaussian", "100", "32.36", "1", "rdp"]


def test_labels_without_noise_are_not_free() -> None:
    for method in Method:
        words = ["--teachers", "100", "--labels", "100", "--scale", "0.01", "--method", method]
        assert first_plan(*words)["epsilon"] > 900


@pytest.mark.parametrize("mechanism", Mechanism)
@pytest.mark.parametrize("teachers", [10, pytest.param(100, marks=pytest.mark.ci)])
def test_the_warning_comes_exactly_below_six_in_ten(mechanism: Mechanism, teachers: int) -> None:
    seen = set()
    for scale in (0.5, 0.9, 1.1, 1.18, 1.19, 1.24, 1.25, 1.34, 1.35, 1.5, 3.0):
        noise = scale * teachers
        right = vote_table(mechanism, teachers, noise).accuracy(0.8)
        words = ["--teachers", str(teachers), "--labels", "3", "--scale", str(noise)]
        words += ["--mechanism", mechanism, "--method", "rdp"]
        found = document(*words)
        done = account(*words)
        poor = right < COIN_FLIP
        seen.add(poor)
        assert bool(found["warnings"]) is poor
        assert ("near coin flips" in done.stdout) is poor
        assert ("coin flip\n" in done.stdout) is poor
        assert done.stderr == ""
        assert done.exit_code == ExitCode.PASS
    assert seen == {True, False}


def test_labels_planned_for_six_in_ten_are_no_coin_flips() -> None:
    for mechanism in Mechanism:
        words = ["--teachers", "50", "--accuracy", "0.6", "--mechanism", mechanism]
        found = document(*BUDGET, *words, "--method", "rdp")
        assert not found["warnings"]
        assert " 0.600 " in account(*BUDGET, *words, "--method", "rdp").stdout


BAD = {
    "labels and accuracy": ([*BUDGET, "--labels", "9", "--accuracy", ".7"], "--labels or"),
    "nothing asked": ([], "give --epsilon for a budget"),
    "no teachers": ([*BUDGET, "--teachers", "0"], "teachers must be a whole number"),
    "delta 0": ([*BUDGET, "--delta", "0"], "--delta must be a "),
    "delta 1": ([*BUDGET, "--delta", "1"], "--delta must be a "),
    "delta of a price": (["--labels", "9", "--scale", "9", "--delta", "0"], "--delta must be a "),
    "epsilon 0": (["--epsilon", "0"], "--epsilon must be a "),
    "epsilon negative": (["--epsilon", "-1"], "--epsilon must be a "),
    "epsilon NaN": (["--epsilon", "nan"], "--epsilon must be a "),
    "scale without labels": (["--scale", "3"], "--scale needs --labels"),
    "scale with accuracy": (["--scale", "3", "--accuracy", ".7"], "--scale needs --labels"),
    "scale and budget": ([*BUDGET, "--scale", "3", "--labels", "9"], "--epsilon or --scale"),
    "scale 0": (["--scale", "0", "--labels", "9"], "--scale must be a "),
    "scale NaN": (["--scale", "nan", "--labels", "9"], "--scale must be a "),
    "no labels": ([*BUDGET, "--labels", "0"], "--labels must be a "),
    "price of no labels": (["--scale", "3", "--labels", "0"], "--labels must be a "),
    "accuracy of a coin": ([*BUDGET, "--accuracy", "0.5"], "--accuracy must be a "),
    "accuracy of 1": ([*BUDGET, "--accuracy", "1"], "--accuracy must be a "),
    "consensus of a tie": ([*BUDGET, "--consensus", "0.5"], "--consensus must be a "),
    "too good for the budget": (
        ["--epsilon", "0.01", "--accuracy", "0.99"],
        "pays for no label",
    ),
    "tight without labels": ([*BUDGET, "--method", "tight"], "say how many, --labels T"),
    "unknown mechanism": ([*BUDGET, "--mechanism", "cauchy"], "noisy-max"),
    "unknown method": ([*BUDGET, "--method", "guess"], "tight"),
    "runs of no simulation": ([*BUDGET, "--runs", "9"], "give --simulate"),
    "simulation of a budget": ([*BUDGET, "--simulate"], "--simulate needs --labels, --scale"),
    "labels not a number": ([*BUDGET, "--labels", "many"], "--labels"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_exit_2(case: str) -> None:
    words, message = BAD[case]
    done = account(*words, *([] if "--teachers" in words else ["--teachers", "10"]))
    assert done.exit_code == ExitCode.USAGE, done.output
    assert message in " ".join(done.stderr.split())
    assert done.stdout == ""
    if "Usage" not in done.stderr:
        assert len(done.stderr.splitlines()) == 1
        assert done.stderr.startswith("error: ")


def test_teachers_must_be_named() -> None:
    done = account(*BUDGET)
    assert done.exit_code == ExitCode.USAGE
    assert "--teachers" in done.stderr
