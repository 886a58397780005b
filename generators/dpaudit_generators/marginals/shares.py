"""From noisy counts along a tree to the shares that records are drawn with: post-processing."""

from __future__ import annotations

import numpy as np

from dpaudit.plugins.protocols import FloatArray, IntArray
from dpaudit_generators.marginals.tables import TreeTables


def shares_along(tables: TreeTables, noisy: FloatArray, scales: FloatArray) -> FloatArray:
    """Shares of the cells in each row of each table.

    A count below 0 is 0. A column without a parent is counted in its own table and in those of all
    its children, and gets the mean with the smallest variance. A row that nothing is left of has
    the shares of its column, and those are equal if nothing is left of the column either.

    Args:
        tables: The tables.
        noisy: Noisy counts of all cells, flat.
        scales: Standard deviation of the noise on the cells of each table [d].

    Returns:
        Shares of all cells, flat; each row adds up to 1.
    """
    kept = np.maximum(_roots_averaged(tables, noisy, scales), 0.0)
    first, widths = tables.row_starts, tables.row_widths
    sums = np.add.reduceat(kept, first)
    for row in np.flatnonzero(sums == 0.0):
        column = int(np.searchsorted(tables.starts, first[row], side="right")) - 1
        own = tables.table(kept, column).sum(axis=0)
        own = own if own.any() else np.ones(len(own))
        kept[first[row] : first[row] + widths[row]] = own
        sums[row] = own.sum()
    shares: FloatArray = kept / np.repeat(sums, widths)
    return shares


def _roots_averaged(tables: TreeTables, noisy: FloatArray, scales: FloatArray) -> FloatArray:
    parents = np.array(tables.parents)
    averaged = noisy.copy()
    row_sums = np.add.reduceat(noisy, tables.row_starts)
    for root in tables.levels[0].tolist():
        children = np.flatnonzero(parents == root)
        if len(children) == 0:
            continue
        own = slice(tables.starts[root], tables.starts[root + 1])
        rows = tables.first_rows[children][:, None] + np.arange(tables.domain.sizes[root])
        counts = np.vstack([noisy[own], row_sums[rows]])
        sizes = np.append(1, tables.domain.sizes[children])
        precision = 1.0 / (sizes * scales[np.append(root, children)] ** 2)
        averaged[own] = precision @ counts / precision.sum()
    return averaged


def total_of(noisy: FloatArray, widths: IntArray, scales: FloatArray | float = 1.0) -> float:
    """An estimate of the number of records: each table's sum, the more the less noise it has.

    Args:
        noisy: Noisy counts of all tables, flat.
        widths: Cells of each table.
        scales: Standard deviation of the noise on the cells of each, or in proportion to it; one
            number if all have the same.
    """
    sums = np.add.reduceat(noisy, np.cumsum(widths) - widths)
    precision = 1.0 / (widths * scales**2)
    return float(precision @ sums / precision.sum())


def onto_simplex(values: FloatArray, widths: IntArray) -> FloatArray:
    """The nearest shares: numbers of at least 0 that add up to 1 (Duchi et al. 2008, figure 1).

    Args:
        values: Rows of numbers one after the other, flat.
        widths: How many are in each row, at least one.

    Returns:
        Shares in the same places; each row adds up to 1.
    """
    place = np.arange(widths.max())
    rows = np.full((len(widths), len(place)), -np.inf)
    rows[place < widths[:, None]] = values
    ordered = -np.sort(-rows, axis=1)
    beyond = np.cumsum(np.where(np.isfinite(ordered), ordered, 0.0), axis=1) - 1.0
    kept = (ordered * (place + 1) > beyond).sum(axis=1)
    shifts = beyond[np.arange(len(rows)), kept - 1] / kept
    shares: FloatArray = np.maximum(values - np.repeat(shifts, widths), 0.0)
    return shares
