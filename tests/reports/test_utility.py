"""The study of utility: what it measures, resumes and shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dpaudit.errors import DataError
from dpaudit.usefulness.experiment import HEADLINE, Measure, Repeat, ScoreName, Setting
from reports import markdown
from reports.command import Run
from reports.utility import run as study
from reports.utility.tables import EVERY_ROW, MOST_ROWS, STUDY_TABLES, WHOLE, experiment


def row(value: float) -> dict[str, Any]:
    names = [
        (Measure.AUROC, "lda"),
        (Measure.AUROC, "mean"),
        (Measure.AUPRC, "lda"),
        (Measure.AUPRC, "mean"),
    ]
    scores: list[Any] = [[name, Setting.TRANSFER, of, value] for name, of in names]
    return {"guesses": 0, "scores": [*scores, [Measure.RANKING, None, None, value]]}


def results(value: float) -> dict[str, Any]:
    real = {"guesses": 0, "scores": [[Measure.AUROC, Setting.REAL, "mean", 0.97]]}
    return {
        "real": {"0": real},
        "constant": {"0": row(0.5)},
        "noise": {str(number): row(0.4 + 0.1 * number) for number in range(3)},
        "smartnoise 1": {"0": row(value), "1": row(value + 0.01), "2": {"error": "no"}},
    }


def test_what_was_measured_survives_its_file() -> None:
    written = json.loads(json.dumps(row(0.7)))
    found = study.repeat_of(written)
    assert found.scores[HEADLINE] == 0.7
    assert found.scores[ScoreName(Measure.RANKING)] == 0.7
    assert isinstance(found, Repeat)


def test_a_page_says_what_beats_noise_and_what_failed() -> None:
    page = study.page({"cervical": results(0.9), "adult": {}})
    [line] = [line for line in page.splitlines() if line.startswith("| smartnoise 1 ")]
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[1:3] == ["2", "0.905"]
    assert cells[5] == "0.802"  # as published
    assert cells[-2:] == ["better", "1"]
    assert "Setting A: 0.970 (published 0.940)" in page
    assert "adult" not in page
    assert "not distinguishable from noise" in study.page({"cervical": results(0.5)})


@pytest.mark.ci
def test_the_committed_page_follows_from_the_results() -> None:
    home = Path(study.__file__).parent
    assert study.page(study.kept(home / "results")) == (home / "README.md").read_text().split(
        markdown.MARK
    )[1].removeprefix("\n")


def test_only_what_lacks_is_measured(tmp_path: Path) -> None:
    asked = Run(home=tmp_path, out=tmp_path, parts=("cervical",), quick=True)
    whole = study.tasks_of(asked, {"cervical": {}})
    assert [task.source for task in whole].count("real") == 1
    rest = study.tasks_of(asked, {"cervical": results(0.5)})
    assert {(task.source, task.number) for task in whole} - {
        (task.source, task.number) for task in rest
    } >= {("real", 0), ("noise", 1)}
    assert all(task.source not in ("real", "constant", "noise") for task in rest)


def test_generators_are_taken_by_name() -> None:
    found = list(study.sources("cervical"))
    assert found[:3] == ["real", "noise", "constant"]
    pate_gans = {"pate-gan 1", "pate-gan-marginals 10", "pate-gan-marginals-16-bins 1"}
    assert pate_gans | {"smartnoise 1", "smartnoise-synth:mst 10"} <= set(found)
    assert not set(found) & set(study.DEAR)


def test_whole_tables_have_as_many_synthetic_rows_as_real_ones(tmp_path: Path) -> None:
    parts = ("credit", "credit-whole")
    tasks = study.tasks_of(
        Run(home=tmp_path, out=tmp_path, parts=parts), {part: {} for part in parts}
    )
    assert {(task.table, task.rows) for task in tasks} == {
        ("credit", MOST_ROWS),
        ("credit-whole", EVERY_ROW),
    }
    whole = {task.source for task in tasks if task.table == "credit-whole"}
    assert whole == {*study.BASELINES, *WHOLE}
    assert STUDY_TABLES["credit-whole"].published == STUDY_TABLES["credit"].published


@pytest.mark.ci
def test_large_tables_are_repeated_less_and_a_library_needs_its_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # where no environment was made
    asked = Run(home=tmp_path, out=tmp_path, parts=("cervical", "adult"))
    tasks = study.tasks_of(asked, {"cervical": {}, "adult": {}})
    assert not any(":" in task.source for task in tasks)
    of_noise = [task.table for task in tasks if task.source == "noise"]
    assert (of_noise.count("cervical"), of_noise.count("adult")) == (10, 3)
    assert [task.number for task in tasks] == sorted(task.number for task in tasks)


@pytest.mark.parametrize("name", STUDY_TABLES)
def test_a_missing_table_is_an_error_that_says_where_it_is_from(name: str, tmp_path: Path) -> None:
    for folder in (None, tmp_path):
        with pytest.raises(DataError, match=STUDY_TABLES[name].file):
            experiment(name, folder, 100)
