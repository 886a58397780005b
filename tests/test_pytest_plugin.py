"""The pytest plugin, in sessions of its own."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import cast
from xml.etree import ElementTree

import pandas as pd
import pytest

from dpaudit.auditing.entry import audit_by_keywords
from dpaudit.game.pool import kill_workers
from dpaudit.pytest_plugin import SCALES, _line, _markdown, _samplers
from dpaudit.replaying.run import replay
from dpaudit.results.baseline import AuditOfTest
from samples import QUICK_ATTACKS

TABLE = """
import numpy as np
import pandas as pd
import pytest

rng = np.random.default_rng(0)
data = pd.DataFrame({"age": rng.integers(20, 60, 30), "income": rng.normal(30, 5, 30)})
QUICK = ["groundhog-naive,classifier=logistic-regression"]
OPTIONS = dict(shadow_models=40, attacks=QUICK, jobs=1)
"""

LEAKING = (
    TABLE
    + """
class Leaky:
    def __init__(self, rows):
        self.rows = rows

    def fit(self, data, *, seed):
        self.data = data
        return self

    def sample(self, n, *, seed):
        return self.data.sample(n, replace=True, random_state=seed).assign(age=len(self.data))


def test_leaky(dp_audit):
    dp_audit(Leaky(3), data, epsilon=0.5, delta=1e-5, **OPTIONS).assert_no_violation()
"""
)

HONEST = (
    TABLE
    + """
def constant(data, n_rows, seed):
    noise = np.random.default_rng(seed).normal(30, 5, n_rows)
    return pd.DataFrame({"age": 30, "income": noise}, index=range(n_rows))


def test_honest(dp_audit):
    result = dp_audit(constant, data, epsilon=1.0, **OPTIONS)
    result.assert_no_violation()
    assert (result.folder / "report.html").is_file()
"""
)


COUNTING = """constant(data, n_rows, seed):
    with open(__file__.replace("test_it.py", "trained.txt"), "a") as file:
        file.write("x")"""
"""The first lines of a generator that leaves a trace beside its file."""


LIGHT = (
    *("", ".errors", ".files", ".formatting"),
    *(".pytest_plugin", ".results", ".results.baseline"),
)
"""What every session of pytest loads of dpaudit: files that import the standard library alone."""


@pytest.fixture(scope="module")
def loaded(worlds: None) -> None:
    """What audits, reports and replays load: a session within this process unloads what it loads.

    Such a session takes this process's workers and worlds, and so a fraction of the time of one of
    its own.
    """
    data = pd.DataFrame({"age": range(20, 50), "income": range(30)})
    audit_by_keywords("null", data, shadow_models=24, attacks=QUICK_ATTACKS, jobs=1)
    replay("laplace-histogram", data, parameters={"column": "age"}, fits=1)
    data.to_feather(written := io.BytesIO())
    pd.read_feather(written)


def test_a_session_without_audits_loads_next_to_nothing(tmp_path: object) -> None:
    code = (
        "import sys, pytest\n"
        "pytest.main(['--collect-only', '-q', '-p', 'no:cacheprovider'])\n"
        "names = ('torch', 'pandas', 'numpy', 'scipy', 'sklearn', 'jinja2', 'typer', 'rich')\n"
        "heavy = [name for name in names if name in sys.modules]\n"
        "assert 'dpaudit.pytest_plugin' in sys.modules\n"
        "ours = {name[7:] for name in sys.modules if name.split('.')[0] == 'dpaudit'}\n"
        f"heavy += sorted(ours - set({LIGHT}))\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=str(tmp_path), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("loaded")
def test_a_violation_fails_with_everything_needed(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(LEAKING)
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*VIOLATION  claimed epsilon 0.5, empirical epsilon at least*",
            "*bound     2.*",
            "*leak      *age*",
            "*seed      0*",
            "*report    *report.html*",
        ]
    )


@pytest.mark.usefixtures("loaded")
def test_without_a_claim_a_test_has_the_empirical_epsilon(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        HONEST.replace("epsilon=1.0, ", "").replace("result.assert_no_violation()", CALM)
        + """

