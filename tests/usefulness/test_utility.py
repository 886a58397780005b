"""`dpaudit utility` and `dpaudit.utility`: what a reader is told of good, bad and broken tables."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import dpaudit
from documents import read_document
from dpaudit.cli.console import ExitCode
from dpaudit.cli.main import app
from dpaudit.errors import (
    DataError,
    InputError,
    MissingExtraError,
    RegistryError,
    SettingsError,
    TrialError,
)
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.usefulness.experiment import Measure, measure_fidelity
from dpaudit.usefulness.report import NOT_DISTINGUISHABLE, UtilityReport
from dpaudit.usefulness.run import EqualRows, UniformRows

FAST = ("logistic-regression", "gaussian-naive-bayes", "decision-tree")
SCHEMA = Schema(
    columns=(
        Column(name="size", kind=Kind.CONTINUOUS, lower=-1, upper=5, missing=True),
        Column(name="visits", kind=Kind.INTEGER, lower=0, upper=9),
        Column(name="job", kind=Kind.CATEGORICAL, categories=("a", "b", 3), missing=True),
        Column(name="always", kind=Kind.INTEGER, lower=0, upper=9),
        Column(name="sick", kind=Kind.BINARY, categories=(0, 1)),
    ),
    label="sick",
)


def table(rows: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(2)
    sick = rng.random(rows) < 0.3
    return pd.DataFrame(
        {
            "size": np.where(rng.random(rows) < 0.2, np.nan, rng.random(rows) + 2 * sick),
            "visits": rng.integers(0, 10, rows),
            "job": rng.choice(np.array(["a", "b", 3, None], dtype=object), rows),
            "always": 4,
            "sick": sick.astype(int),
        }
    )


def resample(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
    return data.sample(n_rows, replace=True, random_state=seed)


def one_class(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
    return resample(data, n_rows, seed).assign(sick=0)


def measured(generator: object, **given: Any) -> dpaudit.UtilityReport:
    return dpaudit.utility(
        generator, table(), **{"schema": SCHEMA, "repeats": 4, "classifiers": FAST, **given}
    )


def write_files(folder: Path) -> None:
    """Table and schema as files, without the column whose categories are of two types."""
    table().drop(columns="job").to_csv(folder / "table.csv", index=False)
    columns = tuple(one for one in SCHEMA.columns if one.name != "job")
    Schema(columns=columns, label="sick").save(folder / "schema.json")


def of(report: dpaudit.UtilityReport, measure: Measure) -> Any:
    return next(one for one in report.scores if one.measure is measure)


def test_copies_are_as_good_as_the_real_table() -> None:
    report = measured(resample)
    assert report.main.beats_noise
    assert report.main.real is not None
    assert report.main.mean == pytest.approx(report.main.real, abs=0.06)
    assert report.main.noise_mean < 0.75
    assert report.main.constant == 0.5
    assert NOT_DISTINGUISHABLE not in report.headline
    auprc = of(report, Measure.AUPRC)
    assert auprc.constant == pytest.approx(report.prevalence)
    assert auprc.mean > 0.7
    assert of(report, Measure.COLUMN_RANKING).mean > 0.6


class ToldOfLabel(UniformRows):
    """Refuses a schema that does not say which column is to be predicted."""

    def __post_init__(self) -> None:
        if self.schema.label != "sick":
            raise ValueError("which column is the label?")


def test_the_generator_is_told_which_column_is_to_be_predicted() -> None:
    unlabelled = replace(SCHEMA, label=None)
    report = measured(f"{__name__}:ToldOfLabel", schema=unlabelled, label="sick", repeats=2)
    assert report.failures == ()


def test_noise_is_not_distinguishable_from_noise() -> None:
    report = measured(UniformRows(SCHEMA), repeats=6)
    assert not report.main.beats_noise
    assert NOT_DISTINGUISHABLE in report.headline
    assert f"~ {NOT_DISTINGUISHABLE}" in str(report)
    assert NOT_DISTINGUISHABLE in report.to_markdown()


@pytest.mark.ci
def test_the_same_seed_gives_the_same_document_and_another_does_not() -> None:
    first = measured(resample).to_json()
    assert first == measured(resample).to_json()
    assert first != measured(resample, seed=1).to_json()


def test_equal_rows_score_as_a_guess() -> None:
    report = measured(EqualRows(SCHEMA))
    assert report.guesses == 4 * len(FAST)
    assert report.main.mean == 0.5
    assert of(report, Measure.AUPRC).mean == pytest.approx(report.prevalence)
    assert not report.main.beats_noise


def test_one_class_of_labels_is_a_guess_and_said() -> None:
    report = measured(one_class)
    assert report.main.mean == 0.5
    assert "learned nothing from a synthetic table" in " ".join(report.notes)


@pytest.mark.ci
def test_every_classifier_takes_every_table() -> None:
    report = measured(resample, classifiers=None, repeats=2)
    assert len(report.classifiers) == 12
    assert of(report, Measure.RANKING).mean > 0.5
    assert max(map(len, str(report).splitlines())) <= 80


def test_a_test_table_of_its_own_and_another_number_of_rows() -> None:
    report = measured(resample, test=table(100), rows=50)
    assert (report.train_rows, report.test_rows, report.rows) == (300, 100, 50)
    assert report.test_source == "a table in memory"


def test_a_generator_that_fails_at_once_is_refused() -> None:
    def broken(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
        raise ValueError("no such luck")

    with pytest.raises(RegistryError, match=r"fails on this table: .*no such luck"):
        measured(broken)
    with pytest.raises(RegistryError, match="wrong columns"):
        measured(lambda data, n_rows, seed: resample(data, n_rows, seed)[["sick"]])


class Sometimes:
    """Fails in all but the first models."""

    def __init__(self, good: int) -> None:
        self.good = good

    def fit(self, data: pd.DataFrame, *, seed: int) -> Sometimes:
        self.good -= 1
        self.data = data
        return self

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        if self.good < 0:
            raise RuntimeError("out of luck")
        return resample(self.data, n, seed)


TORCH = """
def make(data, n_rows, seed):
    import torch
    return data.iloc[torch.randint(len(data), (n_rows,)).numpy()]
