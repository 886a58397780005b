"""Results that are kept: one JSON for each piece of work, so that nothing finished is lost."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dpaudit.files import write_whole
from dpaudit.game.progress import TrialProgress
from dpaudit.versions import versions

Record = dict[str, Any]
HERE = Path(__file__).parent
RESULTS = HERE / "results"


def kept(path: Path, asked: Record, work: Callable[[], Record]) -> Record:
    """The record at a path if it was made from the same question, else a new one, written there.

    Args:
        path: The file.
        asked: Everything that decides the result, JSON.
        work: Finds the result.

    Returns:
        The record: `asked`, `versions`, `seconds` and what the work found.
    """
    name = f"{path.parent.name}/{path.stem}"
    if path.exists():
        found: Record = json.loads(path.read_text())
        if found["asked"] == json.loads(json.dumps(asked)):
            print(f"{name}: kept", flush=True)
            return found
    print(f"{name}: begins", flush=True)
    started = time.perf_counter()
    found = {"asked": asked, "versions": versions(), **work()}
    found["wall_seconds"] = round(time.perf_counter() - started, 1)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, (json.dumps(found, indent=1, ensure_ascii=False) + "\n").encode())
    print(f"{name}: {found['wall_seconds']:.0f} s", flush=True)
    return found


def read(results: Path, part: str) -> dict[str, Record]:
    """All records of one part, by name."""
    return {path.stem: json.loads(path.read_text()) for path in sorted((results / part).glob("*"))}


def arguments(description: str | None, *, data: bool = True) -> argparse.ArgumentParser:
    """A parser with what all parts take."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    if data:
        parser.add_argument("data", type=Path, help="folder with cervical_cancer.csv.gz (UCI)")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--seed", type=int, default=0)
    return parser


def names(text: str) -> list[str]:
    """The parts of a list with commas."""
    return [part for part in text.split(",") if part]


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


def checked_names(given: Sequence[str], known: Sequence[str]) -> list[str]:
    """Those names, all of which must be known."""
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise SystemExit(f"unknown: {', '.join(unknown)}; known: {', '.join(known)}")
    return list(given)