def test_claim(dp_audit):
    dp_audit(constant, data, **OPTIONS).assert_no_violation()
"""
    )
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*no claim was given, so there is none to violate: give `epsilon`, or hold the audit*",
            "*MEASURED  empirical epsilon at least 0 (95 % confidence); no claim was given*",
            "MEASURED *test_honest: epsilon claimed none, proved 0; /*",
        ]
    )


CALM = 'assert result.verdict == "measured"; result.assert_epsilon_below(1.0)'


@pytest.mark.usefixtures("loaded")
def test_a_generator_that_raises_is_named_with_its_line_and_the_log_of_its_traceback(
    pytester: pytest.Pytester,
) -> None:
    raising = "    raise ValueError('Jane Doe')\n" + " " * 4 + "noise ="
    pytester.makepyfile(test_raises=HONEST.replace("    noise =", raising, 1))
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(failed=1)
    said = result.stdout.str()
    found = re.search(r"ValueError at test_\w+\.py:\d+ in constant; tracebacks:[\sE]*(/\S+)", said)
    assert found is not None, said
    assert "Jane" not in said
    log = Path(found[1])
    assert log.stat().st_mode & 0o777 == 0o600
    assert "raise ValueError('Jane Doe')" in log.read_text()
    assert not [one for one in log.parent.glob("re*") if "Jane" in one.read_text()]


@pytest.mark.ci
def test_an_honest_generator_passes_with_warnings_as_errors_in_parallel(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(HONEST)
    result = pytester.runpytest_subprocess("-W", "error", "-n", "2")
    result.assert_outcomes(passed=1)


@pytest.mark.parametrize("how", ["option", "ini"])
def test_audits_can_be_skipped(pytester: pytest.Pytester, how: str) -> None:
    pytester.makepyfile(
        LEAKING
        + """
import pytest

@pytest.mark.dpaudit
def test_marked():
    raise AssertionError("must be skipped")

def test_other():
    pass
"""
    )
    if how == "ini":
        pytester.makeini("[pytest]\ndpaudit_skip = true\n")
    arguments = ["--dpaudit-skip"] if how == "option" else []
    result = pytester.runpytest_inprocess(*arguments, "--strict-markers")
    result.assert_outcomes(skipped=2, passed=1)
    result.stdout.fnmatch_lines(
        ["*= privacy audits =*", "NOT RUN: 2 privacy audits, by dpaudit_skip"]
    )


@pytest.mark.parametrize(
    ("ci", "ini", "arguments", "runs"),
    [
        ("", "", [], False),
        pytest.param("false", "", ["-n", "2"], False, marks=pytest.mark.slow),
        ("false", "", [], False),
        ("", "dpaudit_scale = smoke", [], False),
        ("true", "", [], True),
        ("", "", ["--dpaudit-slow"], True),
        ("", "dpaudit_slow = true", [], True),
        ("", "", ["--dpaudit-only"], True),
        ("", "", ["--dpaudit-scale", "smoke"], True),
    ],
)
def test_slow_audits_run_in_ci_or_where_they_are_asked_for(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    ci: str,
    ini: str,
    arguments: list[str],
    runs: bool,
) -> None:
    monkeypatch.setenv("CI", ci)
    pytester.makeini(f"[pytest]\n{ini}\n")
    pytester.makepyfile(
        """
        import pytest

        pytestmark = pytest.mark.dpaudit(slow=True)

        def test_slow():
            pass

        @pytest.mark.dpaudit(slow=False)
        def test_fast():
            pass
        """
    )
    run = pytester.runpytest_subprocess if "-n" in arguments else pytester.runpytest_inprocess
    result = run("-W", "error", "--strict-markers", *arguments)
    result.assert_outcomes(passed=1 + runs, skipped=1 - runs)
    said = "NOT RUN: 1 privacy audit, marked slow, run in CI or by --dpaudit-slow"
    assert (said in result.stdout.lines) is not runs


@pytest.mark.usefixtures("loaded")
def test_the_marker_gives_settings_and_refuses_what_is_none(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        TABLE
        + """
