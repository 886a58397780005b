"""Rows that are equal or near: keys of whole rows, and distances between encoded ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
from threadpoolctl import threadpool_limits

from dpaudit.errors import MissingExtraError
from dpaudit.model.encoding import encode_values, values_of_table, width
from dpaudit.model.schema import Schema
from dpaudit.model.setting import NumberRange, check_number
from dpaudit.plugins.protocols import FloatArray, IntArray

Keys = npt.NDArray[np.uint64]
_STEP: Final = np.uint64(0x9E3779B97F4A7C15)
Encoded = npt.NDArray[np.float32]
_Knn: TypeAlias = Callable[[Encoded, Encoded, int], tuple[Encoded, IntArray]]
"""From queries, rows and a number: distances of so many nearest rows (or squares), and places."""
FARTHEST: Final = 10.0
"""Encoded values are clipped here: a table may hold any finite number."""
LARGE: Final = 4 * 10**10
"""Largest number of pairs of rows for an exact search; larger tables are searched by lists."""
_MANY: Final = 10**8
"""The same where nearly all of the nearest rows are enough."""
_ROWS_AT_ONCE: Final = 2**14
_SEARCHES_AT_ONCE: Final = 2**20
"""Queries times the lists that each searches."""
_LISTS: Final = 512
_SEARCHED: Final = 3
_MOST_SEARCHED: Final = 1250
"""Divided by the number of lists: how many to search where there are few."""
_PER_LIST: Final = 128
_PER_QUERY: Final = 20
"""With few queries the square of the number of lists is this many times theirs: more lists would
take longer to make than they save."""
_LEARNED: Final = 32
"""Rows per list by which the lists are made."""
_ROUNDS: Final = 4
"""Rounds of k-means."""
_TIED: Final = 4
"""Further rows that are looked at, so that of equally near ones the first counts."""


def column_keys(values: FloatArray) -> Keys:
    """A key for each value, different in each column.

    The key of a row over some columns is the sum of their keys, modulo 2**64, so columns are left
    out by subtraction.

    Args:
        values: Values [n, d], as `dpaudit.model.encoding.values_of_table` gives them.

    Returns:
        Keys [n, d].
    """
    keys = np.empty(values.shape, dtype=np.uint64)
    for place in range(values.shape[1]):
        numbers = values[:, place] + 0.0  # a negative zero is zero
        numbers[np.isnan(numbers)] = np.nan  # one missing value, whatever its bits
        own = np.uint64(int(_STEP) * (2 * place + 1) % 2**64)
        keys[:, place] = _mix(_mix(numbers.view(np.uint64)) + own)
    return keys


def row_keys(values: FloatArray) -> Keys:
    """Keys [n] of rows with values [n, d], over all columns."""
    keys: Keys = column_keys(values).sum(axis=1, dtype=np.uint64)
    return keys


def _mix(bits: Keys) -> Keys:
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014), a permutation of 64 bits."""
    bits = bits + _STEP
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Keys = bits ^ (bits >> np.uint64(31))
    return mixed


class NearestRows(NamedTuple):
    """The nearest rows of a reference table to each query.

    Attributes:
        distances: Euclidean distances, ascending; shape (queries, neighbours).
        indices: Rows of the reference table; shape (queries, neighbours).
    """

    distances: Encoded
    indices: IntArray


