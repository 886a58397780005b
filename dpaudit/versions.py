"""Versions of what a result depends on."""

from __future__ import annotations

import platform
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
