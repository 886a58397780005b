"""Report files beside result.json."""

from __future__ import annotations

from pathlib import Path

from dpaudit.errors import RunFolderError
from dpaudit.files import io_reason, write_whole
from dpaudit.report.render import render_html, render_markdown
from dpaudit.results.record import AuditRecord
from dpaudit.results.result import REPORT_FILE

MARKDOWN_FILE = "report.md"


def write_reports(result: AuditRecord, folder: Path) -> None:
    """Writes report.html and report.md; whoever reads them sees the old or the new, never half.

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
