"""What audits of a test suite proved before."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from dpaudit.errors import InputError
from dpaudit.results.baseline import (
    AuditOfTest,
    Baseline,
    Ranking,
    baseline_of,
    read_baseline,
    regression,
    write_baseline,
)

SETTINGS = {"shadow models": "100", "target": "row:3", "seed": "0"}


def found(
    test: str,
    proved: float | None,
    auc: float | None = None,
    *,
    number: int = 1,
    settings: Mapping[str, str] = SETTINGS,
) -> AuditOfTest:
    return AuditOfTest(
        test=test,
        number=number,
        verdict="consistent",
        quantity="epsilon",
        claimed=1.0,
        proved=proved,
        shadow_models=100,
        seed=0,
        report="report.html",
        settings=settings,
        ranking=None if auc is None else Ranking(auc, 30, 25),
    )


def test_what_was_found_comes_back_and_other_tests_keep_their_lines(tmp_path: Path) -> None:
    file = tmp_path / "privacy.json"
    write_baseline(file, [found("t.py::a", 0.25, 0.75), found("t.py::a", None, number=2)])
    write_baseline(file, [found("t.py::b", 0.5)])
    first = Baseline(SETTINGS, Ranking(0.75, 30, 25), 0.25)
    second, third = (Baseline(SETTINGS, None, proved) for proved in (None, 0.5))
    assert read_baseline(file) == {"t.py::a": first, "t.py::a #2": second, "t.py::b": third}
    write_baseline(file, [found("t.py::a", 1.25)])
    assert baseline_of("t.py::a", file).proved == 1.25
    with pytest.raises(InputError, match=r"no line for t\.py::c: add it with --dpaudit"):
        baseline_of("t.py::c", file)


def test_only_a_significant_rise_of_the_auc_is_a_regression() -> None:
    before = Baseline(SETTINGS, Ranking(0.6, 30, 25), 0.0)
    for auc in (0.6, 0.3, 0.8, None):
        assert regression(found("t.py::a", 2.0, auc), before, level=0.01) == ""
    said = regression(found("t.py::a", 1.9, 0.95), before, level=0.01)
    assert said.startswith("REGRESSION: the AUC of the attack has risen from 0.600 (30 in, ")
    assert "tested at 1 %" in said
    assert "proved epsilon 0 then and 1.9 now" in said
    assert regression(found("t.py::a", 0.0, 0.8), before, level=0.1)
    assert regression(found("t.py::a", 0.0, 1.0), before._replace(ranking=None), level=0.1) == ""
    perfect = before._replace(ranking=Ranking(1.0, 30, 25))
    assert regression(found("t.py::a", 0.0, 1.0), perfect, level=0.1) == ""


def test_no_more_than_the_level_are_flagged_where_nothing_has_changed() -> None:
    rng = np.random.default_rng(0)
    for shift, spread in ((0.0, 1.0), (2.0, 1.0), (0.0, 50.0), (1.0, 0.1)):
        flagged = 0
        for _ in range(1000):
            inside, outside = rng.normal(shift, spread, (2, 20)), rng.normal(0.0, 1.0, (2, 25))
            above = inside[:, :, None] > outside[:, None, :]
            old, new = (Ranking(float(auc), 20, 25) for auc in above.mean((1, 2)))
            one = found("t.py::a", 0.0)._replace(ranking=new)
            flagged += regression(one, Baseline(SETTINGS, old, 0.0), level=0.01) != ""
        assert flagged <= 10 + 3 * 10**0.5


def test_like_is_compared_with_like_alone() -> None:
    before = Baseline(SETTINGS, Ranking(0.5, 30, 25), 0.746)
    settings = {**SETTINGS, "shadow models": "52"}
    said = regression(found("t.py::a", 1.94, 0.5, settings=settings), before, level=0.01)
    assert said.startswith(
        "NOT COMPARABLE with the baseline: shadow models 100 there and 52 here; audit as"
    )
    assert "--dpaudit-baseline-update" in said


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema_version": 1, "audits": {}}', "x"])
def test_what_is_no_baseline_is_refused_and_kept(tmp_path: Path, text: str) -> None:
    file = tmp_path / "privacy.json"
    file.write_text(text)
    with pytest.raises(InputError, match="no baseline of this version"):
        read_baseline(file)
    with pytest.raises(InputError, match="no baseline of this version"):
        write_baseline(file, [found("t.py::a", 1.0)])
    assert file.read_text() == text


def test_a_baseline_that_is_not_there_or_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--dpaudit-baseline-update"):
        read_baseline(tmp_path / "none.json")
    with pytest.raises(InputError, match="cannot write"):
        write_baseline(tmp_path / "no folder" / "x.json", [found("t.py::a", 1.0)])
    write_baseline(tmp_path / "x.json", [])
    assert json.loads((tmp_path / "x.json").read_text())["audits"] == {}
