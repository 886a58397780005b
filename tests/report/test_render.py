"""The document's schema, and the HTML and Markdown made of it."""

from __future__ import annotations

import copy
import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import numpy as np
import pytest
from dpaudit.report.schema import result_schema

from dpaudit.errors import RunFolderError
from dpaudit.report.curves import claim_region, largest_tpr
from dpaudit.report.render import render_html, render_markdown
from dpaudit.report.write import write_reports

COUNTS = {"false_negatives": 3, "false_positives": 1, "n_in": 120, "n_out": 120}
CONTROL = {"passed": True, "bound": 0.0, "auc": 0.49, "max_provable_epsilon": 1.6, "detail": "fine"}
EXAMPLE: dict[str, Any] = {
    "schema_version": 1,
    "verdict": "violation",
    "reasons": ["violates (1, 1e-05)-DP: at 95 % confidence the true epsilon is at least 3.21"],
    "claim": {"epsilon": 1.0, "delta": 1e-05, "neighbours": "add-remove", "source": "the vendor"},
    "proved": 3.21,
    "multiplicity": {"rule": "bonferroni", "hypotheses": 2},
    "threshold_rule": "cross-validated",
    "sequential": None,
    "one_run": None,
    "bounds": {"exact": 3.21, "clopper_pearson": 2.58, "sequential": None, "one_run": None},
    "confidence": 0.95,
    "max_provable_epsilon": 4.38,
    "detectable_epsilon": 1.76,
    "auc": 0.981,
    "counts": COUNTS,
    "shadow_models": {"in": 200, "out": 200},
    "failures": {"in": 1, "out": 0},
    "failure_reasons": [{"world": "in", "count": 1, "error": "RuntimeError: unlucky"}],
    "controls": {"null": CONTROL, "positive": {**CONTROL, "bound": 1.6, "auc": 1.0}},
    "leaks": [{"column": "STDs_number", "feature": "max", "importance": 0.21}],
    "attack": "groundhog",
    "attacks": [
        {
            "name": "groundhog",
            "auc": 0.981,
            "bounds": {"exact": 3.21, "clopper_pearson": 2.58, "sequential": None, "one_run": None},
            "counts": COUNTS,
            "threshold": {"value": 0.515, "direction": "higher"},
        },
        {
            "name": "query-target",
            "auc": 0.52,
            "bounds": {"exact": 0.0, "clopper_pearson": 0.0, "sequential": None, "one_run": None},
            "counts": {**COUNTS, "false_negatives": 70, "false_positives": 44},
            "threshold": {"value": 0.49, "direction": "lower"},
        },
    ],
    "threshold": {"value": 0.515, "direction": "higher"},
    "scores": {"in": [0.91, 0.97, 0.42, 0.8, 0.7], "out": [0.1, 0.05, 0.33, 0.2, 0.6]},
    "checks": [
        {
            "name": "trial order",
            "passed": True,
            "detail": "no drift (p = 0.42)",
            "consequence": "invalidates",
        }
    ],
    "generator": {"name": "pate-gan", "parameters": {"bounds": "data"}, "seedable": True},
    "data": {"source": "cervical.csv", "rows": 686, "columns": 29, "sha256": "9f" * 32},
    "schema": {"inferred": True},
    "target": {"choice": "row:397", "row": 397},
    "rows": 686,
    "seed": 0,
    "versions": {"dpaudit": "0.1.0", "python": "3.11.7", "numpy": "2.4.6"},
    "seconds": 151.2,
    "reproduce": "dpaudit audit pate-gan -p bounds=data --data cervical.csv --seed 0",
}


def changed(**changes: Any) -> dict[str, Any]:
    return {**copy.deepcopy(EXAMPLE), **changes}


