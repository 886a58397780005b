"""What GitHub Actions shows of an audit: the summary of the job."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from dpaudit.cli.console import messages
from dpaudit.files import io_reason
from dpaudit.report.render import render_excerpt
from dpaudit.results.record import AuditRecord

STEP_SUMMARY: Final = "GITHUB_STEP_SUMMARY"
"""The variable that names the file: GitHub sets it in every step."""
MOST_BYTES: Final = 100_000
"""Of one audit: of a step's summary beyond 1 MiB GitHub shows nothing."""


def append_to_step_summary(result: AuditRecord) -> None:
    """Appends an audit's report to the summary of the job, in a step of GitHub Actions.

    A summary that cannot be written is noted on standard error; the exit code says what was found.
    """
    file = os.environ.get(STEP_SUMMARY)
    if not file:
        return
    try:
        with Path(file).open("a", encoding="utf-8") as summary:
            summary.write(render_excerpt(result, most_bytes=MOST_BYTES - 2) + "\n\n")
    except OSError as error:
        messages().print(f"note: {STEP_SUMMARY} cannot be written: {io_reason(error)}")
