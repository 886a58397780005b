"""What GitHub Actions shows of an audit: the summary of the job."""

from __future__ import annotations

from dpaudit.cli.console import messages
from dpaudit.files import MOST_OF_SUMMARY, append_to_step_summary
from dpaudit.report.render import render_excerpt
from dpaudit.results.record import AuditRecord


def summarise(result: AuditRecord) -> None:
    """Appends an audit's report to the summary of the job, in a step of GitHub Actions.

    A summary that cannot be written is noted on standard error; the exit code says what was found.
    """
    excerpt = render_excerpt(result, most_bytes=MOST_OF_SUMMARY - 2)
    if reason := append_to_step_summary(excerpt + "\n\n"):
        messages().print(f"note: {reason}")
