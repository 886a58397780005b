"""A worker: its messages in `dpaudit-worker/1`, its process, and a session of requests to it.

Messages are JSON objects, one per line. dpaudit asks `hello` once and then `synthesize` for each
shadow model; a worker answers each in turn. docs/worker-protocol.md is the page for authors of
workers. The process is started without a shell and ended with its children. Tables are exchanged as
CSV or Arrow files.
"""

from __future__ import annotations

import io
import json
import math
import os
import queue
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, TypeAlias, TypeVar

import pandas as pd

from dpaudit.errors import ClaimError, DataError, TrialError
from dpaudit.files import parse_json
from dpaudit.formatting import clipped, error_line, how_it_died, one_line
from dpaudit.model.claim import Neighbours, PrivacyClaim
from dpaudit.model.schema import Schema

PREFIX: Final = "worker:"
FRESH_PREFIX: Final = "fresh-worker:"
"""Prefixes of generator names that are commands of workers."""
PROTOCOL: Final = "dpaudit-worker/1"
CSV: Final = "csv"
ARROW: Final = "arrow"
FORMATS: Final = (CSV, ARROW)
COMPOSITION: Final = "composition"
"""The proof of a claim that charges for every noisy answer."""
FILE: Final = "dpaudit: the file as it was written"
"""Attribute of a table that was read from a file, with the bytes of the file."""
MOST_LINE: Final = 2**20
"""Most bytes of an answer."""
_SHOWN: Final = 200
"""Characters of a foreign text in a message."""
KEPT_ERRORS: Final = 2**16
"""Last bytes of standard error that are kept."""
_SHOWN_ERRORS: Final = 300
"""Characters of standard error in a message."""
_CHUNK: Final = 2**16
_POLL_SECONDS: Final = 0.05
_END_SECONDS: Final = 2.0
_CHECK_SECONDS: Final = 0.5
PASSED_ON: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ", "LD_LIBRARY_PATH")
"""Environment variables passed to a worker, in addition to those that mark and limit workers."""
TAMED: Final = ("OMP_", "MKL_", "OPENBLAS_", "NUMEXPR_", "PYTHONHASHSEED", "DPAUDIT_POOL_")
"""Prefixes of further variables passed on: threads, hashing, and the pool's marker."""
AnyTables = TypeVar("AnyTables", pd.DataFrame, dict[str, pd.DataFrame])
"""A table, or several by name."""
FileNames: TypeAlias = str | dict[str, str]
"""The name of a table's file, or those of several by table."""
FOLDER_PREFIX: Final = "dpaudit-worker-"
HELLO_SECONDS: Final = 300.0
"""Time limit for a worker to start: it may import a large library."""
MOST_BYTES: Final = 2**31
"""Most bytes of a file that a worker writes."""


class WorkerError(TrialError):
    """A worker process did not answer as the protocol says."""


class SynthesisError(TrialError):
    """A worker answered that it could not synthesize, and is ready for the next request.

    Args:
        answer: The answer.
    """

    def __init__(self, answer: Mapping[str, Any]) -> None:
        place, message = answer.get("at"), clipped(one_line(str(answer.get("message", ""))), _SHOWN)
        at = f" at {place}" if place else ""
        super().__init__(clipped(one_line(f"{answer.get('error')}{at}"), _SHOWN), message)
        if "traceback" in answer:
            self.add_note(str(answer["traceback"]))


class Hello(NamedTuple):
    """A worker's description of itself.

    Attributes:
        name: The worker's name for its generator.
        claim: The generator's claim; None without one.
        seedable: Whether the same seed gives the same bytes.
        formats: Formats of tables that it reads and writes, including CSV.
        proof: How the claim is proved: "composition"; None if unknown.
    """

    name: str
    claim: PrivacyClaim | None
    seedable: bool
    formats: tuple[str, ...]
    proof: str | None


def line_of(message: Mapping[str, Any]) -> bytes:
    """A message as a line to send."""
    return json.dumps(message, allow_nan=False).encode() + b"\n"


def answer_of(line: bytes) -> dict[str, Any]:
    """A line from a worker as a message.

    Raises:
        WorkerError: If the line is not a JSON object.
    """
    try:
        answer = parse_json(line.decode("utf-8"))
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        shown = clipped(one_line(line.decode("utf-8", "replace")), _SHOWN)
        raise WorkerError(
            "the worker answered no JSON object: print to standard error, never to standard output",
            repr(shown),
        )
    return answer


