"""`dpaudit trace`: every finding on a scripted generator that has it, none on a correct one."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from dpaudit.account import Mechanism, VoteTable, epsilon_from_moments, pate_moments
from dpaudit.account.algorithm_1 import Deviation, algorithm_1_moments
from dpaudit.cli.console import ExitCode
from dpaudit.cli.main import app
from dpaudit.errors import RegistryError, SettingsError, TargetError, TrialError
from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.plugins.recorder import NoiseOn, Reader, Recorder, Stage
from dpaudit.trace import Severity, TraceReport, trace
from dpaudit.trace.catalogue import CATALOGUE
from dpaudit.trace.collector import Collector
from dpaudit.trace.laws import FEWEST, Law, laws_of, may_have_scale, more_than_chance
from dpaudit.trace.promise import Promise, promise_of
from dpaudit.trace.trainings import most_informative_record

SCHEMA = Schema(
    columns=(
        Column(name="age", kind=Kind.INTEGER, lower=50, upper=60),
        Column(name="income", kind=Kind.CONTINUOUS, lower=0, upper=100),
        Column(name="ill", kind=Kind.BINARY, categories=("no", "yes")),
    ),
    label="ill",
)
ORDERS = np.arange(1.0, 51.0)
DELTA = 1e-5
GAUSSIAN = math.sqrt(2 * math.log(1.25 / DELTA))  # at epsilon 1


def table(n: int = 200, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(51, 58, n),
            "income": rng.uniform(5, 90, n),
            "ill": rng.choice(["no", "yes"], n, p=[0.7, 0.3]),
        }
    )


@dataclass(frozen=True, kw_only=True)
class Scripted:
    """Tells what a PATE-GAN would tell, without training anything.

    Its flaws are named by the findings that they should give.
    """

    flaws: frozenset[str] = frozenset()
    epsilon: float = 20.0
    teachers: int = 10
    gamma: float = 0.02
    iterations: int = 30
    batch: int = 64
    shares: tuple[float, ...] = (0.1, 0.5, 0.9)
    """Shares of the teachers that vote 1, one of them in each query."""

    @property
    def claim(self) -> PrivacyClaim:
        return PrivacyClaim(epsilon=self.epsilon, delta=DELTA)

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> Any:
        return data  # no model: a trace does not call fit

    def exercises(self) -> Sequence[Scripted]:
        # Far more noise than privacy: Theorem 3's term is the smallest.
        return [replace(self, gamma=0.5, epsilon=1e6)]

    def trace(
        self, data: pd.DataFrame, *, n_rows: int, seed: int, recorder: Recorder
    ) -> pd.DataFrame:
        return Script(self, data, np.random.default_rng(seed), recorder).run(n_rows)


class Script:
    def __init__(
        self, made: Scripted, data: pd.DataFrame, rng: np.random.Generator, recorder: Recorder
    ) -> None:
        self.made, self.data, self.rng, self.tell = made, data, rng, recorder
        self.n, self.k = len(data), made.teachers
        if self.has("teachers-from-rows"):
            self.k = max(1, self.n // 20)
        self.spent = np.zeros(len(ORDERS))

    def has(self, flaw: str) -> bool:
        return flaw in self.made.flaws

    def run(self, n_rows: int) -> pd.DataFrame:
        made, tell = self.made, self.tell
        pate = not self.has("no-pate")
        tell.constant("teachers", self.k)
        batch = min(made.batch, self.n // self.k) if self.has("batch-from-rows") else made.batch
        tell.constant("batch", batch)
        tell.constant("rate", 1 / self.n if self.has("constant-from-rows") else 1e-4)
        weight = self.k if self.has("penalty-from-teachers") else 10
        tell.constant("gradient_penalty", 7 if self.has("gradient-penalty") else weight)
        if pate:
            tell.constant("gamma", made.gamma)
            tell.promised(VoteTable.noisy_max(self.k, 1 / made.gamma))
        self.bounds()
        counts = self.data["ill"].value_counts()
        tell.label_counts(list(counts) if self.has("labels-copied") else [100, 100])
        parts = self.deal()
        for number in range(made.iterations):
            tell.iteration()
            if self.has("partition-reshuffled"):
                parts = list(np.array_split(self.rng.permutation(self.n), self.k))
            self.read(parts, Reader.TEACHER if pate else Reader.STUDENT)
            for index in range(self.k):
                start = 0.0 if self.has("teachers-refitted") else float(number)
                tell.taught(index, before=np.array([start]), after=np.array([number + 1.0]))
            tell.fed(Stage.TRAINING, self.rng.uniform(-1, 1, (64, 4)))
            if pate:
                self.label()
            else:
                tell.noise(self.rng.laplace(size=64), on=NoiseOn.LABELS)
        normal = self.has("sampling-noise-differs")
        shape = (max(n_rows, 500), 4)
        fed = self.rng.standard_normal(shape) if normal else self.rng.uniform(-1, 1, shape)
        tell.fed(Stage.SAMPLING, fed)
        return self.sample(n_rows)

    def bounds(self) -> None:
        for column in SCHEMA.columns[:2]:
            numbers = column.bounds
            if self.has("bounds-from-data"):
                values = self.data[column.name]
                numbers = (float(values.min()), float(values.max()))
            if self.has("private-bounds"):  # no flaw: noise hides what they come from
                numbers = (numbers[0], numbers[1] + float(self.rng.laplace()) + self.n / 100)
            if self.has("mixture-from-data"):
                numbers = (float(self.data[column.name].mean()), 1.0)
            self.tell.scaling(column.name, numbers)

    def deal(self) -> list[Any]:
        if self.has("partition-all-rows"):
            return [np.arange(self.n)] * self.k
        if self.has("partition-last-only"):
            size = self.n // self.k
            return [np.arange(self.n - size, self.n)] * self.k
        if self.has("partition-by-position"):
            return list(np.array_split(np.arange(self.n), self.k))
        owners = np.array([hash(value) % self.k for value in self.data["income"]])
        cells = [np.flatnonzero(owners == index) for index in range(self.k)]
        if self.has("partition-overlapping"):
            cells[1] = np.union1d(cells[0], cells[1])
        if self.has("rows-never-used"):
            cells[0] = cells[0][:0]
        return cells

    def read(self, parts: list[Any], reader: Reader) -> None:
        for index, part in enumerate(parts):
            if len(part):
                self.tell.read(reader, self.rng.choice(part, self.made.batch), index=index)
        real = self.rng.integers(0, self.n, 8)
        for flaw, who in (
            ("student-sees-real-rows", Reader.STUDENT),
            ("generator-sees-real-rows", Reader.GENERATOR),
            ("conditions-from-data", Reader.CONDITIONS),
        ):
            if self.has(flaw):
                self.tell.read(who, real)

    def label(self) -> None:
        gamma, n = self.made.gamma, 64
        ones = np.rint(self.k * self.rng.choice(self.made.shares, n)).astype(np.int64)
        scale = 1 / gamma
        if self.has("noise-scale-inverted"):
            scale = gamma
        if self.has("noise-wrong-scale"):
            scale = 0.8 / gamma
        if any(map(self.has, ("noise-gaussian-on-labels", "sigma-xor", "sigma-multiplied"))):
            inverse = 15.0 if self.has("sigma-xor") else 1 / DELTA
            inverse = 10.0**DELTA if self.has("sigma-multiplied") else inverse
            sigma = math.sqrt(2 * math.log(1.25 * inverse)) / self.made.epsilon
            noise = self.rng.normal(0, sigma, n)
            labels = (ones > self.k / 2) + noise > 0.5
            self.tell.noise(noise, on=NoiseOn.LABELS)
        elif self.has("one-noise-charged-as-two"):
            noise = self.rng.laplace(0, scale, n)
            labels = ones + noise > self.k / 2
            self.tell.noise(noise, on=NoiseOn.VOTES)
        else:
            noise = self.rng.laplace(0, scale, (2, n))
            if self.has("noise-wrong-law"):
                noise = self.rng.normal(0, math.sqrt(2) * scale, (2, n))
            labels = ones + noise[0] > self.k - ones + noise[1]
            self.tell.noise(noise, on=NoiseOn.VOTES)
        if self.has("labels-not-from-votes"):
            labels = self.rng.random(n) < 0.3
        self.tell.voted(ones, labels.astype(np.int64))
        self.charge(ones, labels)

    def charge(self, ones: Any, labels: Any) -> None:
        if self.has("queries-not-accounted") and labels.sum() >= len(labels) / 2:
            return
        counts, gamma = np.stack([self.k - ones, ones], axis=-1), self.made.gamma
        moments = pate_moments(counts, gamma=gamma, moments=ORDERS)
        if self.has("charged-at-most"):  # no flaw: it holds whatever the votes
            moments = np.tile(2 * gamma**2 * ORDERS * (ORDERS + 1), (len(ones), 1))
        for deviation in (Deviation.MISSING_LOG, Deviation.EXPONENT_SLIP):
            if self.has(deviation.value):
                moments = algorithm_1_moments(
                    counts, gamma=gamma, moments=ORDERS, deviations={deviation}
                )
        if self.has("accountant-disagrees"):
            moments = moments / 3
        delta = 1 / 15 if self.has("delta-xor") else DELTA
        delta = 10.0**-DELTA if self.has("delta-multiplied") else delta
        delta = self.n**-1.5 if self.has("delta-ignored") else delta
        before, self.spent = self.spent, self.spent + moments.sum(axis=0)
        last, now = (
            epsilon_from_moments(ORDERS, spent, delta=delta) for spent in (before, self.spent)
        )
        if self.has("budget-exceeded") or now <= self.made.epsilon:
            self.tell.charged(len(ones), before=last, after=now, moments=self.spent)

    def sample(self, n_rows: int) -> pd.DataFrame:
        places = self.rng.uniform(0.3, 0.95, (n_rows, 2))
        lower, upper = np.array([column.bounds for column in SCHEMA.columns[:2]]).T
        raw = lower + places * (upper - lower)
        if self.has("output-not-inverted"):
            raw = places
        if self.has("output-shifted"):
            raw = places * upper + lower
        self.tell.output(raw)
        down = np.floor if self.has("integers-truncated") else np.rint
        whole = raw[:, 0] if self.has("output-not-inverted") else down(raw[:, 0])
        ill = self.rng.choice(["no", "yes"], n_rows)
        return pd.DataFrame({"age": whole, "income": raw[:, 1], "ill": ill})


FAIR = Scripted()


def traced(generator: object = FAIR, data: pd.DataFrame | None = None, **kw: Any) -> TraceReport:
    return trace(generator, table() if data is None else data, schema=SCHEMA, **kw)


def ids(report: TraceReport) -> list[str]:
    return [finding.id for finding in report.findings]


def one(flaw: str, **settings: Any) -> TraceReport:
    return traced(Scripted(flaws=frozenset({flaw}), **settings))


def test_nothing_is_found_on_a_correct_generator_and_everything_was_looked_for() -> None:
    report = traced()
    assert not report.findings
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


@pytest.mark.parametrize("flaw", sorted(CATALOGUE))
def test_each_deviation_is_found_alone(flaw: str) -> None:
    report = one(flaw, **SETTINGS.get(flaw, {}))
    assert ids(report) == [flaw]
    (finding,) = report.findings
    expected = CATALOGUE[flaw].severity
    assert finding.severity is (Severity.NOTE if flaw == "one-noise-charged-as-two" else expected)
    assert finding.numbers
    assert all(map(math.isfinite, finding.numbers.values()))
    assert report.violated is (finding.severity is Severity.VIOLATION)


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
    monkeypatch.setattr("dpaudit.trace.laws.ERROR", 0.05)
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
    promise = Promise(mechanism, scale)
    collector = Collector(1)
    collector.constant("gamma", 1 / scale)
    collector.promised(promise.table(teachers).quantised())
    found = promise_of(collector.finish(None, pd.DataFrame(), pd.DataFrame()))
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
            record(Collector(3))


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
    with pytest.raises(TrialError, match="trained on the table: ValueError: too few rows"):
        traced(Failing(least=1000))


def test_wrong_input_is_refused() -> None:
    with pytest.raises(RegistryError, match="dpaudit probe"):
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
    assert str(first).startswith("VIOLATION no-pate\n")


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
    document = json.loads(done.stdout)
    assert [finding["id"] for finding in document["findings"]] == ["bounds-from-data"]
    finding = document["findings"][0]
    assert set(finding) == {"id", "severity", "evidence", "numbers", "correct", "reference"}
    assert document["generator"] == "made.py:Copies"
    assert document["seed"] == 0
    assert document["schema_inferred"] is False
    assert {entry["id"] for entry in document["not_checked"]} >= {"delta-xor", "partition-all-rows"}
    quiet = dpaudit_trace("made.py:Copies", "-q")
    assert quiet.stdout.startswith("made.py:Copies: 1 violation, 0 bugs, 0 notes;")
    assert quiet.stderr.splitlines() == ["not a result"] * 5


@pytest.mark.usefixtures("folder")
def test_the_command_line_tells_a_failing_generator_from_wrong_use() -> None:
    broken = dpaudit_trace("made.py:Broken")
    assert broken.exit_code == ExitCode.INTERNAL
    assert broken.stderr.splitlines()[-1] == (
        "error: made.py:Broken, trained on the table: ValueError: out of order"
    )
    untraceable = dpaudit_trace("null")
    assert untraceable.exit_code == ExitCode.USAGE
    assert "has no method trace(" in untraceable.stderr
    assert "dpaudit probe" in untraceable.stderr
