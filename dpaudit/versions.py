"""Versions and the day of a result."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

LIBRARIES = ("numpy", "pandas", "scikit-learn", "scipy", "statsmodels", "torch", "loky")

__version__ = version("dpaudit")
"""The installed version of dpaudit."""


def versions() -> dict[str, str]:
    """Versions of dpaudit, Python and the libraries that decide numbers, without importing them."""
    found = {"dpaudit": __version__, "python": platform.python_version()}
    for library in LIBRARIES:
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            found[library] = "not installed"
    return found


def today() -> str:
    """The day in UTC, as a result has it."""
    return datetime.now(UTC).date().isoformat()
