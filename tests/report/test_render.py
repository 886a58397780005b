"""The HTML and Markdown made of a result."""

from __future__ import annotations

import copy
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import numpy as np
import pytest

from dpaudit.bounds.table import ValidBound
from dpaudit.errors import RunFolderError
from dpaudit.model.claim import PrivacyClaim
from dpaudit.report.content import audit_page
from dpaudit.report.figures import draw
from dpaudit.report.render import (
    _breakable,
    _code,
    _whole_words,
    page_html,
    render_html,
    render_markdown,
    write_reports,
)
from dpaudit.results.curves import claim_region, largest_tpr
from dpaudit.results.document import to_document
from dpaudit.results.record import AuditRecord
from dpaudit.results.result import AuditResult, result_schema
from dpaudit.results.structure import Picture
from outline import Outline

Make = Callable[..., AuditRecord]

COUNTS = {"false_negatives": 60, "false_positives": 61, "n_in": 120, "n_out": 120}
NO_BOUNDS = dict.fromkeys(key.value for key in ValidBound)
CONSISTENT: dict[str, Any] = {
    "verdict": "consistent",
    "reasons": ["no violation found"],
    "proved": 0.0,
    "bounds": {**NO_BOUNDS, "exact": 0.0, "clopper_pearson": 0.0},
    "counts": COUNTS,
    "threshold": {"value": 0.5, "direction": "lower"},
    "leaks": [],
    "failures": {"in": 0, "out": 0},
    "failure_reasons": [],
}
INCONCLUSIVE: dict[str, Any] = {
    "verdict": "inconclusive",
    "claim": {"epsilon": 50.0, "neighbours": "replace-one"},
    "detectable_epsilon": None,
    "target": {"choice": "record:target.json", "row": None},
    "generator": {"name": "g.py:f", "parameters": {}, "seedable": False},
}
INVALID: dict[str, Any] = {
    "verdict": "invalid",
    "checks": [
        {
            "name": "order of shadow models",
            "passed": False,
            "detail": "drifts",
            "consequence": "invalidates",
        }
    ],
}
ONE_RUN: dict[str, Any] = {
    "proved": 1.4,
    "bounds": {**NO_BOUNDS, "one_run_in_turn": 1.4},
    "threshold_rule": None,
    "game": {
        "name": "one run",
        "canaries": 100,
        "included": 52,
        "guesses": 20,
        "correct": 20,
        "gaussian_estimate": 2.9,
        "interference": 0.2,
        "attacks": [
            {"name": "nearest", "auc": 0.9, "bound": 1.4, "right": [True] * 20 + [False] * 80}
        ],
    },
    "shadow_models": {"in": 1, "out": 0},
    "failures": {"in": 0, "out": 0},
    "failure_reasons": [],
    "counts": None,
    "threshold": None,
    "attacks": [],
    "leaks": [],
    "attack": "nearest",
    "scores": {"in": [-0.1, -0.2, 0.0], "out": [-1.5, -0.9]},
    "target": {"choice": "canaries", "row": None},
}
MANY_RECORDS: dict[str, Any] = {
    "game": {
        "name": "many records",
        "scored": 60,
        "each": [
            {"row": 3, "guesses": 50, "correct": 30},
            {"row": 7, "guesses": 40, "correct": 40},
        ],
    },
    "shadow_models": {"in": 0, "out": 100},
    "failures": {"in": 0, "out": 0},
    "failure_reasons": [],
    "leaks": [],
    "target": {"choice": "records", "row": None},
}
PROBES: dict[str, Any] = {
    "alarms": [
        {"id": "seed-ignored", "severity": "violation", "correct": "fresh noise", "p_value": 1e-6},
        {"id": "row-count-leaks", "severity": "bug", "correct": "n rows", "p_value": None},
    ],
    "passed": ["range-follows-record"],
    "not_applicable": ["missing-follows-record"],
    "failed": ["nothing-random"],
    "left_out": ["epsilon-ignored"],
    "confidence": 0.99,
    "fits": 41,
    "why_left_out": "they took long",
}
EVERY: dict[str, dict[str, Any]] = {
    "violation": {},
    "consistent": CONSISTENT,
    "consistent, with alarms of probes": {**CONSISTENT, "probes": PROBES},
    "inconclusive": INCONCLUSIVE,
    "invalid after the trials": INVALID,
    "one run": ONE_RUN,
    "many records": MANY_RECORDS,
    "claim beyond all": {"claim": {"epsilon": 1000.0}},
    "threshold beyond the scores": {"threshold": {"value": 1.5, "direction": "higher"}},
    "constant scores": {"scores": {"in": [0.5] * 5, "out": [0.5] * 5}},
    "constant log-odds": {"scores": {"in": [-2.5] * 5, "out": [-2.5] * 5}},
}


