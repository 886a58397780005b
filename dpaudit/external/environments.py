"""Pinned environments of libraries: made once with pip in a cache folder, never half-built.

An environment is a virtual environment with exactly the releases that its file of pins lists, and
with exactly those files if the pins have hashes. A marker, written last, shows that it is complete;
a folder without it is ignored.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

from dpaudit.errors import RegistryError
from dpaudit.files import io_reason, parse_json, write_whole
from dpaudit.formatting import clipped, one_line

MARKER: Final = "environment.json"
"""Name of the file that marks an environment as complete."""
PINS: Final = "pins.txt"
"""Name of its file that lists what was to be installed."""
HASHED: Final = "hashes.txt"
"""Name of its file that has the pins with their hashes, if pip checked them."""
_VERSION: Final = r"[0-9][A-Za-z0-9]*(?:[._+!-][A-Za-z0-9]+)*"
_NAME: Final = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]*(@{_VERSION})?")
_PIN: Final = re.compile(rf"([A-Za-z0-9][A-Za-z0-9._-]*)==({_VERSION})")
_HASH: Final = re.compile(r"--hash=sha256:[0-9a-f]{64}")
_SECONDS: Final = 60.0
"""Time limit for an interpreter to print its version, or what is installed."""
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
        folder: Its folder.
        python_version: Version of its interpreter, such as "3.11.7".
        packages: Installed releases, by the name of the package (`distribution_key`).
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
        """Why its interpreter is no longer usable, such as a changed version; empty if it is."""
        try:
            done = _run_captured(self.python, "-I", "-c", _INSTALLED, seconds=_SECONDS)
            done.check_returncode()
            version = parse_json(done.stdout.decode())["python"]
        except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError):
            return f"{self.python} does not run"
        return "" if version == self.python_version else f"{self.python} is Python {version} now"


@dataclass(frozen=True, kw_only=True)
class Environment:
    """The specification of an environment.

    Attributes:
        name: Its name, for `dpaudit env create`.
        pins: A file with one `name==version` per line, the complete `pip freeze` of a tested
            environment; each pin may have `--hash=sha256:` of its files, as pip writes them.
        pythons: The minor versions of Python that the pins are for, such as "3.11", the preferred
            one first.
        release: A `name==version` that replaces that package's pin; none by default. The pins have
            no hash of it, so pip then checks no hashes.
    """

    name: str
    pins: Path
    pythons: tuple[str, ...]
    release: str = ""

    def with_release(self, package: str, version: str) -> Environment:
        """The same environment with another release of one package.

        Raises:
            RegistryError: If the package is not among the pins, or the text is not a version.
        """
        if not re.fullmatch(_VERSION, version):
            raise RegistryError(
                f"{version!r} is not a version of {package}: write one such as 1.0.2"
            )
        other = replace(self, name=f"{self.name}@{version}", release=f"{package}=={version}")
        _ = other.requirements
        return other

    @cached_property
    def _pinned(self) -> Mapping[str, tuple[str, ...]]:
        """The pin and hashes of each package."""
        return _read_pins(self.pins)

    @cached_property
    def requirements(self) -> tuple[str, ...]:
        """Its pins, one `name==version` each, without hashes.

        Raises:
            RegistryError: If the file cannot be read, a line is not a pin, a hash is malformed, or
                only some pins have hashes.
        """
        if not _NAME.fullmatch(self.name):
            raise RegistryError(f"{self.name!r} cannot name an environment: use letters and digits")
        pins = {package: pin for package, (pin, *_) in self._pinned.items()}
        if self.release:
            package = _package(self.release, self.pins)
            if package not in pins:
                raise RegistryError(f"{self.pins} pins no {self.release.partition('==')[0]}")
            pins[package] = self.release
        return tuple(pins.values())

    @property
    def hashed(self) -> tuple[str, ...]:
        """Its pins with their hashes; empty if they have none, or if `release` replaces a pin.

        Raises:
            RegistryError: As `requirements`.
        """
        lines = () if self.release else self._pinned.values()
        return tuple(" ".join(line) for line in lines if len(line) > 1)

    @property
    def folder(self) -> Path:
        """Its folder, whether or not it exists; each set of pins has its own."""
        text = "\n".join(sorted(self.requirements))
        digest = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
        return environments_folder() / f"{self.name}-{digest}"

    @property
    def built(self) -> BuiltEnvironment | None:
        """The complete environment; None if it is not complete."""
        return read_built(self.folder)


def environments_folder() -> Path:
    """The folder of all environments: `dpaudit/environments` in the user's cache."""
    configured = os.environ.get("XDG_CACHE_HOME", "")
    cache = configured if os.path.isabs(configured) else os.path.expanduser("~/.cache")
    return Path(cache) / "dpaudit" / "environments"


