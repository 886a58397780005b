"""Sequential audits, selection of an attack, and the hold-out, through whole audits."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpaudit
from dpaudit.auditing.entry import audit_by_keywords
from dpaudit.auditing.games import audit_settings
from dpaudit.bounds import coin_bound
from dpaudit.errors import SettingsError
from dpaudit.model.choices import Multiplicity
from dpaudit.plugins.protocols import World
from dpaudit.report.render import render_markdown
from dpaudit.results.document import from_document
from dpaudit.results.outcomes import SequentialOutcome, TwoWorldsOutcome
from dpaudit.results.record import AuditRecord
from samples import QUICK_ATTACKS

FAST: dict[str, Any] = {"attacks": QUICK_ATTACKS, "jobs": 1}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"age": rng.integers(20, 60, 40), "income": rng.normal(30, 5, 40)})
    table.loc[7] = [88, 99.0]
    return table


@pytest.mark.ci
def test_a_gross_leak_stops_the_audit_early(table: pd.DataFrame, tmp_path: Path) -> None:
    result = audit_by_keywords(
        "copycat", table, sequential=True, shadow_models=400, probe=False, out=tmp_path, **FAST
    )
    document = result.to_document()
    assert result.verdict is dpaudit.Verdict.VIOLATION
    assert document["game"]["sequential"] == {"trials": 32, "cap": 400, "stopped_early": True}
    assert sum(document["shadow_models"].values()) == 32
    for fixed in ("exact", "fair_coin"):
        assert document["bounds"][fixed] is None, "a fixed-n bound after stopping is no bound"
    assert document["bounds"]["sequential"] == document["proved"] > 1.0
    said = (
        "stopped early, after 32 of at most 400 shadow models; attacks were fitted on the first 16"
    )
    assert said in " ".join(str(result).split())
    assert "sequential" in (tmp_path / "report.html").read_text()


def test_a_sequential_audit_bets_with_a_threshold_from_a_hold_out(table: pd.DataFrame) -> None:
    settings = {**FAST, "sequential": True, "shadow_models": 100, "probe": False, "seed": 2}
    result = audit_by_keywords("copycat", table, threshold="hold-out", **settings)
    assert result.verdict is dpaudit.Verdict.VIOLATION
    assert result.bounds["sequential"] == result.proved > 1.0


@pytest.mark.ci
@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.ci)])
def test_a_sequential_audit_resumes_with_the_same_numbers(
    table: pd.DataFrame, tmp_path: Path, jobs: int
) -> None:
    options = {**FAST, "sequential": True, "shadow_models": 36}
    first = audit_by_keywords("null", table, out=tmp_path, **options)
    again = audit_by_keywords("null", table, out=tmp_path, **options)
    together = audit_by_keywords("null", table, **{**options, "jobs": jobs})
    assert replace(first, seconds=0.0) == replace(again, seconds=0.0)
    assert replace(first, seconds=0.0) == replace(together, seconds=0.0)


@pytest.mark.ci
def test_at_the_cap_both_bounds_are_taken_with_half_of_the_error_each(table: pd.DataFrame) -> None:
    result = audit_by_keywords("null", table, sequential=True, shadow_models=60, seed=1, **FAST)
    assert result.verdict is dpaudit.Verdict.CONSISTENT
    assert result.to_document()["game"] == {
        "name": "two worlds",
        "sequential": {"trials": 60, "cap": 60, "stopped_early": False},
    }
    assert result.proved == 0.0 == result.bounds["sequential"]
    assert 0.0 in (result.bounds["exact"], result.bounds["fair_coin"])
    settings = audit_settings(shadow_models=60, sequential=True, attacks=QUICK_ATTACKS)
    assert math.isclose(settings.attack_confidence, 1 - 0.05 / 2)


@pytest.mark.ci
def test_one_attack_can_be_selected_and_nothing_is_corrected(table: pd.DataFrame) -> None:
    result = audit_by_keywords("copycat", table, shadow_models=40, **FAST)
    document = result.to_document()
    names = list(QUICK_ATTACKS)
    assert document["multiplicity"] == {"rule": "select", "hypotheses": 1, "attacks": names}
    assert len(document["attacks"]) == 1
    every = {"multiplicity": "bonferroni", "shadow_models": 40, **FAST}
    both = audit_by_keywords("copycat", table, **every)
    assert both.to_document()["multiplicity"] == {"rule": "bonferroni", "hypotheses": 2}
    assert result.epsilon_lower_bound > both.epsilon_lower_bound


def _copies_target(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
    """Records around 30 and, where the target is there, copies of it."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"age": rng.integers(20, 60, n_rows), "income": rng.normal(30, 5, n_rows)})
    if data["age"].max() == 88:
        table.loc[: n_rows // 2] = [88, 99.0]
    return table


class _Means:
    """Means of some columns; scores by the last, and by nothing unless given so many trials.

    Their signs are random, so that no weighted sum of them says anything.
    """

    def __init__(self, *columns: str, least: int = 0, most: int = 1000) -> None:
        self.columns, self.least, self.most = columns, least, most

    def check(self, game: Any) -> None: ...

    def feature_names(self, game: Any) -> tuple[dpaudit.FeatureName, ...]:
        return tuple(dpaudit.FeatureName(column, "mean") for column in self.columns)

    def features(self, table: pd.DataFrame, game: Any) -> Any:
        sign = 1.0 if table["income"].iloc[-1] % 0.002 < 0.001 else -1.0
        return sign * table[list(self.columns)].mean().to_numpy()

    def fit(self, features: Any, member: Any, *, seed: int) -> Any:
        knows = self.least <= len(features) <= self.most
        return lambda rows: np.abs(rows[:, -1]) if knows else np.abs(rows[:, -1]) % 1e-3


class _First(_Means): ...


class _Second(_Means): ...


def _switching() -> dict[str, Any]:
    """Two attacks with features of different lengths: the first knows until it is given 48 trials.

    Cross-validation fits on four fifths of them, the last fit on all.
    """
    attacks = (_First("age", most=48), _Second("age", "income", least=49))
    return {"attacks": attacks, "sequential": True, "multiplicity": "select", "jobs": 1}


def sequential_of(result: AuditRecord) -> SequentialOutcome:
    assert isinstance(result.game, TwoWorldsOutcome)
    assert result.game.sequential is not None
    return result.game.sequential


@pytest.mark.ci
def test_the_selected_attack_may_change_on_the_way(table: pd.DataFrame) -> None:
    result = audit_by_keywords(
        _copies_target, table, epsilon=3.5, shadow_models=400, **_switching()
    )
    assert result.verdict is dpaudit.Verdict.VIOLATION
    sequential = sequential_of(result)
    assert sequential.stopped_early
    assert sequential.guessed_by is not None
    (first, early), (second, late) = sequential.guessed_by.items()
    assert (first.endswith("_First"), second.endswith("_Second")) == (True, True)
    assert early == 48  # from trial 16 to 64, fitted on 48 at most
    assert 16 + early + late == sequential.trials
    # Errors, scores and leaks are of the attack that is named; its bound is that of all bets.
    assert result.attack == second
    assert result.counts.n_in + result.counts.n_out == late
    assert result.auc == 1.0
    assert len(result.scores[World.IN]) == result.counts.n_in
    assert {leak.column for leak in result.leaks} <= {"age", "income"}
    sure = np.full(early + late, 40.0)
    perfect = coin_bound(sure, sure > 0, delta=0.0, confidence=0.975)
    assert 3.5 < result.proved <= perfect
    assert "on 48 models" in render_markdown(result)
    again = from_document(AuditRecord, json.loads(result.to_json()))
    assert again.game == result.game


def test_at_the_cap_the_sequential_bound_is_that_of_all_selected(table: pd.DataFrame) -> None:
    result = audit_by_keywords(_copies_target, table, epsilon=3.5, shadow_models=80, **_switching())
    sequential = sequential_of(result)
    assert not sequential.stopped_early
    assert sequential.guessed_by is not None
    assert list(sequential.guessed_by.values()) == [48, 16]
    assert result.attack is not None
    assert result.attack.endswith("_First")  # selected on the fitting part, 32 trials
    assert result.bounds is not None
    assert 2.7 < result.bounds["sequential"] < 2.8  # of 64 bets, 48 of them by the first
    assert 2.0 < result.bounds["fair_coin"] <= result.proved


def test_a_hold_out_scores_less_than_cross_validation(table: pd.DataFrame) -> None:
    result = audit_by_keywords("copycat", table, threshold="hold-out", shadow_models=60, **FAST)
    assert (result.counts.n_in, result.counts.n_out) == (12, 12)
    assert result.bounds["fair_coin"] is None
    assert result.threshold_rule == "hold-out"
    assert "--set threshold=hold-out" in result.reproduce


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": "holdout"}, "did you mean 'hold-out'"),
        ({"threshold": "best-on-scored"}, "is not one of cross-validated, hold-out"),
        ({"multiplicity": "none"}, "is not one of bonferroni, select"),
    ],
)
def test_rules_that_do_not_exist_are_refused(
    table: pd.DataFrame, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        audit_by_keywords("null", table, **FAST, **options)


def test_hypotheses_are_counted_in_one_place() -> None:
    assert audit_settings(attacks=("a", "b", "c")).game.hypotheses == 1
    every = audit_settings(attacks=("a", "b", "c"), multiplicity=Multiplicity.BONFERRONI)
    assert every.game.hypotheses == 3
