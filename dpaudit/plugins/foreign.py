"""Runs code of generators and attacks so that it neither ends the program nor changes its tools.

This keeps accidents and carelessness from affecting the verdict; it is not a sandbox
(`SECURITY.md`).
"""

from __future__ import annotations

import math
import operator
import pickle
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import cloudpickle
import numpy as np
import pandas as pd

from dpaudit.errors import DpauditError, RegistryError
from dpaudit.formatting import located
from dpaudit.plugins.exits import exits_refused

_TOOLS: tuple[ModuleType, ...] = (math, random, time, np, np.linalg, np.random, pd)
"""Modules that the game works with and that a generator might patch."""

_GONE = object()
"""Stands for a name that foreign code deleted."""

_OWN = {module: dict(vars(module)) for module in _TOOLS}
"""The content of these modules before any foreign code was imported."""

_patches: dict[tuple[ModuleType, str], Any] = {}
"""The patches of foreign code, which it sees whenever it runs."""


@contextmanager
def refusing(what: str, *, as_error: type[DpauditError] = RegistryError) -> Iterator[None]:
    """Runs foreign code in the program's own process and turns its exceptions into dpaudit errors.

    Args:
        what: Description of a failure, for the message: "g.py:G: check raises".
        as_error: Class of the error; by default an error of input.

    Raises:
        DpauditError: An `as_error` if the code raises anything, exits, or ends the process. Errors
            of dpaudit and Ctrl-C pass unchanged.
    """
    try:
        with exits_refused(), patches_apart():
            yield
    except (DpauditError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise as_error(f"{what}: {located(error)}") from error


@contextmanager
def patches_apart() -> Iterator[None]:
    """Shows foreign code its own patches of `math`, `random`, `time`, numpy and pandas.

    All other code sees the originals. Names that foreign code adds stay.
    """
    for (module, name), value in _patches.items():
        _set(module, name, value)
    try:
        yield
    finally:
        _patches.clear()
        originals: dict[tuple[ModuleType, str], Any] = {}
        for module, before in _OWN.items():
            now = vars(module)  # names that were added come last
            if len(now) < len(before) or not all(map(operator.is_, before.values(), now.values())):
                for name, value in before.items():
                    if now.get(name, _GONE) is not value:
                        originals[module, name], _patches[module, name] = (
                            value,
                            now.get(name, _GONE),
                        )
        for (module, name), value in originals.items():
            _set(module, name, value)


def pickled(
    value: object, *, name: str, out_of_band: list[pickle.PickleBuffer] | None = None
) -> bytes:
    """Pickles an object for workers.

    Args:
        value: A generator, or an object that holds foreign objects.
        name: Name of the object in the message.
        out_of_band: Receives arrays that need not be in the pickle (PEP 574); None keeps them in.

    Returns:
        The pickle.

    Raises:
        RegistryError: If the object cannot be pickled.
    """
    with refusing(f"{name} cannot be pickled for worker processes"):
        keep = None if out_of_band is None else out_of_band.append
        blob: bytes = cloudpickle.dumps(value, buffer_callback=keep)
    return blob


def _set(module: ModuleType, name: str, value: object) -> None:
    """Sets or deletes a name of a module."""
    if value is _GONE:
        vars(module).pop(name, None)
    else:
        setattr(module, name, value)
