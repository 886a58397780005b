"""Report files beside result.json."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpaudit.errors import RunFolderError
from dpaudit.files import write_whole
from dpaudit.report.render import render_html, render_markdown

HTML_NAME = "report.html"
MARKDOWN_NAME = "report.md"


def write_reports(document: Mapping[str, Any], folder: Path) -> None:
    """Write report.html and report.md; whoever reads them sees the old or the new, never half.

    Args:
        document: A result document.
        folder: The run folder, which exists.

    Raises:
        RunFolderError: The folder does not exist or cannot be written.
    """
    for name, text in (
        (HTML_NAME, render_html(document)),
        (MARKDOWN_NAME, render_markdown(document)),
    ):
        try:
            write_whole(folder / name, text)
        except OSError as error:
            raise RunFolderError(
                f"cannot write {folder / name}: {error.strerror}; choose a folder that exists "
                "and can be written"
            ) from error
