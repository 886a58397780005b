"""A project's choices for its audits: `[tool.dpaudit]` of pyproject.toml, or dpaudit.toml.

`dpaudit audit` and `dpaudit replay` read them; `dpaudit.audit` and `dp_audit` use only their
arguments, and `dp_replay` takes the samplers from here. Keys are the settings of an audit as the
command line spells them, and what else these commands read.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from dpaudit.auditing.games import keywords, keywords_in
from dpaudit.auditing.settings import Machine, Outputs
from dpaudit.errors import SettingsError
from dpaudit.files import io_reason
from dpaudit.formatting import did_you_mean
from dpaudit.model.choices import SAMPLER_SCHEMA, sampler_text

OWN_FILE: Final = "dpaudit.toml"
SHARED_FILE: Final = "pyproject.toml"
SCHEMA_FILE: Final = Path(__file__).with_name("configuration.schema.json")
"""The JSON Schema of the table; a test holds it equal to `configuration_schema()`."""
NO_FILE: Final = "none"
"""The name that means no configuration file."""


def file_in_use(named: str | None, folder: Path) -> Path | None:
    """The configuration file of a command.

    Args:
        named: The file that the caller names, or "none" to use none; None to look for one.
        folder: Where the command runs. There, and in the folders above it up to the root of the
            repository, the nearest dpaudit.toml or pyproject.toml with a table `[tool.dpaudit]` is
            taken; outside a repository only there.

    Returns:
        The file; None if there is none.

    Raises:
        SettingsError: If a file on the way cannot be read.
    """
    if named is not None:
        return None if named == NO_FILE else Path(named)
    above = [folder, *folder.parents]
    root = next((n for n, place in enumerate(above) if (place / ".git").exists()), 0)
    for place in above[: root + 1]:
        if (place / OWN_FILE).is_file():
            return place / OWN_FILE
        shared = place / SHARED_FILE
        if shared.is_file() and "dpaudit" in _text(shared) and _table(shared) is not None:
            return shared
    return None


def read_options(file: Path) -> dict[str, Any]:
    """A configuration file as values of the command's options.

    Args:
        file: The file; paths in it are relative to its folder.

    Returns:
        The values by parameter of the command.

    Raises:
        SettingsError: If it cannot be read, or has an unknown key or a value of another type.
    """
    values = {key.replace("-", "_"): value for key, value in _load_checked(file).items()}
    return {name: _as_option(name, value, file.parent) for name, value in values.items()}


def configured_samplers(file: Path) -> list[dict[str, Any]]:
    """The user's own samplers that a configuration file names, for `dpaudit.replay`.

    Args:
        file: The file.

    Raises:
        SettingsError: As in `read_options`.
    """
    samplers: list[dict[str, Any]] = _load_checked(file).get("samplers", [])
    return samplers


def _load_checked(file: Path) -> dict[str, Any]:
    """The table of a file, every key known and every value of its type."""
    table = _table(file)
    if table is None:
        raise SettingsError(f"{file} has no table [tool.dpaudit]: add it, or name another file")
    _check(table, str(file))
    return table


def _check(table: Mapping[str, Any], source: str) -> None:
    """Refuses a table with an unknown key or a value of another type.

    Raises:
        SettingsError: If it has one; names the source.
    """
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    schema = _shipped_schema()
    for key, value in table.items():
        if isinstance(value, dict) and key not in schema["properties"]:
            raise SettingsError(
                f"{source}: there is no section [{key}]: move its settings to "
                "dpaudit.toml's top level, or to [tool.dpaudit] of pyproject.toml"
            )
        if key not in schema["properties"]:
            known = did_you_mean(key, list(schema["properties"]))
            raise SettingsError(f"{source}: {key!r} is no setting{known}; correct or remove it")
    errors = Draft202012Validator(schema).iter_errors(table)
    mismatch = best_match(error for error in errors if error.validator not in _LIMITS)
    if mismatch is not None:
        place = ".".join(str(part) for part in mismatch.absolute_path)
        raise SettingsError(f"{source}: {place}: {mismatch.message}; correct it")


@cache
def _shipped_schema() -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    return schema


@cache
def configuration_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the table, made from the types of the settings."""
    from dpaudit.results.document import schema_of

    properties = {
        name: {"description": text, **kind} for name, (kind, text) in _OF_COMMANDS.items()
    }
    settings = keywords_in(Machine) | keywords_in(Outputs) | {**keywords()}
    for name, keyword in settings.items():
        setting = keyword.setting
        kind = _SPELLED.get(name) or schema_of(setting.kind) | setting.range.schema
        properties[name.replace("_", "-")] = {"description": keyword.description, **kind}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "dpaudit configuration",
        "description": "The table [tool.dpaudit] of pyproject.toml, or dpaudit.toml.",
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
    }


