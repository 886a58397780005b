"""The hooks, one module per library, each installed when that library is first imported.

A hook is a module here with `install(library)`. It replaces functions that draw with versions that
mark their result: `noise.noise` (a law and its scale), `noise.answer` (a value and its noise at
once), `coins.coin` (uniform), `choices.draw_places` (probabilities), or a plain draw equal in both
worlds. In natural fits the library's own generator draws.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import json
import os
import sys
from typing import Any

from .. import coins, marks  # noqa: F401 - all kinds of marks are known from here on
from ..world import ListeningWorld

HOOKED: dict[str, str] = {
    "bisect": "python_hook",
    "json": "python_hook",
    "math": "python_hook",
    "numpy": "numpy_hook",
    "pandas": "arrays_hook",
    "random": "python_hook",
    "secrets": "python_hook",
    "statistics": "python_hook",
    "scipy.stats": "scipy_hook",
    "torch": "torch_hook",
    "opacus.optimizers": "torch_hook",
    "opendp._internal": "opendp_hook",
    "opendp.core": "opendp_hook",
    "opendp.measurements": "opendp_hook",
    "opendp.combinators": "opendp_hook",
    "diffprivlib.mechanisms": "diffprivlib_hook",
}
"""The hook module of each library; small libraries share that of the one they build on."""


def install(world: ListeningWorld) -> None:
    """Hooks the loaded libraries now, and the others as soon as they are imported."""
    marks.world = world
    named: list[dict[str, Any]] = json.loads(os.environ.get("DPAUDIT_LISTEN_SAMPLERS", "[]"))
    later = {name: [module] for name, module in HOOKED.items()}
    for sampler in named:
        later.setdefault(sampler["function"].partition(":")[0], []).append("named_hook")
    finder = _Finder(later)
    for name in list(later):
        if name in sys.modules or name in ("bisect", "math", "numpy", "random"):
            module = importlib.import_module(name)
            finder.apply(name, module)
    sys.meta_path.insert(0, finder)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds a library as Python does, and hooks it once it is loaded."""

    def __init__(self, later: dict[str, list[str]]) -> None:
        self.later = later

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        """The library's own, whose loader hooks it."""
        if name not in self.later:
            return None
        finders = [own for own in sys.meta_path if own is not self and hasattr(own, "find_spec")]
        every = (own.find_spec(name, path, target) for own in finders)
        spec: Any = next((spec for spec in every if spec is not None and spec.loader), None)
        if spec is not None:
            load = spec.loader.exec_module

            def exec_module(module: Any) -> None:
                spec.loader.exec_module = load
                load(module)
                self.apply(name, module)

            spec.loader.exec_module = exec_module
        return spec

    def apply(self, name: str, module: Any) -> None:
        """Installs the hooks of a library that is loaded."""
        for hook in self.later.pop(name, []):
            importlib.import_module(f"{__name__}.{hook}").install(module)