def distribution_key(name: str) -> str:
    """The normalised name of a distribution: `Smart_Noise` becomes `smart-noise`."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_built(folder: Path) -> BuiltEnvironment | None:
    """The complete environment in a folder; None if it is missing or half-built."""
    try:
        document = parse_json((folder / MARKER).read_text(encoding="utf-8"))
        releases = document["packages"].items()
        packages = {distribution_key(name): str(version) for name, version in releases}
        built = BuiltEnvironment(folder, str(document["python"]), packages)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return built if os.access(built.python, os.X_OK) else None


def existing_environments() -> dict[Path, str]:
    """The names of environments by folder, including half-built ones and those of older pins."""
    try:
        folders = sorted(path for path in environments_folder().iterdir() if path.is_dir())
    except OSError:
        return {}
    matches = {path: _FOLDER.fullmatch(path.name) for path in folders}
    return {path: match["name"] for path, match in matches.items() if match}


def create_environment(
    environment: Environment,
    *,
    python: Path | None = None,
    on_step: Callable[[str], None] = lambda _: None,
) -> BuiltEnvironment:
    """Makes an environment with pip, unless it is complete.

    Args:
        environment: The environment.
        python: The interpreter to make it with; by default one that `find_interpreter` finds.
        on_step: Called with a description of each step, which may take minutes.

    Returns:
        The complete environment.

    Raises:
        RegistryError: If no interpreter fits, pip fails (the message says why), or the folder
            cannot be written.
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
    """Deletes all environments of a name, including half-built ones and those of older pins.

    Args:
        name: Name of an environment.

    Returns:
        The folders that were deleted.

    Raises:
        RegistryError: If a folder cannot be deleted.
    """
    folders = [path for path, other in existing_environments().items() if other == name]
    for folder in folders:
        try:
            with _sole_builder(folder, lambda _: None):
                (folder / MARKER).unlink(
                    missing_ok=True
                )  # first: half-deleted folders do not count
                shutil.rmtree(folder)
                _log_of(folder).unlink(missing_ok=True)
        except OSError as error:
            raise RegistryError(f"{folder} cannot be deleted: {io_reason(error)}") from None
    return folders


def _build(
    environment: Environment, folder: Path, python: Path | None, on_step: Callable[[str], None]
) -> BuiltEnvironment:
    """Makes an environment in its folder; deletes the folder if that fails."""
    interpreter = find_interpreter(environment.name, environment.pythons, given=python)
    shutil.rmtree(folder, ignore_errors=True)
    python_there = folder / "bin" / "python"
    log = _log_of(folder)
    on_step(f"making {folder} with {interpreter}")
    try:
        with open(log, "wb") as output:
            bare = () if environment.requirements else ("--without-pip",)
            venv = (interpreter, "-I", "-m", "venv", *bare, folder)
            _run_logged(environment, venv, output.fileno(), log)
            (folder / PINS).write_text("".join(f"{pin}\n" for pin in environment.requirements))
            if environment.requirements:
                on_step(f"installing {len(environment.requirements)} packages; pip's words: {log}")
                pip = (python_there, "-I", "-m", "pip", "install", "--disable-pip-version-check")
                quiet = ("--no-input", "--no-color", "--progress-bar", "off")
                if environment.hashed:
                    (folder / HASHED).write_text("".join(f"{pin}\n" for pin in environment.hashed))
                    checked = ("--no-deps", "--require-hashes", "-r", folder / HASHED)
                    _run_logged(
                        environment, (*pip, *quiet, *checked, *_digests()), output.fileno(), log
                    )
                # After hashes, this finds conflicts and adds unpinned packages: CUDA for PyPI's
                # torch.
                _run_logged(environment, (*pip, *quiet, "-r", folder / PINS), output.fileno(), log)
        listing = _run_captured(python_there, "-I", "-c", _INSTALLED)
        listing.check_returncode()
        write_whole(folder / MARKER, listing.stdout)
    except subprocess.CalledProcessError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise RegistryError(
            f"environment {environment.name}: {python_there} ends with {error}"
        ) from None
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    built = read_built(folder)
    assert built is not None
    return built


