"""Runs the command line in forks of a warm process, and looks at what is left of a run."""

from __future__ import annotations

import atexit
import ctypes
import os
import random
import re
import shutil
import signal
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, NoReturn

import sklearn.ensemble

from dpaudit.auditing import entry, progress_bar
from dpaudit.cli.main import main
from dpaudit.game.store import STORE_FILE
from dpaudit.report import render

_WARM = (entry, progress_bar, sklearn.ensemble, render)
"""What a command imports late: once here, for all forks."""
PATIENCE_SECONDS = 90.0
"""How long a command may take before it counts as hanging; an undisturbed one takes seconds."""
ORPHAN_SECONDS = 5.0
TRACE = "Traceback (most recent call last)"

Features = dict[tuple[str, str, int], bytes]
"""Features of every finished trial."""


class FailureError(Exception):
    """What must not happen, did."""


class Ended(NamedTuple):
    """How a command ended.

    Attributes:
        code: Its exit code; negative if a signal ended it.
        out: Its standard output.
        err: Its standard error.
    """

    code: int
    out: str
    err: str


@dataclass
class Running:
    """A command that runs.

    Attributes:
        pid: Of the coordinator, which leads its own process group.
        marker: What the environment of all that it starts holds.
        folder: Where it runs.
        log: What the names of the files of its output begin with.
    """

    pid: int
    marker: str
    folder: Path
    log: str = ""
    begun: float = field(default_factory=time.monotonic)
    status: int | None = None

    def ended(self) -> bool:
        """Whether it has."""
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.status = status if pid else None
        return self.status is not None

    def send(self, number: int) -> None:
        """Sends a signal to the coordinator, if it still runs."""
        if not self.ended():
            os.kill(self.pid, number)

    def family(self) -> dict[int, str]:
        """Command lines of all that it has started and that still runs, by process id."""
        return {pid: words for pid, words in marked(self.marker).items() if pid != self.pid}

    def workers(self) -> list[int]:
        """Its worker processes."""
        return [pid for pid, words in self.family().items() if "dpaudit.game.worker" in words]

    def until(self, what: Callable[[], object], *, seconds: float = 20.0) -> bool:
        """Waits until something is so, or the command has ended; whether it is."""
        deadline = time.monotonic() + seconds
        while not (found := bool(what())) and not self.ended() and time.monotonic() < deadline:
            time.sleep(0.005)
        return found

    def wait(self) -> Ended:
        """Waits for its end, then for that of all that it has started.

        Raises:
            FailureError: If it hangs, leaves a process, or prints a traceback.
        """
        while not self.ended():
            if time.monotonic() > self.begun + PATIENCE_SECONDS:
                os.killpg(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                raise FailureError(f"hang: {self._said()[-300:]}")
            time.sleep(0.005)
        deadline = time.monotonic() + ORPHAN_SECONDS
        while left := self.family():
            if time.monotonic() > deadline:
                for pid in left:
                    with suppress(OSError):
                        os.kill(pid, signal.SIGKILL)
                raise FailureError(f"orphan: {sorted(left.values())}")
            time.sleep(0.02)
        assert self.status is not None
        ended = Ended(
            os.waitstatus_to_exitcode(self.status),
            _read(self.folder / f"{self.log}out"),
            self._said(),
        )
        if TRACE in ended.err or TRACE in ended.out:
            raise FailureError(f"traceback: {ended.err[-600:]}")
        return ended

    def _said(self) -> str:
        return _read(self.folder / f"{self.log}err")


def start(
    words: list[str], folder: Path, *, prepare: Callable[[], None] = lambda: None, log: str = ""
) -> Running:
    """Starts `dpaudit` in a fork, in a folder where its standard output and error go to files.

    Args:
        words: Its arguments.
        folder: The working directory.
        prepare: Called in the fork before the command.
        log: What the names of the files of its output begin with.
    """
    marker = f"FAULT_{random.SystemRandom().getrandbits(64):x}"
    pid = os.fork()
    if not pid:
        _become(words, folder, marker, prepare, log)
    return Running(pid, marker, folder, log)


def _become(
    words: list[str], folder: Path, marker: str, prepare: Callable[[], None], log: str
) -> NoReturn:
    """What a fresh interpreter would do, but for the imports."""
    code = _BROKEN
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # if the campaign is stopped
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may ignore it
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        os.chdir(folder)
        os.environ[marker] = "1"
        for descriptor, file in ((1, f"{log}out"), (2, f"{log}err")):
            opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
            os.dup2(opened, descriptor)
            os.close(opened)
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", closefd=False, buffering=1)  # noqa: SIM115
        sys.argv = ["dpaudit", *words]
        prepare()
        main()
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        with suppress(BaseException):
            threading._shutdown()
            atexit._run_exitfuncs()
        with suppress(BaseException):
            sys.stdout.flush()
        _leave(code)
    raise AssertionError("a process that has ended goes on")


_leave = os._exit
_PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
_BROKEN = 70
"""Exit code of a command that did not end as commands do."""


def marked(marker: str) -> dict[int, str]:
    """Processes that run and whose environment holds a marker: their command lines."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"{marker}=".encode() not in (folder / "environ").read_bytes():
                continue
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
            if state not in "ZX":
                words = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
                found[int(folder.name)] = words.decode("utf-8", "replace")
    return found


def finished(run: Path) -> Features:
    """Features in a run folder's store, read from a copy so that nothing is repaired."""
    with tempfile.TemporaryDirectory() as copy:
        for file in run.glob(f"{STORE_FILE}*"):
            if not file.name.endswith("-shm"):
                shutil.copy(file, copy)
        if not (Path(copy) / STORE_FILE).exists():
            return {}
        with closing(sqlite3.connect(Path(copy) / STORE_FILE)) as db:
            try:
                rows = db.execute(
                    "SELECT role, world, number, features FROM trial WHERE status = 'finished'"
                ).fetchall()
            except sqlite3.Error:
                return {}
    return {(role, world, number): blob for role, world, number, blob in rows}


def acknowledged(err: str) -> int:
    """How many trials the progress on standard error said were there, over all roles."""
    counts: dict[str, int] = {}
    for role, done in re.findall(
        r"^([\w -]+?)(?: \(.*\))?: (\d+) of \d+(?:, about .* left)?$", err, re.MULTILINE
    ):
        counts[role] = int(done)
    return sum(counts.values())


def _read(file: Path) -> str:
    with suppress(OSError):
        return file.read_text(encoding="utf-8", errors="replace")
    return ""