CONSISTENT = changed(
    verdict="consistent",
    reasons=["no violation found"],
    proved=0.0,
    bounds={"exact": 0.0, "clopper_pearson": 0.0, "sequential": None, "one_run": None},
    counts={**COUNTS, "false_negatives": 60, "false_positives": 61},
    threshold={"value": 0.5, "direction": "lower"},
    leaks=[],
    failures={"in": 0, "out": 0},
    failure_reasons=[],
)
INCONCLUSIVE = changed(
    verdict="inconclusive",
    claim={**EXAMPLE["claim"], "epsilon": 50.0, "neighbours": "replace-one"},
    detectable_epsilon=None,
    target={"choice": "record:target.json", "row": None},
    generator={"name": "g.py:f", "parameters": {}, "seedable": False},
)
NEVER_PLAYED = changed(
    verdict="invalid",
    reasons=["the null control failed"],
    proved=None,
    bounds=None,
    counts=None,
    auc=None,
    attack=None,
    threshold=None,
    detectable_epsilon=None,
    max_provable_epsilon=None,
    attacks=[],
    leaks=[],
    scores={"in": [], "out": []},
    controls={"null": {**CONTROL, "passed": False}, "positive": CONTROL},
)
EVERY = {
    "violation": EXAMPLE,
    "consistent": CONSISTENT,
    "inconclusive": INCONCLUSIVE,
    "invalid after play": changed(
        verdict="invalid",
        checks=[
            {
                "name": "trial order",
                "passed": False,
                "detail": "drifts",
                "consequence": "invalidates",
            }
        ],
    ),
    "invalid": NEVER_PLAYED,
    "claim beyond all": changed(claim={**EXAMPLE["claim"], "epsilon": 1000.0}),
    "threshold beyond the scores": changed(threshold={"value": 1.5, "direction": "higher"}),
    "constant scores": changed(scores={"in": [0.5] * 5, "out": [0.5] * 5}),
}
documents = pytest.mark.parametrize("document", EVERY.values(), ids=EVERY.keys())


class Outline(HTMLParser):
    """Tags, attributes that load or link, and text of a page; complains of unbalanced tags."""

    void = frozenset({"meta", "br", "link", "img"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.identifiers: list[str] = []
        self.text: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name.split(":")[-1] in _LINKS]
        self.identifiers += [value or "" for name, value in attrs if name == "id"]
        if tag not in self.void:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.void:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self._open:
            self.text.append(data)

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())


_LINKS = {"src", "href", "data", "action"}


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(result_schema())


@documents
def test_documents_fit_the_schema(document: dict[str, Any]) -> None:
    jsonschema.validate(document, result_schema())


@pytest.mark.parametrize("key", EXAMPLE)
def test_every_key_is_required(key: str) -> None:
    document = changed()
    del document[key]
    with pytest.raises(jsonschema.ValidationError, match=f"'{key}' is a required property"):
        jsonschema.validate(document, result_schema())


