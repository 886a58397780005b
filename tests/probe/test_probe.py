"""Probes: each toy's leak is found, and nothing else; honest generators are not flagged."""

from __future__ import annotations

import inspect
import json
import math
import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

import probed_toys as toys
from documents import read_document
from dpaudit.cli.console import ExitCode
from dpaudit.cli.diagnosis import probe as command
from dpaudit.cli.main import app
from dpaudit.errors import SettingsError
from dpaudit.model.claim import Neighbours, PrivacyClaim
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.probe import PROBES, ProbeReport, ProbeSettings, ProbeStatus, Severity, probe
from dpaudit.probe.challenge import fewest_guesses, one_coin, rule
from dpaudit.probe.inputs import group_claim, permutation_p

TOYS = toys.__file__

SCHEMA = Schema(
    columns=(
        Column(name="age", kind=Kind.INTEGER, lower=0, upper=120),
        Column(name="income", kind=Kind.CONTINUOUS, lower=0, upper=100),
        Column(name="job", kind=Kind.CATEGORICAL, categories=("a", "b", "c", "d")),
        Column(name="sick", kind=Kind.BINARY, categories=(0, 1)),
    ),
    label="sick",
)


def table(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 60, n),
            "income": rng.normal(30, 5, n).round(3),
            "job": rng.choice(["a", "b", "c"], n),
            "sick": rng.choice([0, 1], n, p=[0.7, 0.3]),
        }
    )


def alarms(report: ProbeReport) -> list[str]:
    return [result.id for result in report.of(ProbeStatus.ALARM)]


LEAKS = {
    "range-follows-record": toys.RangeOfData,
    "category-follows-record": toys.CategoriesOfData,
    "constancy-follows-record": toys.ConstantsOfData,
    "missing-follows-record": toys.LowWhereMissing,
    "target-followed": toys.KeyedToOne,
    "label-counts-copied": toys.LabelsOfData,
    "rows-copied-verbatim": toys.RowsOfData,
    "seed-ignored": toys.SeedIgnored,
    "nothing-random": toys.NothingRandom,
    "settings-follow-rows": toys.TeachersFromRows,
    "row-order-matters": toys.OrderMatters,
    "row-count-leaks": toys.OwnRowCount,
    "epsilon-ignored": toys.EpsilonIgnored,
    "delta-ignored": toys.DeltaIgnored,
    "scale-wrong": toys.UnitScale,
    "integers-truncated": toys.Truncated,
}


SETTINGS: dict[str, dict[str, Any]] = {
    "target-followed": {"age": int(table().age[7]), "income": float(table().income[7])}
}
"""What a toy is built with beside the schema."""
ALSO = {
    "range-follows-record": ["constancy-follows-record"],
    "category-follows-record": ["constancy-follows-record"],
    "target-followed": ["seed-ignored"],
}
"""Probes that see the same leak: in a constant column every value is new, and a fit that draws no
noise reveals a watched record."""


def schema_with_missing(name: str) -> Schema:
    columns = tuple(replace(column, missing=column.name == name) for column in SCHEMA.columns)
    return replace(SCHEMA, columns=columns)


def test_the_command_has_every_setting_and_leaves_its_default_to_the_settings() -> None:
    options = inspect.signature(command).parameters
    assert all(options[setting.name].default is None for setting in fields(ProbeSettings))


def test_a_setting_that_no_probe_has_is_refused_before_any_training() -> None:
    with pytest.raises(TypeError, match="fit_"):
        probe("null", table(), schema=SCHEMA, fit_=3)


def test_every_probe_has_a_toy() -> None:
    assert list(LEAKS) == [one.id for one in PROBES]


@pytest.mark.parametrize("leak", LEAKS)
def test_each_leak_is_found_and_nothing_else(leak: str) -> None:
    schema = schema_with_missing("income") if leak == "missing-follows-record" else SCHEMA
    toy = LEAKS[leak](schema=schema, **SETTINGS.get(leak, {}))
    watched = "row:7" if leak == "target-followed" else None
    report = probe(toy, table(), schema=schema, target=watched)
    assert alarms(report) == [leak, *ALSO.get(leak, [])], str(report)
    found = report.of(ProbeStatus.ALARM)[0]
    [expected] = [one for one in PROBES if one.id == leak]
    assert found.severity is expected.severity
    assert found.certainty or (found.p_value or 1.0) <= found.false_alarm_rate
    if leak != "row-count-leaks":  # one with rows of its own number cannot be looked at further
        assert not report.of(ProbeStatus.FAILED), str(report)
    if found.severity is Severity.VIOLATION:
        with pytest.raises(AssertionError, match=leak):
            report.assert_no_violation()


