"""Workers of audits as forks of one process that has imported what they need.

A fork costs a hundredth of a worker that starts afresh, and runs the same program from where its
imports are done. What a start itself does, and a worker's environment as other processes see it,
need a start: tests of those are marked `new_workers`.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np

from dpaudit.game import pool, worker

IMPORTED = (
    "dpaudit.auditing.one_run.attack",
    "dpaudit.auditing.probing",
    "dpaudit.game.worker",
    "dpaudit_attacks.groundhog",
    "dpaudit_attacks.queries",
    "dpaudit_generators.toys",
    "scipy.stats",
    "sklearn.ensemble",
    "sklearn.linear_model",
    "sklearn.neighbors",
)
"""Modules that most workers import."""


class Forked:
    """A worker, as `pool.PoolWorker` asks of a `subprocess.Popen`.

    Attributes:
        pid: Its process id.
        returncode: What it ended with, negative for a signal; None while it runs.
    """

    def __init__(self, address: str, request: Mapping[str, Any], descriptors: Sequence[int]):
        self.returncode: int | None = None
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(address)
        socket.send_fds(self._connection, [b"."], descriptors)
        self._connection.sendall(json.dumps(request).encode() + b"\n")
        self._answers = self._connection.makefile()
        self.pid = int(self._answers.readline())

    def poll(self) -> int | None:
        """What it ended with, if it has."""
        if self.returncode is None and select.select([self._connection], [], [], 0)[0]:
            return self.wait()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Waits for its end.

        Raises:
            subprocess.TimeoutExpired: If it runs on.
        """
        if self.returncode is None:
            if not select.select([self._connection], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("a forked worker", timeout or 0)
            self.returncode = int(self._answers.readline())
            self._answers.close()
            self._connection.close()
        return self.returncode

    def kill(self) -> None:
        """Ends it at once."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


class Nursery(ExitStack):
    """The process that workers are forks of; it starts with the first of them."""

    @cached_property
    def address(self) -> str:
        """Where it listens."""
        address = str(Path(self.enter_context(TemporaryDirectory())) / "nursery")
        code = "import sys; sys.path[:] = sys.argv[2:]; import nursery; nursery.serve(sys.argv[1])"
        process = self.enter_context(
            subprocess.Popen(
                [sys.executable, "-c", code, address, *worker.search_path()],
                env=os.environ | worker.ENVIRONMENT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
        )
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        return address


def fork_workers(address: Callable[[], str]) -> None:
    """Makes the workers of this process forks, in its environment and folder of the moment."""

    def start(words: Sequence[str], **options: Any) -> Any:
        if list(words[1:3]) != ["-c", pool._START]:
            return subprocess.Popen(words, **options)
        request = {"path": words[4:], "environment": dict(options["env"]), "folder": os.getcwd()}
        return Forked(address(), request, [int(words[3]), 1, 2])

    changed: Any = SimpleNamespace(**{**vars(subprocess), "Popen": start})
    pool.subprocess = changed


def start_workers() -> None:
    """Makes the workers of this process start afresh, as outside of tests."""
    pool.subprocess = subprocess


def serve(address: str) -> None:
    """Forks a worker for each connection, until standard input is closed."""
    for name in IMPORTED:
        importlib.import_module(name)
    gc.freeze()
    children = set()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen()
        os.write(1, b"ready\n")
        while sys.stdin not in select.select([server, sys.stdin], [], [])[0]:
            connection, _ = server.accept()
            child = os.fork()
            if not child:
                server.close()
                _keep(connection)
            connection.close()
            children.add(child)
            children -= {pid for pid in children if os.waitpid(pid, os.WNOHANG)[0]}
    signal.alarm(10)  # a worker that outlives its user
    for child in children:
        os.waitpid(child, 0)  # so that what it has used counts as used by this process


def _keep(connection: socket.socket) -> NoReturn:
    """Starts a worker and reports its end; ends before it with who asked, as a parent would."""
    _, descriptors, _, _ = socket.recv_fds(connection, 1, 3)
    request = json.loads(connection.makefile().readline())
    pid = os.fork()
    if not pid:
        connection.close()
        _work(request, *descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    connection.sendall(f"{pid}\n".encode())
    ended = os.pidfd_open(pid)
    if ended in select.select([connection, ended], [], [])[0]:
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        connection.sendall(f"{code}\n".encode())
    os._exit(0)


def _work(request: Mapping[str, Any], pipe: int, out: int, err: int) -> NoReturn:
    """What `pool.PoolWorker` starts, from where its imports are done."""
    os.setsid()
    signal.pthread_sigmask(signal.SIG_BLOCK, worker.OF_THE_GROUP)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    for number, descriptor in enumerate((os.open(os.devnull, os.O_RDONLY), out, err)):
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.path[:] = request["path"]
    importlib.invalidate_caches()
    np.random.seed()  # noqa: NPY002, TID251 - each process starts with another state
    worker.main(pipe)
    raise SystemExit