def encode(table: pd.DataFrame, schema: Schema) -> Encoded:
    """A table encoded as by `dpaudit.model.encoding.encode`, in single precision.

    Args:
        table: A canonical table.
        schema: Its schema.

    Returns:
        Matrix [n, width], made in blocks to save memory.
    """
    matrix = np.empty((len(table), width(schema)), dtype=np.float32)
    for start in range(0, len(table), _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        values = encode_values(values_of_table(table.iloc[rows], schema), schema)
        matrix[rows] = np.clip(values, -FARTHEST, FARTHEST)
    return matrix


def find_nearest(
    queries: Encoded,
    reference: Encoded,
    *,
    neighbours: int,
    exact: bool = True,
    on_share: Callable[[float], None] = lambda share: None,
) -> NearestRows:
    """The nearest rows of a reference table to each query.

    Up to `LARGE` pairs of rows the search is exact. Beyond, lists of similar rows are searched: it
    finds every exact copy, and nearly always the nearest row. No limit depends on finding the
    nearest one.

    Args:
        queries: Rows [n, width], as `encode` gives them.
        reference: Rows [m, width] to search.
        neighbours: How many to find for each query, from 1 to m.
        exact: Whether all must be found in smaller tables, too.
        on_share: Called with the share of the lists that are searched.

    Returns:
        Their distances and rows.

    Raises:
        SettingsError: If `neighbours` is out of range.
        MissingExtraError: If the tables are large and FAISS is not installed.
    """
    check_number("neighbours", neighbours, NumberRange(1, len(reference)))
    if not len(queries):
        return NearestRows(
            np.empty((0, neighbours), np.float32), np.empty((0, neighbours), np.int64)
        )
    pairs = len(queries) * len(reference)
    knn = _import_knn(needs_faiss=pairs > LARGE)
    most = min(neighbours + _TIED, len(reference))
    with threadpool_limits(limits=1):  # threads that wait for a core spin, at twice the cost
        if pairs <= (LARGE if exact else _MANY):
            indices = knn(queries, reference, most)[1]
        else:
            indices = _search_lists(knn, queries, reference, most, on_share)
    nearest = _sort_by_distance(queries, reference, np.sort(indices, axis=1))
    return NearestRows(nearest.distances[:, :neighbours], nearest.indices[:, :neighbours])


def nearest_others(
    rows: Encoded,
    *,
    neighbours: int,
    of: IntArray | None = None,
    on_share: Callable[[float], None] = lambda share: None,
) -> NearestRows:
    """The nearest other rows of the same table to each row; copies count as other rows.

    Args:
        rows: Rows [n, width], at least 2.
        neighbours: How many to find of each, from 1 to n - 1.
        of: The rows whose neighbours are wanted; by default all.
        on_share: As for `find_nearest`.

    Returns:
        Their distances and rows.

    Raises:
        SettingsError: If `neighbours` is out of range.
        MissingExtraError: As in `find_nearest`.
    """
    check_number("neighbours", neighbours, NumberRange(1, len(rows) - 1))
    asked = np.arange(len(rows)) if of is None else of
    queries = rows if of is None else rows[asked]
    distances, indices = find_nearest(queries, rows, neighbours=neighbours + 1, on_share=on_share)
    itself = indices == asked[:, None]
    itself[~itself.any(axis=1), -1] = True  # among many copies it may not be found
    return NearestRows(
        distances[~itself].reshape(len(asked), neighbours),
        indices[~itself].reshape(len(asked), neighbours),
    )


def _import_knn(*, needs_faiss: bool) -> _Knn:
    """The exact search, by products of matrices; loaded before threads are limited.

    Raises:
        MissingExtraError: If FAISS is needed and not installed.
    """
    try:
        import faiss
    except ImportError:
        if needs_faiss:
            pairs = f"searching more than {LARGE:,} pairs of rows"
            raise MissingExtraError(pairs, "faiss-cpu", "large") from None
    else:  # twice as fast
        return lambda queries, reference, neighbours: faiss.knn(
            np.ascontiguousarray(queries), np.ascontiguousarray(reference), neighbours
        )
    from sklearn.neighbors import NearestNeighbors

    return lambda queries, reference, neighbours: (
        NearestNeighbors(n_neighbors=neighbours, algorithm="brute")
        .fit(reference)
        .kneighbors(queries)
    )


def _search_lists(
    knn: _Knn,
    queries: Encoded,
    reference: Encoded,
    neighbours: int,
    on_share: Callable[[float], None],
) -> IntArray:
    """The nearest rows [n, k] in the lists of similar rows whose centres are nearest to each query.

    List by list, because a product of matrices with all queries of a list is several times as fast
    as comparing each query with the rows of its lists.
    """
    # With fewer queries making the lists would take longer than searching them.
    lists = min(_LISTS, max(1, len(reference) // _PER_LIST), math.isqrt(_PER_QUERY * len(queries)))
    searched = min(max(_SEARCHED, _MOST_SEARCHED // lists), lists)
    centres = _find_centres(knn, reference, lists)
    members = _group(knn(reference, centres, 1)[1], lists)
    nearest = np.zeros((len(queries), neighbours), dtype=np.int64)
    at_once = _SEARCHES_AT_ONCE // searched
    for start in range(0, len(queries), at_once):
        block = slice(start, start + at_once)
        asking = _group(knn(queries[block], centres, searched)[1], lists)
        shares = (of / len(queries) for of in (start, min(start + at_once, len(queries))))
        pairs = _report([*zip(members, asking, strict=True)], on_share, *shares)
        nearest[block] = _merge_lists(knn, queries[block], reference, pairs, neighbours)
    return nearest


def _report(
    pairs: Sequence[tuple[IntArray, IntArray]],
    on_share: Callable[[float], None],
    start: float,
    end: float,
) -> Iterator[tuple[IntArray, IntArray]]:
    """Reports how many of these have been taken, as shares from one to another."""
    for number, pair in enumerate(pairs, start=1):
        yield pair
        on_share(start + (end - start) * number / len(pairs))


def _find_centres(knn: _Knn, reference: Encoded, lists: int) -> Encoded:
    """The centres of lists of similar rows, by k-means on evenly spread rows."""
    rows = reference[:: max(1, len(reference) // (lists * _LEARNED))]
    centres = rows[np.linspace(0, len(rows) - 1, lists, dtype=np.int64)]
    for _ in range(_ROUNDS):
        for centre, members in enumerate(_group(knn(rows, centres, 1)[1], lists)):
            if len(members):
                centres[centre] = rows[members].mean(axis=0)
    return centres


def _group(lists: IntArray, number: int) -> list[IntArray]:
    """The rows [n] of each list, given the lists [n, s] of each row."""
    order = np.argsort(lists, axis=None, kind="stable")
    ends = np.bincount(lists.ravel(), minlength=number).cumsum()[:-1]
    return np.split(order // lists.shape[1], ends)


def _merge_lists(
    knn: _Knn,
    queries: Encoded,
    reference: Encoded,
    lists: Iterable[tuple[IntArray, IntArray]],
    neighbours: int,
) -> IntArray:
    """The nearest rows [n, k] in lists, each of some rows and the queries that search it."""
    apart = np.full((len(queries), neighbours), np.inf, dtype=np.float32)
    nearest = np.full((len(queries), neighbours), -1, dtype=np.int64)
    for rows, asked in lists:
        if not len(rows) or not len(asked):
            continue
        distances, places = knn(queries[asked], reference[rows], min(neighbours, len(rows)))
        both = np.concatenate([apart[asked], distances], axis=1)
        indices = np.concatenate([nearest[asked], rows[places]], axis=1)
        best = np.argpartition(both, neighbours - 1, axis=1)[:, :neighbours]
        apart[asked] = np.take_along_axis(both, best, axis=1)
        nearest[asked] = np.take_along_axis(indices, best, axis=1)
    # Lists with too few rows leave places empty, at -1: any row found fills them.
    return np.where(nearest < 0, np.maximum(nearest.max(axis=1, keepdims=True), 0), nearest)


def _sort_by_distance(queries: Encoded, reference: Encoded, indices: IntArray) -> NearestRows:
    """Distances from differences: a copy is at exactly 0, unlike with products of matrices."""
    distances = np.empty(indices.shape, dtype=np.float32)
    for start in range(0, len(queries), _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        for place in range(indices.shape[1]):
            differences = queries[rows] - reference[indices[rows, place]]
            distances[rows, place] = np.sqrt(np.einsum("ij,ij->i", differences, differences))
    order = np.argsort(distances, axis=1, kind="stable")
    return NearestRows(
        np.take_along_axis(distances, order, axis=1), np.take_along_axis(indices, order, axis=1)
    )
