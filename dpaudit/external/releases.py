"""The releases of a package that its index offers for a version of Python; pip asks it."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

from dpaudit.errors import RegistryError, SettingsError
from dpaudit.external.environments import Environment
from dpaudit.external.interpreters import find_interpreter
from dpaudit.external.pip import clean_environment, pip_reason
from dpaudit.formatting import did_you_mean


def releases_between(
    environment: Environment, package: str, versions: str, *, python: Path | None = None
) -> tuple[str, ...]:
    """The releases of a package in a range, the oldest first.

    Args:
        environment: The environment that they are for.
        package: Its name on the index.
        versions: "A..B", both included; one that is left out is the oldest or the newest there is.
        python: The interpreter that they are for; by default one that fits the environment.

    Returns:
        The versions. Those before a final release count only if A or B is one.

    Raises:
        SettingsError: If the range is none, or one of its ends is not on the index.
        RegistryError: If no interpreter fits, or pip fails; says why.
    """
    first, dots, last = versions.partition("..")
    if not dots:
        raise SettingsError(f"`versions` is {versions!r}: give a range, such as 1.0..1.2")
    early = any(letter.isalpha() for letter in versions)
    known = _offered(environment, package, early=early, python=python)
    for end in (first, last):
        if end and end not in known:
            raise SettingsError(
                f"`versions`: the index has no {package} {end}{did_you_mean(end, known)} for this "
                f"Python; it has {', '.join(known)}"
            )
    start = known.index(first) if first else 0
    stop = known.index(last) if last else len(known) - 1
    if start > stop:
        raise SettingsError(f"`versions` is {versions}, and {last} is older: write {last}..{first}")
    return known[start : stop + 1]


def _offered(
    environment: Environment, package: str, *, early: bool, python: Path | None
) -> tuple[str, ...]:
    """All releases for a Python, asked with the pip of a virtual environment of its own."""
    interpreter = find_interpreter(environment.name, environment.pythons, given=python)
    with tempfile.TemporaryDirectory(prefix="dpaudit-pip-") as folder:
        own = Path(folder) / "bin" / "python"
        _run(package, interpreter, "-I", "-m", "venv", folder)
        flags = ["--pre"] if early else []
        said = _run(package, own, "-I", "-m", "pip", "index", "versions", package, *flags)
    match = re.search(r"^Available versions: (.+)$", said, re.MULTILINE)
    if match is None:
        raise RegistryError(f"pip does not say which releases of {package} there are: {said!r}")
    return tuple(reversed(match[1].split(", ")))


def _run(package: str, *command: str | Path) -> str:
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, env=clean_environment()
    )
    said = done.stdout.decode("utf-8", "replace")
    if done.returncode:
        reason = pip_reason(said + done.stderr.decode("utf-8", "replace"))
        raise RegistryError(f"the releases of {package} cannot be listed: {reason}")
    return said
