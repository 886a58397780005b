"""Whether the outputs of a probe vary at all: where they do not, nothing can follow a record.

A constant keeps any claim, so it is no alarm; but a broken generator that gives one, or only
missing values, would pass every check of what its output follows. Such a probe does not apply.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

_NAMED = 3
_MISSING = "missing"


class Variation:
    """What varied in the synthetic tables of one probe."""

    def __init__(self) -> None:
        self._first: pd.DataFrame | None = None
        self._same = True
        self._seeds: set[object] = set()
        self._rows = 0
        self._values: dict[str, set[object]] = {}

    def add(self, table: pd.DataFrame, seeds: object) -> None:
        """Takes note of a table.

        Args:
            table: The synthetic table.
            seeds: What its randomness came from; equal for fits that must give equal tables.
        """
        if self._first is None:
            self._first = table
        elif self._same:
            self._same = self._first.equals(table)
        self._seeds.add(seeds)
        self._rows += len(table)
        for name in table.columns:
            seen = self._values.setdefault(str(name), set())
            if len(seen) < 2:
                some = table[name].drop_duplicates().head(2)
                seen.update(
                    _MISSING if gone else v for v, gone in zip(some, some.isna(), strict=True)
                )

    def still(self) -> list[str]:
        """Columns with one value, or only missing ones, in every row of every table."""
        if self._rows < 2:
            return []
        return [name for name, seen in self._values.items() if len(seen) < 2]

    def missing(self) -> list[str]:
        """Columns that are missing in every row of every table."""
        return [name for name in self.still() if self._values[name] == {_MISSING}]

    def nothing_in(self, columns: Sequence[str]) -> str | None:
        """Why nothing can be concluded from some columns.

        Args:
            columns: Their names.

        Returns:
            The reason in words; None if one of them varies.
        """
        if self._first is None:
            return None
        if self._same and len(self._seeds) > 1:
            seeds = len(self._seeds)
            return (
                f"{seeds} fits with seeds of their own gave one table: a constant follows nothing"
            )
        still = self.still()
        if not set(columns) <= set(still):
            return None
        what = "missing" if set(columns) <= set(self.missing()) else "the same value"
        return f"{listed(columns)}: {what} in every row of every fit, which follows nothing"


def listed(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
