"""Which records of a table lie farthest from all others."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from dpaudit.model.encoding import encode
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FloatArray, IntArray
from dpaudit.seeds import rng_of

NEIGHBOURS_AVERAGED: Final = 5
"""Nearest neighbours whose mean distance says how far a record is from the others."""
EXACT_ROWS: Final = 20_000
"""Largest table whose records are all compared with each other: a matter of seconds."""
COMPARED: Final = 1024
"""Of a larger table, the records that are compared with all others, and the first sample's size."""
_GROWTH: Final = 4
"""How much larger each sample is, and how many times fewer records are compared with it."""
_ROWS_AT_ONCE: Final = 32_768


def farthest_first(data: pd.DataFrame, schema: Schema, among: IntArray) -> IntArray:
    """Orders records by their mean distance to their 5 nearest neighbours in the encoded table.

    Of more than 20,000 rows, to compare all with each other takes minutes to hours. There every
    record is compared with a random sample of 1,024; the quarter that is farthest from it with one
    four times as large; and so on, until 1,024 records are compared with the whole table. They
    lead, in their true order. This is an approximation: a far record is dropped where, against one
    sample, a quarter of the records seem farther still. As no distance to a sample is smaller than
    the true one, that hardly ever happens to a record that is far from all others. The samples
    depend on the number of rows alone.

    Args:
        data: The table [n], canonical; at least 2 rows.
        schema: Its schema.
        among: Positions [m] of the records to order, ascending.

    Returns:
        The same positions, the farthest first; ties go to the earlier record.
    """
    if is_exact(len(data)):
        return _sorted(among, neighbour_distances(encode(data, schema))[among])
    rng = rng_of(len(data), "samples")
    left, dropped, size = among, among[:0], COMPARED
    while size < len(data) and len(left) > COMPARED:
        sample = np.sort(rng.choice(len(data), size, replace=False))
        order = _sorted(left, _distances(left, sample, data, schema))
        kept = max(COMPARED, len(left) // _GROWTH)
        left, dropped = np.sort(order[:kept]), np.concatenate([order[kept:], dropped])
        size *= _GROWTH
    everything = np.arange(len(data))
    first = _sorted(left, _distances(left, everything, data, schema))
    return np.concatenate([first, dropped])


def is_exact(rows: int) -> bool:
    """Whether every record of a table with so many rows is compared with every other."""
    return rows <= EXACT_ROWS


def neighbour_distances(matrix: FloatArray) -> FloatArray:
    """Mean distance [n] of each row of an encoded table [n, f] to its 5 nearest neighbours."""
    k = min(NEIGHBOURS_AVERAGED, len(matrix) - 1)
    means: FloatArray = _nearest(matrix, matrix, k + 1)[:, 1:].mean(axis=1)
    return means


def _distances(
    positions: IntArray, sample: IntArray, data: pd.DataFrame, schema: Schema
) -> FloatArray:
    """Mean distance [m] of some records to their 5 nearest neighbours in a sample of the table."""
    means = []
    for own in _parts(positions):
        records = encode(data.iloc[own], schema)
        nearest = np.full((len(own), NEIGHBOURS_AVERAGED + 1), np.inf)
        for others in _parts(sample):
            rows = encode(data.iloc[others], schema)
            found = _nearest(rows, records, min(nearest.shape[1], len(rows)))
            nearest = np.sort(np.hstack([nearest, found]), axis=1)[:, : nearest.shape[1]]
        within = np.isin(own, sample)  # where the nearest of all is the record itself
        means.append(np.where(within, nearest[:, 1:].mean(axis=1), nearest[:, :-1].mean(axis=1)))
    return np.concatenate(means)


def _parts(positions: IntArray) -> list[IntArray]:
    return [
        positions[start : start + _ROWS_AT_ONCE]
        for start in range(0, len(positions), _ROWS_AT_ONCE)
    ]


def _nearest(rows: FloatArray, queries: FloatArray, count: int) -> FloatArray:
    """Distances [m, count] of some queries [m, f] to the nearest rows [n, f], ascending."""
    from sklearn.neighbors import NearestNeighbors

    distances, _ = NearestNeighbors(n_neighbors=count).fit(rows).kneighbors(queries)
    found: FloatArray = distances
    return found


def _sorted(positions: IntArray, distances: FloatArray) -> IntArray:
    """Positions [m] by their distances [m], the largest first."""
    return positions[np.argsort(-distances, kind="stable")]
