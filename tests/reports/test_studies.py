"""Every study has the same shape: a page, a run.py with the same options, results that it names."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from dpaudit.errors import DataError
from dpaudit.results.result import AuditResult
from reports import markdown
from reports.command import Run, StudyParser, start, write_json
from reports.data import catalogue
from reports.detection import run as detection
from reports.label_audit import run as label_audit
from reports.marginals import run as marginals
from reports.power import run as power
from reports.probes import run as probes
from reports.released_data import run as released_data
from reports.replay import run as replay
from reports.secrets import run as secrets
from reports.six import run as six
from reports.units import run as units

ROOT = Path(__file__).resolve().parents[2]
REPORTS = ROOT / "reports"
STUDIES = sorted(path.parent.name for path in REPORTS.glob("*/README.md"))
SHARED = {"--help", "--data", "--out", "--quick", "--jobs"}
OWN = {
    "calibration": {"--again", "--audits", "--path"},
    "cases": {"--cases"},
    "detection": {"--models"},
    "pate_gan_audit": {"--models", "--names", "--runs"},
    "performance": {"--peer-python"},
    "replay": {"--again"},
}


def module(study: str) -> ModuleType:
    return importlib.import_module(f"reports.{study}.run")


def parsed(*given: str, parts: tuple[str, ...] = ("first", "second")) -> Run:
    parser = StudyParser(
        str(REPORTS / "probes" / "run.py"),
        "A study.",
        parts=parts,
        tables=("adult",),
        has_jobs=True,
    )
    return parser.run_of(parser.parse_args(given))


def test_every_folder_is_a_study_and_listed() -> None:
    folders = {path.parent.name for path in REPORTS.glob("*/*.py")}
    assert folders - {"methods"} == set(STUDIES)  # statistics that several studies use
    page = (REPORTS / "README.md").read_text()
    listed = re.findall(r"^\| \[(\w+)\]\(\1/README\.md\)", page, re.MULTILINE)
    assert sorted(listed) == STUDIES


@pytest.mark.parametrize("study", STUDIES)
def test_a_study_has_the_options_that_all_share(
    study: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        module(study).main(["--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert f"python -m reports.{study}.run" in shown
    options = set(re.findall(r"--[a-z-]+", shown))
    assert {"--help", "--out", "--quick"} <= options
    assert options <= SHARED | OWN.get(study, set())
    tables = getattr(module(study), "TABLES", ())
    assert ("--data" in options) == bool(tables)
    assert set(tables) <= set(catalogue())


@pytest.mark.parametrize("study", STUDIES)
def test_a_study_s_page_names_its_command_and_its_results(study: str) -> None:
    page = (REPORTS / study / "README.md").read_text()
    assert f"python -m reports.{study}.run" in page
    linked = {link.split("/")[0] for link in re.findall(r"\]\(([^)#:]+)\)", page)}
    assert "results" in linked
    results = list((REPORTS / study / "results").rglob("*.json"))
    assert results
    for path in results:
        json.loads(path.read_text())
    if getattr(module(study), "TABLES", ()):
        assert "../README.md#public-tables" in page


def test_no_module_of_a_study_changes_where_modules_come_from() -> None:
    code = "".join(path.read_text() for path in REPORTS.rglob("*.py"))
    assert not re.search(r"sys\.path\.|syspath_|SourceFileLoader\(|spec_from_file", code)


@pytest.mark.ci
def test_a_study_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "reports.label_audit.run", "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0
    assert done.stdout.startswith("usage: python -m reports.label_audit.run")


def test_without_out_the_results_are_the_study_s_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPAUDIT_DATA", "/tables")
    run = parsed()
    assert run.is_whole
    assert (run.out, run.data, run.jobs) == (REPORTS / "probes" / "results", Path("/tables"), None)
    assert run.parts == ("first", "second")


def test_parts_are_run_in_the_study_s_order(tmp_path: Path) -> None:
    out = str(tmp_path / "new" / "folder")
    run = parsed("second", "first", "--out", out, "--data", "here", "--jobs", "2")
    assert (run.parts, run.jobs, run.data) == (("first", "second"), 2, Path("here"))
    assert Path(out).is_dir()
    assert not run.is_whole
    assert parsed("second", "--out", out).parts == ("second",)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["third"], "unknown: third; known: first, second"),
        (["--jobs", "0"], "--jobs"),
        (["--results", "x"], "unrecognized"),
    ],
)
def test_what_a_study_does_not_have_is_refused(
    given: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parsed(*given)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_a_quick_run_changes_no_committed_file(tmp_path: Path) -> None:
    page = (REPORTS / "probes" / "README.md").read_bytes()
    committed = (REPORTS / "probes" / "results" / "runs.json").read_bytes()
    probes.main(["null", "--quick", "--out", str(tmp_path)])
    assert len(json.loads((tmp_path / "runs.json").read_text())["runs"]["null"]) == 1
    assert (REPORTS / "probes" / "README.md").read_bytes() == page
    assert (REPORTS / "probes" / "results" / "runs.json").read_bytes() == committed


def test_tables_of_pages_follow_from_the_results() -> None:
    runs = json.loads((REPORTS / "probes" / "results" / "runs.json").read_text())["runs"]
    audits = json.loads((REPORTS / "label_audit" / "results" / "audits.json").read_text())
    found = json.loads((REPORTS / "detection" / "results" / "detection.json").read_text())["audits"]
    bounds = json.loads((REPORTS / "power" / "results" / "power.json").read_text())["cases"]
    for study, table in (
        ("power", power.page(bounds)),
        ("probes", probes.page(runs)),
        ("label_audit", label_audit.table(audits)),
        ("detection", detection.page(found)),
        ("marginals", marginals.page(REPORTS / "marginals" / "results")),
        ("released_data", released_data.page(REPORTS / "released_data" / "results")),
        ("replay", replay.page(REPORTS / "replay" / "results")),
        ("six", six.page(six.compared(REPORTS / "six" / "results"))),
        ("secrets", secrets.page(REPORTS / "secrets" / "results")),
        ("units", units.page(REPORTS / "units" / "results")),
    ):
        page = (REPORTS / study / "README.md").read_text()
        assert page.split(markdown.MARK)[1] == f"\n{table}"


def test_the_picture_of_the_six_is_made_from_their_results() -> None:
    results = REPORTS / "six" / "results"
    comparison = six.compared(results)
    assert [run.name for run in comparison.runs] == list(six.PARTS)
    assert (results / six.PICTURE).read_text() == six.picture(comparison)
    for run in comparison.runs:
        words = AuditResult.load(results / run.name).reproduce.split()
        for word in six.command(run.name)[1:]:  # some options are settings by name today
            _, _, value = word.partition("=")
            is_new = word in ("--set", "probe=false") or value in words
            assert word in words or is_new or word[0].isdigit(), run.name


def test_a_table_is_replaced_between_its_marks(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text(f"before\n{markdown.MARK}\nold\n{markdown.MARK}\nafter\n")
    markdown.replace_table(page, markdown.table(("a", "b"), [(1, 2)]))
    table = "| a | b |\n| --- | --- |\n| 1 | 2 |\n"
    assert page.read_text() == f"before\n{markdown.MARK}\n{table}{markdown.MARK}\nafter\n"
    page.write_text("no marks")
    with pytest.raises(ValueError, match="unpack"):
        markdown.replace_table(page, table)


def test_an_error_on_purpose_ends_a_study_with_one_line() -> None:
    def main() -> None:
        raise DataError("no table")

    with pytest.raises(SystemExit) as ended:
        start(main)
    assert ended.value.code == "error: no table"


def test_results_keep_their_letters(tmp_path: Path) -> None:
    write_json(tmp_path / "part" / "one.json", {"ε": 1})
    assert (tmp_path / "part" / "one.json").read_text() == '{\n "ε": 1\n}\n'
