"""A result of an audit without a claim: what it says in every form, and what it leaves out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import jsonschema  # type: ignore[import-untyped]
import pytest
from matplotlib.figure import Figure
from typer.testing import CliRunner

from dpaudit.cli.console import ExitCode, exit_code
from dpaudit.cli.main import app
from dpaudit.comparison import compare, comparison_page
from dpaudit.model.choices import FailOn
from dpaudit.model.claim import NoClaim
from dpaudit.report.render import junit_xml, page_html, page_markdown, render_html, render_markdown
from dpaudit.results.curves import plot
from dpaudit.results.decide import decide
from dpaudit.results.record import AuditRecord
from dpaudit.results.result import AuditResult, result_schema
from dpaudit.results.sentences import headline, in_odds, lead
from dpaudit.results.summary import failure_lines, next_step, summary_lines
from dpaudit.results.verdict import Check, Consequence, Power, Verdict

Make = Callable[..., AuditRecord]
NONE = NoClaim(delta=1e-5)


@pytest.fixture
def measured(record_of: Make) -> AuditRecord:
    changes = {"detectable_epsilon": None, "reasons": ("no claim was given: at least 3.21",)}
    return replace(record_of(), verdict=Verdict.MEASURED, claim=NONE, **changes)  # type: ignore[arg-type]


def test_the_empirical_epsilon_is_the_headline(measured: AuditRecord) -> None:
    assert headline(measured) == (
        "MEASURED  empirical epsilon at least 3.21 (95 % confidence); no claim was given"
    )
    lines = summary_lines(measured)
    assert "claim     none; bounds are at delta 1e-05, add or remove one record" in lines
    [bound] = [line for line in lines if line.startswith("bound ")]
    assert (
        bound == "bound     3.21 (exact; quote this), Clopper-Pearson 2.58; at most 4.38 with 400"
    )
    assert "leak      maximum (STDs_number); rows equal to the target (Age)" in lines
    shown = str(AuditResult.of(measured, folder=None)).splitlines()
    assert all(len(line) <= 80 for line in shown)
    invalid = headline(replace(measured, verdict=Verdict.INVALID))
    assert invalid.endswith("nothing is known about epsilon")


def test_what_needs_a_claim_is_left_out(measured: AuditRecord) -> None:
    said = " ".join([*lead(measured), *summary_lines(measured), *failure_lines(measured)])
    assert "With 95 % confidence the true epsilon is at least 3.21" in said
    assert in_odds(measured) == ""
    for page in (render_html(measured), render_markdown(measured), said):
        text = re.sub(r"<(style|svg).*?</\1>", "", page, flags=re.DOTALL)
        assert "80 % power" not in text
        assert "change in odds" not in text
        assert "epsilon none" not in text
        assert "claim     0" not in text
        assert "Claimed" not in text
    drawn = re.findall(r"<svg.*?</svg>", render_html(measured), flags=re.DOTALL)
    assert len(drawn) == 3
    assert not any("permitted" in one or "claimed" in one for one in drawn)
    assert "--epsilon" in next_step(measured).why
    assert not next_step(measured).command


def test_figures_have_no_mark_of_a_claim(measured: AuditRecord) -> None:
    for figure in ("claim", "roc"):
        ax = plot(measured, Figure().add_subplot(), figure=figure)
        legend = ax.get_legend()
        assert legend is not None
        assert not [one for one in legend.get_texts() if "claim" in one.get_text()]


@pytest.mark.usefixtures("invented_numbers")
def test_it_is_read_back(measured: AuditRecord, tmp_path: Path) -> None:
    result = AuditResult.of(measured, folder=tmp_path)
    result.save(tmp_path)
    document = json.loads((tmp_path / "result.json").read_text())
    jsonschema.validate(document, result_schema())
    assert document["claim"] == {
        "delta": 1e-5,
        "neighbours": "add-remove",
        "source": "no claim was given",
    }
    assert AuditResult.load(tmp_path) == result
    for words in ([], ["--bounds"]):
        done = CliRunner().invoke(app, ["report", str(tmp_path), *words])
        assert done.exit_code == 0, done.output


def test_it_passes_with_exit_code_0_whatever_fails(measured: AuditRecord) -> None:
    assert {exit_code(measured.verdict, one) for one in FailOn} == {ExitCode.PASS}
    suite = ElementTree.fromstring(junit_xml(measured, fails=False))[0]
    assert (suite.get("failures"), suite.get("errors")) == ("0", "0")
    assert suite.find("properties/property[@name='claimed']").get("value") == "none"  # type: ignore[union-attr]


def test_it_is_compared_with_audits_of_claims(measured: AuditRecord, record_of: Make) -> None:
    both = compare({"free": measured, "held": record_of(verdict="consistent", proved=0.4)})
    assert both.verdict is Verdict.MEASURED
    assert "| free | pate-gan | none | 3.21 |" in page_markdown(comparison_page(both))
    assert "≥ 3.21, claim none" in page_html(comparison_page(both))


def test_nothing_is_decided_without_a_claim() -> None:
    power = Power(4.0, None)
    for bound in (0.0, 3.9):
        found = decide(bound, NONE, power, [], confidence=0.95)
        assert found.verdict is Verdict.MEASURED
        assert found.reasons[0].startswith("no claim was given: at 95 % confidence the true")
    broken = Check("control", False, "the null control was caught")
    assert decide(3.9, NONE, power, [broken], confidence=0.95).verdict is Verdict.INVALID
    judged = Check("fresh trials", False, "judged before", Consequence.WITHHOLDS)
    assert decide(3.9, NONE, power, [judged], confidence=0.95).verdict is Verdict.INCONCLUSIVE
    nothing = decide(0.0, NONE, Power(0.0, None), [], confidence=0.95)
    assert nothing.verdict is Verdict.INCONCLUSIVE
