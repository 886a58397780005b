"""Several results side by side."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pytest
from typer.testing import CliRunner

import dpaudit
from documents import read_document
from dpaudit import TwoWorlds, audit
from dpaudit.cli.main import app
from dpaudit.comparison import (
    Change,
    ChangedPart,
    Comparison,
    Reference,
    changes,
    compare,
    comparison_latex,
    comparison_page,
    comparison_table,
    draw_forest,
)
from dpaudit.errors import InputError
from dpaudit.model.claim import GaussianClaim
from dpaudit.report.page import page_text
from dpaudit.report.render import page_html, page_markdown
from dpaudit.results.record import AuditRecord
from dpaudit.results.result import AuditResult
from dpaudit.results.verdict import Verdict
from samples import QUICK_ATTACKS, people

Make = Callable[..., AuditRecord]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def records(record_of: Make) -> dict[str, AuditRecord]:
    """A consistent audit, and one whose bound rose after a release of the generator's library."""
    versions = {"dpaudit": "0.1.0"}
    sound = record_of(
        verdict="consistent", proved=0.2, versions={**versions, "lib@1.0: lib": "1.0"}
    )
    broken = record_of(
        verdict="violation",
        proved=2.741,
        versions={**versions, "lib@1.1: lib": "1.1"},
        generator={"name": "lib:method", "parameters": {"scale": 2}, "seedable": True},
    )
    return {"v1": sound, "v2": broken}


@pytest.fixture
def two(records: dict[str, AuditRecord]) -> Comparison:
    return compare(records)


def save(record: AuditRecord, folder: Path) -> Path:
    folder.mkdir(parents=True)
    AuditResult.of(record, folder=folder).save(folder)
    return folder


def test_the_gravest_verdict_stands_for_all(record_of: Make) -> None:
    order = ["violation", "invalid", "inconclusive", "consistent"]
    for place, gravest in enumerate(order):
        rest = {name: record_of(verdict=name) for name in reversed(order[place:])}
        if len(rest) > 1:
            assert compare(rest).verdict is Verdict(gravest)


def test_a_violation_in_floating_point_says_so(record_of: Make) -> None:
    compared = compare(
        {"a": record_of(), "b": record_of(verdict="violation", proved_without_bits=0.9)}
    )
    assert "violation in floating point" in page_text(comparison_page(compared))


def test_the_clopper_pearson_bound_of_each_run_is_compared(two: Comparison) -> None:
    assert [run.audit.clopper_pearson for run in two.runs] == [2.58, 2.58]
    assert json.loads(two.to_json())["runs"][0]["audit"]["clopper_pearson"] == 2.58
    table = comparison_table(two)
    assert {row[table.header.index("CP")] for row in table.rows} == {"2.58"}
    assert "CP is the Clopper-Pearson bound" in page_markdown(comparison_page(two))


def test_what_changed_is_told_by_what_it_is_of(two: Comparison, record_of: Make) -> None:
    [step] = two.changes
    assert (step.before, step.after) == ("v1", "v2")
    assert Change(ChangedPart.GENERATOR, "lib", "1.0", "1.1") in step.changes
    assert Change(ChangedPart.GENERATOR, "parameter scale", "not given", "2") in step.changes
    audit = [change for change in step.changes if change.part is not ChangedPart.GENERATOR]
    assert audit == []
    one, other = record_of(), record_of(seed=record_of().seed + 1)
    assert changes(one, one) == ()
    [change] = changes(one, other)
    assert (change.part, change.what) == (ChangedPart.AUDIT, "seed")


def test_another_score_chosen_among_the_same_attacks_is_no_change(record_of: Make) -> None:
    record = record_of()
    names = ("groundhog", "query-target", "form")
    correction = replace(record.multiplicity, rule="select", hypotheses=1, attacks=names)
    first, second = (
        replace(record, attacks=(replace(record.attacks[0], name=name),), multiplicity=correction)
        for name in ("form", "combined")
    )
    assert changes(first, second) == ()
    fewer = replace(second, multiplicity=replace(correction, attacks=names[:2]))
    [change] = changes(first, fewer)
    assert (change.part, change.what) == (ChangedPart.AUDIT, "attacks")


