"""Samplers that the user names: a function, its law, and which parameter is the scale.

They come in the environment variable DPAUDIT_LISTEN_SAMPLERS, as JSON: a list of
`{"function": "package.module:name", "law": "laplace", "scale": "b"}`. `scale` and `shape` are
numbers, or names of the function's parameters; `loc` names the one that is the value before noise.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
from typing import Any, Callable, Dict, List

import numpy as np

from .. import marks
from . import steps


def install(library: Any) -> None:
    """Replaces the samplers of a module, including names already imported elsewhere."""
    named: List[Dict[str, Any]] = json.loads(os.environ.get("DPAUDIT_LISTEN_SAMPLERS", "[]"))
    for entry in named:
        module, _, path = entry["function"].partition(":")
        if module != library.__name__:
            continue
        *owners, name = path.split(".")
        owner = library
        for step in owners:
            owner = getattr(owner, step)
        plain = getattr(owner, name)
        sampler = _sampler(plain, entry)
        setattr(owner, name, sampler)
        if not owners:
            _replace_everywhere(plain, sampler)


def _replace_everywhere(plain: Any, sampler: Any) -> None:
    """`from module import sampler` may have run while the module was loading."""
    for module in list(sys.modules.values()):
        names = getattr(module, "__dict__", {})
        for name in [name for name, value in list(names.items()) if value is plain]:
            names[name] = sampler


def _sampler(plain: Callable[..., Any], entry: Dict[str, Any]) -> Callable[..., Any]:
    signature = inspect.signature(plain)

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        fields = {
            name: _value(entry.get(name, default), bound.arguments) for name, default in _DEFAULTS
        }
        for name, given in bound.arguments.items():
            is_loc = name == entry.get("loc")
            bound.arguments[name] = (
                marks.without_marks(given) if is_loc else marks.end_marks(given, name)
            )

        def draw() -> Any:
            with marks.world.hushed():
                return plain(*bound.args, **bound.kwargs)

        drawn = draw()
        if entry["law"] not in steps.DRAWS:
            steps.report_unfollowed(f"a sampler of a law that replay does not know: {entry['law']}")
            return drawn
        size = np.shape(drawn) if np.ndim(drawn) else None
        loc = fields.pop("loc")
        noisy = steps.add_noise(
            loc, entry["law"], library=lambda _: drawn, redraw=draw, size=size, **fields
        )
        return noisy.tolist() if isinstance(drawn, list) else noisy

    return steps.intercept(plain, wrapper)


_DEFAULTS = (("loc", 0.0), ("scale", 1.0), ("shape", 1.0))


def _value(given: Any, arguments: Dict[str, Any]) -> Any:
    return arguments[given] if isinstance(given, str) else given