@pytest.mark.parametrize(
    "change",
    [
        {"surprise": 1},
        {"verdict": "private"},
        {"schema_version": 2},
        {"bounds": None},
        {"bounds": {"exact": -1.0, "clopper_pearson": 0.0, "sequential": None, "one_run": None}},
        {"claim": {**EXAMPLE["claim"], "epsilon": "inf"}},
        {"threshold": {"value": 0.5, "direction": "sideways"}},
        {"scores": {"in": ["high"], "out": [0.5]}},
        {"counts": {**COUNTS, "true_negatives": 1}},
    ],
    ids=str,
)
def test_the_schema_refuses(change: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(changed(**change), result_schema())


@documents
def test_html_is_one_file_without_scripts_or_network(document: dict[str, Any]) -> None:
    page = Outline(render_html(document))
    assert "script" not in page.tags
    assert all(link.startswith("#") for link in page.links)
    assert {"h1", "h2"} <= set(page.tags)
    assert len(page.identifiers) == len(set(page.identifiers))


@documents
def test_every_reference_inside_the_pictures_leads_somewhere(document: dict[str, Any]) -> None:
    text = render_html(document)
    referenced = set(re.findall(r"url\(#([^)]+)\)", text)) | set(
        re.findall(r'href="#([^"]+)', text)
    )
    assert referenced <= set(Outline(text).identifiers)


def test_pictures_are_described_and_followed_by_their_numbers() -> None:
    text = render_html(EXAMPLE)
    pictures = re.findall(r"<svg.*?</svg>(?=</figure>)", text, flags=re.DOTALL)
    assert len(pictures) == 3
    for picture in pictures:
        root = ElementTree.fromstring(picture)
        children = {child.tag.split("}")[-1]: child for child in root}
        labels = root.attrib["aria-labelledby"].split()
        assert root.attrib["role"] == "img"
        assert labels == [children["title"].attrib["id"], children["desc"].attrib["id"]]
        assert children["title"].text
        assert children["desc"].text
    assert len(re.findall(r"</figure>\s*<div[^>]*>\s*<table", text)) == 3


def test_html_of_the_largest_audit_is_mailable() -> None:
    rng = np.random.default_rng(5)
    scores = {"in": rng.random(2000).tolist(), "out": rng.random(2000).tolist()}
    document = changed(scores=scores)
    assert len(render_html(document).encode()) < 2_000_000
    assert len(render_markdown(document).encode()) < 100_000


@documents
def test_same_document_same_bytes(document: dict[str, Any]) -> None:
    assert render_html(document) == render_html(copy.deepcopy(document))
    assert render_markdown(document) == render_markdown(copy.deepcopy(document))


def test_foreign_strings_are_escaped_everywhere() -> None:
    hostile = "<script>alert(1)</script> a|b `c` </pre>"
    document = changed(
        reasons=[hostile],
        claim={**EXAMPLE["claim"], "source": hostile},
        failure_reasons=[{"world": "in", "count": 1, "error": hostile}],
        leaks=[{"column": hostile, "feature": "max", "importance": 0.1}],
        attack=hostile,
        attacks=[{**EXAMPLE["attacks"][0], "name": hostile}],
        checks=[{"name": hostile, "passed": True, "detail": hostile, "consequence": "invalidates"}],
        generator={"name": hostile, "parameters": {hostile: hostile}, "seedable": True},
        data={**EXAMPLE["data"], "source": hostile},
        target={"choice": hostile, "row": None},
        versions={hostile: hostile},
        reproduce=hostile,
    )
    page = Outline(render_html(document))
    assert "script" not in page.tags
    assert page.words.count("<script>alert(1)</script>") >= 12
    markdown = render_markdown(document)
    prose, command = markdown.split("## Reproduce")
    assert "<" not in prose
    assert r"a\|b \`c\`" in prose
    assert command.strip().splitlines()[1] == hostile


def test_markdown_rows_have_as_many_cells_as_their_header() -> None:
    document = changed(leaks=[{"column": "a|b\n|c", "feature": "max", "importance": 0.1}])
    tables = re.findall(r"(?:^\|.*\|\n)+", render_markdown(document), flags=re.MULTILINE)
    assert len(tables) >= 8
    for table in tables:
        bars = {len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}
        assert len(bars) == 1


@documents
def test_both_formats_say_the_verdict_and_how_to_repeat_it(document: dict[str, Any]) -> None:
    for text in (Outline(render_html(document)).words, render_markdown(document)):
        assert document["verdict"].upper() in text
        assert document["reproduce"] in text
        assert "None" not in text


def test_consistent_promises_nothing() -> None:
    for text in (Outline(render_html(CONSISTENT)).words, render_markdown(CONSISTENT)):
        assert "No violation found. This is not evidence of privacy." in text
        assert "A leak of epsilon 1.76 or more" in text
        assert "80 % power" in text
        assert not re.search(r"\bprivate\b|\bsafe\b", text, flags=re.IGNORECASE)


def test_an_invalid_audit_proves_nothing() -> None:
    words = Outline(render_html(EVERY["invalid after play"])).words
    assert "these numbers prove nothing" in words
    assert 'the check "trial order" failed' in words
    assert "these numbers prove nothing" not in Outline(render_html(EXAMPLE)).words


def test_violation_names_the_leak() -> None:
    assert "The leak is in max(STDs_number)." in Outline(render_html(EXAMPLE)).words


def test_an_audit_never_played_shows_no_pictures_and_says_why() -> None:
    text = render_html(NEVER_PLAYED)
    assert "<svg" not in text
    assert "no trial of the audited generator was scored" in text
    assert "the null control failed" in text


def test_warnings_of_inferred_schema_and_unseedable_generator() -> None:
    words = Outline(render_html(INCONCLUSIVE)).words
    assert "the schema was inferred from the table" in words
    assert "cannot be seeded" in words
    assert "cannot be seeded" not in Outline(render_html(EXAMPLE)).words


def test_long_lists_are_cut_and_say_so() -> None:
    reasons = [{"world": "in", "count": 1, "error": f"error {i}"} for i in range(25)]
    markdown = render_markdown(changed(failures={"in": 25, "out": 0}, failure_reasons=reasons))
    assert "5 more reasons are in result.json." in markdown
    assert "error 19" in markdown
    assert "error 20" not in markdown


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-05), (0.1, 0.3), (1000.0, 0.0)])
def test_claim_region_is_the_largest_permitted_rate(epsilon: float, delta: float) -> None:
    region = claim_region(epsilon, delta)
    for point in region[1:5]:
        assert point.tpr == pytest.approx(largest_tpr(epsilon, delta, point.fpr), abs=1e-12)
    turned = [(1 - point.fpr, 1 - point.tpr) for point in region[4:]]
    np.testing.assert_allclose(turned, region[:4], atol=1e-12)


def test_reports_are_written_whole(tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("old")
    write_reports(EXAMPLE, tmp_path)
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == render_html(EXAMPLE)
    assert (tmp_path / "report.md").read_text(encoding="utf-8") == render_markdown(EXAMPLE)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "report.md"]


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="missing"):
        write_reports(EXAMPLE, tmp_path / "missing")
