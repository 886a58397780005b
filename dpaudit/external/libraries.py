"""Libraries that run in an environment of their own, audited by name: `LIBRARY:METHOD`.

The parameters of an adapter's class are read from its file, because its library is not installed
here.
"""

from __future__ import annotations

import ast
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from dpaudit.errors import RegistryError
from dpaudit.external.environments import PINS, Environment, distribution_key
from dpaudit.external.generator import WorkerGenerator
from dpaudit.files import io_reason
from dpaudit.formatting import did_you_mean
from dpaudit.model.schema import Schema


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
