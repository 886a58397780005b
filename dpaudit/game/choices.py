"""Names of the choices of a target; apart from `target`, so that settings load without pandas."""

from __future__ import annotations

from typing import Final

EXPOSING: Final = "exposing"
"""The record that most facts of the table hold of alone, such as extremes of columns."""
FARTHEST: Final = "farthest"
"""The record with the largest mean distance to its nearest neighbours."""
VULNERABLE: Final = "vulnerable"
"""The record that small attacks find easiest, which takes trainings of its own."""
