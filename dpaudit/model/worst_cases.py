"""Names of the worst cases; apart from their tables, so that settings load without pandas."""

from __future__ import annotations

from enum import StrEnum


class WorstCase(StrEnum):
    """A pair of neighbouring tables made to show a leak, built from a public schema alone."""

    OPPOSITE = "opposite"
    ONE_HOT = "one-hot"
    NARROW = "narrow"
    MST = "mst"
    MIXED = "mixed"

    @property
    def meaning(self) -> str:
        """What the table is, in words."""
        return _MEANINGS[self]

    @property
    def has_own_schema(self) -> bool:
        """Whether its table is the same for every audit, so that no schema is handed in."""
        return self is WorstCase.MST


_MEANINGS = {
    WorstCase.OPPOSITE: "ten equal records, and one that differs from them in every column",
    WorstCase.ONE_HOT: "records spread over every column's values, and one that alone has the last "
    "value of each",
    WorstCase.NARROW: "as opposite, on three columns of the schema at most, the label among them",
    WorstCase.MST: "ten records (0, 0, 0) and one (1, 1, 1) in three binary columns; no schema is "
    "needed",
    WorstCase.MIXED: "ten records of two kinds, and one whose values all occur but not together",
}