import pytest

def constant(data, n_rows, seed):
    noise = np.random.default_rng(seed).normal(30, 5, n_rows)
    return pd.DataFrame({"age": 30, "income": noise}, index=range(n_rows))

@pytest.mark.dpaudit(epsilon=1.0, attacks=QUICK, shadow_models=40, seed=7)
def test_marked(dp_audit):
    result = dp_audit(constant, data, seed=8)
    assert (result.seed, result.claim.epsilon, sum(result.shadow_models.values())) == (8, 1.0, 40)

@pytest.mark.dpaudit(epsilom=1.0)
def test_slip():
    pass
"""
    )
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*'epsilom', which is no setting*did you mean 'epsilon'*"])


MISTAKES = """
import pytest

def test_no_table(dp_audit):
    dp_audit("null", "missing.csv", epsilon=1.0)

def test_no_table_to_replay(dp_replay):
    dp_replay("null", "missing.csv", epsilon=1.0)

def test_slip(dp_audit):
    dp_audit("null", "sample:breast-cancer", epsilom=1.0)

@pytest.mark.dpaudit(epsilom=1.0)
def test_marked(dp_audit):
    pass

def test_no_generator(dp_audit):
    with pytest.raises(dpaudit.errors.RegistryError):
        dp_audit("nulll", "sample:breast-cancer", epsilon=1.0)
"""


def test_a_replay_is_a_privacy_audit(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_one(dp_replay):\n    assert 0\n\ndef test_other():\n    pass\n")
    pytester.runpytest_inprocess("--dpaudit-skip").assert_outcomes(skipped=1, passed=1)
    pytester.runpytest_inprocess("--dpaudit-only").assert_outcomes(failed=1, deselected=1)


@pytest.mark.usefixtures("loaded")
def test_a_search_is_a_privacy_audit_that_keeps_its_examples(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
from reports.search.planted import SCHEMA, Synthesizer

def test_broken(dp_search):
    record = dp_search(Synthesizer("byte"), SCHEMA, pairs=30, seconds=5, fits=20)
    record.assert_no_violation()
"""
    )
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*the steps spend 255*"])
    assert list(pytester.path.glob(".pytest_cache/d/dpaudit-search/*/pair-1-with.csv"))
    pytester.runpytest_inprocess("--dpaudit-skip").assert_outcomes(skipped=1)


def test_a_mistake_is_shown_where_it_was_made(pytester: pytest.Pytester) -> None:
    """Not where dpaudit noticed it, in thirty lines of its own code."""
    pytester.makepyfile(f"import dpaudit.errors\n{MISTAKES}")
    result = pytester.runpytest_inprocess("--dpaudit-baseline", "none.json", "-k", "slip")
    result.stdout.fnmatch_lines(["E * no baseline *none.json*", "*.py:12: UsageError"])
    assert "def _before" not in result.stdout.str()
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(passed=1, failed=3, errors=1)
    result.stdout.fnmatch_lines(["E * missing.csv does not exist; *", "*.py:6: DataError"])
    files = [line for line in result.stdout.lines if ".py:" in line]
    assert all("test_a_mistake" in line for line in files), files


def test_the_fixture_refuses_what_is_no_setting(pytester: pytest.Pytester) -> None:
    for slip, meant in (("shadow_models", "shadow_model"), ("jobs", "job")):
        pytester.makepyfile(HONEST.replace(f"{slip}=", f"{meant}="))
        result = pytester.runpytest_inprocess()
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines([f"*dp_audit has '{meant}', which is no setting*'{slip}'*"])


