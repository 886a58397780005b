"""Arrays of zeros that code fills in place with noise, or with noisy answers."""

from __future__ import annotations

from typing import Any, Callable, ClassVar, List

import numpy as np

from . import marks
from .channel import site
from .marks import Marked, is_marked


class Blank(np.ndarray):
    """Zeros that code fills in place: a marked array as soon as one of them becomes noisy.

    Until then it is an array like any other.
    """

    is_written = False
    """Whether it has been filled with plain numbers."""
    fillers: ClassVar[List[Callable[[Any, Any], bool]]] = []
    """Functions that turn a blank array into a marked one like another; each kind adds its own."""

    def __setitem__(self, key: Any, value: Any) -> None:
        new = marks.array_of(value)
        new = new.as_noise() if isinstance(new, Marked) else new
        if not is_marked(new):
            self.is_written = True
        elif self.base is None and not self.is_written and marks.world.hears and self._becomes(new):
            self[key] = new
            return
        super().__setitem__(key, marks.end_marks(new, "an array"))

    def _becomes(self, like: Any) -> bool:
        """Turns it into a marked array if it holds 0 in both worlds; returns whether it did."""
        is_zero = marks.world.are_zero(site(), self.view(np.ndarray))
        return is_zero and any(fill(self, like) for fill in self.fillers)

    def __array_wrap__(self, array: Any, *_: Any) -> Any:
        """A number where a plain array gives one."""
        return array if array.ndim else array[()]

    def __reduce__(self) -> Any:
        return self.view(np.ndarray).__reduce__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.view(np.ndarray).__reduce_ex__(protocol)


MOST_BLANK = 2000
"""Largest number of elements of a blank array: each time one is filled, all marks are copied."""
