"""Replays of one test file take turns in the same two processes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from dpaudit.external.session import PROTOCOL, WorkerStart, hello_of
from dpaudit.replaying import local_world, lockstep, run
from dpaudit.replaying.lockstep import Worlds


@contextmanager
def shared_worlds() -> Iterator[None]:
    """Keeps the processes of worlds for the next replay: starting both takes longer than most.

    Each is greeted again and unpickles the next generator; what its modules hold stays. After a
    replay that raises an error, or where samplers are named, the next one has new processes.
    """
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        kept: list[Worlds] = []

        @contextmanager
        def opened(start: WorkerStart, *, samplers: str = "[]") -> Iterator[Worlds]:
            if samplers != "[]" or local_world.__file__ not in start.arguments[-1]:
                with lockstep.opened_worlds(start, samplers=samplers) as worlds:
                    yield worlds
                return
            if kept:
                worlds = _greeted_again(kept.pop(), start)
            else:
                worlds = stack.enter_context(lockstep.opened_worlds(start))
            try:
                yield worlds
            except GeneratorExit:  # `replay` takes the first record and asks for no other
                kept.append(worlds)
                raise
            kept.append(worlds)

        patch.setattr(run, "opened_worlds", opened)
        yield


def _greeted_again(worlds: Worlds, start: WorkerStart) -> Worlds:
    for side in worlds._sides.values():
        greeting = {
            "op": "hello",
            "protocol": PROTOCOL,
            "schema": start.schema.to_document(),
            "parameters": json.loads(start.parameters),
        }
        side.session.start = start
        side.session.hello = hello_of(side.session.ask(greeting))
    worlds._children.clear()
    return Worlds(worlds._sides, worlds._children)
