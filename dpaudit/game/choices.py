"""Names of choices: of a target, of an engine; apart from what they name, which loads pandas."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

EXPOSING: Final = "exposing"
"""The record that most facts of the table hold of alone, such as extremes of columns."""
FARTHEST: Final = "farthest"
"""The record with the largest mean distance to its nearest neighbours."""
VULNERABLE: Final = "vulnerable"
"""The record that small attacks find easiest, which takes trainings of its own."""


class EngineName(StrEnum):
    """Where trials run."""

    LOCAL = "local"
    DASK = "dask"