def test_each_is_compared_with_the_first_or_the_one_before(record_of: Make) -> None:
    runs = {name: record_of(seed=seed) for seed, name in enumerate("abc")}
    first = [(step.before, step.after) for step in compare(runs).changes]
    assert first == [("a", "b"), ("a", "c")]
    turn = [(s.before, s.after) for s in compare(runs, reference=Reference.PREVIOUS).changes]
    assert turn == [("a", "b"), ("b", "c")]
    assert "COMPARISON: 3 of 3 runs violate their claim" in page_markdown(
        comparison_page(compare(runs))
    )
    assert "HISTORY: 3 of 3 runs violate their claim" in page_markdown(
        comparison_page(compare(runs, reference=Reference.PREVIOUS))
    )


def test_a_page_says_the_odds_the_day_the_next_step_and_the_standards(
    records: dict[str, AuditRecord],
) -> None:
    dated = {
        name: replace(record, date=f"2026-11-2{number}")
        for number, (name, record) in enumerate(records.items())
    }
    text = page_markdown(comparison_page(compare(dated)))
    assert "2026-11-20 to 2026-11-21" in text
    assert "v2: with 95 % confidence the true epsilon is at least 2.74; some outputs change" in text
    assert "Open the report of v2 " in text
    titles = re.findall("^## (.+)$", text, re.M)
    assert titles == ["Result", "Next step", "Runs", "What changed", "Standards"]
    sound = page_markdown(comparison_page(compare({"v1": records["v1"], "again": records["v1"]})))
    assert "change the odds" not in sound
    assert "Audit the next version" in sound


def test_the_picture_shows_each_bound_at_its_place(two: Comparison) -> None:
    root = ElementTree.fromstring(draw_forest(two))
    paths = [path.get("d", "") for path in root.iter(f"{SVG}path")]
    ring, _ = [float(d[1:].split()[0]) for d in paths if "a5 5" in d]
    cross, _ = [float(d[1:].split()[0]) for d in paths if "l10 10m0" in d]
    assert ring < cross  # each stands in the legend, too
    words = [element.text or "" for element in root.iter(f"{SVG}text")]
    assert "≥ 2.74, claim 1" in words
    [described] = [element.text or "" for element in root.iter(f"{SVG}desc")]
    assert "v1: ≥ 0.2" in described
    assert draw_forest(two) == draw_forest(two)


def test_a_bound_of_trials_judged_before_is_withheld(record_of: Make) -> None:
    again = record_of(verdict="inconclusive", proved=2.741)
    small = record_of(verdict="inconclusive", proved=0.2)
    second = compare({"first": small, "again": again})
    drawn = draw_forest(second)
    assert "inconclusive: bound withheld, claim 1" in drawn
    assert "≥ 2.74" not in drawn
    root = ElementTree.fromstring(drawn)
    rings = [path for path in root.iter(f"{SVG}path") if "a5 5" in path.get("d", "")]
    assert len(rings) == 2  # of the first run and of the legend
    table = comparison_table(second)
    assert [row[table.header.index("bound")] for row in table.rows] == ["0.2", "withheld"]
    assert [row[table.header.index("CP")] for row in table.rows] == ["2.58", "withheld"]
    assert "Withheld: a bound above the claim that proves no violation" in page_markdown(
        comparison_page(second)
    )
    assert "\nwithheld  a bound above the claim" in page_text(comparison_page(second))
    plain = compare({"a": small, "b": record_of(proved=2.741)})
    assert "withheld" not in page_text(comparison_page(plain))


def test_claims_far_off_and_runs_without_a_bound_have_their_line(
    record_of: Make, never_run: AuditRecord
) -> None:
    far = record_of(verdict="consistent", claim={"epsilon": 1e6})
    drawn = draw_forest(compare({"far": far, "never run": never_run}))
    assert "claim →" in drawn
    assert "invalid: claim 1" in drawn


def test_claims_in_different_currencies_have_no_common_picture(record_of: Make) -> None:
    gaussian = replace(record_of(verdict="inconclusive"), claim=GaussianClaim(mu=1.0))
    mixed = compare({"a": record_of(), "b": gaussian})
    assert mixed.quantity is None
    assert "no picture" in page_html(comparison_page(mixed))
    with pytest.raises(ValueError, match="common axis"):
        draw_forest(mixed)


def test_pages_hold_every_run_and_escape_names(record_of: Make) -> None:
    hostile = "<script>alert(1)</script>|x\x1b[2J"
    comparison = compare({hostile: record_of(), "plain": record_of(verdict="inconclusive")})
    page = page_html(comparison_page(comparison))
    assert "<script" not in page
    assert "\x1b" not in page
    rows = [
        line for line in page_markdown(comparison_page(comparison)).splitlines() if line[:1] == "|"
    ]
    assert len({line.replace("\\|", "").count("|") for line in rows[:4]}) == 1


