"""Results as HTML, Markdown, JUnit XML and badge; the same input gives the same bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple
from xml.etree import ElementTree

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from dpaudit.errors import RunFolderError
from dpaudit.files import io_reason, write_whole
from dpaudit.formatting import rounded_up, visible
from dpaudit.model.claim import NoClaim
from dpaudit.report.content import audit_page
from dpaudit.report.page import Page
from dpaudit.results.record import AuditRecord
from dpaudit.results.result import REPORT_FILE
from dpaudit.results.sentences import claim_and_proof, headline, is_withheld, verdict_words
from dpaudit.results.structure import Block, Level
from dpaudit.results.summary import failure_lines
from dpaudit.results.verdict import Verdict

# Distinct by shape as well as colour; a tick for "consistent" would say more than was found.
_SYMBOLS = {
    Verdict.VIOLATION: "✕",
    Verdict.OVERSPENT: "▲",
    Verdict.CONSISTENT: "○",
    Verdict.INCONCLUSIVE: "?",
    Verdict.INVALID: "!",
    Verdict.MEASURED: "≥",
}
# Underscores inside a word are plain text in GitHub's Markdown; escaped they hurt the eye.
_MARKDOWN_SPECIAL = re.compile(r"[\\`*\[\]|~#$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
# GitHub links these without brackets and despite backslashes: mentions, mail addresses, numbers of
# issues, web addresses. A zero-width space after them keeps them plain text.
_MARKDOWN_LINK = re.compile(
    r"@|(?<=\\)#(?=[0-9])|\bGH-(?=[0-9])|[a-z]:(?=//)|\bwww(?=\.)", re.IGNORECASE
)
_BREAK = "&#8203;"
_CUT = "The rest is too long to be shown here: it is in report.html of the run folder."
_FEW_SECTIONS = 6
_WHOLE_WORD = 16
"""Largest length of a word that fits any column."""
_NAME_PARTS = re.compile(r"(?<=[:/_])(?=\w)|(?<=[a-z])(?=[A-Z])")
_HTML_SPECIAL = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
MARKDOWN_FILE = "report.md"
_COLORS: Final = {
    Verdict.VIOLATION: "red",
    Verdict.CONSISTENT: "blue",  # not green: it is no evidence of privacy
    Verdict.MEASURED: "blue",
}


def render_html(result: AuditRecord) -> str:
    """Renders the report as one HTML file without scripts or anything from the network.

    Args:
        result: The record of an audit.

    Returns:
        The HTML text.
    """
    return page_html(audit_page(result))


def render_markdown(result: AuditRecord) -> str:
    """Renders the report as Markdown (GitHub's), without pictures; their tables are there.

    Args:
        result: The record of an audit.

    Returns:
        The Markdown text.
    """
    return page_markdown(audit_page(result))


def render_excerpt(result: AuditRecord, *, most_bytes: int) -> str:
    """Renders the beginning of the report, as much as fits, as Markdown.

    Args:
        result: The record of an audit.
        most_bytes: Limit on the text as UTF-8; the verdict is always included.

    Returns:
        The Markdown text; where parts are left out, it says so.
    """
    page = audit_page(result)
    text, kept = page_markdown(page), len(page.blocks)
    while len(text.encode()) > most_bytes and kept:
        kept -= 1
        cut = Block(title="More", paragraphs=(_CUT,))
        text = _markdown(page, (*page.blocks[:kept], cut))
    return text


def page_html(page: Page) -> str:
    """A page as one HTML file without scripts or anything from the network."""
    template = _environment(autoescape=True).get_template("page.html.j2")
    opens = page.result.picture is not None
    rest = page.blocks[opens:]
    return visible(
        template.render(
            _context(page),
            result=page.result if opens else None,
            rest=rest,
            contents=_contents(rest),
            draw=lambda picture: Markup(page.draw(picture)),
            breakable=_breakable,
            coded=_code,
            whole_words=_whole_words,
        )
    )


def page_markdown(page: Page) -> str:
    """A page as Markdown (GitHub's), without pictures; their tables are there."""
    return _markdown(page, page.blocks)


def _markdown(page: Page, blocks: Sequence[Block]) -> str:
    template = _environment(autoescape=False, finalize=_escape).get_template("page.md.j2")
    context = {**_context(page), "blocks": blocks}
    return visible(template.render(context, fenced=_fence))


def _context(page: Page) -> dict[str, Any]:
    when = f", {page.date}" if page.date else ""
    return {
        **page._asdict(),
        "subject": f"{page.about}{when}",
        "symbol": _SYMBOLS[page.verdict],
    }


def _contents(blocks: Sequence[Block]) -> list[str]:
    """Titles for a list of contents; none where the page has few sections."""
    titles = [block.title for block in blocks if block.level is Level.SECTION]
    return titles if len(titles) > _FEW_SECTIONS else []


@cache  # else every report compiles the templates again
def _environment(
    *, autoescape: bool, finalize: Callable[[object], object] | None = None
) -> Environment:
    return Environment(
        loader=PackageLoader("dpaudit.report"),
        autoescape=autoescape,
        finalize=finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _escape(value: object) -> object:
    """Escapes whatever a Markdown template prints, unless it is markup already."""
    if isinstance(value, Markup):
        return value
    text = " ".join(str(value).split())
    text = "".join(_HTML_SPECIAL.get(character, character) for character in text)
    text = _MARKDOWN_SPECIAL.sub(r"\\\g<0>", text)
    return _MARKDOWN_LINK.sub(rf"\g<0>{_BREAK}", text)


def _whole_words(command: str) -> Markup:
    """A command for HTML in which no line ends inside an option: browsers break at hyphens."""
    parts = re.split(r"(\s+)", command)
    return Markup("").join(
        Markup("<span>{}</span>").format(part) if "-" in part else part for part in parts
    )


def _breakable(cell: str) -> Markup:
    """A cell for HTML whose long names break between their parts: `gan.py:`, `Laplace`, `Gan`."""
    words = (
        Markup("<wbr>").join(_NAME_PARTS.split(word)) if len(word) > _WHOLE_WORD else word
        for word in cell.split(" ")
    )
    return _code(Markup(" ").join(words))


def _code(text: str) -> Markup:
    """A text for HTML with its names, which stand between backticks, as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def _fence(code: str) -> Markup:
    """Puts a command into a code block whose fence is longer than any run of backticks in it."""
    longest = max((len(run) for run in re.findall("`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return Markup(f"{fence}sh\n{code}\n{fence}")


def write_reports(result: AuditRecord, folder: Path) -> None:
    """Writes report.html and report.md; readers see the old or the new files, never partial ones.

    Args:
        result: The record of an audit.
        folder: The run folder, which exists.

    Raises:
        RunFolderError: If the folder does not exist or cannot be written.
    """
    for name, text in (
        (REPORT_FILE, render_html(result)),
        (MARKDOWN_FILE, render_markdown(result)),
    ):
        try:
            write_whole(folder / name, text)
        except OSError as error:
            raise RunFolderError(
                f"cannot write {folder / name}: {io_reason(error)}; choose a folder that exists "
                "and can be written"
            ) from error


class _Case(NamedTuple):
    """One test: its name, and its failure in a line and in full; None if it passed."""

    name: str
    outcome: str | None
    message: str
    text: str


def junit_xml(result: AuditRecord, *, fails: bool) -> str:
    """Renders a result as JUnit XML: the claim is a test, and so is each control and each check.

    A claim that fails is a failure; a control or a check that makes the audit invalid is an error.
    Checks that did not pass but do not make the audit fail are skipped, with the reason.

    Args:
        result: The record of an audit.
        fails: Whether its verdict fails: an inconclusive one may pass.

    Returns:
        The XML text.
    """
    cases = [_claim(result, fails=fails), *_controls(result), *_checks(result)]
    outcomes = [case.outcome for case in cases]
    suite = ElementTree.Element(
        "testsuite",
        name="dpaudit",
        tests=f"{len(cases)}",
        failures=f"{outcomes.count('failure')}",
        errors=f"{outcomes.count('error')}",
        skipped=f"{outcomes.count('skipped')}",
        time=f"{result.seconds:g}",
    )
    if result.date is not None:
        suite.set("timestamp", f"{result.date}T00:00:00")
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in _properties(result):
        ElementTree.SubElement(properties, "property", name=name, value=visible(value))
    for case in cases:
        named = {"classname": visible(f"dpaudit.{result.generator.name}"), "name": case.name}
        element = ElementTree.SubElement(suite, "testcase", named, time="0")
        if case.outcome is not None:
            attributes = {"message": visible(case.message)}
            ElementTree.SubElement(element, case.outcome, attributes).text = visible(case.text)
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites)
    text: str = ElementTree.tostring(suites, encoding="unicode", xml_declaration=False)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'


def _claim(result: AuditRecord, *, fails: bool) -> _Case:
    outcome_of = {
        Verdict.CONSISTENT: None,
        Verdict.MEASURED: None,
        Verdict.VIOLATION: "failure",
        Verdict.OVERSPENT: "failure",
        Verdict.INCONCLUSIVE: "failure",
        Verdict.INVALID: "error",
    }[result.verdict]
    outcome = outcome_of if fails or outcome_of is None else "skipped"
    return _Case("claim", outcome, headline(result), "\n".join(failure_lines(result)))


def _controls(result: AuditRecord) -> Iterator[_Case]:
    for name, control in (result.controls.named() if result.controls else {}).items():
        outcome = None if control.passed else "skipped" if result.ran else "error"
        yield _Case(f"{name} control", outcome, control.detail, control.detail)


def _checks(result: AuditRecord) -> Iterator[_Case]:
    for check in result.checks:
        outcome = None if check.passed else "error" if check.invalidates else "skipped"
        yield _Case(check.name, outcome, check.detail, check.detail)


def _properties(result: AuditRecord) -> Iterator[tuple[str, str]]:
    yield "verdict", str(result.verdict)
    yield "quantity", str(result.claim.quantity)
    yield "claimed", "none" if isinstance(result.claim, NoClaim) else f"{result.claim.value:g}"
    yield "proved", "none" if result.proved is None else f"{result.proved!r}"
    yield "confidence", f"{result.confidence:g}"
    yield "seed", f"{result.seed}"
    yield "reproduce", result.reproduce


def badge(result: AuditRecord) -> str:
    """Verdict, claim and bound, power and day as a document for shields.io's endpoint badge.

    Args:
        result: The record of an audit.

    Returns:
        The JSON, with the keys schemaVersion, label, message and color.
    """
    claimed, proved = claim_and_proof(result.claim, result.proved)
    noun, least = result.claim.quantity.noun, result.power and result.power.detectable
    parts = [verdict_words(result)]
    if not isinstance(result.claim, NoClaim):
        parts.append(f"{noun} {claimed}")
    if result.proves_leak and not is_withheld(result):
        parts.append(f"at least {proved}")
    if least is not None and not isinstance(result.claim, NoClaim):
        parts.append(f"detects {rounded_up(least)}")
    parts += [result.date] if result.date else []
    shown = {
        "schemaVersion": 1,
        "label": "differential privacy audit",
        "message": ", ".join(parts),
        "color": _COLORS.get(result.verdict, "lightgrey"),
    }
    return json.dumps(shown, indent=2) + "\n"