@pytest.mark.parametrize(
    "toy", [toys.Toy, toys.Rounded, toys.AnswersAboutMaximum, toys.SeededWhenSampled]
)
@pytest.mark.parametrize(
    "neighbours",
    [Neighbours.REPLACE_ONE, pytest.param(Neighbours.ADD_REMOVE, marks=pytest.mark.ci)],
)
def test_honest_toys_are_not_flagged(toy: type[toys.Toy], neighbours: Neighbours) -> None:
    report = probe(
        toy(schema=SCHEMA),
        table(),
        schema=SCHEMA,
        epsilon=1.0,
        neighbours=neighbours,
        target="row:3",
    )
    assert not alarms(report), str(report)
    report.assert_no_violation()


@pytest.mark.parametrize("status", [ProbeStatus.FAILED, ProbeStatus.NOT_APPLICABLE])
def test_probes_that_say_nothing_pass_no_test(status: ProbeStatus) -> None:
    report = probe(toys.Toy(schema=SCHEMA), table(), schema=SCHEMA, only=["seed-ignored"])
    report.assert_no_violation()
    [result] = report.probes
    silent = replace(report, probes=(replace(result, status=status),))
    with pytest.raises(AssertionError, match="seed-ignored"):
        silent.assert_no_violation()


def test_replaced_records_are_followed_too() -> None:
    for leak in ("range-follows-record", "label-counts-copied", "rows-copied-verbatim"):
        report = probe(
            LEAKS[leak](schema=SCHEMA),
            table(),
            schema=SCHEMA,
            only=[leak],
            epsilon=1.0,
            neighbours=Neighbours.REPLACE_ONE,
        )
        assert alarms(report) == [leak], str(report)


@pytest.mark.parametrize(("runs", "most"), [(20, 4), pytest.param(40, 6, marks=pytest.mark.ci)])
def test_the_hardest_honest_generator_is_flagged_at_the_stated_rate(runs: int, most: int) -> None:
    # At 3.8 % for the probe, so that alarms happen: more have p < .001.
    flagged = sum(
        bool(
            alarms(
                probe(
                    toys.AnswersAboutMaximum(schema=SCHEMA),
                    table(30),
                    schema=SCHEMA,
                    only=["range-follows-record"],
                    rows=10,
                    confidence=0.501,
                    seed=seed,
                )
            )
        )
        for seed in range(runs)
    )
    assert flagged <= most


def test_missing_values_that_follow_a_record_are_found() -> None:
    schema = schema_with_missing("income")
    leaky = probe(toys.MissingOfData(schema=schema), table(), schema=schema)
    assert alarms(leaky) == ["missing-follows-record"], str(leaky)
    honest = probe(toys.Toy(schema=schema), table(), schema=schema, only=["missing-follows-record"])
    assert [result.status for result in honest.probes] == [ProbeStatus.PASSED]


@pytest.mark.parametrize("neighbours", Neighbours)
def test_a_leak_keyed_to_one_record_shows_only_where_that_one_is_watched(
    neighbours: Neighbours,
) -> None:
    toy = toys.KeyedToOne(schema=SCHEMA, **SETTINGS["target-followed"])
    for watched, found in (("row:7", ["target-followed"]), ("row:8", []), (None, [])):
        report = probe(
            toy,
            table(),
            schema=SCHEMA,
            epsilon=1.0,
            neighbours=neighbours,
            target=watched,
            only=["target-followed"],
        )
        assert alarms(report) == found, str(report)
        [result] = report.probes
        assert (result.status is ProbeStatus.NOT_APPLICABLE) == (watched is None)
        assert report.to_document()["target"] == watched