@pytest.fixture(params=[*EVERY, "never run"])
def result(request: pytest.FixtureRequest, record_of: Make, never_run: AuditRecord) -> AuditRecord:
    """Every kind of result, one after the other."""
    return record_of(**EVERY[request.param]) if request.param in EVERY else never_run


def test_every_kind_of_result_here_fits_the_schema(result: AuditRecord) -> None:
    document = AuditResult.of(result, folder=None).to_document()
    jsonschema.validate(document, result_schema())


def test_html_is_one_file_without_scripts_or_network(result: AuditRecord) -> None:
    page = Outline(render_html(result))
    assert "script" not in page.tags
    assert all(link.startswith("#") for link in page.links)
    assert {"h1", "h2"} <= set(page.tags)
    assert len(page.identifiers) == len(set(page.identifiers))


def test_every_reference_inside_the_pictures_leads_somewhere(result: AuditRecord) -> None:
    text = render_html(result)
    referenced = set(re.findall(r"url\(#([^)]+)\)", text)) | set(
        re.findall(r'href="#([^"]+)', text)
    )
    assert referenced <= set(Outline(text).identifiers)


def test_pictures_are_described_and_followed_by_their_numbers(record_of: Make) -> None:
    text = render_html(record_of())
    pictures = re.findall(r"<figure>(<svg.*?</svg>)\n<figcaption>", text, flags=re.DOTALL)
    assert len(pictures) == 3
    for picture in pictures:
        root = ElementTree.fromstring(picture)
        children = {child.tag.split("}")[-1]: child for child in root}
        labels = root.attrib["aria-labelledby"].split()
        assert root.attrib["role"] == "img"
        assert labels == [children["title"].attrib["id"], children["desc"].attrib["id"]]
        assert children["title"].text
        assert children["desc"].text
    below = (
        r"</figure>\s*<details>\s*<summary>Numbers of this figure</summary>\s*<div[^>]*>\s*<table"
    )
    assert len(re.findall(below, text)) == 3


def test_html_of_the_largest_audit_is_mailable(record_of: Make) -> None:
    rng = np.random.default_rng(5)
    scores = {"in": rng.random(2000).tolist(), "out": rng.random(2000).tolist()}
    result = record_of(scores=scores)
    assert len(render_html(result).encode()) < 2_000_000
    assert len(render_markdown(result).encode()) < 100_000


def test_same_result_same_bytes(result: AuditRecord) -> None:
    assert render_html(result) == render_html(copy.deepcopy(result))
    assert render_markdown(result) == render_markdown(copy.deepcopy(result))


def test_foreign_strings_are_escaped_everywhere(record_of: Make, example: dict[str, Any]) -> None:
    hostile = "<script>alert(1)</script> a|b `c` </pre>"
    result = record_of(
        reasons=[hostile],
        claim={"source": hostile},
        failure_reasons=[{"world": "in", "count": 1, "error": hostile}],
        leaks=[{"column": hostile, "feature": "max", "importance": 0.1}],
        attack=hostile,
        attacks=[{**example["attacks"][0], "name": hostile}],
        checks=[{"name": hostile, "passed": True, "detail": hostile, "consequence": "invalidates"}],
        generator={"name": hostile, "parameters": {hostile: hostile}, "seedable": True},
        data={"source": hostile},
        target={"choice": hostile, "row": None},
        versions={hostile: hostile},
        reproduce=hostile,
    )
    page = Outline(render_html(result))
    assert "script" not in page.tags
    assert page.words.count("<script>alert(1)</script>") >= 12
    markdown = render_markdown(result)
    prose, command = markdown.split("## Reproduce", maxsplit=1)
    assert "<" not in prose
    assert r"a\|b \`c\`" in prose
    assert hostile in command.partition("```sh\n")[2].partition("\n```")[0]