def hello_of(answer: Mapping[str, Any]) -> Hello:
    """Reads a worker's description of itself.

    Raises:
        WorkerError: If it breaks the protocol; the message says how.
    """
    if "error" in answer:
        raise WorkerError(f"the worker does not start: {SynthesisError(answer)}")
    if answer.get("protocol") != PROTOCOL:
        shown = clipped(repr(answer.get("protocol")), _SHOWN)
        raise WorkerError(f"the worker speaks {shown}, not {PROTOCOL!r}")
    name, seedable = answer.get("name"), answer.get("seedable", True)
    formats = answer.get("formats", [CSV])
    if not isinstance(name, str) or not isinstance(seedable, bool):
        raise WorkerError("the worker's hello needs a text `name` and a true or false `seedable`")
    if not isinstance(formats, list) or CSV not in formats:
        raise WorkerError(f"the worker's hello must list {CSV!r} among its `formats`")
    proof = answer.get("proof")
    if proof not in (None, COMPOSITION):
        raise WorkerError(f"the worker's hello must have {COMPOSITION!r} as `proof`, or none")
    known = tuple(form for form in FORMATS if form in formats)
    return Hello(
        one_line(name), _read_claim(answer.get("claim"), one_line(name)), seedable, known, proof
    )


def check_answer(answer: Mapping[str, Any], request: int) -> None:
    """Checks the answer to a request to synthesize.

    Raises:
        SynthesisError: If the worker reports a failure.
        WorkerError: If it answers another request, or reports neither success nor failure.
    """
    if answer.get("id") != request:
        shown = clipped(repr(answer.get("id")), _SHOWN)
        raise WorkerError(f"the worker answered request {shown} instead of {request}")
    if "error" in answer:
        raise SynthesisError(answer)
    if answer.get("done") is not True:
        raise WorkerError('the worker answered neither "done": true nor an "error"')


_CLAIM_KEYS: Final = frozenset(("epsilon", "delta", "neighbours", "unit"))


def _read_claim(stated: object, name: str) -> PrivacyClaim | None:
    """Reads the claim in a hello; raises a `WorkerError` if it is malformed."""
    if stated is None:
        return None
    if not isinstance(stated, dict) or not set(stated) <= _CLAIM_KEYS:
        raise WorkerError(
            "the worker's claim must have `epsilon`, `delta`, `neighbours` and `unit` alone"
        )
    if not isinstance(stated.get("unit"), str | None):
        raise WorkerError("the worker's claim must have a column name as `unit`, or none")
    try:
        return PrivacyClaim(
            epsilon=stated["epsilon"],
            delta=stated.get("delta", 0.0),
            neighbours=Neighbours(stated.get("neighbours", Neighbours.ADD_REMOVE)),
            source=f"said by the worker of {name}",
            unit=stated.get("unit"),
        )
    except (ClaimError, KeyError, ValueError, TypeError) as error:
        raise WorkerError(f"the worker's claim has no meaning: {error}") from None


