"""The user's own samplers: their notation in Python, as an option and in a project's file.

Read by commands and by pytest before anything is replayed, so nothing heavy is imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dpaudit.errors import SettingsError
from dpaudit.formatting import did_you_mean

LAWS: Final = (
    *("gaussian", "laplace", "discrete_laplace", "discrete_gaussian", "exponential", "gumbel"),
    *("geometric", "gamma", "logistic"),
)
"""Laws available for the user's own samplers."""
_SHAPED: Final = ("geometric", "gamma")
"""Laws with a second parameter, `shape`: the probability of success, and the shape."""
_PARAMETER: Final = {"type": ["string", "number"]}
SAMPLER_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["function", "law", "scale"],
    "properties": {
        "function": {"type": "string", "pattern": "^[^:]+:[^:]+$"},
        "law": {"enum": list(LAWS)},
        "scale": _PARAMETER,
        "loc": {"type": "string"},
        "shape": _PARAMETER,
    },
    "if": {"properties": {"law": {"enum": list(_SHAPED)}}},
    "then": {"required": ["shape"]},
}
"""JSON Schema of one sampler."""


def check_sampler(sampler: Mapping[str, Any]) -> None:
    """Checks the declaration of a sampler.

    Args:
        sampler: Its `function` ("module:name"), `law`, and the names of its parameters `scale` and,
            if it takes them, `loc` and `shape`; numbers for a scale or shape that is always the
            same.

    Raises:
        SettingsError: If a key is missing or unknown, or the law is.
    """
    keys = list(SAMPLER_SCHEMA["properties"])
    for key in sampler:
        if key not in keys:
            raise SettingsError(
                f"`samplers`: {key!r} is no key of a sampler{did_you_mean(key, keys)}; there is "
                f"{', '.join(keys)}"
            )
    module, colon, name = str(sampler.get("function", "")).partition(":")
    if not (module and colon and name) or "scale" not in sampler:
        raise SettingsError(
            f"`samplers`: {dict(sampler)!r} is no sampler: name its function as MODULE:NAME, its "
            "law, and its parameter for the scale, as in mylib.noise:sample,law=laplace,scale=b"
        )
    law = str(sampler.get("law"))
    if law not in LAWS:
        raise SettingsError(
            f"`samplers`: {law!r} is no law that replay knows{did_you_mean(law, LAWS)}; there is "
            f"{', '.join(LAWS)}"
        )
    if law in _SHAPED and "shape" not in sampler:
        raise SettingsError(
            f"`samplers`: {law} noise needs its parameter for the shape, shape=NAME"
        )


def sampler_of(text: str) -> dict[str, Any]:
    """A sampler as the option `--sampler` names it: FUNCTION,law=LAW,scale=NAME."""
    function, *rest = text.split(",")
    fields = dict(part.partition("=")[::2] for part in rest)
    return {"function": function, **{key: _number(value) for key, value in fields.items()}}


def text_of(sampler: Mapping[str, Any]) -> str:
    """A sampler as the option `--sampler` names it; `sampler_of` reads it."""
    rest = (f"{key}={value}" for key, value in sampler.items() if key != "function")
    return ",".join([sampler["function"], *rest])


def _number(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text
