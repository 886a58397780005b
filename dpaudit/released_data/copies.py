"""Parts of a train table that appear verbatim in a synthetic one, compared with a hold-out.

Copies, exact and near, concern whole records; extremes and rare values concern single columns. A
generator that scales by a table's smallest and largest values, or takes categories from it, passes
on values that a single record may have. Neither is proof by itself: a record of the population may
appear in a synthetic table by chance, whether or not it was trained on. So the hits among hold-out
records are subtracted.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from dpaudit.bounds.inputs import bonferroni
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import BoolArray, FloatArray, IntArray
from dpaudit.released_data.rows import row_keys
from dpaudit.released_data.scores import ComparedUnits, Grouped

Distances = npt.NDArray[np.floating]
_SHARES: Final = (0.001, 0.01, 0.1)
"""Shares of the hold-out's first half within each threshold of a near copy."""
_FEWEST: Final = 5
"""Smallest number of hold-out records within a threshold."""
_PERMUTATIONS: Final = 999
_SURE: Final = 1e-9
"""Largest probability that all examined outermost records are in one table."""


class Hits(NamedTuple):
    """The number of records with a property.

    Attributes:
        found: Number of records with the property.
        of: Number of records.
    """

    found: int
    of: int

    @property
    def rate(self) -> float:
        """Their share; 0 if there are no records."""
        return self.found / self.of if self.of else 0.0

    def __str__(self) -> str:
        """Both numbers: "96 of 598"."""
        return f"{self.found:,} of {self.of:,}"


class Excess(NamedTuple):
    """Hits among train records compared with hits among hold-out records.

    If a random split decided which records were trained on, and the synthetic table does not depend
    on the split, every choice of this many train records among all records is equally likely, so
    the hits among them have a hypergeometric distribution (Fisher's exact test).

    Attributes:
        train: Hits among the train records.
        holdout: Hits among the hold-out records; None without a hold-out.
        p_value: Probability of at least this many hits among the train records if the synthetic
            table does not depend on the split; None without a hold-out.
        at_least: Lower confidence limit on the train records that are hits because they were
            trained on, corrected for the tests made with this one; None without a hold-out.
    """

    train: Hits
    holdout: Hits | None = None
    p_value: float | None = None
    at_least: int | None = None

    @property
    def proved(self) -> bool:
        """Whether some train records are hits because they were trained on."""
        return bool(self.at_least)


def excess_of(train: Hits, holdout: Hits | None, *, confidence: float, tests: int) -> Excess:
    """Compares hits among train records with hits among hold-out records.

    Args:
        train: Hits among the train records.
        holdout: Hits among the hold-out records; None if there are none.
        confidence: Probability that all limits of the family hold, in (0, 1).
        tests: How many tests the family has, at least 1.

    Returns:
        Both, the p-value (of this test alone), and the limit.

    Raises:
        SettingsError: If the confidence or the number of tests is out of range.
    """
    if holdout is None or not holdout.of:
        return Excess(train)
    level = 1.0 - bonferroni(confidence, tests)
    return Excess(
        train, holdout, excess_p_value(train, holdout), _excess_limit(train, holdout, level)
    )


def excess_p_value(train: Hits, holdout: Hits) -> float:
    """Probability that a random split puts at least this many hits among the train records.

    Args:
        train: Hits among the train records.
        holdout: Hits among the hold-out records.

    Returns:
        The one-sided p-value of Fisher's exact test.
    """
    hits, records = train.found + holdout.found, train.of + holdout.of
    counts = np.arange(train.found, min(hits, train.of) + 1)
    logs = _log_choose(train.of, counts) + _log_choose(holdout.of, hits - counts)
    logs -= _log_choose(records, np.asarray([hits]))
    return min(1.0, float(np.exp(logs).sum()))


