"""One world's process under a coordinator that answers by itself: what code asks and notes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Listener
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit.replaying.listening.channel import Channel

BOOT = Path(__file__).parents[2] / "dpaudit" / "replaying" / "listening" / "boot"
ROWS = 10
_RUN = """
import importlib, json, sys, traceback
sys.path.insert(0, sys.argv[1])
code = importlib.import_module(sys.argv[2])
print(flush=True)
for line in sys.stdin:
    name, arguments = json.loads(line)
    try:
        said = {"result": repr(getattr(code, name)(*arguments))}
    except BaseException as error:
        said = {"failure": type(error).__name__, "trace": traceback.format_exc()}
    print(json.dumps(said), flush=True)
"""


@dataclass
class Heard:
    """What was heard of one fit.

    Attributes:
        result: What the code returned, as text; None if it failed.
        failure: The name of the exception if it failed.
        asked: The questions.
        notes: Kinds of notes, and what came with them.
        digests: Kinds of notes, and the digests of what must be equal in both worlds.
        end: What the world said last.
    """

    result: str | None
    failure: str | None
    asked: list[dict[str, Any]]
    notes: list[tuple[str, dict[str, Any]]]
    digests: list[tuple[str, str]]
    end: dict[str, Any]

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The questions of a kind, or else what came with such notes."""
        asked = [one for one in self.asked if one["kind"] == kind]
        return asked or [more for name, more in self.notes if name == kind]

    @property
    def answers(self) -> list[tuple[list[str], list[float], list[float]]]:
        """Of each answer: its laws, the values before noise, and how wide the noise is."""
        found = []
        for step in self.of("answer"):
            wide = np.sqrt(sum((part["factor"] * part["scale"]) ** 2 for part in step["parts"]))
            laws = [part["law"] for part in step["parts"]]
            found.append((laws, step["before"].ravel().tolist(), wide.ravel().tolist()))
        return found

    @property
    def released(self) -> list[int]:
        """Numbers of answers that were used otherwise than in selections."""
        return [int(one) for one in self.end["released"]]

    @property
    def draws(self) -> list[int]:
        """How often each line drew."""
        return [one[3] for one in self.end["draws"]]

    @property
    def lost(self) -> list[str]:
        """Why noise was lost."""
        return [one[3] for one in self.end["lost"]]


@dataclass
class OneWorld:
    """A world's process that runs functions of a module.

    Attributes:
        server: What other processes connect to.
        process: The process.
        events: Its questions.
        control: Begins and ends its fits.
        equal: The answer to every question whether something is equal.
    """

    server: Listener
    process: subprocess.Popen[str]
    events: Channel
    control: Channel
    equal: bool = True
    _asked: list[dict[str, Any]] = field(default_factory=list)
    _notes: list[list[Any]] = field(default_factory=list)

    def fit(self, name: str, *arguments: Any, **begin: Any) -> Heard:
        """Calls a function in a fit; `begin` are fields of the message that begins it."""
        self._asked, self._notes = [], []
        self.control.send({"kind": "begin", "rows": [ROWS, ROWS], **begin})
        assert self.control.receive()["kind"] == "begun"
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([name, arguments]) + "\n")
        self.process.stdin.flush()
        said = json.loads(self.process.stdout.readline())
        self.control.send({"kind": "end"})
        end = self.control.receive()
        self._take(end)
        notes = [(one[0], one[3]) for one in self._notes]
        digests = [(one[0], one[2]) for one in self._notes]
        result = said.get("result")
        return Heard(result, said.get("failure"), self._asked, notes, digests, end)

    def reply(self) -> None:
        """Answers questions until the process ends."""
        rng = np.random.default_rng(0)
        with suppress(EOFError, OSError):
            while True:
                message = self.events.receive()
                self._take(message)
                self._asked.append(message)
                kind, reply = message["kind"], dict[str, Any]()
                if kind == "answer":
                    reply["value"] = message["before"] + message["noise"]
                elif kind == "choose":
                    reply["places"] = rng.integers(0, len(message["weights"]), message["count"])
                elif kind == "coin":
                    reply["under"] = (message["value"] < message["limit"]).astype(np.uint8)
                elif kind == "rows":
                    reply.update(shared=True, place=0)
                elif kind == "equal":
                    reply["equal"] = self.equal
                self.events.send(reply)

    def _take(self, message: dict[str, Any]) -> None:
        self._notes += message.pop("log")


@contextmanager
def one_world(module: str, python: str = sys.executable) -> Iterator[OneWorld]:
    """Starts the process.

    Args:
        module: The module of the code, in this folder.
        python: Its interpreter.
    """
    with tempfile.TemporaryDirectory() as folder:
        address = os.path.join(folder, "listen")
        environment = {**os.environ, "DPAUDIT_LISTEN": address, "DPAUDIT_WORLD": "in"}
        command = [python, "-c", _RUN, str(Path(__file__).parent), module]
        pipe = subprocess.PIPE
        environment["PYTHONPATH"] = str(BOOT)
        with (
            Listener(address, family="AF_UNIX") as server,
            subprocess.Popen(
                command, stdin=pipe, stdout=pipe, env=environment, text=True
            ) as process,
        ):
            roles: dict[str, Channel] = {}
            for _ in range(2):
                channel = Channel(server.accept())
                roles[channel.receive()["role"]] = channel
            world = OneWorld(server, process, roles["events"], roles["control"])
            threading.Thread(target=world.reply, daemon=True).start()
            assert process.stdout is not None
            process.stdout.readline()  # the code is imported
            yield world
