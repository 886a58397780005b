"""Pages as HTML and Markdown, above all a result's: the same bytes again."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from dpaudit.errors import RunFolderError
from dpaudit.files import io_reason, write_whole
from dpaudit.formatting import visible
from dpaudit.report.content import blocks, subject
from dpaudit.report.figures import draw
from dpaudit.results.record import AuditRecord
from dpaudit.results.result import REPORT_FILE
from dpaudit.results.sentences import HEADLINE_GAP, headline, lead
from dpaudit.results.structure import Block, Level, Picture
from dpaudit.results.verdict import Verdict

# Known by shape as well as by colour; a tick for "consistent" would say more than was found.
_SYMBOLS = {
    Verdict.VIOLATION: "✕",
    Verdict.CONSISTENT: "○",
    Verdict.INCONCLUSIVE: "?",
    Verdict.INVALID: "!",
    Verdict.MEASURED: "≥",
}
# Underscores inside a word are plain text in GitHub's Markdown; escaped they hurt the eye.
_MARKDOWN_SPECIAL = re.compile(r"[\\`*\[\]|~#$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
# GitHub links these without brackets, and whatever a backslash says: mentions and mail addresses,
# numbers of issues, web addresses. A space without width after them keeps them plain text.
_MARKDOWN_LINK = re.compile(
    r"@|(?<=\\)#(?=[0-9])|\bGH-(?=[0-9])|[a-z]:(?=//)|\bwww(?=\.)", re.IGNORECASE
)
_BREAK = "&#8203;"
_CUT = "The rest is too long to be shown here: it is in report.html of the run folder."
_LETTERS_IN_LINE, _LINES_OF_TITLE, _LINES_OF_PICTURE = 95, 3, 22
_LINES_OF_THREE_SCREENS = 100
_HTML_SPECIAL = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


class Page(NamedTuple):
    """What a page shows, whatever it becomes.

    Attributes:
        verdict: Gives the heading its colour and its sign.
        word: The first word of the heading, in capitals.
        finding: The rest of the heading.
        subject: The line above it.
        lead: Sentences below it.
        blocks: The parts. The picture of the first one stands next to the lead.
        origin: What it was made from, and by which version.
    """

    verdict: Verdict
    word: str
    finding: str
    subject: str
    lead: tuple[str, ...]
    blocks: tuple[Block, ...]
    origin: str


def render_html(result: AuditRecord) -> str:
    """Renders the report as one HTML file without scripts or anything from the network.

    Args:
        result: The record of an audit.

    Returns:
        The HTML text.
    """
    return page_html(_page(result), draw=lambda picture: draw(picture, result))


def render_markdown(result: AuditRecord) -> str:
    """Renders the report as Markdown (GitHub's), without pictures; their tables are there.

    Args:
        result: The record of an audit.

    Returns:
        The Markdown text.
    """
    return page_markdown(_page(result))


def render_excerpt(result: AuditRecord, *, most_bytes: int) -> str:
    """Renders as much of the report from its beginning on as fits, as Markdown.

    Args:
        result: The record of an audit.
        most_bytes: Of the text as UTF-8; the verdict is there however few they are.

    Returns:
        The Markdown text; where parts are left out, it says so.
    """
    page = _page(result)
    text, kept = page_markdown(page), len(page.blocks)
    while len(text.encode()) > most_bytes and kept:
        kept -= 1
        cut = Block(title="More", paragraphs=(_CUT,))
        text = page_markdown(page._replace(blocks=(*page.blocks[:kept], cut)))
    return text


def page_html(page: Page, *, draw: Callable[[Picture], str]) -> str:
    """A page as one HTML file.

    Args:
        page: The page.
        draw: Makes an `<svg>` element of each picture that its blocks name.

    Returns:
        The HTML text.
    """
    template = _environment(autoescape=True).get_template("page.html.j2")
    return visible(template.render(_context(page), draw=lambda picture: Markup(draw(picture))))


def page_markdown(page: Page) -> str:
    """A page as Markdown, without pictures.

    Args:
        page: The page.

    Returns:
        The Markdown text.
    """
    template = _environment(autoescape=False, finalize=_markdown).get_template("page.md.j2")
    return visible(template.render(_context(page), fenced=_fenced, hashes=_hashes, rule=_rule))


def _page(result: AuditRecord) -> Page:
    word, _, finding = headline(result).partition(HEADLINE_GAP)
    return Page(
        verdict=result.verdict,
        word=word,
        finding=finding,
        subject=subject(result),
        lead=lead(result),
        blocks=blocks(result),
        origin=f"dpaudit {result.versions.get('dpaudit', '')} from result.json",
    )


def _context(page: Page) -> dict[str, Any]:
    opens = bool(page.blocks) and page.blocks[0].picture is not None
    return {
        **page._asdict(),
        "symbol": _SYMBOLS[page.verdict],
        "result": page.blocks[0] if opens else None,
        "rest": page.blocks[opens:],
        "contents": _contents(page.blocks[opens:]),
    }


def _contents(blocks: Sequence[Block]) -> list[str]:
    """Titles for a list of contents; none where the page is not longer than three screens."""
    lines = 0.0
    for block in blocks:
        lines += _LINES_OF_TITLE
        if not block.folded:
            said = (*block.paragraphs, *block.items)
            lines += sum(math.ceil(len(one) / _LETTERS_IN_LINE) for one in said)
            lines += _LINES_OF_PICTURE * (block.picture is not None)
            lines += 1.3 * len(block.table.rows) if block.table and not block.picture else 0
    if lines <= _LINES_OF_THREE_SCREENS:
        return []
    return [block.title for block in blocks if block.level is Level.SECTION]


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


MARKDOWN_FILE = "report.md"


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