def test_markdown_rows_have_as_many_cells_as_their_header(record_of: Make) -> None:
    result = record_of(leaks=[{"column": "a|b\n|c", "feature": "max", "importance": 0.1}])
    tables = re.findall(r"(?:^\|.*\|\n)+", render_markdown(result), flags=re.MULTILINE)
    assert len(tables) >= 8
    for table in tables:
        bars = {len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}
        assert len(bars) == 1


def test_both_formats_say_the_verdict_and_how_to_repeat_it(result: AuditRecord) -> None:
    for text in (Outline(render_html(result)).words, render_markdown(result)):
        assert result.verdict.upper() in text
        assert result.reproduce in text
        assert "None" not in text


def test_consistent_promises_nothing(record_of: Make) -> None:
    result = record_of(**CONSISTENT)
    for text in (Outline(render_html(result)).words, render_markdown(result)):
        assert "No violation was found. This is not evidence of privacy." in text
        assert "This audit detects epsilon 1.76 with 80 % power" in text
        assert "80 % power" in text
        assert not re.search(r"\bprivate\b|\bsafe\b", text, flags=re.IGNORECASE)


def test_probes_have_a_table_of_their_own(record_of: Make) -> None:
    text = render_markdown(record_of(**CONSISTENT, probes=PROBES))
    assert "## Probes before the audit" in text
    assert "Not all were run: they took long." in text
    assert "they trained 41 separate models" in text
    for row in (
        "| seed-ignored | ✕ ALARM | violation | 1e-06 | fresh noise |",
        "| row-count-leaks | ✕ ALARM | bug | no chance involved | n rows |",
        "| range-follows-record | no alarm |  |  |  |",
        "| nothing-random | failed |  |  |  |",
        "| missing-follows-record | not applicable |  |  |  |",
        "| epsilon-ignored | not run |  |  |  |",
    ):
        assert row in text
    assert "Probes" not in render_markdown(record_of(**CONSISTENT))


def test_an_invalid_audit_proves_nothing(record_of: Make) -> None:
    words = Outline(render_html(record_of(**INVALID))).words
    assert "these numbers prove nothing" in words
    assert 'the check "order of shadow models" failed' in words
    assert "these numbers prove nothing" not in Outline(render_html(record_of())).words


def test_violation_names_the_leak(record_of: Make) -> None:
    words = Outline(render_html(record_of())).words
    assert "Leaking features: maximum (STDs_number); rows equal to the target (Age)." in words


def test_a_report_says_where_the_models_went_and_which_row_was_attacked(
    record_of: Make, example: dict[str, Any]
) -> None:
    text = render_markdown(record_of(generator={**example["generator"], "source": "4d2a"}))
    assert (
        "Of 400 shadow models 160 trained the attacks and 240 were scored: 120 with the target "
        "(FNR is of these) and 120 without it (FPR)." in text
    )
    assert "| Digest of its source | 4d2a |" in text
    chosen = render_markdown(record_of(target={"choice": "farthest", "row": 6}))
    assert "--target farthest chose row 6, the farthest record." in chosen
    assert "treat it as confidential" in chosen
    named = render_markdown(record_of(target={"choice": "row:6", "row": 6}))
    assert "is row 6 of this table" not in named
    assert "confidential" not in render_markdown(
        record_of(target={"choice": "record:FILE", "row": None})
    )


def test_standards_claim_nothing_that_was_not_tested(record_of: Make) -> None:
    rows = render_markdown(record_of()).splitlines()
    untested = [row for row in rows if "floating point" in row or row.startswith("| ICO")]
    assert len(untested) == 3
    assert all("| not tested" in row for row in untested)