class WorkerProcess:
    """One process that speaks the protocol, in a folder and a session of its own.

    Attributes:
        folder: Its working folder, where tables are exchanged.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        folder: Path,
        memory: int | None = None,
        environment: Mapping[str, str] | None = None,
        process: subprocess.Popen[bytes] | None = None,
    ) -> None:
        """Starts the process.

        Args:
            command: Program and arguments; no shell is used.
            folder: Its working folder.
            memory: Bytes of address space for the process (Linux); None for no limit.
            environment: Further environment variables.
            process: The process, if it runs already.

        Raises:
            WorkerError: If the system cannot start it.
        """
        self.folder = folder
        try:
            self._process = process or subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=folder,
                env={**_worker_environment(), **(environment or {})},
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise WorkerError(f"the worker {command[0]} cannot be started: {reason}") from None
        if memory is not None and sys.platform == "linux":
            _limit_memory(self._process.pid, memory)
        self._errors = bytearray()
        self._lines: queue.SimpleQueue[bytes | WorkerError | None] = queue.SimpleQueue()
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._readers = [
            threading.Thread(target=read, args=(stream,), daemon=True)
            for read, stream in (
                (self._read_lines, self._process.stdout),
                (self._read_errors, self._process.stderr),
            )
        ]
        for reader in self._readers:
            reader.start()

    def ask(self, message: Mapping[str, Any], *, seconds: float | None = None) -> dict[str, Any]:
        """Sends a message and waits for the answer.

        Args:
            message: The message.
            seconds: How long to wait; None for no limit (the trial has its own).

        Returns:
            The answer.

        Raises:
            WorkerError: If the worker ends, is late, answers too much or anything but an object, or
                has sent a line without being asked.
        """
        with suppress(queue.Empty):
            if self._lines.get_nowait() is None:  # it has ended
                raise self._end_error()
            raise WorkerError(
                "the worker said something before it was asked: one answer for each request, and "
                "everything else to standard error"
            )
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended, as reading will show
            self._process.stdin.write(line_of(message))
            self._process.stdin.flush()
        line = self._next_line(seconds)
        if isinstance(line, WorkerError):
            raise line
        if line is None:
            raise self._end_error()
        return answer_of(line)

    def _next_line(self, seconds: float | None) -> bytes | WorkerError | None:
        """The next line; None if the process has ended, even if a child keeps its output open.

        Raises:
            WorkerError: If the line is late.
        """
        deadline = math.inf if seconds is None else time.monotonic() + seconds
        while True:
            ended = self._process.poll() is not None  # asked first: it may write more, then end
            remaining = deadline - time.monotonic()
            with suppress(queue.Empty):
                return self._lines.get(timeout=max(0.0, min(remaining, _CHECK_SECONDS)))
            if ended:
                return None
            if remaining <= 0:
                raise WorkerError(f"the worker did not answer within {seconds:g} s")

    def end(self) -> None:
        """Ends the process and all that it started in its session; a second call does nothing."""
        with suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_SECONDS)
        assert self._process.stdin is not None
        with suppress(OSError, ValueError):
            self._process.stdin.close()
        for reader in self._readers:
            reader.join(_CHECK_SECONDS)  # a child in another session may still hold the stream

    def ends_with_its_input(self, *, seconds: float) -> bool:
        """Closes its standard input; returns whether it then ends by itself in time."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
            return True
        return False

    def _end_error(self) -> WorkerError:
        """The error about a process that has ended or closed its output."""
        deadline = time.monotonic() + _END_SECONDS
        while self._process.poll() is None and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
        code = self._process.poll()
        how = "closed its standard output" if code is None else f"ended{how_it_died(code)}"
        time.sleep(_POLL_SECONDS)  # for the rest of its standard error
        last_words = one_line(bytes(self._errors).decode("utf-8", "replace")).strip()[
            -_SHOWN_ERRORS:
        ]
        return WorkerError(f"the worker {how}", last_words)

    def _read_lines(self, stream: IO[bytes]) -> None:
        """Queues each line; a line that is too long ends the reading."""
        try:
            with stream:
                while line := stream.readline(MOST_LINE + 1):
                    if len(line) > MOST_LINE:
                        problem = f"the worker's answer is over {MOST_LINE} bytes"
                        self._lines.put(WorkerError(problem))
                        break
                    self._lines.put(line)
        finally:
            self._lines.put(None)

    def _read_errors(self, stream: IO[bytes]) -> None:
        """Keeps the last bytes of standard error."""
        with stream:
            while chunk := os.read(stream.fileno(), _CHUNK):
                self._errors += chunk
                del self._errors[:-KEPT_ERRORS]


def _worker_environment() -> dict[str, str]:
    """The environment of a worker, without variables of dpaudit's interpreter."""
    return {
        name: value
        for name, value in os.environ.items()
        if name in PASSED_ON or name.startswith(TAMED)
    }


def _limit_memory(process: int, size: int) -> None:
    import resource

    with suppress(OSError, ValueError):  # it has ended, or limits are not allowed
        resource.prlimit(process, resource.RLIMIT_AS, (size, size))


class WorkerStart(NamedTuple):
    """How a worker is started.

    Attributes:
        arguments: Program and arguments.
        schema: The public schema, which the worker is sent.
        parameters: Parameters for the worker, as JSON text.
        memory: Bytes of address space for the process; None for no limit.
    """

    arguments: tuple[str, ...]
    schema: Schema
    parameters: str
    memory: int | None


