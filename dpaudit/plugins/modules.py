"""Imports the caller's own modules and files, so that workers can load what they define."""

from __future__ import annotations

import hashlib
import importlib
import importlib.machinery
import importlib.util
import inspect
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from dpaudit.errors import RegistryError
from dpaudit.formatting import did_you_mean
from dpaudit.plugins.foreign import refusing


def carry(value: object) -> None:
    """Makes an object of the caller's picklable for workers that cannot import its module by name.

    Test modules and scripts are such: workers could not import them by name, so what they
    define travels by value.

    Args:
        value: A function, or an object of a class.
    """
    import cloudpickle

    defined = value if hasattr(value, "__qualname__") else type(value)
    module = sys.modules.get(getattr(defined, "__module__", ""))
    if module is not None and module.__name__ != "__main__" and not _findable(module):
        cloudpickle.register_pickle_by_value(module)


def travels_by_value(value: object) -> bool:
    """Whether this process hands an object's code to workers, instead of its name.

    Args:
        value: As for `carry`, or a wrapped function.
    """
    import cloudpickle

    function = getattr(value, "function", None)
    defined = function if inspect.isroutine(function) else type(value)
    name = getattr(defined, "__module__", "")
    by_value = {"__main__", *cloudpickle.list_registry_pickle_by_value()}
    return any(f"{name}.".startswith(f"{module}.") for module in by_value)


def _findable(module: ModuleType) -> bool:
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
        known: Names of other things that it may be a slip for.

    Returns:
        The module.

    Raises:
        RegistryError: If there is no such module or file, or importing it fails.
    """
    if place.endswith(".py"):
        return _module_from_file(Path(place))
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # a console script does not search the working folder
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
    if not os.path.isfile(path):  # `Path.is_file` raises where a name is too long
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
        with refusing(f"importing {path} fails"):
            spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    finally:
        if folder in sys.path:
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