@pytest.mark.usefixtures("loaded")
@pytest.mark.parametrize("workers", ["0", pytest.param("1", marks=pytest.mark.ci)])
def test_audits_alone_at_another_scale_are_listed_and_in_junit_xml(
    pytester: pytest.Pytester, workers: str
) -> None:
    pytester.makepyfile(
        HONEST.replace("shadow_models=40, ", "") + "\ndef test_other():\n    raise AssertionError\n"
    )
    result = pytester.runpytest_inprocess(
        *("--dpaudit-only", "--dpaudit-scale", "smoke", "-n", workers, "-W", "error"),
        *("--junit-xml", "junit.xml"),
    )
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            "*= privacy audits =*",
            "CONSISTENT *::test_honest: epsilon claimed 1, proved *, detects epsilon *; *.html",
        ]
    )
    [found] = ElementTree.parse(pytester.path / "junit.xml").iter("property")
    audit = json.loads(found.attrib["value"])
    assert (audit["shadow_models"], audit["claimed"], audit["number"]) == (52, 1.0, 1)


@pytest.mark.ci
@pytest.mark.usefixtures("loaded")
def test_what_an_audit_proves_may_not_rise_above_the_baseline(pytester: pytest.Pytester) -> None:
    source = LEAKING.replace(".assert_no_violation()", "").replace("models=40", "models=60")
    sampled = "self.data.sample(n, replace=True, random_state=seed).assign(age=len(self.data))"
    pytester.makepyfile(source.replace(sampled, "data.sample(n, replace=True, random_state=seed)"))
    pytester.makeini("[pytest]\ndpaudit_baseline = privacy.json\n")
    missing = pytester.runpytest_inprocess()
    missing.stdout.fnmatch_lines(["*no baseline *privacy.json*--dpaudit-baseline-update*"])
    assert missing.ret != 0
    assert "VIOLATION" not in missing.stdout.str()  # before anything is trained
    written = pytester.runpytest_inprocess("--dpaudit-baseline-update")
    written.assert_outcomes(passed=1)
    [line] = json.loads((pytester.path / "privacy.json").read_text())["audits"].values()
    assert line["claimed"] == 0.5
    pytester.runpytest_inprocess().assert_outcomes(passed=1)
    pytester.makepyfile(source)
    kill_workers()  # they know the file as it was
    jumped = pytester.runpytest_inprocess()
    jumped.assert_outcomes(failed=1)
    said = [line for line in jumped.stdout.lines if line.startswith(("REGRESSION", "VIOLATION"))]
    assert said[0].startswith("REGRESSION: the AUC of the attack has risen from ")  # first
    pytester.makepyfile(source.replace("models=60", "models=64"))
    other = pytester.runpytest_inprocess()
    other.assert_outcomes(failed=1)
    other.stdout.fnmatch_lines(
        ["NOT COMPARABLE with the baseline: shadow models 60 there and 64 here; *-update"]
    )
    pytester.makepyfile(source.replace("test_leaky", "test_new"))
    unknown = pytester.runpytest_inprocess()
    unknown.stdout.fnmatch_lines(["*privacy.json has no line for *::test_new*-baseline-update"])
    assert not list(pytester.path.rglob("test_new*/dpaudit-1"))  # before anything is trained


@pytest.mark.usefixtures("loaded")
@pytest.mark.parametrize("workers", ["0", pytest.param("1", marks=pytest.mark.slow)])
def test_an_audit_that_nothing_has_changed_is_not_run_again(
    pytester: pytest.Pytester, workers: str
) -> None:
    pytester.makepyfile(test_it=HONEST.replace("constant(data, n_rows, seed):", COUNTING, 1))
    kill_workers()  # they may know the file of the other case
    count = pytester.path / "trained.txt"
    others = ("-n", workers)
    for words, trains in ((), True), (others, False), (("--dpaudit-no-cache",), True):
        count.unlink(missing_ok=True)
        result = pytester.runpytest_inprocess("-W", "error", *words)
        result.assert_outcomes(passed=1)
        assert count.exists() is trains
        assert ("(from the cache)" in result.stdout.str()) is not trains


LIBRARY = """
import numpy as np
import pandas as pd


def synthesize(data, n_rows, seed):
    noise = np.random.default_rng(seed).normal(30, 5, n_rows)
    return pd.DataFrame({"age": AGE, "income": noise}, index=range(n_rows))
"""


