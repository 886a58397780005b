"""Finds generators and attacks: ours, other packages', and the user's own files.

A name is one of: a registered name (entry-point groups `dpaudit.generators`, `dpaudit.attacks`),
`module:attr`, or `path/to/file.py:attr`. dpaudit never imports the packages that register.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.machinery
import importlib.util
import inspect
import json
import sys
import warnings
from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from dpaudit.errors import DpauditError, RegistryError
from dpaudit.formatting import did_you_mean, error_line

GENERATORS = "dpaudit.generators"
ATTACKS = "dpaudit.attacks"


class Plugin(NamedTuple):
    """One registered name and what it stands for."""

    name: str
    value: object


def names(group: str) -> list[str]:
    """Registered names of a group, sorted."""
    return sorted({entry.name for entry in entry_points(group=group)})


def plugins(group: str) -> list[Plugin]:
    """Everything registered in a group; a plugin that fails to import is a warning, not a crash."""
    found = []
    for entry in sorted(entry_points(group=group), key=lambda entry: entry.name):
        try:
            found.append(Plugin(entry.name, entry.load()))
        except Exception as error:  # noqa: BLE001 - another package's import may raise anything
            warnings.warn(
                f"plugin {entry.name!r} ({entry.value}) is broken and left out: "
                f"{error_line(error)}",
                stacklevel=2,
            )
    return found


def resolve(name: str, group: str) -> object:
    """The object that a name stands for.

    Args:
        name: Registered name, `module:attr` or `path/to/file.py:attr`.
        group: Entry-point group of registered names.

    Returns:
        The class, function or instance.

    Raises:
        RegistryError: If there is no such name, module, file or attribute, or importing it fails.
    """
    if ":" in name:
        place, _, attribute = name.rpartition(":")
        module = _module(place)
        if not hasattr(module, attribute):
            public = [key for key in vars(module) if not key.startswith("_")]
            raise RegistryError(f"{place} has no {attribute!r}{did_you_mean(attribute, public)}")
        return getattr(module, attribute)
    matches: Sequence[EntryPoint] = tuple(entry_points(group=group, name=name))
    if not matches:
        kind = group.rpartition(".")[2].removesuffix("s")
        known = names(group)
        raise RegistryError(
            f"unknown {kind} {name!r}{did_you_mean(name, known)}. Registered: {', '.join(known)}; "
            "or name your own as module:attr or path/to/file.py:attr"
        )
    try:
        return matches[0].load()
    except Exception as error:
        raise RegistryError(
            f"plugin {name!r} ({matches[0].value}) fails to import: {error_line(error)}"
        ) from error


def build(name: str, group: str, *, given: Mapping[str, Any], offered: Mapping[str, Any]) -> object:
    """Builds what a name stands for.

    A class is called with the given parameters, and with those offered ones (schema, target) that
    its constructor has a place for. A function or a ready object is returned as it is.

    Args:
        name: As in `resolve`.
        group: Entry-point group.
        given: Parameters from the user; each must be one the constructor takes.
        offered: Parameters the audit can supply.

    Returns:
        The object.

    Raises:
        RegistryError: If a parameter is unknown or missing, or the constructor raises.
    """
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
        raise RegistryError(f"{name} needs the parameter {needed[0]!r}: give {needed[0]}=...")
    try:
        return value(**arguments)
    except DpauditError:
        raise
    except Exception as error:
        raise RegistryError(f"{name} cannot be built: {error_line(error)}") from error


def parse_parameters(pairs: Sequence[str]) -> dict[str, Any]:
    """Reads `key=value` pairs; values are JSON where they can be, else text.

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
            parameters[key] = json.loads(text)
        except ValueError:
            parameters[key] = text
    return parameters


def carry(value: object) -> None:
    """Makes an object of the caller's picklable for workers that cannot import its module by name.

    Test modules and scripts are such: workers would look their names up in vain, so what they
    define travels by value.

    Args:
        value: A function, or an object of a class.
    """
    import cloudpickle

    defined = value if hasattr(value, "__qualname__") else type(value)
    module = sys.modules.get(getattr(defined, "__module__", ""))
    if module is not None and module.__name__ != "__main__" and not _findable(module):
        cloudpickle.register_pickle_by_value(module)


def _findable(module: ModuleType) -> bool:
    """Whether a fresh interpreter with this search path would import the very same file."""
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


def _module(place: str) -> ModuleType:
    if place.endswith(".py"):
        return _module_from_file(Path(place))
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # a console script does not search the working folder
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name and (place == error.name or place.startswith(f"{error.name}.")):
            raise RegistryError(
                f"no module {place!r}: name an importable module, or a file as path/to/file.py:attr"
            ) from None
        raise RegistryError(f"importing {place} fails: {error_line(error)}") from error
    except (Exception, SystemExit) as error:
        raise RegistryError(f"importing {place} fails: {error_line(error)}") from error


def _module_from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise RegistryError(f"no file {path}: name an existing Python file as path/to/file.py:attr")
    import cloudpickle

    path = path.resolve()
    # A name of its own: neither a file of this name elsewhere nor a library's module is hidden.
    name = f"{path.stem}_{hashlib.blake2b(str(path).encode(), digest_size=4).hexdigest()}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None  # a .py file always has a loader
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = set(sys.modules)
    sys.modules[name] = module  # dataclasses look their module up
    folder = str(path.parent)
    sys.path.insert(0, folder)  # files beside it import as they do when it is run as a script
    importlib.invalidate_caches()
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise RegistryError(f"importing {path} fails: {error_line(error)}") from error
    finally:
        sys.path.remove(folder)
        _forget(set(sys.modules) - before - {name}, path.parent)
    cloudpickle.register_pickle_by_value(module)  # workers cannot import it by name
    return module


def _forget(imported: set[str], folder: Path) -> None:
    """Unloads what a file imported from its folder.

    A file elsewhere may have another neighbour of the same name, and what is not in `sys.modules`
    travels to workers by value.
    """
    beside = {
        key
        for key in imported
        if "." not in key
        and folder in Path(getattr(sys.modules[key], "__file__", None) or "").parents
        and not _findable(sys.modules[key])
    }
    for key in imported:
        if key.partition(".")[0] in beside:
            del sys.modules[key]
