"""Pinned environments of libraries: made once with pip in a cache folder, never half-built.

An environment is a virtual environment with exactly the releases that its file of pins lists. A
marker, written last, says that it is complete; without one the folder counts for nothing.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

from dpaudit.errors import RegistryError
from dpaudit.external.interpreters import find_interpreter
from dpaudit.external.pip import clean_environment, pip_reason
from dpaudit.files import io_reason, parse_json, write_whole

MARKER: Final = "environment.json"
"""Name of the file that makes an environment complete."""
PINS: Final = "pins.txt"
"""Name of the file in it that says what was to be installed."""
_VERSION: Final = r"[0-9][A-Za-z0-9]*(?:[._+!-][A-Za-z0-9]+)*"
_NAME: Final = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]*(@{_VERSION})?")
_PIN: Final = re.compile(rf"([A-Za-z0-9][A-Za-z0-9._-]*)==({_VERSION})")
_SECONDS: Final = 60.0
"""How long an interpreter may take to say what is installed."""
_FOLDER: Final = re.compile(r"(?P<name>.+)-[0-9a-f]{16}")
_INSTALLED: Final = (
    "import json, platform\n"
    "from importlib import metadata\n"
    "print(json.dumps({'python': platform.python_version(), 'packages':"
    " {d.metadata['Name']: d.version for d in metadata.distributions()}}))"
)


class BuiltEnvironment(NamedTuple):
    """A complete environment.

    Attributes:
        folder: Where it lies.
        python_version: Of its interpreter, such as "3.11.7".
        packages: What is installed there, by name as `distribution_key` spells it.
    """

    folder: Path
    python_version: str
    packages: Mapping[str, str]

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    @property
    def problem(self) -> str:
        """Why its interpreter no longer serves, such as another Python in its place; else empty."""
        try:
            done = subprocess.run(
                [self.python, "-I", "-c", _INSTALLED],
                capture_output=True,
                check=True,
                timeout=_SECONDS,
                env=clean_environment(),
            )
            found = parse_json(done.stdout.decode())["python"]
        except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError):
            return f"{self.python} does not run"
        return "" if found == self.python_version else f"{self.python} is Python {found} now"


@dataclass(frozen=True, kw_only=True)
class Environment:
    """What an environment is to hold.

    Attributes:
        name: Its name, for `dpaudit env create`.
        pins: A file with one `name==version` a line, the complete `pip freeze` of what was tried.
        pythons: The minor versions of Python that the pins are for, such as "3.11", the preferred
            one first.
        release: A `name==version` that takes the place of that package's pin; none by default.
    """

    name: str
    pins: Path
    pythons: tuple[str, ...]
    release: str = ""

    def with_release(self, package: str, version: str) -> Environment:
        """The same environment with another release of one package.

        Raises:
            RegistryError: If the package is not among the pins, or the version is none.
        """
        if not re.fullmatch(_VERSION, version):
            raise RegistryError(f"{version!r} is no version of {package}: write one such as 1.0.2")
        other = Environment(
            name=f"{self.name}@{version}",
            pins=self.pins,
            pythons=self.pythons,
            release=f"{package}=={version}",
        )
        _ = other.requirements
        return other

    @cached_property
    def requirements(self) -> tuple[str, ...]:
        """Its pins, one `name==version` each.

        Raises:
            RegistryError: If the file cannot be read, or a line is no pin.
        """
        if not _NAME.fullmatch(self.name):
            raise RegistryError(f"{self.name!r} cannot name an environment: use letters and digits")
        try:
            lines = self.pins.read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError) as error:
            reason = io_reason(error) if isinstance(error, OSError) else str(error)
            raise RegistryError(f"the pins {self.pins} cannot be read: {reason}") from None
        found = {}
        for line in (line.partition("#")[0].strip() for line in lines):
            if line:
                found[_pinned(line, self.pins)[0]] = line
        if self.release:
            package, _ = _pinned(self.release, self.pins)
            if package not in found:
                raise RegistryError(f"{self.pins} pins no {self.release.partition('==')[0]}")
            found[package] = self.release
        return tuple(found.values())

    @property
    def folder(self) -> Path:
        """Where it lies, or is to lie: another set of pins has another folder."""
        text = "\n".join(sorted(self.requirements))
        digest = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
        return environments_folder() / f"{self.name}-{digest}"

    @property
    def built(self) -> BuiltEnvironment | None:
        """The environment if it is complete, else None."""
        return read_built(self.folder)


def environments_folder() -> Path:
    """The folder of all environments: `dpaudit/environments` in the user's cache."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    cache = given if os.path.isabs(given) else os.path.expanduser("~/.cache")
    return Path(cache) / "dpaudit" / "environments"