@pytest.mark.usefixtures("loaded")
@pytest.mark.ci
def test_an_upgrade_of_the_library_under_test_is_audited(pytester: pytest.Pytester) -> None:
    """Version 2.0 prints whether the record is there."""
    site = pytester.mkdir("site-packages")

    def install(version: str, age: str) -> None:
        for old in site.glob("*.dist-info"):
            shutil.rmtree(old)
        info = site / f"mylib-{version}.dist-info"
        info.mkdir()
        (site / "mylib.py").write_text(LIBRARY.replace("AGE", age))
        (info / "METADATA").write_text(f"Name: mylib\nVersion: {version}\n")
        (info / "RECORD").write_text(f"mylib.py,sha256={version},99\n")

    def audited() -> str:
        kill_workers()  # they have imported the version before
        return str(pytester.runpytest_inprocess("-W", "error").stdout)

    pytester.makeini(f"[pytest]\npythonpath = {site}\n")
    pytester.makepyfile(
        TABLE
        + """
import mylib

def test_mine(dp_audit):
    dp_audit(mylib.synthesize, data, epsilon=0.5, **OPTIONS).assert_no_violation()
"""
    )
    install("1.0", "30")
    assert "(from the cache)" not in audited()
    assert "(from the cache)" in audited()
    install("2.0", "len(data)")
    after = audited()
    assert "(from the cache)" not in after
    assert "VIOLATION test_an_upgrade" in after


@pytest.mark.ci
@pytest.mark.usefixtures("loaded")
@pytest.mark.parametrize("workers", ["0", pytest.param("1", marks=pytest.mark.slow)])
def test_a_session_in_github_actions_has_its_audits_in_the_summary_of_the_job(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(pytester.path / "summary.md"))
    pytester.makepyfile(
        LEAKING + HONEST.replace(TABLE, "") + "\n@pytest.mark.dpaudit(slow=True)\n"
        "def test_late(dp_audit):\n    pass\n"
    )
    pytester.makepyfile(test_0="def test_plain():\n    pass\n")
    monkeypatch.delenv("CI", raising=False)
    pytester.runpytest_inprocess("test_0.py")
    assert not (pytester.path / "summary.md").exists()
    pytester.runpytest_inprocess("-n", workers).assert_outcomes(failed=1, passed=2, skipped=1)
    lines = (pytester.path / "summary.md").read_text().splitlines()
    assert lines[0] == "### Privacy audits"
    rows = [line for line in lines if line.startswith("| **")]
    assert [row.split(" |")[0] for row in rows] == ["| **violation**", "| **consistent**"]
    assert "test\\_leaky" in rows[0]
    assert "| 0.5 | 2." in rows[0]
    assert any(line.startswith("- Not run: 1 privacy audit, marked slow") for line in lines)


def test_a_long_session_stays_below_what_github_shows() -> None:
    audit = AuditOfTest(
        "t.py::" + "a" * 200, 1, "consistent", "epsilon", 1.0, None, 100, 0, "r.html"
    )
    text = _markdown([audit] * 2000, [("t.py::b", "x|<b>")], [])
    assert 90_000 < len(text.encode()) < 100_000
    assert re.search(r"and \d+ more lines\n\n$", text)
    assert "x\\|\\<b\\>" in _markdown([], [("t.py::b", "x|<b>")], [])


def test_a_summary_never_says_more_than_was_proved() -> None:
    audit = AuditOfTest("t.py::a", 1, "violation", "epsilon", 1.0, 1.0589, 100, 0, "r.html")
    assert "claimed 1, proved 1.05;" in _line(audit)
    assert "| 1 | 1.05 |" in _markdown([audit], [], [])


