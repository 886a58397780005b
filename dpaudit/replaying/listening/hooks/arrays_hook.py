"""Functions of numpy and pandas that make arrays, which keep marks or take them off.

A noisy integer that says how many is taken as a plain one.
"""

from __future__ import annotations

import functools
import sys
from typing import Any, Callable

import numpy as np

from .. import marks


def install(library: Any) -> None:
    """Replaces the functions and methods."""
    if library.__name__ == "pandas":
        _install_in_pandas(library)
        return
    for name in ("array", "asarray", "asanyarray", "ascontiguousarray"):
        setattr(library, name, _keep_marks(getattr(library, name)))
    for name in ("zeros", "empty", "zeros_like", "empty_like"):
        setattr(library, name, _make_blank(getattr(library, name)))
    for name in ("arange", "full", "linspace"):
        setattr(library, name, marks.with_plain_arguments(getattr(library, name)))
    for name in ("sum", "mean", "max", "min", "amax", "amin", "argmax", "argmin", "argsort"):
        setattr(library, name, _take_lists(getattr(library, name)))


def _install_in_pandas(library: Any) -> None:
    """Replaces methods that are given numbers or places of rows, or make a column of a list."""
    for owner, names in (
        (
            library.DataFrame,
            ("__init__", "__setitem__", "head", "tail", "sample", "nlargest", "nsmallest"),
        ),
        (library.Series, ("__init__", "__setitem__", "head", "tail", "sample", "repeat")),
        (library.Index, ("repeat",)),
        (library.core.indexing._iLocIndexer, ("__getitem__",)),
        (library.core.indexing._LocationIndexer, ("__setitem__",)),
    ):
        for name in names:
            setattr(owner, name, marks.with_plain_arguments(getattr(owner, name)))


def _keep_marks(convert: Callable[..., Any]) -> Callable[..., Any]:
    """A function like `np.array` that keeps a mark."""

    @functools.wraps(convert)
    def wrapper(value: Any, *args: Any, **kwargs: Any) -> Any:
        if marks.is_bare(value):
            return convert(value, *args, **kwargs)
        value = marks.array_of(marks.combine(value))
        if not marks.is_marked(value):
            return convert(value, *args, **kwargs)
        package = marks.package_of(sys._getframe(1))
        if package in ("jax", "tensorflow", "sklearn") or (
            package in marks.LIBRARIES and not value.keeps_noise
        ):
            return convert(marks.end_marks(value, package), *args, **kwargs)
        wanted = kwargs.get("dtype", args[0] if args else None)
        array = value if wanted is None else value.astype(wanted)
        more = (1,) * (kwargs.get("ndmin", 0) - np.ndim(array))
        array = array.reshape(more + np.shape(array)) if more else array
        copies = convert.__name__ == "array" and kwargs.get("copy", True) is True
        return array.copy() if copies else array

    return wrapper


def _make_blank(make: Callable[..., Any]) -> Callable[..., Any]:
    """A function like `np.zeros` whose arrays keep the marks of what fills them.

    Libraries make arrays for purposes of their own, which stay as they are.
    """

    @functools.wraps(make)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        array = make(*args, **kwargs)
        is_small = type(array) is np.ndarray and 0 < array.size <= marks.MOST_BLANK and array.ndim
        if not is_small or array.dtype != np.float64 or not marks.world.hears:
            return array
        if marks.package_of(sys._getframe(1)) in marks.LIBRARIES:
            return array
        zeros = marks.Blank(array.shape)
        zeros.view(np.ndarray)[...] = 0.0
        return zeros

    return wrapper


def _take_lists(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of an array that keeps marks when it is given a list."""

    @functools.wraps(function)
    def wrapper(a: Any, *args: Any, **kwargs: Any) -> Any:
        return function(marks.combine(a) if isinstance(a, (list, tuple)) else a, *args, **kwargs)

    return wrapper
