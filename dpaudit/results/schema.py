"""JSON Schemas of documents such as `result.json`, made from the types of their records."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Mapping
from enum import Enum
from typing import Any

from dpaudit.results.document import Document, is_record, is_union, members, unannotated
from dpaudit.results.record import AuditRecord

_ATOMS = {str: "string", int: "integer", float: "number", bool: "boolean"}


def result_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of `result.json`; a fresh dictionary every time."""
    return document_schema(AuditRecord, title="dpaudit result")


def document_schema(kind: type[Document], *, title: str) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a record's document, with a title of its own."""
    schema = schema_of(kind)
    version = {
        "description": "Version of this document's shape; raised when a key changes its meaning, "
        "goes, or comes and may not be null.",
        "const": kind.schema_version,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        **schema,
        "required": ["schema_version", *schema["required"]],
        "properties": {"schema_version": version, **schema["properties"]},
    }


def schema_of(kind: Any) -> dict[str, Any]:
    """The JSON Schema of a type's documents; descriptions are those of its docstring.

    Args:
        kind: A dataclass, NamedTuple, enumeration, mapping, tuple, union with None, or atom.

    Returns:
        The schema.
    """
    kind, limits = unannotated(kind)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if is_union(kind) and type(None) not in arguments:
        return {"anyOf": [schema_of(one) for one in arguments]}  # a whole number is a number, too
    if is_union(kind):
        [present] = [one for one in arguments if one is not type(None)]
        return {"oneOf": [{"type": "null"}, schema_of(present)]}
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if origin is tuple:
        return {"type": "array", "items": schema_of(arguments[0])}
    if origin is Mapping:
        return _mapping(*arguments)
    if is_record(kind):
        return _record(kind)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {"enum": [member.value for member in kind]}
    atom = {"type": _ATOMS[kind]} if kind in _ATOMS else {}
    return atom | {name: limit for name, limit in limits._asdict().items() if limit is not None}


def _mapping(key: Any, item: Any) -> dict[str, Any]:
    """Every member of an enumeration is a key; strings may be any."""
    if not issubclass(key, Enum):
        return {"type": "object", "additionalProperties": schema_of(item) or True}
    names = [member.value for member in key]
    return _object({name: schema_of(item) for name in names}, required=names)


def _record(kind: type) -> dict[str, Any]:
    described = attributes_of(kind)
    properties = {}
    for member in members(kind):
        schema = schema_of(member.type)
        if member.optional:  # absent rather than null
            schema = schema["oneOf"][1]
        if member.name in described:
            schema = {"description": described[member.name]} | {
                key: value for key, value in schema.items() if key != "description"
            }
        properties[member.name] = schema
    required = [member.name for member in members(kind) if not member.optional]
    return {"description": _summary(kind), **_object(properties, required=required)}


def _object(properties: dict[str, Any], *, required: list[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": required,
        "properties": properties,
    }


def _summary(kind: type) -> str:
    """What stands before the first section of a docstring."""
    text = re.split(r"\n(?:Attributes|Raises):\n", inspect.getdoc(kind) or "")[0]
    return " ".join(text.split())


def attributes_of(kind: type) -> dict[str, str]:
    """The descriptions in the section Attributes of a docstring, by name."""
    found = re.search(r"\nAttributes:\n((?:    .*\n?|\n)*)", inspect.getdoc(kind) or "")
    if found is None:
        return {}
    entries = re.findall(r"^    (\w+): ((?:.|\n        )*)", found[1], flags=re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in entries}
