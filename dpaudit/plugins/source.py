"""A digest of the code that decides what a plugin does, to detect changes.

Code that is not installed counts by its content: the plugin's package or file, and what these
import, from file to file. Imports are read from the text: nothing is run, and possible imports
count. Installed software counts by version and build of every distribution, imported or not; an
imported package also counts by its content, since it may be edited where it was installed. If the
caller's own code computes the names of its imports, it may reach more code, which the result says.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib
import importlib.machinery
import inspect
import os
import re
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path
from types import CodeType
from typing import Final, NamedTuple, TypeAlias

from dpaudit.versions import releases

_STATEMENT: Final = re.compile(
    r"(?:^|[:;])[ \t\f]*"
    r"(?:from[ \t]+([^\W\d]\w*)[\w. \t]*[ \t]import\b|import[ \t]+([^#;\n]+))",
    re.MULTILINE,
)
_LISTED: Final = re.compile(r"(?:^|,)\s*([^\W\d]\w*)")
_PLUGINS: Final = re.compile(
    r"^pytest_plugins\b[^=\n]*=\s*(\[[^\]]*\]|\([^)]*\)|[^\n]*)", re.MULTILINE
)
_BY_NAME: Final = ("import_module", "__import__", "importorskip")
"""Functions whose first argument is the name of a module."""
_NAMED: Final = re.compile(rf"\b(?:{'|'.join(_BY_NAME)})\(\s*[fF]?[\"']([^\W\d]\w*)[.\"']")
_KNOWN_ARGUMENT: Final = re.compile(r"f?'\w+\.|'\w+'$|(?:f'\{)?__(?:name|package)__\b")
"""An expression whose text shows the top-level name of a module."""
_LOADERS: Final = frozenset(
    {
        *("exec_module", "load_module", "load_source", "load_dynamic", "spec_from_file_location"),
        *("SourceFileLoader", "ExtensionFileLoader", "SourcelessFileLoader", "run_path"),
        *("run_module", "entry_points", "iter_entry_points", "load_entry_point", *_BY_NAME),
    }
)
"""Names of functions that load modules without an import statement."""
_RUNNERS: Final = frozenset({"exec", "eval", "os.system", "os.popen"})
_PROGRAMS: Final = frozenset({"subprocess", "ctypes", "cffi", "runpy", "imp"})
"""Modules that run code other than Python modules."""
_HINTS: Final = re.compile(rf"\b(?:{'|'.join([*_LOADERS, *_RUNNERS])})\b")
MOST_FILES = 1000
"""Most files of a package that are read; for a larger one, such as torch, sizes are compared."""
MOST_BYTES = 2**24
"""Most bytes of a package that are read."""
_KNOWN_BY_RELEASE: Final = frozenset(
    {"dpaudit", "numpy", "pandas", "pytest", "_pytest", "scipy", "sklearn", "statsmodels", "torch"}
)
"""Packages that almost every audit imports: reading their files would take half of the time."""
_OWN: Final = Path(__file__).resolve().parents[1]
_STDLIB: Final = Path(sysconfig.get_path("stdlib")).resolve()
_SUFFIXES: Final = tuple(importlib.machinery.all_suffixes())
_SITE_FOLDERS: Final = frozenset({"site-packages", "dist-packages"})
_Content: TypeAlias = tuple[str, int, str]
"""Name, size and digest of a file."""


@lru_cache(maxsize=2048)
def imported_names(source: bytes) -> frozenset[str]:
    """The top-level names of modules that Python source imports; also some named in docstrings."""
    text = _text(source)
    names = set[str]()
    # Most lines have no import, and a search for this word is many times faster than the patterns.
    lines = "\n".join(line for line in text.split("\n") if "import" in line)
    for origin, listed in _STATEMENT.findall(lines):
        names.update([origin] if origin else _LISTED.findall(listed))
    if any(f"{name}(" in text for name in _BY_NAME):
        names.update(_NAMED.findall(text))
    if "pytest_plugins" in text:
        for listed in _PLUGINS.findall(text):
            names.update(re.findall(r"[\"'](\w+)", listed))
    return frozenset(names)


@lru_cache(maxsize=2048)
def hidden_import(source: bytes) -> str:
    """The first code that may load or run code that the text does not name; else empty."""
    if _HINTS.search(_text(source)):
        try:
            nodes = list(ast.walk(ast.parse(source)))
        except (SyntaxError, ValueError, RecursionError):  # it cannot be imported either
            return ""
        names_its_module = {
            id(node.func)
            for node in nodes
            if isinstance(node, ast.Call) and node.args
            if _KNOWN_ARGUMENT.match(ast.unparse(node.args[0]))
        }
        for node in nodes:
            word = _mentioned(node)
            if word in _RUNNERS or (
                word in _LOADERS and not (word in _BY_NAME and id(node) in names_its_module)
            ):
                return f"{word}, line {getattr(node, 'lineno', 0)}"
    return next((f"import {name}" for name in sorted(imported_names(source) & _PROGRAMS)), "")


def _mentioned(node: ast.AST) -> str:
    """The name that an expression mentions, perhaps as a text for `getattr`."""
    match node:
        case ast.Name(id=name) | ast.alias(name=name, asname=str()):
            return name
        case ast.Attribute(attr="system" | "popen"):
            return ast.unparse(node)
        case ast.Attribute(attr=name):
            return (
                "" if name in _RUNNERS else name
            )  # a method, such as a model's `eval`, not the builtin
        case ast.Constant(value=str(text)):
            return "" if text in _RUNNERS else text
    return ""


def _text(source: bytes) -> str:
    """Source as text in which every logical line is one line."""
    return source.decode("utf-8", "replace").replace("\r", "\n").replace("\\\n", " ")


def source_digest(value: object) -> str | None:
    """A digest of an object's source; None if it has none.

    For an object from a package, all Python files of the package count, because its behaviour may
    depend on any of them; for an object from a lone file, that file and its imports from the same
    folder. In a large package (installed, seldom edited) files other than the object's own count by
    name and size. For a class or function without a file, from a notebook or `python -c`, the
    compiled code counts. For a generator in a separate process, its `source_files` count too.

    Args:
        value: A generator, an attack, or a wrapped function.
    """
    function = getattr(value, "function", None)  # a wrapped bare function
    defined = function if inspect.isroutine(function) else type(value)
    home = _home(defined)
    if home is None:
        return _compiled_digest(defined)
    top = top_folder(home)
    files = _with_neighbours(home) if top is None else {home, *module_files(top)}
    whole = is_small(files)
    contents = [_content(file, whole=whole or file == home) for file in files]
    for further in getattr(value, "source_files", ()):
        contents += [_content(file) for file in _with_neighbours(Path(further).resolve())]
    return _digest(sorted(contents))


def _with_neighbours(file: Path) -> set[Path]:
    """A lone file and the files that it imports from its folder, recursively."""
    files, pending = set[Path](), [file]
    while pending:
        importer = pending.pop()
        if importer not in files:
            files.add(importer)
            for name in imported_names(importer.read_bytes()):
                pending += _files_in(file.parent, name)
    return files


def _compiled_digest(defined: object) -> str | None:
    """A digest of the compiled code of a function, or of a class and its bases; None without code.

    Line numbers do not count, nor does the code that they call.
    """
    values = [defined]
    if inspect.isclass(defined):
        values = [value for base in defined.__mro__ for _, value in sorted(vars(base).items())]
    codes = [code for value in values for code in _codes(value)]
    return _digest(codes) if codes else None


def _codes(value: object) -> list[tuple[object, ...]]:
    """The parts of a function, method, property or code object that decide what it does.

    Sets of constants are sorted, because their order differs from one process to the next.
    """
    if isinstance(value, property):
        return [*_codes(value.fget), *_codes(value.fset)]
    code = getattr(getattr(value, "__func__", value), "__code__", value)
    if not isinstance(code, CodeType):
        return []
    constants: list[object] = [
        _codes(value) or (sorted(map(repr, value)) if isinstance(value, frozenset) else repr(value))
        for value in code.co_consts
    ]
    return [(code.co_name, code.co_code, code.co_names, code.co_varnames, constants)]


class Reached(NamedTuple):
    """Everything that decides the behaviour of code.

    Attributes:
        code: A digest of all source and compiled files that are not installed.
        software: Version and build of every installed distribution by name, and a digest of the
            files of each installed package that is imported.
        unknown: Why further code may be reached that is missing here; empty if none may be.
    """

    code: str
    software: Mapping[str, str]
    unknown: str


def reached(
    values: Iterable[object], *, files: Iterable[Path] = (), modules: Iterable[str] = ()
) -> Reached:
    """The code that objects, files and modules reach by their imports, and what is installed.

    Args:
        values: Generators, attacks or functions. One that runs elsewhere names its `source_files`,
            and says whether they are imported here as well (`imports_here`) or with which releases
            they run (`audited_releases`).
        files: Files of source code.
        modules: Names of modules; those that cannot be found are left out.

    Returns:
        The code and software that they reach.
    """
    importlib.invalidate_caches()
    walk = _Walk()
    for value in values:
        walk.start_at(value)
    walk.follow([*(file.resolve() for file in files), *map(_file_or_name, modules)])
    return Reached(_digest(sorted(walk.own)), walk.software, walk.unknown)


class _Walk:
    """Follows imports from file to file.

    Attributes:
        own: The files that are not installed.
        software: As in `Reached`.
        unknown: As in `Reached`.
    """

    def __init__(self) -> None:
        self.own: list[_Content] = []
        self.software = releases()
        self.unknown = ""
        self._todo: list[Path | str | tuple[str, Path]] = []
        self._done = set[object]()
        self._missing = set[str]()
        self._changers: list[tuple[str, frozenset[str]]] = []

    def start_at(self, value: object) -> None:
        """Adds the files that define an object to those to read."""
        while isinstance(value, functools.partial):
            value = value.func
        if hasattr(value, "source_files"):
            if getattr(value, "imports_here", False):
                self._todo += [Path(file).resolve() for file in value.source_files]
            elif not getattr(value, "audited_releases", None):
                self._note_unknown("its code runs in a program of its own")
            return
        wrapped = getattr(value, "function", None)
        if callable(wrapped):
            self.start_at(wrapped)
        defined: list[object] = [*type(value).__mro__]
        if inspect.isroutine(value):
            owner = getattr(value, "__self__", None)
            defined = [value, inspect.unwrap(value)]
            defined += [] if owner is None or inspect.ismodule(owner) else type(owner).__mro__
        files = [file for part in defined if (file := _home(part)) is not None]
        if not files:
            self._note_unknown(f"{getattr(defined[0], '__qualname__', value)} has no source file")
        self._todo += files

    def follow(self, new: Iterable[Path | str]) -> None:
        """Reads files, modules by their top-level names, and all that these import."""
        self._todo += new
        while self._todo:
            place = self._todo.pop()
            if place in self._done:
                continue
            self._done.add(place)
            if isinstance(place, Path):
                self._read_file(place)
            elif isinstance(place, str):
                self._read_module(place)
            else:
                self._todo += _files_in(place[1], place[0])
        for file, names in self._changers:
            if not self._missing.isdisjoint(names):
                self._note_unknown(f"{file} changes sys.path")

    def _note_unknown(self, reason: str) -> None:
        """Notes that further code may be reached; the first reason is kept."""
        self.unknown = self.unknown or reason

    def _read_file(self, file: Path) -> None:
        """Reads a file; adds its imports and its package to what is to be read."""
        if _is_of_python_or_dpaudit(file):
            return
        if _is_installed(file):
            self._todo.append(_installed_name(file))
            return
        self.own.append(_content(file))
        top = top_folder(file)
        if top is not None and top not in self._done:
            self._done.add(top)
            self._todo += module_files(top)
        if file.suffix != ".py" and file.name.endswith(_SUFFIXES):
            return  # what compiled code imports cannot be read
        source = file.read_bytes()
        names = imported_names(source)
        for name in sorted(names):
            self._todo += [name, (name, file.parent)]
        hidden = hidden_import(source)
        if hidden:
            self._note_unknown(f"{file.name} may load code under any name ({hidden})")
        if b"sys.path" in source:
            self._changers.append((file.name, names))

    def _read_module(self, name: str) -> None:
        """Finds a module or package on the search path, and reads it."""
        if name in _KNOWN_BY_RELEASE or name in sys.stdlib_module_names:
            return
        loaded = sys.modules.get(name)
        try:
            spec = find_spec(name)
        except (ImportError, ValueError, AttributeError):
            spec = getattr(loaded, "__spec__", None)
        files = _files_of(spec)
        if spec is None:
            place = getattr(loaded, "__file__", None)
            files = [] if place is None else [Path(place).resolve()]
            self._missing.update([] if files else [name])
        elif not files and spec.origin not in (None, "built-in", "frozen"):
            self._note_unknown(f"{name} is imported from no file")  # perhaps from an archive
        installed = list[Path]()
        for file in files:
            (installed if _is_installed(file) else self._todo).append(file)
        if installed:
            self._read_installed(name, installed)

    def _read_installed(self, name: str, files: list[Path]) -> None:
        """Adds the digest of an installed package, and what it imports to what is to be read."""
        whole = is_small(files)
        digest = _digest([_content(file, whole=whole) for file in files])
        self.software[f"{name} (files)"] = digest[:8]
        for file in files:
            if whole and file.suffix == ".py":
                self._todo += sorted(imported_names(file.read_bytes()))


def _content(file: Path, *, whole: bool = True) -> _Content:
    """What counts of a file, in whatever folder: its name, size and content."""
    top = top_folder(file)
    name = file.name if top is None else file.relative_to(top.parent).as_posix()
    return name, file.stat().st_size, _digest(file.read_bytes()) if whole else ""


def _digest(content: object) -> str:
    data = content if isinstance(content, bytes) else repr(content).encode()
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _files_in(folder: Path, name: str) -> list[Path]:
    """The files of a module or package in a folder; empty if there is none of this name."""
    return _files_of(PathFinder.find_spec(name, [str(folder)]))


def _files_of(spec: ModuleSpec | None) -> list[Path]:
    """The files of a module or package; empty if it was not found or is in an archive."""
    if spec is None:
        return []
    if spec.submodule_search_locations is not None:
        folders = [Path(folder).resolve() for folder in spec.submodule_search_locations]
        return [file for folder in folders for file in module_files(folder)]
    file = Path(spec.origin or "")
    return [file.resolve()] if file.is_file() else []


def _file_or_name(module: str) -> Path | str:
    """The file of a module that is loaded, else the top-level name to look for."""
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is not None and Path(file).is_file():
        return Path(file).resolve()
    return module.partition(".")[0]


def _home(defined: object) -> Path | None:
    """The file that defines a class or function; None without one, or in the standard library."""
    module = sys.modules.get(getattr(defined, "__module__", None) or "")
    file = getattr(module, "__file__", None)
    code = getattr(defined, "__code__", None)
    place = file if code is None else code.co_filename
    if place is None or not Path(place).is_file():
        return None
    home = Path(place).resolve()
    return None if _is_of_stdlib(home) else home


def _is_of_python_or_dpaudit(file: Path) -> bool:
    """Whether a file belongs to the interpreter or dpaudit, whose versions are noted elsewhere."""
    return file.is_relative_to(_OWN) or _is_of_stdlib(file)


def _is_of_stdlib(file: Path) -> bool:
    return file.is_relative_to(_STDLIB) and not _is_installed(file)


def _is_installed(file: Path) -> bool:
    """Whether a file was installed in its folder, and is not one that its author edits."""
    return not _SITE_FOLDERS.isdisjoint(file.parts)


def _installed_name(file: Path) -> str:
    """The top-level name of the installed module or package of a file."""
    place = next(place for place in [file, *file.parents] if place.parent.name in _SITE_FOLDERS)
    return place.name.partition(".")[0]


def top_folder(file: Path) -> Path | None:
    """The folder of the outermost package that a file belongs to; None if it is a lone file."""
    top = None
    for folder in file.parents:
        if not (folder / "__init__.py").is_file():
            break
        top = folder
    return top


def module_files(folder: Path) -> list[Path]:
    """The source and compiled files below a folder, without byte code and installed packages."""
    modules = []
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in _SITE_FOLDERS | {"__pycache__"}]
        modules += [Path(place, name) for name in files if name.endswith(_SUFFIXES)]
    return sorted(modules)


def is_small(files: Iterable[Path]) -> bool:
    """Whether files are few and small enough to be read, instead of only their names and sizes."""
    sizes = [file.stat().st_size for file in files]
    return len(sizes) <= MOST_FILES and sum(sizes) <= MOST_BYTES
