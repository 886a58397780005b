"""The head of a report for a notebook: HTML that takes its colours from the page around it."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Final

from dpaudit.formatting import printable
from dpaudit.results.advice import in_odds
from dpaudit.results.record import AuditRecord
from dpaudit.results.sentences import headline, lead
from dpaudit.results.verdict import Verdict

_EDGES: Final = {
    Verdict.VIOLATION: "#c4372c",
    Verdict.CONSISTENT: "#2f6ea8",
    Verdict.INCONCLUSIVE: "#9a6700",
    Verdict.INVALID: "#7d4bb3",
}


def notebook_html(result: AuditRecord, *, report: Path | None) -> str:
    """Renders verdict, what it means and why.

    Args:
        result: The record of an audit.
        report: Its report, which is named; None if there is none.

    Returns:
        An HTML element without scripts or style sheet.
    """
    word, _, finding = headline(result).partition(": ")
    paragraphs = [f"<strong>{_text(word)}</strong>: {_text(finding)}"]
    paragraphs += [_text(sentence) for sentence in (*in_odds(result), *lead(result))]
    body = "".join(f"<p>{one}</p>" for one in paragraphs)
    if result.reasons:
        body += f"<ul>{''.join(f'<li>{_text(one)}</li>' for one in result.reasons)}</ul>"
    if report is not None:
        body += f"<p>Report: <code>{_text(str(report))}</code></p>"
    edge = f"border-left: 0.5em solid {_EDGES[result.verdict]}; padding-left: 1em; max-width: 46em"
    return f'<div style="{edge}">{body}</div>'


def _text(foreign: str) -> str:
    return escape(printable(foreign))
