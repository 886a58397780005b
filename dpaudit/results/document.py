"""Typed results to JSON documents and back, and the JSON Schema of these; nothing is computed here.

Works on whatever frozen dataclasses, NamedTuples, enumerations, mappings and tuples a result is
made of; the records of a union are distinguished by a literal that each has, or by their keys. A
field whose metadata has `document: False` is left out; one with `optional: True` is absent where it
is None. Descriptions in a schema are those of the docstrings.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, NamedTuple, NoReturn, Self

from dpaudit.errors import InputError
from dpaudit.files import io_reason, parse_json, write_whole
from dpaudit.formatting import clipped

_MOST_SHOWN: Final = 200
"""Largest number of characters of an error, which may quote a list of thousands of scores."""
_ATOMS = {str: "string", int: "integer", float: "number", bool: "boolean"}


class Limits(NamedTuple):
    """The range of a number, for `Annotated`; None where there is no limit."""

    minimum: float | None = None
    maximum: float | None = None


Whole = Annotated[int, Limits(minimum=0)]
Positive = Annotated[int, Limits(minimum=1)]
NonNegative = Annotated[float, Limits(minimum=0)]
Probability = Annotated[float, Limits(minimum=0, maximum=1)]
Separation = Annotated[float, Limits(minimum=0, maximum=0.5)]

OPTIONAL: Final = {"optional": True}
"""Metadata of a field that is absent from the document where it is None."""


class Member(NamedTuple):
    """One key of a document's object: its name, its type, and whether None leaves it out."""

    name: str
    type: Any
    optional: bool