def distribution_key(name: str) -> str:
    """The name of a distribution as all its spellings have it: `Smart_Noise` is `smart-noise`."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_built(folder: Path) -> BuiltEnvironment | None:
    """The complete environment in a folder; None if there is none, or only half of one."""
    try:
        document = parse_json((folder / MARKER).read_text(encoding="utf-8"))
        packages = {distribution_key(name): str(of) for name, of in document["packages"].items()}
        built = BuiltEnvironment(folder, str(document["python"]), packages)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return built if os.access(built.python, os.X_OK) else None


def existing_environments() -> dict[Path, str]:
    """Folders of environments, complete or not, and their names; those of older pins too."""
    try:
        folders = sorted(path for path in environments_folder().iterdir() if path.is_dir())
    except OSError:
        return {}
    found = {path: _FOLDER.fullmatch(path.name) for path in folders}
    return {path: match["name"] for path, match in found.items() if match}


def create_environment(
    environment: Environment,
    *,
    python: Path | None = None,
    on_step: Callable[[str], None] = lambda _: None,
) -> BuiltEnvironment:
    """Makes an environment with pip, unless it is complete.

    Args:
        environment: What it is to hold.
        python: The interpreter to make it with; by default this one, else one that is found.
        on_step: Called with what is about to be done, which may take minutes.

    Returns:
        The complete environment.

    Raises:
        RegistryError: If no interpreter fits, pip fails (says why), or the folder cannot be
            written.
    """
    built = environment.built
    if built is not None:
        return built
    folder = environment.folder
    try:
        with _sole_builder(folder, on_step):
            built = environment.built
            return built or _build(environment, folder, python, on_step)
    except OSError as error:
        raise RegistryError(
            f"environment {environment.name} cannot be made in {folder.parent}: "
            f"{error.filename or folder}: {io_reason(error)}; fix that, or set XDG_CACHE_HOME"
        ) from None


def remove_environments(name: str) -> list[Path]:
    """Deletes the environments of a name, those of older pins and half-built ones too.

    Args:
        name: Of an environment.

    Returns:
        The folders that were deleted.

    Raises:
        RegistryError: If one cannot be deleted.
    """
    folders = [path for path, other in existing_environments().items() if other == name]
    for folder in folders:
        try:
            with _sole_builder(folder, lambda _: None):
                (folder / MARKER).unlink(missing_ok=True)  # first: what is half deleted counts not
                shutil.rmtree(folder)
                _log_of(folder).unlink(missing_ok=True)
        except OSError as error:
            raise RegistryError(f"{folder} cannot be deleted: {io_reason(error)}") from None
    return folders


def _build(
    environment: Environment, folder: Path, python: Path | None, on_step: Callable[[str], None]
) -> BuiltEnvironment:
    interpreter = find_interpreter(environment.name, environment.pythons, given=python)
    shutil.rmtree(folder, ignore_errors=True)
    own = folder / "bin" / "python"
    log = _log_of(folder)
    on_step(f"making {folder} with {interpreter}")
    try:
        with open(log, "wb") as output:
            bare = () if environment.requirements else ("--without-pip",)
            venv = (interpreter, "-I", "-m", "venv", *bare, folder)
            _run(environment, venv, output.fileno(), log)
            (folder / PINS).write_text("".join(f"{one}\n" for one in environment.requirements))
            if environment.requirements:
                on_step(f"installing {len(environment.requirements)} packages; pip's words: {log}")
                pip = (own, "-I", "-m", "pip", "install", "--disable-pip-version-check")
                quiet = ("--no-input", "--no-color", "--progress-bar", "off")
                pins = ("-r", folder / PINS)
                _run(environment, (*pip, *quiet, *pins), output.fileno(), log)
        found = subprocess.run(
            [own, "-I", "-c", _INSTALLED], capture_output=True, check=True, env=clean_environment()
        )
        write_whole(folder / MARKER, found.stdout)
    except subprocess.CalledProcessError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise RegistryError(f"environment {environment.name}: {own} ends with {error}") from None
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    built = read_built(folder)
    assert built is not None
    return built


def _run(environment: Environment, command: Sequence[str | Path], output: int, log: Path) -> None:
    """Runs one step; what it prints goes to the log.

    Raises:
        RegistryError: If it fails; says why, in one line.
    """
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=clean_environment()
    )
    if done.returncode:
        reason = pip_reason(log.read_text(encoding="utf-8", errors="replace"))
        raise RegistryError(
            f"environment {environment.name} cannot be made: {reason} (all of it: {log})"
        )


@contextmanager
def _sole_builder(folder: Path, on_step: Callable[[str], None]) -> Iterator[None]:
    """Waits until nobody else builds or deletes this environment, and keeps others waiting.

    Raises:
        OSError: If the folder above cannot be made or written.
    """
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with open(folder.parent / f".{folder.name}.lock", "wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_step(f"waiting for another process that makes {folder}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _pinned(line: str, where: Path) -> tuple[str, str]:
    match = _PIN.fullmatch(line)
    if match is None:
        raise RegistryError(f"{where}: {line!r} is no pin: write name==version")
    return distribution_key(match[1]), match[2]


def _log_of(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.log")