def test_a_threshold_that_floating_point_keeps_from_0_is_0(record_of: Make) -> None:
    dust = {"value": -2.2e-16, "direction": "higher"}
    record = record_of()
    attacks = [{**to_document(one), "threshold": dust} for one in record.attacks]
    assert "| ≥ 0 |" in render_markdown(record_of(attacks=attacks))


def test_an_audit_that_never_ran_shows_no_pictures_and_says_why(never_run: AuditRecord) -> None:
    text = render_html(never_run)
    assert "<svg" not in text
    assert "no shadow model was scored" in text
    assert "the null control failed" in text


def test_controls_that_were_not_run_and_the_attack_on_endings_are_explained(
    record_of: Make, example: dict[str, Any]
) -> None:
    text = render_markdown(record_of(verdict="inconclusive", controls=None))
    assert "No control was run" in text
    attack = {**example["attacks"][0], "name": "trial outcomes"}
    text = render_markdown(record_of(attacks=[attack, *example["attacks"][1:]]))
    assert "Trial outcomes guesses from how a training ended" in text
    assert "guesses from how a training ended" not in render_markdown(record_of())


def test_warnings_of_inferred_schema_and_unseedable_generator(record_of: Make) -> None:
    words = Outline(render_html(record_of(**INCONCLUSIVE))).words
    assert "the schema was inferred from the table" in words
    assert "cannot be seeded" in words
    assert "cannot be seeded" not in Outline(render_html(record_of())).words


def test_sections_come_in_the_order_in_which_a_reader_asks(record_of: Make) -> None:
    result = record_of(probes=PROBES)
    titles = re.findall(r"^##+ (.+)$", render_markdown(result), re.M)
    assert titles == re.findall(r"<h[23]>(.+?)</h[23]>", render_html(result).replace("&#39;", "'"))
    asked = (
        *("Result", "Next step", "Reasons", "What leaks", "Attacks", "Scores", "Threat model"),
        *("Controls and checks", "Probes before the audit", "Standards"),
        *("Reproduce", "Settings", "Data", "Versions"),
    )
    assert [title for title in titles if title in asked] == list(asked)


def test_the_figure_stands_before_every_section(record_of: Make) -> None:
    page = render_html(record_of())
    header, rest = page.split("</header>")
    assert header.count("<figure>") == 1
    assert re.findall(r"<h2>(.+?)</h2>", header) == ["Result"]
    assert rest.index('<nav aria-label="Contents">') < rest.index("<h2>")
    linked = dict(re.findall(r'<a href="#(section-\d+)">(.+?)</a>', rest))
    for name, title in linked.items():
        heading = rest.partition(f'<section id="{name}">')[2].partition("</h2>")[0]
        assert heading.rpartition(">")[2] == title
    assert len(linked) == rest.count("<h2>")


def test_no_line_of_the_heading_begins_with_a_percent_sign(record_of: Make) -> None:
    assert "(95&nbsp;% confidence)</span></h1>" in render_html(record_of())


def test_a_short_page_has_no_list_of_contents(never_run: AuditRecord) -> None:
    short = audit_page(never_run)._replace(details=())
    assert "<nav" not in page_html(short)


def test_details_are_folded_and_what_went_wrong_is_not(record_of: Make) -> None:
    def folded(result: AuditRecord) -> set[str]:
        return set(re.findall(r"<summary><h[23]>(.+?)</h[23]></summary>", render_html(result)))

    fine, failed = folded(record_of(**CONSISTENT)), folded(record_of(**INVALID, probes=PROBES))
    assert {"Checks of the run", "Settings", "Versions", "Standards"} <= fine
    assert not {"Checks of the run", "Probes before the audit", "Reasons"} & failed
    assert "::details-content" in render_html(record_of()).partition("@media print")[2]


def test_what_leaks_is_short_and_grouped(record_of: Make) -> None:
    def leak(column: str, feature: str, importance: float) -> dict[str, Any]:
        return {"column": column, "feature": feature, "importance": importance}

    shares = [leak("education", f"share of {name}", 0.1) for name in "abcdefghi"]
    others = [leak(f"c{n}", f"statistic {n}", 0.05) for n in range(6)]
    nothing = [leak("idle", "max", 0.0)]
    text = render_markdown(record_of(leaks=[*shares, *others, *nothing]))
    part = text.partition("## What leaks")[2].partition("\n## ")[0]
    assert "| education, 9 categories | 0.1 |" in part
    assert len(re.findall(r"^\| (?!Feature)\w", part, re.M)) == 5
    assert "result.json has 3 more features; other columns may leak too." in part
    assert "idle" not in part


