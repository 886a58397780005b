"""One frame for the report of every command."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from dpaudit.comparison import Reference, compare, comparison_page
from dpaudit.explain.explanation import (
    Before,
    Effect,
    Explanation,
    FixedAudit,
    Interval,
    explanation_page,
)
from dpaudit.model.choices import Severity
from dpaudit.model.claim import PrivacyClaim
from dpaudit.probe.run import ProbeReport, ProbeResult, ProbeStatus, probe_page
from dpaudit.report.content import audit_page
from dpaudit.report.page import Page, page_text
from dpaudit.report.render import page_html, page_markdown
from dpaudit.results.record import AuditBrief, AuditRecord
from dpaudit.results.structure import Picture
from dpaudit.results.verdict import Verdict
from dpaudit.trace.catalogue import flaw
from dpaudit.trace.run import TraceReport, trace_page
from outline import accessibility_faults

Make = Callable[..., AuditRecord]
DAY = "2026-11-24"
CLAIM = PrivacyClaim(epsilon=1.0, delta=1e-5)


def trace_report() -> TraceReport:
    return TraceReport(
        generator="gan.py:Gan",
        parameters={},
        source="table.csv",
        schema_inferred=False,
        seed=0,
        findings=(flaw("noise-wrong-scale", "scale 1 where 2 is accounted for"),),
        checked=("noise-wrong-law", "delta-xor"),
        not_checked={"gradients-not-clipped": "no gradients were recorded"},
        date=DAY,
        reproduce="dpaudit trace gan.py:Gan --data table.csv --seed 0",
    )


def probe_report() -> ProbeReport:
    def one(name: str, status: ProbeStatus, **more: object) -> ProbeResult:
        given = {"severity": Severity.VIOLATION, "evidence": "seen", "correct": "right", **more}
        return ProbeResult(id=name, status=status, **given)  # type: ignore[arg-type]

    return ProbeReport(
        generator="gan.py:Gan",
        parameters={},
        source="table.csv",
        claim=CLAIM,
        schema_inferred=True,
        records=100,
        target=None,
        confidence=0.99,
        seed=0,
        probes=(
            one("seed-ignored", ProbeStatus.ALARM, p_value=1e-6, fits=7),
            one("row-count-leaks", ProbeStatus.PASSED, fits=2),
            one("missing-follows-record", ProbeStatus.NOT_APPLICABLE),
        ),
        date=DAY,
        reproduce="dpaudit probe gan.py:Gan --data table.csv",
    )


def explanation(brief: AuditBrief) -> Explanation:
    sound = replace(brief, verdict=Verdict.CONSISTENT, proved=0.0)
    return Explanation(
        generator="gan.py:Gan",
        claim=CLAIM,
        confidence=0.95,
        shadow_models=200,
        allowed_auc=0.73,
        before=Before("form", 3.7, 1.0),
        conclusion="fixing bounds removes the leak: bound 3.7 -> 0",
        removed_by=("bounds",),
        fixed=(
            FixedAudit("bounds", Effect.REMOVES, sound, 0.5, Interval(0.4, 0.6), "explain/bounds"),
            FixedAudit("label", Effect.REMAINS, brief, 1.0, Interval(0.9, 1.0), "explain/label"),
            FixedAudit("order", Effect.INVALID, sound, None, None, "explain/order"),
        ),
        reproduce="dpaudit explain run",
    )


@pytest.fixture
def pages(record_of: Make) -> Mapping[str, Page]:
    """A page of every command whose record is quickly made; each violates its claim."""
    record = record_of(date=DAY)
    brief = AuditBrief.of(record)
    runs = {"v1": record_of(verdict="consistent", proved=0.2, date=DAY), "v2": record}
    return {
        "audit": audit_page(record),
        "compare": comparison_page(compare(runs, reproduce="dpaudit compare v1 v2")),
        "compare FOLDER": comparison_page(
            compare(runs, reference=Reference.PREVIOUS, reproduce="dpaudit compare runs")
        ),
        "trace": trace_page(trace_report()),
        "probe": probe_page(probe_report()),
        "explain": explanation_page(explanation(brief)),
    }


def test_every_report_has_the_parts_of_the_frame(pages: Mapping[str, Page]) -> None:
    for name, page in pages.items():
        html, markdown = page_html(page), page_markdown(page)
        titles = re.findall(r"<h2>(.+?)</h2>", html)
        assert titles[:2] == ["Result", "Next step"], name
        assert titles.index("Standards") + 1 == titles.index("Reproduce"), name
        assert titles == re.findall("^## (.+)$", markdown, re.M), name
        header = html.partition("</header>")[0]
        assert header.count("<svg") == 1, name  # above the fold, next to the lead
        assert DAY in header, name
        assert "odds" in header, name
        assert page.verdict is Verdict.VIOLATION, name
        assert page.reproduce is not None
        assert page.reproduce.command in markdown
        assert f"dpaudit {name.partition(' ')[0]} " in markdown
        limits = [block.title for block in page.blocks if block.title == "Threat model"]
        assert limits or re.search("not (tested|ruled out)", " ".join(page.lead)), name


def test_a_terminal_shows_the_heading_the_facts_and_the_next_step(
    pages: Mapping[str, Page],
) -> None:
    for name, page in pages.items():
        text = page_text(page)
        lines = text.splitlines()
        assert lines[0].startswith(f"{page.word}  "), name
        assert max(map(len, lines)) <= 80, name
        assert all(f"\n{row.label}" in text for row in page.facts), name
        assert f"\nnext      {page.next_step.sentences[0].split()[0]} " in text, name
        assert all(block.title in lines for block in page.terminal), name


def test_what_found_nothing_or_could_not_judge_is_no_violation(record_of: Make) -> None:
    report, probes = trace_report(), probe_report()
    empty = trace_page(replace(report, findings=(), checked=(), not_checked={}))
    assert (empty.verdict, empty.word) == (Verdict.INCONCLUSIVE, "NOTHING CHECKED")
    sound = trace_page(replace(report, findings=()))
    assert (sound.verdict, sound.finding) == (
        Verdict.CONSISTENT,
        "2 checks passed, 1 could not be made",
    )
    calm = probe_page(replace(probes, probes=probes.probes[1:]))
    assert (calm.verdict, calm.word) == (Verdict.CONSISTENT, "NO ALARM")
    unfit = probe_page(replace(probes, probes=probes.probes[2:]))
    assert (unfit.verdict, unfit.word) == (Verdict.INCONCLUSIVE, "NOTHING PROBED")
    assert unfit.finding == "no probe applies: seen"
    found_none = replace(
        explanation(AuditBrief.of(record_of())),
        removed_by=(),
        conclusion="no fix that was tried removes the leak: it is elsewhere",
    )
    unexplained = explanation_page(found_none)
    assert (unexplained.verdict, unexplained.word) == (Verdict.INCONCLUSIVE, "NOT EXPLAINED")
    for page in (empty, sound, calm, unfit, unexplained):
        html = page_html(page)
        assert accessibility_faults(html) == []
        assert "does not hold" not in html
    assert "not evidence" in page_markdown(sound)
    assert "not evidence" in page_markdown(calm)


def test_the_figure_of_checks_has_a_box_for_each_and_tells_them_apart_without_colour() -> None:
    drawn = trace_page(trace_report()).draw(Picture.CHECKS)
    words = re.findall(r"<text[^>]*>([^<]*)</text>", drawn)
    rows = {"Noise", "Accounting", "DP-SGD"}
    assert rows <= set(words)
    legend = {"violation", "nothing found", "could not be made"}
    assert legend <= set(words)
    boxes = 4
    assert drawn.count("<rect") == boxes + len(legend)
    assert drawn.count("M3 3l6 6m0 -6l-6 6") == 2  # the violation, and its row of the legend


def test_no_report_has_a_serious_fault_of_accessibility(pages: Mapping[str, Page]) -> None:
    for name, page in pages.items():
        assert accessibility_faults(page_html(page)) == [], name


@pytest.mark.parametrize(
    ("broken", "by", "fault"),
    [
        ('<html lang="en">', "<html>", "html without lang"),
        ('<th scope="col"', "<th", "th without scope"),
        ('role="region" ', "", "div takes the focus without a role and a name"),
        ("<h2>Result</h2>", "<h3>Result</h3>", "h3 after h1"),
        ('id="checks-title"', 'id="checks-desc"', "an identifier twice"),
        (' aria-labelledby="checks-title checks-desc"', "", "svg without aria-labelledby"),
        ("<footer>", "<footer></footer><footer>", "2 elements footer"),
    ],
)
def test_faults_of_accessibility_are_found(
    pages: Mapping[str, Page], broken: str, by: str, fault: str
) -> None:
    page = page_html(pages["trace"])
    assert broken in page
    assert fault in accessibility_faults(page.replace(broken, by))
