"""`dpaudit report --bounds`: what a finished run proves, and what was chosen too late to prove."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dpaudit.bounds import clopper_pearson, exact, fair_coin
from dpaudit.bounds.table import Observed, entries_for
from dpaudit.cli.main import app

COUNTS = {"false_negatives": 30, "false_positives": 30, "n_in": 120, "n_out": 120}
DELTA = 1e-5


@pytest.fixture
def run(tmp_path: Path, example: dict[str, Any]) -> Path:
    """A sequential run that went to its cap: two attacks, both with 30 errors of 120."""
    attack = example["attacks"][0]
    bounds = {
        "exact": 0.7268,
        "fair_coin": None,
        "clopper_pearson": 0.7,
        "sequential": 0.25,
        "one_run": None,
    }
    for one in example["attacks"]:
        one |= {**attack, "name": one["name"], "counts": COUNTS, "bounds": bounds}
    example |= {
        "verdict": "consistent",
        "game": game({"trials": 400, "cap": 400, "stopped_early": False}),
        "counts": COUNTS,
        "bounds": bounds,
        "proved": 0.7268,
    }
    written(tmp_path, example)
    return tmp_path


def game(sequential: dict[str, Any] | None) -> dict[str, Any]:
    return {"name": "two worlds", "sequential": sequential}


def written(folder: Path, document: dict[str, Any]) -> None:
    (folder / "result.json").write_text(json.dumps(document))


def changed(run: Path, **changes: Any) -> None:
    written(run, json.loads((run / "result.json").read_text()) | changes)


def proved_sequentially(run: Path, *, trials: int) -> None:
    """Makes it a run that its e-process ended after so many trials."""
    attacks = json.loads((run / "result.json").read_text())["attacks"]
    for one in attacks:
        one["bounds"] |= {"exact": None, "clopper_pearson": None}
    sequential = {"trials": trials, "cap": 400, "stopped_early": trials < 400}
    changed(run, attacks=attacks, game=game(sequential))


def asked(run: Path, *words: str) -> dict[str, Any]:
    """What the command says about the first attack, by method."""
    done = CliRunner().invoke(app, ["report", str(run), "--bounds", "--json", *words])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    rows = {row["method"]: row for row in found["bounds"] if row["attack"] == "groundhog"}
    return {**found, "rows": rows}


def spoken(run: Path, *words: str) -> list[str]:
    done = CliRunner().invoke(app, ["report", str(run), "--bounds", *words])
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert all(len(line) <= 80 for line in lines), lines
    return lines


def test_at_the_cap_each_bound_has_half_of_the_error(run: Path) -> None:
    rows = asked(run)["rows"]
    counts, share = tuple(COUNTS.values()), 0.05 / (2 * 2)  # two attacks, two bounds of each
    assert rows["exact"]["value"] == exact(*counts, delta=DELTA, confidence=1 - share)
    assert rows["exact"]["value"] == pytest.approx(0.7268, abs=1e-4)  # not .7677
    assert rows["clopper_pearson"]["value"] == clopper_pearson(
        *counts, delta=DELTA, confidence=1 - share
    )
    assert rows["sequential"]["value"] == 0.25
    assert all(rows[m]["reason"] is None for m in ("exact", "clopper_pearson", "sequential"))
    assert rows["exact"]["reason"] is None
    lines = spoken(run)
    assert lines[0].startswith("BOUNDS  epsilon at least 0.726 ")
    assert ", shared by 2 attacks, half for each bound" in " ".join(" ".join(lines).split())


def test_a_fixed_run_keeps_the_whole_of_the_error(run: Path) -> None:
    changed(run, game=game(None))
    rows = asked(run)["rows"]
    assert rows["exact"]["value"] == pytest.approx(0.7677, abs=5e-5)
    assert "sequential" not in rows


@pytest.mark.parametrize("words", [("--delta", "0"), ("--confidence", "0.9")])
@pytest.mark.parametrize("stopped_early", [False, True])
def test_what_is_chosen_after_the_run_is_not_a_proof(
    run: Path, words: tuple[str, str], stopped_early: bool
) -> None:
    if stopped_early:
        proved_sequentially(run, trials=48)
    found = asked(run, *words)
    assert found["post_hoc"]
    assert not any(row["reason"] is None for row in found["rows"].values())
    if not stopped_early:
        assert found["rows"]["exact"]["reason"] == "post hoc, not a proof"
        assert found["rows"]["exact"]["value"] > 0
    sequential = found["rows"]["sequential"]
    assert (sequential["value"], sequential["reason"]) == (None, "cannot be recomputed")
    lines = spoken(run, *words)
    assert lines[0] == "BOUNDS  none of these numbers is a proof"
    said = " ".join(" ".join(lines).split())
    assert "chosen after the run, which was made for 95 % confidence at delta 1e-05" in said
    assert any(line.endswith("cannot be recomputed") for line in lines)
    from_counts = 2 * sum(entry.valid for entry in entries_for(Observed.COUNTS))  # two attacks
    assert stopped_early or sum("post hoc, not a proof" in line for line in lines) == from_counts


@pytest.mark.parametrize("trials", [48, 400])  # of 400
def test_what_ended_the_trials_leaves_no_fixed_bound(run: Path, trials: int) -> None:
    proved_sequentially(run, trials=trials)
    rows = asked(run)["rows"]
    assert list(rows) == ["sequential"]
    assert rows["sequential"]["reason"] is None


def test_the_rule_that_was_not_chosen_is_no_proof(run: Path) -> None:
    attacks = json.loads((run / "result.json").read_text())["attacks"]
    for one in attacks:
        one["bounds"] |= {"exact": None, "clopper_pearson": None, "fair_coin": 0.9}
        one["guesses"] = {"right": [0, 150], "made": [0, 180], "trials": 240}
    changed(run, attacks=attacks, game=game(None))
    rows = asked(run)["rows"]
    confidence = 1 - 0.05 / 2  # two attacks
    coins = fair_coin([0, 150], [0, 180], 240, delta=DELTA, confidence=confidence)
    assert (rows["fair_coin"]["value"], rows["fair_coin"]["reason"]) == (coins, None)
    reasons = {
        "exact": "not chosen before, not a proof",
        "clopper_pearson": "for comparison, does not decide",
    }
    for other, reason in reasons.items():
        assert rows[other]["value"] > 0
        assert rows[other]["reason"] == reason
    assert asked(run, "--delta", "0")["rows"]["exact"]["reason"] == "post hoc, not a proof"


def test_to_say_again_what_the_run_was_made_for_is_not_post_hoc(run: Path) -> None:
    found = asked(run, "--delta", "1e-5", "--confidence", "0.95")
    assert not found["post_hoc"]
    assert found["rows"]["exact"]["reason"] is None


def test_bounds_of_an_invalid_run_prove_nothing(run: Path) -> None:
    changed(run, verdict="invalid")
    rows = asked(run)["rows"]
    assert not any(row["reason"] is None for row in rows.values())
    assert rows["sequential"]["reason"] == rows["exact"]["reason"] == "invalid, not a proof"
