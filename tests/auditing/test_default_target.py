"""What the default target proves that the farthest record does not."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import numpy as np
import pandas as pd
import pytest

import dpaudit
from dpaudit.auditing.entry import audit_by_keywords
from dpaudit.game.target import Exposure, Fact
from dpaudit.plugins.registry import carry
from dpaudit.report.render import render_html, render_markdown
from dpaudit.results.result import result_schema

RICHEST, ODD = 11, 7
SCHEMA = dpaudit.Schema(
    columns=(
        dpaudit.Column(name="income", kind=dpaudit.Kind.INTEGER, lower=0, upper=200),
        dpaudit.Column(name="town", kind=dpaudit.Kind.CATEGORICAL, categories=("a", "b", "c")),
        dpaudit.Column(name="job", kind=dpaudit.Kind.CATEGORICAL, categories=("x", "y", "z")),
    )
)


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    """80 records; the farthest one has a rare pair of categories and no extreme."""
    rng = np.random.default_rng(1)
    town = rng.choice(["a", "b"], 80)
    table = pd.DataFrame(
        {"income": rng.integers(20, 60, 80), "town": town, "job": np.where(town == "a", "x", "y")}
    )
    table.loc[[3, 4], "income"] = 20  # two of the least, and two of each rare category
    table.loc[RICHEST, "income"] = 64
    table.loc[[ODD, 20], "town"] = "c"
    table.loc[[ODD, 21], "job"] = "z"
    return table


def reads_range(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
    """Noise, scaled to the least and the largest income of the table."""
    rng = np.random.default_rng(seed)
    low, high = data["income"].min(), data["income"].max()
    return pd.DataFrame(
        {
            "income": np.rint(rng.uniform(low, high, n_rows)),
            "town": rng.choice(["a", "b", "c"], n_rows),
            "job": rng.choice(["x", "y", "z"], n_rows),
        }
    )


carry(reads_range)


@pytest.mark.ci
def test_ranges_read_off_the_data_are_proved_by_default(table: pd.DataFrame) -> None:
    result = audit_by_keywords(
        reads_range, table, schema=SCHEMA, epsilon=1.0, probe=False, shadow_models=100
    )
    assert result.verdict is dpaudit.Verdict.VIOLATION
    target = result.target
    assert (target.choice, target.row) == ("exposing", RICHEST)
    assert target.exposures == (Exposure(Fact.MAXIMUM, "income"),)
    assert result.leaks[0].column == "income"
    line = f"row {RICHEST}, the most exposed record: sole maximum of income"
    assert f"target    {line}" in str(result).splitlines()
    assert line in render_html(result)
    assert line in render_markdown(result)
    assert "--target" not in result.reproduce
    assert "--data TABLE.csv" in result.reproduce  # which was in memory
    assert "write it to TABLE.csv first" in render_markdown(result)
    assert "--set probe=false" in result.reproduce
    assert result.to_document()["probes"]["why_left_out"] == "declined (probe=false)"
    document = result.to_document()
    jsonschema.validate(document, result_schema())
    assert document["target"] == {
        "choice": "exposing",
        "row": RICHEST,
        "exposures": [{"fact": "sole maximum", "column": "income"}],
    }


@pytest.mark.ci
def test_the_farthest_record_misses_them_but_the_probes_prove_a_violation(
    table: pd.DataFrame, tmp_path: Path
) -> None:
    result = audit_by_keywords(
        reads_range, table, schema=SCHEMA, epsilon=1.0, target="farthest", out=tmp_path
    )
    assert result.verdict is dpaudit.Verdict.VIOLATION
    assert result.proved <= 1.0
    assert result.target.row == ODD
    lines = str(result).splitlines()
    assert lines[0].startswith("VIOLATION  claimed epsilon 1, probe")
    assert any(one.startswith("probe     range-follows-record: one record moves") for one in lines)
    for rendered in (render_html(result), render_markdown(result)):
        assert "range-follows-record proves a violation" in rendered
    assert result.probe_alarms[0].id == "range-follows-record"
    document = json.loads((tmp_path / "result.json").read_text())
    jsonschema.validate(document, result_schema())
    assert document["probes"]["alarms"][0]["id"] == "range-follows-record"
    for text in ((tmp_path / "report.html").read_text(), (tmp_path / "report.md").read_text()):
        assert "range-follows-record proves a violation" in text
        assert "Probes before the audit" in text
    assert dpaudit.AuditResult.load(tmp_path) == result
