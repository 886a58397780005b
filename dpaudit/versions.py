"""Versions of the software behind a result, and the day of it."""

from __future__ import annotations

import hashlib
import platform
import re
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import Distribution, PackageNotFoundError, distributions, version

LIBRARIES = ("numpy", "pandas", "scikit-learn", "scipy", "statsmodels", "torch", "loky")

__version__ = version("dpaudit")
"""The installed version of dpaudit."""


def versions() -> dict[str, str]:
    """Versions of dpaudit, Python and the libraries that decide numbers, without importing them."""
    versions = {"dpaudit": __version__, "python": platform.python_version()}
    for library in LIBRARIES:
        try:
            versions[library] = version(library)
        except PackageNotFoundError:
            versions[library] = "not installed"
    return versions


def releases() -> dict[str, str]:
    """Version and build of every distribution that this process can import, by its name.

    The same version may be another build: the build is a digest of the metadata and of the list of
    files with their hashes. Editable installs are left out: their version may be that of the last
    commit, and their code is what counts.
    """
    releases: dict[str, str] = {}
    for package in distributions():
        if re.search(r'"editable":\s*true', _text(package, "direct_url.json")):
            continue
        # An old distribution has its metadata in PKG-INFO, or is that file.
        about = _text(package, "METADATA") or _text(package, "PKG-INFO") or _text(package, "")
        # Not `one.version`: it parses the whole description, which takes four times as long.
        name = re.search(r"^Name:[ \t]*(\S+)", about, re.MULTILINE)
        release = re.search(r"^Version:[ \t]*(\S+)", about, re.MULTILINE)
        if name is not None and release is not None:
            code = filter(_is_code, sorted(_text(package, "RECORD").splitlines()))
            build = hashlib.blake2b("\n".join([about, *code]).encode(), digest_size=4).hexdigest()
            releases.setdefault(name[1], f"{release[1]} build {build}")  # the first is imported
    return releases


def _text(package: Distribution, name: str) -> str:
    with suppress(UnicodeDecodeError):
        return package.read_text(name) or ""
    return ""


def _is_code(line: str) -> bool:
    """Whether a line of a list of files is not of a script, the installer's notes or byte code.

    Those differ from one machine to the next.
    """
    return not (line.startswith("..") or ".dist-info/" in line or "__pycache__" in line)


def today() -> str:
    """The day in UTC, as a result has it."""
    return datetime.now(UTC).date().isoformat()
