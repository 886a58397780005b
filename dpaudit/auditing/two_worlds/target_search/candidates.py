"""The candidates of a search for the most vulnerable record.

A module of its own: workers import it, and `spec.py` takes a third of a second.
"""

from __future__ import annotations

from dpaudit.errors import TargetError
from dpaudit.game.target import exposing_first
from dpaudit.model.choices import VULNERABLE
from dpaudit.model.tables import Table

MOST_CANDIDATES = 64
"""As in the published audits of PATE-GAN."""
LARGEST_SHARE = 1 / 4
"""Largest share of the table; a model is trained without half of it."""


def candidates_of(table: Table) -> tuple[int, ...]:
    """The records that a search compares: exposed ones, then far ones, none with a copy.

    Returns:
        Their positions, the most exposed first: 64, or a quarter of the table's rows.

    Raises:
        TargetError: If there are fewer than two.
    """
    order = exposing_first(table.data, table.schema)
    rows = order[: min(MOST_CANDIDATES, int(LARGEST_SHARE * len(table.data)))]
    if len(rows) < 2:
        raise TargetError(
            f'`target="{VULNERABLE}"` compares records without an identical copy, at most a '
            f'quarter of the table, and finds {len(rows)}: name the target with `target="row:N"`'
        )
    return tuple(int(row) for row in rows)