class Document:
    """The finding of a command: a record with its own JSON document, whose keys are its fields.

    Attributes:
        schema_version: Version of the document's shape, and its first key. Raised when a key
            changes its meaning, is removed, or is added and cannot be null; an added key that can
            be null is read as null from older documents.
        called: What errors call such a record.
        kept_in: Where errors say its documents are.
    """

    schema_version: ClassVar[int]
    called: ClassVar[str] = "a result of this command"
    kept_in: ClassVar[str] = "the JSON that its command printed or wrote"

    def to_document(self) -> dict[str, Any]:
        """The JSON document, as a dictionary."""
        return {"schema_version": self.schema_version, **to_document(self)}

    def to_json(self) -> str:
        """The document as JSON text."""
        return json.dumps(self.to_document(), indent=2, allow_nan=False) + "\n"

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Reads the record from the JSON that a command printed with `--json`, or wrote.

        A key that was added after the document was written, and that can be null, is null.

        Args:
            path: The file.

        Raises:
            InputError: If the file is missing, or not a document that this version can read.
        """
        file = Path(path)
        try:
            document = parse_json(file.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
        except OSError as error:
            raise InputError(
                f"no result at {file}: {io_reason(error)}; give {cls.kept_in}"
            ) from None
        except ValueError:
            raise InputError(f"{file} is not JSON: give {cls.kept_in}") from None
        version = document.get("schema_version") if isinstance(document, dict) else None
        if version != cls.schema_version:
            raise InputError(
                f"{file} has schema_version {clipped(repr(version), 20)}, this dpaudit reads "
                f"{cls.schema_version}: give a result that this version wrote"
            )
        return cls._of(document, file)

    @classmethod
    def _of(cls, document: dict[str, Any], file: Path) -> Self:
        """The record that a document describes, once it fits the schema."""
        from jsonschema import Draft202012Validator
        from jsonschema.exceptions import best_match

        schema = _with_later_keys_optional(document_schema(cls, title=cls.__name__))
        mismatch = best_match(Draft202012Validator(schema).iter_errors(document))
        if mismatch is not None:
            while mismatch.context:  # a union: descend into the alternative that fits best
                mismatch = best_match(_closest_errors(mismatch.context))
            place = "/".join(str(part) for part in mismatch.absolute_path) or "the document"
            raise InputError(
                f"{file} is not {cls.called}: {place}: "
                f"{clipped(mismatch.message, _MOST_SHOWN)}; take the file as dpaudit wrote it"
            )
        try:
            record: Self = from_document(cls, document)
        except (ValueError, InputError) as error:  # constructors of claims and counts raise both
            raise InputError(f"{file} is not {cls.called}: {error}") from None
        return record


def to_document(value: object) -> Any:
    """The JSON document of a value: dictionaries, lists, strings, numbers, booleans, None."""
    if isinstance(value, Enum):
        return value.value
    kind: Any = type(value)
    if is_record(kind):
        return {
            member.name: to_document(getattr(value, member.name))
            for member in _members(kind)
            if not (member.optional and getattr(value, member.name) is None)
        }
    if isinstance(value, Mapping):
        return {to_document(key): to_document(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [to_document(item) for item in value]
    return value


def from_document(kind: Any, document: Any) -> Any:
    """Reads a value of a type from its document.

    Args:
        kind: The type, such as a dataclass.
        document: A document that fits the type's JSON Schema (`dpaudit.results.document`).

    Returns:
        The value.

    Raises:
        ValueError: If the constructor of a type refuses the values.
        InputError: If the constructor of a claim does.
    """
    kind, _ = _split_annotation(kind)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if (present := _non_null(kind)) is not None:
        return None if document is None else from_document(present, document)
    if _is_union(kind):
        return from_document(_alternative(arguments, document), document)
    if origin is typing.Literal:
        return document
    if origin is tuple:
        return tuple(from_document(arguments[0], item) for item in document)
    if origin is Mapping:
        key, item = arguments
        later = [member.value for member in key] if issubclass(key, Enum) else []
        return {
            from_document(key, name): from_document(item, document.get(name))
            for name in dict.fromkeys([*document, *later])
        }
    if is_record(kind):
        given = {m.name: from_document(m.type, document.get(m.name)) for m in _members(kind)}
        return kind(**given)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(document)
    return kind(document) if kind in (int, float) else document  # JSON writes 1.0 as 1, or 1 as 1.0


def kept_in_file(file: Path, kind: Any, make: Callable[[], Any]) -> Any:
    """The value whose document a private file keeps; without a readable one it is made and kept.

    Args:
        file: The file.
        kind: Type of the value.
        make: Makes the value.

    Returns:
        The value.

    Raises:
        OSError: If the document cannot be written.
    """
    with suppress(OSError, ValueError, TypeError, AttributeError):
        return from_document(kind, parse_json(file.read_text(encoding="utf-8")))
    value = make()
    write_whole(file, json.dumps(to_document(value), indent=1) + "\n", mode=0o600)
    return value


def _refuse_constant(constant: str) -> NoReturn:
    """Refuses NaN and the infinities, which Python reads although JSON has none."""
    raise ValueError(constant)


def _closest_errors(errors: Sequence[Any]) -> Iterator[Any]:
    """The errors of the alternative that fits best: fewest wrong keys and literals, never null."""
    alternatives: dict[int, list[Any]] = {}
    for error in errors:
        if error.schema.get("type") != "null":
            alternatives.setdefault(error.schema_path[0], []).append(error)

    def strange(errors: list[Any]) -> int:
        return sum(error.validator in ("additionalProperties", "enum") for error in errors)

    yield from min(alternatives.values(), key=strange)


def _is_union(kind: Any) -> bool:
    """Whether a type is a union: of something and None, or of records with different keys."""
    return typing.get_origin(kind) in (typing.Union, types.UnionType)


def _non_null(kind: Any) -> Any:
    """The other type of a union with None; None for any other type."""
    arguments = typing.get_args(kind)
    if not _is_union(kind) or type(None) not in arguments:
        return None
    [present] = [kind for kind in arguments if kind is not type(None)]
    return present


def _alternative(kinds: Sequence[Any], document: Any) -> Any:
    """The record or atom of a union that a document describes.

    Raises:
        ValueError: If no alternative has its keys.
    """
    if not isinstance(document, dict):  # JSON writes 1.0 as 1
        return type(document) if type(document) in kinds else float
    for record in kinds:
        if _is_of(record, document):
            return record
    raise ValueError(f"keys {', '.join(document)} are of none of the alternatives")


def _is_of(record: Any, document: Any) -> bool:
    """Whether a document has a record's literals or, if the record has none, its keys."""
    if not isinstance(document, dict):
        return False
    literals = {
        member.name: typing.get_args(member.type)
        for member in _members(record)
        if typing.get_origin(member.type) is typing.Literal
    }
    if literals:
        return all(document.get(name) in values for name, values in literals.items())
    required = {m.name for m in _members(record) if not m.optional and _non_null(m.type) is None}
    return required <= set(document) <= {member.name for member in _members(record)}