def test_a_legend_shows_its_marks_and_no_words_stand_on_the_axis(record_of: Make) -> None:
    picture = ElementTree.fromstring(draw(Picture.CLAIM, record_of()))
    svg = "{http://www.w3.org/2000/svg}"
    rows = picture.findall(f"{svg}g")
    assert len(rows) == 5
    assert all(len(row) == 2 and row[0].tag in (f"{svg}rect", f"{svg}path") for row in rows)
    written = [one.text or "" for one in picture.findall(f"{svg}text")]
    assert all(words == "epsilon" or float(words) >= 0 for words in written)


def test_no_line_of_a_command_ends_inside_an_option() -> None:
    command = "dpaudit audit my.py:Gan --data 'a & b.json'"
    assert _whole_words(command) == (
        "dpaudit audit my.py:Gan <span>--data</span> &#39;a &amp; b.json&#39;"
    )
    css = files("dpaudit.report").joinpath("templates/report.css").read_text(encoding="utf-8")
    assert "pre span { display: inline-block; max-width: 100%; }" in css


def test_a_game_says_what_is_its_own(record_of: Make) -> None:
    many = render_markdown(record_of(**MANY_RECORDS))
    part = many.partition("## Many records per shadow model")[2].partition("\n## ")[0]
    assert part.index("| 7 | 40 | 40 |") < part.index("| 3 | 50 | 30 |")
    assert "| Score | Trained with the record | Trained without the record |" in many
    assert "100, each with about half of the records" in many
    assert "What leaks" not in many
    canaries = render_markdown(record_of(**ONE_RUN))
    assert "| Bound, nearest | 1.4 | AUC 0.900 |" in canaries
    assert "of an attack without errors on this many canaries" in canaries
    assert "| Score | Canaries trained on | Canaries left out |" in canaries
    worlds = render_markdown(record_of())
    assert "| Score | Trained with the target | Trained without the target |" in worlds
    assert "canaries" not in worlds


@pytest.mark.parametrize(
    ("changed", "seen"),
    [
        ({}, "synthetic rows alone (output)"),
        ({"access": "released"}, "rows, model and what the proof protects (released)"),
        ({}, "tables with a record from tables without it"),
        (INCONCLUSIVE, "tables with another in its place"),
        (INCONCLUSIVE, "record:target.json (not a row of the table)"),
        (ONE_RUN, "which of the canaries were in the table"),
        (ONE_RUN, "| Attacks | 100 canaries |"),
        (MANY_RECORDS, "which of the attacked records were in the table"),
        (MANY_RECORDS, "| Attacks | 2 records, each by a fair coin in every model |"),
    ],
)
def test_the_threat_model_says_who_sees_what(
    record_of: Make, changed: dict[str, Any], seen: str
) -> None:
    text = render_markdown(record_of(**changed))
    part = text.partition("## Threat model")[2].partition("\n## ")[0]
    assert seen in part.replace("\\", "")
    assert "other records" in part


def test_the_last_section_and_the_footer_are_printed_on_one_page(record_of: Make) -> None:
    page = render_html(record_of())
    end = page.partition('<div class="end">')[2].partition("</div>\n</main>")[0]
    assert re.findall(r"<h3>(.+?)</h3>", end) == ["Versions"]
    assert "<footer>" in end
    assert re.search(r"^  section, \.end, [^{]*{ break-inside: avoid; }$", page, re.M)


def test_the_data_are_summarised_apart_from_the_settings(record_of: Make) -> None:
    result = record_of()
    text = render_markdown(result)
    part = text.partition("### Data")[2].partition("\n#")[0]
    settings = text.partition("### Settings")[2].partition("\n#")[0]
    rows = {"Source": result.data.source, "Rows": result.data.rows}
    for name, value in {**rows, "Salted SHA-256": result.data.sha256}.items():
        assert f"| {name} | {value} |" in part
        assert f"| {name} |" not in settings
    assert f"| Seed | {result.seed} |" in settings