class WorkerSession(WorkerProcess):
    """A worker process that answers requests.

    Attributes:
        start: How it was started.
        folder: Its working folder, where tables are exchanged.
        hello: Its description of itself.
    """

    def __init__(
        self,
        start: WorkerStart,
        *,
        folder: Path,
        environment: Mapping[str, str] | None = None,
        process: subprocess.Popen[bytes] | None = None,
    ) -> None:
        """Starts the worker and asks for its hello.

        Args:
            start: How to start it.
            folder: An empty folder.
            environment: Further environment variables.
            process: Its process, if it runs already.

        Raises:
            WorkerError: If it cannot be started, or its hello is wrong.
        """
        super().__init__(
            start.arguments,
            folder=folder,
            memory=start.memory,
            environment=environment,
            process=process,
        )
        self.start = start
        self._requests = 0
        greeting = {
            "op": "hello",
            "protocol": PROTOCOL,
            "schema": start.schema.to_document(),
            "parameters": json.loads(start.parameters),
        }
        try:
            self.hello: Hello = hello_of(self.ask(greeting, seconds=HELLO_SECONDS))
        except BaseException:
            self.end()
            raise
        can_use_arrow = ARROW in self.hello.formats and find_spec("pyarrow") is not None
        self._form = ARROW if can_use_arrow else CSV

    def synthesize(self, data: AnyTables, *, rows: int, seed: int | None) -> AnyTables:
        """Has the worker train on a table, or on linked tables, and draw records.

        Args:
            data: The table, canonical, or the tables by name.
            rows: Records to draw; of linked tables, rows of the root.
            seed: Seed in [0, 2**32); None for the system's entropy.

        Returns:
            The synthetic table, or tables.

        Raises:
            SynthesisError: If the worker reports a failure.
            WorkerError: If it breaks the protocol, or ends.
        """
        request = self.request(rows=rows, seed=seed)
        try:
            self.write(data, request["data"])
            synthetic: AnyTables = self.run(request)
            return synthetic
        finally:
            self.remove(request["data"])

    def write(self, data: pd.DataFrame | dict[str, pd.DataFrame], files: FileNames) -> None:
        """Writes tables for the worker.

        Args:
            data: The table, canonical, or the tables by name.
            files: The names of their files, as in a request.

        Raises:
            OSError: If one cannot be written.
        """
        tables = data if isinstance(data, dict) else {"": data}
        for name, path in self._paths(files).items():
            write_table(tables[name], path, form=self._form)

    def remove(self, files: FileNames | None) -> None:
        """Removes the files of a request, as far as they are there."""
        for path in self._paths(files).values():
            with suppress(OSError):  # a folder of that name is removed with the working folder
                path.unlink()

    def run(self, request: dict[str, Any]) -> Any:
        """Has the worker answer a request whose tables are written, and reads the synthetic ones.

        Args:
            request: A request made by `request`. Without the names of its output, the worker leaves
                the synthetic tables unwritten; only the reference worker can do that.

        Returns:
            The synthetic table, or the tables by name; None without output.

        Raises:
            SynthesisError: As `synthesize`.
            WorkerError: As `synthesize`.
        """
        output, text = request["output"], self.start.schema.text_columns_of
        try:
            check_answer(self.ask(request), request["id"])
            synthetic = {
                name: read_table(path, text[name], form=self._form)
                for name, path in self._paths(output).items()
            }
            return synthetic if isinstance(output, dict) else synthetic.get("")
        finally:
            self.remove(output)

    def _paths(self, named: FileNames | None) -> dict[str, Path]:
        """The paths of the files of a request, by table."""
        files = named if isinstance(named, dict) else {} if named is None else {"": named}
        return {name: self.folder / file for name, file in files.items()}

    def request(self, *, rows: int, seed: int | None) -> dict[str, Any]:
        """The next request to synthesize, with names of new files."""
        self._requests += 1

        def files(stem: str) -> FileNames:
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


@contextmanager
def short_session(start: WorkerStart) -> Iterator[WorkerSession]:
    """A worker in a folder of its own, both of which are removed on leaving.

    Raises:
        WorkerError: As `WorkerSession`.
    """
    with tempfile.TemporaryDirectory(prefix=FOLDER_PREFIX) as folder:
        session = WorkerSession(start, folder=Path(folder))
        try:
            yield session
        finally:
            session.end()


def write_table(table: pd.DataFrame, path: Path, *, form: str) -> None:
    """Writes a table for a worker.

    CSV is comma-separated UTF-8 with a header. Numbers have as few digits as reading them back
    exactly needs; missing values are empty.

    Args:
        table: The table, canonical.
        path: The file.
        form: "csv" or "arrow".

    Raises:
        OSError: If the file cannot be written.
    """
    if form == ARROW:
        table.to_feather(path)
    else:
        path.write_bytes(table.to_csv(index=False).encode())


def read_table(path: Path, text_columns: Sequence[str], *, form: str) -> pd.DataFrame:
    """Reads a table that a worker wrote; the game checks whether it fits the schema.

    Args:
        path: The file that the worker was asked to write.
        text_columns: Columns to read as text, even if they look like numbers.
        form: "csv" or "arrow".

    Returns:
        The table as written.

    Raises:
        WorkerError: If the file is missing, not a plain file of its own, too large, or not such a
            table.
    """
    content = _read_plain_file(path)
    try:
        return _read_arrow(content) if form == ARROW else _read_csv(content, text_columns)
    except Exception as error:
        what = "an Arrow file" if form == ARROW else "a CSV table"
        raise WorkerError(f"the worker's output is not {what}: {error_line(error)}") from error


def _read_plain_file(path: Path) -> bytes:
    """The bytes of a plain file without other names; refuses links, devices and what may block."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise WorkerError("the worker said that it was done but wrote no output") from None
    except OSError as error:
        raise WorkerError(f"the worker's output cannot be read: {error.strerror}") from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            raise WorkerError("the worker's output is not a plain file of its own")
        if status.st_size > MOST_BYTES:
            raise WorkerError(f"the worker's output has {status.st_size} bytes, over {MOST_BYTES}")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def _read_arrow(content: bytes) -> pd.DataFrame:
    table: pd.DataFrame = pd.read_feather(io.BytesIO(content))
    return table


def _read_csv(content: bytes, text_columns: Sequence[str]) -> pd.DataFrame:
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
