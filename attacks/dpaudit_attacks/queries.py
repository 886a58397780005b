"""Query-based attacks: counts of synthetic rows that equal chosen points.

Houssiau et al., "TAPAS: a Toolbox for Adversarial Privacy Auditing of Synthetic Data" (2022),
count rows that equal the target on random column subsets; the worst-case audit of Ganev,
Annamalai, De Cristofaro, "The Elusive Pursuit of Reproducing PATE-GAN" (TMLR 2025, section 6.2)
counts every point of a small domain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import combinations, pairwise, product
from math import comb, log10, prod
from typing import Final

import numpy as np
import numpy.typing as npt

from dpaudit.errors import SettingsError
from dpaudit.model.column import MISSING, Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.model.setting import AT_LEAST_1, check_number
from dpaudit.plugins.protocols import BoolArray, FeatureName, FloatArray, GameView, IntArray
from dpaudit.seeds import rng_of
from dpaudit_attacks.classifiers import CHOSEN, ClassifierAttack
from dpaudit_attacks.columns import (
    WORD,
    category_names,
    in_blocks,
    limits,
    pack_bits,
    slot_counts,
)


@dataclass(frozen=True, kw_only=True)
class TargetQueries(ClassifierAttack):
    """For each of many column subsets, the number of rows equal to the target on the subset.

    Equal means: the same category, the same of `bins` equal bins between a numeric column's bounds
    (the same number, for an integer column of at most `bins` values), or missing in both. The empty
    subset counts all rows, which a sound game keeps constant.

    For a unit with several rows: the number of rows equal to any of its rows, the number of its
    rows that have an equal row, and the number of equal pairs; then joint facts (`joint_values`).

    Attributes:
        max_queries: Largest number of subsets; all 2^d if they fit, see `column_subsets`. The rows
            of a unit share it.
        bins: Equal bins over a numeric column's bounds.

    Raises:
        SettingsError: If an option is outside its range.
    """

    max_queries: int = 4096
    bins: int = 10
    classifier: str = CHOSEN

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("max_queries", self.max_queries, AT_LEAST_1, whole=True)
        check_number("bins", self.bins, AT_LEAST_1, whole=True)

    def check(self, game: GameView) -> None:
        """Checks that `max_queries` covers every single column.

        Raises:
            SettingsError: If it does not.
        """
        self._subsets(game)

    def feature_names(self, game: GameView) -> tuple[FeatureName, ...]:
        """Names of the features, in the order of `features`."""
        columns = np.array(game.schema.names, dtype=object)
        names = [" & ".join(columns[mask]) for mask in self._subsets(game)]
        names[0] = "any values"
        if len(game.target) == 1:
            return tuple(FeatureName(name, "rows equal to the target") for name in names)
        counts = [FeatureName(name, count) for count in OF_UNITS for name in names]
        return (*counts, *joint_names(game.schema))

    def features_many(self, values: FloatArray, game: GameView) -> FloatArray:
        """Features [M, f] of the values [M, n, d] of many synthetic tables."""
        targets, subsets = matchers_of(game, self.bins), self._subsets(game)
        n_rows, columns = values.shape[1:]
        words = len(subsets) * -(-n_rows // WORD)

        def features(block: FloatArray) -> FloatArray:
            if len(targets) == 1:
                return count_matches(targets[0](block), subsets)
            equal = [match(block) for match in targets]
            joint = joint_values(equal, block, game.target_values, game.schema, self.bins)
            return np.concatenate([count_matches_of_any(equal, subsets), joint], axis=1)

        return in_blocks(features, values, cells=n_rows * columns * len(targets) + words)

    def _subsets(self, game: GameView) -> BoolArray:
        """The column subsets to count on; the rows of a unit share `max_queries`."""
        columns = len(game.schema.columns)
        if len(game.target) == 1:
            return column_subsets(columns, self.max_queries)
        shared = self.max_queries // len(game.target)
        return column_subsets(columns, min(self.max_queries, max(shared, columns + 2)))


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
        check_number("max_points", self.max_points, AT_LEAST_1, whole=True)

    def check(self, game: GameView) -> None:
        """Checks that the domain can be counted.

        Raises:
            SettingsError: If it is continuous or larger than `max_points`.
        """
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
        points = product(*(_value_names(column, game.schema) for column in game.schema.columns))
        return tuple(
            FeatureName(columns, f"rows equal to ({', '.join(point)})") for point in points
        )

    def features_many(self, values: FloatArray, game: GameView) -> FloatArray:
        """Features [M, f] of the values [M, n, d] of many synthetic tables.

        A row outside the domain is not counted.
        """
        columns = game.schema.columns
        sizes = [_n_values(column) for column in columns]
        n_points = prod(sizes)
        strides = n_points // np.cumprod(sizes)

        def features(block: FloatArray) -> FloatArray:
            points = np.zeros(block.shape[:2], dtype=np.int64)
            inside = np.ones(block.shape[:2], dtype=np.bool_)
            for column, found, stride in zip(columns, block.T, strides, strict=True):
                positions = _positions(column, found.T)
                inside &= positions >= 0
                points += stride * positions
            points[~inside] = n_points
            return slot_counts(points, n_points + 1)[:, :-1].astype(np.float64)

        return in_blocks(features, values, cells=values.shape[1] * len(columns))


@lru_cache(maxsize=8)
def matchers_of(game: GameView, bins: int) -> tuple[Callable[[FloatArray], BoolArray], ...]:
    """Functions that find where values [M, n, d] equal those of each row of the target.

    `TargetQueries` defines what equal means.

    Args:
        game: The game, for its target and schema.
        bins: Equal bins over a numeric column's bounds.
    """
    return tuple(_matcher(target, game.schema, bins) for target in game.target_values)


def _matcher(target: FloatArray, schema: Schema, bins: int) -> Callable[[FloatArray], BoolArray]:
    """The function for one row of the target."""
    columns = schema.columns
    intervals = [_equal_values(c, value, bins) for c, value in zip(columns, target, strict=True)]
    lowest, highest = np.array(intervals).T
    missing = np.isnan(target)

    def equal(values: FloatArray) -> BoolArray:
        inside = (values >= lowest) & (values <= highest)
        return np.asarray(inside | (missing & np.isnan(values)), dtype=np.bool_)

    return equal


def count_matches(equal: BoolArray, subsets: BoolArray) -> FloatArray:
    """For each column subset, the number of rows that are equal on all of it.

    The rows that are equal in a column are bits of words. The rows of a subset are the "and" of the
    words of its columns, and the bits set in it are counted.

    Args:
        equal: Where each row of M tables equals the target [M, n, d].
        subsets: Column subsets [q, d].

    Returns:
        Counts [M, q].
    """
    return _count_bits(_matches(equal, subsets))


OF_UNITS: Final = (
    "rows equal to any of the target's",
    "rows of the target that appear",
    "pairs of a row and an equal one of the target's",
)


def count_matches_of_any(equal: Sequence[BoolArray], subsets: BoolArray) -> FloatArray:
    """For each column subset, counts of rows that are equal on it to rows of a unit.

    Args:
        equal: For each row of the unit, where rows of M tables equal it [M, n, d].
        subsets: Column subsets [q, d].

    Returns:
        Counts [M, 3 q], in the order of `OF_UNITS`.
    """
    matches = [_matches(equal_to_row, subsets) for equal_to_row in equal]
    by_row = np.stack([_count_bits(rows) for rows in matches])
    appear = (by_row > 0).sum(axis=0).astype(np.float64)
    any_row = _count_bits(reduce(np.bitwise_or, matches))
    return np.concatenate([any_row, appear, by_row.sum(axis=0)], axis=1)


# Joint facts of a unit with several rows, which no single row of it has.
_SEQUENCES = "rows that follow each other as in the unit"
_SUMS = "values near the unit's sum"


def joint_names(schema: Schema) -> list[FeatureName]:
    """Names of the features; see `joint_values`."""
    numeric = [column.name for column in schema.columns if column.kind.numeric]
    return [
        *(FeatureName(name, _SEQUENCES) for name in (*schema.names, " & ".join(schema.names))),
        *(FeatureName(name, _SUMS) for name in numeric),
    ]


def joint_values(
    equal: Sequence[BoolArray],
    values: FloatArray,
    target: FloatArray,
    schema: Schema,
    bins: int,
) -> FloatArray:
    """Counts of sequences of the unit's rows and of its sums.

    Args:
        equal: For each row of the unit, where values of M tables equal its values [M, n, d].
        values: Values [M, n, d] of the tables.
        target: Values [k, d] of the unit.
        schema: Their schema.
        bins: A value is near a sum if they are at most half a bin apart, with this number of bins
            over its column's bounds.

    Returns:
        Features [M, f]: how often two neighbouring rows equal two neighbouring rows of the unit, in
        each column and in all columns; and for each numeric column the number of values near the
        unit's sum.
    """
    tables, _, columns = values.shape
    sequences = np.zeros((tables, columns + 1))
    for earlier, later in pairwise(equal):
        both = earlier[:, :-1] & later[:, 1:]
        sequences[:, :-1] += both.sum(axis=1)
        sequences[:, -1] += both.all(axis=2).sum(axis=1)
    sums = []
    for place, column in enumerate(schema.columns):
        if column.kind.numeric:
            lower, upper = column.bounds
            total = np.nansum(target[:, place])
            near = np.abs(values[:, :, place] - total) <= (upper - lower) / (2 * bins)
            sums.append(near.sum(axis=1))
    return np.column_stack([sequences, *sums]).astype(np.float64)


def _matches(equal: BoolArray, subsets: BoolArray) -> npt.NDArray[np.uint64]:
    """The rows that are equal on all of each subset, as bits of words [q, M, words]."""
    agreeing = pack_bits(equal.transpose(2, 0, 1))
    everywhere = pack_bits(np.ones(equal.shape[:2], dtype=np.bool_))
    rows = np.tile(everywhere, (len(subsets), 1, 1))  # [q, M, words]: all rows, then ever fewer
    for has_column, agreeing_rows in zip(np.ascontiguousarray(subsets.T), agreeing, strict=True):
        rows[np.flatnonzero(has_column)] &= agreeing_rows
    return rows


def _count_bits(rows: npt.NDArray[np.uint64]) -> FloatArray:
    """The number of bits set [M, q] in words [q, M, words]."""
    counts = np.bitwise_count(rows).sum(axis=-1).T
    return np.asarray(counts, dtype=np.float64)


def _equal_values(column: Column, value: float, bins: int) -> tuple[float, float]:
    """The lowest and highest value of a column that equal the target's; NaN if that is missing."""
    exact = not column.kind.numeric
    if column.kind is Kind.INTEGER:
        lower, upper = column.bounds
        exact = upper - lower < bins
    if exact or np.isnan(value):
        return value, value
    cuts = limits(column, bins)
    place = int(cuts.searchsorted(value, side="right"))
    lowest = cuts[place - 1] if place > 0 else -np.inf
    highest = np.nextafter(cuts[place], -np.inf) if place < len(cuts) else np.inf
    return lowest, highest


