"""What audits look up each time and what does not change while tests run is looked up once."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from dpaudit import versions
from dpaudit.plugins import source

ROOT = Path(__file__).resolve().parents[2]
STARTED = frozenset(sys.path)
CODE = tuple(ROOT / name for name in ("attacks", "dpaudit", "generators", "reports", "tests"))


@contextmanager
def looked_up_once() -> Iterator[None]:
    """Remembers what is installed, and what it and this repository's code import.

    Reading that takes near half of a small audit. Code elsewhere, such as what a test has written,
    is read each time.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(versions, "version", _version())
        patch.setattr(source, "releases", _releases())
        patch.setattr(source._Walk, "follow", _follow())
        patch.setattr(source._Walk, "_read_module", _read_module())
        yield


def _version() -> Any:
    real = versions.version
    known = cache(real)
    return lambda name: known(name) if _as_started() else real(name)


def _releases() -> Any:
    real = source.releases
    known = cache(real)
    return lambda: dict(known() if _as_started() else real())


def _follow() -> Any:
    real = source._Walk.follow
    ended: dict[object, dict[str, Any]] = {}

    def follow(walk: Any, new: Iterable[Path | str]) -> None:
        start = frozenset([*walk._todo, *new])
        if not _as_started() or not all(map(_stays, start)):
            real(walk, new)
            return
        key = (start, walk.unknown)
        if key not in ended:
            real(walk, new)
            ended[key] = dict(vars(walk))
        vars(walk).update(ended[key])

    return follow


def _read_module() -> Any:
    real = source._Walk._read_module
    installed: dict[str, tuple[str, list[Any]]] = {}

    def read(walk: Any, name: str) -> None:
        digest, before = f"{name} (files)", len(walk._todo)
        if not _as_started():
            real(walk, name)
        elif name in installed:
            walk.software[digest] = installed[name][0]
            walk._todo += installed[name][1]
        else:
            real(walk, name)
            if digest in walk.software:
                installed[name] = walk.software[digest], walk._todo[before:]

    return read


def _as_started() -> bool:
    """Whether nothing is installed but what the session began with: tests install into folders."""
    return all(one in STARTED or Path(one).is_relative_to(ROOT) for one in sys.path)


def _stays(one: Path | str) -> bool:
    """Whether nothing that a file or a module imports changes while tests run."""
    if isinstance(one, str):
        return not one or one in sys.stdlib_module_names or one in source._KNOWN_BY_RELEASE
    ours = any(one.is_relative_to(folder) for folder in CODE)
    return ours or source._is_installed(one)
