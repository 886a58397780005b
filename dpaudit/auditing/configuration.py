"""A project's choices for its audits: `[tool.dpaudit]` of pyproject.toml, or dpaudit.toml.

`dpaudit audit` and `dpaudit replay` read them; `dpaudit.audit` and `dp_audit` use only their
arguments, and `dp_replay` takes the samplers from here. Keys are the settings of an audit as the
command line spells them, and the other options of these commands (`_BESIDE_SETTINGS`).
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, get_args, get_type_hints

from dpaudit.auditing.games import EFFORT, EFFORT_DESCRIPTION, GAMES, keywords
from dpaudit.auditing.settings import SET_BY_NAME
from dpaudit.errors import SettingsError
from dpaudit.files import io_reason, parse_json
from dpaudit.formatting import did_you_mean
from dpaudit.model.choices import SAMPLER_SCHEMA, Effort, sampler_text

OWN_FILE: Final = "dpaudit.toml"
SHARED_FILE: Final = "pyproject.toml"
SCHEMA_FILE: Final = Path(__file__).with_name("configuration.schema.json")
"""The JSON Schema of the table; a test holds it equal to `configuration_schema()`."""
NO_FILE: Final = "none"
"""The name that means no configuration file."""


def in_use(named: str | None, folder: Path) -> Path | None:
    """The configuration file of a command.

    Args:
        named: The file that the caller names, "none" for none; None to look for one.
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
    root = next((n for n, one in enumerate(above) if (one / ".git").exists()), 0)
    for one in above[: root + 1]:
        if (one / OWN_FILE).is_file():
            return one / OWN_FILE
        shared = one / SHARED_FILE
        if shared.is_file() and "dpaudit" in _text(shared) and _table(shared) is not None:
            return shared
    return None


def configured(file: Path) -> dict[str, Any]:
    """A configuration file as values of the command's options.

    Args:
        file: The file; paths in it are relative to its folder.

    Returns:
        The values by parameter of the command.

    Raises:
        SettingsError: If it cannot be read, has a key that is none, or a value of another type.
    """
    found = {key.replace("-", "_"): value for key, value in _checked(file).items()}
    return {name: _as_option(name, value, file.parent) for name, value in found.items()}


def configured_by_name(pairs: Sequence[str]) -> dict[str, Any]:
    """Settings that are given as NAME=VALUE, spelled as in a configuration file.

    Args:
        pairs: The pairs; `links` may be given several times.

    Returns:
        The values by parameter of the command.

    Raises:
        SettingsError: If one has an option of its own, is no setting, or has a value of another
            type.
    """
    known = sorted(name.replace("_", "-") for name in SET_BY_NAME)
    table: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or name not in known:
            raise SettingsError(
                f"--set {pair}: write NAME=VALUE{did_you_mean(name, known)}; NAME is one of "
                f"{', '.join(known)}"
            )
        if name in table and name != "links":
            raise SettingsError(f"--set {name} is given twice: give it once")
        table[name] = [*table.get(name, []), text] if name == "links" else _typed(name, text)
    if table:
        _check(table, "--set")
    return {name.replace("-", "_"): of for name, of in table.items()}


def _typed(name: str, text: str) -> Any:
    """A value of a pair: JSON, unless the setting is a text."""
    of = _shipped_schema()["properties"][name]
    if of.get("type") == "string" or "enum" in of or "oneOf" in of:
        return text
    try:
        return parse_json(text)
    except ValueError:
        return text


def configured_samplers(file: Path) -> list[dict[str, Any]]:
    """The user's own samplers that a configuration file names, for `dpaudit.replay`.

    Args:
        file: The file.

    Raises:
        SettingsError: As `configured`.
    """
    samplers: list[dict[str, Any]] = _checked(file).get("samplers", [])
    return samplers