def test_the_watched_record_is_in_the_sample_of_a_large_table() -> None:
    toy = toys.KeyedToOne(schema=SCHEMA, **SETTINGS["target-followed"])
    report = probe(
        toy, table(), schema=SCHEMA, records=20, target="row:7", only=["target-followed"]
    )
    assert report.records == 20
    assert alarms(report) == ["target-followed"], str(report)


def test_the_registered_copycat_is_caught_by_its_own_target() -> None:
    report = probe("copycat", table(), schema=SCHEMA, target="row:7", only=["target-followed"])
    assert alarms(report) == ["target-followed"], str(report)


@pytest.mark.ci
def test_noise_of_the_sample_alone_is_flagged_at_the_stated_rate() -> None:
    # Randomised response at its claim: 3.1 % for the probe, so more than 5 of 40 have p < .002.
    flagged, tested = 0, 0
    for seed in range(40):
        [result] = probe(
            toys.SeededWhenSampled(schema=SCHEMA),
            table(20),
            schema=SCHEMA,
            only=["seed-ignored"],
            confidence=0.501,
            rows=5,
            seed=seed,
        ).probes
        flagged += result.status is ProbeStatus.ALARM
        tested += "coins guessed right" in result.evidence
    assert flagged <= 5
    assert tested >= 10


