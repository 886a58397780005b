"""A worker process as a generator that can be audited, and libraries that run in one by name.

Libraries, `LIBRARY:METHOD`, have an environment of their own. The parameters of an adapter's class
are read from its file, because its library is not installed here.
"""

from __future__ import annotations

import ast
import atexit
import json
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from dpaudit.errors import RegistryError
from dpaudit.external import worker
from dpaudit.external.environments import PINS, Environment, distribution_key
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
from dpaudit.files import io_reason
from dpaudit.formatting import did_you_mean
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


@dataclass(frozen=True, kw_only=True)
class Library:
    """A library, its environment, and the adapter through which the reference worker runs it.

    Attributes:
        name: Registered name.
        environment: Environment in which it is installed.
        adapter: A Python file, run by the environment's interpreter.
        methods: The adapter's class for each method that can be audited, by name.
        summary: What the library is, in one line.
        package: The distribution whose release is audited; if empty, the one named like the
            library.
    """

    name: str
    environment: Environment
    adapter: Path
    methods: Mapping[str, str]
    summary: str
    package: str = ""

    @property
    def distribution(self) -> str:
        """The distribution whose release is audited."""
        return self.package or self.name

    @property
    def account(self) -> str:
        """What the library is, and whether it can be audited at once."""
        built = self.environment.built
        ready = "ready" if built else f"run: dpaudit env create {self.environment.name}"
        return f"{self.summary} ({ready})"

    def with_release(self, version: str) -> Library:
        """The library at another release, with everything else as pinned.

        Raises:
            RegistryError: If the text is not a version.
        """
        return replace(
            self,
            name=f"{self.name}@{version}",
            environment=self.environment.with_release(self.distribution, version),
        )

    def check_method(self, method: str) -> None:
        """Refuses an unknown method.

        Raises:
            RegistryError: If the library lacks the method; the message lists its methods.
        """
        if method not in self.methods:
            problem = (
                f"has no method {method!r}" if method else "is a library: name one of its methods"
            )
            raise RegistryError(
                f"{self.name} {problem}{did_you_mean(method, list(self.methods))}; there is "
                f"{', '.join(f'{self.name}:{name}' for name in self.methods)}"
            )

    def generator(
        self,
        method: str,
        *,
        schema: Schema,
        parameters: Mapping[str, Any],
        memory: int | None = None,
    ) -> WorkerGenerator:
        """One of the methods as a generator.

        Args:
            method: Name of the method.
            schema: The public schema.
            parameters: Parameters of the adapter's class.
            memory: As in `WorkerGenerator`.

        Raises:
            RegistryError: If there is no such method, the environment is missing, or the adapter
                refuses the parameters.
        """
        self.check_method(method)
        built = self.environment.built
        if built is None:
            raise RegistryError(
                f"{self.name}:{method} needs its environment, which is not there yet; run: dpaudit "
                f"env create {self.environment.name}"
            )
        release = built.packages.get(distribution_key(self.distribution), "not installed")
        return WorkerGenerator(
            command=shlex.join([str(built.python), f"{self.adapter}:{self.methods[method]}"]),
            schema=schema,
            parameters=parameters,
            memory=memory,
            name=f"{self.name}:{method}",
            sources=(built.folder / PINS,),
            audited_releases={
                f"{self.environment.name}: {self.distribution}": release,
                f"{self.environment.name}: python": built.python_version,
            },
        )


class AdapterAccount(NamedTuple):
    """The description of an adapter's class.

    Attributes:
        summary: Its docstring; empty if it has none.
        parameters: Its constructor's parameters with their defaults as written, or None without a
            default. Parameters that dpaudit itself supplies are left out.
    """

    summary: str
    parameters: Mapping[str, str | None]


def adapter_account(adapter: Path, name: str) -> AdapterAccount:
    """Reads a class of an adapter without running it.

    Args:
        adapter: The file.
        name: The class.

    Returns:
        Its description.

    Raises:
        RegistryError: If the file cannot be read, or has no such class.
    """
    try:
        tree = ast.parse(adapter.read_bytes())
    except (OSError, SyntaxError, ValueError) as error:
        reason = io_reason(error) if isinstance(error, OSError) else str(error)
        raise RegistryError(f"the adapter {adapter} cannot be read: {reason}") from None
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    if name not in classes:
        raise RegistryError(f"the adapter {adapter} has no class {name}")
    parameters = _parameters(name, classes)
    for supplied in ("self", "schema"):
        parameters.pop(supplied, None)
    return AdapterAccount(ast.get_docstring(classes[name]) or "", parameters)


def _parameters(name: str, classes: Mapping[str, ast.ClassDef]) -> dict[str, str | None]:
    """Parameters of a class, and of its base if its constructor passes others on."""
    if name not in classes:  # it is defined in another module
        return {}
    bases = [base.id for base in classes[name].bases if isinstance(base, ast.Name)]
    others = {other: node for other, node in classes.items() if other != name}
    inherited = _parameters(bases[0], others) if bases else {}
    for node in classes[name].body:
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            defined = _arguments(node.args)
            return {**defined, **inherited, **defined} if node.args.kwarg else defined
    return inherited


def _arguments(signature: ast.arguments) -> dict[str, str | None]:
    """The arguments of a function, each with its default as written, or None."""
    positional = [*signature.posonlyargs, *signature.args]
    defaults = [*[None] * (len(positional) - len(signature.defaults)), *signature.defaults]
    pairs = zip(
        (*positional, *signature.kwonlyargs), (*defaults, *signature.kw_defaults), strict=True
    )
    return {
        argument.arg: None if default is None else ast.unparse(default)
        for argument, default in pairs
    }
