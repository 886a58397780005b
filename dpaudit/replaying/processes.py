"""The processes of both worlds: each fits the generator and asks its questions over a socket."""

from __future__ import annotations

import json
import os
import pickle
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Listener
from pathlib import Path
from typing import Any, Final

import pandas as pd

from dpaudit.auditing.two_worlds.spec import TwoWorldSpec
from dpaudit.errors import RegistryError, ReplayError
from dpaudit.external.generator import WorkerGenerator
from dpaudit.external.session import (
    FileNames,
    WorkerError,
    WorkerSession,
    WorkerStart,
)
from dpaudit.game.worker import search_path
from dpaudit.model.linked_tables import LinkedTables
from dpaudit.plugins.foreign import pickled
from dpaudit.plugins.protocols import World
from dpaudit.plugins.release import accept
from dpaudit.replaying.launching import LOCAL, LaunchedWorlds, environment_of, prepare_launch
from dpaudit.replaying.listening.channel import Channel, connect
from dpaudit.replaying.transcript import Site

WORLDS: Final = (World.IN, World.OUT)
_LAST: Final = "last"
"""The role of a connection behind those that wait."""


@dataclass
class WorldProcess:
    """One world's process.

    Attributes:
        session: Its requests.
        events: Its questions.
        control: Begins and ends its fits.
        written: The table that was last written for it, and the names of its files: most fits are
            of the same table.
    """

    session: WorkerSession
    events: Channel
    control: Channel
    written: tuple[pd.DataFrame, FileNames] | None = None

    def fit(
        self, table: pd.DataFrame, *, rows: int, seed: int, sample_seed: int, keeps_table: bool
    ) -> pd.DataFrame | None:
        """Fits a table and draws rows, which the process itself compares.

        Args:
            table: What the world trains on.
            rows: Synthetic rows.
            seed: Seed of the fit.
            sample_seed: Seed of the rows.
            keeps_table: Whether to return the rows; of several tables the frame of all.

        Raises:
            SynthesisError: If the generator fails.
            WorkerError: If the process ends.
        """
        schema = self.session.start.schema
        request = {**self.session.request(rows=rows, seed=seed), "sample_seed": sample_seed}
        if not keeps_table:
            request["output"] = None
        if self.written is None or self.written[0] is not table:
            if self.written is not None:
                self.session.remove(self.written[1])
            self.session.write(schema.handed(table), request["data"])
            self.written = table, request["data"]
        request["data"] = self.written[1]
        made: pd.DataFrame | None = self.session.run(request)
        if made is None or not isinstance(schema, LinkedTables):
            return made
        return accept(made, schema, len(made[schema.root]))


class Processes:
    """The processes of both worlds, and the threads that wait for their fits.

    Attributes:
        worlds: The process of each world.
        server: What they connect to, and the processes that the generator starts.
        pool: A thread for each world.
    """

    def __init__(self, worlds: dict[World, WorldProcess], server: Listener) -> None:
        self.worlds, self.server = worlds, server
        self.pool = ThreadPoolExecutor(len(WORLDS))

    def take_children(self) -> list[Site]:
        """Lines at which processes that the generator started have drawn, since this was asked."""
        sites = []
        for hello, channel in _accept(self.server):
            channel.connection.close()
            sites.append(Site(*hello["site"]))
        return sites


@contextmanager
def prepare_start(spec: TwoWorldSpec) -> Iterator[WorkerStart]:
    """Prepares the start of a process that fits the generator of an audit.

    Args:
        spec: The audit.

    Yields:
        The start; a generator of this environment lies in a file until the context ends.
    """
    named = spec.generator.generator
    if isinstance(named, WorkerGenerator):
        yield named.start
        return
    with tempfile.TemporaryDirectory(prefix="dpaudit-replay-") as folder:
        path = Path(folder) / "generator.pickle"
        blob = pickled((spec.table.schema, named), name="the generator")
        path.touch(mode=0o600)
        places = [os.path.abspath(place) for place in (*search_path(), os.curdir)]
        path.write_bytes(pickle.dumps((places, blob)))
        yield WorkerStart(LOCAL, spec.table.schema, json.dumps({"path": str(path)}), None)


@contextmanager
def open_processes(
    start: WorkerStart, *, samplers: str = "[]", launched: LaunchedWorlds | None = None
) -> Iterator[Processes]:
    """Starts both worlds, at the same time.

    Args:
        start: How to start a worker that fits the generator.
        samplers: Samplers that the user named, as JSON.
        launched: Worlds that were started already, for a generator of this environment.

    Yields:
        The processes, which end with the context.

    Raises:
        RegistryError: If a worker cannot be started, as where the generator's module fails.
        ReplayError: If draws in its Python cannot be intercepted.
    """
    with ExitStack() as stack:
        if launched is None or start.arguments != LOCAL:
            launched = stack.enter_context(prepare_launch())
        with ThreadPoolExecutor(len(WORLDS)) as pool:
            futures = [pool.submit(_start, start, world, launched, samplers) for world in WORLDS]
        for future in futures:
            if future.exception() is None:
                stack.callback(future.result().end)
        sessions = [future.result() for future in futures]
        channels: dict[tuple[str, str], Channel] = {}
        for hello, channel in _accept(launched.server):
            stack.callback(channel.connection.close)
            channels[hello["world"], hello["role"]] = channel
        if len(channels) < 2 * len(WORLDS):
            raise ReplayError(
                "the generator does not run in a Python that replay can listen to: audit it from "
                "outside with `dpaudit audit`"
            )
        worlds = {
            world: WorldProcess(session, channels[world, "events"], channels[world, "control"])
            for world, session in zip(WORLDS, sessions, strict=True)
        }
        yield Processes(worlds, launched.server)


def _start(
    start: WorkerStart, world: World, launched: LaunchedWorlds, samplers: str
) -> WorkerSession:
    is_local = start.arguments == LOCAL
    try:
        return WorkerSession(
            start,
            folder=launched.folder / world.value,
            environment=environment_of(world.value, launched, samplers, is_local=is_local),
            process=launched.processes.get(world.value),
        )
    except WorkerError as error:
        raise RegistryError(f"world {world} cannot start: {error}") from None


def _accept(server: Listener) -> Iterator[tuple[dict[str, Any], Channel]]:
    """The connections that wait, and how each introduced itself; it waits for no other.

    A world has connected before its worker says hello, and a child before it goes on.
    """
    with connect(str(server.address), {"role": _LAST}).connection:
        while True:
            channel = Channel(server.accept())
            try:
                hello = channel.receive()
            except EOFError:  # a child that was killed
                continue
            if hello["role"] == _LAST:
                channel.connection.close()
                return
            yield hello, channel
