"""What is probed: a generator that can be built again under another schema or other settings."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd

from dpaudit.external.generator import WorkerGenerator
from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.schema import Schema
from dpaudit.plugins.named import NamedGenerator, named_generator
from dpaudit.plugins.protocols import Generator
from dpaudit.plugins.registry import GENERATORS, resolve
from dpaudit.probe.catalogue import ProbeSettings

SCHEMA = "schema"


class Maker(NamedTuple):
    """Builds a generator again and again.

    Attributes:
        asked: The generator as it was asked for.
        takes: Names of settings that it can be built with; "schema" among them if it needs one.
        make: Builds it from a schema, a table under it, and changed settings.
    """

    asked: NamedGenerator
    takes: frozenset[str]
    make: Callable[[Schema, pd.DataFrame, Mapping[str, Any]], Generator]


def maker(
    generator: object,
    parameters: Mapping[str, Any],
    schema: Schema,
    data: pd.DataFrame,
    *,
    target: int = 0,
    worker_memory: float | None = None,
) -> Maker:
    """The maker of a generator that was named or given.

    A name is built as an audit builds it, with the target that it may need. A dataclass is copied
    with its fields changed; any other object is used as it is.

    Args:
        generator: A name or an object.
        parameters: Of a generator given by name.
        schema: The table's schema.
        data: The table.
        target: Position of the target.
        worker_memory: As for `named_generator`.

    Returns:
        The maker.

    Raises:
        RegistryError: If it cannot be found or built, or is not a generator.
    """
    if isinstance(generator, str):
        name = generator

        def named(schema: Schema, data: pd.DataFrame, changes: Mapping[str, Any]) -> Generator:
            offered = {SCHEMA: schema, "target": data.iloc[[target]].reset_index(drop=True)}
            given = {**parameters, **changes}
            return named_generator(name, given, offered, worker_memory=worker_memory).generator

        offered = {SCHEMA: schema, "target": data.iloc[[target]].reset_index(drop=True)}
        asked = named_generator(name, parameters, offered, worker_memory=worker_memory)
        if isinstance(asked.generator, WorkerGenerator):  # nobody here sees its constructor
            return Maker(asked, frozenset({SCHEMA, *parameters}), named)
        value = resolve(name, GENERATORS)
        known = inspect.signature(value).parameters if inspect.isclass(value) else ()
        return Maker(asked, frozenset(known), named)

    asked = named_generator(generator, parameters, {})
    ready: Any = asked.generator
    fields = {f.name for f in dataclasses.fields(ready)} if dataclasses.is_dataclass(ready) else ()

    def copied(schema: Schema, data: pd.DataFrame, changes: Mapping[str, Any]) -> Generator:
        del data
        fresh = {SCHEMA: schema} if SCHEMA in fields else {}
        made: Generator = dataclasses.replace(ready, **fresh, **changes) if fields else ready
        return made

    return Maker(asked, frozenset(fields), copied)


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A generator, a table, and the settings of the run.

    Attributes:
        maker: Builds the generator.
        data: The table, canonical.
        schema: Its schema.
        claim: The claim that the generator is held to.
        settings: Every choice of the run.
        target: Position of the record that was named; None if none was.
    """

    maker: Maker
    data: pd.DataFrame
    schema: Schema
    claim: PrivacyClaim
    settings: ProbeSettings
    target: int | None = None

    @property
    def rows(self) -> int:
        """Synthetic records asked of each model."""
        return len(self.data) if self.settings.rows is None else self.settings.rows

    def build(
        self, schema: Schema | None = None, data: pd.DataFrame | None = None, **changes: Any
    ) -> Generator:
        """Builds the generator for another schema, a table under it, or changed settings.

        Args:
            schema: The schema; the subject's by default.
            data: The table; the subject's by default.
            changes: Settings to change, by name.

        Returns:
            The generator.
        """
        return self.maker.make(
            self.schema if schema is None else schema, self.data if data is None else data, changes
        )
