"""Finds generators and attacks: dpaudit's own, other packages', and the user's files.

A name is one of: a registered name (entry-point groups `dpaudit.generators`, `dpaudit.attacks`,
`dpaudit.libraries`), `module:attr`, or `path/to/file.py:attr`. dpaudit never imports the packages
that register. An entry point may name extras of its package (`gan = "package:Gan [torch]"`): what
these require must be installed before it is built.

The caller's own modules and files are imported so that workers can load what they define.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.machinery
import importlib.util
import inspect
import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import metadata
from importlib.metadata import (
    Distribution,
    EntryPoint,
    EntryPoints,
    PackageNotFoundError,
    distribution,
)
from pathlib import Path
from types import ModuleType
from typing import Any

from dpaudit.errors import DpauditError, MissingExtraError, RegistryError, SettingsError
from dpaudit.files import parse_json
from dpaudit.formatting import did_you_mean, error_text, listed
from dpaudit.plugins.foreign import refusing

GENERATORS = "dpaudit.generators"
ATTACKS = "dpaudit.attacks"
LIBRARIES = "dpaudit.libraries"


def entry_points(**chosen: str) -> EntryPoints:
    """The entry points of a group, or those of one name, as far as they are installed now."""
    folders = [place or os.curdir for place in sys.path if os.path.isdir(place or os.curdir)]
    places = [(folder, os.stat(folder).st_mtime_ns) for folder in folders]
    matches: EntryPoints = _installed(tuple(places)).select(**chosen)
    return matches


@lru_cache(maxsize=1)
def _installed(places: tuple[tuple[str, int], ...]) -> Any:  # of another type from Python 3.12 on
    """All entry points: they are in a file of each distribution in these folders, changed then."""
    del places
    return metadata.entry_points()


def names(group: str) -> list[str]:
    """Registered names of a group, sorted."""
    return sorted({entry.name for entry in entry_points(group=group)})


def plugins(group: str) -> dict[str, object]:
    """Everything registered in a group, by name; one that fails to import is a warning only."""
    registered = {}
    for entry in sorted(entry_points(group=group), key=lambda entry: entry.name):
        try:
            what = f"plugin {entry.name!r} ({entry.value}) is broken and left out"
            registered[entry.name] = _load(entry, what)
        except DpauditError as error:
            warnings.warn(error_text(error), stacklevel=2)
    return registered


def resolve(name: str, group: str) -> object:
    """Finds the object of a name.

    Args:
        name: Registered name, `module:attr` or `path/to/file.py:attr`.
        group: Entry-point group of registered names.

    Returns:
        The class, function or instance.

    Raises:
        RegistryError: If there is no such name, module, file or attribute, or importing it fails.
        MissingExtraError: If importing it fails and an extra of its entry point is not installed.
    """
    if ":" in name:
        place, _, attribute = name.rpartition(":")
        module = load_module(place, known=names(LIBRARIES))
        with refusing(f"{name} cannot be read"):
            if hasattr(module, attribute):
                return getattr(module, attribute)
        public = [key for key in vars(module) if not key.startswith("_")]
        defined = [
            key
            for key in public
            if getattr(vars(module)[key], "__module__", None) == module.__name__
        ]
        hint = did_you_mean(attribute, public) or (
            f"; it defines {listed(defined)}" if defined else ""
        )
        raise RegistryError(f"{place} has no {attribute!r}{hint}")
    matches: Sequence[EntryPoint] = tuple(entry_points(group=group, name=name))
    if not matches:
        known = names(group)
        raise RegistryError(
            f"unknown {_kind(group)} {name!r}{did_you_mean(name, known)}. "
            f"Registered: {', '.join(known)}; "
            "or name your own as module:attr or path/to/file.py:attr"
        )
    return _load(matches[0], f"plugin {name!r} ({matches[0].value}) fails to import")


def missing_extra(name: str, group: str) -> MissingExtraError | None:
    """The error about an extra of an entry point that is not installed; None if all are.

    Args:
        name: A registered name, or the `module:attr` of a registered object, by its own module or
            that of the entry point.
        group: Entry-point group of registered names.
    """
    place, _, attribute = name.rpartition(":")
    for entry in entry_points(group=group):
        within = f"{place}.".startswith(f"{entry.module}.") and attribute == entry.attr
        if name == entry.name or within:
            return _missing_extra(entry)
    return None


def missing_package(of: Distribution, extra: str) -> str | None:
    """The first package that an extra requires and that is not installed; None if all are.

    Args:
        of: The distribution that has the extra.
        extra: Name of the extra.
    """
    from packaging.requirements import Requirement  # takes time, and few entry points have extras

    for requirement in map(Requirement, of.requires or ()):
        marker = requirement.marker
        if marker is not None and marker.evaluate({"extra": extra}):
            try:
                distribution(requirement.name)
            except PackageNotFoundError:
                return requirement.name
    return None


def require_extras(name: str, group: str) -> None:
    """Refuses a plugin if an extra that its entry point names is not installed.

    Args:
        name: As in `missing_extra`.
        group: Entry-point group of registered names.

    Raises:
        MissingExtraError: If an extra is not installed.
    """
    missing = missing_extra(name, group)
    if missing is not None:
        raise missing


def module_of(name: str, group: str) -> str:
    """The module or file that has the object of a name; empty if the name is not registered.

    Args:
        name: As in `resolve`.
        group: Entry-point group of registered names.
    """
    if ":" in name:
        return name.rpartition(":")[0]
    return next((entry.module for entry in entry_points(group=group, name=name)), "")


def build(name: str, group: str, *, given: Mapping[str, Any], offered: Mapping[str, Any]) -> object:
    """Builds the generator or attack of a name.

    A class is called with the given parameters, and with those of the offered ones (schema, target)
    that its constructor takes. A function or a ready object is returned as it is.

    Args:
        name: As in `resolve`.
        group: Entry-point group.
        given: Parameters from the user; the constructor must take each of them.
        offered: Parameters that the audit can supply.

    Returns:
        The object.

    Raises:
        RegistryError: If a parameter is unknown, missing, or a text in place of a number, or the
            constructor raises.
        MissingExtraError: If an extra of its entry point is not installed.
    """
    require_extras(name, group)
    value = resolve(name, group)
    if not inspect.isclass(value):
        if given:
            raise RegistryError(
                f"{name} is not a class: it takes no parameters ({', '.join(given)})"
            )
        return value
    try:
        accepted = inspect.signature(value).parameters
    except ValueError:
        raise RegistryError(f"{name} has no signature: wrap it in a class of your own") from None
    takes_any = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in accepted.values())
    for key in given:
        if key not in accepted and not takes_any:
            raise RegistryError(
                f"{name} has no parameter {key!r}{did_you_mean(key, list(accepted))}. "
                f"It takes: {', '.join(accepted) or 'none'}"
            )
        if key in accepted:
            _refuse_text_for_number(name, accepted[key], given[key])
    supplied = {key: item for key, item in offered.items() if key in accepted and key not in given}
    arguments = {**supplied, **given}
    needed = [
        key
        for key, parameter in accepted.items()
        if parameter.default is inspect.Parameter.empty
        and parameter.kind
        in (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        and key not in arguments
    ]
    if needed:
        raise RegistryError(f"{name} needs the parameter {needed[0]!r}: give -p {needed[0]}=VALUE")
    with refusing(f"{name} cannot be built"):
        try:
            return value(**arguments)
        except SettingsError as error:  # of its own parameters: no backquotes, so no option's name
            raise RegistryError(f"{name}: {str(error).replace('`', '')}") from None


def _refuse_text_for_number(name: str, parameter: inspect.Parameter, given: object) -> None:
    """Refuses a text if a parameter is annotated as a number; other types are not checked."""
    annotation = parameter.annotation
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    types = {part.strip() for part in text.split("|")} - {"None"}
    if isinstance(given, str) and types and types <= {"int", "float"}:
        expected = "a number" if "float" in types else "a whole number"
        raise RegistryError(
            f"parameter {parameter.name!r} of {name} is {given!r}: it takes {expected}"
        )


def parse_parameters(pairs: Sequence[str]) -> dict[str, Any]:
    """Reads `key=value` pairs; a value is read as JSON if possible, else as text.

    Raises:
        RegistryError: If a pair has no `=`, or a key repeats.
    """
    parameters: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise RegistryError(f"parameter {pair!r} must look like key=value")
        key = key.replace("-", "_")
        if key in parameters:
            raise RegistryError(f"parameter {key!r} is given twice")
        try:
            parameters[key] = parse_json(text)
        except ValueError:
            parameters[key] = text
    return parameters


def _kind(group: str) -> str:
    """What a group of entry points registers, in words, such as "generator"."""
    return group.rpartition(".")[2].removesuffix("s")


def _load(entry: EntryPoint, what: str) -> object:
    """Loads the object of an entry point; `what` describes a failure, for the message."""
    try:
        with refusing(what):
            return entry.load()
    except RegistryError as error:
        raise _missing_extra(entry) or error from error.__cause__


def _missing_extra(entry: EntryPoint) -> MissingExtraError | None:
    """The error about an extra of an entry point that is not installed; None if all are."""
    if not entry.extras or entry.dist is None:
        return None
    for extra in entry.extras:
        package = missing_package(entry.dist, extra)
        if package is not None:
            feature = f"{_kind(entry.group)} {entry.name!r}"
            return MissingExtraError(feature, package, extra, of=entry.dist.name)
    return None


def carry(value: object) -> None:
    """Makes a caller's object picklable for workers that cannot import its module by name.

    This applies to test modules and scripts: their definitions are pickled by value.

    Args:
        value: A function, or an object of a class.
    """
    import cloudpickle

    defined = value if hasattr(value, "__qualname__") else type(value)
    module = sys.modules.get(getattr(defined, "__module__", ""))
    if module is not None and module.__name__ != "__main__" and not _is_importable(module):
        cloudpickle.register_pickle_by_value(module)


def travels_by_value(value: object) -> bool:
    """Whether this process sends workers an object's code instead of its name.

    Args:
        value: As for `carry`, or a wrapped function.
    """
    import cloudpickle

    function = getattr(value, "function", None)
    defined = function if inspect.isroutine(function) else type(value)
    name = getattr(defined, "__module__", "")
    by_value = {"__main__", *cloudpickle.list_registry_pickle_by_value()}
    return any(f"{name}.".startswith(f"{module}.") for module in by_value)


def _is_importable(module: ModuleType) -> bool:
    """Whether a fresh interpreter with this search path would import the same file."""
    file = getattr(module, "__file__", None)
    if file is None:
        return True  # built into the interpreter
    spec = None
    path: Sequence[str] | None = None
    prefix = ""
    for part in module.__name__.split("."):
        prefix = f"{prefix}.{part}" if prefix else part
        spec = importlib.machinery.PathFinder.find_spec(prefix, path)
        if spec is None:
            return False
        path = spec.submodule_search_locations
    return spec is not None and spec.origin == file


def load_module(place: str, *, known: Sequence[str] = ()) -> ModuleType:
    """Imports a module by its name, or from a file.

    Args:
        place: A name that can be imported, also from the working folder, or a path that ends with
            `.py`. What a file defines travels to workers by value.
        known: Other names to suggest for a misspelt one.

    Returns:
        The module.

    Raises:
        RegistryError: If there is no such module or file, or importing it fails.
    """
    if place.endswith(".py"):
        return _module_from_file(Path(place))
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # a console script does not search it
    with refusing(f"importing {place} fails"):
        try:
            return importlib.import_module(place)
        except ModuleNotFoundError as error:
            if error.name and (place == error.name or place.startswith(f"{error.name}.")):
                raise RegistryError(
                    f"no module {place!r}{did_you_mean(place, known)}: name an importable module, "
                    "or a file as path/to/file.py:attr"
                ) from None
            raise


def _module_from_file(path: Path) -> ModuleType:
    """Imports a file as a module; the modules that it imports from its folder are unloaded."""
    if not os.path.isfile(path):  # `Path.is_file` raises where a name is too long
        raise RegistryError(f"no file {path}: name an existing Python file as path/to/file.py:attr")
    import cloudpickle

    path = path.resolve()
    # A unique name hides neither another file of the same name nor a library's module.
    name = f"{path.stem}_{hashlib.blake2b(str(path).encode(), digest_size=4).hexdigest()}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None  # a .py file always has a loader
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = set(sys.modules)
    sys.modules[name] = module  # dataclasses look their module up
    folder = str(path.parent)
    sys.path.insert(0, folder)  # as if the file were run as a script
    importlib.invalidate_caches()
    try:
        with refusing(f"importing {path} fails"):
            try:
                spec.loader.exec_module(module)
            except ImportError as error:
                if "relative import" not in str(error):
                    raise
                package = path.resolve().parent.name
                raise RegistryError(
                    f"importing {path} fails: a relative import needs the package {package!r}; "
                    f"name the generator {package}.{path.stem}:NAME, from the folder of {package}"
                ) from error
    except BaseException:
        sys.modules.pop(name, None)
        raise
    finally:
        if folder in sys.path:
            sys.path.remove(folder)
        _unload_neighbours(set(sys.modules) - before - {name}, path.parent)
    cloudpickle.register_pickle_by_value(module)  # workers cannot import it by name
    return module


def _unload_neighbours(imported: set[str], folder: Path) -> None:
    """Unloads the modules that a file imported from its folder.

    A file elsewhere may have a different neighbour of the same name, and modules that are not in
    `sys.modules` are pickled by value.
    """
    neighbours = {
        key
        for key in imported
        if "." not in key
        and folder in Path(getattr(sys.modules[key], "__file__", None) or "").parents
        and not _is_importable(sys.modules[key])
    }
    for key in imported:
        if key.partition(".")[0] in neighbours:
            del sys.modules[key]
