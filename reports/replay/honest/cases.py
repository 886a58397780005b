"""All cases of all families."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from reports.replay import honest
from reports.replay.honest.case import Case


def every_case() -> list[Case]:
    """The cases of every module of this package that has some, by module."""
    found = []
    for module in iter_modules(honest.__path__):
        family = import_module(f"{honest.__name__}.{module.name}")
        found += getattr(family, "CASES", ())
    return found