def _digests() -> Iterator[str]:
    """Options that give pip the SHA-256 of local builds in its folders, such as torch's for CPU.

    Otherwise pip would not know their hashes, and prefer a file of the index whose hash is pinned.
    """
    for folder in os.environ.get("PIP_FIND_LINKS", "").split():
        for wheel in sorted(Path(folder).absolute().glob("*+*.whl")):
            with open(wheel, "rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            yield from ("--find-links", f"{wheel.as_uri()}#sha256={digest}")


def _run_logged(
    environment: Environment, command: Sequence[str | Path], output: int, log: Path
) -> None:
    """Runs one step; what it prints goes to the log.

    Raises:
        RegistryError: If the step fails; the message says why, in one line.
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
    """Waits until no other process builds or deletes this environment, and locks it.

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


def _read_pins(path: Path) -> dict[str, tuple[str, ...]]:
    """The pin and hashes of each package; raises a `RegistryError` as `requirements` does."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        reason = io_reason(error) if isinstance(error, OSError) else str(error)
        raise RegistryError(f"the pins {path} cannot be read: {reason}") from None
    text = "\n".join(line.partition("#")[0].strip() for line in lines).replace("\\\n", " ")
    pins = {}
    for line in text.split("\n"):
        pin, *hashes = re.split(r"\s+(?=--hash=)", line.strip())
        if pin:
            pins[_package(pin, path)] = (pin, *hashes)
            for bad in (option for option in hashes if not _HASH.fullmatch(option)):
                raise RegistryError(
                    f"{path}: {bad!r} of {pin} is not a hash: write --hash=sha256: and 64 hex "
                    "digits"
                )
    without = [pin for pin, *hashes in pins.values() if not hashes]
    if 0 < len(without) < len(pins):
        raise RegistryError(
            f"{path}: {without[0]} has no hash and other pins have: give all of them one, or none"
        )
    return pins


def _package(pin: str, where: Path) -> str:
    """The package of a pin, by its normalised name."""
    match = _PIN.fullmatch(pin)
    if match is None:
        raise RegistryError(f"{where}: {pin!r} is not a pin: write name==version")
    return distribution_key(match[1])


def _log_of(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.log")


_SHOWN: Final = 300
_UNREACHABLE: Final = re.compile(
    r"NewConnectionError|NameResolutionError|ConnectTimeoutError|ConnectTimeout|ProxyError"
    r"|Failed to establish a new connection|name resolution|Network is unreachable"
)


def clean_environment() -> dict[str, str]:
    """The environment without the variables of this interpreter; PIP_ settings stay."""
    prefixes = ("PYTHON", "VIRTUAL_ENV", "__PYVENV")
    return {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}


def _run_captured(
    *command: str | Path, seconds: float | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Runs a command to its end, and captures its output."""
    return subprocess.run(
        list(command),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=seconds,
        env=clean_environment(),
    )


def pip_reason(log: str) -> str:
    """Why pip failed, according to its output.

    Args:
        log: The whole output.

    Returns:
        The reason in one line.
    """
    errors = [line.removeprefix("ERROR: ") for line in log.splitlines() if "ERROR: " in line[:7]]
    other = re.search(r"DO NOT MATCH THE HASHES[^\n]*\n\s+(\S+) from ([^\s#]+)", log)
    if other:
        return (
            f"{other[2]} is not the file that was pinned as {other[1]}: see where pip takes it "
            "from (pip config list), or, if you trust it, add its hash to the pins"
        )
    missing = re.search(r"No matching distribution found for (\S+)", log)
    if missing and _UNREACHABLE.search(log):
        return "the package index cannot be reached: are you offline? pip keeps what it once had"
    if missing and os.environ.get("PIP_NO_INDEX"):
        return f"pip finds no {missing[1]}, and PIP_NO_INDEX keeps it from the package index"
    if missing:
        return f"the package index has no {missing[1]} for this Python"
    if "No space left on device" in log:
        return "no space left on the disk"
    failed = re.search(r"Failed building wheel for (\S+)|Failed to build (?:installable )?\S*", log)
    if failed and failed[1]:
        return f"{failed[1]} cannot be built from source here"
    last = errors[0] if errors else (log.strip().splitlines() or ["it says nothing"])[-1]
    return clipped(one_line(last), _SHOWN)


_PRINT_VERSION: Final = "import sys; print('%d.%d' % sys.version_info[:2]); import venv, ensurepip"


def find_interpreter(name: str, versions: Sequence[str], *, given: Path | None = None) -> Path:
    """Finds an interpreter of one of several versions: this one if it fits, else the first found.

    Looks for `python3.X` on PATH and among the versions of pyenv. An interpreter without `venv` or
    `ensurepip`, which Debian packages separately, does not fit.

    Args:
        name: Name of the environment, for messages.
        versions: Minor versions, such as "3.11", the preferred one first.
        given: The interpreter that the caller wants.

    Returns:
        The interpreter.

    Raises:
        RegistryError: If no interpreter is found, or the given one does not fit.
    """
    if given is not None:
        return _check_interpreter(name, versions, given)
    incomplete = []
    for path in _candidates(versions):
        version, complete = _version_of(path)
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


def _check_interpreter(name: str, versions: Sequence[str], given: Path) -> Path:
    """The caller's interpreter, after checking that it fits."""
    version, complete = _version_of(given)
    if version is None:
        raise RegistryError(f"{given} is not a Python interpreter that runs: give another `python`")
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
    """Interpreters that may fit: this one, then those on PATH and of pyenv."""
    if sys.executable and f"{sys.version_info[0]}.{sys.version_info[1]}" in versions:
        yield Path(sys.executable)
    folders = [Path(entry) for entry in os.environ.get("PATH", "").split(os.pathsep) if entry]
    pyenv = Path(os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")) / "versions"
    for version in versions:
        for folder in (*folders, *sorted(pyenv.glob(f"{version}.*/bin"))):
            path = folder / f"python{version}"
            if os.access(path, os.X_OK):
                yield path


def _version_of(path: Path) -> tuple[str | None, bool]:
    """The minor version of an interpreter, or None if it fails; and whether it is complete."""
    try:
        done = _run_captured(path, "-I", "-c", _PRINT_VERSION, seconds=_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return None, False
    words = done.stdout.decode("utf-8", "replace").split()
    return (words[0] if words else None), not done.returncode
