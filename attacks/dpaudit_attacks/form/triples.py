"""Information in three columns that no two of them have."""

from __future__ import annotations

from typing import Final

from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FeatureName, FloatArray, IntArray
from dpaudit_attacks.columns import settled, slot_counts
from dpaudit_attacks.form.dependence import groups_of
from dpaudit_attacks.form.relations import MOST_TRIPLES, joined, places
from dpaudit_attacks.form.view import Beside, FeatureGroup, labelled, numeric_names, other_names
from dpaudit_attacks.rules import n_log_n

GROUPS: Final = 3
"""Groups of a column's values; missing and unnamed ones are a further group."""
LABEL: Final = "information beyond pairs"


def triples_names(schema: Schema) -> list[FeatureName]:
    """Names of the features; see `triples_values`."""
    columns = numeric_names(schema) + other_names(schema)
    return labelled(joined(columns, 3, MOST_TRIPLES), (LABEL,))


def triples_values(view: Beside) -> FloatArray:
    """Interaction information, in nats, of three columns (McGill 1954).

    The mutual information of two columns given the third, minus their mutual information: positive
    if two together say more about the third than each alone, negative if what they say is the same.
    Numbers are in three groups between the tertiles of their own synthetic table; categories in at
    most three groups of neighbours.

    Args:
        view: M tables.

    Returns:
        Features [M, triples].
    """
    groups = groups_of(view, GROUPS)
    n_tables, columns, n_rows = groups.shape
    a, b, c = places(columns, 3, MOST_TRIPLES)
    size = GROUPS + 1
    slots = (groups[:, a] * size + groups[:, b]) * size + groups[:, c]
    counts = slot_counts(slots.reshape(-1, n_rows), size**3).reshape(-1, size, size, size)
    table = n_log_n(n_rows)

    def total(away: tuple[int, ...]) -> FloatArray:
        """Sum of k log k over the groups of the columns that are not summed away."""
        rest: IntArray = counts.sum(axis=away)
        found: FloatArray = table[rest].sum(axis=tuple(range(1, rest.ndim)))
        return found

    triple = total(())
    pairs = total((1,)) + total((2,)) + total((3,))
    single = total((1, 2)) + total((1, 3)) + total((2, 3))
    found = (triple - pairs + single - table[n_rows]) / n_rows
    return settled(found).reshape(n_tables, -1)


TRIPLES = FeatureGroup(triples_names, triples_values)
