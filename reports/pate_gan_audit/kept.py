"""Results that are kept: one JSON for each piece of work, so that nothing finished is lost."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpaudit.game.flight import TrialProgress
from dpaudit.versions import versions
from reports.command import write_json

Record = dict[str, Any]


def kept(path: Path, asked: Record, work: Callable[[], Record]) -> Record:
    """The record at a path if it was made from the same question, else a new one, written there.

    Args:
        path: The file.
        asked: Everything that decides the result, JSON.
        work: Finds the result.

    Returns:
        The record: `asked`, `versions`, `wall_seconds` and what the work found.
    """
    name = f"{path.parent.name}/{path.stem}"
    if path.exists():
        found: Record = json.loads(path.read_text(encoding="utf-8"))
        if found["asked"] == json.loads(json.dumps(asked)):
            print(f"{name}: kept", flush=True)
            return found
    print(f"{name}: begins", flush=True)
    started = time.perf_counter()
    found = {"asked": asked, "versions": versions(), **work()}
    found["wall_seconds"] = round(time.perf_counter() - started, 1)
    write_json(path, found)
    print(f"{name}: {found['wall_seconds']:.0f} s", flush=True)
    return found


def read(results: Path, part: str) -> dict[str, Record]:
    """All records of one part, by name."""
    paths = sorted((results / part).glob("*.json"))
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in paths}


class Tenths:
    """Prints a line for each tenth of a run's trials."""

    def __init__(self) -> None:
        self._shown: dict[str, int] = {}

    def __call__(self, progress: TrialProgress) -> None:
        """Takes an event of the engine."""
        tenth = 10 * progress.done // max(1, progress.total)
        if tenth > self._shown.get(progress.role, 0):
            self._shown[progress.role] = tenth
            failed = f", {progress.failed} failed" if progress.failed else ""
            print(f"  {progress.role}: {progress.done} of {progress.total}{failed}", flush=True)
