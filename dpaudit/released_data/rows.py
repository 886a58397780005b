"""Rows that are equal or near: keys of whole rows, and distances between encoded ones."""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing.pool import ThreadPool
from typing import Any, Final, NamedTuple

import loky
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
FARTHEST: Final = 10.0
"""Encoded values are clipped here: a table may hold any finite number."""
LARGE: Final = 4 * 10**10
"""Largest number of pairs of rows for an exact search; larger tables are searched by an index."""
_MANY: Final = 10**8
"""The same where nearly all of the nearest rows are enough."""
_ROWS_AT_ONCE: Final = 2**14
_QUERIES_AT_ONCE: Final = 2**15
_LISTS: Final = 512
_SEARCHED: Final = 3
_MOST_SEARCHED: Final = 1250
"""Divided by the number of lists: how many to search where there are few."""
_PER_LIST: Final = 128
_LEARNED: Final = 32
"""Rows per list by which the lists are made."""
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

    Up to `LARGE` pairs of rows the search is exact. Beyond, an inverted index of FAISS searches
    among rows similar to the query: it finds every exact copy, and nearly always the nearest row.
    No limit depends on finding the nearest one.

    Args:
        queries: Rows [n, width], as `encode` gives them.
        reference: Rows [m, width] to search.
        neighbours: How many to find for each query, from 1 to m.
        exact: Whether all must be found in smaller tables, too.
        on_share: Called with the share of the queries that are answered.

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
    pairs, faiss = len(queries) * len(reference), _import_faiss()
    if pairs > LARGE and faiss is None:
        searched = f"searching {len(reference):,} rows for {len(queries):,}"
        raise MissingExtraError(searched, "faiss-cpu", "large")
    is_large = pairs > (LARGE if exact or faiss is None else _MANY)
    most = min(neighbours + _TIED, len(reference))
    with threadpool_limits(limits=1):  # threads that wait for a core spin, at twice the cost
        if is_large:
            indices = _search_index(faiss, queries, reference, most, on_share)
        else:
            indices = _search_exactly(faiss, queries, reference, most)
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


def _import_faiss() -> Any:
    """The module, loaded before threads are limited; None if it is not installed."""
    try:
        import faiss
    except ImportError:
        return None
    return faiss


def _search_exactly(faiss: Any, queries: Encoded, reference: Encoded, neighbours: int) -> IntArray:
    """The nearest rows [n, k], in any order."""
    if faiss is None:
        from sklearn.neighbors import NearestNeighbors

        search = NearestNeighbors(n_neighbors=neighbours, algorithm="brute").fit(reference)
        indices = search.kneighbors(queries, return_distance=False)
    else:  # twice as fast
        _, indices = faiss.knn(*map(np.ascontiguousarray, (queries, reference)), neighbours)
    return np.asarray(indices, dtype=np.int64)


def _search_index(
    faiss: Any,
    queries: Encoded,
    reference: Encoded,
    neighbours: int,
    on_share: Callable[[float], None],
) -> IntArray:
    """Nearly always the nearest rows [n, k], in any order, by an inverted index of FAISS."""
    lists = min(_LISTS, max(1, len(reference) // _PER_LIST))
    columns = reference.shape[1]
    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(columns), columns, lists)
    index.cp.niter = 4
    index.cp.min_points_per_centroid, index.cp.max_points_per_centroid = 1, _LEARNED
    # Evenly spread rows, because FAISS copies its training rows.
    step = max(1, len(reference) // (lists * _LEARNED))
    index.train(np.ascontiguousarray(reference[::step]))
    index.add(reference)
    index.nprobe = min(max(_SEARCHED, _MOST_SEARCHED // lists), lists)
    indices = np.empty((len(queries), neighbours), dtype=np.int64)

    def search(start: int) -> int:
        asked = queries[start : start + _QUERIES_AT_ONCE]
        apart, nearby = index.quantizer.search(asked, index.nprobe)
        # Queries list by list: each list stays in the cache, which needs a third of the time.
        order = np.argsort(nearby[:, 0])
        rows = index.search_preassigned(asked[order], neighbours, nearby[order], apart[order])[1]
        indices[start + order] = rows
        return start + len(asked)

    # Each thread searches alone, because FAISS's own threads spin while they wait.
    with ThreadPool(loky.cpu_count(), faiss.omp_set_num_threads, (1,)) as threads:
        for answered in threads.imap(search, range(0, len(queries), _QUERIES_AT_ONCE)):
            on_share(answered / len(queries))
    # Lists with too few rows leave places empty, at -1: the row found before fills them.
    for place in range(1, neighbours):
        empty = indices[:, place] < 0
        indices[empty, place] = indices[empty, place - 1]
    return np.maximum(indices, 0)


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
