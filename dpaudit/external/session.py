"""A worker that was started and has said hello, and its requests.

Tables go to it and come back from it as CSV or Arrow files.
"""

from __future__ import annotations

import io
import json
import os
import stat
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import pandas as pd

from dpaudit.errors import DataError
from dpaudit.external.messages import (
    ARROW,
    CSV,
    FILE,
    PROTOCOL,
    Hello,
    WorkerError,
    check_answer,
    hello_of,
)
from dpaudit.external.process import WorkerProcess
from dpaudit.formatting import error_line
from dpaudit.model.schema import Schema

AnyTables = TypeVar("AnyTables", pd.DataFrame, dict[str, pd.DataFrame])
"""A table, or several by name."""
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

    def synthesize(self, data: AnyTables, *, rows: int, seed: int | None) -> AnyTables:
        """Has it train on a table, or on several by name, and draw records.

        Args:
            data: The table, canonical, or the tables.
            rows: Records to draw; of several tables those of the root.
            seed: In [0, 2**32); None for the entropy of the system.

        Returns:
            The table that it wrote, or the tables.

        Raises:
            SynthesisError: If it says that it failed.
            WorkerError: If it does not answer as the protocol says, or ends.
        """
        if isinstance(data, dict):
            return self._synthesized(data, self.request(rows=rows, seed=seed))
        return self._synthesized({"": data}, self.request(rows=rows, seed=seed))[""]

    def _synthesized(
        self, tables: Mapping[str, pd.DataFrame], request: dict[str, Any]
    ) -> dict[str, pd.DataFrame]:
        """Sends tables by name, one without a name, and reads those that come back."""
        given, output = self._paths(request["data"]), self._paths(request["output"])
        text = self.start.schema.text_columns_of
        try:
            for name, table in tables.items():
                write_table(table, given[name], form=self._form)
            check_answer(self.ask(request), request["id"])
            return {
                name: read_table(path, text[name], form=self._form) for name, path in output.items()
            }
        finally:
            for path in (*given.values(), *output.values()):
                with suppress(OSError):  # a folder of that name goes with the rest
                    path.unlink()

    def _paths(self, named: str | dict[str, str]) -> dict[str, Path]:
        """Where the files of a request are, by table."""
        files = named if isinstance(named, dict) else {"": named}
        return {name: self.folder / file for name, file in files.items()}

    def request(self, *, rows: int, seed: int | None) -> dict[str, Any]:
        """The next request to synthesize, with names of files that are not there yet."""
        self._requests += 1

        def files(stem: str) -> str | dict[str, str]:
            named = {
                name: f"{stem}-{self._requests}{f'-{place}' if place else ''}.{self._form}"
                for place, name in enumerate(self.start.schema.text_columns_of)
            }
            return named.get("", named)

        return {
            "op": "synthesize",
            "id": self._requests,
            "data": files("data"),
            "output": files("synthetic"),
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


MOST_BYTES: Final = 2**31
"""Of a file that a worker writes."""


def write_table(table: pd.DataFrame, path: Path, *, form: str) -> None:
    """Writes a table for a worker.

    CSV is comma-separated UTF-8 with a header; numbers are as short as they can be read back
    exactly, missing values empty.

    Args:
        table: The table, canonical.
        path: Where to.
        form: "csv" or "arrow".

    Raises:
        OSError: If it cannot be written.
    """
    if form == ARROW:
        table.to_feather(path)
    else:
        path.write_bytes(table.to_csv(index=False).encode())


def read_table(path: Path, text_columns: Sequence[str], *, form: str) -> pd.DataFrame:
    """Reads what a worker wrote; whether it fits the schema is for the game to say.

    Args:
        path: The file that the worker was to write.
        text_columns: Columns that are text, whatever it looks like.
        form: "csv" or "arrow".

    Returns:
        The table as written.

    Raises:
        WorkerError: If there is no file, it is no plain file of its own, it is too large, or it is
            no such table.
    """
    content = _content(path)
    try:
        return _arrow(content) if form == ARROW else _csv(content, text_columns)
    except Exception as error:
        what = "an Arrow file" if form == ARROW else "a CSV table"
        raise WorkerError(f"the worker's output is not {what}: {error_line(error)}") from error


def _content(path: Path) -> bytes:
    """The bytes of a plain file without other names: no link, no device, nothing that blocks."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise WorkerError("the worker said that it was done but wrote no output") from None
    except OSError as error:
        raise WorkerError(f"the worker's output cannot be read: {error.strerror}") from None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
            raise WorkerError("the worker's output is no plain file of its own")
        if found.st_size > MOST_BYTES:
            raise WorkerError(f"the worker's output has {found.st_size} bytes, over {MOST_BYTES}")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def _arrow(content: bytes) -> pd.DataFrame:
    table: pd.DataFrame = pd.read_feather(io.BytesIO(content))
    return table


def _csv(content: bytes, text_columns: Sequence[str]) -> pd.DataFrame:
    text = dict.fromkeys(text_columns, "object")
    options: dict[str, Any] = {"encoding": "utf-8", "keep_default_na": False, "na_values": [""]}
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # rows longer than the header
        warnings.simplefilter("ignore", pd.errors.DtypeWarning)  # the game judges the values
        table: pd.DataFrame = pd.read_csv(
            io.BytesIO(content), dtype=text, index_col=False, **options
        )
    if not len(table.columns):
        raise DataError("it has no columns")
    table.attrs[FILE] = content
    return table
