"""Audits of many records per shadow model, on generators with known answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import dpaudit
from dpaudit.auditing.entry import audit_by_keywords
from dpaudit.auditing.games import audit_settings
from dpaudit.auditing.records.attack import evaluate_records, fit_records
from dpaudit.auditing.records.game import RecordsSpec, build_records
from dpaudit.bounds import fair_coin
from dpaudit.cli.main import app
from dpaudit.errors import (
    ClaimError,
    GeneratorError,
    InputError,
    InterruptedRunError,
    SettingsError,
)
from dpaudit.game.flight import TrialProgress
from dpaudit.game.trial import Role
from dpaudit.game.worlds import choose_records, draw_included
from dpaudit.model.tables import load
from dpaudit.plugins.named import NamedAttack
from dpaudit.plugins.protocols import World
from dpaudit.report.render import render_html, render_markdown
from dpaudit.results.result import result_schema

RECORDS = 16
FEW: dict[str, Any] = {
    "records": RECORDS,
    "shadow_models": 8,
    "attacks": ["query-target,classifier=logistic-regression"],
    "delta": 1e-5,
    "epsilon": 1.0,
    "jobs": 1,
}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 60, 120),
            "income": rng.normal(30, 5, 120),
            "city": rng.choice(["Bern", "Ulm", "Graz"], 120),
        }
    )


def release(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
    """Copies every record that it was trained with."""
    order = np.random.default_rng(seed).permutation(len(data))
    return data.iloc[[order[n % len(order)] for n in range(n_rows)]]


def broken(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
    raise RuntimeError("out of luck")


def picky(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
    """Fails now and then, whatever its data."""
    if seed % 4 == 0:
        raise RuntimeError("not today")
    return release(data, n_rows, seed)


def spec(generator: object, table: pd.DataFrame, **changes: Any) -> RecordsSpec:
    given = {key: value for key, value in FEW.items() if key != "jobs"} | changes
    return build_records(generator, load(table, None), audit_settings(**given))


def test_copied_records_are_proved_with_eight_trainings(
    table: pd.DataFrame, tmp_path: Path
) -> None:
    result = audit_by_keywords(release, table, out=tmp_path, **FEW)
    assert result.verdict is dpaudit.Verdict.VIOLATION
    assert result.epsilon_lower_bound > 2.5
    assert result.controls is not None
    assert result.controls.null.bound == 0
    document = result.to_document()
    jsonschema.validate(document, result_schema())
    found = document["game"]
    assert found["scored"] == 4
    assert len(found["each"]) == RECORDS
    assert all(one["correct"] <= one["guesses"] <= 4 for one in found["each"])
    guesses = document["attacks"][0]["guesses"]
    assert sum(guesses["made"]) == sum(one["guesses"] for one in found["each"])
    assert len(guesses["by_training"]) == 4
    assert guesses["trials"] == 4 * RECORDS
    assert document["proved"] == fair_coin(
        guesses["right"],
        guesses["made"],
        guesses["trials"],
        guesses["by_training"],
        delta=1e-5,
        confidence=0.95,
    )
    assert document["shadow_models"] == {"in": 0, "out": 8}
    assert "--records 16" in document["reproduce"]
    bounded = CliRunner().invoke(app, ["report", str(tmp_path), "--bounds", "--json"])
    rows = json.loads(bounded.stdout)["bounds"]
    assert [(row["method"], row["value"]) for row in rows] == [("fair_coin", document["proved"])]
    for text in (render_html(result), render_markdown(result)):
        assert "16 records" in text
    assert "16 records" in str(result)


@pytest.mark.ci
def test_a_generator_that_ignores_its_data_is_not_flagged(table: pd.DataFrame) -> None:
    result = audit_by_keywords("null", table, **{**FEW, "shadow_models": 20})
    assert result.epsilon_lower_bound < 0.5  # above 0 in one audit of twenty
    assert result.verdict is dpaudit.Verdict.CONSISTENT
    assert result.controls is not None
    assert result.controls.null.bound == 0
    assert {check.name for check in result.checks if check.passed} >= {
        "failed shadow models",
        "different seeds",
        "repeated tables",
        "same seed, same table",
        "order of shadow models",
    }


@pytest.mark.ci
def test_failed_models_are_coins_without_a_guess(table: pd.DataFrame) -> None:
    result = audit_by_keywords(picky, table, **{**FEW, "shadow_models": 20})
    failed = result.failures[World.OUT]
    assert failed > 0
    assert result.verdict is dpaudit.Verdict.VIOLATION
    guesses = result.attacks[0].guesses
    assert guesses is not None
    assert guesses.trials == 12 * RECORDS
    [check] = [one for one in result.checks if one.name == "failed shadow models"]
    assert not check.passed
    assert "nothing is guessed" in check.detail


def test_where_every_model_fails_there_is_no_audit(table: pd.DataFrame) -> None:
    with pytest.raises(GeneratorError, match="no synthetic table in 8 trainings"):
        audit_by_keywords(broken, table, **FEW)


@pytest.mark.ci
def test_an_interrupted_audit_resumes_to_the_same_result(
    table: pd.DataFrame, tmp_path: Path
) -> None:
    def stop(progress: TrialProgress) -> None:
        if progress.role is Role.AUDIT and progress.done == 3:
            raise KeyboardInterrupt

    with pytest.raises(InterruptedRunError):
        audit_by_keywords(release, table, out=tmp_path / "a", progress=stop, **FEW)
    resumed = audit_by_keywords(release, table, out=tmp_path / "a", **FEW)
    assert resumed.attacks == audit_by_keywords(release, table, **FEW).attacks


def test_coins_and_halves_are_drawn_beforehand(table: pd.DataFrame) -> None:
    audit = spec("null", table, shadow_models=100)
    game = audit.game(Role.AUDIT, audit.settings)
    fitted = game.included[:40]
    assert (fitted.sum(axis=0) == 20).all()
    assert (fitted[0] == fitted[1]).all()
    assert 0.4 < game.included[40:].mean() < 0.6
    again = audit.game(Role.AUDIT, audit.settings)
    np.testing.assert_array_equal(game.included, again.included)
    control = audit.game(Role.NULL_CONTROL, audit.settings)
    assert (control.included != game.included).any()
    left_out = game.dropped_rows(World.OUT, 50)
    assert len(game.table(World.OUT, 50)) == len(table) - len(left_out)
    assert set(left_out) <= set(audit.positions)


def test_coins_are_fair_and_independent() -> None:
    coins = draw_included(4004, fitted=4, records=6, rng=np.random.default_rng(2))[4:]
    assert np.abs(coins.mean(axis=0) - 0.5).max() < 0.03
    assert np.abs(np.corrcoef(coins.T) - np.eye(6)).max() < 0.06


def test_records_are_the_farthest_without_a_copy(table: pd.DataFrame) -> None:
    doubled = pd.concat([table, table.iloc[:30]], ignore_index=True)
    loaded = load(doubled, None)
    found = choose_records(loaded.data, loaded.schema, 8)
    assert len(set(found)) == 8
    assert all(30 <= row < 120 for [row] in found)
    with pytest.raises(SettingsError, match="only 90 records"):
        choose_records(loaded.data, loaded.schema, 91)


class ByMean:
    """An attack whose score is the sum of the features."""

    def check(self, game: object) -> None: ...

    def feature_names(self, game: object) -> tuple[Any, ...]:
        return ()

    def features(self, table: object, game: object) -> np.ndarray:
        return np.zeros(1)

    def fit(self, features: np.ndarray, member: np.ndarray, *, seed: int) -> Any:
        direction = features[member].mean(axis=0) - features[~member].mean(axis=0)
        return lambda rows: rows @ direction


def test_features_of_the_whole_table_are_learnt_for_each_record_alone() -> None:
    """Record j shows in feature j of the table, whichever record is the target."""
    rng = np.random.default_rng(4)
    included = draw_included(160, fitted=160, records=4, rng=rng)

    def features(coins: np.ndarray) -> np.ndarray:
        whole = rng.normal(size=coins.shape) + 5.0 * coins
        return np.repeat(whole[:, None, :], 4, axis=1)

    level: dict[str, Any] = {"delta": 1e-5, "confidence": 0.95}
    attack = NamedAttack("by mean", ByMean())  # type: ignore[arg-type]
    found = fit_records(attack, features(included), included, trainings=60, rng=rng, **level)
    coins = rng.random((60, 4)) < 0.5
    result = evaluate_records(found, features(coins), coins, failed=0, **level)
    assert result.auc > 0.98
    assert result.proved > 2.5


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"sequential": True}, "`sequential`"),
        ({"threshold": "hold-out"}, "`threshold`"),
        ({"target": "row:3"}, "`target`"),
        ({"target": "vulnerable"}, "`target`"),
        ({"one_run": True}, "leave out `one_run`, or leave out `records`"),
        ({"shadow_models": 6}, "from 8 to 100,000"),
        ({"records": 0}, "`records` must be a whole number from 2"),
        ({"records": 2.5}, "`records` must be a whole number"),
    ],
)
def test_contradictions_are_refused(changes: dict[str, Any], says: str) -> None:
    given = {key: value for key, value in FEW.items() if key != "jobs"} | changes
    if "one_run" in changes:
        given = {"one_run": True, "records": 4}
    with pytest.raises(InputError, match=says):
        audit_settings(**given)


def test_what_the_table_or_the_claim_cannot_bear_is_refused(table: pd.DataFrame) -> None:
    with pytest.raises(InputError, match="says nothing about replace-one"):
        spec("null", table, neighbours="replace-one")
    with pytest.raises(SettingsError, match="a quarter of the table's 120 rows, got 31"):
        spec("null", table, records=31)
    with pytest.raises(SettingsError, match="takes one target"):
        spec("copycat", table)
    replacing = dpaudit.PrivacyClaim(
        epsilon=1.0, delta=0.0, neighbours=dpaudit.Neighbours.REPLACE_ONE
    )

    class Claims:
        claim = replacing

        def fit(self, data: pd.DataFrame, *, seed: int | None) -> object:
            return self

        def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
            return table.head(n)

    with pytest.raises(ClaimError, match="replace-one"):
        spec(Claims(), table, epsilon=None, delta=None)
