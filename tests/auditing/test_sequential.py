"""Sequential audits, selection of an attack, and the hold-out, through whole audits."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpaudit
from dpaudit.auditing import sequential
from dpaudit.auditing.settings import AuditSettings, Multiplicity
from dpaudit.errors import SettingsError
from dpaudit.plugins.protocols import World

FAST: dict[str, Any] = {"attacks": ("groundhog-naive", "query-target"), "jobs": 2}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"age": rng.integers(20, 60, 40), "income": rng.normal(30, 5, 40)})
    table.loc[7] = [88, 99.0]
    return table


def test_a_gross_leak_stops_the_audit_early(table: pd.DataFrame, tmp_path: Path) -> None:
    result = dpaudit.audit(
        "copycat", table, sequential=True, shadow_models=400, out=tmp_path, **FAST
    )
    document = result.to_document()
    assert result.verdict is dpaudit.Verdict.VIOLATION
    assert document["sequential"] == {"pairs": 24, "cap": 200, "stopped_early": True}
    assert document["shadow_models"] == {"in": 24, "out": 24}
    assert document["bounds"]["exact"] is None, "a fixed-n bound after stopping would be no bound"
    assert document["bounds"]["sequential"] == document["proved"] > 1.0
    assert "proved after 24 of at most 200 pairs" in str(result)
    assert "sequential" in (tmp_path / "report.html").read_text()


def test_a_sequential_audit_resumes_with_the_same_numbers(
    table: pd.DataFrame, tmp_path: Path
) -> None:
    options = {**FAST, "sequential": True, "shadow_models": 60}
    first = dpaudit.audit("null", table, out=tmp_path, **options)
    again = dpaudit.audit("null", table, out=tmp_path, **options)
    alone = dpaudit.audit("null", table, **{**options, "jobs": 1})
    assert replace(first, seconds=0.0) == replace(again, seconds=0.0)
    assert replace(first, seconds=0.0) == replace(alone, seconds=0.0)


def test_at_the_cap_both_bounds_are_taken_with_half_of_the_error_each(table: pd.DataFrame) -> None:
    result = dpaudit.audit("null", table, sequential=True, shadow_models=60, **FAST)
    assert result.verdict is dpaudit.Verdict.CONSISTENT
    assert result.to_document()["sequential"] == {"pairs": 30, "cap": 30, "stopped_early": False}
    bounds = result.bounds
    assert (bounds["exact"], bounds["clopper_pearson"], bounds["sequential"]) == (0.0, 0.0, 0.0)
    settings = AuditSettings(shadow_models=60, sequential=True)
    assert math.isclose(settings.attack_confidence, 1 - 0.05 / 4)


@pytest.mark.parametrize(("generator", "bets"), [("null", False), ("copycat", True)])
def test_an_attack_bets_once_it_has_learnt(
    generator: str, bets: bool, table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    guessed = []
    guess = sequential._Stream.guess

    def seen(stream: sequential._Stream, *given: Any) -> None:
        guessed.append(given)
        guess(stream, *given)

    monkeypatch.setattr(sequential._Stream, "guess", seen)
    dpaudit.audit(generator, table, sequential=True, shadow_models=60, **FAST)
    assert bool(guessed) is bets


def test_failed_trials_never_help_a_sequential_attack(table: pd.DataFrame) -> None:
    def fails_without_the_target(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
        if data["age"].max() < 88 and seed % 4:
            raise RuntimeError("no")
        rng = np.random.default_rng(seed)
        rows = {"age": rng.integers(20, 60, n_rows), "income": rng.normal(30, 5, n_rows)}
        return pd.DataFrame(rows)

    result = dpaudit.audit(
        fails_without_the_target, table, epsilon=1.0, sequential=True, shadow_models=100, **FAST
    )
    assert result.failures[World.OUT] > 20
    assert result.verdict is dpaudit.Verdict.INCONCLUSIVE
    assert result.epsilon_lower_bound == 0


def test_one_attack_can_be_selected_and_nothing_is_corrected(table: pd.DataFrame) -> None:
    result = dpaudit.audit("copycat", table, multiplicity="select", shadow_models=60, **FAST)
    document = result.to_document()
    assert document["multiplicity"] == {"rule": "select", "hypotheses": 1}
    assert len(document["attacks"]) == 1
    both = dpaudit.audit("copycat", table, shadow_models=60, **FAST)
    assert both.to_document()["multiplicity"] == {"rule": "bonferroni", "hypotheses": 2}
    assert result.epsilon_lower_bound > both.epsilon_lower_bound


def test_a_hold_out_scores_less_than_cross_validation(table: pd.DataFrame) -> None:
    result = dpaudit.audit("copycat", table, threshold="hold-out", shadow_models=60, **FAST)
    assert result.counts.n_in == 12
    assert result.threshold_rule == "hold-out"
    assert "--threshold hold-out" in result.reproduce


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": "holdout"}, "did you mean 'hold-out'"),
        ({"threshold": "best-on-scored"}, "none of cross-validated, hold-out"),
        ({"multiplicity": "none"}, "none of bonferroni, select"),
    ],
)
def test_rules_that_do_not_exist_are_refused(
    table: pd.DataFrame, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        dpaudit.audit("null", table, **FAST, **options)


def test_hypotheses_are_counted_in_one_place() -> None:
    assert AuditSettings(attacks=("a", "b", "c")).hypotheses.count == 3
    assert (
        AuditSettings(attacks=("a", "b", "c"), multiplicity=Multiplicity.SELECT).hypotheses.count
        == 1
    )
