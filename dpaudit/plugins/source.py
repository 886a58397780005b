"""A digest of the source of a plugin, so that a run notices when its code has changed."""

from __future__ import annotations

import hashlib
import inspect
from pathlib import Path

from dpaudit.plugins.imports import imports_of
from dpaudit.plugins.reached import is_small, module_files, named, top_folder


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
    top = top_folder(own)
    files = sorted(_beside(own)) if top is None else module_files(top)
    whole = is_small(files)
    digest = hashlib.blake2b(digest_size=16)
    for file in files:
        name = file.relative_to(own.parent if top is None else top).as_posix()
        content = file.read_bytes() if whole or file == own else b""
        digest.update(f"{name}\0{file.stat().st_size}\0".encode() + content)
    for further in getattr(value, "source_files", ()):
        for file in sorted(_beside(further)):
            digest.update(f"{file.name}\0".encode() + file.read_bytes())
    return digest.hexdigest()


def _beside(file: Path) -> set[Path]:
    """A lone file and the files beside it that it imports, and so on."""
    found, new = set[Path](), [file]
    while new:
        one = new.pop()
        if one not in found:
            found.add(one)
            for name in imports_of(one.read_bytes()).names:
                new += named(name, file.parent)
    return found
