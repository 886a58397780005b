"""A worker that was started and has said hello, and its requests."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple

import pandas as pd

from dpaudit.external.messages import (
    ARROW,
    CSV,
    PROTOCOL,
    Hello,
    check_answer,
    hello_of,
)
from dpaudit.external.process import WorkerProcess
from dpaudit.external.tables import read_table, write_table
from dpaudit.model.schema import Schema

FOLDER_PREFIX: Final = "dpaudit-worker-"
HELLO_SECONDS: Final = 300.0
"""How long a worker may take to start: it may import a large library."""


class WorkerStart(NamedTuple):
    """How a worker is started.

    Attributes:
        arguments: Program and arguments.
        schema: The public schema, which it is sent.
        parameters: Its parameters, as JSON text.
        memory: Bytes of address space that it may take; None for no limit.
    """

    arguments: tuple[str, ...]
    schema: Schema
    parameters: str
    memory: int | None


class WorkerSession:
    """A worker process that answers requests.

    Attributes:
        start: How it was started.
        folder: Its working folder, where tables are exchanged.
        hello: What it says of itself.
    """

    def __init__(
        self,
        start: WorkerStart,
        *,
        folder: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Starts it and asks for its hello.

        Args:
            start: How it is started.
            folder: An empty folder.
            environment: Further variables of its environment.

        Raises:
            WorkerError: If it cannot be started, or its hello is wrong.
        """
        self.start, self.folder = start, folder
        self._process = WorkerProcess(
            start.arguments, folder=folder, memory=start.memory, environment=environment or {}
        )
        self._requests = 0
        greeting = {
            "op": "hello",
            "protocol": PROTOCOL,
            "schema": start.schema.to_document(),
            "parameters": json.loads(start.parameters),
        }
        try:
            self.hello: Hello = hello_of(self._process.ask(greeting, seconds=HELLO_SECONDS))
        except BaseException:
            self.end()
            raise
        both = ARROW in self.hello.formats and find_spec("pyarrow") is not None
        self._form = ARROW if both else CSV

    def synthesize(self, data: pd.DataFrame, *, rows: int, seed: int | None) -> pd.DataFrame:
        """Has it train on a table and draw records.

        Args:
            data: The table, canonical.
            rows: Records to draw.
            seed: In [0, 2**32); None for the entropy of the system.

        Returns:
            The table that it wrote.

        Raises:
            SynthesisError: If it says that it failed.
            WorkerError: If it does not answer as the protocol says, or ends.
        """
        request = self.request(rows=rows, seed=seed)
        given, output = self.folder / request["data"], self.folder / request["output"]
        try:
            write_table(data, given, form=self._form)
            check_answer(self.ask(request), request["id"])
            return read_table(output, self.start.schema, form=self._form)
        finally:
            for path in (given, output):
                with suppress(OSError):  # a folder of that name goes with the rest
                    path.unlink()

    def request(self, *, rows: int, seed: int | None) -> dict[str, Any]:
        """The next request to synthesize, with names of files that are not there yet."""
        self._requests += 1
        return {
            "op": "synthesize",
            "id": self._requests,
            "data": f"data-{self._requests}.{self._form}",
            "output": f"synthetic-{self._requests}.{self._form}",
            "format": self._form,
            "rows": rows,
            "seed": seed,
        }

    def ask(self, message: dict[str, Any], *, seconds: float | None = None) -> dict[str, Any]:
        """As `WorkerProcess.ask`."""
        return self._process.ask(message, seconds=seconds)

    def end(self) -> None:
        """Ends the process."""
        self._process.end()

    def ends_with_its_input(self, *, seconds: float) -> bool:
        """Closes its standard input; whether it then ends by itself within that time."""
        return self._process.ends_with_its_input(seconds=seconds)


@contextmanager
def short_session(start: WorkerStart) -> Iterator[WorkerSession]:
    """A worker in a folder of its own; both are gone in the end.

    Raises:
        WorkerError: As `WorkerSession`.
    """
    with tempfile.TemporaryDirectory(prefix=FOLDER_PREFIX) as folder:
        session = WorkerSession(start, folder=Path(folder))
        try:
            yield session
        finally:
            session.end()
