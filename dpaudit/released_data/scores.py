"""Membership scores of real rows, or of units: the higher, the more likely the row is in train.

A score uses the synthetic table and all real rows, train and hold-out together, without their
membership: no score depends on the coin of any row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.model.encoding import values_of_table
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import BoolArray, FloatArray, IntArray
from dpaudit.released_data.rows import (
    Encoded,
    Keys,
    column_keys,
    encode,
    find_nearest,
    nearest_others,
)

CLOSEST: Final = "closest"
RELATIVE: Final = "relative"
DENSITY: Final = "density-ratio"
MATCHING: Final = "matching"
ATTACKS: Final = (CLOSEST, RELATIVE, DENSITY, MATCHING)
"""The attacks, by name."""
BEST_ROW: Final = ", best row"
"""Suffix of an attack that scores a unit by its highest row instead of the mean of its rows."""

_NEIGHBOURS: Final = 5
_NEAR: Final = 1e-3
"""Added to both distances of a ratio, so tiny distances do not dominate."""
_BINS: Final = 200
"""Number of equal-width bins of numbers for matching rows."""
_MOST_SUBSETS: Final = 128


class MembershipScores(NamedTuple):
    """Scores of some real rows by attack.

    Attributes:
        seen: Scores with this synthetic table, by attack; shape (rows,) each.
        if_copied: Scores if it also held a copy of each row; shape (rows,) each.
    """

    seen: dict[str, FloatArray]
    if_copied: dict[str, FloatArray]


class Matches(NamedTuple):
    """Number of column sets in which a synthetic row equals each real row; see `matches`.

    Attributes:
        seen: The score; shape (rows,).
        most: The largest possible score, that of a copy; shape (rows,).
    """

    seen: FloatArray
    most: FloatArray


def membership_scores(
    real: pd.DataFrame,
    synthetic: pd.DataFrame,
    schema: Schema,
    *,
    of: IntArray,
    on_share: Callable[[float], None] = lambda share: None,
) -> MembershipScores:
    """Scores some real rows by each attack.

    `closest` is minus the distance to the nearest synthetic row. `relative` and `density-ratio`
    compare the first, or the fifth, nearest synthetic row with that among the other real rows:
    estimates of the density ratio of DOMIAS (van Breugel et al. 2023). `matching` counts the sets
    of columns, all but up to two, in which some synthetic row equals the row; the more other real
    rows equal it there, the less a set counts.

    Args:
        real: All real rows, of train and hold-out, in an order that does not depend on membership.
        synthetic: The synthetic table.
        schema: Their schema.
        of: The real rows to score, ascending.
        on_share: Called with the share of the work that is done.

    Returns:
        The scores.

    Raises:
        MissingExtraError: If the tables are large and FAISS is not installed.
    """
    rows = encode(real, schema)
    most = min(_NEIGHBOURS, len(synthetic), len(real) - 1)
    some = None if len(of) == len(rows) else of  # avoids copying a large table
    queries = rows if some is None else rows[some]
    drawn = find_nearest(
        queries,
        encode(synthetic, schema),
        neighbours=most,
        on_share=lambda share: on_share(0.4 * share),
    ).distances
    del queries
    on_share(0.4)
    others = nearest_others(
        rows, neighbours=most, of=some, on_share=lambda share: on_share(0.4 + 0.4 * share)
    ).distances
    del rows
    on_share(0.8)
    matched = matches(
        values_of_table(real, schema), values_of_table(synthetic, schema), schema, of=of
    )
    # With a copy of the row, the nearest distance is 0 and every other one moves up a rank.
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
        schema: Their schema.
        of: The real rows to score.

    Returns:
        For each row, the sum of 1/(1 + other real rows equal to it) over the sets with an equal
        synthetic row, and over all sets.
    """
    ours, drawn = (
        np.ascontiguousarray(column_keys(_bin_numbers(values, schema)).T)
        for values in (real, synthetic)
    )
    whole, whole_drawn = (keys.sum(axis=0, dtype=np.uint64) for keys in (ours, drawn))
    score, most = np.zeros(len(of)), np.zeros(len(of))
    for left_out in _columns_to_leave_out(real.shape[1]):
        places = list(left_out)
        equal, is_drawn = _count_equal(
            whole - ours[places].sum(axis=0, dtype=np.uint64),
            whole_drawn - drawn[places].sum(axis=0, dtype=np.uint64),
        )
        weight = 1.0 / equal[of]
        score += is_drawn[of] * weight
        most += weight
    return Matches(score, most)