def test_a_generator_that_does_not_repeat_is_told_of_seedable() -> None:
    def unseeded(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
        return data.sample(n_rows, replace=True, random_state=np.random.default_rng())

    [result] = probe(unseeded, table(), schema=SCHEMA, epsilon=1.0, only=["seed-ignored"]).probes
    assert result.status is ProbeStatus.NOT_APPLICABLE
    assert "should say so (seedable = False)" in result.evidence


@pytest.mark.parametrize("toy", [toys.NoiseFixedInFit, toys.NoiseFixedInSample])
def test_fixed_noise_does_not_hide_behind_other_seeds(toy: type[toys.Toy]) -> None:
    report = probe(toy(schema=SCHEMA), table(), schema=SCHEMA, only=["seed-ignored"])
    assert alarms(report) == ["seed-ignored"], str(report)
    half = "fit" if toy is toys.NoiseFixedInFit else "sample"
    assert f"the seed of the {half} alone changes nothing" in report.probes[0].evidence


def test_no_seed_is_named_as_what_the_generator_was_called_with() -> None:
    report = probe(toys.NothingRandom(schema=SCHEMA), table(), schema=SCHEMA)
    [found] = report.of(ProbeStatus.ALARM)
    assert "called with seed=None" in found.evidence


@pytest.mark.parametrize("toy", [toys.OneTable, toys.OneRow])
def test_a_constant_output_passes_no_probe_of_it(toy: type[toys.Toy]) -> None:
    report = probe(toy(schema=SCHEMA), table(), schema=SCHEMA, target="row:3")
    assert not report.violations, str(report)
    passed = {result.id for result in report.of(ProbeStatus.PASSED)}
    form = {"row-count-leaks", "settings-follow-rows", "integers-truncated"}
    assert passed <= form, str(report)


def test_missing_output_passes_no_probe_that_reads_it() -> None:
    schema = schema_with_missing("income")
    report = probe(toys.NoIncomes(schema=schema), table(), schema=schema)
    assert not alarms(report), str(report)
    ended = {result.id: result for result in report.probes}
    assert ended["missing-follows-record"].status is ProbeStatus.NOT_APPLICABLE
    assert ended["rows-copied-verbatim"].status is ProbeStatus.NOT_APPLICABLE
    for name in ("range-follows-record", "scale-wrong"):  # there is a second numeric column
        assert ended[name].evidence.startswith("apart from income, the same in every row"), name


def test_a_size_that_is_left_open_is_a_shape_like_any_other() -> None:
    report = probe(
        toys.OpenShape(schema=SCHEMA), table(), schema=SCHEMA, only=["settings-follow-rows"]
    )
    assert [result.status for result in report.probes] == [ProbeStatus.PASSED], str(report)


@pytest.mark.parametrize("when_trained", [False, True])
def test_a_refusal_of_a_tiny_epsilon_or_delta_is_no_failure(when_trained: bool) -> None:
    toy = toys.RefusesTiny(schema=SCHEMA, when_trained=when_trained)
    report = probe(toy, table(), schema=SCHEMA, only=["epsilon-ignored", "delta-ignored"])
    for result in report.probes:
        assert result.status is ProbeStatus.NOT_APPLICABLE, str(report)
        assert "refuses" in result.evidence
        assert "no noise scale is large enough" not in str(report)  # may quote records
    never = toys.NeverTrains(schema=SCHEMA)
    report = probe(never, table(), schema=SCHEMA, only=["epsilon-ignored"])
    assert [result.status for result in report.probes] == [ProbeStatus.FAILED]


def test_a_bare_function_is_probed() -> None:
    report = probe(toys.over_the_rows, table(), epsilon=1.0, only=["rows-copied-verbatim"])
    assert alarms(report) == ["rows-copied-verbatim"]
    assert report.schema_inferred
    assert "inferred from the table" in " ".join(str(report).split())


def test_a_claim_that_permits_much_takes_more_fits() -> None:
    few, many = (
        probe(
            toys.RangeOfData(schema=SCHEMA),
            table(),
            schema=SCHEMA,
            epsilon=2.5,
            only=["range-follows-record"],
            fits=fits,
        ).probes[0]
        for fits in (30, 400)
    )
    assert few.status is ProbeStatus.NOT_APPLICABLE
    assert "`fits`" in few.evidence
    assert many.status is ProbeStatus.ALARM


def test_a_failing_generator_is_reported_and_not_swallowed() -> None:
    report = probe(toys.Raises(schema=SCHEMA), table(), schema=SCHEMA)
    failed = report.of(ProbeStatus.FAILED)
    [said] = {result.evidence for result in failed}
    assert re.fullmatch(r"ValueError at \w+\.py:\d+ in fit", said)  # its text may quote records
    assert len(failed) >= 10
    assert not report.violations


def test_the_p_value_that_alarms_is_that_of_the_claim() -> None:
    claim = PrivacyClaim(epsilon=1.0)
    guesses = fewest_guesses(claim, 0.01 / 16)
    assert guesses is not None
    share = 1 / (1 + math.exp(-1))

    def tail(r: int) -> float:  # one wrong guess or none
        return share**r + r * share ** (r - 1) * (1 - share)

    assert tail(guesses) <= 0.01 / 16 < tail(guesses - 1)
    assert fewest_guesses(PrivacyClaim(epsilon=30.0), 0.01) is None


def test_group_privacy_adds_up() -> None:
    claim = PrivacyClaim(epsilon=0.01, delta=1e-6)
    group = group_claim(claim, 2)
    assert group is not None
    assert group.epsilon == pytest.approx(0.02)
    assert group.delta == pytest.approx(1e-6 * (1 + math.exp(0.01)))
    assert group_claim(PrivacyClaim(epsilon=1.0), 100) is None


def test_a_rule_needs_a_gap_wider_than_the_spread() -> None:
    low, high = np.array([[0.0], [1.0]]), np.array([[9.0], [10.0]])
    found = rule(high, low)
    assert found is not None
    assert found.above
    assert found.guess(np.array([8.0]))
    assert not found.guess(np.array([2.0]))
    assert rule(low, low + 1.5) is None


def test_the_permutation_test_is_exact() -> None:
    rng = np.random.default_rng(5)
    apart = np.concatenate([rng.random((4, 3)), rng.random((4, 3)) + 9])
    assert permutation_p(apart) == pytest.approx(2 / 70)
    values = [permutation_p(rng.random((8, 3))) for _ in range(200)]
    assert np.mean(np.array(values) <= 0.1) <= 0.17  # 3 standard errors
    assert permutation_p(np.ones((8, 3))) == 1.0


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    table().to_csv("table.csv", index=False)
    SCHEMA.save("schema.json")
    return tmp_path


def dpaudit(generator: str, *words: str) -> Result:
    given = ["--data", "table.csv", "--schema", "schema.json", *words]
    return CliRunner().invoke(app, ["probe", generator, *given])


@pytest.mark.usefixtures("folder")
def test_a_violation_exits_1_alarms_first_and_80_columns() -> None:
    done = dpaudit(f"{TOYS}:RangeOfData")
    assert done.exit_code == ExitCode.VIOLATION, done.output
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines.index("range-follows-record (violation)") < lines.index("Probes: no alarm")
    assert "range-follows-record: alarm" in done.stderr


@pytest.mark.usefixtures("folder")
def test_json_is_one_document_and_a_bug_exits_0() -> None:
    words = ["--json", "--only", "integers-truncated", "--html", "p.html", "--markdown", "p.md"]
    done = dpaudit(f"{TOYS}:Truncated", *words)
    assert done.exit_code == ExitCode.PASS, done.output
    again = json.loads(done.stdout)["reproduce"]
    assert again == (
        f"dpaudit probe {TOYS}:Truncated --data table.csv --schema schema.json "
        "--only integers-truncated"
    )
    for file in (Path("p.html"), Path("p.md")):
        assert "1 bug; 0 passed" in file.read_text()
        assert "integers-truncated (bug)" in file.read_text()
    [found] = read_document(ProbeReport, done.stdout)["probes"]
    assert found["status"] == "alarm"
    assert found["severity"] == Severity.BUG
    assert found["numbers"]["mean"] == pytest.approx(-0.5, abs=0.15)


@pytest.mark.usefixtures("folder")
def test_wrong_input_exits_2_in_one_line() -> None:
    for words in (
        ["--only", "range"],
        ["--confidence", "1"],
        ["--fits", "0"],
        ["--seed", "-1"],
        ["--target", "row:60"],
        ["--target", "farthest"],
    ):
        done = dpaudit("null", *words)
        assert done.exit_code == ExitCode.USAGE, done.output
        assert len(done.stderr.splitlines()) == 1
    with pytest.raises(SettingsError, match="did you mean 'range-follows-record'"):
        probe("null", table(), only=["range-follows-records"])


@pytest.mark.usefixtures("folder")
def test_too_few_fits_are_named_as_the_option() -> None:
    words = ("--epsilon", "8", "--only", "range-follows-record", "--fits", "8")
    said = " ".join(dpaudit(f"{TOYS}:RangeOfData", *words).stdout.split())
    assert "raise --fits, or probe at a smaller --epsilon" in said


@pytest.mark.usefixtures("folder")
def test_a_generator_that_always_raises_was_not_probed() -> None:
    done = dpaudit(f"{TOYS}:Raises")
    assert done.exit_code == ExitCode.USAGE
    assert "Probes: not applicable" in done.stdout  # as well as those that failed
    said = " ".join(done.stdout.split())
    assert re.search(r"NOTHING PROBED \d+ probes failed: ValueError at \S+ in fit", said)
    assert "no alarm," not in said


@pytest.mark.usefixtures("folder")
def test_when_every_probe_fails_the_exit_code_says_so() -> None:
    done = dpaudit(f"{TOYS}:Raises", "--only", "seed-ignored", "-q")
    assert done.exit_code == ExitCode.USAGE
    assert "NOTHING PROBED  1 probe failed: ValueError at " in done.stdout


@pytest.mark.parametrize("name", ["null", "laplace-histogram", "randomised-response"])
def test_registered_honest_generators_are_not_flagged(name: str) -> None:
    report = probe(name, table(), schema=SCHEMA, seed=3, target="row:7")
    assert not alarms(report), str(report)
    assert not report.of(ProbeStatus.FAILED), str(report)


@pytest.mark.parametrize(
    "name", [pytest.param("pate-gan", marks=pytest.mark.ci), "pate-gan-marginals"]
)
def test_pate_gans_with_a_proof_are_not_flagged(name: str) -> None:
    report = probe(name, table(), schema=SCHEMA, parameters={"teachers": 10})
    assert not alarms(report), str(report)
    assert not report.of(ProbeStatus.FAILED), str(report)


def test_one_coin_is_guessed_no_better_than_the_claim_permits() -> None:
    one = one_coin(PrivacyClaim(epsilon=1.0, delta=0.1))
    right = (math.e + 0.1) / (1.0 + math.e)  # total variation
    assert one.delta == 0.0
    assert math.exp(one.epsilon) / (1.0 + math.exp(one.epsilon)) == pytest.approx(right)
