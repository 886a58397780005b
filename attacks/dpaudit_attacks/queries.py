"""Query-based attacks: counts of synthetic rows that agree with chosen points.

Houssiau et al., "TAPAS: a Toolbox for Adversarial Privacy Auditing of Synthetic Data" (2022),
count rows that equal the target on random column subsets; the worst-case audit of Ganev,
Annamalai, De Cristofaro, "The Elusive Pursuit of Reproducing PATE-GAN" (TMLR 2025, section 6.2)
counts every point of a small domain.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import log10, prod
from typing import Any

import numpy as np
import pandas as pd

from dpaudit.errors import SettingsError
from dpaudit.protocols import BoolArray, FeatureName, FloatArray, GameView, IntArray
from dpaudit.schema import Category, Column, Kind
from dpaudit_attacks.base import ClassifierAttack, require_positive
from dpaudit_attacks.columns import bin_slots, category_slots, edges, numbers
from dpaudit_attacks.subsets import column_subsets

BLOCK = 1024
"""Distinct rows compared with all subsets at once: bounds the memory, whatever the table's size."""


@dataclass(frozen=True, kw_only=True)
class TargetQueries(ClassifierAttack):
    """For each of many column subsets, the number of rows equal to the target on all of it.

    Equal means: the same category, the same of `bins` equal bins over a numeric column's bounds
    (the same number, for an integer column of at most `bins` values), or missing in both. The
    empty subset counts the rows, which a sound game keeps constant.

    Attributes:
        max_queries: Most subsets asked about; all 2^d where they fit, see `column_subsets`.
        bins: Equal bins over a numeric column's bounds.

    Raises:
        SettingsError: If an option is outside its range.
    """

    max_queries: int = 4096
    bins: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("max_queries", self.max_queries)
        require_positive("bins", self.bins)

    def check(self, game: GameView) -> None:
        """Raises `SettingsError` if there is not a query for each single column."""
        self._subsets(game)

    def feature_names(self, game: GameView) -> tuple[FeatureName, ...]:
        """Names of the features, in the order of `features`."""
        columns = np.array(game.schema.names, dtype=object)
        names = [" & ".join(columns[mask]) for mask in self._subsets(game)]
        names[0] = "any values"
        return tuple(FeatureName(name, "rows equal to the target") for name in names)

    def features(self, table: pd.DataFrame, game: GameView) -> FloatArray:
        """Features [f] of one synthetic table in canonical form."""
        equal = np.column_stack(
            [
                _equal(column, table[column.name], game.target[column.name], self.bins)
                for column in game.schema.columns
            ]
        )
        return count_matches(equal, self._subsets(game))

    def _subsets(self, game: GameView) -> BoolArray:
        return column_subsets(len(game.schema.columns), self.max_queries)


@dataclass(frozen=True, kw_only=True)
class AbsoluteQueries(ClassifierAttack):
    """The number of rows equal to each point of a small domain.

    Attributes:
        max_points: Largest domain that can be counted.

    Raises:
        SettingsError: If an option is outside its range.
    """

    max_points: int = 4096

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("max_points", self.max_points)

    def check(self, game: GameView) -> None:
        """Raises `SettingsError` if the domain is continuous or larger than `max_points`."""
        for column in game.schema.columns:
            if column.kind is Kind.CONTINUOUS:
                raise SettingsError(
                    f"the points of a continuous column ({column.name!r}) cannot be counted: "
                    "use query-target"
                )
        size = prod(_n_values(column) for column in game.schema.columns)
        if size > self.max_points:
            shown = str(size) if size < 10**12 else f"about 10^{log10(size):.0f}"
            raise SettingsError(
                f"the domain has {shown} points, more than max_points={self.max_points}: "
                "raise it, or use query-target"
            )

    def feature_names(self, game: GameView) -> tuple[FeatureName, ...]:
        """Names of the features, in the order of `features`."""
        columns = " & ".join(game.schema.names)
        points = product(*(_values(column) for column in game.schema.columns))
        return tuple(
            FeatureName(columns, f"rows equal to ({', '.join(map(_shown, point))})")
            for point in points
        )

    def features(self, table: pd.DataFrame, game: GameView) -> FloatArray:
        """Features [f] of one synthetic table; a row outside the domain counts nowhere."""
        columns = game.schema.columns
        positions = np.array([_position(column, table[column.name]) for column in columns])
        inside = positions[:, (positions >= 0).all(axis=0)]
        sizes = tuple(_n_values(column) for column in columns)
        points = np.ravel_multi_index(tuple(inside), sizes)
        return np.bincount(points, minlength=prod(sizes)).astype(np.float64)


def count_matches(equal: BoolArray, subsets: BoolArray) -> FloatArray:
    """For each column subset, the number of rows that are equal on all of it.

    Args:
        equal: Where each row equals the target [n, d].
        subsets: Column subsets [q, d].

    Returns:
        Counts [q].
    """
    packed, times = np.unique(np.packbits(equal, axis=1), axis=0, return_counts=True)
    patterns = np.unpackbits(packed, axis=1, count=equal.shape[1])
    asked = subsets.T.astype(np.float32)  # float32 counts exactly up to 2^24 rows
    counts = np.zeros(len(subsets), dtype=np.float64)
    for start in range(0, len(patterns), BLOCK):
        block = slice(start, start + BLOCK)
        misses = np.subtract(1, patterns[block], dtype=np.float32) @ asked
        matches = np.maximum(1 - misses, 0)  # 1 where nothing is missed, else 0
        counts += times[block].astype(np.float32) @ matches
    return counts


def _equal(column: Column, values: pd.Series[Any], target: pd.Series[Any], bins: int) -> BoolArray:
    """Where values [n] equal the target's one."""
    if not column.kind.numeric:
        return np.equal(category_slots(column, values), category_slots(column, target))
    lower, upper = column.bounds
    found, wanted = numbers(values.to_frame(), [column])[0], numbers(target.to_frame(), [column])[0]
    if column.kind is Kind.INTEGER and upper - lower < bins:
        same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
        return np.asarray(same, dtype=np.bool_)
    cuts = edges(column, bins)
    return np.equal(bin_slots(found, cuts), bin_slots(wanted, cuts))


def _n_values(column: Column) -> int:
    """Number of possible values of a column that is not continuous."""
    if column.kind.numeric:
        lower, upper = column.bounds
        return int(upper - lower) + 1 + column.missing
    return len(column.categories) + column.missing


def _values(column: Column) -> list[Category | None]:
    """The possible values of a column that is not continuous, in order; None is missing."""
    lower, upper = column.bounds if column.kind.numeric else (0.0, -1.0)
    known = column.categories or range(int(lower), int(upper) + 1)
    return [*known, *[None] * column.missing]


def _position(column: Column, values: pd.Series[Any]) -> IntArray:
    """Position of each value [n] among the possible ones; -1 for any other."""
    if not column.kind.numeric:
        slots = category_slots(column, values)
        named = len(column.categories)
        return np.select([slots < named, (slots > named) & column.missing], [slots, named], -1)
    lower, upper = column.bounds
    found = numbers(values.to_frame(), [column])[0]
    missing = np.isnan(found)
    possible = (found >= lower) & (found <= upper) & (found % 1 == 0)
    offset = np.where(possible, found - lower, 0.0).astype(np.int64)
    last = _n_values(column) - 1
    return np.select([possible, missing & column.missing], [offset, last], -1)


def _shown(value: Category | None) -> str:
    return "missing" if value is None else repr(value)