def _count_equal(keys: Keys, drawn: Keys) -> tuple[IntArray, BoolArray]:
    """How many keys [n] equal each, itself included, and whether one that was drawn does."""
    # Hashed together, which takes a third of the time of sorting both.
    group, _ = pd.factorize(np.concatenate([keys, drawn]))
    group, group_drawn = group[: len(keys)], group[len(keys) :]
    is_drawn = np.zeros(max(group.max(), group_drawn.max()) + 1, dtype=np.bool_)
    is_drawn[group_drawn] = True
    return np.bincount(group)[group], is_drawn[group]


def _columns_to_leave_out(columns: int) -> Iterator[tuple[int, ...]]:
    """Sets of columns to leave out: none, single ones, then pairs, up to the limit."""
    sets: list[tuple[int, ...]] = [()]
    for size in (1, 2):
        more = list(combinations(range(columns), size)) if columns > size else []
        left = max(0, _MOST_SUBSETS - len(sets))
        step = max(1, -(-len(more) // left)) if left else 1
        sets += more[::step] if left else []
    yield from sets


def _bin_numbers(values: FloatArray, schema: Schema) -> FloatArray:
    """Replaces numbers of a wide range by their bins; shape (n, d)."""
    binned = values.copy()
    for place, column in enumerate(schema.columns):
        if column.kind.numeric:
            lower, upper = column.bounds
            whole = column.kind.name == "INTEGER" and upper - lower < _BINS
            if not whole:
                binned[:, place] = np.floor((values[:, place] - lower) / (upper - lower) * _BINS)
    return binned


class Grouped(NamedTuple):
    """Rows in groups, one for each unit.

    Attributes:
        of: The unit of each row, from 0 without gaps; shape (n,).
    """

    of: IntArray

    @staticmethod
    def by(owners: IntArray) -> Grouped:
        """Groups rows with equal numbers, in order of appearance."""
        return Grouped(pd.factorize(owners)[0])

    @property
    def first(self) -> IntArray:
        """The first row of each group; shape (u,)."""
        return np.unique(self.of, return_index=True)[1]

    @property
    def sizes(self) -> IntArray:
        """Rows of each group; shape (u,)."""
        return np.bincount(self.of)

    def mean(self, values: FloatArray) -> FloatArray:
        """The mean value of each group's rows; shape (u,)."""
        means: FloatArray = np.bincount(self.of, values) / self.sizes
        return means

    def ranked(self, values: npt.NDArray[np.floating], rank: int) -> FloatArray:
        """The `rank`-smallest value, from 0, of each group's rows; shape (u,).

        Infinite for groups with too few rows.
        """
        order = np.lexsort((values, self.of))
        place = np.cumsum(self.sizes) - self.sizes + rank
        has = rank < self.sizes
        values_at_rank = np.full(len(self.sizes), np.inf)
        values_at_rank[has] = values[order[place[has]]]
        return values_at_rank

    def any(self, holds: BoolArray, *, least: int = 1) -> BoolArray:
        """Which groups have at least `least` rows for which `holds` is true; shape (u,)."""
        enough: BoolArray = np.bincount(self.of, holds) >= least
        return enough

    def drawn(self, rng: np.random.Generator) -> IntArray:
        """A random row of each group; shape (u,)."""
        order = rng.permutation(len(self.of))
        return np.sort(order[np.unique(self.of[order], return_index=True)[1]])


class ComparedUnits(NamedTuple):
    """The units of the rows that are compared.

    Attributes:
        train: Units of the compared train rows.
        holdout: Units of the compared hold-out rows.
    """

    train: Grouped
    holdout: Grouped


def unit_scores(scores: MembershipScores, rows: Grouped) -> MembershipScores:
    """Scores of units by each attack: the mean of their rows, and their best row.

    If each unit has one row, these are the scores of the rows.

    Args:
        scores: Scores of the rows.
        rows: The rows of each unit.
    """

    def of_units(by_attack: dict[str, FloatArray]) -> dict[str, FloatArray]:
        units = {name: rows.mean(of) for name, of in by_attack.items()}
        if rows.sizes.max() > 1:
            units |= {name + BEST_ROW: -rows.ranked(-of, 0) for name, of in by_attack.items()}
        return units

    return MembershipScores(seen=of_units(scores.seen), if_copied=of_units(scores.if_copied))