def test_long_lists_are_cut_and_say_so(record_of: Make) -> None:
    reasons = [{"world": "in", "count": 1, "error": f"error {i}"} for i in range(25)]
    markdown = render_markdown(record_of(failures={"in": 25, "out": 0}, failure_reasons=reasons))
    assert "5 more reasons are in result.json." in markdown
    assert "error 19" in markdown
    assert "error 20" not in markdown


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-05), (0.1, 0.3), (1000.0, 0.0)])
def test_claim_region_is_the_largest_permitted_rate(epsilon: float, delta: float) -> None:
    claim = PrivacyClaim(epsilon=epsilon, delta=delta)
    region = claim_region(claim)
    for point in region[1:5]:
        assert point.tpr == pytest.approx(largest_tpr(claim, point.fpr), abs=1e-12)
    turned = [(1 - point.fpr, 1 - point.tpr) for point in region[4:]]
    np.testing.assert_allclose(turned, region[:4], atol=1e-12)


def test_reports_are_written_whole(tmp_path: Path, record_of: Make) -> None:
    (tmp_path / "report.html").write_text("old")
    write_reports(record_of(), tmp_path)
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == render_html(record_of())
    assert (tmp_path / "report.md").read_text(encoding="utf-8") == render_markdown(record_of())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "report.md"]


def test_a_missing_folder_is_named(tmp_path: Path, record_of: Make) -> None:
    with pytest.raises(RunFolderError, match="missing"):
        write_reports(record_of(), tmp_path / "missing")


STEERING = "a\x1b[31mb\u202ec\u2066d\u200be\x9bf\x00"


def test_what_steers_or_turns_text_round_is_visible(record_of: Make) -> None:
    result = record_of(
        reasons=[STEERING],
        attack=STEERING,
        leaks=[{"column": STEERING, "feature": "max", "importance": 0.1}],
        reproduce=STEERING,
    )
    for text in (render_html(result), render_markdown(result)):
        assert all(character.isprintable() or character == "\n" for character in text)
        assert "a\N{REPLACEMENT CHARACTER}" in text


@pytest.mark.parametrize(
    ("foreign", "shown"),
    [
        ("@octocat", "@&#8203;octocat"),
        ("me@example.org", "me@&#8203;example.org"),
        ("[x](y)", r"\[x\](y)"),
        ("https://example.org", "https:&#8203;//example.org"),
        ("HTTP://example.org", "HTTP:&#8203;//example.org"),
        ("www.example.org", "www&#8203;.example.org"),
        ("owner/repo#12", r"owner/repo\#&#8203;12"),
        ("GH-12", "GH-&#8203;12"),
    ],
)
def test_markdown_links_and_mentions_nobody(record_of: Make, foreign: str, shown: str) -> None:
    markdown = render_markdown(record_of(reasons=[foreign]))
    assert f"- {shown}\n" in markdown


@pytest.mark.parametrize(
    ("scores", "threshold", "ends"),
    [
        ([-0.8, 6.7], 0.3, (-0.8, 6.7)),
        ([-3.0, -1.0], 2.0, (-3.0, 2.0)),
        ([0.2, 0.6], 0.5, (0.0, 1.0)),
        ([-2.5, -2.5], -2.5, (-3.0, -2.0)),
    ],
)
def test_the_axis_of_scores_holds_all_scores_and_the_threshold(
    record_of: Make, scores: list[float], threshold: float, ends: tuple[float, float]
) -> None:
    record = record_of(
        scores={"in": scores, "out": scores},
        threshold={"value": threshold, "direction": "higher"},
    )
    drawing = draw(Picture.SCORES, record)
    labels = re.findall(r'text-anchor="middle"[^>]*>(−?[\d.]+)</text>', drawing)
    marks = [float(label.replace("−", "-")) for label in labels]
    step = np.diff(marks).max()  # the axis goes on for less than a step beyond its outermost ticks
    assert (min(marks), max(marks)) == pytest.approx(ends, abs=step)


