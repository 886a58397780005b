"""Extremes and rare values of a train table that stand verbatim in a synthetic one.

Whoever scales by the smallest and largest value of a table, or takes categories from it, hands on a
value that one record alone may have. Such a value is no proof by itself: a hold-out says how often
it is met by chance.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import BoolArray, FloatArray, IntArray
from dpaudit.released_data.copies import Excess, Hits, excess_of

_PERMUTATIONS: Final = 999
_SURE: Final = 1e-9
"""Probability, at most, that no record of a table is among the ends that are looked at."""


class RareValues(NamedTuple):
    """Values of one column that a single record has, of train and hold-out together.

    Attributes:
        column: The column.
        minimum: Whether the smallest synthetic value is the smallest of the train table and not
            that of the hold-out; None for categories, or where they are the same.
        maximum: The same of the largest.
        repeated: How many of those values the synthetic table has, of train and of hold-out
            records.
    """

    column: str
    minimum: bool | None
    maximum: bool | None
    repeated: Excess


class Ends(NamedTuple):
    """Smallest and largest values of all numeric columns.

    Attributes:
        train: Ends at which the synthetic table has the train table's value.
        holdout: Ends at which it has the hold-out's.
        alone: Ends of `train` at which the hold-out has another value.
        outer: Ends of these at which the train table's value is farther out.
        p_value: Probability that a random split makes the train table agree so much more often
            than the hold-out if the synthetic table does not depend on the split.
    """

    train: Hits
    holdout: Hits
    alone: int
    outer: int
    p_value: float

    def proved(self, level: float) -> bool:
        """Whether the ends depend on which records were trained on.

        Where outliers were removed from train alone, its ends lie inside the hold-out's, and those
        of any table without outliers agree with them. If bounds were read off train, they agree
        where train reaches farther, too, which is at about half of the ends.
        """
        return self.p_value <= level and 4 * self.outer >= self.alone > 0


class Outliers(NamedTuple):
    """All that is said of extremes and rare values.

    Attributes:
        ends: The ends of numeric columns; None without a hold-out or such columns.
        columns: Each column with its rare values, those with the smallest p-value first.
        ends_proved: Whether the ends depend on which records were trained on.
    """

    ends: Ends | None
    columns: tuple[RareValues, ...]
    ends_proved: bool

    @property
    def proved(self) -> bool:
        """Whether some values stand in the synthetic table because of who was trained on."""
        return self.ends_proved or any(one.repeated.proved for one in self.columns)


def find_outliers(
    train: FloatArray,
    synthetic: FloatArray,
    holdout: FloatArray | None,
    schema: Schema,
    *,
    elsewhere: FloatArray | None = None,
    rng: np.random.Generator,
    confidence: float,
) -> Outliers:
    """Looks for values of single records in a synthetic table.

    Args:
        train: Values [n, d] of the train table, as `values_of_table` gives them.
        synthetic: Of the synthetic table [m, d].
        holdout: Of the hold-out [h, d]; None if there is none.
        schema: Their schema.
        elsewhere: Of real records that are not compared [k, d]; a value that one of them has is
            not that of a single record.
        rng: Draws random splits.
        confidence: Probability that all findings hold, in (0, 1).

    Returns:
        The findings.

    Raises:
        SettingsError: If the confidence is out of range.
    """
    numeric = [place for place, one in enumerate(schema.columns) if one.kind.numeric]
    ends = None
    if holdout is not None and numeric:
        ends = _ends(train[:, numeric], synthetic[:, numeric], holdout[:, numeric], rng)
    tests = 2 * len(schema.columns)  # half of the error for the ends, half for all columns
    columns = [
        RareValues(
            column.name,
            *_own_ends(place in numeric, train, synthetic, holdout, place),
            _rare(
                train[:, place],
                synthetic[:, place],
                None if holdout is None else holdout[:, place],
                None if elsewhere is None else elsewhere[:, place],
                confidence=confidence,
                tests=tests,
            ),
        )
        for place, column in enumerate(schema.columns)
    ]
    columns.sort(key=lambda one: 1.0 if one.repeated.p_value is None else one.repeated.p_value)
    level = (1.0 - confidence) / 2.0
    return Outliers(ends, tuple(columns), ends is not None and ends.proved(level))


def _rare(
    train: FloatArray,
    synthetic: FloatArray,
    holdout: FloatArray | None,
    elsewhere: FloatArray | None,
    *,
    confidence: float,
    tests: int,
) -> Excess:
    """Values that one record of all real ones has, and how many the synthetic table repeats."""
    tables = [train, *(table for table in (holdout, elsewhere) if table is not None)]
    pooled = np.concatenate(tables)
    _, first, counts = np.unique(pooled, return_index=True, return_counts=True, equal_nan=True)
    compared = len(train) + (0 if holdout is None else len(holdout))
    alone = first[(counts == 1) & (first < compared)]
    hit = np.isin(pooled[alone], synthetic) | (np.isnan(pooled[alone]) & np.isnan(synthetic).any())
    of_train = alone < len(train)
    in_train = Hits(int(hit[of_train].sum()), int(of_train.sum()))
    in_holdout = Hits(int(hit[~of_train].sum()), int((~of_train).sum()))
    return excess_of(
        in_train, None if holdout is None else in_holdout, confidence=confidence, tests=tests
    )


def _own_ends(
    numeric: bool,
    train: FloatArray,
    synthetic: FloatArray,
    holdout: FloatArray | None,
    place: int,
) -> tuple[bool | None, bool | None]:
    if not numeric or holdout is None:
        return None, None
    ends = [_ends_of(table[:, [place]])[:, 0] for table in (train, synthetic, holdout)]
    found: list[bool | None] = [
        None if own == other or math.isnan(own) else bool(out == own)
        for own, out, other in zip(*ends, strict=True)
    ]
    return found[0], found[1]


def _ends_of(values: FloatArray) -> FloatArray:
    """Smallest and largest value of each column [2, d]; NaN of a column that has none."""
    low = np.where(np.isnan(values), np.inf, values).min(axis=0)
    high = np.where(np.isnan(values), -np.inf, values).max(axis=0)
    ends = np.stack([low, high])
    return np.where(np.isfinite(ends), ends, np.nan)


def _ends(
    train: FloatArray, synthetic: FloatArray, holdout: FloatArray, rng: np.random.Generator
) -> Ends:
    """Compares the ends of tables [., c] by a permutation test over whole records."""
    pooled = np.concatenate([train, holdout])
    own = _ends_of(synthetic)
    records = len(pooled)
    smaller = min(len(train), len(holdout)) / records
    deep = min(records, math.ceil(math.log(_SURE) / math.log1p(-smaller)))
    # the outermost records of each end, and whether their value is that of the synthetic table
    orders, agrees = [], []
    for column, low, high in zip(pooled.T, *own, strict=True):
        for sign, end in ((1.0, low), (-1.0, high)):
            order = _outermost(sign * column, deep)
            orders.append(order)
            agrees.append(column[order] == end)
    looked, places = np.unique(np.stack(orders), return_inverse=True)
    places = places.reshape(len(orders), deep)
    agree = np.stack(agrees)

    def agreeing(trained: BoolArray) -> tuple[int, int]:
        """Ends of each part at which it has the synthetic table's value."""
        inside = trained[places]
        line = np.arange(len(places))
        found = []
        for part in (inside, ~inside):
            outermost = part.argmax(axis=1)
            found.append(int((agree[line, outermost] & part[line, outermost]).sum()))
        return found[0], found[1]

    in_train, in_holdout = agreeing(looked < len(train))
    excess = in_train - in_holdout
    as_many = 0
    for _ in range(_PERMUTATIONS):
        drawn = rng.choice(records, size=len(looked), replace=False) < len(train)
        one, other = agreeing(drawn)
        as_many += one - other >= excess
    of = len(orders)
    p_value = (1 + as_many) / (1 + _PERMUTATIONS)
    ends, others = _ends_of(train), _ends_of(holdout)
    alone = (ends == own) & (ends != others)
    outer = int((alone & ((ends > others) == [[False], [True]])).sum())
    return Ends(Hits(in_train, of), Hits(in_holdout, of), int(alone.sum()), outer, p_value)


def _outermost(values: FloatArray, deep: int) -> IntArray:
    """Positions of the smallest values, in order; missing ones last."""
    found = np.argpartition(values, deep - 1)[:deep] if deep < len(values) else np.arange(deep)
    return found[np.argsort(values[found], kind="stable")]
