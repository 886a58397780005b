"""Finds an interpreter of a minor version of Python that can make virtual environments."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from dpaudit.errors import RegistryError
from dpaudit.external.pip import clean_environment

_SECONDS: Final = 60.0
"""How long an interpreter may take to say its version."""
_ASK: Final = "import sys; print('%d.%d' % sys.version_info[:2]); import venv, ensurepip"


def find_interpreter(name: str, versions: Sequence[str], *, given: Path | None = None) -> Path:
    """An interpreter of one of some versions: this one if it fits, else the first that is found.

    Looks for `python3.X` on PATH and among those that pyenv installed. An interpreter without
    `venv` or `ensurepip`, which Debian packs apart, does not fit.

    Args:
        name: What it is for, in messages.
        versions: Minor versions, such as "3.11", the preferred one first.
        given: The one that the caller wants.

    Returns:
        The interpreter.

    Raises:
        RegistryError: If there is none, or the given one does not fit.
    """
    if given is not None:
        return _fitting(name, versions, given)
    incomplete = []
    for path in _candidates(versions):
        version, complete = _asked(path)
        if version in versions and complete:
            return path
        if version in versions:
            incomplete.append(path)
    wanted = " or ".join(versions)
    if incomplete:
        raise RegistryError(
            f"environment {name}: {incomplete[0]} lacks venv or ensurepip: install them (Debian: "
            f"apt install python{versions[0]}-venv), or give `python`"
        )
    raise RegistryError(
        f"environment {name} needs Python {wanted}, and there is no python{versions[0]} on PATH: "
        "install it, or give `python`, the path of such an interpreter"
    )


def _fitting(name: str, versions: Sequence[str], given: Path) -> Path:
    version, complete = _asked(given)
    if version is None:
        raise RegistryError(f"{given} is no Python interpreter that runs: give another `python`")
    if version not in versions:
        wanted = " or ".join(versions)
        raise RegistryError(
            f"{given} is Python {version}, and the pins of {name} are for {wanted}: give another "
            "`python`"
        )
    if not complete:
        raise RegistryError(f"{given} lacks venv or ensurepip: install them (Debian: python3-venv)")
    return given


def _candidates(versions: Sequence[str]) -> Iterator[Path]:
    if sys.executable and f"{sys.version_info[0]}.{sys.version_info[1]}" in versions:
        yield Path(sys.executable)
    folders = [Path(one) for one in os.environ.get("PATH", "").split(os.pathsep) if one]
    pyenv = Path(os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")) / "versions"
    for version in versions:
        for folder in (*folders, *sorted(pyenv.glob(f"{version}.*/bin"))):
            path = folder / f"python{version}"
            if os.access(path, os.X_OK):
                yield path


def _asked(path: Path) -> tuple[str | None, bool]:
    """The minor version of an interpreter, None if it does not run; whether it is complete."""
    try:
        done = subprocess.run(
            [path, "-I", "-c", _ASK],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            env=clean_environment(),
        )
    except (OSError, subprocess.TimeoutExpired):
        return None, False
    said = done.stdout.decode("utf-8", "replace").split()
    return (said[0] if said else None), not done.returncode
