"""Signatures that show the fields of a settings class, so that `help` and completion list them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def with_fields_of(settings: type) -> Callable[[Function], Function]:
    """Decorates a function that takes a dataclass's fields as `**settings`.

    Args:
        settings: The dataclass.

    Returns:
        The decorator; what the function does stays the same.
    """

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        shown = [
            inspect.Parameter(
                one.name, inspect.Parameter.KEYWORD_ONLY, default=_default(one), annotation=one.type
            )
            for one in fields(settings)
        ]
        vars(function)["__signature__"] = signature.replace(parameters=[*own, *shown])
        return function

    return decorate


def _default(one: Field[Any]) -> Any:
    return one.default_factory() if one.default_factory is not MISSING else one.default
