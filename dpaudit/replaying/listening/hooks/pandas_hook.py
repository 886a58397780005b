"""pandas: how many rows, and which, may be a noisy integer, and a column may consist of them."""

from __future__ import annotations

from typing import Any

from .. import marks


def install(library: Any) -> None:
    """Replaces the methods that ask how many, and those that make a column of a list."""
    for owner, names in (
        (library.DataFrame, ("__init__", "head", "tail", "sample", "nlargest", "nsmallest")),
        (library.Series, ("__init__", "head", "tail", "sample", "repeat")),
        (library.Index, ("repeat",)),
        (library.core.indexing._iLocIndexer, ("__getitem__",)),
    ):
        for name in names:
            setattr(owner, name, marks.counting(getattr(owner, name)))
