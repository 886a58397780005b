"""A worker process as a generator that can be audited."""

from __future__ import annotations

import atexit
import json
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from dpaudit.errors import RegistryError
from dpaudit.external import worker
from dpaudit.external.session import (
    FOLDER_PREFIX,
    PREFIX,
    Hello,
    SynthesisError,
    WorkerError,
    WorkerSession,
    WorkerStart,
    short_session,
)
from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.schema import Schema
from dpaudit.seeds import rng_of


@dataclass(frozen=True, kw_only=True)
class WorkerGenerator:
    """A generator in a separate process.

    A process serves one trial after another, so a library is imported only once, unless each trial
    is to have a fresh process. It is ended when an answer is late or wrong, and restarted for the
    next trial. A training and its sample are one request, so no state of a model remains.

    Attributes:
        command: Program and arguments as one text, split as a shell would, but without a shell. A
            program followed by FILE.py:NAME runs the reference worker on it.
        schema: The public schema, which the worker is sent.
        parameters: Parameters for the worker.
        fresh: Whether each trial has a process of its own.
        memory: Bytes of address space for the process; None for no limit.
        name: Name in messages; if empty, `worker:` and the command.
        sources: Source files in addition to those that its command names.
        audited_releases: Releases that a result is about, by the name of the software.

    Raises:
        RegistryError: If the worker cannot be started, or its hello is wrong.
    """

    command: str
    schema: Schema
    parameters: Mapping[str, Any] = field(default_factory=dict)
    fresh: bool = False
    memory: int | None = None
    name: str = ""
    sources: tuple[Path, ...] = ()
    audited_releases: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _ = self.hello

    @cached_property
    def arguments(self) -> tuple[str, ...]:
        """Program and arguments, with absolute paths."""
        try:
            words = shlex.split(self.command)
        except ValueError as error:
            raise RegistryError(f"the worker's command cannot be read: {error}") from None
        if not words:
            raise RegistryError("a worker needs a command: worker:PROGRAM ARGUMENT...")
        program = shutil.which(words[0])
        if program is None:
            raise RegistryError(f"the worker's program {words[0]} does not exist or cannot be run")
        rest = [_absolute(word) for word in words[1:]]
        if len(rest) == 1 and rest[0].rpartition(":")[0].endswith(".py"):
            rest = [os.path.abspath(worker.__file__), *rest]
        return (os.path.abspath(program), *rest)

    @cached_property
    def hello(self) -> Hello:
        """The worker's description of itself, from a process that is then ended."""
        try:
            with short_session(self.start) as session:
                return session.hello
        except WorkerError as error:
            name = self.name or f"{PREFIX}{self.command}"
            raise RegistryError(f"{name}: {error}") from None

    @property
    def claim(self) -> PrivacyClaim | None:
        """The generator's claim, according to the worker."""
        return self.hello.claim

    @property
    def proof(self) -> str | None:
        """How the claim is proved, according to the worker."""
        return self.hello.proof

    @property
    def seedable(self) -> bool:
        """Whether the same seed gives the same bytes, according to the worker."""
        return self.hello.seedable

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> WorkerModel:
        """Keeps the table: the worker trains and samples in one request."""
        return WorkerModel(self, data, seed)

    @property
    def start(self) -> WorkerStart:
        """How its process is started; a process with an equal start serves this generator too."""
        return WorkerStart(
            self.arguments, self.schema, json.dumps(dict(self.parameters)), self.memory
        )

    @property
    def source_files(self) -> tuple[Path, ...]:
        """Its source files: those that its command names, and `sources`."""
        names = (word.rpartition(":")[0] or word for word in self.arguments[1:])
        named = (Path(name) for name in names if os.path.isfile(name))
        return (*named, *self.sources)

    @property
    def imports_here(self) -> bool:
        """Whether its program is the Python of this process, with the same installed packages."""
        folder, program = os.path.split(self.arguments[0])
        return folder == os.path.dirname(sys.executable) and program.startswith("python")


@dataclass(frozen=True)
class WorkerModel:
    """A training that a worker will do when it is sampled.

    Attributes:
        generator: The generator.
        data: The table.
        seed: Seed of the training.
    """

    generator: WorkerGenerator
    data: pd.DataFrame
    seed: int | None

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        """Has the worker train and draw `n` records, with one seed derived from both.

        Raises:
            SynthesisError: If the worker reports a failure.
            WorkerError: If it breaks the protocol; it is then ended.
        """
        joint_seed = None
        if self.seed is not None:
            joint_seed = int(rng_of(self.seed, f"worker/{seed}").integers(2**32))
        session = _session(self.generator.start)
        try:
            table = session.synthesize(self.data, rows=n, seed=joint_seed)
        except SynthesisError:
            raise
        except BaseException:
            _end(session)
            raise
        if self.generator.fresh:
            _end(session)
        return table


_current: WorkerSession | None = None
"""The worker of this process, kept from one trial to the next."""


def _session(start: WorkerStart) -> WorkerSession:
    """The current worker if it has this start, else a new one in its place."""
    global _current
    if _current is not None and _current.start != start:
        _end(_current)
    if _current is None:
        folder = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX))
        try:
            _current = WorkerSession(start, folder=folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    return _current


def _end(session: WorkerSession) -> None:
    """Ends a worker and removes its folder."""
    global _current
    session.end()
    shutil.rmtree(session.folder, ignore_errors=True)
    if _current is session:
        _current = None


@atexit.register
def _end_current() -> None:
    if _current is not None:
        _end(_current)


def _absolute(word: str) -> str:
    """Makes an argument that names a file, perhaps with :NAME, an absolute path."""
    path, colon, name = word.rpartition(":")
    for part, rest in ((word, ""), (path, colon + name)):
        if part and os.path.isfile(part):
            return os.path.abspath(part) + rest
    return word