def _n_values(column: Column) -> int:
    """Number of possible values of a column that is not continuous."""
    if column.kind.numeric:
        lower, upper = column.bounds
        return int(upper - lower) + 1 + column.missing
    return len(column.categories) + column.missing


def _value_names(column: Column, schema: Schema) -> list[str]:
    """Names of the possible values of a column that is not continuous, in order."""
    missing = ["missing"] * column.missing
    if not column.kind.numeric:
        return category_names(column, schema) + missing
    lower, upper = column.bounds
    first = 1 - int(lower) if schema.inferred else 0  # its bounds are values of records: not named
    numbers = [str(value + first) for value in range(int(lower), int(upper) + 1)]
    return [f"value {name}" if schema.inferred else name for name in numbers] + missing


def _positions(column: Column, values: FloatArray) -> IntArray:
    """Position of each value [...] among the possible values; -1 for an impossible one."""
    first, last = column.bounds if column.kind.numeric else (0.0, len(column.categories) - 1.0)
    missing = np.isnan(values) if column.kind.numeric else values == MISSING
    possible = (values >= first) & (values <= last) & (values == np.floor(values))
    absent = np.where(missing & column.missing, last - first + 1, -1)
    return np.where(possible, values - first, absent).astype(np.int64)


_SEED = 0
"""The sample of subsets is public and the same in every trial, world and audit."""


