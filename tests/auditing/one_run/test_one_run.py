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
from typer.testing import CliRunner

import dpaudit
from dpaudit.auditing.entry import audit_by_keywords, run_audit
from dpaudit.auditing.games import audit_settings
from dpaudit.auditing.one_run.attack import (
    ATTACKS,
    CanaryMarginals,
    CanaryMatches,
    ClosestRecord,
    extra_variance,
    guess,
    in_then_out,
    interference,
    surest_first,
)
from dpaudit.auditing.one_run.game import OneRunSpec, build_one_run
from dpaudit.auditing.settings import CANARY_ATTACKS, PROBES_SHARE
from dpaudit.bounds import EpsilonGuarantee, one_run_in_turn
from dpaudit.cli.main import app
from dpaudit.errors import (
    ClaimError,
    GeneratorError,
    InterruptedRunError,
    RunFolderError,
    SettingsError,
)
from dpaudit.game.flight import TrialProgress
from dpaudit.game.trial import Role
from dpaudit.game.worlds import choose_canaries
from dpaudit.model.column import Column, Kind
from dpaudit.model.encoding import encode
from dpaudit.model.schema import Schema
from dpaudit.model.tables import load
from dpaudit.plugins.protocols import GameView, World
from dpaudit.plugins.registry import carry
from dpaudit.report.render import render_html, render_markdown
from dpaudit.results.outcomes import OneRunOutcome
from dpaudit.results.result import result_schema
from dpaudit_generators.toys import LaplaceHistogram

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
    return build_one_run(generator, load(table, None), audit_settings(**given))


def test_null_is_consistent_with_bound_0_where_there_are_enough_canaries(
    table: pd.DataFrame,
) -> None:
    fewer = audit_by_keywords("null", table, **{**ONE_RUN, "canaries": 20})
    assert fewer.verdict is dpaudit.Verdict.INCONCLUSIVE
    result = audit_by_keywords("null", table, **ONE_RUN)
    assert result.verdict is dpaudit.Verdict.CONSISTENT
    assert result.epsilon_lower_bound == 0
    assert result.controls.null.bound == 0
    result.assert_no_violation()


def test_resampling_is_a_violation_with_the_bound_of_its_guesses(
    table: pd.DataFrame, tmp_path: Path
) -> None:
    result = audit_by_keywords(resample, table, epsilon=1, delta=1e-5, out=tmp_path, **ONE_RUN)
    document = result.to_document()
    jsonschema.validate(document, result_schema())
    assert result.verdict is dpaudit.Verdict.VIOLATION
    found = document["game"]
    each = {attack["name"]: attack for attack in found["attacks"]}
    assert list(each) == list(CANARY_ATTACKS)
    for attack in each.values():
        confidence = 1 - 0.05 * (1 - PROBES_SHARE) / len(CANARY_ATTACKS)
        bound = one_run_in_turn(attack["right"], delta=1e-5, confidence=confidence)
        assert attack["bound"] == bound <= document["proved"]
    assert document["proved"] == each[document["attack"]]["bound"] == result.epsilon_lower_bound
    assert found["correct"] == sum(each[document["attack"]]["right"][: found["guesses"]])
    assert document["bounds"]["one_run_in_turn"] == document["proved"]
    assert document["bounds"]["one_run"] is None
    assert 0 <= found["interference"] <= 1
    assert len(document["scores"]["in"]) == found["included"]
    assert len(document["scores"]["out"]) == CANARIES - found["included"]
    for text in (render_html(result), render_markdown(result)):
        assert "One training, many canaries" in text
        assert "assumes a Gaussian trade-off curve" in text
        assert "ROC curve" not in text
    chosen = f"best of {len(CANARY_ATTACKS)} attacks on the same canaries, so optimistic"
    assert f"100 canaries in one training; {chosen}" in " ".join(str(result).split())
    assert f"0.5 is chance; {chosen}" in render_markdown(result)
    assert document["reproduce"].endswith("--one-run")

    bounded = CliRunner().invoke(app, ["report", str(tmp_path), "--bounds", "--json"])
    rows = json.loads(bounded.stdout)["bounds"]
    assert {row["attack"]: row["value"] for row in rows} == {
        name: attack["bound"] for name, attack in each.items()
    }
    assert all(row["method"] == "one_run_in_turn" and row["reason"] is None for row in rows)
    words = ["report", str(tmp_path), "--bounds", "--json", "--assume", "gaussian"]
    *_, estimate = json.loads(CliRunner().invoke(app, words).stdout)["bounds"]
    assert (estimate["method"], estimate["reason"] is None) == ("one_run_gaussian", False)


def test_too_few_canaries_for_the_claim_are_inconclusive(table: pd.DataFrame) -> None:
    options = {**ONE_RUN, "canaries": 20}
    result = audit_by_keywords("null", table, epsilon=3, **options)
    assert result.verdict is dpaudit.Verdict.INCONCLUSIVE
    assert "audit with more canaries" in result.reasons[0]


