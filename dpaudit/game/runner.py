"""The program of a worker process, which makes calls one after another.

`pool.PoolWorker` starts it and holds the other end of its pair of sockets. Whatever generators do
to this process, the coordinator and the worker of a cluster are not affected.
"""

from __future__ import annotations

import os
import pickle
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from dpaudit.errors import ClusterError, DpauditError
from dpaudit.formatting import error_line
from dpaudit.game import worker
from dpaudit.game.trial import Payload
from dpaudit.game.worker import PayloadFile
from dpaudit.plugins.foreign import patches_apart
from dpaudit.plugins.registry import travels_by_value
from dpaudit.plugins.source import source_digest
from dpaudit.versions import versions


class Greeting(NamedTuple):
    """The versions and sources that must be equal wherever trials of one run are run.

    Attributes:
        versions: Versions of libraries, by name.
        sources: Digests of source code, by its part of the audit; None if it travels with the
            payload.
        trouble: Why the payload cannot be loaded; empty if it can.
    """

    versions: dict[str, str]
    sources: dict[str, str | None]
    trouble: str = ""

    def difference(self, other: Greeting) -> str:
        """The first difference of another process, to complete "it has ..."; empty if equal."""
        for name, own_version in self.versions.items():
            if other.versions.get(name) != own_version:
                return f"{name} {other.versions.get(name)}, and this process has {own_version}"
        if other.trouble:
            return f"no way to load what is audited: {other.trouble}"
        for name, digest in self.sources.items():
            if None not in (digest, there := other.sources.get(name)) and digest != there:
                return f"other source code of {name} than this process"
        return ""


def greeting_of(payload: Payload) -> Greeting:
    """The versions and sources with which this process would run the trials of a payload."""
    parts: dict[str, object] = {"dpaudit": payload}
    with patches_apart():
        for role, blob in payload.generators.items():
            parts[f"the generator ({role.in_words})"] = pickle.loads(blob)
        parts |= {f"the attack {type(attack).__name__}": attack for attack in payload.attacks}
        return Greeting(versions(), {name: _digest(part) for name, part in parts.items()})


def greet(payload_file: PayloadFile) -> Greeting:
    """As `greeting_of`, in a worker; a payload that cannot be loaded is part of the answer."""
    try:
        return worker.call(greeting_of, payload_file)
    except BaseException as error:  # noqa: BLE001 - a generator's or an attack's module raised it
        return Greeting(versions(), {}, error_line(error))


def _digest(part: object) -> str | None:
    """The digest of the source of a part; None if the part is sent by value."""
    if travels_by_value(part):
        return None
    try:
        return source_digest(part)
    except OSError:  # it was sent by value, and its file is not here
        return None


def main(descriptor: int) -> None:
    """Answers calls until the other end is closed."""
    connection = Connection(descriptor)
    worker.lead(os.getppid())
    with suppress(EOFError, OSError):  # the coordinator has ended
        while True:
            function, arguments = connection.recv()
            connection.send_bytes(b"")  # the time limit of the call starts here
            connection.send(_answer(function, arguments))


def _answer(function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    """The result of a function, or an error of dpaudit that it raised."""
    try:
        return function(*arguments)
    except DpauditError as error:
        return error
    except Exception as error:  # noqa: BLE001 - the worker's own trouble, such as a full disk
        if not isinstance(
            error, OSError
        ):  # the message of a missing folder or a full disk says it all
            traceback.print_exc()  # into the log
        return ClusterError(f"a worker cannot run trials: {error_line(error)}")