def is_record(kind: Any) -> bool:
    """Whether a type becomes a JSON object with fixed keys: a dataclass or a NamedTuple."""
    return isinstance(kind, type) and (
        dataclasses.is_dataclass(kind) or (issubclass(kind, tuple) and hasattr(kind, "_fields"))
    )


@cache
def _members(kind: type) -> tuple[Member, ...]:
    """The keys of a dataclass's or NamedTuple's object, in order."""
    hints = typing.get_type_hints(kind, include_extras=True)
    if not dataclasses.is_dataclass(kind):
        return tuple(Member(name, hints[name], False) for name in kind._fields)  # type: ignore[attr-defined]
    return tuple(
        Member(field.name, hints[field.name], field.metadata.get("optional", False))
        for field in dataclasses.fields(kind)
        if field.metadata.get("document", True)
    )


def _split_annotation(kind: Any) -> tuple[Any, Limits]:
    """Splits an annotated type into the type and its limits."""
    if typing.get_origin(kind) is not typing.Annotated:
        return kind, Limits()
    kind, limits = typing.get_args(kind)
    return kind, limits


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


def _with_later_keys_optional(schema: Any) -> Any:
    """A schema that documents of before fit, too: every key that can be null may be absent."""
    if isinstance(schema, list):
        return [_with_later_keys_optional(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {key: _with_later_keys_optional(part) for key, part in schema.items()}
    if isinstance(schema.get("required"), list):
        schema["required"] = [
            name
            for name in schema["required"]
            if {"type": "null"} not in schema["properties"][name].get("oneOf", ())
        ]
    return schema


def schema_of(kind: Any) -> dict[str, Any]:
    """The JSON Schema of a type's documents; descriptions are those of its docstring.

    Args:
        kind: A dataclass, NamedTuple, enumeration, mapping, tuple, union with None, or atom.

    Returns:
        The schema.
    """
    kind, limits = _split_annotation(kind)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if (present := _non_null(kind)) is not None:
        return {"oneOf": [{"type": "null"}, schema_of(present)]}
    if _is_union(kind):
        return {"anyOf": [schema_of(kind) for kind in arguments]}  # a whole number is a number, too
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
    """A schema whose keys are an enumeration's members, or any strings."""
    if not issubclass(key, Enum):
        return {"type": "object", "additionalProperties": schema_of(item) or True}
    names = [member.value for member in key]
    return _object({name: schema_of(item) for name in names}, required=names)


def _record(kind: type) -> dict[str, Any]:
    described = attributes_of(kind)
    properties = {}
    for member in _members(kind):
        schema = schema_of(member.type)
        if member.optional:  # absent rather than null
            schema = schema["oneOf"][1]
        if member.name in described:
            schema.pop("description", None)
            schema = {"description": described[member.name], **schema}
        properties[member.name] = schema
    required = [member.name for member in _members(kind) if not member.optional]
    return {"description": _summary(kind), **_object(properties, required=required)}


def _object(properties: dict[str, Any], *, required: list[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": required,
        "properties": properties,
    }


def _summary(kind: type) -> str:
    """The text of a docstring before its first section."""
    text = re.split(r"\n(?:Attributes|Raises):\n", inspect.getdoc(kind) or "")[0]
    return " ".join(text.split())


def attributes_of(kind: type) -> dict[str, str]:
    """The descriptions in the section Attributes of a docstring, by name."""
    section = re.search(r"\nAttributes:\n((?:    .*\n?|\n)*)", inspect.getdoc(kind) or "")
    if section is None:
        return {}
    entries = re.findall(r"^    (\w+): ((?:.|\n        )*)", section[1], flags=re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in entries}
