"""How large an audit must be, whatever its game."""

from __future__ import annotations

from collections.abc import Callable

MOST_PLANNED = 200_000
"""Shadow models that a plan looks up to."""


def fewest(enough: Callable[[int], bool], *, least: int, most: int) -> int | None:
    """The smallest even size of an audit that is enough, to within 4; None if none is.

    Args:
        enough: Whether a size is enough.
        least: The smallest size, even.
        most: The largest.
    """
    high = least
    while not enough(high):
        high *= 2
        if high > most:
            return None
    low = high // 2 if high > least else high
    while high - low > 4:
        middle = (low + high) // 4 * 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
