"""Replays and searches of tests take turns in the same processes of two worlds."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext

import pytest

from dpaudit.external.session import PROTOCOL, WorkerStart, hello_of
from dpaudit.replaying import launching, processes, run
from dpaudit.replaying.processes import Processes


class KeptWorlds(ExitStack):
    """Processes of worlds that end with the session, and those of them that are free."""

    def __init__(self) -> None:
        super().__init__()
        self.free: defaultdict[str, list[Processes]] = defaultdict(list)

    def keep(self, processes: Processes, samplers: str) -> None:
        """Makes processes free for the next user, unless a generator has ended one of them."""
        if all(world.session._process.poll() is None for world in processes.worlds.values()):
            self.free[samplers].append(processes)


@contextmanager
def shared_worlds(kept: KeptWorlds) -> Iterator[None]:
    """Keeps the processes of worlds for the next replay: starting both takes longer than most.

    Each is greeted again and unpickles the next generator; what its modules hold stays. After a
    replay that raises an error, or where other samplers are named, the next one has new processes.
    Fits that must agree with those of new processes are made in other ones.
    """

    @contextmanager
    def opened(
        start: WorkerStart, *, samplers: str = "[]", launched: None = None
    ) -> Iterator[Processes]:
        if start.arguments != launching.LOCAL:
            with processes.open_processes(start, samplers=samplers) as found:
                yield found
            return
        if kept.free[samplers]:
            found = _greeted_again(kept.free[samplers].pop(), start)
        else:
            found = kept.enter_context(processes.open_processes(start, samplers=samplers))
        try:
            yield found
        except GeneratorExit:  # `replay` takes the first record and asks for no other
            kept.keep(found, samplers)
            raise
        kept.keep(found, samplers)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "open_processes", opened)
        patch.setattr("dpaudit.searching.run.open_processes", opened)
        patch.setattr(launching, "launch_worlds", lambda *_: nullcontext())
        yield


def _greeted_again(found: Processes, start: WorkerStart) -> Processes:
    for world in found.worlds.values():
        greeting = {
            "op": "hello",
            "protocol": PROTOCOL,
            "schema": start.schema.to_document(),
            "parameters": json.loads(start.parameters),
        }
        world.session.start = start
        world.session.hello = hello_of(world.session.ask(greeting))
    found.take_children()
    return found
