"""The documentation site: pages that are current, run as they say, and build without a warning."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from dpaudit.cli.main import app
from dpaudit.report.render import render_markdown
from dpaudit.results.result import AuditResult
from dpaudit.results.verdict import Verdict
from pages import DOCS, ROOT, PageBlock, blocks_of, check_printed, run_page
from reports.markdown import MARK, placeholders, replace_table
from website import figures
from website.pages import made
from website.plugins import registered
from website.released import Method, methods, methods_table

PAGES = sorted(DOCS.rglob("*.md"))
RUN = (
    "tutorials/attack.md",
    "tutorials/first-audit.md",
    "tutorials/library.md",
    "tutorials/pytest.md",
    "tutorials/released-table.md",
    "tutorials/tables.md",
    "guides/generator.md",
    "guides/size.md",
    "explanations/data-dependent-epsilon.md",
)
"""Pages whose blocks are run as a reader would; tests/test_docs.py runs others, line by line."""
LONG = ("accounting.md",)
"""Pages with commands of minutes: their commands are only parsed."""


def shown(page: Path) -> str:
    return page.relative_to(DOCS).as_posix()


def test_pages_made_of_code_and_results_are_current() -> None:
    for name, text in made().items():
        assert (DOCS / name).read_text(encoding="utf-8") == text, f"python -m website: {name}"


def test_a_figure_that_someone_typed_is_found() -> None:
    text = (DOCS / "calibration.md").read_text(encoding="utf-8")
    typed = text.replace("26.4 %", "5.00 %")
    assert typed != text == figures.filled("calibration.md", typed)
    with pytest.raises(ValueError, match="unpack"):
        figures.filled("calibration.md", "no marks")


def test_a_violation_by_either_audit_counts_and_a_replay_decides_otherwise() -> None:
    def verdict(replayed: str | None, audited: str | None) -> str:
        replay = {"result": {"verdict": replayed}} if replayed else None
        return Method("a:b", "library", replay, {"verdict": audited} if audited else None).verdict

    assert verdict("inconclusive", "violation") == "violation"
    assert verdict("violation", None) == "violation"
    assert verdict("inconclusive", "consistent") == "inconclusive"
    assert verdict("consistent", "inconclusive") == "consistent"
    assert verdict(None, "consistent") == "consistent"
    assert verdict(None, None) == "not replayable"


def test_each_released_method_has_a_row_with_its_release_and_its_day() -> None:
    rows = methods_table().splitlines()[2:]
    assert len(rows) == len(methods()) > 30
    for row in rows:
        assert re.fullmatch(r"\| [a-z-]+( [\d.]+)? \|.* \| 2026-\d\d-\d\d \|", row), row


WRITTEN = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [
        *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CHANGELOG.md")),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "reports").rglob("*.md"),
        *(ROOT / "benchmarks").rglob("*.md"),
    ]
)


@pytest.mark.parametrize("page", WRITTEN)
def test_no_page_has_a_figure_that_was_never_filled(page: str) -> None:
    assert placeholders((ROOT / page).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a median of MEDIAN_MU, else MEDIAN_CP.\n", ["MEDIAN_MU", "MEDIAN_CP"]),
        ("| a | B_80 |\n- one\n    more of FIGURE_1\n", ["B_80", "FIGURE_1"]),
        ("`GITHUB_STEP_SUMMARY` and ``A_B``, [x](#A_B), <!-- A_B -->, https://x.org/A_B\n", []),
        ("```bash\nexport MY_NAME=1\n```\n\n    OTHER_NAME=2\n\nPATE-GAN, D80, F_hist\n", []),
        ("`code` MEDIAN_MU `code`\n", ["MEDIAN_MU"]),
    ],
)
def test_figures_that_are_left_are_told_from_code(text: str, left: list[str]) -> None:
    assert placeholders(text) == left


def test_no_page_is_written_that_has_a_figure_left(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "statistics.md").read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="MEDIAN_MU was never filled"):
        figures.filled("statistics.md", f"{text}\nThe median is MEDIAN_MU.\n")
    page = tmp_path / "README.md"
    page.write_text(f"{MARK}\n{MARK}\n")
    with pytest.raises(ValueError, match="MEDIAN_MU was never filled"):
        replace_table(page, "| MEDIAN_MU |\n")
    assert page.read_text() == f"{MARK}\n{MARK}\n"


def test_the_readme_s_figures_are_those_of_the_studies() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    rates = [float(one) for one in re.findall(r"\| ([\d.]+) % \|", figures.others_table())]
    assert f"{min(rates):.0f} to {max(rates):.0f} % of audits" in " ".join(text.split())
    results = ROOT / "reports" / "six" / "results"
    verdicts = [AuditResult.load(path).verdict for path in sorted(results.glob("*/result.json"))]
    assert (verdicts.count(Verdict.VIOLATION), verdicts.count(Verdict.CONSISTENT)) == (6, 1)
    shown = ROOT / "reports" / "first_light" / "results" / "pate-gan-cervical-bounds-from-data"
    found = AuditResult.load(shown)
    head, _, rows = str(found).partition("\n\n")
    assert f"{head}\n\n{rows}\nreport  " in text  # whole, as a terminal shows it
    commands = ROOT / "reports" / "performance" / "results" / "commands.json"
    first = json.loads(commands.read_text(encoding="utf-8"))["first_audit"]
    assert first["exit"] == 0
    assert f"some {round(first['seconds'], -1):.0f} seconds on 2 idle cores" in " ".join(
        text.split()
    )


def test_the_readme_is_one_screen_and_a_half() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 75


def test_the_sections_that_the_page_on_standards_names_are_in_reports() -> None:
    run = ROOT / "reports" / "first_light" / "results" / "pate-gan-cervical"
    headings = re.findall(r"^#+ (.+)$", render_markdown(AuditResult.load(run)), re.MULTILINE)
    page = (DOCS / "explanations" / "standards.md").read_text(encoding="utf-8")
    named = set(re.findall(r"(?<!\*)\*([A-Z][A-Za-z :']+)\*", page))
    assert len(named) > 8
    assert named <= set(headings)


def test_recipes_in_yaml_can_be_read() -> None:
    pages = [DOCS / "guides" / "ci.md", DOCS / "cluster.md"]
    texts = [block.text for page in pages for block in blocks_of(page) if block.language == "yaml"]
    assert len(texts) == 4
    for text in [*texts, (ROOT / "action.yml").read_text()]:
        assert yaml.safe_load(text)


def test_recipes_in_yaml_get_the_cpu_build_of_torch_and_keep_pytest_s_cache() -> None:
    texts = [block.text for block in blocks_of(DOCS / "guides" / "ci.md")]
    for recipe in (text for text in texts if "pytest tests/privacy" in text):
        assert "pip install torch --index-url https://download.pytorch.org/whl/cpu" in recipe
        assert ".pytest_cache" in recipe
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    assert "download.pytorch.org/whl/$TORCH" in action["runs"]["steps"][0]["run"]
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md"):
        assert "download.pytorch.org" in page.read_text()


@pytest.mark.parametrize("group", ["generators", "attacks"])
def test_every_generator_and_attack_has_a_section(group: str) -> None:
    page = (DOCS / "reference" / f"{group}.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## (\S+)\n\n(.+)$", page, re.MULTILINE))
    assert list(sections) == list(registered(f"dpaudit.{group}"))


def test_every_command_is_in_the_reference() -> None:
    page = (DOCS / "reference" / "command-line.md").read_text(encoding="utf-8")
    group: Any = typer.main.get_command(app)
    for name in group.list_commands(None):
        assert f"\n### dpaudit {name}\n" in page


@pytest.mark.ci
@pytest.mark.parametrize("page", RUN)
def test_a_page_does_what_it_says(page: str, tmp_path: Path) -> None:
    assert run_page(DOCS / page, tmp_path) > 0


def test_a_page_that_says_something_else_fails(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    for block, said in (
        ("```sh\necho one; echo 100\n```\n\n```text\none\n200\n```\n", "not printed: 200"),
        ("```sh\necho two\n```\n\n```text\none\n```\n", "not printed: one"),
        ("```sh\nfalse\n```\n", "false"),
        ("<!-- exit 1 -->\n```sh\ntrue\n```\n", "true"),
        (
            '```python title="one.py"\nraise SystemExit(3)\n```\n\n```sh\npython one.py\n```\n',
            "one.py",
        ),
    ):
        page.write_text(block)
        with pytest.raises(AssertionError, match=said):
            run_page(page, tmp_path)
    check_printed("one… 100\n", "zero\none and 1e2, 110\nothers")


def blocks_that_could_run() -> list[tuple[str, PageBlock]]:
    return [
        (shown(page), block)
        for page in PAGES
        for block in blocks_of(page)
        if block.language in ("sh", "python") and not block.title
    ]


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_headings_of_a_page_skip_no_level(page: Path) -> None:
    text = re.sub(r"^(`{3,}).*?^\1", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    levels = [0, *map(len, re.findall(r"^(#+) ", text, re.MULTILINE))]
    assert all(later <= before + 1 for before, later in pairwise(levels)), levels


def test_every_block_is_run_or_says_why_not() -> None:
    """Blocks of Python in pages that tests/test_docs.py runs need no mark."""
    elsewhere = {
        *("accounting.md", "pate-gan.md", "generators/marginals.md", "extending.md"),
        "guides/mechanisms.md",
    }
    for page, block in blocks_that_could_run():
        runs = page in RUN or page in LONG or (page in elsewhere and block.language == "python")
        reasoned = re.fullmatch(r"not run: \w.+", block.note)
        assert runs or reasoned, f"{page}: {block.text.splitlines()[0]}"


def commands_shown() -> list[tuple[str, list[str]]]:
    """Every line that calls dpaudit, on all pages."""
    found = []
    for page in [ROOT / "README.md", *PAGES]:
        for block in blocks_of(page):
            if block.language == "sh":
                text = re.sub(r"\\\n\s*", "", block.text)  # a command on several lines
                for line in re.findall(r"(?:^|&& |/)(dpaudit .*)$", text, re.MULTILINE):
                    found.append((page.name, shlex.split(line.partition(" &&")[0], comments=True)))
    return found


def test_commands_that_pages_show_exist() -> None:
    group: Any = typer.main.get_command(app)
    lines = commands_shown()
    assert len(lines) > 40
    for page, (_, name, *words) in lines:
        command = group.get_command(None, name.removesuffix(";"))
        assert command is not None, f"{page}: dpaudit {name}"
        inside = getattr(command, "commands", {})
        command = inside.get(words[0].removesuffix(";"), command) if words else command
        known = {
            option
            for one in command.params
            if one.param_type_name == "option"
            for option in (*one.opts, *one.secondary_opts)
        }
        used = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
        assert used <= known | {"--help"}, f"{page}: dpaudit {name} {used - known}"


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    if importlib.util.find_spec("mkdocs") is None:
        pytest.skip("needs mkdocs")
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "-q",
        "-d",
        str(tmp_path / "site"),
    ]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "tutorials" / "first-audit" / "index.html").is_file()
    pages = "".join(path.read_text() for path in (tmp_path / "site").rglob("*.html"))
    assert not re.search(
        r"<(?:script|img|iframe)[^>]* src=.?http|<link[^>]*stylesheet[^>]*http", pages
    )
    home = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert 'href="reports/' in home or 'src="reports/' in home  # pages outside docs are there, too
    assert 'role="dialog" aria-label="Search"' in home  # which the theme leaves out
    assert 'href="stylesheets/site.css' in home
    assert "Made with" not in home
    groups = re.findall(r"<div class=.scroll. role=.group.[^>]* tabindex=.0.><table>", pages)
    assert len(groups) == pages.count("<table>") > 50  # a keyboard scrolls every table


def test_code_on_the_site_has_a_contrast_of_four_and_a_half() -> None:
    """The theme's light text, which it gives to these parts of code, has 4.47."""
    css = (DOCS / "stylesheets" / "site.css").read_text(encoding="utf-8")
    (block,) = re.findall(r'\[data-md-color-scheme="default"\] \{(.*?)\}', css, re.DOTALL)
    colours = dict(re.findall(r"--md-code-hl-(\w+)-color: #(\w{6});", block))
    assert {"comment", "generic", "operator", "punctuation", "variable"} <= set(colours)
    background = luminance("f5f5f5")
    for colour in colours.values():
        assert (background + 0.05) / (luminance(colour) + 0.05) >= 4.5


def luminance(colour: str) -> float:
    """Relative luminance of a colour in hexadecimal digits, as WCAG 2 defines it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [one / 12.92 if one <= 0.03928 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
    return sum(w * one for w, one in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_every_page_is_in_the_menu() -> None:
    menu = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    listed = re.findall(r": (\S+\.md)$", menu, re.MULTILINE)
    assert sorted(listed) == sorted(["README.md", *map(shown, PAGES)])
