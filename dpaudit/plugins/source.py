"""A digest of a plugin's source and of everything its imports reach, to detect changes.

The digest covers the content of code, and version and build of distributions. If an import is
uncertain, it covers more: every installed distribution if an installed library computes its
imports. If the caller's own code does, the imports are reported as unknown.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.machinery
import inspect
import os
import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.util import find_spec
from pathlib import Path
from types import CodeType
from typing import Final, NamedTuple

from dpaudit.external.environments import distribution_key
from dpaudit.plugins.imports import imports_of


def source_digest(value: object) -> str | None:
    """A digest of an object's source; None if it has none.

    For a class or function of a notebook, or of `python -c`, which has no file, the compiled code
    counts. For an object from a package, all Python files of the package count, because its
    behaviour may depend on any of them; for one from a lone file, that file and its imports from
    the same folder. For a large package (installed, seldom edited), names and sizes count for files
    other than the object's own. For a generator in a separate process, the files that it names as
    `source_files` count too.

    Args:
        value: A generator, an attack, or a wrapped function.
    """
    function = getattr(value, "function", None)  # a wrapped bare function
    defined = function if inspect.isroutine(function) else type(value)
    try:
        found = inspect.getsourcefile(defined)
    except (TypeError, OSError):  # of a builtin; of a class without a file
        found = None
    if found is None or not Path(found).is_file():
        return _compiled_digest(defined)
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


def _compiled_digest(defined: object) -> str | None:
    """A digest of the compiled code of a function, or of a class and its bases; None without any.

    Line numbers do not count. Code that they call is not included.
    """
    values = [defined]
    if inspect.isclass(defined):
        values = [value for one in defined.__mro__ for _, value in sorted(vars(one).items())]
    codes = [code for value in values for code in _codes(value)]
    if not codes:
        return None
    text = repr([_of_code(code) for code in codes])
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _codes(value: object) -> list[CodeType]:
    """The code of a function, a method of a class, or a property."""
    if isinstance(value, property):
        return [code for one in (value.fget, value.fset) for code in _codes(one)]
    code = getattr(getattr(value, "__func__", value), "__code__", None)
    return [code] if isinstance(code, CodeType) else []


def _of_code(code: CodeType) -> tuple[object, ...]:
    """What decides what code does, in an order of its own."""
    constants = [
        _of_code(one)
        if isinstance(one, CodeType)
        else sorted(map(repr, one))
        if isinstance(one, frozenset)
        else one
        for one in code.co_consts
    ]
    return code.co_name, code.co_code, code.co_names, code.co_varnames, repr(constants)


def _beside(file: Path) -> set[Path]:
    """A lone file and the files that it imports from its folder, recursively."""
    found, new = set[Path](), [file]
    while new:
        one = new.pop()
        if one not in found:
            found.add(one)
            for name in imports_of(one.read_bytes()).names:
                new += named(name, file.parent)
    return found


SITE_FOLDERS: Final = ("site-packages", "dist-packages")
MOST_FILES = 1000
"""Of a package whose files are read; of a larger one, such as torch, sizes are compared."""
MOST_BYTES = 2**24
"""Of a package whose files are read."""
_OWN: Final = Path(__file__).resolve().parents[1]
_STDLIB: Final = Path(sysconfig.get_path("stdlib")).resolve()
_SUFFIXES: Final = tuple(importlib.machinery.all_suffixes())
_ELSEWHERE: Final = {"__pycache__", *SITE_FOLDERS}


class Reached(NamedTuple):
    """Everything that decides the behaviour of code.

    Attributes:
        code: A digest of all source and compiled files that are not installed.
        software: Version and build of each installed distribution, by its name.
        unknown: Why code may be reached that is missing here; empty if none may.
    """

    code: str
    software: Mapping[str, str]
    unknown: str


def reached(
    values: Iterable[object], *, files: Iterable[Path] = (), modules: Iterable[str] = ()
) -> Reached:
    """The code and distributions that objects, files and modules reach by their imports.

    Args:
        values: Generators, attacks or functions. One that runs elsewhere names its `source_files`,
            and says whether they are imported here as well (`imports_here`) or which releases they
            are run with (`audited_releases`).
        files: Files of source code.
        modules: Names of modules; what cannot be found is left out.

    Returns:
        What they reach.
    """
    importlib.invalidate_caches()
    walk = _Walk()
    for value in values:
        walk.start_at(value)
    walk.follow([*(file.resolve() for file in files), *map(_loaded, modules)])
    return Reached(walk.code(), walk.software(), walk.unknown)


class _Walk:
    """Follows imports from file to file."""

    def __init__(self) -> None:
        self.unknown = ""
        self._known = installed()
        self._owners: dict[str, list[str]] = {}
        for key, one in self._known.items():
            for module in one.modules:
                self._owners.setdefault(module, []).append(key)
        self._sites = {one.site for one in self._known.values()}
        own = {"dpaudit"}
        self._keys = required(own, self._known) - own
        # What an audit itself runs on, and the harness of a test, is known by what they declare.
        self._declared = required({*own, "pytest", "torch"}, self._known) - own
        self._whole = False
        self._todo: list[Path | str] = []
        self._files = dict[Path, str]()
        self._packages = set[Path]()
        self._beside = set[tuple[str, Path]]()
        self._modules = set[str]()
        self._missing = set[str]()
        self._contents = dict[str, str]()

    def start_at(self, value: object) -> None:
        """Notes where an object is defined."""
        while isinstance(value, functools.partial):
            value = value.func
        if hasattr(value, "source_files"):
            if getattr(value, "imports_here", False):
                self._todo += [Path(file).resolve() for file in value.source_files]
            elif not getattr(value, "audited_releases", None):
                self._unclear("its code runs in a program of its own")
            return
        wrapped = getattr(value, "function", None)
        if callable(wrapped):
            self.start_at(wrapped)
        defined: list[object] = [*type(value).__mro__]
        if inspect.isroutine(value):
            owner = getattr(value, "__self__", None)
            defined = [value, inspect.unwrap(value)]
            defined += [] if owner is None or inspect.ismodule(owner) else type(owner).__mro__
        found = [file for one in defined if (file := _home(one)) is not None]
        if not found:
            self._unclear(f"{getattr(defined[0], '__qualname__', value)} has no source file")
        self._todo += found

    def follow(self, new: Iterable[Path | str]) -> None:
        """Follows the imports of files and of modules by name, and of all that was noted."""
        self._todo += new
        while self._todo:
            one = self._todo.pop()
            if isinstance(one, str):
                self._module(one)
            else:
                self._file(one)
        for file in self._files:
            content = file.read_bytes()
            names = imports_of(content).names if b"sys.path" in content else ()
            if self._missing.intersection(names):
                self._unclear(f"{file.name} changes sys.path")

    def code(self) -> str:
        """A digest of the files that are not installed, wherever they lie."""
        contents = sorted(
            (name, hashlib.blake2b(file.read_bytes()).hexdigest())
            for file, name in self._files.items()
        )
        text = repr([contents, sorted(self._missing)])
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def software(self) -> dict[str, str]:
        """Version and build of the distributions that are reached."""
        found = {}
        for key in sorted(self._known if self._whole else self._keys):
            one = self._known[key]
            read = [self._contents[name] for name in sorted(one.modules & {*self._contents})]
            build = hashlib.blake2b(repr([one.build, read]).encode(), digest_size=4).hexdigest()
            found[one.name] = f"{one.version} build {build}"
        return found

    def _unclear(self, why: str) -> None:
        self.unknown = self.unknown or why
        self._whole = True

    def _file(self, file: Path) -> None:
        """One file, and what it imports."""
        if file in self._files or _is_interpreters(file):
            return
        module = self._installed_module(file)
        if module is not None:
            self._todo.append(module)
            return
        top = top_folder(file)
        self._files[file] = file.name if top is None else str(file.relative_to(top.parent))
        if top is not None and top not in self._packages:
            self._packages.add(top)
            self._todo += module_files(top)
        if file.suffix != ".py" and file.name.endswith(_SUFFIXES):
            self._whole = True  # what compiled code imports cannot be read
            return
        found = imports_of(file.read_bytes())
        for why in filter(None, (found.computed, found.runs)):
            self._unclear(f"{file.name} may load code under any name ({why})")
        for name in sorted(found.names):
            if (name, file.parent) not in self._beside:
                self._beside.add((name, file.parent))
                self._todo += [name, *named(name, file.parent)]

    def _module(self, name: str) -> None:
        """A module or package by its top-level name."""
        if name in self._modules or name in sys.stdlib_module_names or name == "dpaudit":
            return
        self._modules.add(name)
        owners = set(self._owners.get(name, ()))
        for key in sorted(required(owners, self._known) - self._keys):
            self._keys.add(key)
            if key not in self._declared:
                self._todo += sorted(one for one in self._known[key].modules if one.isidentifier())
        if owners and owners <= self._declared:
            return
        files = self._files_of(name)
        if files is None and not owners:
            self._missing.add(name)
        inside: list[Path] = []
        for file in files or ():
            (self._todo if self._installed_module(file) is None else inside).append(file)
        if inside:
            self._read_installed(name, inside)

    def _files_of(self, name: str) -> list[Path] | None:
        """The files of a module that can be imported; None if it cannot."""
        try:
            spec = find_spec(name)
        except (ImportError, ValueError, AttributeError):
            spec = getattr(sys.modules.get(name), "__spec__", None)
        if spec is None:
            loaded = getattr(sys.modules.get(name), "__file__", None)
            return None if loaded is None else [Path(loaded).resolve()]
        if spec.origin in ("built-in", "frozen"):
            return []
        folders = [Path(one) for one in spec.submodule_search_locations or ()]
        found = [file for folder in folders for file in module_files(folder.resolve())]
        if not folders and spec.origin is not None and Path(spec.origin).is_file():
            found = [Path(spec.origin).resolve()]
        if not found and spec.origin is not None:
            self._unclear(f"{name} is imported from no file")  # but from an archive
        return found or None

    def _read_installed(self, name: str, files: list[Path]) -> None:
        """Counts an installed module by its content, which shows what it imports."""
        digest = hashlib.blake2b(digest_size=16)
        small = is_small(files)
        for file in files:
            content = file.read_bytes() if small else b""
            digest.update(f"{file.name}\0{file.stat().st_size}\0".encode() + content)
            if content and file.suffix == ".py" and not self._whole:  # else all counts already
                found = imports_of(content)
                self._todo += sorted(found.names)
                self._whole = bool(found.computed)
        self._whole |= not small
        self._contents[name] = digest.hexdigest()

    def _installed_module(self, file: Path) -> str | None:
        """The top-level name of a file that a distribution installed; None of any other."""
        for site in self._sites:
            if str(file).startswith(f"{site}{os.sep}"):
                name = str(file)[len(str(site)) + 1 :].partition(os.sep)[0].partition(".")[0]
                owners = (self._known[key] for key in self._owners.get(name, ()))
                if any(one.site == site and one.is_installed for one in owners):
                    return name
        return None


def _loaded(module: str) -> Path | str:
    """The file of a module that is loaded, else the top-level name to look for."""
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is not None and Path(file).is_file():
        return Path(file).resolve()
    return module.partition(".")[0]


def _home(defined: object) -> Path | None:
    """The file of the module that defines a class or a function; None if it has none."""
    module = sys.modules.get(getattr(defined, "__module__", None) or "")
    file = getattr(module, "__file__", None)
    code = getattr(defined, "__code__", None)
    place = file if code is None else code.co_filename
    if place is None or not Path(place).is_file():
        return None
    found = Path(place).resolve()
    return None if found.is_relative_to(_STDLIB) and not _in_site(found) else found


def _is_interpreters(file: Path) -> bool:
    """Whether a file is of the interpreter or of dpaudit, whose digest stands elsewhere."""
    return file.is_relative_to(_OWN) or (file.is_relative_to(_STDLIB) and not _in_site(file))


def _in_site(file: Path) -> bool:
    return not {*SITE_FOLDERS}.isdisjoint(file.parts)


def top_folder(file: Path) -> Path | None:
    """The folder of the outermost package that a file belongs to; None if it is a lone file."""
    top = None
    for folder in file.parents:
        if not (folder / "__init__.py").is_file():
            break
        top = folder
    return top


def module_files(folder: Path) -> list[Path]:
    """The source and compiled files below a folder; no byte code, and no installed packages."""
    found = []
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in _ELSEWHERE]
        found += [Path(place, name) for name in files if name.endswith(_SUFFIXES)]
    return sorted(found)


def is_small(files: Iterable[Path]) -> bool:
    """Whether all files are read, or only names and sizes."""
    sizes = [file.stat().st_size for file in files]
    return len(sizes) <= MOST_FILES and sum(sizes) <= MOST_BYTES


def named(name: str, folder: Path) -> Iterator[Path]:
    """The files of a module or a package in a folder; none if it is not there."""
    if (folder / name).is_dir():
        yield from module_files(folder / name)
    for suffix in _SUFFIXES:
        if (folder / f"{name}{suffix}").is_file():
            yield folder / f"{name}{suffix}"


_REQUIRED: Final = re.compile(r"\s*([A-Za-z0-9][\w.-]*)\s*(?:\[([^\]]*)\])?")
_EXTRA: Final = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")
_NOT_CODE: Final = re.compile(rb"\.dist-info/|__pycache__")


class Requirement(NamedTuple):
    """A distribution that another one requires, whatever its other conditions are.

    Attributes:
        key: Its name, as `distribution_key` has it.
        extras: Extras of it that are required.
        under: Extras of the other one under which it is; if there are none, always.
    """

    key: str
    extras: frozenset[str] = frozenset()
    under: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Distribution:
    """An installed distribution.

    Attributes:
        name: Its name.
        version: Its version.
        site: The folder that it is installed in.
        record: Its list of files with their hashes; empty where the installer left none.
        metadata: The head of its metadata.
        listed: Its own list of its top-level modules, for want of a record.
    """

    name: str
    version: str
    site: Path
    record: bytes
    metadata: str
    listed: str

    @cached_property
    def modules(self) -> frozenset[str]:
        """Top-level names of its modules and packages."""
        if not self.record:
            return frozenset(self.listed.split() or [self.name.replace("-", "_")])
        tops = {line.partition(b"/")[0].partition(b",")[0] for line in self._code}
        return frozenset(top.decode("utf-8", "replace").partition(".")[0] for top in tops)

    @property
    def is_installed(self) -> bool:
        """Whether its files were copied to where it is: else they are those that are edited."""
        return bool(self.record) or self.site.name in SITE_FOLDERS

    @cached_property
    def requirements(self) -> tuple[Requirement, ...]:
        """What it requires."""
        return tuple(_requirements(self.metadata))

    @cached_property
    def build(self) -> str:
        """A digest of what was installed: the same version may be another build.

        Scripts and byte code are left out, for they differ from one interpreter to the next.
        """
        text = b"\n".join(sorted(self._code)) + self.metadata.encode()
        return hashlib.blake2b(text, digest_size=4).hexdigest()

    @property
    def _code(self) -> list[bytes]:
        """The lines of its record that name code; those of byte code do not."""
        lines = [line for line in self.record.splitlines() if not line.startswith(b"..")]
        return [line for line in lines if not _NOT_CODE.search(line)]


def installed() -> dict[str, Distribution]:
    """Every installed distribution by its key; of several of one name the one that is imported."""
    found: dict[str, Distribution] = {}
    for entry in dict.fromkeys(sys.path):
        for folder in _info_folders(Path(entry)):
            one = _read(folder, *(_stamp(folder / name) for name in ("METADATA", "RECORD")))
            if one is not None:
                found.setdefault(distribution_key(one.name), one)
    return found


def required(wanted: Iterable[str], known: Mapping[str, Distribution]) -> set[str]:
    """Keys of installed distributions and of all that they require, one through another.

    Args:
        wanted: Keys to begin with.
        known: All that is installed, as `installed` has it.
    """
    new = [Requirement(key) for key in wanted if key in known]
    done = set[Requirement]()
    while new:
        one = new.pop()
        if one in done:
            continue
        done.add(one)
        for further in known[one.key].requirements:
            if further.key in known and (not further.under or further.under & one.extras):
                new.append(further._replace(under=frozenset()))
    return {one.key for one in done}


def _info_folders(entry: Path) -> list[Path]:
    try:
        inside = sorted(os.listdir(entry))
    except OSError:  # an archive, or nothing at all
        return []
    return [entry / name for name in inside if name.endswith((".dist-info", ".egg-info"))]


def _stamp(file: Path) -> tuple[int, int]:
    try:
        status = file.stat()
    except OSError:
        return (0, 0)
    return (status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=4096)
def _read(folder: Path, *stamps: tuple[int, int]) -> Distribution | None:
    """A distribution by its metadata; None where there is none. The stamps notice changes."""
    texts = {
        name: _content(folder / name)
        for name in ("METADATA", "PKG-INFO", "RECORD", "top_level.txt", "requires.txt")
    }
    about = texts["METADATA"] or texts["PKG-INFO"] or _content(folder)  # or an egg in one file
    text = about.decode("utf-8", "replace")
    head = text.replace("\r\n", "\n").partition("\n\n")[0]
    fields = dict(re.findall(r"^(Name|Version):[ \t]*(\S+)", head, re.MULTILINE))
    if "Name" not in fields:
        return None
    return Distribution(
        name=fields["Name"],
        version=fields.get("Version", ""),
        site=folder.parent.resolve(),
        record=texts["RECORD"],
        metadata="\n".join([head, *_of_egg(texts["requires.txt"].decode("utf-8", "replace"))]),
        listed=texts["top_level.txt"].decode("utf-8", "replace"),
    )


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""


def _of_egg(text: str) -> Iterator[str]:
    """The requirements of an egg, whichever extra they stand under, as lines of metadata."""
    for line in text.splitlines():
        if line.strip() and not line.startswith(("[", "#")):
            yield f"Requires-Dist: {line}"


def _requirements(metadata: str) -> Iterator[Requirement]:
    for line in re.findall(r"^Requires-Dist:(.+)$", metadata, re.MULTILINE):
        found = _REQUIRED.match(line)
        if found is not None:
            extras = frozenset(distribution_key(one) for one in re.split(r"[,\s]+", found[2] or ""))
            under = frozenset(distribution_key(one) for one in _EXTRA.findall(line))
            yield Requirement(distribution_key(found[1]), extras - {""}, under)