@pytest.mark.usefixtures("invented_numbers")
def test_compare_on_the_command_line(
    two: Comparison, records: dict[str, AuditRecord], tmp_path: Path
) -> None:
    folders = [save(record, tmp_path / name) for name, record in records.items()]
    files = [tmp_path / f"c.{kind}" for kind in ("html", "md", "svg", "json")]
    asked = [word for file in files for word in ("--out", str(file))]
    ended = CliRunner().invoke(app, ["compare", *map(str, folders), *asked])
    assert ended.exit_code == 0
    lines = ended.stdout.splitlines()
    assert lines[0] == "COMPARISON  1 of 2 runs violates its claim"
    runs = lines.index("Runs")
    assert lines[runs + 2].split()[:3] == ["v1", "1", "0.2"]
    assert lines[runs + 3].split()[-1] == "violation"
    assert any(line.startswith("changed   v2, compared with v1: ") for line in lines)
    assert "lib 1.1 (was 1.0)" in " ".join(ended.stdout.split())
    assert max(len(line) for line in lines if str(tmp_path) not in line) <= 80
    assert all(file.stat().st_size > 0 for file in files)
    picture = ElementTree.fromstring(files[2].read_text())
    [style] = [element.text or "" for element in picture.iter(f"{SVG}style")]
    assert "prefers-color-scheme: dark" in style
    printed = CliRunner().invoke(app, ["compare", *map(str, folders), "--json"]).stdout
    document = read_document(Comparison, printed)
    again = shlex.join(["dpaudit", "compare", *map(str, folders)])
    expected = replace(two, reproduce=again).to_document()
    assert document == json.loads(files[-1].read_text()) == expected
    assert again in files[1].read_text()
    assert [run["audit"]["proved"] for run in document["runs"]] == [0.2, 2.741]


@pytest.mark.usefixtures("invented_numbers")
def test_a_folder_goes_by_the_numbers_in_names(record_of: Make, tmp_path: Path) -> None:
    for seed, name in enumerate(["v1.10", "v1.9", "v1.9.1"]):
        save(record_of(seed=seed), tmp_path / name)
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "trials.sqlite").touch()
    said = CliRunner().invoke(app, ["compare", str(tmp_path)]).stdout
    assert "\nstarted   begun: no result yet; its command resumes it\n" in said
    document = json.loads(CliRunner().invoke(app, ["compare", str(tmp_path), "--json"]).stdout)
    assert [run["name"] for run in document["runs"]] == ["v1.9", "v1.9.1", "v1.10"]
    assert [step["before"] for step in document["changes"]] == ["v1.9", "v1.9.1"]


@pytest.mark.usefixtures("invented_numbers")
def test_slips_are_answered_before_anything_is_written(record_of: Make, tmp_path: Path) -> None:
    run = str(save(record_of(), tmp_path / "a" / "run"))
    other = str(save(record_of(seed=5), tmp_path / "b" / "run"))
    said = {
        ("compare", run): "two or more",
        ("compare", run, run): "is given twice",
        ("compare", run, str(tmp_path)): "no result at",
        ("compare", run, other, "--out", "x.pdf"): "must end in one of",
        ("compare", run, other, "--out", str(tmp_path / "no" / "x.md")): "give another --out",
        ("compare", str(tmp_path / "a")): "only one finished run",
        ("compare", str(tmp_path / "none")): "give a folder of two run folders or more",
    }
    for words, error in said.items():
        ended = CliRunner().invoke(app, list(words))
        assert ended.exit_code == 2, words
        assert error in ended.stderr
        assert ended.stdout == ""
    document = json.loads(CliRunner().invoke(app, ["compare", run, other, "--json"]).stdout)
    assert [one["name"] for one in document["runs"]] == ["a/run", "b/run"]


def test_two_runs_cannot_have_one_name(two: Comparison) -> None:
    with pytest.raises(InputError, match="two runs are called v1"):
        replace(two, runs=(two.runs[0], two.runs[0]))


