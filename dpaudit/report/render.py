"""A result as HTML and Markdown: pure functions, the same bytes for the same result."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from dpaudit.formatting import visible
from dpaudit.report.content import blocks, subject
from dpaudit.report.figures import draw
from dpaudit.results.record import AuditRecord
from dpaudit.results.sentences import headline, lead
from dpaudit.results.verdict import Verdict

# Known by shape as well as by colour; a tick for "consistent" would say more than was found.
_SYMBOLS = {
    Verdict.VIOLATION: "✕",
    Verdict.CONSISTENT: "○",
    Verdict.INCONCLUSIVE: "?",
    Verdict.INVALID: "!",
}
# Underscores inside a word are plain text in GitHub's Markdown; escaped they hurt the eye.
_MARKDOWN_SPECIAL = re.compile(r"[\\`*\[\]|~#$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
# GitHub links these without brackets, and whatever a backslash says: mentions and mail addresses,
# numbers of issues, web addresses. A space without width after them keeps them plain text.
_MARKDOWN_LINK = re.compile(
    r"@|(?<=\\)#(?=[0-9])|\bGH-(?=[0-9])|[a-z]:(?=//)|\bwww(?=\.)", re.IGNORECASE
)
_BREAK = "&#8203;"
_HTML_SPECIAL = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def render_html(result: AuditRecord) -> str:
    """Renders the report as one HTML file without scripts or anything from the network.

    Args:
        result: The record of an audit.

    Returns:
        The HTML text.
    """
    environment = _environment(autoescape=True)
    text = environment.get_template("report.html.j2").render(
        **_context(result), draw=lambda picture: Markup(draw(picture, result))
    )
    return visible(text)


def render_markdown(result: AuditRecord) -> str:
    """Renders the report as Markdown (GitHub's), without pictures; their tables are there.

    Args:
        result: The record of an audit.

    Returns:
        The Markdown text, short enough for a GitHub step summary.
    """
    environment = _environment(autoescape=False, finalize=_markdown)
    text = environment.get_template("report.md.j2").render(
        **_context(result), fenced=_fenced, hashes=_hashes, rule=_rule
    )
    return visible(text)


def _context(result: AuditRecord) -> dict[str, Any]:
    word, _, finding = headline(result).partition(": ")
    return {
        "verdict": result.verdict,
        "symbol": _SYMBOLS[result.verdict],
        "word": word,
        "finding": finding,
        "subject": subject(result),
        "lead": lead(result),
        "blocks": blocks(result),
        "version": result.versions.get("dpaudit", ""),
    }


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


def _markdown(value: object) -> object:
    """Escapes whatever a Markdown template prints, unless it is markup already."""
    if isinstance(value, Markup):
        return value
    text = " ".join(str(value).split())
    text = "".join(_HTML_SPECIAL.get(character, character) for character in text)
    text = _MARKDOWN_SPECIAL.sub(r"\\\g<0>", text)
    return _MARKDOWN_LINK.sub(rf"\g<0>{_BREAK}", text)


def _hashes(level: int) -> Markup:
    return Markup("#" * level)


def _rule(numeric: bool) -> Markup:
    return Markup("---:" if numeric else "---")


def _fenced(code: str) -> Markup:
    """Puts a command into a code block whose fence is longer than any run of backticks in it."""
    longest = max((len(run) for run in re.findall("`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return Markup(f"{fence}sh\n{code}\n{fence}")