@lru_cache(maxsize=8)
def column_subsets(n_columns: int, max_subsets: int) -> BoolArray:
    """Distinct subsets of d columns, by ascending order; always the same for the same arguments.

    All 2^d if they fit. Otherwise the empty subset, the full one and every single column; then,
    order by order, all subsets of that order if they fit into the remaining room, else random ones
    for half of that room. Low orders come first, because generators learn (and leak) low-order
    marginals best; a few subsets of high order detect near copies of the target.

    Args:
        n_columns: Number of columns d.
        max_subsets: Largest number of subsets.

    Returns:
        Read-only matrix [q, d], q <= max_subsets; entry (s, c) says whether subset s has column c.
        The first row is the empty subset, the last one the full subset.

    Raises:
        SettingsError: If the empty subset, the full one and the single columns do not all fit.
    """
    if max_subsets < 2**n_columns and max_subsets < n_columns + 2:
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
            chosen += _random_subsets(rng, n_columns, order, wanted)
            room -= wanted
    chosen.append(tuple(range(n_columns)))
    masks = np.zeros((len(chosen), n_columns), dtype=np.bool_)
    rows = np.repeat(np.arange(len(chosen)), [len(subset) for subset in chosen])
    masks[rows, np.concatenate([np.array(subset, dtype=np.intp) for subset in chosen])] = True
    masks.flags.writeable = False
    return masks


def _random_subsets(
    rng: np.random.Generator, n: int, order: int, wanted: int
) -> list[tuple[int, ...]]:
    """`wanted` distinct random subsets of `order` of n columns, sorted."""
    subsets: set[tuple[int, ...]] = set()
    while len(subsets) < wanted:
        subset = rng.choice(n, size=order, replace=False, shuffle=False)
        subsets.add(tuple(sorted(subset.tolist())))
    return sorted(subsets)
