"""Starts the Pythons of both worlds while the coordinator still loads what it needs itself.

It therefore imports nothing that takes long to load.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing.connection import Listener
from pathlib import Path
from typing import Final, NamedTuple

from dpaudit.external import worker
from dpaudit.replaying import local_world

LOCAL: Final = (
    sys.executable,
    worker.__file__,
    f"{local_world.__file__}:{local_world.Unpickled.__name__}",
)
"""The command of a worker that fits a generator of this environment."""
_BOOT: Final = Path(__file__).parent / "listening" / "boot"
_SINGLE_THREAD: Final = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


_MOST_WAITING: Final = 1000
"""Processes of a generator that draw: they connect, and are asked after the fit."""


class LaunchedWorlds(NamedTuple):
    """Where the processes of both worlds work and connect, and those that were started.

    Attributes:
        folder: A folder in which each world has one of its own.
        server: What they connect to.
        processes: The processes by the name of their world.
    """

    folder: Path
    server: Listener
    processes: Mapping[str, subprocess.Popen[bytes]]


@contextmanager
def prepare_launch() -> Iterator[LaunchedWorlds]:
    """Prepares a folder and a server for worlds, and starts none."""
    with tempfile.TemporaryDirectory(prefix="dpaudit-worker-") as folder:
        for world in ("in", "out"):
            (Path(folder) / world).mkdir()
        with Listener(
            str(Path(folder) / "listen"), family="AF_UNIX", backlog=_MOST_WAITING
        ) as server:
            yield LaunchedWorlds(Path(folder), server, {})


@contextmanager
def launch_worlds(generator: str, samplers: str) -> Iterator[LaunchedWorlds | None]:
    """Starts both worlds for a generator of this environment, as far as its name shows.

    Args:
        generator: The name of the generator.
        samplers: Samplers that the user named, as JSON.

    Yields:
        The worlds, which end with the context; None for other generators.
    """
    if ":" in generator and ".py:" not in generator:
        yield None
        return
    with prepare_launch() as launched:
        started = {}
        try:
            for world in ("in", "out"):
                listening = environment_of(world, launched, samplers, is_local=True)
                started[world] = subprocess.Popen(
                    LOCAL,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    cwd=launched.folder / world,
                    env={**listening, "DPAUDIT_LISTEN_PRELOAD": "pandas"},
                    start_new_session=True,
                )
            yield launched._replace(processes=started)
        finally:
            for process in started.values():
                if process.poll() is None:
                    with suppress(OSError):
                        os.killpg(process.pid, signal.SIGKILL)
                with process:
                    pass


def environment_of(
    world: str, launched: LaunchedWorlds, samplers: str, *, is_local: bool
) -> dict[str, str]:
    """The environment variables of a world's process.

    Args:
        world: "in" or "out".
        launched: Where it connects.
        samplers: Samplers that the user named, as JSON.
        is_local: Whether its generator is of this environment, whose import may read variables.
    """
    path = [str(_BOOT), *filter(None, [os.environ.get("PYTHONPATH") if is_local else None])]
    return {
        **(os.environ if is_local else {}),
        "DPAUDIT_LISTEN": str(launched.server.address),
        "DPAUDIT_WORLD": world,
        "DPAUDIT_LISTEN_SAMPLERS": samplers,
        "PYTHONPATH": os.pathsep.join(path),
        "PYTHONHASHSEED": "0",
        **dict.fromkeys(_SINGLE_THREAD, "1"),
    }
