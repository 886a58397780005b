"""`dpaudit trace`: every finding on a scripted generator that has it, none on a correct one."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest
from typer.testing import CliRunner, Result

from documents import read_document
from dpaudit.account import Mechanism, VoteTable
from dpaudit.cli.console import ExitCode
from dpaudit.cli.main import app
from dpaudit.errors import RegistryError, SettingsError, TargetError, TrialError
from dpaudit.plugins.recorder import Reader, Recorder
from dpaudit.trace import Severity, TraceReport, votes
from dpaudit.trace.catalogue import CATALOGUE, Finding, Passed
from dpaudit.trace.table import more_than_chance
from dpaudit.trace.trainings import Collector, most_informative_record, run_trainings
from dpaudit.trace.votes import (
    ERROR,
    FEWEST,
    AccountedNoise,
    Law,
    accounted_noise,
    laws_of,
    may_have_scale,
)
from scripted_pate_gan import (
    GAUSSIAN,
    SCHEMA,
    Scripted,
    ids,
    one,
    table,
    traced,
)


def test_nothing_is_found_on_a_correct_generator_and_everything_was_looked_for() -> None:
    report = traced()
    assert not report.findings
    report.assert_no_violation()
    # Its penalty is 10, as many as teachers; Gaussian noise it has none.
    assert set(report.not_checked) == {"penalty-from-teachers"}
    assert set(report.checked) >= set(CATALOGUE) - {
        "penalty-from-teachers",
        "gradient-penalty",
        "noise-wrong-scale",
    }
    assert not traced(Scripted(flaws=frozenset({"charged-at-most"}))).findings


SETTINGS: dict[str, dict[str, Any]] = {
    "penalty-from-teachers": {"teachers": 7},
    "budget-exceeded": {"epsilon": 3.0},
}


@pytest.mark.parametrize(
    "flaw",
    [
        pytest.param(flaw, marks=pytest.mark.ci) if flaw == "gradient-steps-not-accounted" else flaw
        for flaw in sorted(CATALOGUE)
    ],
)
def test_each_deviation_is_found_alone(flaw: str) -> None:
    report = one(flaw, **SETTINGS.get(flaw, {}))
    assert ids(report) == [flaw]
    (finding,) = report.findings
    expected = CATALOGUE[flaw].severity
    assert finding.severity is (Severity.NOTE if flaw == "one-noise-charged-as-two" else expected)
    assert finding.numbers
    assert all(map(math.isfinite, finding.numbers.values()))
    assert report.violated is (finding.severity is Severity.VIOLATION)
    if not report.violated:
        report.assert_no_violation()
        return
    with pytest.raises(AssertionError, match=flaw):
        report.assert_no_violation()


def test_a_trace_that_checked_nothing_passes_no_test() -> None:
    with pytest.raises(AssertionError, match="NOTHING CHECKED  the generator recorded"):
        replace(traced(), checked=()).assert_no_violation()


def test_all_counts_of_votes_together_err_as_seldom_as_one_test() -> None:
    table, runs = VoteTable.noisy_max(20, 5.0), 1000
    ones = np.repeat(np.arange(21), runs)
    right = np.rint(table.probabilities * runs).astype(int)

    def p_value(extra: int) -> float:
        return float(binomtest(right[10] + extra, runs, table.probabilities[10]).pvalue)

    def tested(extra: int) -> object:
        released = right + extra * (np.arange(21) == 10)
        labels = np.concatenate([np.arange(runs) < count for count in released]).astype(int)
        return votes._test_votes(SimpleNamespace(ones=ones, labels=labels), table)  # type: ignore[arg-type]

    alone = next(extra for extra in range(500) if p_value(extra) <= ERROR)
    together = next(extra for extra in range(500) if 21 * p_value(extra) <= ERROR)
    assert alone < together
    assert isinstance(tested(together - 1), Passed)
    assert isinstance(tested(together), Finding)


def test_a_single_label_that_is_not_charged_is_found() -> None:
    (free,) = [one for one in one("first-label-free").findings if one.id == "queries-not-accounted"]
    assert free.numbers["released"] - free.numbers["charged"] == 1


def test_findings_name_the_numbers() -> None:
    (shared,) = one("partition-last-only").findings
    assert "all the same ones, where 1 / 10 of the table is 20; 180 records" in shared.evidence
    (logless,) = one("accountant-missing-log").findings
    assert "it over-counts by a factor" in logless.evidence
    (third,) = one("accountant-disagrees").findings
    assert "it under-counts by a factor of 3" in third.evidence
    (late,) = one("budget-exceeded", epsilon=3.0).findings
    assert late.numbers["spent"] > 3.0 == late.numbers["claimed"]
    (slipped,) = one("delta-xor").findings
    assert slipped.numbers["log_inverse_delta"] == pytest.approx(math.log(15))
    (cut,) = one("integers-truncated").findings
    assert cut.numbers["mean_shift"] == pytest.approx(-0.5, abs=0.1)


@pytest.mark.parametrize("slip", ["xor", "multiplied"])
def test_normal_noise_of_a_mistaken_delta_is_named(slip: str) -> None:
    report = one(f"sigma-{slip}", epsilon=1.0)
    assert f"delta-{slip}" in ids(report)
    assert "noise-wrong-scale" not in ids(report)


def test_normal_noise_of_the_right_scale_is_no_mistaken_delta() -> None:
    report = one("noise-gaussian-on-labels")
    assert ids(report) == ["noise-gaussian-on-labels"]
    assert report.findings[0].numbers["deviation"] == pytest.approx(GAUSSIAN / 20, rel=0.1)


def test_a_mixture_fitted_on_the_table_is_found_by_what_moves() -> None:
    report = one("mixture-from-data")
    assert ids(report) == ["bounds-from-data"]
    assert report.findings[0].numbers["columns_that_move"] == 2


def test_bounds_released_with_noise_are_not_called_read_off_the_data() -> None:
    report = one("private-bounds")
    assert not report.findings
    assert "private release" in report.not_checked["bounds-from-data"]


def test_one_noise_that_costs_more_than_was_charged_is_a_violation() -> None:
    # Of a clear majority the error probability of two noises is far too small for one.
    (finding,) = one("one-noise-charged-as-two", teachers=100, shares=(0.67,)).findings
    assert finding.severity is Severity.VIOLATION
    assert finding.numbers["largest_factor"] > 1.0


def test_several_deviations_are_all_found() -> None:
    flaws = {"partition-all-rows", "noise-scale-inverted", "delta-xor", "batch-from-rows"}
    assert set(ids(traced(Scripted(flaws=frozenset(flaws))))) == flaws


@pytest.mark.slow
def test_no_false_alarm_over_many_seeds() -> None:
    quick = Scripted(iterations=8, batch=32)
    for seed in range(40):
        report = traced(quick, table(120, seed), seed=seed)
        assert not report.findings, (seed, report.findings)


def test_laws_and_scales_are_told_apart_at_the_fewest_draws() -> None:
    rng = np.random.default_rng(5)
    for draw, law, factor in (
        (rng.standard_normal, Law.NORMAL, 1.3),
        (rng.laplace, Law.LAPLACE, 1.3),
    ):
        for _ in range(1000):
            draws = 3.0 * np.asarray(draw(size=FEWEST))
            assert laws_of(draws) == (law,)
            assert may_have_scale(draws, law, 3.0)
            assert not may_have_scale(draws, law, 3.0 * factor)
            assert not may_have_scale(draws, law, 3.0 / factor)
    uniform = rng.uniform(-1, 1, FEWEST)
    assert laws_of(uniform) == ()


def test_scale_tests_err_as_often_as_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpaudit.trace.votes.ERROR", 0.05)
    rng = np.random.default_rng(6)
    for draw, law in ((rng.standard_normal, Law.NORMAL), (rng.laplace, Law.LAPLACE)):
        alarms = sum(not may_have_scale(np.asarray(draw(size=200)), law, 1.0) for _ in range(2000))
        assert 60 <= alarms <= 145  # 100 expected, standard deviation 9.7


def test_empty_cells_are_not_blamed_on_chance_nor_chance_on_cells() -> None:
    rng = np.random.default_rng(7)
    for _ in range(500):
        empty = 300 - np.unique(rng.integers(0, 300, 900)).size
        assert not more_than_chance(300, 900, empty)
    assert more_than_chance(300, 900, 60)
    assert not more_than_chance(300, 900, 0)


@pytest.mark.parametrize("teachers", [1, 2, 3, 5, 50])
@pytest.mark.parametrize("scale", [1.0, 30.0, 1000.0])
@pytest.mark.parametrize("mechanism", list(Mechanism))
def test_the_noise_of_a_promised_table_is_read_off_it(
    teachers: int, scale: float, mechanism: Mechanism
) -> None:
    accounted = AccountedNoise(mechanism, scale)
    collector = Collector(pd.DataFrame(index=range(1)))
    collector.constant("gamma", 1 / scale)
    collector.promised(accounted.table(teachers).quantised())
    found = accounted_noise(collector.finish(pd.DataFrame()))
    assert found is not None
    assert found.mechanism is mechanism
    assert found.scale == pytest.approx(scale, rel=1e-6)


def test_the_record_removed_alone_holds_the_most_extremes() -> None:
    data = table(100).assign(age=55)
    data.loc[40, ["age", "income"]] = (58, 99.0)
    data.loc[97, ["age", "income"]] = (51, 1.0)  # as many, but among the last rows
    assert most_informative_record(data, SCHEMA) == 40
    same = pd.DataFrame({"age": [52, 52, 58, 58], "income": [1.0, 1.0, 9.0, 9.0]})
    assert most_informative_record(same.assign(ill="no"), SCHEMA) in range(4)


def test_what_a_generator_cannot_be_told_about_is_refused() -> None:
    for record, wrong in (
        (lambda one: one.read(Reader.TEACHER, np.array([3])), "rows 3 to 3"),
        (lambda one: one.voted(np.array([1, 2]), np.array([1])), "labels"),
        (lambda one: one.voted(np.array([1]), np.array([2])), "labels"),
    ):
        with pytest.raises(TrialError, match=wrong):
            record(Collector(pd.DataFrame(index=range(3))))


@dataclass(frozen=True, kw_only=True)
class Failing(Scripted):
    """Refuses small tables, or fails altogether."""

    least: int = 100

    def trace(
        self, data: pd.DataFrame, *, n_rows: int, seed: int, recorder: Recorder
    ) -> pd.DataFrame:
        if len(data) < self.least:
            raise ValueError("too few rows")
        return super().trace(data, n_rows=n_rows, seed=seed, recorder=recorder)


def test_a_refused_small_table_costs_that_check_only() -> None:
    report = traced(Failing())
    assert not report.findings
    assert "batch-from-rows" in report.checked
    with pytest.raises(
        TrialError, match=r"trained on the table: ValueError at \S+ in trace: too few rows"
    ):
        traced(Failing(least=1000))


def test_what_a_report_says_of_a_refusal_may_be_shared() -> None:
    trainings = run_trainings(
        Failing(), table(), SCHEMA, rows=50, seed=0, name="failing", on_progress=None
    )
    # without its text
    assert re.fullmatch(
        r"trained on 60 of its rows: ValueError at test_trace\.py:\d+ in trace", trainings.fewer
    )


def test_wrong_input_is_refused() -> None:
    with pytest.raises(RegistryError, match="dpaudit replay"):
        traced("null")
    with pytest.raises(SettingsError, match="`rows`"):
        traced(rows=0)
    with pytest.raises(TargetError, match="2 rows"):
        traced(data=table(1))


def test_a_report_is_a_pure_function_of_its_seed_and_fits_80_columns() -> None:
    made = Scripted(flaws=frozenset({"no-pate", "partition-all-rows", "bounds-from-data"}))
    first, again = traced(made), traced(made)
    assert first.to_document() == again.to_document()
    assert max(map(len, str(first).splitlines())) <= 80
    assert json.loads(json.dumps(first.to_document(), allow_nan=False))["schema_version"] == 1
    assert str(first).startswith("VIOLATION  3 deviations from what the privacy proof ")
    assert "\n\nno-pate (violation)\n" in str(first)


GENERATOR = """
from dpaudit_generators.pate_gan import PateGan