def test_a_failed_training_is_refused_with_its_reason(table: pd.DataFrame) -> None:
    with pytest.raises(GeneratorError, match="no synthetic table in 1 training: RuntimeError"):
        audit_by_keywords(broken, table, epsilon=1, **ONE_RUN)


def test_a_failed_control_stops_before_the_training(table: pd.DataFrame) -> None:
    result = audit_by_keywords("null", table, rows=5, **ONE_RUN)
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
    scores = rng.normal(size=(len(ATTACKS), 40))
    coins = rng.integers(0, 2, 40).astype(bool)
    for one, other in zip(guess(scores.ravel(), coins), guess(scores.ravel(), ~coins), strict=True):
        assert np.array_equal(one.right, ~other.right)


def test_the_better_half_is_guessed_in_first_and_the_middle_last() -> None:
    order, inside = in_then_out(np.array([0.1, 0.9, -0.5, 0.3, 0.2]))
    assert order.tolist() == [1, 3, 2, 0, 4]
    assert inside.tolist() == [True, True, False, False, True]


@pytest.mark.parametrize("seen", [1, 4, 6, 9])
def test_equal_scores_are_guessed_alike(seen: int) -> None:
    order, inside = in_then_out(np.repeat([2.0, 1.0], [seen, 10 - seen]))
    assert sorted(order.tolist()) == list(range(10))
    assert (inside == (order < seen)).all()


def test_the_surest_odds_are_guessed_first() -> None:
    order, inside = surest_first(np.array([0.1, -3.0, 2.0, 0.0]))
    assert order.tolist() == [1, 2, 0, 3]
    assert inside.tolist() == [False, True, True, False]


