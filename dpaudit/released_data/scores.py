"""Membership scores of real rows: the higher, the more likely the row is in train.

A score uses the synthetic table and all real rows, train and hold-out together, without their
membership: no score depends on the coin of any row.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from dpaudit.model.encoding import values_of_table
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FloatArray, IntArray
from dpaudit.released_data.rows import Encoded, column_keys, encoded, nearest, nearest_others

CLOSEST: Final = "closest"
RELATIVE: Final = "relative"
DENSITY: Final = "density-ratio"
MATCHING: Final = "matching"
ATTACKS: Final = (CLOSEST, RELATIVE, DENSITY, MATCHING)
"""The attacks, by name."""

_NEIGHBOURS: Final = 5
_NEAR: Final = 1e-3
"""Distances that differ by far less than this count as equal."""
_BINS: Final = 200
"""Number of equal-width bins of numbers for matching rows."""
_MOST_SUBSETS: Final = 128


class MembershipScores(NamedTuple):
    """Scores of some real rows by attack.

    Attributes:
        seen: With this synthetic table; shape (rows,).
        if_copied: If it also held a copy of each row; shape (rows,).
    """

    seen: dict[str, FloatArray]
    if_copied: dict[str, FloatArray]


class Matches(NamedTuple):
    """Number of column sets in which a synthetic row equals each real row; see `matches`.

    Attributes:
        seen: The score; shape (rows,).
        most: The largest that it can be, that of a copy; shape (rows,).
    """

    seen: FloatArray
    most: FloatArray


def membership_scores(
    real: pd.DataFrame, synthetic: pd.DataFrame, schema: Schema, *, of: IntArray
) -> MembershipScores:
    """Scores some real rows by each attack.

    `closest` is minus the distance to the nearest synthetic row. `relative` and `density-ratio`
    compare the first, or the fifth, nearest synthetic row with that among the other real rows:
    estimates of the density ratio of DOMIAS (van Breugel et al. 2023). `matching` counts the sets
    of columns, all but up to two, in which some synthetic row equals the row; the more other real
    rows equal it there, the less a set counts.

    Args:
        real: All real rows, whether in train or not, in an order that does not depend on it.
        synthetic: The synthetic table.
        schema: What both fit.
        of: The real rows to score, ascending.

    Returns:
        The scores.

    Raises:
        MissingExtraError: If the tables are large and FAISS is not installed.
    """
    rows = encoded(real, schema)
    most = min(_NEIGHBOURS, len(synthetic), len(real) - 1)
    some = None if len(of) == len(rows) else of  # avoids copying a large table
    queries = rows if some is None else rows[some]
    drawn = nearest(queries, encoded(synthetic, schema), neighbours=most).distances
    del queries
    others = nearest_others(rows, neighbours=most, of=some).distances
    del rows
    matched = matches(
        values_of_table(real, schema), values_of_table(synthetic, schema), schema, of=of
    )
    # A copy is the nearest, and what was nearest is the next.
    nearer = np.column_stack([np.zeros(len(of), drawn.dtype), drawn[:, :-1]])
    return MembershipScores(
        seen=_of_distances(drawn, others) | {MATCHING: matched.seen},
        if_copied=_of_distances(nearer, others) | {MATCHING: matched.most},
    )


def _of_distances(drawn: Encoded, others: Encoded) -> dict[str, FloatArray]:
    """Scores from distances of the nearest synthetic rows and of the nearest other real rows."""
    ratios = np.log((others + _NEAR) / (drawn + _NEAR)).astype(np.float64)
    return {
        CLOSEST: -drawn[:, 0].astype(np.float64),
        RELATIVE: ratios[:, 0],
        DENSITY: ratios[:, -1],
    }


def matches(real: FloatArray, synthetic: FloatArray, schema: Schema, *, of: IntArray) -> Matches:
    """The number of column sets in which a synthetic row equals a real row and few others do.

    Args:
        real: Values [n, d] of all real rows.
        synthetic: Values [m, d] of the synthetic rows.
        schema: What both fit.
        of: The real rows to score.

    Returns:
        For each row, the sum of 1/(1 + other real rows equal to it) over the sets with an equal
        synthetic row, and over all sets.
    """
    ours, drawn = (column_keys(_binned(values, schema)) for values in (real, synthetic))
    whole, whole_drawn = (keys.sum(axis=1, dtype=np.uint64) for keys in (ours, drawn))
    score, most = np.zeros(len(of)), np.zeros(len(of))
    for left_out in _left_out(real.shape[1]):
        places = list(left_out)
        keys = whole - ours[:, places].sum(axis=1, dtype=np.uint64)
        found = np.unique(whole_drawn - drawn[:, places].sum(axis=1, dtype=np.uint64))
        groups, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
        # Sorted keys are looked up faster.
        there = found[np.minimum(np.searchsorted(found, groups), len(found) - 1)] == groups
        weight, asked = 1.0 / counts, inverse[of]
        score += (there * weight)[asked]
        most += weight[asked]
    return Matches(score, most)


def _left_out(columns: int) -> Iterator[tuple[int, ...]]:
    """Columns to leave out: none, each one, then pairs up to the limit; at least one stays."""
    sets: list[tuple[int, ...]] = [()]
    for size in (1, 2):
        more = list(combinations(range(columns), size)) if columns > size else []
        left = max(0, _MOST_SUBSETS - len(sets))
        step = max(1, -(-len(more) // left)) if left else 1
        sets += more[::step] if left else []
    yield from sets


def _binned(values: FloatArray, schema: Schema) -> FloatArray:
    """Values, with wide-ranging numbers replaced by bins; shape (n, d)."""
    found = values.copy()
    for place, column in enumerate(schema.columns):
        if column.kind.numeric:
            lower, upper = column.bounds
            whole = column.kind.name == "INTEGER" and upper - lower < _BINS
            if not whole:
                found[:, place] = np.floor((values[:, place] - lower) / (upper - lower) * _BINS)
    return found
