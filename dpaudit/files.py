"""Files written atomically, and JSON from untrusted sources."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final


def write_whole(path: Path, content: bytes | str, *, mode: int = 0o666) -> None:
    """Writes a temporary file, then moves it into place; on failure nothing is left behind.

    Readers see the old file or the new one, never a partial one. If several write at once, the last
    one wins.

    Args:
        path: Where the file goes; its folder exists.
        content: What it holds; text is written as UTF-8, its line ends as they are.
        mode: Its permissions, less the umask; by default those of any new file.

    Raises:
        OSError: If the folder is missing, full or cannot be written; an old file is still there.
    """
    data = content.encode() if isinstance(content, str) else content
    # A separate name for each writer; made with "x", so none opens another's.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


STEP_SUMMARY: Final = "GITHUB_STEP_SUMMARY"
"""The variable that names the summary of a job: GitHub Actions sets it in every step."""
MOST_OF_SUMMARY: Final = 100_000
"""Bytes that one result or one session adds: of a summary beyond 1 MiB GitHub shows nothing."""


def append_to_step_summary(text: str) -> str:
    """Appends a text to the summary of the job, in a step of GitHub Actions.

    Args:
        text: Markdown, of at most 100,000 bytes.

    Returns:
        Why it cannot be written; empty if it was, or if this is no such step.
    """
    file = os.environ.get(STEP_SUMMARY)
    if not file:
        return ""
    try:
        with Path(file).open("a", encoding="utf-8") as summary:
            summary.write(text)
    except OSError as error:
        return f"{STEP_SUMMARY} cannot be written: {io_reason(error)}"
    return ""


MOST_NESTED = 64
"""Largest nesting depth of a JSON document; dpaudit's own have fewer than ten levels."""


def parse_json(text: str, *, parse_constant: Callable[[str], object] | None = None) -> Any:
    """Reads JSON from an untrusted source.

    Args:
        text: The document.
        parse_constant: Called with NaN and the infinities, as by `json.loads`.

    Returns:
        The document.

    Raises:
        ValueError: If it is not JSON, or nests so deep that reading it would exhaust the stack.
    """
    try:
        document = json.loads(text, parse_constant=parse_constant)
    except RecursionError:
        raise _too_deep() from None
    level, depth = [document], 0
    while level := [item for value in level for item in _items(value)]:
        depth += 1
        if depth > MOST_NESTED:
            raise _too_deep()
    return document


def _items(value: object) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _too_deep() -> ValueError:
    return ValueError(f"it nests more than {MOST_NESTED} lists or objects in one another")


def io_reason(error: OSError) -> str:
    """What the system says about a failed operation: "No space left on device"."""
    return error.strerror or str(error) or type(error).__name__
