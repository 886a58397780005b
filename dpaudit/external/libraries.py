"""Libraries that run in an environment of their own, audited by name: `LIBRARY:METHOD`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dpaudit.errors import RegistryError
from dpaudit.external.environments import PINS, Environment, distribution_key
from dpaudit.external.generator import WorkerGenerator
from dpaudit.formatting import did_you_mean
from dpaudit.model.schema import Schema


@dataclass(frozen=True, kw_only=True)
class Library:
    """A library, its environment, and the adapter through which the reference worker runs it.

    Attributes:
        name: As it is registered.
        environment: Where it is installed.
        adapter: A Python file, run by the environment's interpreter.
        methods: What can be audited: its name, and the adapter's class for it.
        summary: What the library is, in one line.
        package: The distribution whose release is audited; that of the library's name if empty.
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
        """What it is, and whether it can be audited at once."""
        built = self.environment.built
        ready = "ready" if built else f"run: dpaudit env create {self.environment.name}"
        return f"{self.summary} ({ready})"

    def with_release(self, version: str) -> Library:
        """The library at another release, all else as it is pinned.

        Raises:
            RegistryError: If the version is none.
        """
        return replace(
            self,
            name=f"{self.name}@{version}",
            environment=self.environment.with_release(self.distribution, version),
        )

    def check_method(self, method: str) -> None:
        """Checks that it has a method.

        Raises:
            RegistryError: If it has not; says which there are.
        """
        if method not in self.methods:
            said = (
                f"has no method {method!r}" if method else "is a library: name one of its methods"
            )
            raise RegistryError(
                f"{self.name} {said}{did_you_mean(method, list(self.methods))}; there is "
                f"{', '.join(f'{self.name}:{one}' for one in self.methods)}"
            )

    def generator(
        self,
        method: str,
        *,
        schema: Schema,
        parameters: Mapping[str, Any],
        memory: int | None = None,
    ) -> WorkerGenerator:
        """One of its methods as a generator.

        Args:
            method: Its name.
            schema: The public schema.
            parameters: Of the adapter's class.
            memory: As of `WorkerGenerator`.

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
