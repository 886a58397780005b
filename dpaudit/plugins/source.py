"""A digest of the source of a plugin, so that a run notices when its code has changed."""

from __future__ import annotations

import ast
import hashlib
import inspect
from collections.abc import Iterable, Iterator
from pathlib import Path

MOST_FILES = 1000
"""Of a package whose files are read; of a larger one, such as torch, sizes are compared."""
MOST_BYTES = 2**24
"""Of a package whose files are read."""


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
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError, RecursionError):
        return  # it cannot be imported either
    names = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    for name in sorted(names):
        if (folder / name / "__init__.py").is_file():
            yield from _python_files(folder / name)
        elif (folder / f"{name}.py").is_file():
            yield folder / f"{name}.py"