@pytest.mark.ci
@pytest.mark.usefixtures("loaded")
def test_ten_times_too_little_noise_fails_at_the_scale_of_a_pull_request(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SCALES, "ci", 48)
    pytester.makepyfile(
        TABLE
        + """
class Counts:
    proof = "composition"

    def __init__(self, scale):
        self.scale = scale

    def fit(self, data, *, seed):
        rng = np.random.default_rng(seed)
        counts = data["age"].value_counts().reindex(range(20, 60), fill_value=0)
        self.noisy = np.maximum(counts + rng.laplace(scale=self.scale, size=40), 0.0)
        return self

    def sample(self, n, *, seed):
        rng = np.random.default_rng(seed)
        shares = (self.noisy + 1e-9) / (self.noisy + 1e-9).sum()
        return pd.DataFrame({"age": rng.choice(range(20, 60), n, p=shares), "income": 30.0})

SETTINGS = dict(epsilon=1.0, attacks=QUICK, jobs=1, probe=False)

def test_too_little(dp_audit):
    dp_audit(Counts(0.1), data, **SETTINGS).assert_no_violation()

def test_without(dp_audit):
    dp_audit(Counts(0.1), data, replay=False, **SETTINGS)

def test_enough(dp_audit):
    dp_audit(Counts(1.0), data, **SETTINGS).assert_no_violation()
"""
    )
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(passed=2, failed=1)
    said = result.stdout.str()
    assert re.search(
        r"REPLAY of \S+::test_too_little: VIOLATION OF THE PROOF  claimed epsilon 1, its", said
    )
    assert re.search(r"REPLAY of \S+::test_enough: CONSISTENT", said)
    assert not re.search(
        r"(VIOLATION|CONSISTENT) \S+::test_too_little", said
    )  # no model was trained
    assert "test_without: VIOLATION" not in said
    again = pytester.runpytest_inprocess("-k", "enough")
    assert "REPLAY" not in again.stdout.str()  # of a result that is known