_TEXTS: Final = {"type": "array", "items": {"type": "string"}, "minItems": 1}
_OF_COMMANDS: Final[Mapping[str, tuple[Mapping[str, Any], str]]] = {
    "generator": ({"type": "string"}, "What is audited, as the command line names it."),
    "data": (
        {"oneOf": [{"type": "string"}, _TEXTS]},
        "The table: a file, or sample:breast-cancer; or the files of several tables.",
    ),
    "schema": ({"type": "string"}, "File of the public schema."),
    "samplers": (
        {"type": "array", "items": SAMPLER_SCHEMA},
        "Noise samplers of your own, which `dpaudit replay` hears: function, law, and the names of "
        "its parameters.",
    ),
}
"""Keys of a configuration that are not settings of an audit but options of commands."""
_LIMITS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
"""Keywords of the schema for editors; settings refuse numbers outside their ranges themselves."""

_PAIR: Final = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
_SPELLED: Final[Mapping[str, Mapping[str, Any]]] = {
    "parameters": {"type": "object"},
    "curve": {"oneOf": [{"type": "string"}, {"type": "array", "items": _PAIR}]},
    "target": {"type": ["string", "integer"]},
    "attacks": _TEXTS,
    "links": _TEXTS,
}
"""Settings whose type in a file differs from Python's."""


def _as_option(name: str, value: Any, folder: Path) -> Any:
    """A value as the command line would pass it."""
    if name == "samplers":
        return [sampler_text(name) for name in value]
    if name == "parameters":
        return [f"{key}={json.dumps(part, default=str)}" for key, part in value.items()]
    if name == "curve" and isinstance(value, list):
        return ",".join(f"{epsilon!r}:{delta!r}" for epsilon, delta in value)
    if name == "target":
        text = f"row:{value}" if isinstance(value, int) else value
        before, colon, path = text.partition("record:")
        return text if before or not colon else f"record:{_beside(path, folder)}"
    if name == "data":
        files = [value] if isinstance(value, str) else value
        return [file if file.startswith("sample:") else _beside(file, folder) for file in files]
    of_file = name in ("schema", "neighbours_file", "junit", "after_replay")
    of_file |= name == "curve" and (folder / value).is_file()
    of_file |= name == "generator" and re.search(r"\.py:\w+$", value) is not None
    return _beside(value, folder) if of_file else value


def _beside(path: str, folder: Path) -> str:
    """Resolves a path of a configuration file relative to the working directory."""
    return path if folder == Path.cwd() else os.path.relpath(folder / path)


def _table(file: Path) -> dict[str, Any] | None:
    """The table of a file; None if it has none."""
    try:
        document: dict[str, Any] = tomllib.loads(_text(file))
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{file} is not TOML: {error}; correct it") from None
    if file.name != SHARED_FILE:
        return document
    table = document.get("tool", {}).get("dpaudit")
    return table if isinstance(table, dict) else None


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise SettingsError(
            f"{file} cannot be read: {io_reason(error)}; name another file, or {NO_FILE}"
        ) from None
    except UnicodeDecodeError:
        raise SettingsError(f"{file} is not UTF-8 text: save it as that") from None
