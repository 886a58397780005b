"""The command line: exit codes, streams, and one-line errors before any training."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from dpaudit.bounds.table import BOUNDS, Observed, entries_for
from dpaudit.cli.console import ExitCode, exit_code, messages, results
from dpaudit.cli.main import app
from dpaudit.model.choices import FailOn, WorstCase
from dpaudit.plugins.named import libraries
from dpaudit.results.result import AuditResult, result_schema
from dpaudit.results.verdict import Verdict

QUICK = "groundhog-naive,classifier=logistic-regression"
SMALL = ["--attack", QUICK, "--shadow-models", "40", "--jobs", "1"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every command runs in a folder of its own, with a table and its schema in it."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    table = pd.DataFrame({"age": rng.integers(20, 60, 40), "income": rng.normal(30, 5, 40)})
    table.to_csv("table.csv", index=False)
    columns = [
        {"name": "age", "kind": "integer", "lower": 0, "upper": 120},
        {"name": "income", "kind": "continuous", "lower": 0, "upper": 100},
    ]
    Path("schema.json").write_text(json.dumps({"columns": columns}))
    return tmp_path


def dpaudit(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


def audit(*words: str) -> Result:
    return dpaudit("audit", *words, "--data", "table.csv", "--schema", "schema.json", *SMALL)


def test_a_violation_exits_1_and_leaves_a_report() -> None:
    done = audit("copycat", "--out", "run")
    assert done.exit_code == ExitCode.VIOLATION, done.output
    lines = done.stdout.splitlines()
    assert lines[0].startswith("VIOLATION  claimed epsilon 1, empirical epsilon at least 2.")
    assert "\x1b" not in done.output  # no colour where there is no terminal
    assert lines[-1].startswith("reproduce dpaudit audit copycat --data table.csv")
    written = {path.name for path in Path("run").iterdir()}
    # Nothing else: the pickled table that workers read is gone.
    assert written - {"lock", "salt", "streams.json", "workers.log"} == {
        *("result.json", "report.html", "report.md", "trials.sqlite")
    }
    assert "positive control: 14 of 14" in done.stderr


def test_a_second_look_at_the_same_trials_is_inconclusive_and_a_fresh_seed_is_proposed() -> None:
    import shlex

    first = audit("copycat")
    assert first.exit_code == ExitCode.VIOLATION, first.output
    [run] = Path("runs").iterdir()
    larger = dpaudit(
        *("audit", "copycat", "--data", "table.csv", "--schema", "schema.json"),
        *(*SMALL, "--shadow-models", "50"),
    )
    assert larger.exit_code == ExitCode.INCONCLUSIVE, larger.output
    assert f"warning: these shadow models were already judged in {run.name}, which" in larger.stderr
    assert "audit with another --seed" in larger.stderr
    lines = larger.stdout.splitlines()
    assert lines[0].startswith("INCONCLUSIVE")
    assert lines[2].startswith("why       these shadow models were already judged in copycat-")
    [report] = [line.removeprefix("report    ") for line in lines if line.startswith("report  ")]
    page, document = Path(report).read_text(), Path(report).with_name("result.json").read_text()
    assert "so its bound proves nothing" in page
    assert json.loads(document)["verdict"] == "inconclusive"
    assert f"already judged in {run.name}" in json.loads(document)["reasons"][0]
    assert f"already judged in {run.name}" in page
    words = " ".join(larger.stdout.split())
    assert "then report both audits: the new one adds 5 % error probability" in words
    assert words.count("judged") == 1  # each thing once
    assert words.count("fresh seed") + words.count("another seed") == 0  # the command has it
    [command] = [line.removeprefix("next      dpaudit ") for line in lines if line[:5] == "next "]
    fresh = dpaudit(*shlex.split(command), "--jobs", "1")
    assert fresh.exit_code == ExitCode.VIOLATION, fresh.output
    assert "warning: these shadow models" not in fresh.output


@pytest.mark.ci
def test_a_worst_case_needs_no_table_and_its_command_gives_the_same_result() -> None:
    import shlex

    words = ["copycat", "--worst-case", "opposite", "--schema", "schema.json", *SMALL]
    first = dpaudit("audit", *words, "--out", "first")
    assert first.exit_code == ExitCode.VIOLATION, first.output
    assert "auditing copycat on worst-case:opposite" in first.stderr
    command = first.stdout.splitlines()[-1].removeprefix("reproduce dpaudit ")
    again = dpaudit(*shlex.split(command), "--out", "again")
    assert again.exit_code == ExitCode.VIOLATION
    results = [AuditResult.load(run) for run in ("first", "again")]
    assert replace(results[0], seconds=0.0) == replace(results[1], seconds=0.0)
    missing = dpaudit("audit", "copycat")
    assert missing.exit_code == ExitCode.USAGE
    assert missing.stderr == "error: no table to audit on: give --data, or --worst-case\n"


@pytest.mark.ci
def test_the_reproduce_command_gives_the_same_result() -> None:
    import shlex

    first = audit("copycat", "--out", "first")
    command = first.stdout.splitlines()[-1].removeprefix("reproduce dpaudit ")
    again = dpaudit(*shlex.split(command), "--out", "again")
    assert again.exit_code == ExitCode.VIOLATION
    results = [AuditResult.load(run) for run in ("first", "again")]
    assert replace(results[0], seconds=0.0) == replace(results[1], seconds=0.0)


def test_json_prints_one_document_that_fits_its_schema() -> None:
    import jsonschema  # type: ignore[import-untyped]

    done = audit("null", "--json")
    assert done.exit_code == ExitCode.PASS
    document = json.loads(done.stdout)
    jsonschema.validate(document, result_schema())
    assert document["verdict"] == "consistent"


def test_no_colour_where_nobody_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert messages().no_color
    monkeypatch.delenv("NO_COLOR")
    assert not messages().no_color
    assert results().no_color


def test_quiet_prints_one_line_and_no_progress() -> None:
    done = audit("null", "-q")
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == ""


def test_too_few_models_exit_3_unless_allowed() -> None:
    words = ("null", "--epsilon", "9", "--out", "run")
    assert audit(*words).exit_code == ExitCode.INCONCLUSIVE
    [why] = audit(*words, "-q").stdout.splitlines()
    assert "not decided; " in why
    assert "cannot decide: the upper limit for this many shadow models is" in why
    assert audit(*words, "--fail-on", "violation").exit_code == ExitCode.PASS


@pytest.mark.parametrize(
    ("verdict", "codes"),
    [
        (Verdict.CONSISTENT, (0, 0, 0)),
        (Verdict.VIOLATION, (1, 1, 0)),
        (Verdict.INCONCLUSIVE, (0, 3, 0)),
        (Verdict.INVALID, (3, 3, 0)),
    ],
)
def test_exit_codes_of_verdicts(verdict: Verdict, codes: Sequence[int]) -> None:
    order = (FailOn.VIOLATION, FailOn.INCONCLUSIVE, FailOn.NEVER)
    assert tuple(int(exit_code(verdict, fail_on)) for fail_on in order) == tuple(codes)


BAD = {
    "missing file": (["null", "--data", "nope.csv"], "nope.csv does not exist"),
    "not a table": (["null", "--data", "binary.csv"], "not a CSV table"),
    "missing column": (["null", "--schema", "wider.json"], "column 'height' is missing"),
    "out of bounds": (["null", "--schema", "narrow.json"], "outside the bounds [0, 30]"),
    "constant columns": (
        ["null", "--data", "constant.csv"],
        "column 'b' is constant (one value everywhere)",
    ),
    "no such row": (["null", "--target", "row:40"], "the table has rows 0 to 39"),
    "malformed target": (
        ["null", "--target", "last"],
        "not one of exposing, farthest, vulnerable, row:N, record:FILE",
    ),
    "epsilon 0": (["null", "--epsilon", "0"], "greater than 0"),
    "epsilon negative": (["null", "--epsilon", "-1"], "greater than 0"),
    "epsilon NaN": (["null", "--epsilon", "nan"], "greater than 0"),
    "delta 1": (["null", "--delta", "1"], "delta must be in [0, 1)"),
    "delta negative": (["null", "--delta", "-0.1"], "delta must be in [0, 1)"),
    "fewer rows than teachers": (["pate-gan"], "use fewer, such as teachers=4"),
    "unknown generator": (["pategan"], "did you mean 'pate-gan'?"),
    "unknown attack": (["null", "--attack", "groundhgo"], "did you mean 'groundhog'?"),
    "unknown parameter": (["null", "-p", "epsilonn=1"], "did you mean 'epsilon'?"),
    "parameter that is no number": (
        ["null", "-p", "epsilon=abc"],
        "error: parameter 'epsilon' of null is 'abc': it takes a number",
    ),
    "parameter without value": (["null", "-p", "epsilon"], "must look like key=value"),
    "no sample": (["mine.py:NoSample", "--epsilon", "1"], "lacks the method sample"),
    "no fit": (["mine.py:Nothing", "--epsilon", "1"], "no method fit"),
    "no claim to stop at": (["mine.py:resample", "--sequential"], "give --epsilon and --delta"),
    "no such file": (["other.py:Gan"], "no file other.py"),
    "no such attribute": (["mine.py:NoSampel"], "did you mean 'NoSample'?"),
    "broken file": (["broken.py:Gan"], "broken.py fails: ZeroDivisionError"),
    "unwritable run folder": (["null", "--out", "table.csv/run"], "cannot be written"),
    "odd number of models": (["null", "--shadow-models", "41"], "must be even"),
    "no jobs": (["null", "--jobs", "0"], "--jobs must be a whole number of at least 1, got 0"),
    "too many models": (["null", "--shadow-models", "9999999998"], "from 20 to 100,000"),
    "no rows": (["null", "--set", "rows=0"], "at least 1"),
    "unknown option": (["null", "--bogus"], "no such option --bogus"),
    "unknown relation": (["null", "--set", "neighbours=near"], "replace-one"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_exit_2_before_any_training(case: str) -> None:
    Path("binary.csv").write_bytes(bytes(range(128, 256)) * 8)
    Path("constant.csv").write_text("a,b\n1,2\n1,2\n1,2\n")
    columns = json.loads(Path("schema.json").read_text())["columns"]
    extra = {"name": "height", "kind": "continuous", "lower": 0, "upper": 3}
    Path("wider.json").write_text(json.dumps({"columns": [*columns, extra]}))
    Path("narrow.json").write_text(
        json.dumps({"columns": [{**columns[0], "upper": 30}, columns[1]]})
    )
    Path("broken.py").write_text("1 / 0\n")
    Path("mine.py").write_text(
        "class NoSample:\n    def fit(self, data, *, seed):\n        return self\n"
        "class Nothing:\n    pass\n"
        "def resample(data, n_rows, seed):\n    return data\n"
    )
    words, message = BAD[case]
    given = ["--data", "table.csv"] if "--data" not in words else []
    if case not in ("missing column", "out of bounds", "constant columns"):
        given += ["--schema", "schema.json"]
    done = dpaudit("audit", *words, *given, *SMALL[2 if "--attack" in words else 0 : 2])
    assert done.exit_code == ExitCode.USAGE, done.output
    assert message in " ".join(done.stderr.split())
    assert done.stdout == ""
    errors = [line for line in done.stderr.splitlines() if not line.startswith("auditing ")]
    assert len(errors) == 1
    assert errors[0].startswith("error: ")
    assert not Path("runs").exists()


def test_a_crash_exits_4_and_not_1(monkeypatch: pytest.MonkeyPatch) -> None:
    def explode(*args: object, **kwargs: object) -> None:
        raise ValueError("a defect")

    monkeypatch.setattr("dpaudit.auditing.entry.run_audit", explode)
    done = audit("null")
    assert done.exit_code == ExitCode.INTERNAL
    assert done.stderr.splitlines()[-1] == "internal error: ValueError: a defect"


def test_synthesize_writes_a_table_and_its_claim() -> None:
    done = dpaudit(
        *("synthesize", "laplace-histogram", "-p", "epsilon=2", "--data", "table.csv"),
        *("--schema", "schema.json", "--rows", "7", "--out", "synthetic.csv"),
    )
    assert done.exit_code == ExitCode.PASS, done.output
    assert pd.read_csv("synthetic.csv").shape == (7, 2)
    claim = json.loads(Path("synthetic.csv.claim.json").read_text())
    assert claim["claim"]["epsilon"] == 2
    assert claim["seed"] is None
    assert claim["schema_inferred"] is False


def test_synthesize_draws_new_noise_each_time_unless_seeded() -> None:
    def table(*words: str) -> str:
        done = dpaudit("synthesize", "null", "--data", "table.csv", "--out", "s.csv", *words)
        assert done.exit_code == ExitCode.PASS
        return Path("s.csv").read_text()

    assert table() != table()
    assert table("--seed", "1") == table("--seed", "1")


def test_report_is_made_again_from_the_result_alone() -> None:
    audit("null", "--out", "run")
    before = Path("run/report.html").read_bytes()
    Path("run/report.html").unlink()
    assert dpaudit("report", "run").exit_code == ExitCode.PASS
    assert Path("run/report.html").read_bytes() == before
    assert "no result at nowhere" in dpaudit("report", "nowhere").stderr


def test_list_and_doctor() -> None:
    listed = dpaudit("list").stdout
    for name in ("pate-gan", "copycat", "groundhog", "query-target", "exact"):
        assert name in listed
    assert dpaudit("list", "attacks").stdout.count("groundhog") >= 4
    assert "Needs --access released." in dpaudit("list", "attacks").stdout
    cases = re.findall(r"^  (\S+)", dpaudit("list", "worst-cases").stdout, re.M)
    assert cases == list(WorstCase)
    one_line = " ".join(listed.split())
    for library in libraries():
        assert one_line.count(library.summary) == 1
        assert all(f"{library.name}:{method}" in one_line for method in library.methods)
    assert max(map(len, listed.splitlines())) <= 80
    shown = dpaudit("list", "pate-gan").stdout
    assert re.search(r"^teachers +50$", shown, re.M)
    assert max(map(len, shown.splitlines())) <= 80
    assert "Raises" not in shown  # of use to callers in Python alone
    attack = dpaudit("list", "groundhog").stdout
    assert "parameter (from Python)" in attack  # -p is the generator's
    unknown = dpaudit("list", "pate-gam")
    assert unknown.exit_code == ExitCode.USAGE
    assert "unknown name 'pate-gam' (did you mean 'pate-gan'?)" in unknown.stderr
    assert "(did you mean 'attacks'?)" in dpaudit("list", "atacks").stderr
    for entry in BOUNDS:  # whatever `list bounds` lists
        shown = dpaudit("list", entry.key.value).stdout
        assert shown.startswith(f"{entry.key.value}\n\nlabel     {entry.label}\n")
        assert entry.account in " ".join(shown.split())
    doctor = dpaudit("doctor")
    assert doctor.exit_code == ExitCode.PASS, doctor.output
    assert doctor.stdout.startswith("READY  this installation can run audits\n")
    assert "PROBLEM" not in doctor.stdout


def test_a_broken_plugin_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import EntryPoint

    import dpaudit.plugins.registry as registry

    real = registry.entry_points
    broken = EntryPoint("cracked", "no_such_module:Thing", registry.ATTACKS)

    def with_broken(**wanted: str) -> list[EntryPoint]:
        found = list(real(**wanted))
        fits = wanted["group"] == registry.ATTACKS and wanted.get("name") in (None, "cracked")
        return [*found, broken] if fits else found

    monkeypatch.setattr(registry, "entry_points", with_broken)
    done = dpaudit("list", "attacks")
    assert done.exit_code == ExitCode.PASS
    assert "groundhog" in done.stdout
    assert "warning: plugin 'cracked'" in done.stderr
    assert "fails to import" in audit("null", "--attack", "cracked").stderr


def test_an_attack_takes_settings() -> None:
    done = dpaudit(
        *("audit", "null", "--data", "table.csv", "--schema", "schema.json", "--json"),
        *("--attack", QUICK, "--shadow-models", "40", "--jobs", "1"),
    )
    assert done.exit_code == ExitCode.PASS, done.output
    document = json.loads(done.stdout)
    assert document["attack"] == QUICK
    wrong = audit("null", "--attack", "groundhog-naive,clasifier=x")
    assert wrong.exit_code == ExitCode.USAGE
    assert "did you mean 'classifier'?" in wrong.stderr
    wrong = audit("null", "--attack", "groundhog-naive,classifier=logistic-regresion")
    assert "did you mean 'logistic-regression'?" in " ".join(wrong.stderr.split())


def test_bounds_are_recomputed_from_a_run_without_training() -> None:
    audit("copycat", "--delta", "1e-5", "--out", "run")
    stored = json.loads(Path("run/result.json").read_text())["bounds"]
    Path("run/trials.sqlite").unlink()
    done = dpaudit("report", "run", "--bounds", "--json", "--assume", "gaussian")
    assert done.exit_code == ExitCode.PASS, done.output
    rows = {row["method"]: row for row in json.loads(done.stdout)["bounds"]}
    assert rows["fair_coin"]["value"] == stored["fair_coin"] > 1
    assert stored["exact"] is None
    from_counts = list(entries_for(Observed.COUNTS))
    assert {method for method, row in rows.items() if row["reason"]} == {
        entry.key.value for entry in from_counts
    }
    spoken = dpaudit("report", "run", "--bounds", "--confidence", "0.99").stdout
    assert "99 % confidence" in spoken
    assumed = [entry for entry in from_counts if not entry.valid and entry.assumption is None]
    assert spoken.count("estimate, not a proof") == len(assumed) >= 2
    assert "delta" in dpaudit("report", "run", "--bounds", "--delta", "2").stderr


@pytest.mark.ci
def test_an_early_stop_has_no_fixed_bound_to_recompute() -> None:
    done = dpaudit(
        *("audit", "copycat", "--data", "table.csv", "--sequential", "--shadow-models", "200"),
        *("--attack", QUICK, "--jobs", "1", "--out", "run"),
    )
    assert done.exit_code == ExitCode.VIOLATION
    rows = json.loads(dpaudit("report", "run", "--bounds", "--json").stdout)["bounds"]
    assert [row["method"] for row in rows] == ["sequential"]


def test_foreign_strings_steer_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    steering = "a\x1b[31m\u202eb"
    monkeypatch.setenv("NO_COLOR", "1")
    refused = dpaudit("audit", "copycat", "--data", f"{steering}.csv", "--epsilon", "1")
    assert refused.exit_code == ExitCode.USAGE
    assert "a\N{REPLACEMENT CHARACTER}" in refused.stderr
    assert all(line.isprintable() for line in refused.stderr.splitlines())


def test_without_a_claim_the_command_measures_and_exits_0() -> None:
    Path("mine.py").write_text(
        "def drawn(data, n_rows, seed):\n"
        "    return data.sample(n_rows, replace=True, random_state=seed % 2**32)\n"
    )
    done = dpaudit(
        "audit", "mine.py:drawn", "--data", "table.csv", "--schema", "schema.json", *SMALL
    )
    assert done.exit_code == ExitCode.PASS, done.output
    first, *lines = done.stdout.splitlines()
    assert first.startswith("MEASURED  empirical epsilon at least ")
    assert first.endswith(" (95 % confidence); no claim was given")
    assert not any("80 % power" in line or "in odds" in line for line in lines)
