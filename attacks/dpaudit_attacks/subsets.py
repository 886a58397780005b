"""Which column subsets a query-based attack counts."""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from math import comb

import numpy as np

from dpaudit.errors import SettingsError
from dpaudit.plugins.protocols import BoolArray
from dpaudit.seeds import rng_of

_SEED = 0
"""The sample of subsets is public and the same in every trial, world and audit."""


@lru_cache(maxsize=8)
def column_subsets(n_columns: int, max_subsets: int) -> BoolArray:
    """Distinct subsets of d columns, by ascending order; always the same for the same arguments.

    All 2^d if they fit. Else the empty one, the full one and every single column; then, order by
    order, all subsets of that order if the remaining room holds them, else random ones for half of
    that room. Low orders come first, because a generator learns (and leaks) low-order marginals
    best; a few subsets of high orders catch near copies of the target.

    Args:
        n_columns: Number of columns d.
        max_subsets: Most subsets to choose.

    Returns:
        Read-only matrix [q, d], q <= max_subsets; entry (s, c) says whether subset s has column c.
        The first row is the empty subset, the last one the full subset.

    Raises:
        SettingsError: If the empty, the full and the single ones do not all fit.
    """
    everything = max_subsets >= 2**n_columns
    if not everything and max_subsets < n_columns + 2:
        raise SettingsError(
            f"max_queries={max_subsets} is too few for {n_columns} columns: "
            f"give at least {min(2**n_columns, n_columns + 2)}"
        )
    rng = rng_of(_SEED, f"column subsets {n_columns} {max_subsets}")
    chosen: list[tuple[int, ...]] = [()]
    room = min(max_subsets, 2**n_columns) - 2
    for order in range(1, n_columns):
        available = comb(n_columns, order)
        if available <= room:
            chosen += combinations(range(n_columns), order)
            room -= available
        else:
            wanted = (room + 1) // 2  # at most half of all available, so rejection stays cheap
            chosen += _distinct(rng, n_columns, order, wanted)
            room -= wanted
    chosen.append(tuple(range(n_columns)))
    masks = np.zeros((len(chosen), n_columns), dtype=np.bool_)
    rows = np.repeat(np.arange(len(chosen)), [len(subset) for subset in chosen])
    masks[rows, np.concatenate([np.array(subset, dtype=np.intp) for subset in chosen])] = True
    masks.flags.writeable = False
    return masks


def _distinct(rng: np.random.Generator, n: int, order: int, wanted: int) -> list[tuple[int, ...]]:
    """`wanted` distinct random subsets of `order` of n columns, sorted."""
    found: set[tuple[int, ...]] = set()
    while len(found) < wanted:
        subset = rng.choice(n, size=order, replace=False, shuffle=False)
        found.add(tuple(sorted(subset.tolist())))
    return sorted(found)