def test_long_names_in_tables_break_between_their_parts(record_of: Make) -> None:
    named = record_of(generator={"name": "gan.py:PrivateTableGenerator", "parameters": {}})
    page = page_html(comparison_page(compare({"a": named, "b": named})))
    assert '<td data-title="generator">gan.py:<wbr>Private<wbr>Table<wbr>Generator</td>' in page
    # They get the room that short columns leave.
    assert '<th scope="row" class="short">a</th>' in page
    assert '<td data-title="verdict" class="short">violation</td>' in page


def test_a_claim_that_is_no_epsilon_has_its_name(records: dict[str, AuditRecord]) -> None:
    gaussian = replace(records["v1"], claim=GaussianClaim(mu=1.0))
    rows = comparison_table(compare({"v1": records["v1"], "mu": gaussian})).rows
    assert rows[1][2] == "mu 1"


def test_a_table_of_a_paper_from_two_finished_audits(tmp_path: Path) -> None:
    toys, game = (
        ["copycat", "laplace-histogram"],
        TwoWorlds(shadow_models=52, attacks=QUICK_ATTACKS),
    )
    folders = [tmp_path / toy for toy in toys]
    for toy, folder in zip(toys, folders, strict=True):
        audit(toy, people(), epsilon=1.0, game=game, jobs=1, out=folder)
    files = [tmp_path / f"table.{kind}" for kind in ("csv", "tex", "md")]
    asked = [word for file in files for word in ("--out", str(file))]
    ended = CliRunner().invoke(app, ["compare", *map(str, folders), *asked])
    assert ended.exit_code == 0, ended.stderr

    frame = dpaudit.compare(folders).frame
    pd.testing.assert_frame_equal(pd.read_csv(files[0]), frame, check_dtype=False)
    assert list(frame.run) == list(frame.generator) == toys
    assert list(frame.verdict) == ["violation", "consistent"]
    leak = dpaudit.load(folders[0])
    assert frame.bound[0] == leak.epsilon_lower_bound > frame.clopper_pearson[0] > 1.0
    assert leak.attacks_frame.rule[0] == frame.rule[0] == "fair_coin"
    tex, md = (file.read_text() for file in files[1:])
    for text in (tex, md, " ".join(ended.stdout.split())):
        assert "the bound: it decides. CP is the Clopper-Pearson bound" in text
    assert r"\toprule" in tex
    assert [line.split(" & ")[0] for line in tex.splitlines() if " & " in line] == ["run", *toys]
    assert "| copycat |" in md


@pytest.mark.usefixtures("invented_numbers")
def test_folders_results_and_a_mapping_of_either_are_compared(
    record_of: Make, tmp_path: Path
) -> None:
    folders = [save(record_of(seed=seed), tmp_path / name) for seed, name in enumerate("ab")]
    results = [AuditResult.load(folder) for folder in folders]
    assert compare(map(str, folders)) == compare(results) == compare([folders[0], results[1]])
    named = compare({"old": folders[0], "new": results[1]})
    assert [run.name for run in named.runs] == ["old", "new"]
    with pytest.raises(InputError, match="two runs are called pate-gan"):
        compare([record_of(), record_of(seed=5)])
    with pytest.raises(InputError, match="is given twice"):
        compare([folders[0], results[0]])


def test_a_withheld_bound_is_missing_in_the_frame_and_an_edited_result_refused(
    record_of: Make, tmp_path: Path
) -> None:
    again, edited = record_of(verdict="inconclusive", proved=2.741), record_of(proved=2.741)
    frame = compare({"a": again, "b": edited}).frame
    assert frame.bound.isna().tolist() == frame.clopper_pearson.isna().tolist() == [True, False]
    with pytest.raises(InputError, match="was edited after the audit"):
        dpaudit.load(save(edited, tmp_path / "edited"))
    with pytest.raises(InputError, match="was edited after the audit"):
        compare({"a": again, "edited": tmp_path / "edited"})


def test_names_are_escaped_in_latex(record_of: Make) -> None:
    hostile = compare({"a_b & 50%": record_of(), r"\input{x}": record_of(verdict="inconclusive")})
    written = comparison_latex(hostile)
    assert r"a\_b \& 50\%" in written
    assert r"\input{x}" not in written


def test_nothing_found_is_no_question_and_says_who_could_not_decide(record_of: Make) -> None:
    runs = {"a": record_of(verdict="inconclusive"), "b": record_of(verdict="consistent")}
    first, *_ = page_markdown(comparison_page(compare(runs))).splitlines()
    assert first == "# ○ COMPARISON: no violation found in 2 runs; 1 could not decide"