class Broken:
    def fit(self, data, *, seed):
        return data
    def trace(self, data, *, n_rows, seed, recorder):
        raise ValueError("out of\\norder")

class Copies:
    def fit(self, data, *, seed):
        return None
    def sample(self, n, *, seed):
        return None
    def trace(self, data, *, n_rows, seed, recorder):
        print("not a result")
        recorder.scaling("income", (data["income"].min(), data["income"].max()))
        return data.sample(n_rows, replace=True, random_state=seed)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table().to_csv("table.csv", index=False)
    SCHEMA.save("schema.json")
    Path("made.py").write_text(GENERATOR)


def dpaudit_trace(*words: str) -> Result:
    given = ["trace", *words, "--data", "table.csv", "--schema", "schema.json"]
    return CliRunner().invoke(app, given)


@pytest.mark.usefixtures("folder")
def test_the_command_line_prints_one_document_and_exits_1_on_a_violation() -> None:
    done = dpaudit_trace("made.py:Copies", "--json", "--rows", "50")
    assert done.exit_code == ExitCode.VIOLATION, done.output
    document = read_document(TraceReport, done.stdout)
    assert [finding["id"] for finding in document["findings"]] == ["bounds-from-data"]
    finding = document["findings"][0]
    assert set(finding) == {"id", "severity", "evidence", "numbers", "correct", "reference"}
    assert document["generator"] == "made.py:Copies"
    assert document["seed"] == 0
    assert document["schema_inferred"] is False
    assert set(document["not_checked"]) >= {"delta-xor", "partition-all-rows"}
    assert document["reproduce"] == (
        "dpaudit trace made.py:Copies --data table.csv --schema schema.json --rows 50 --seed 0"
    )
    quiet = dpaudit_trace("made.py:Copies", "-q", "--html", "t.html", "--markdown", "t.md")
    assert "1 deviation from what the privacy proof assumes" in Path("t.html").read_text()
    assert "### bounds-from-data (violation)" in Path("t.md").read_text()
    nowhere = dpaudit_trace("made.py:Copies", "--html", "no/t.html")
    assert nowhere.exit_code == ExitCode.USAGE
    assert nowhere.stderr == "error: folder no does not exist: make it, or give another --html\n"
    assert quiet.stdout.startswith("VIOLATION  1 deviation from what the privacy proof ")
    assert quiet.stderr.splitlines() == ["not a result"] * 5


@pytest.mark.usefixtures("folder")
def test_the_command_line_tells_a_failing_generator_from_wrong_use() -> None:
    broken = dpaudit_trace("made.py:Broken")
    assert broken.exit_code == ExitCode.INTERNAL
    assert broken.stderr.splitlines()[-1] == (
        "error: made.py:Broken, trained on the table: "
        "ValueError at made.py:8 in trace: out of order"
    )
    untraceable = dpaudit_trace("null")
    assert untraceable.exit_code == ExitCode.USAGE
    assert "has no method trace(" in untraceable.stderr
    assert "dpaudit probe" in untraceable.stderr