@pytest.mark.ci
def test_several_tables_are_replayed_first(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
from reports.linked_tables.mechanisms import SCHEMA, Association, hospital


def test_tables(dp_audit):
    dp_audit(Association(), hospital(0), schema=SCHEMA, attacks=["query-target"], jobs=1)
"""
    )
    done = pytester.runpytest_inprocess()
    done.stdout.fnmatch_lines(["*REPLAY of *::test_tables: *  claimed epsilon 1, *"])


@pytest.mark.usefixtures("loaded")
@pytest.mark.ci
def test_why_a_result_is_not_kept_is_said(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(HONEST + "\n\ndef unused(name):\n    return __import__(name)\n")
    for _ in range(2):
        done = pytester.runpytest_inprocess("-W", "error")
        done.stdout.fnmatch_lines(
            ["CONSISTENT *(not kept in the cache: test_*.py may load code*(__import__, line *))"]
        )


@pytest.mark.parametrize(
    ("ini", "arguments", "said"),
    [
        ("dpaudit_scale = huge", [], "*dpaudit_scale must be one of smoke, ci, full*"),
        ("dpaudit_baseline_level = x", [], "*dpaudit_baseline_level must be in (0, 0.5)*"),
        ("", ["--dpaudit-baseline-update"], "*needs --dpaudit-baseline FILE*"),
    ],
)
def test_options_without_meaning_are_usage_errors(
    pytester: pytest.Pytester, ini: str, arguments: list[str], said: str
) -> None:
    pytester.makeini(f"[pytest]\n{ini}\n")
    result = pytester.runpytest_inprocess(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([said])


def test_a_session_without_audits_is_silent(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_plain():\n    pass\n")
    result = pytester.runpytest_inprocess("-W", "error")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*dpaudit: *")
    result.stderr.no_fnmatch_line("*")


def test_help_names_the_options_and_each_that_says_what_is_has_an_ini_twin(
    pytester: pytest.Pytester,
) -> None:
    text = pytester.runpytest_inprocess("--help").stdout.str()
    options = set(re.findall(r"^  --dpaudit-([a-z-]+)", text, re.MULTILINE))
    twins = set(re.findall(r"^  dpaudit_([a-z_]+) \(", text, re.MULTILINE))
    assert options >= {"skip", "only", "slow", "scale", "baseline", "no-cache"}
    settings = {name.removeprefix("no-").replace("-", "_") for name in options}
    assert settings - {"baseline_update"} <= twins
    pytester.runpytest_inprocess("--markers").stdout.fnmatch_lines(["*pytest.mark.dpaudit*"])


def test_the_samplers_of_the_project_are_those_of_its_file(tmp_path: Path) -> None:
    config = cast(pytest.Config, SimpleNamespace(rootpath=tmp_path))
    assert _samplers(config) == []
    (tmp_path / "dpaudit.toml").write_text(
        "[[samplers]]\nfunction = 'noise:sample'\nlaw = 'laplace'\nscale = 'width'\n"
    )
    assert [one["function"] for one in _samplers(config)] == ["noise:sample"]


@pytest.mark.ci
@pytest.mark.usefixtures("loaded")
def test_a_replay_hears_the_samplers_of_the_project(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        noise="""
import numpy as np


def sample(seed, width):
    u = np.random.PCG64(seed).random_raw() / 2.0**64 - 0.5
    return -width * np.sign(u) * np.log(1.0 - 2.0 * abs(u))
""",
        test_it=TABLE
        + """
class Counter:
    def fit(self, data, *, seed):
        from noise import sample

        self.count = len(data) + sample(seed, 1.0)
        return self

    def sample(self, n, *, seed):
        return pd.DataFrame({"age": 30, "income": self.count}, index=range(n))


def test_heard(dp_replay):
    record = dp_replay(Counter(), data, epsilon=1.0)
    record.assert_no_violation()
    assert record.ledger[0].law == "laplace"


def test_without(dp_replay):
    record = dp_replay(Counter(), data, epsilon=1.0, fits=10, samplers=[])
    assert record.verdict == "inconclusive"
""",
    )
    file = pytester.makefile(
        ".toml",
        dpaudit="[[samplers]]\nfunction = 'noise:sample'\nlaw = 'laplace'\nscale = 'width'\n",
    )
    words = ("-p", "no:cacheprovider", "-n0")
    heard = pytester.runpytest_inprocess(*words)
    heard.assert_outcomes(passed=2)
    heard.stdout.fnmatch_lines(["REPLAY of *::test_heard: CONSISTENT *"])
    file.write_text("[[samplers]]\nfunction = 'noise:sample'\nlaw = 'laplac'\nscale = 'width'\n")
    failed = pytester.runpytest_inprocess(*words, "-k", "heard")
    failed.stdout.fnmatch_lines(["*dpaudit.toml: samplers.0.law: 'laplac' is not one of*"])


SHARING = (
    HONEST.partition("def test_honest")[0]
    + """
ONE = dict(x=0, x_prime=1, epsilon=1.0, draws=2000)


def laplace(x, rng):
    return x + rng.laplace()


def test_twice(dp_audit, dp_mechanism):
    first = dp_audit(constant, data, epsilon=1.0, **OPTIONS)
    assert first.confidence == pytest.approx(1 - 0.02 / 2 / 2)
    assert dp_mechanism(laplace, **ONE).confidence == 1 - 0.02 / 2 / 4


def test_stricter(dp_mechanism):
    assert dp_mechanism(laplace, **ONE, confidence=0.9999).confidence == 0.9999
    assert dp_mechanism(laplace, **ONE, confidence=0.6).confidence == 1 - 0.02 / 8


def test_of_something_else():
    pass


def test_not_counted(request):
    with pytest.raises(pytest.UsageError, match="has no share of dpaudit_false_alarms: mark it"):
        request.getfixturevalue("dp_mechanism")(laplace, **ONE)
"""
)


@pytest.mark.usefixtures("loaded")
def test_a_session_shares_its_false_alarms_among_the_tests_that_audit(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeini("[pytest]\ndpaudit_false_alarms = 0.02\n")
    pytester.makepyfile(SHARING)
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(passed=4)
    said = "FALSE ALARMS: at most 0.02 in this session, 0.01 for each of 2 tests; above is what *"
    result.stdout.fnmatch_lines(["*detects epsilon * noise * % too narrow, if *", said])


@pytest.mark.parametrize("share", ["0", "0.5", "much"])
def test_a_share_of_false_alarms_is_a_probability(pytester: pytest.Pytester, share: str) -> None:
    pytester.makeini(f"[pytest]\ndpaudit_false_alarms = {share}\n")
    result = pytester.runpytest_inprocess()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*dpaudit_false_alarms must be in (0, 0.5), got '{share}'*"])
