"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def write_whole(path: Path, content: bytes | str, *, mode: int = 0o666) -> None:
    """Writes a file beside its place, then moves it there; on failure nothing is left behind.

    Readers see the old file or the new one, never half of it. Of several writers at once the last
    one wins.

    Args:
        path: Where the file goes; its folder exists.
        content: What it holds; text is written as UTF-8, its line ends as they are.
        mode: Its permissions, less the umask; by default those of any new file.

    Raises:
        OSError: If the folder is missing, full or cannot be written; an old file is still there.
    """
    data = content.encode() if isinstance(content, str) else content
    # A name of its own for each writer; made with "x", so that none opens another's.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
