"""A result as tables for pandas, and in a notebook."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from dpaudit.model.claim import NoClaim
from dpaudit.plugins.protocols import World
from dpaudit.results.record import AuditRecord
from dpaudit.results.result import AuditResult
from dpaudit.results.verdict import Verdict

Make = Callable[..., AuditRecord]


@pytest.fixture
def result(record_of: Make) -> AuditResult:
    return AuditResult.of(record_of(), folder=Path("runs/<b>"))


def test_scores_are_a_row_for_each_trial(result: AuditResult) -> None:
    frame = result.scores_frame
    assert list(frame.columns) == ["world", "score"]
    for world in World:
        assert tuple(frame[frame.world == world.value].score) == result.scores[world]


def test_features_and_attacks_are_those_of_the_report(result: AuditResult) -> None:
    features = result.features_frame
    assert [tuple(row) for row in features[["column", "feature"]].to_numpy()] == [
        (leak.column, leak.feature) for leak in result.leaks
    ]
    attacks = result.attacks_frame.set_index("attack")
    assert list(attacks.index) == [one.name for one in result.attacks]
    deciding = attacks.loc[result.attack]
    assert deciding["exact"] == deciding["bound"] == result.proved
    assert deciding["rule"] == "exact"
    assert set(attacks.columns) >= set(result.bounds or ())
    assert result.counts is not None
    assert deciding["n_in"] == result.counts.n_in


def test_what_never_ran_has_no_rows_but_columns(never_run: AuditRecord) -> None:
    empty = AuditResult.of(never_run, folder=None)
    assert empty.scores_frame.empty
    assert empty.scores_frame.score.dtype == float
    assert list(empty.features_frame.columns) == ["column", "feature", "importance", "separation"]
    assert empty.attacks_frame.empty
    assert empty.attacks_frame.bound.dtype == float


def test_a_notebook_shows_the_head_of_the_report_and_no_foreign_markup(
    result: AuditResult, record_of: Make
) -> None:
    shown = result._repr_html_()
    assert shown.startswith("<div ")
    assert "<strong>VIOLATION</strong>" in shown
    assert "change the odds" in shown
    assert "runs/&lt;b&gt;/report.html" in shown
    foreign = record_of(reasons=["<script>alert(1)</script>\x1b[2J"])
    hostile = AuditResult.of(foreign, folder=None)._repr_html_()
    assert "<script" not in hostile
    assert "\x1b" not in hostile
    assert "Report" not in hostile


def test_a_notebook_says_a_measured_bound_in_headline_and_sentence_only(record_of: Make) -> None:
    measured = replace(
        record_of(reasons=["the true epsilon is at least 3.21"]),
        verdict=Verdict.MEASURED,
        claim=NoClaim(delta=1e-5),
    )
    shown = AuditResult.of(measured, folder=None)._repr_html_()
    assert shown.count("3.21") == 2
    assert "<ul>" not in shown