"""


@pytest.mark.ci
def test_the_first_table_of_a_generator_that_loads_torch_repeats(tmp_path: Path) -> None:
    (tmp_path / "late.py").write_text(TORCH)
    write_files(tmp_path)
    code = (
        "import sys, dpaudit\n"
        f"folder = {str(tmp_path)!r}\n"
        "def scores():\n"
        "    given = {'schema': f'{folder}/schema.json', 'classifiers': ['lda'], 'repeats': 2}\n"
        "    return dpaudit.utility(f'{folder}/late.py:make', f'{folder}/table.csv', **given)\n"
        "assert 'torch' not in sys.modules\n"
        "assert scores().scores == scores().scores\n"
        "assert 'torch' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_later_failures_are_counted_and_said() -> None:
    report = measured(Sometimes(3))
    assert (report.repeats, len(report.failures)) == (3, 1)
    assert "failed 1 times, which no mean contains" in " ".join(report.notes)
    with pytest.raises(TrialError, match=r"failed 3 of 4 times: .*out of luck"):
        measured(Sometimes(1))


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"repeats": 1}, SettingsError, "`repeats` must be a whole number of at least 2"),
        ({"test_share": 1.0}, SettingsError, "`test_share` must be a number in"),
        ({"rows": 1}, SettingsError, "`rows` must be a whole number of at least 2"),
        ({"rows": 10**9}, SettingsError, "`rows` is"),
        ({"confidence": 0.5}, SettingsError, "`confidence` must be a number in"),
        ({"seed": -1}, SettingsError, "`seed` must be"),
        ({"label": "nothing"}, SettingsError, "is not a column"),
        ({"test": table().assign(sick=0)}, DataError, "the test table has 0 rows"),
        ({"test": table().drop(columns="sick")}, DataError, "column 'sick' is missing"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_any_training(
    given: dict[str, Any], error: type[InputError], message: str
) -> None:
    class Never:
        def fit(self, data: pd.DataFrame, *, seed: int) -> Sometimes:
            raise AssertionError("trained")

    with pytest.raises(error, match=message):
        measured(Never(), **given)


def test_noise_fits_every_schema() -> None:
    rows = UniformRows(SCHEMA).sample(500, seed=1)
    assert SCHEMA.problems(rows) == []
    assert set(rows["job"].dropna()) == {"a", "b", 3}
    assert 0.4 < rows["size"].isna().mean() < 0.6
    assert set(rows["visits"]) == set(range(10))
    assert SCHEMA.problems(EqualRows(SCHEMA).sample(3, seed=1)) == []


def test_fidelity_is_best_for_copies() -> None:
    data = SCHEMA.canonical(table())
    same = measure_fidelity(data, data, SCHEMA, seed=0)
    noise = measure_fidelity(data, UniformRows(SCHEMA).sample(300, seed=1), SCHEMA, seed=0)
    assert same == {Measure.COLUMNS: 1.0, Measure.PAIRS: 1.0}
    assert set(noise) == set(same)
    assert max(noise.values()) < 0.9


def test_fidelity_needs_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[fidelity\]'"):
        measured(resample, fidelity=True)


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["utility", *arguments])


def test_the_command_prints_one_document_and_writes_a_page(tmp_path: Path) -> None:
    page = tmp_path / "utility.md"
    (tmp_path / "copies.py").write_text(
        "def make(data, n_rows, seed):\n"
        "    return data.sample(n_rows, replace=True, random_state=seed)\n"
    )
    write_files(tmp_path)
    given = [
        *(f"{tmp_path / 'copies.py'}:make", "--data", str(tmp_path / "table.csv")),
        *("--schema", str(tmp_path / "schema.json"), "--repeats", "6"),
        *("--classifier", "lda", "--classifier", "decision-tree"),
    ]
    done = run(*given, "--json", "--markdown", str(page))
    assert done.exit_code == ExitCode.PASS, done.stderr
    document = read_document(UtilityReport, done.stdout)
    assert document["scores"][0]["beats_noise"] is True
    assert "generator: 6 of 6" in done.stderr
    assert page.read_text().startswith("# Utility of ")
    quiet = run(*given, "-q")
    assert len(quiet.stdout.splitlines()) == 1
    assert quiet.stderr == ""
    lost = run(*given, "--markdown", str(tmp_path / "no" / "page.md"))
    assert (lost.exit_code, lost.stdout) == (ExitCode.USAGE, "")
    assert "--markdown" in lost.stderr


def test_what_does_not_beat_noise_exits_with_inconclusive() -> None:
    done = run(
        *("null", "--data", "sample:breast-cancer", "--label", "benign", "--repeats", "4"),
        *("--classifier", "decision-tree", "-q"),
    )
    assert done.exit_code == ExitCode.INCONCLUSIVE, done.stderr
    assert NOT_DISTINGUISHABLE in done.stdout
