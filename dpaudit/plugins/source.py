"""A digest of the source of a plugin, so that a run notices when its code has changed."""

from __future__ import annotations

import ast
import hashlib
import inspect
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

MOST_FILES = 1000
"""Of a package whose files are read; of a larger one, such as torch, sizes are compared."""
MOST_BYTES = 2**24
"""Of a package whose files are read."""
_SITE_FOLDERS: Final = ("site-packages", "dist-packages")


def source_digest(value: object) -> str | None:
    """A digest of the source that an object is made of; None where there is none.

    Of an object from a package all Python files of the whole package, for what it does may stand
    anywhere in it; of one from a lone file that file and whatever it imports from beside it. Of the
    files of a large package (installed, seldom edited) but the object's own, names and sizes count.

    Of a generator in a process of its own the files that it names as `source_files` count too.

    Args:
        value: A generator, an attack, or a wrapped function.
    """
    function = getattr(value, "function", None)  # a wrapped bare function
    defined = function if inspect.isroutine(function) else type(value)
    try:
        found = inspect.getsourcefile(defined)
    except TypeError:
        return None
    if found is None or not Path(found).is_file():
        return None
    own = Path(found).resolve()
    top = _top(own)
    files = sorted(_beside(own)) if top is None else _python_files(top)
    whole = _small(files)
    digest = hashlib.blake2b(digest_size=16)
    for file in files:
        name = file.relative_to(own.parent if top is None else top).as_posix()
        content = file.read_bytes() if whole or file == own else b""
        digest.update(f"{name}\0{file.stat().st_size}\0".encode() + content)
    for named in getattr(value, "source_files", ()):
        for file in sorted(_beside(named)):
            digest.update(f"{file.name}\0".encode() + file.read_bytes())
    return digest.hexdigest()


def reached_digest(files: Iterable[Path]) -> str:
    """A digest of Python files and of all they import that is not installed.

    Args:
        files: The files. Of a package that one of them belongs to, or imports, all files count.

    Returns:
        The digest, hexadecimal.
    """
    found, new = set[Path](), [file.resolve() for file in files]
    while new:
        one = new.pop()
        if one not in found and not _installed(one):
            found.add(one)
            top = _top(one)
            new += [] if top is None else _python_files(top)
            new += _reached(one)
    digest = hashlib.blake2b(digest_size=16)
    for file in sorted(found):
        digest.update(f"{file}\0{file.stat().st_size}\0".encode() + file.read_bytes())
    return digest.hexdigest()


def _reached(file: Path) -> Iterator[Path]:
    """What a file imports: from beside it, and what else is found under that name."""
    for name in sorted(_names(file)):
        beside = list(_named(name, file.parent))
        yield from beside
        if beside or name in sys.stdlib_module_names:
            continue
        try:
            spec = find_spec(name)
        except (ImportError, ValueError):
            continue  # the import of it fails as well
        if spec is not None and spec.origin is not None and spec.origin.endswith(".py"):
            yield Path(spec.origin).resolve()


def _installed(file: Path) -> bool:
    """Whether a file belongs to the interpreter or to an installed package, whose version counts.

    dpaudit does too, wherever it lies.
    """
    folders = [Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")]
    folders += [Path(path) for path in sys.path if Path(path).name in _SITE_FOLDERS]
    own = Path(__file__).resolve().parents[1]
    return any(file.is_relative_to(folder.resolve()) for folder in [*folders, own])


def _top(file: Path) -> Path | None:
    """The folder of the outermost package that a file belongs to; None if it is a lone file."""
    top = None
    for folder in file.parents:
        if not (folder / "__init__.py").is_file():
            break
        top = folder
    return top


def _python_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.py") if path.is_file())


def _small(files: Iterable[Path]) -> bool:
    sizes = [file.stat().st_size for file in files]
    return len(sizes) <= MOST_FILES and sum(sizes) <= MOST_BYTES


def _beside(file: Path) -> set[Path]:
    """A lone file and the files beside it that it imports, and so on."""
    found, new = set[Path](), [file]
    while new:
        one = new.pop()
        if one not in found:
            found.add(one)
            new += _imported(one, file.parent)
    return found


def _imported(file: Path, folder: Path) -> Iterator[Path]:
    for name in sorted(_names(file)):
        yield from _named(name, folder)


def _names(file: Path) -> set[str]:
    """The top-level names that a file imports anywhere in it."""
    names = set[str]()
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError, RecursionError):
        return names  # it cannot be imported either
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names


def _named(name: str, folder: Path) -> Iterator[Path]:
    """The files of a module or a package in a folder; none if it is not there."""
    if (folder / name / "__init__.py").is_file():
        yield from _python_files(folder / name)
    elif (folder / f"{name}.py").is_file():
        yield folder / f"{name}.py"
