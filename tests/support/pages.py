"""Pages of the documentation, run as a reader would: files written, commands and code executed.

Above a block may stand, as a comment:

- `after: PAGE`: the files that blocks of that page show are there, too;
- `exit N`: the commands of the block end with N, not 0;
- `not run: REASON`: the block is shown only.

A `text` block right below commands is what they print, in part: every line of it must be there, in
this order; `…` stands for anything, and numbers may differ by a twentieth, because libraries and
processors do.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
_BLOCK = re.compile(
    r"(?:^<!-- (?P<note>[^\n]*) -->\n+)?^```(?P<language>\w+)(?: title=\"(?P<title>[^\"]+)\")?\n"
    r"(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
_TOLERANCE = 0.05


class PageBlock(NamedTuple):
    """One fenced block: what stands above it as a comment, its language, its file, its text."""

    note: str
    language: str
    title: str
    text: str

    @property
    def exit_code(self) -> int:
        """What its commands end with."""
        found = re.fullmatch(r"exit (\d)", self.note)
        return int(found[1]) if found else 0


def blocks_of(page: Path) -> list[PageBlock]:
    """The blocks of a page, in order."""
    found = _BLOCK.finditer(page.read_text(encoding="utf-8"))
    return [PageBlock(*(one[key] or "" for key in PageBlock._fields)) for one in found]


def run_page(page: Path, folder: Path, *, environment: Mapping[str, str] | None = None) -> int:
    """Runs a page in a folder; returns how many blocks were run.

    Raises:
        AssertionError: If a block does not end as it should, or does not print what the page says.
    """
    surroundings = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "100",
        "NO_COLOR": "1",
        "PYTEST_ADDOPTS": "-p no:cacheprovider",
        **(environment or {}),
    }
    count, printed = 0, ""
    for block in blocks_of(page):
        if block.note.startswith("after: "):
            write_files(page.parent / block.note.removeprefix("after: "), folder)
        if block.note.startswith("not run: "):
            continue
        if block.title:
            _write(block, folder)
        elif block.language in ("sh", "python"):
            words = ["bash", "-euo", "pipefail", "-c"] if block.language == "sh" else None
            command = [*(words or [sys.executable, "-c"]), block.text]
            done = subprocess.run(
                command, cwd=folder, env=surroundings, capture_output=True, text=True, timeout=900
            )
            printed = done.stdout
            said = f"{block.text}\n{done.stdout}\n{done.stderr}"
            assert done.returncode == block.exit_code, said
            count += 1
        elif block.language == "text" and printed:
            check_printed(block.text, printed)
            printed = ""
    return count


def write_files(page: Path, folder: Path) -> None:
    """Writes the files that a page shows, and those of the page that it comes after."""
    for block in blocks_of(page):
        if block.note.startswith("after: "):
            write_files(page.parent / block.note.removeprefix("after: "), folder)
        if block.title:
            _write(block, folder)


def check_printed(expected: str, printed: str) -> None:
    """Checks that every line is there, in order.

    Raises:
        AssertionError: If one is not.
    """
    rest = printed.splitlines()
    for line in filter(str.strip, expected.splitlines()):
        places = [at for at, one in enumerate(rest) if _alike(line, one)]
        assert places, f"not printed: {line}\n\nprinted:\n{printed}"
        rest = rest[places[0] + 1 :]


def _alike(line: str, printed: str) -> bool:
    pattern = re.escape(" ".join(_NUMBER.sub("0", line).split()))
    words = " ".join(_NUMBER.sub("0", printed).split())
    if not re.fullmatch(pattern.replace("…", ".*"), words):
        return False
    return "…" in line or close_numbers(line, printed)


def close_numbers(line: str, printed: str, *, tolerance: float = _TOLERANCE) -> bool:
    """Whether two lines have as many numbers, which differ by at most this share of the larger."""
    wanted, there = ([float(one) for one in _NUMBER.findall(text)] for text in (line, printed))
    return len(wanted) == len(there) and all(
        abs(one - other) <= tolerance * max(abs(one), abs(other))
        for one, other in zip(wanted, there, strict=True)
    )


def _write(block: PageBlock, folder: Path) -> None:
    file = folder / block.title
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(block.text, encoding="utf-8")
