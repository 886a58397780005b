"""A dask cluster of this machine: a scheduler and workers, each a process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from dpaudit.game.pool import Family


@dataclass
class LocalDask:
    """The processes; `file` names the scheduler."""

    folder: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    family: Family = field(default_factory=Family)

    @property
    def file(self) -> str:
        return str(self.folder / "scheduler.json")

    def start(self, what: str, *words: str, env: Mapping[str, str] | None = None) -> None:
        with open(self.folder / f"{what}.log", "ab") as log:
            command = [sys.executable, "-m", f"distributed.cli.dask_{what}", "--no-dashboard"]
            command += ["--scheduler-file", self.file, "--host", "127.0.0.1", *words]
            self.processes.append(
                subprocess.Popen(
                    command,
                    stdout=log,
                    stderr=log,
                    env=os.environ | self.family.environment | dict(env or {}),
                )
            )

    def add_worker(self, *words: str, env: Mapping[str, str] | None = None) -> None:
        place = ("--local-directory", str(self.folder))
        self.start("worker", *place, *(words or ("--nthreads", "1")), env=env)

    def workers(self) -> list[int]:
        """Process ids of the workers themselves, children of their nannies."""
        nannies = {process.pid for process in self.processes}
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                status = (entry / "stat").read_text().rpartition(")")[2].split()
                words = (entry / "cmdline").read_text()
                if status[0] != "Z" and int(status[1]) in nannies and "spawn_main" in words:
                    found.append(int(entry.name))
        return found

    def wait_for(self, workers: int) -> None:
        deadline = time.monotonic() + 60
        while len(self.workers()) < workers or not Path(self.file).exists():
            assert time.monotonic() < deadline, "no cluster"
            time.sleep(0.1)

    def log(self) -> str:
        return "".join(file.read_text() for file in self.folder.glob("*.log"))


@contextmanager
def local_dask(folder: Path, *, workers: int) -> Iterator[LocalDask]:
    """A scheduler and that many workers with one thread each; all is killed at the end."""
    folder.mkdir(parents=True, exist_ok=True)
    cluster = LocalDask(folder)
    try:
        cluster.start("scheduler", "--port", "0")
        for _ in range(workers):
            cluster.add_worker()
        cluster.wait_for(workers)
        yield cluster
    finally:
        cluster.family.end()
        for process in cluster.processes:
            with suppress(OSError):
                process.send_signal(signal.SIGKILL)
            process.wait()