# Of 5 % of the audits more are flagged with probability 0.05.
@pytest.mark.parametrize(
    ("audits", "most"), [(40, 4), pytest.param(200, 15, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(
    "epsilon", [0.5, *(pytest.param(e, marks=pytest.mark.ci) for e in (1.0, 2.0))]
)
def test_randomised_response_per_canary_is_not_flagged(
    epsilon: float, audits: int, most: int
) -> None:
    # Every canary answers its coin truthfully with probability e^ε/(1 + e^ε): exactly ε-DP.
    rng = np.random.default_rng(5)
    flagged = 0
    for _ in range(audits):
        coins = rng.integers(0, 2, CANARIES).astype(bool)
        truthful = rng.random(CANARIES) < expit(epsilon)
        answers = np.where(truthful, coins, ~coins) + rng.uniform(0, 0.5, CANARIES)
        scores = np.concatenate([answers, answers + 1.0, answers - 0.75])
        bounds = [
            of.bound(EpsilonGuarantee(1e-5), confidence=1 - 0.05 / 3) for of in guess(scores, coins)
        ]
        flagged += max(bounds) > epsilon
    assert flagged <= most


TOWNS = Column(name="town", kind=Kind.CATEGORICAL, categories=tuple(range(150)))
SPACE = Column(name="x", kind=Kind.CONTINUOUS, lower=0.0, upper=1.0)
TOWN_SCHEMA = Schema(columns=(TOWNS, SPACE, replace(SPACE, name="y")))


@pytest.fixture(scope="module")
def towns() -> pd.DataFrame:
    rng = np.random.default_rng(2)
    town = np.arange(300) % 150  # two records each: that a town is there says nothing
    return pd.DataFrame({"town": town, "x": rng.random(300), "y": rng.random(300)})


def fixed_noise(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
    """Counts with noise for epsilon 10, whatever is claimed; other columns are uniform."""
    generator = LaplaceHistogram(schema=TOWN_SCHEMA, column="town", epsilon=10.0)
    return generator.fit(data, seed=seed).sample(n_rows, seed=seed)


def test_noisy_counts_are_proved_where_no_row_is_near(towns: pd.DataFrame) -> None:
    options = {**ONE_RUN, "epsilon": 1, "schema": TOWN_SCHEMA, "rows": 3000}
    result = audit_by_keywords(fixed_noise, towns, **options)
    assert result.verdict is dpaudit.Verdict.VIOLATION
    assert result.attack == "canary-marginals"
    assert isinstance(result.game, OneRunOutcome)
    nearest = next(one for one in result.game.attacks if one.name == "closest-record")
    assert nearest.bound < 1


def test_residuals_of_marginals_tell_the_coins() -> None:
    # Sixty known records in one cell; each canary alone in its own: exact counts give all away.
    column = Column(name="id", kind=Kind.CATEGORICAL, categories=tuple(range(21)))
    coins = np.arange(20) % 3 > 0
    view = GameView(
        schema=Schema(columns=(column,)),
        others=pd.DataFrame({"id": [0] * 60}),
        target=pd.DataFrame({"id": np.arange(1, 21)}),
        n_rows=60 + int(coins.sum()),
        neighbours=dpaudit.Neighbours.ADD_REMOVE,
    )
    rows = pd.DataFrame({"id": [*[0] * 60, *(np.arange(1, 21)[coins])]})
    assert np.array_equal(CanaryMarginals().features(rows, view) > 0, coins)
    assert interference(view) == pytest.approx(0, abs=1e-9)
    crowded = replace(view, target=pd.DataFrame({"id": [1] * 20}))
    # One count of all 20: the other 19 coins vary by 19/4, drawing 73 rows for 70 by 70/73 * 10.
    lost = 4.75 / (4.75 + 10 * 70 / 73)
    assert interference(crowded) == pytest.approx(lost, rel=1e-6)


def test_extra_variance_makes_the_standardised_residuals_one() -> None:
    rng = np.random.default_rng(0)
    variance = rng.uniform(0.5, 5.0, 4000)
    residual = rng.normal(size=4000) * np.sqrt(variance + 3.0)
    assert extra_variance(residual, variance) == pytest.approx(3.0, rel=0.1)
    assert extra_variance(residual / 10.0, variance) == 0.0


def test_a_match_counts_what_only_the_canary_explains() -> None:
    city = Column(name="city", kind=Kind.CATEGORICAL, categories=("Bern", "Ulm"))
    view = GameView(
        schema=Schema(columns=(city, SPACE)),
        others=pd.DataFrame({"city": ["Bern"] * 7, "x": np.linspace(0, 1, 7)}),
        target=pd.DataFrame({"city": ["Ulm", "Bern"], "x": [0.5, 0.25]}),
        n_rows=2,
        neighbours=dpaudit.Neighbours.ADD_REMOVE,
    )
    rows = pd.DataFrame({"city": ["Ulm", "Ulm"], "x": [0.503, 0.9]})
    # The first canary whole: Ulm (1 of 8), and a mark (2 of 8) that a known record is within, which
    # explains that mark; of the second nothing, and known records explain Bern (8 of 8).
    assert CanaryMatches().features(rows, view) == pytest.approx([np.log(8.0), 0.0])


def test_scores_are_finite_for_absurd_tables(table: pd.DataFrame) -> None:
    game = spec("null", table).game.view
    absurd = game.others.assign(income=1e308)
    for attack in ATTACKS:
        assert isinstance(attack.scorer, ClosestRecord | CanaryMatches | CanaryMarginals)
        assert np.isfinite(attack.scorer.features(absurd, game)).all()


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_run_folder_resumes_and_jobs_do_not_matter(
    table: pd.DataFrame, tmp_path: Path, jobs: int
) -> None:
    carry(resample)
    audit = spec(resample, table)

    def stop(progress: TrialProgress) -> None:
        if progress.role is Role.NULL_CONTROL and progress.done == 1:
            raise KeyboardInterrupt

    with pytest.raises(InterruptedRunError):
        run_audit(audit, tmp_path / "one", jobs=1, on_progress=stop)
    seen: list[TrialProgress] = []
    resumed = run_audit(audit, tmp_path / "one", jobs=1, on_progress=seen.append)
    assert {progress.role for progress in seen} == {Role.POSITIVE_CONTROL}
    whole = run_audit(audit, tmp_path / "two", jobs=jobs)
    assert replace(resumed, seconds=0.0) == replace(whole, seconds=0.0)
    fewer = spec(resample, table, canaries=80)
    with pytest.raises(RunFolderError, match="canaries is 100 there and 80 here"):
        run_audit(fewer, tmp_path / "one", jobs=1)


@pytest.mark.parametrize("canaries", [0, 19, 121, -20])
def test_impossible_numbers_of_canaries_are_refused(table: pd.DataFrame, canaries: int) -> None:
    with pytest.raises(SettingsError, match=r"`canaries` must be a (whole )?number from 20"):
        audit_by_keywords("null", table, one_run=True, canaries=canaries)


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
        audit_by_keywords("null", table, one_run=True, **{option: value})


def test_canaries_need_one_run(table: pd.DataFrame) -> None:
    with pytest.raises(SettingsError, match="`canaries` is for `one_run`"):
        audit_by_keywords("null", table, canaries=100)


def test_replace_one_is_refused(table: pd.DataFrame) -> None:
    with pytest.raises(ClaimError, match="replace-one"):
        audit_by_keywords("null", table, neighbours="replace-one", **ONE_RUN)


@pytest.mark.ci
def test_the_command_line_runs_it_and_says_how_to_repeat_it(
    table: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table.to_csv("table.csv", index=False)
    words = ["audit", "null", "--data", "table.csv", "--one-run", "--set", "canaries=120"]
    words += ["--jobs", "1"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "one training: 1 of 1" in done.stderr
    assert done.stdout.splitlines()[-1].endswith("--one-run --set canaries=120")
    refused = CliRunner().invoke(app, [*words, "--sequential", "--attack", "groundhog-naive"])
    assert refused.exit_code == 2
    assert "leave out --attack, --sequential" in refused.stderr
