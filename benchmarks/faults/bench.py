"""Run folders to spoil, and what must hold of them afterwards."""

from __future__ import annotations

import json
import random
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from scene import Ended, FailureError, Features, Running, acknowledged, finished, start

from generators import SOURCE

COMMAND = (
    *("audit", "g.py:G", "--data", "tiny.csv", "--target", "row:10", "--epsilon", "0.1"),
    *("--attack", "g.py:Copies", "--jobs", "2", "--shadow-models", "20"),
    *("--out", "run", "--fail-on", "never"),
)
"""With `--fail-on never` every audit that reaches its result exits with 0.

Its claim is small, so that a failed trial leaves something to prove: else it would stop early.
"""
FAULTED = frozenset({2, 4, 130, -signal.SIGKILL, -signal.SIGTERM, -signal.SIGHUP, -signal.SIGINT})
"""How a command may end that a fault has hit: an input error, an error, an interruption."""


@dataclass
class Bench:
    """Undisturbed runs, and copies of them at several stages.

    Attributes:
        home: An empty folder for everything.
        baseline: Features of every trial of the undisturbed run.
        seconds: How long that took.
        verdict: What it found.
    """

    home: Path
    baseline: Features = field(default_factory=dict)
    seconds: float = 0.0
    verdict: str = ""
    _numbers: count[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        """Runs the undisturbed audit, one that stops before its own trials, and one killed."""
        empty = self.home / "empty"
        empty.mkdir()
        rows = [f"{10 * n},{n % 7 - 3}" for n in range(11)]
        (empty / "tiny.csv").write_text("\n".join(["a,b", *rows, ""]))
        (empty / "g.py").write_text(SOURCE)
        whole = self._stage("complete", "empty")
        begun = time.monotonic()
        ended = self.start(whole).wait()
        self.seconds = time.monotonic() - begun
        if ended.code:
            raise FailureError(f"the undisturbed run exits with {ended.code}: {ended.err}")
        self.baseline = finished(whole / "run")
        self.verdict = _verdict(whole)
        controls = self._stage("controls", "empty")
        (controls / "how").write_text("interrupts")
        self.start(controls).wait()
        torn = self._stage("torn", "controls")
        running = self.start(torn)
        running.until(lambda: len(finished(torn / "run")) > len(self.baseline) - 15)
        running.send(signal.SIGKILL)
        running.wait()
        for folder in (controls, torn):
            (folder / "how").unlink(missing_ok=True)
            (folder / "once-0").unlink(missing_ok=True)

    def scene(self, stage: str = "empty") -> Path:
        """A fresh copy of a folder: empty, controls (they are done), torn (killed) or complete."""
        return self._stage(f"fault-{next(self._numbers)}", stage)

    def start(
        self,
        folder: Path,
        *more: str,
        prepare: Callable[[], None] = lambda: None,
        log: str = "",
        words: tuple[str, ...] = COMMAND,
    ) -> Running:
        """Starts the audit, or resumes it."""
        return start([*words, *more], folder, prepare=prepare, log=log)

    def check(self, folder: Path, ended: Ended, kept: Features, *, missing: int = 0) -> Features:
        """Looks at a run after its end.

        Args:
            folder: Its working directory.
            ended: How it ended.
            kept: What was finished before it began.
            missing: How many trials may have failed once it is complete.

        Returns:
            What is finished now.

        Raises:
            FailureError: If anything is there that must not be.
        """
        now = finished(folder / "run")
        if lost := set(kept) - set(now):
            raise FailureError(f"lost: {len(lost)} trials; {ended.err[-300:]}")
        if changed := [trial for trial, blob in now.items() if self._expected(trial) != blob]:
            raise FailureError(f"changed: {changed[:3]}")
        if not ended.code:
            if len(now) < len(self.baseline) - missing:
                raise FailureError(f"{len(self.baseline) - len(now)} trials are missing")
            if not missing and _verdict(folder) != self.verdict:
                raise FailureError(f"another verdict: {_verdict(folder)}")
            _verdict(folder)
        elif ended.code not in FAULTED:
            raise FailureError(f"exit code {ended.code}: {ended.err[-300:]}")
        elif len(now) < acknowledged(ended.err) - missing:
            raise FailureError(
                f"lost: {acknowledged(ended.err)} were reported, {len(now)} are there"
            )
        return now

    def _expected(self, trial: tuple[str, str, int]) -> bytes | None:
        role, world, number = trial  # what is replayed depends on what failed
        return self.baseline.get(("audit" if role == "replay" else role, world, number))

    def finish(self, folder: Path, kept: Features) -> None:
        """Resumes a run to its end and looks at it; then its folder goes.

        Raises:
            FailureError: If it does not end as it must.
        """
        (folder / "run" / "result.json").unlink(missing_ok=True)
        ended = self.start(folder, "--jobs", "1").wait()
        self.check(folder, ended, kept)
        if ended.code:
            raise FailureError(f"the resumed run exits with {ended.code}: {ended.err[-300:]}")
        self.drop(folder)

    def refused(self, folder: Path, ended: Ended) -> None:
        """Makes sure that a command ended with one line and without a result.

        Raises:
            FailureError: If it did not.
        """
        lines = [line for line in ended.err.splitlines() if line.startswith("error: ")]
        if ended.code != 2 or len(lines) != 1:
            raise FailureError(
                f"not refused in one line: exit code {ended.code}: {ended.err[-300:]}"
            )

    def refuse_or_finish(self, folder: Path) -> None:
        """Resumes a run that was spoilt: refused in one line, or done again; then its folder goes.

        Raises:
            FailureError: If it ends in any other way.
        """
        ended = self.start(folder).wait()
        if ended.code:
            self.refused(folder, ended)
        else:
            self.check(folder, ended, {})
        self.drop(folder)

    def drop(self, folder: Path) -> None:
        """Removes a folder."""
        shutil.rmtree(folder)

    def _stage(self, name: str, like: str) -> Path:
        return Path(shutil.copytree(self.home / like, self.home / name))


def pause(bench: Bench, rng: random.Random, *, most: float = 0.7) -> None:
    """Waits for a random part of an undisturbed run's time."""
    time.sleep(rng.uniform(0, most * bench.seconds))


def _verdict(folder: Path) -> str:
    """The verdict of a finished run.

    Raises:
        FailureError: If there is none.
    """
    try:
        return str(json.loads((folder / "run" / "result.json").read_text())["verdict"])
    except (OSError, ValueError, KeyError) as error:
        raise FailureError(f"exit 0 without a result: {error}") from error
