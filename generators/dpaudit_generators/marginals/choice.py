"""Which pairs of columns are measured: by the schema alone, or chosen from the data with noise."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import breadth_first_order

from dpaudit.plugins.protocols import FloatArray, IntArray
from dpaudit_generators.marginals.domain import Domain
from dpaudit_generators.marginals.tables import ROOT

_BLOCK: Final = 4096
"""Records that are counted at a time."""


class Structure(StrEnum):
    """Which pairs of columns are measured."""

    AUTO = "auto"
    """Those of the label if the schema names one, else chosen ones."""
    LABEL = "label"
    """Every column with the label; public."""
    DEVIATIONS = "deviations"
    """The same, as deviations of each class from the columns alone, with less noise; public."""
    CHOSEN = "chosen"
    """A tree of the pairs that are farthest from independent; the choice is paid for."""
    INDEPENDENT = "independent"
    """No pairs; public."""


def joint_counts(domain: Domain, cells: IntArray) -> FloatArray:
    """How many records are in each two cells of all columns, [s, s].

    Args:
        domain: The public cells of the columns.
        cells: The cell of each record in each column [n, d].
    """
    starts = np.cumsum(domain.sizes) - domain.sizes
    found = np.zeros((int(domain.sizes.sum()),) * 2)
    for first in range(0, len(cells), _BLOCK):
        block = cells[first : first + _BLOCK]
        marks = np.zeros((len(block), len(found)), dtype=np.float32)  # exact below 2**24
        record, column = np.nonzero(block >= 0)
        marks[record, (block + starts)[record, column]] = 1.0
        found += marks.T @ marks
    return found


def distances(domain: Domain, joint: FloatArray, alone: FloatArray, total: float) -> FloatArray:
    """How far each pair of columns is from independent, [d, d].

    The sum of absolute differences between the counts of a pair and those that the columns alone
    would give. A record more or less changes one count by one, and so a distance by at most one.

    Args:
        domain: The public cells of the columns.
        joint: Counts of each two cells [s, s].
        alone: Released shares of the cells of each column [s].
        total: Released number of records.
    """
    starts = np.cumsum(domain.sizes) - domain.sizes
    off = np.abs(joint - total * np.outer(alone, alone))
    found: FloatArray = np.add.reduceat(np.add.reduceat(off, starts, axis=0), starts, axis=1)
    return found


def choose_tree(
    scores: FloatArray, *, epsilon: float, root: int, rng: np.random.Generator
) -> tuple[int, ...]:
    """Chooses the pairs of a tree, one after the other, by the exponential mechanism.

    Each of the d - 1 choices is among the pairs that join what no chosen pair has joined yet, as in
    Kruskal's algorithm; a pair's probability is proportional to exp(epsilon score / 2). Where a
    record changes every score by at most one, a choice has a privacy loss of range epsilon, hence
    epsilon^2 / 8-zCDP (Cesar and Rogers 2021).

    Args:
        scores: Of each pair of columns [d, d], symmetric.
        epsilon: Of each choice.
        root: The column that has no parent.
        rng: Of the choices.

    Returns:
        The parent of each column.
    """
    one, other = np.triu_indices(len(scores), 1)
    weights = epsilon / 2.0 * scores[one, other]
    part = np.arange(len(scores))
    edges = []
    while len(one):
        best = int((weights + rng.gumbel(size=len(one))).argmax())
        edges.append((int(one[best]), int(other[best])))
        part[part == part[other[best]]] = part[one[best]]
        apart = part[one] != part[other]
        one, other, weights = one[apart], other[apart], weights[apart]
    return _rooted(edges, len(scores), root)


def label_star(columns: int, label: int) -> tuple[int, ...]:
    """The tree in which the label is the parent of every other column."""
    return tuple(ROOT if column == label else label for column in range(columns))


def _rooted(edges: Sequence[tuple[int, int]], columns: int, root: int) -> tuple[int, ...]:
    if not edges:
        return (ROOT,) * columns
    one, other = np.array(edges).T
    graph = coo_array((np.ones(len(edges)), (one, other)), shape=(columns, columns))
    _, above = breadth_first_order(graph.tocsr(), root, directed=False)
    return tuple(ROOT if column == root else int(above[column]) for column in range(columns))
