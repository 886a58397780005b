"""Signals to the coordinator, its workers, their children and its helpers, at random moments."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from bench import Bench, pause
from kinds import KINDS, Kind
from scene import FailureError, Features, Running

from dpaudit.game.engine import MAX_ATTEMPTS

Hit = Callable[[Running, random.Random], bool]
"""Hits a run; whether there was something to hit."""
CHAIN = 4
"""Faults in one run, or in one folder that is resumed."""


def ending(bench: Bench, rng: random.Random, *, hit: Hit) -> int:
    """Faults that end the run: the folder is resumed after each, and at last to its end."""
    folder, kept, faults = bench.scene(), Features(), 0
    for _ in range(CHAIN):
        running = bench.start(folder)
        pause(bench, rng)
        faults += hit(running, rng)
        ended = running.wait()
        kept = bench.check(folder, ended, kept)
        if not ended.code:
            bench.drop(folder)
            folder, kept = bench.scene(), Features()
    bench.finish(folder, kept)
    return faults


def passing(bench: Bench, rng: random.Random, *, hit: Hit) -> int:
    """Faults that the run must survive."""
    folder = bench.scene(rng.choice(["empty", "controls"]))
    (folder / "how").write_text("helper")
    (folder / "slow").write_text("0.05")
    running = bench.start(folder)
    faults = 0
    while faults < CHAIN and not running.ended():
        pause(bench, rng, most=0.3)
        faults += hit(running, rng)
    ended = running.wait()
    if ended.code:
        raise FailureError(f"exit code {ended.code}: {ended.err[-300:]}")
    # A trial whose worker was hit in every attempt has failed, as it should.
    bench.check(folder, ended, {}, missing=faults // MAX_ATTEMPTS)
    bench.drop(folder)
    return faults


def coordinator(running: Running, rng: random.Random, *, number: int) -> bool:
    """Signals the coordinator."""
    del rng
    there = not running.ended()
    running.send(number)
    return there


def group(running: Running, rng: random.Random, *, number: int) -> bool:
    """Signals its whole process group, as a terminal does."""
    del rng
    if running.ended():
        return False
    os.killpg(running.pid, number)
    return True


def twice(running: Running, rng: random.Random, *, first: int, then: int) -> bool:
    """Signals the coordinator a second time while it ends."""
    there = coordinator(running, rng, number=first)
    time.sleep(rng.uniform(0, 0.1))
    running.send(then)
    return there


def suspended(running: Running, rng: random.Random) -> bool:
    """Suspends the coordinator for a moment."""
    there = coordinator(running, rng, number=signal.SIGSTOP)
    time.sleep(rng.uniform(0, 0.3))
    running.send(signal.SIGCONT)
    return there


def one_of(running: Running, rng: random.Random, *, number: int, words: str) -> bool:
    """Signals one process that the run has started."""
    found = [pid for pid, line in running.family().items() if words in line]
    if not found:
        return False
    with suppress(ProcessLookupError):
        pid = rng.choice(found)
        os.kill(pid, number)
        if number == signal.SIGSTOP:
            time.sleep(rng.uniform(0, 0.3))
            os.kill(pid, signal.SIGCONT)
        return True
    return False


def _add(run: Callable[..., int], what: str, name: str, hit: Hit, *, weight: int = 1) -> None:
    KINDS.append(Kind(what, name, weight, partial(run, hit=hit)))


for _name in ("INT", "TERM", "HUP", "KILL"):
    _number = getattr(signal, f"SIG{_name}")
    _add(ending, "coordinator", _name, partial(coordinator, number=_number), weight=4)
    _add(ending, "process group", _name, partial(group, number=_number), weight=2)
_add(
    ending, "coordinator", "INT, then INT", partial(twice, first=signal.SIGINT, then=signal.SIGINT)
)
_add(
    ending,
    "coordinator",
    "TERM, then KILL",
    partial(twice, first=signal.SIGTERM, then=signal.SIGKILL),
)
_add(passing, "coordinator", "STOP, then CONT", suspended)
for _name in ("KILL", "TERM", "SEGV", "INT", "HUP", "STOP"):
    _number = getattr(signal, f"SIG{_name}")
    _hit = partial(one_of, number=_number, words="dpaudit.game.worker")
    _add(passing, "worker", "STOP, then CONT" if _name == "STOP" else _name, _hit)
for _name in ("KILL", "TERM", "STOP"):
    _number = getattr(signal, f"SIG{_name}")
    _hit = partial(one_of, number=_number, words="/bin/sleep")
    _add(passing, "grandchild", "STOP, then CONT" if _name == "STOP" else _name, _hit)
_add(passing, "watcher", "KILL", partial(one_of, number=signal.SIGKILL, words="watcher.py"))
_add(passing, "watcher", "TERM", partial(one_of, number=signal.SIGTERM, words="watcher.py"))