def _checked(file: Path) -> dict[str, Any]:
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
    for key in table:
        if key not in schema["properties"]:
            known = did_you_mean(key, list(schema["properties"]))
            raise SettingsError(f"{source}: {key!r} is no setting{known}; correct or remove it")
    mismatch = best_match(Draft202012Validator(schema).iter_errors(table))
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

    properties: dict[str, Any] = {}
    for name, (of, description) in _BESIDE_SETTINGS.items():
        properties[name] = {"description": description, **of}
    for name in keywords():
        hint, description = type_and_description(name)
        of = _SPELLED.get(name) or schema_of(hint)
        properties[name.replace("_", "-")] = {"description": description, **of}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "dpaudit configuration",
        "description": "The table [tool.dpaudit] of pyproject.toml, or dpaudit.toml.",
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
    }


def type_and_description(name: str) -> tuple[Any, str]:
    """The type of a setting without None, and its description in its class.

    Args:
        name: A keyword of `dpaudit.auditing.games`.
    """
    from dpaudit.results.document import attributes_of

    if name == EFFORT:
        return Effort, EFFORT_DESCRIPTION
    owner = keywords()[name].owner
    if owner is None:
        switch = next(one.SWITCH for one in GAMES if one.SWITCH and one.SWITCH.keyword == name)
        return type(switch.off), switch.description
    hint = get_type_hints(owner, localns={"AnyAttack": object})[name]
    present = [one for one in get_args(hint) if one is not type(None)]
    return (present[0] if type(None) in get_args(hint) else hint), attributes_of(owner)[name]


_TEXTS: Final = {"type": "array", "items": {"type": "string"}, "minItems": 1}
_BESIDE_SETTINGS: Final[Mapping[str, tuple[Mapping[str, Any], str]]] = {
    "generator": ({"type": "string"}, "What is audited, as the command line names it."),
    "data": (
        {"oneOf": [{"type": "string"}, _TEXTS]},
        "The table: a file, or sample:breast-cancer; or the files of several tables.",
    ),
    "schema": ({"type": "string"}, "File of the public schema."),
    "jobs": ({"type": "integer", "minimum": 1}, "Worker processes."),
    "engine": ({"enum": ["local", "dask"]}, "Where trials run."),
    "scheduler": ({"type": "string"}, "Address or file of the dask scheduler."),
    "trial-timeout": (
        {"type": "number", "minimum": 1},
        "Seconds after which a shadow model has failed.",
    ),
    "junit": (
        {"type": "string"},
        "JUnit XML file to write: claim, controls and checks as test cases.",
    ),
    "after-replay": (
        {"type": "string"},
        "Result of `dpaudit replay --json`, to attack the features that its record moves; the only "
        "attack unless attacks are named.",
    ),
    "fail-on": (
        {"enum": ["violation", "inconclusive", "never"]},
        "What gives a non-zero exit code: violation (with leaks and invalid runs), "
        "inconclusive (all of these), never (nothing).",
    ),
    "samplers": (
        {"type": "array", "items": SAMPLER_SCHEMA},
        "Noise samplers of your own, which `dpaudit replay` hears: function, law, and the names of "
        "its parameters.",
    ),
}
"""Keys of a configuration that are not settings of an audit."""

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
        return [sampler_text(one) for one in value]
    if name == "parameters":
        return [f"{key}={json.dumps(of, default=str)}" for key, of in value.items()]
    if name == "curve" and isinstance(value, list):
        return ",".join(f"{epsilon!r}:{delta!r}" for epsilon, delta in value)
    if name == "target":
        text = f"row:{value}" if isinstance(value, int) else value
        before, colon, path = text.partition("record:")
        return text if before or not colon else f"record:{_beside(path, folder)}"
    if name == "data":
        files = [value] if isinstance(value, str) else value
        return [one if one.startswith("sample:") else _beside(one, folder) for one in files]
    of_file = name in ("schema", "neighbours_file", "junit", "after_replay")
    of_file |= name == "curve" and (folder / value).is_file()
    of_file |= name == "generator" and re.search(r"\.py:\w+$", value) is not None
    return _beside(value, folder) if of_file else value


def _beside(path: str, folder: Path) -> str:
    """A path named in a file of this folder, relative to the working directory."""
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