def test_a_bound_of_trials_judged_before_holds_at_no_confidence(record_of: Make) -> None:
    def written(*, passed: bool) -> str:
        check = {"name": "fresh trials", "passed": passed, "detail": "", "consequence": "withholds"}
        return render_markdown(
            record_of(verdict="inconclusive", proved=3.0, claim={"epsilon": 1.0}, checks=[check])
        )

    certain = "lower bound at 95 % confidence (exact); decides: quote this"
    assert certain in written(passed=True)
    assert certain not in written(passed=False)
    assert "lower bound (exact); proves nothing" in written(passed=False)
    assert written(passed=False).count("judged before, so its bound proves nothing") == 1


@pytest.mark.parametrize(
    ("bounds", "limit", "rows"),
    [
        (
            {"exact": 3.21, "clopper_pearson": 2.58},
            4.38,
            [
                "| Empirical epsilon | 3.21 | lower bound at 95 % confidence (exact); decides: "
                "quote this |",
                "| Clopper-Pearson | 2.58 | the bound that other audits report, for comparison; "
                "never decides |",
                "| Upper limit | 4.38 | bound of an attack without errors on this many models |",
            ],
        ),
        (
            {"exact": 3.21, "clopper_pearson": 3.21},
            3.21,
            [
                "| Empirical epsilon | 3.21 | lower bound at 95 % confidence (exact); decides: "
                "quote this; the same by Clopper-Pearson; all that this many models can prove |",
            ],
        ),
    ],
)
def test_the_result_has_one_row_for_each_number(
    bounds: dict[str, float], limit: float, rows: list[str], record_of: Make
) -> None:
    every = {**NO_BOUNDS, **bounds}
    text = render_markdown(record_of(proved=3.21, bounds=every, max_provable_epsilon=limit))
    table = re.findall(r"^\|.*\|$", text.partition("## Result")[2].partition("\n## ")[0], re.M)[2:]
    assert [row for row in table if not row.startswith(("| Claim", "| Minimum"))] == rows
    numbers = [row.split(" | ")[1] for row in table]
    assert len(numbers) == len(set(numbers))


def test_the_one_test_of_a_selected_attack_needs_no_correction(record_of: Make) -> None:
    selected = {"rule": "select", "hypotheses": 1, "attacks": ["form", "groundhog"]}
    assert (
        "It was chosen among form, groundhog and their combination on shadow models that are not "
        "scored. The scored ones test this choice alone: one test, which needs no correction for "
        "multiple testing."
    ) in render_markdown(record_of(multiplicity=selected))


def test_a_repetition_is_no_independent_evidence(record_of: Make) -> None:
    same = "gives the same numbers. It confirms this audit; independent evidence needs another"
    assert same in render_markdown(record_of())


def test_the_next_step_says_where_to_run_what_reads_the_run(record_of: Make) -> None:
    found = record_of(verdict="violation")
    offers = replace(found, generator=replace(found.generator, fixes=2))
    advice = render_markdown(offers).partition("## Next step")[2].partition("\n## ")[0]
    assert "once fixed, removes the leak?\n" in advice
    assert "Run it in the folder of this report:\n" in advice


def test_an_audit_of_one_training_is_told_what_it_can_add(record_of: Make) -> None:
    text = render_markdown(record_of(**ONE_RUN, verdict="consistent", reasons=["none"]))
    advice = text.partition("## Next step")[2].partition("\n## ")[0]
    assert "more canaries (--set canaries=M), or without --one-run" in advice
    assert "--target" not in advice


def test_names_between_backticks_are_code_and_stay_text() -> None:
    assert _code("`<b>` & `x`") == "<code>&lt;b&gt;</code> &amp; <code>x</code>"
    assert _breakable("`rows[1]` - `rows[2]`") == "<code>rows[1]</code> - <code>rows[2]</code>"


def test_the_triangle_of_the_claim_figure_is_explained(record_of: Make) -> None:
    page = render_html(record_of(verdict="consistent", proved=0.4))
    assert "The triangle is no finding: a true epsilon there is detected by 80" in page