def _excess_limit(train: Hits, holdout: Hits, level: float) -> int:
    """The smallest number of hits whose removal leaves a number explained by chance.

    If m train records are hits because they were trained on, and the others are hits by chance as
    hold-out records are, then at least `train.found - m` train records are hits by chance alone.
    Each m for which this is too unlikely is refuted, and the p-value rises with m.
    """

    def explained(removed: int) -> bool:
        rest = Hits(train.found - removed, train.of)
        return excess_p_value(rest, holdout) > level

    return bisect_left(range(train.found), True, key=explained)


def _log_choose(of: int, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    gammaln = scipy.special.gammaln
    logs = gammaln(of + 1.0) - gammaln(counts + 1.0) - gammaln(of - counts + 1.0)
    return np.asarray(logs, dtype=np.float64)


class ClosestDistances(NamedTuple):
    """Distances of real records to their nearest synthetic record.

    Attributes:
        train: Distances of the train records [n] that are compared with the hold-out.
        holdout: Distances of the hold-out records [h], in any order.
    """

    train: Distances
    holdout: Distances


class CopyFinding(NamedTuple):
    """Records that have a copy in the synthetic table.

    Attributes:
        within: Largest distance to the synthetic record; 0 for a copy of every value.
        share: Share of hold-out records by which the distance was chosen; None for exact copies.
        records: How many train and hold-out records have one.
    """

    within: float
    share: float | None
    records: Excess


class Copies(NamedTuple):
    """Findings about copies.

    Attributes:
        exact: Records equal to a synthetic record in every value, or units with such a row.
        near: Records with a synthetic record nearby, a finding for each threshold.
        synthetic: Synthetic records that equal a train record.
        riskiest: All compared rows of the train table, from 0, that have an exact copy; those
            farthest from all hold-out records come first, because chance explains them least.
        several: Units with copies of two rows or more, exact and near as above; null where rows
            are compared.
    """

    exact: CopyFinding
    near: tuple[CopyFinding, ...]
    synthetic: Hits
    riskiest: tuple[int, ...]
    several: tuple[CopyFinding, ...] | None = None

    @property
    def noun(self) -> str:
        """What a record is: "rows" or "units"."""
        return "rows" if self.several is None else "units"

    def clause(self, finding: CopyFinding) -> str:
        """What a proved finding says, in words for those who decide."""
        records, how = finding.records, ", value for value"
        if finding.share is not None:
            how = " with equal or close values"
        which = "stand"
        if self.several is not None:
            which = f"have {'two rows or more' if finding in self.several else 'a row'}"
        return (
            f"at least {records.at_least:,} of {records.train.of:,} training {self.noun} {which} "
            f"in the synthetic table{how}, because they were trained on"
        )

    @property
    def all(self) -> tuple[CopyFinding, ...]:
        """Every finding; those on two rows or more of a unit come first."""
        return (*(self.several or ()), self.exact, *self.near)

    @property
    def proved(self) -> bool:
        """Whether some train records have copies because they were trained on."""
        return any(finding.records.proved for finding in self.all)


def equal_rows(values: FloatArray, among: FloatArray) -> BoolArray:
    """Which rows occur in another table; missing values equal each other.

    Args:
        values: Rows [n, d], as `dpaudit.model.encoding.values_of_table` gives them.
        among: Rows [m, d] of the other table.

    Returns:
        Whether each row [n] occurs there.
    """
    return np.isin(row_keys(values), row_keys(among))


def nearness_thresholds(distances: Distances) -> tuple[tuple[float, float], ...]:
    """Thresholds for near copies: distances within which given shares of hold-out records lie.

    Args:
        distances: Distances of hold-out records [n] to their nearest synthetic record, infinite for
            units with too few rows; not the records that are counted.

    Returns:
        Pairs of a share and a distance above 0; empty if there are too few records.
    """
    thresholds = {}
    for share in _SHARES:
        if share * len(distances) >= _FEWEST:
            with np.errstate(invalid="ignore"):  # NaN between two infinite distances
                within = float(np.quantile(distances, share))
            if 0.0 < within < math.inf:
                thresholds[within] = share
    return tuple((share, within) for within, share in thresholds.items())


class Copied(NamedTuple):
    """Which records have copies, and how near the nearest synthetic record is.

    Attributes:
        train: Whether each train record [n] equals a synthetic one (`equal_rows`).
        holdout: The same for hold-out records [h]; None without a hold-out.
        closest: Distances to the nearest synthetic record; None without a hold-out.
    """

    train: BoolArray
    holdout: BoolArray | None
    closest: ClosestDistances | None


def find_copies(
    copied: Copied,
    several: Copied | None = None,
    *,
    synthetic_copied: BoolArray,
    riskiest: Sequence[int],
    rng: np.random.Generator,
    confidence: float,
) -> Copies:
    """Counts copies of train records and compares them with those of hold-out records.

    The hold-out is halved at random: one half chooses what counts as near, the other is counted.
    All limits hold at once with the given confidence.

    Args:
        copied: The records with copies, or the units with a copied row.
        several: The units with two copied rows or more; None where rows are compared.
        synthetic_copied: Whether each synthetic record [m] equals a train one.
        riskiest: Rows of the train table with an exact copy, the riskiest first.
        rng: Halves the hold-out.
        confidence: Probability that all limits hold, in (0, 1).

    Returns:
        The findings.

    Raises:
        SettingsError: If the confidence is out of range.
    """
    each = confidence if several is None else bonferroni(confidence, 2)
    exact, *near = _compare(copied, rng, confidence=each)
    return Copies(
        exact,
        tuple(near),
        _hits(synthetic_copied),
        tuple(riskiest),
        None if several is None else _compare(several, rng, confidence=each),
    )


def _compare(
    copied: Copied, rng: np.random.Generator, *, confidence: float
) -> tuple[CopyFinding, ...]:
    """The finding on exact copies, then those on near ones."""
    closest = copied.closest
    own: Distances = np.empty(0)
    counted = own
    thresholds: Sequence[tuple[float, float]] = ()
    if closest is not None:
        own, shuffled = closest.train, rng.permutation(closest.holdout)
        middle = len(shuffled) // 2
        thresholds, counted = nearness_thresholds(shuffled[:middle]), shuffled[middle:]
    tests = 1 + len(thresholds)
    exact = excess_of(
        _hits(copied.train),
        None if copied.holdout is None else _hits(copied.holdout),
        confidence=confidence,
        tests=tests,
    )
    near = [
        CopyFinding(
            within,
            share,
            excess_of(
                _hits(own <= within), _hits(counted <= within), confidence=confidence, tests=tests
            ),
        )
        for share, within in thresholds
    ]
    return (CopyFinding(0.0, None, exact), *near)


def _hits(holds: BoolArray) -> Hits:
    return Hits(int(holds.sum()), len(holds))


class RareValues(NamedTuple):
    """Values of one column that only a single record of train and hold-out has.

    Attributes:
        column: The column.
        minimum: Whether the smallest synthetic value is the smallest of the train table and not
            that of the hold-out; None for categories, or where they are the same.
        maximum: The same for the largest value.
        repeated: How many of those values the synthetic table has, for train and for hold-out
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
        outer: Ends among `alone` at which the train table's value is farther out.
        p_value: Probability that a random split makes the train table agree at least this much
            more often than the hold-out if the synthetic table does not depend on the split.
    """

    train: Hits
    holdout: Hits
    alone: int
    outer: int
    p_value: float

    def proved(self, level: float) -> bool:
        """Whether the ends depend on which records were trained on.

        If outliers were removed from train only, its ends lie inside the hold-out's, and the ends
        of any table without outliers agree with them. If bounds were inferred from train, they also
        agree where train reaches farther, at about half of the ends.
        """
        return self.p_value <= level and 4 * self.outer >= self.alone > 0


class Outliers(NamedTuple):
    """Findings about extremes and rare values.

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
        """Whether some values are in the synthetic table because their records were trained on."""
        return self.ends_proved or any(column.repeated.proved for column in self.columns)


def find_outliers(
    train: FloatArray,
    synthetic: FloatArray,
    holdout: FloatArray | None,
    schema: Schema,
    *,
    elsewhere: FloatArray | None = None,
    units: ComparedUnits | None = None,
    rng: np.random.Generator,
    confidence: float,
) -> Outliers:
    """Looks for values of single records in a synthetic table.

    Args:
        train: Values [n, d] of the train table, as `values_of_table` gives them.
        synthetic: Values [m, d] of the synthetic table.
        holdout: Values [h, d] of the hold-out; None if there is none.
        schema: Their schema.
        elsewhere: Values [k, d] of real records that are not compared; a value that also occurs
            here does not belong to a single record.
        units: The units of train and hold-out rows; None if each row stands for itself. The ends
            are then compared unit by unit, and a random row stands for each unit's rare values.
        rng: Draws random splits.
        confidence: Probability that all findings hold, in (0, 1).

    Returns:
        The findings.

    Raises:
        SettingsError: If the confidence is out of range.
    """
    numeric = [place for place, column in enumerate(schema.columns) if column.kind.numeric]
    ends = None
    none = train[:0]
    lone, lone_holdout = train, none if holdout is None else holdout
    elsewhere = none if elsewhere is None else elsewhere
    if holdout is not None and numeric:
        own, theirs = (_Extremes.of(of[:, numeric]) for of in (train, holdout))
        if units is not None:
            own, theirs = own.by(units.train), theirs.by(units.holdout)
        ends = _ends(own, synthetic[:, numeric], theirs, rng)
    if holdout is not None and units is not None:
        drawn = [units.train.drawn(rng), units.holdout.drawn(rng)]
        left = [
            np.delete(of, rows, axis=0) for of, rows in zip((train, holdout), drawn, strict=True)
        ]
        lone, lone_holdout = train[drawn[0]], holdout[drawn[1]]
        elsewhere = np.concatenate([elsewhere, *left])
    tests = 2 * len(schema.columns)  # half of the error for the ends, half for all columns
    columns = [
        RareValues(
            column.name,
            *_train_ends(place in numeric, train, synthetic, holdout, place),
            _rare(
                lone[:, place],
                synthetic[:, place],
                lone_holdout[:, place],
                elsewhere[:, place],
                confidence=confidence,
                tests=tests,
            ),
        )
        for place, column in enumerate(schema.columns)
    ]
    columns.sort(key=lambda rare: 1.0 if (p := rare.repeated.p_value) is None else p)
    level = (1.0 - confidence) / 2.0
    return Outliers(ends, tuple(columns), ends is not None and ends.proved(level))


def _rare(
    train: FloatArray,
    synthetic: FloatArray,
    holdout: FloatArray,
    elsewhere: FloatArray,
    *,
    confidence: float,
    tests: int,
) -> Excess:
    """Counts the values of single real records that the synthetic table repeats."""
    pooled = np.concatenate([train, holdout, elsewhere])
    _, first, counts = np.unique(pooled, return_index=True, return_counts=True, equal_nan=True)
    alone = first[(counts == 1) & (first < len(train) + len(holdout))]
    hit = np.isin(pooled[alone], synthetic) | (np.isnan(pooled[alone]) & np.isnan(synthetic).any())
    of_train = alone < len(train)
    return excess_of(
        _hits(hit[of_train]), _hits(hit[~of_train]), confidence=confidence, tests=tests
    )


def _train_ends(
    numeric: bool, train: FloatArray, synthetic: FloatArray, holdout: FloatArray | None, place: int
) -> tuple[bool | None, bool | None]:
    if not numeric or holdout is None:
        return None, None
    ends = [_ends_of(table[:, [place]])[:, 0] for table in (train, synthetic, holdout)]
    agrees: list[bool | None] = [
        None if own == other or math.isnan(own) else bool(out == own)
        for own, out, other in zip(*ends, strict=True)
    ]
    return agrees[0], agrees[1]


def _ends_of(values: FloatArray) -> FloatArray:
    """Smallest and largest value of each column [2, d]; NaN for a column without values."""
    low = np.where(np.isnan(values), np.inf, values).min(axis=0)
    high = np.where(np.isnan(values), -np.inf, values).max(axis=0)
    ends = np.stack([low, high])
    return np.where(np.isfinite(ends), ends, np.nan)


class _Extremes(NamedTuple):
    """The smallest and the largest number of each record in each column, both [n, c]."""

    low: FloatArray
    high: FloatArray

    @staticmethod
    def of(values: FloatArray) -> _Extremes:
        """The extremes of rows, each with one number per column."""
        return _Extremes(values, values)

    def by(self, rows: Grouped) -> _Extremes:
        """The extremes of units."""
        order = np.argsort(rows.of, kind="stable")
        starts = np.cumsum(rows.sizes) - rows.sizes
        return _Extremes(
            np.fmin.reduceat(self.low[order], starts), np.fmax.reduceat(self.high[order], starts)
        )

    @property
    def ends(self) -> FloatArray:
        """The smallest and the largest number of each column [2, c]."""
        return np.stack([_ends_of(self.low)[0], _ends_of(self.high)[1]])


def _ends(
    train: _Extremes, synthetic: FloatArray, holdout: _Extremes, rng: np.random.Generator
) -> Ends:
    """Compares the ends of tables by a permutation test over whole records."""
    lows, highs = map(np.concatenate, zip(train, holdout, strict=True))
    own = _ends_of(synthetic)
    records = len(lows)
    smaller = min(len(train.low), len(holdout.low)) / records
    deep = min(records, math.ceil(math.log(_SURE) / math.log1p(-smaller)))
    # A part agrees at an end if its outermost record has the synthetic table's value there. Only
    # the `deep` outermost records of each end are permuted: a random split leaves a part without
    # any of them with probability below `_SURE`.
    orders, agrees = [], []
    for low, high, smallest, largest in zip(lows.T, highs.T, *own, strict=True):
        for sign, column, end in ((1.0, low, smallest), (-1.0, high, largest)):
            order = _outermost(sign * column, deep)
            orders.append(order)
            agrees.append(column[order] == end)
    looked, places = np.unique(np.stack(orders), return_inverse=True)
    places = places.reshape(len(orders), deep)
    agree = np.stack(agrees)

    def agreeing(trained: BoolArray) -> list[int]:
        """Ends of each part at which it has the synthetic table's value."""
        inside = trained[places]
        return [
            int(np.take_along_axis(agree & part, part.argmax(axis=1)[:, None], axis=1).sum())
            for part in (inside, ~inside)
        ]

    in_train, in_holdout = agreeing(looked < len(train.low))
    excess = in_train - in_holdout
    as_many = 0
    for _ in range(_PERMUTATIONS):
        drawn = rng.choice(records, size=len(looked), replace=False) < len(train.low)
        train_ends, holdout_ends = agreeing(drawn)
        as_many += train_ends - holdout_ends >= excess
    of = len(orders)
    p_value = (1 + as_many) / (1 + _PERMUTATIONS)
    ends, others = train.ends, holdout.ends
    alone = (ends == own) & (ends != others)
    outer = int((alone & ((ends > others) == [[False], [True]])).sum())
    return Ends(Hits(in_train, of), Hits(in_holdout, of), int(alone.sum()), outer, p_value)


def _outermost(values: FloatArray, deep: int) -> IntArray:
    """Positions of the smallest values, ascending; missing values last."""
    outermost = np.argpartition(values, deep - 1)[:deep] if deep < len(values) else np.arange(deep)
    return outermost[np.argsort(values[outermost], kind="stable")]
