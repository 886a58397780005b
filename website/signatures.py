"""Signatures as they would be typed."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from enum import Enum
from typing import Any

_WIDTH = 88


def signature(name: str, value: Callable[..., Any]) -> str:
    """A call with its parameters and their defaults, on one line or one for each."""
    found = inspect.signature(value)
    words = []
    keywords = False
    for parameter in found.parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not keywords:
            keywords = True
            words.append("*")
        words.append(_parameter(parameter))
        keywords |= parameter.kind is inspect.Parameter.VAR_POSITIONAL
    returned = found.return_annotation
    end = "" if returned is inspect.Signature.empty else f" -> {_annotation(returned)}"
    line = f"{name}({', '.join(words)}){end}"
    if len(line) <= _WIDTH:
        return line
    inside = "".join(f"    {word},\n" for word in words)
    return f"{name}(\n{inside}){end}"


def _parameter(parameter: inspect.Parameter) -> str:
    text = parameter.name
    if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
        text = f"*{text}"
    elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
        text = f"**{text}"
    if parameter.annotation is not inspect.Parameter.empty:
        text += f": {_annotation(parameter.annotation)}"
    if parameter.default is not inspect.Parameter.empty:
        spaced = " = " if ":" in text else "="
        text += spaced + default_text(parameter.default)
    return text


def _annotation(value: object) -> str:
    text = value if isinstance(value, str) else inspect.formatannotation(value)
    text = text.strip("'")
    if not text.startswith("Annotated["):
        return text
    whole: Any = ast.parse(text, mode="eval").body
    return ast.unparse(whole.slice.elts[0])  # notes for the command line say nothing here


def default_text(value: object) -> str:
    """A default, the same in every process: nothing of it may be an address."""
    if isinstance(value, Enum):
        return repr(value.value)
    if callable(value):
        return str(getattr(value, "__name__", type(value).__name__))
    if isinstance(value, str | int | float | bool | tuple | frozenset | dict | None):
        return repr(value)
    return "..."
