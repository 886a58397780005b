"""One-run audits: one training, many canaries, on generators with known answers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import binom
from typer.testing import CliRunner

import dpaudit
from dpaudit.auditing.entry import run_audit
from dpaudit.auditing.one_run.attack import ClosestRecord, guess, guesses_of
from dpaudit.auditing.one_run.spec import OneRunSpec, build_one_run
from dpaudit.auditing.settings import AuditSettings
from dpaudit.bounds import one_run, one_run_detectable
from dpaudit.cli.main import app
from dpaudit.errors import ClaimError, InterruptedRunError, RunFolderError, SettingsError
from dpaudit.game.canaries import choose_canaries
from dpaudit.game.progress import TrialProgress
from dpaudit.game.trial import Role
from dpaudit.model.encoding import encode
from dpaudit.model.tables import load
from dpaudit.plugins.modules import carry
from dpaudit.plugins.protocols import World
from dpaudit.report.render import render_html, render_markdown
from dpaudit.results.schema import result_schema

CANARIES = 100
ONE_RUN: dict[str, Any] = {"one_run": True, "canaries": CANARIES, "jobs": 1}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 60, 240),
            "income": rng.normal(30, 5, 240),
            "city": rng.choice(["Bern", "Ulm", "Graz"], 240),
        }
    )


def resample(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
    return data.sample(n_rows, replace=True, random_state=seed)


def broken(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
    raise RuntimeError("out of luck")


def spec(generator: object, table: pd.DataFrame, **changes: Any) -> OneRunSpec:
    given = {"epsilon": 1.0, "delta": 1e-5, "one_run": True, "canaries": CANARIES, **changes}
    return build_one_run(generator, load(table, None), AuditSettings(**given))


def test_null_is_consistent_with_bound_0_where_there_are_enough_canaries(
    table: pd.DataFrame,
) -> None:
    fewer = dpaudit.audit("null", table, **ONE_RUN)
    assert fewer.verdict is dpaudit.Verdict.INCONCLUSIVE  # only 3.14 would be caught, of 1
    result = dpaudit.audit("null", table, **{**ONE_RUN, "canaries": 120})
    assert result.verdict is dpaudit.Verdict.CONSISTENT
    assert result.epsilon_lower_bound == 0
    assert result.controls.null.bound == 0
    result.assert_no_violation()


def test_resampling_is_a_violation_with_the_bound_of_its_guesses(
    table: pd.DataFrame, tmp_path: Path
) -> None:
    result = dpaudit.audit(resample, table, epsilon=1, delta=1e-5, out=tmp_path, **ONE_RUN)
    document = result.to_document()
    jsonschema.validate(document, result_schema())
    assert result.verdict is dpaudit.Verdict.VIOLATION
    found = document["one_run"]
    assert found["guesses"] == guesses_of(CANARIES) == 20
    assert result.epsilon_lower_bound == one_run(
        found["correct"], found["guesses"], found["canaries"], delta=1e-5, confidence=0.95
    )
    assert document["bounds"]["one_run"] == document["proved"] != found["gaussian_estimate"]
    assert len(document["scores"]["in"]) == found["included"]
    assert len(document["scores"]["out"]) == CANARIES - found["included"]
    for text in (render_html(result), render_markdown(result)):
        assert "One training, many canaries" in text
        assert "assumes a Gaussian trade-off curve" in text
        assert "ROC curve" not in text
    assert "one training, 100 canaries" in str(result)
    assert "--one-run --canaries 100" in document["reproduce"]

    bounded = CliRunner().invoke(app, ["bounds", str(tmp_path), "--json"])
    [row] = json.loads(bounded.stdout)["bounds"]
    assert row["method"] == "one_run"
    assert row["epsilon"] == document["proved"]


def test_too_few_canaries_for_the_claim_are_inconclusive(table: pd.DataFrame) -> None:
    options = {**ONE_RUN, "canaries": 20}
    result = dpaudit.audit("null", table, epsilon=3, **options)
    assert result.verdict is dpaudit.Verdict.INCONCLUSIVE
    assert "run more canaries" in result.reasons[0]


def test_a_failed_training_is_an_outcome_that_invalidates(table: pd.DataFrame) -> None:
    result = dpaudit.audit(broken, table, epsilon=1, **ONE_RUN)
    jsonschema.validate(result.to_document(), result_schema())
    assert result.verdict is dpaudit.Verdict.INVALID
    assert "RuntimeError" in result.reasons[0]
    assert result.proved is None
    assert "RuntimeError" in render_markdown(result)
    render_html(result)


def test_a_failed_control_stops_before_the_training(table: pd.DataFrame) -> None:
    result = dpaudit.audit("null", table, rows=5, **ONE_RUN)
    jsonschema.validate(result.to_document(), result_schema())
    assert result.verdict is dpaudit.Verdict.INVALID
    assert not result.controls.positive.passed
    assert result.to_document()["shadow_models"] == {"in": 0, "out": 0}
    render_html(result)


def test_the_training_table_holds_the_others_and_the_included_canaries(
    table: pd.DataFrame,
) -> None:
    audit = spec("null", table)
    trained = audit.game.table(World.IN, 0)
    assert len(trained) == len(table) - CANARIES + audit.coins.sum()
    canaries = load(table, None).data.iloc[audit.canary_rows]
    both = canaries.merge(trained, how="left", indicator=True)
    assert np.array_equal(both["_merge"] == "both", audit.coins)
    assert len(audit.game.view.others) == len(table) - CANARIES
    other_seed = spec("null", table, seed=1)
    assert not np.array_equal(audit.coins, other_seed.coins)
    assert np.array_equal(audit.canary_rows, other_seed.canary_rows)


def test_canaries_are_far_and_have_no_copies(table: pd.DataFrame) -> None:
    copied = pd.concat([table, table.iloc[:60]], ignore_index=True)
    copied.loc[100, ["age", "income"]] = [99, 99.0]
    loaded = load(copied, None)
    rows = choose_canaries(loaded.data, loaded.schema, 50)
    assert 100 in rows
    assert not set(rows) & {*range(60), *range(240, 300)}
    assert len(np.unique(encode(loaded.data, loaded.schema)[rows], axis=0)) == 50
    with pytest.raises(SettingsError, match="only 180 records"):
        choose_canaries(loaded.data, loaded.schema, 200)


def test_scores_are_minus_distances_and_finite_for_any_table(table: pd.DataFrame) -> None:
    game = spec("null", table).game.view
    assert not ClosestRecord().features(game.target, game).any()
    assert (ClosestRecord().features(game.others, game) < 0).all()
    absurd = game.others.assign(income=1e308)
    assert np.isfinite(ClosestRecord().features(absurd, game)).all()


def test_guesses_ignore_the_coins() -> None:
    rng = np.random.default_rng(0)
    scores, coins = rng.normal(size=40), rng.integers(0, 2, 40).astype(bool)
    best = np.argsort(-scores)[:8]
    assert guess(scores, coins).correct == coins[best].sum()
    assert guess(scores, ~coins).correct == 8 - coins[best].sum()


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_randomised_response_per_canary_is_not_flagged(epsilon: float) -> None:
    # Every canary answers its coin truthfully with probability e^ε/(1 + e^ε): exactly ε-DP.
    rng = np.random.default_rng(5)
    flagged = 0
    for _ in range(100):
        coins = rng.integers(0, 2, CANARIES).astype(bool)
        truthful = rng.random(CANARIES) < expit(epsilon)
        answers = np.where(truthful, coins, ~coins) + rng.uniform(0, 0.5, CANARIES)
        found = guess(answers, coins)
        flagged += found.bound(delta=1e-5, confidence=0.95) > epsilon
    assert flagged <= 5


@pytest.mark.parametrize("canaries", [100, 500])
@pytest.mark.parametrize("claim", [0.5, 1.0])
def test_the_detectable_epsilon_is_caught_with_80_percent_power(
    canaries: int, claim: float
) -> None:
    guesses = guesses_of(canaries)
    size: dict[str, Any] = {"delta": 1e-5, "confidence": 0.95}

    def caught(epsilon: float) -> float:
        exposing = [
            correct
            for correct in range(guesses + 1)
            if one_run(correct, guesses, canaries, **size) > claim
        ]
        return float(binom.pmf(exposing, guesses, expit(epsilon)).sum())

    detectable = one_run_detectable(claim_epsilon=claim, guesses=guesses, canaries=canaries, **size)
    assert detectable is not None
    assert detectable > claim
    assert caught(detectable) == pytest.approx(0.8, abs=1e-9)


def test_nothing_is_detectable_beyond_the_largest_provable() -> None:
    size: dict[str, Any] = {"guesses": 20, "canaries": 100, "delta": 1e-5, "confidence": 0.95}
    highest = one_run(20, **size)
    assert one_run_detectable(claim_epsilon=highest + 0.01, **size) is None
    assert one_run_detectable(claim_epsilon=highest - 0.01, **size) is not None
    with pytest.raises(SettingsError, match="power"):
        one_run_detectable(claim_epsilon=1.0, power=0.01, **size)


def test_a_run_folder_resumes_and_jobs_do_not_matter(table: pd.DataFrame, tmp_path: Path) -> None:
    carry(resample)
    audit = spec(resample, table)

    def stop(progress: TrialProgress) -> None:
        if progress.role is Role.POSITIVE_CONTROL and progress.done == 1:
            raise KeyboardInterrupt

    with pytest.raises(InterruptedRunError):
        run_audit(audit, tmp_path / "one", jobs=1, on_progress=stop)
    seen: list[TrialProgress] = []
    resumed = run_audit(audit, tmp_path / "one", jobs=1, on_progress=seen.append)
    assert {progress.role for progress in seen} == {Role.ONE_RUN}
    whole = run_audit(audit, tmp_path / "two", jobs=2)
    assert replace(resumed, seconds=0.0) == replace(whole, seconds=0.0)
    fewer = spec(resample, table, canaries=80)
    with pytest.raises(RunFolderError, match="canaries is 100 there and 80 here"):
        run_audit(fewer, tmp_path / "one", jobs=1)


@pytest.mark.parametrize("canaries", [0, 19, 121, -20])
def test_impossible_numbers_of_canaries_are_refused(table: pd.DataFrame, canaries: int) -> None:
    with pytest.raises(SettingsError, match=r"`canaries` must be a number from 20 to half"):
        dpaudit.audit("null", table, one_run=True, canaries=canaries)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("sequential", True),
        ("multiplicity", "select"),
        ("threshold", "hold-out"),
        ("attacks", ("groundhog",)),
        ("target", 3),
        ("shadow_models", 100),
    ],
)
def test_options_of_shadow_models_are_refused_by_name(
    table: pd.DataFrame, option: str, value: Any
) -> None:
    with pytest.raises(SettingsError, match=f"leave out `{option}`, or leave out `one_run`"):
        dpaudit.audit("null", table, one_run=True, **{option: value})


def test_canaries_need_one_run(table: pd.DataFrame) -> None:
    with pytest.raises(SettingsError, match="`canaries` is for `one_run`"):
        dpaudit.audit("null", table, canaries=100)


def test_replace_one_is_refused(table: pd.DataFrame) -> None:
    with pytest.raises(ClaimError, match="replace-one"):
        dpaudit.audit("null", table, neighbours="replace-one", **ONE_RUN)


def test_the_command_line_runs_it_and_says_how_to_repeat_it(
    table: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table.to_csv("table.csv", index=False)
    words = ["audit", "null", "--data", "table.csv", "--one-run", "--canaries", "120"]
    words += ["--jobs", "1"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "one training: 1 of 1" in done.stderr
    assert done.stdout.splitlines()[-1].endswith("--one-run --canaries 120")
    refused = CliRunner().invoke(app, [*words, "--sequential", "--attack", "groundhog-naive"])
    assert refused.exit_code == 2
    assert "leave out --sequential, --attack" in refused.stderr
