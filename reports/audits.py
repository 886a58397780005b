"""Studies that are many audits of some kinds: what runs and resumes them, and their table."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

from dpaudit.results.verdict import Verdict
from dpaudit.versions import versions
from reports import markdown
from reports.command import write_json

HEADS: Final = ("audits", "generator", "number", "violations", "median proved", "median seconds")


def run_audits(
    path: Path, audited: Callable[[int], dict[str, Any]], *, wanted: int, at_once: int
) -> None:
    """Runs the audits that a file lacks.

    Args:
        path: The file; its name is that of the audits' kind.
        audited: What an audit found, by its number.
        wanted: How many audits the file shall hold.
        at_once: Audits between two writes of the file.
    """
    found = json.loads(path.read_text())["audits"] if path.exists() else []
    for number in range(len(found), wanted):
        found.append(audited(number))
        if len(found) % at_once == 0 or len(found) == wanted:
            write_json(path, {"part": path.stem, "versions": versions(), "audits": found})
            print(f"{path.stem}: {len(found)} of {wanted}", file=sys.stderr, flush=True)


def audits_table(out: Path, asked: Mapping[str, str]) -> str:
    """The results as a Markdown table.

    Args:
        out: Folder of the results.
        asked: What is audited, in words, by kind.
    """
    rows = (row for name, asks in asked.items() for row in _rows(out / f"{name}.json", asks))
    return markdown.table(HEADS, rows)


def _rows(path: Path, asks: str) -> Iterator[Sequence[object]]:
    if not path.exists():
        return
    audits = json.loads(path.read_text())["audits"]
    for generator in sorted({one["generator"] for one in audits}):
        own = [one for one in audits if one["generator"] == generator]
        flagged = sum(one["verdict"] == Verdict.VIOLATION.value for one in own)
        proved = [one["proved"] for one in own if one["proved"] is not None]
        yield (
            asks,
            generator,
            len(own),
            flagged,
            markdown.number(median(proved)),
            markdown.number(median(one["seconds"] for one in own), 1),
        )
