"""Report files beside result.json."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from dpaudit.errors import RunFolderError
from dpaudit.report.render import render_html, render_markdown
from dpaudit.results.record import AuditRecord
from dpaudit.results.result import REPORT_FILE

MARKDOWN_NAME = "report.md"


def write_reports(result: AuditRecord, folder: Path) -> None:
    """Writes report.html and report.md; whoever reads them sees the old or the new, never half.

    Args:
        result: The record of an audit.
        folder: The run folder, which exists.

    Raises:
        RunFolderError: The folder does not exist or cannot be written.
    """
    for name, text in (
        (REPORT_FILE, render_html(result)),
        (MARKDOWN_NAME, render_markdown(result)),
    ):
        try:
            _replace(folder / name, text)
        except OSError as error:
            raise RunFolderError(
                f"cannot write {folder / name}: {error.strerror}; choose a folder that exists "
                "and can be written"
            ) from error


def _replace(path: Path, text: str) -> None:
    """Writes to a temporary file in the same folder, then move it into place."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        # mkstemp makes a file for its owner alone; a report is to be shared.
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
