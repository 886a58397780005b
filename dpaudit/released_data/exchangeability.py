"""Tests whether train and hold-out are exchangeable, like a random split of one population.

Without coins, every comparison of train with hold-out assumes it. The tests use only the real rows,
so they cannot confuse a leak with a difference between the tables. Each is a permutation test of
the rows, and so exact if all rows were equally likely to be in train.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from dpaudit.model.encoding import values_of_table
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import BoolArray, FloatArray, IntArray
from dpaudit.released_data.membership import enough
from dpaudit.released_data.rows import Encoded, Keys, column_keys, encode, nearest_others

MOST_REPEATS: Final = 0.01
"""Largest expected number of other rows equal to a comparable row.

Removing repeats changes the odds that a row is in train by at most about this share.
"""
LEVEL: Final = 0.05
"""Largest false-alarm rate of all tests together."""
_TESTS: Final = 5
_MOST_ROWS: Final = 10_000
_MOST_VALUES: Final = 2_000
_MOST_COLUMNS: Final = 30
_PERMUTATIONS: Final = 999
_NEIGHBOURS: Final = 5
_TELLING: Final = 0.5
"""How much more often neighbours in a column are of one table than by chance, at most 1."""
_DEPTHS: Final = (1, 3, 10, 30)
"""Number of outermost rows examined at each end of a numeric column."""


class Exchangeability(NamedTuple):
    """P-values of tests that train and hold-out are a random split, without the synthetic table.

    Attributes:
        repeats: How rows that occur more than once are distributed over the tables.
        extremes: How the largest and smallest values of numeric columns are distributed.
        marginals: Means of columns, frequencies of categories, and missing values.
        neighbours: How often the rows nearest to a row are in the same table.
        classifier: How well a classifier distinguishes train from hold-out rows.
        columns: Where a test rejects, the columns that each distinguish the tables by themselves,
            such as numbers of rows or people, or dates; else null.
    """

    repeats: float
    extremes: float
    marginals: float
    neighbours: float
    classifier: float
    columns: tuple[str, ...] | None = None

    @property
    def repeats_removed(self) -> bool:
        """Whether repeated rows are distributed as no random split would."""
        return self.repeats * _TESTS <= LEVEL

    @property
    def differ(self) -> bool:
        """Whether rows that occur once are distributed or grouped differently in the tables."""
        return self.least * _TESTS <= LEVEL

    @property
    def p_values(self) -> dict[str, float]:
        """The p-values by test."""
        return {name: p for name, p in self._asdict().items() if name != "columns"}

    @property
    def unlike_a_split(self) -> bool:
        """Whether a hold-out like this one decides nothing."""
        return self.repeats_removed or self.differ

    @property
    def least(self) -> float:
        """The least p-value of the tests of rows that occur once."""
        return min(self.extremes, self.marginals, self.neighbours, self.classifier)


def exchangeability(
    real: pd.DataFrame,
    inside: BoolArray,
    schema: Schema,
    rng: np.random.Generator,
    *,
    compared: IntArray,
) -> Exchangeability:
    """Runs the tests.

    Args:
        real: All real rows, in an order that does not depend on which table they are in.
        inside: Whether each is in train; shape (n,).
        schema: Their schema.
        rng: For samples and permutations.
        compared: The rows that are compared, which occur once.

    Returns:
        The p-values, at least 1/1000 each, and the columns behind small ones.
    """
    values = values_of_table(real, schema)
    numeric = [place for place, column in enumerate(schema.columns) if column.kind.numeric]
    some = np.sort(rng.permutation(compared)[:_MOST_ROWS])
    rows, label = encode(real.iloc[some], schema), inside[some]
    labels = np.array([label, *(rng.permutation(label) for _ in range(_PERMUTATIONS))])
    with threadpool_limits(limits=1):  # sums in another order would round otherwise
        tests = Exchangeability(
            repeats=repeats_p_value(column_keys(values), inside, rng),
            extremes=extremes_p_value(values[compared][:, numeric], inside[compared], rng),
            marginals=marginals_p_value(rows, labels),
            neighbours=neighbours_p_value(rows, labels),
            classifier=classifier_p_value(rows, label, rng),
        )
    if not tests.unlike_a_split:
        return tests
    pairs = zip(schema.names, values.T, strict=True)
    return tests._replace(columns=tuple(name for name, of in pairs if tells_apart(of, inside)))


def tells_apart(values: FloatArray, inside: BoolArray) -> bool:
    """Whether one column distinguishes the tables: its neighbouring values are of one table.

    A row number of a table that was cut in two does, and so does the number of a person whose rows
    are all in one table, whether it has gaps and repeats or not.

    Args:
        values: The values of all real rows, in an order that does not depend on `inside`.
        inside: Whether each is in train.
    """
    ordered = inside[np.argsort(values, kind="stable")]
    by_chance = inside.mean() ** 2 + (1.0 - inside.mean()) ** 2
    alike = float((ordered[1:] == ordered[:-1]).mean())
    return bool(alike - by_chance >= _TELLING * (1.0 - by_chance))


def repeats_p_value(keys: Keys, inside: BoolArray, rng: np.random.Generator) -> float:
    """Tests how rows that occur more than once are distributed over train and hold-out.

    A random split assigns each occurrence independently. If the hold-out's copies were removed, no
    such row is in both tables; if the repeats within each table were removed, none is in one table
    twice. Rows equal in all but one column count too, because repeats may have been removed by some
    columns only. The statistic is the largest distance of five counts from their mean, by their
    covariance, over all columns together and over all but each one.

    Args:
        keys: Keys of the values of all real rows, as `column_keys` gives them; shape (n, d).
        inside: Whether each is in train; shape (n,).
        rng: For permutations, and for a sample of columns and of values of a large table.

    Returns:
        The p-value; 1 if no row occurs twice.
    """
    whole: Keys = keys.sum(axis=1, dtype=np.uint64)
    columns = keys.T[rng.permutation(keys.shape[1])[:_MOST_COLUMNS]] if keys.shape[1] > 1 else ()
    sets = [_repeats(keys_of, rng) for keys_of in (whole, *(whole - column for column in columns))]
    sets = [repeated for repeated in sets if len(repeated.rows)]
    if not sets:
        return 1.0
    looked = np.unique(np.concatenate([repeated.rows for repeated in sets]))
    labels = np.array([inside[looked], *_random_splits(inside, len(looked), rng)])
    return _share_as_far(
        np.max([_distances(values.dealt(labels, looked)) for values in sets], axis=0)
    )


def _random_splits(inside: BoolArray, rows: int, rng: np.random.Generator) -> Iterator[BoolArray]:
    """Whether each of some rows is in train, by random splits of all."""
    for _ in range(_PERMUTATIONS):
        yield rng.choice(len(inside), size=rows, replace=False) < inside.sum()


class _Repeated(NamedTuple):
    """Rows whose value occurs more than once.

    Attributes:
        rows: Their positions, grouped by value; shape (r,).
        starts: Where each value starts among them.
        times: How often each value occurs.
    """

    rows: IntArray
    starts: IntArray
    times: IntArray

    def dealt(self, labels: BoolArray, looked: IntArray) -> FloatArray:
        """Counts [p, 5] of how they are split, given which of some rows are in train [p, l]."""
        own = labels[:, np.searchsorted(looked, self.rows)]
        there = np.add.reduceat(own, self.starts, axis=1, dtype=np.int32)
        elsewhere = self.times - there
        counts = (there, there * elsewhere, there > 1, elsewhere > 1, (there > 0) & (elsewhere > 0))
        return np.stack([of.sum(axis=1, dtype=np.float64) for of in counts], axis=1)


def _repeats(keys: Keys, rng: np.random.Generator) -> _Repeated:
    """The rows whose key occurs more than once; of many such keys a random sample."""
    _, value, counts = np.unique(keys, return_inverse=True, return_counts=True)
    chosen = np.zeros(len(counts), dtype=np.bool_)
    chosen[rng.permutation(np.flatnonzero(counts > 1))[:_MOST_VALUES]] = True
    rows = np.flatnonzero(chosen[value])
    rows = rows[np.argsort(value[rows], kind="stable")]
    times = counts[chosen]
    return _Repeated(rows, np.cumsum(times) - times, times)


def extremes_p_value(values: FloatArray, inside: BoolArray, rng: np.random.Generator) -> float:
    """Tests how the outermost rows of numeric columns are distributed over train and hold-out.

    If outliers were removed from one table, the outermost rows are in the other. They are counted
    at several depths over all ends, which a permutation of whole rows makes comparable.

    Args:
        values: Numeric columns [n, c] of the rows, in an order that does not depend on `inside`.
        inside: Whether each is in train; shape (n,).
        rng: For permutations.

    Returns:
        The p-value; 1 without rows or numeric columns.
    """
    deep = min(max(_DEPTHS), len(values))
    if not values.size:
        return 1.0
    ends = np.concatenate([values, -values], axis=1)
    outermost = np.argsort(ends, axis=0, kind="stable")[:deep]  # missing values come last
    looked, place = np.unique(outermost, return_inverse=True)
    place = place.reshape(outermost.shape)

    def found(trained: BoolArray) -> list[int]:
        there = trained[place].sum(axis=1).cumsum()
        return [int(there[min(depth, deep) - 1]) for depth in _DEPTHS]

    drawn = _random_splits(inside, len(looked), rng)
    return _distance_p_value([found(inside[looked]), *map(found, drawn)])


def marginals_p_value(rows: Encoded, labels: BoolArray) -> float:
    """Tests the means of encoded columns: the largest of all standardised differences.

    Args:
        rows: Encoded rows [n, w].
        labels: Whether each is in train [p, n]: as they are, and by permutations.

    Returns:
        The p-value; 1 without rows.
    """
    if not len(rows):
        return 1.0
    exact = rows.astype(np.float64)  # so that equal counts have equal sums
    spread = exact.std(axis=0)
    unit = (exact - exact.mean(axis=0))[:, spread > 0.0] / spread[spread > 0.0]
    largest = np.abs(labels.astype(np.float64) @ unit).max(axis=1, initial=0.0)
    return float((largest >= largest[0] * (1.0 - 1e-9)).mean())


def neighbours_p_value(rows: Encoded, labels: BoolArray) -> float:
    """The generalised edge-count test of Chen and Friedman (2017) on the nearest neighbours.

    It counts the pairs of neighbours that are both in train, and both in the hold-out. Both counts
    are large if the tables differ or rows come in groups; one is large and the other small if one
    table holds the more frequent kinds of rows.

    Args:
        rows: Encoded rows [n, w], in an order that does not depend on which are in train.
        labels: Whether each is in train [p, n]: as they are, and by permutations.

    Returns:
        The p-value; 1 if there are too few rows.
    """
    neighbours = min(_NEIGHBOURS, len(rows) - 1)
    if neighbours < 1:
        return 1.0
    near = nearest_others(rows, neighbours=neighbours, of=None).indices

    def joined(trained: BoolArray) -> list[int]:
        near_train = trained[near].sum(axis=1)
        inside, all_train = int(near_train[trained].sum()), int(near_train.sum())
        return [inside, near.size - neighbours * int(trained.sum()) - (all_train - inside)]

    return _distance_p_value([joined(trained) for trained in labels])


def classifier_p_value(rows: Encoded, inside: BoolArray, rng: np.random.Generator) -> float:
    """A classifier two-sample test of train and hold-out (Lopez-Paz and Oquab 2017), with ranks.

    A classifier learns to predict on one half of the rows which table a row is in, and ranks the
    other half.

    Args:
        rows: Encoded rows [n, w].
        inside: Whether each is in train; shape (n,).
        rng: For halves and permutations.

    Returns:
        The p-value; 1 if there are too few rows.
    """
    from scipy.stats import rankdata
    from sklearn.ensemble import ExtraTreesClassifier

    learning = np.zeros(len(rows), dtype=np.bool_)
    learning[rng.permutation(len(rows))[: len(rows) // 2]] = True
    if not enough(inside, learning):
        return 1.0
    model = ExtraTreesClassifier(
        50, min_samples_leaf=5, n_jobs=1, random_state=int(rng.integers(2**31))
    )
    model.fit(rows[learning], inside[learning])
    ranks = rankdata(model.predict_proba(rows[~learning])[:, 1])
    members = inside[~learning]
    seen = ranks[members].sum()
    drawn = [rng.permutation(ranks)[: members.sum()].sum() for _ in range(_PERMUTATIONS)]
    return float((1 + (np.array(drawn) >= seen - 1e-6).sum()) / (1 + _PERMUTATIONS))


def _distance_p_value(counts: list[list[int]]) -> float:
    """The share of permutations with counts at least as extreme as the first, observed ones."""
    return _share_as_far(_distances(np.asarray(counts, dtype=np.float64)))


def _distances(counts: FloatArray) -> FloatArray:
    """Squared distance of each row [p, c] from the mean of all by their covariance; shape (p,).

    Mean and covariance use all rows, so the observed row is treated like the others.
    """
    apart = counts - counts.mean(axis=0)
    inverse = np.linalg.pinv(np.atleast_2d(np.cov(apart.T)), rcond=1e-9, hermitian=True)
    distances: FloatArray = np.einsum("ij,jk,ik->i", apart, inverse, apart)
    return distances


def _share_as_far(distances: FloatArray) -> float:
    return float((distances >= distances[0] * (1.0 - 1e-9)).mean())


def comparable_rows(values: FloatArray) -> BoolArray:
    """Which rows occur once, and would hardly occur again by chance.

    Repeated rows are often removed when tables are prepared: from one table, from each separately,
    or from the hold-out if they are also in train. The table of a repeated row is then no longer
    random, and frequent rows end up in one table. A synthetic table independent of train has
    frequent rows too, and would seem to reveal membership. Rows that occur once are where the split
    put them, however the tables were prepared.

    A row is expected to occur as often as there are rows that equal it in all columns but one,
    times the probability that two rows have the same value there, whichever column gives most. The
    choice ignores which row is in which table: if train and hold-out are exchangeable, so are these
    rows.

    Args:
        values: All real rows [n, d], as `dpaudit.model.encoding.values_of_table` gives them.

    Returns:
        Whether each is comparable; shape (n,).
    """
    keys = column_keys(values)
    whole: Keys = keys.sum(axis=1, dtype=np.uint64)
    expected = _others_equal(whole).astype(np.float64)
    for column in keys.T:
        same_value = _others_equal(column).mean() / max(1, len(values) - 1)
        expected = np.maximum(expected, _others_equal(whole - column) * same_value)
    return expected <= MOST_REPEATS


def _others_equal(keys: Keys) -> IntArray:
    """How many other rows have the key of each; shape (n,)."""
    _, place, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return counts[place] - 1
