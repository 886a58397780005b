"""What the engine asks of a game: one table, and the one row of it that each trial lacks."""

from __future__ import annotations

from typing import Protocol

import pandas as pd

from dpaudit.protocols import GameView, World


class Playable(Protocol):
    """A game that the engine can play."""

    @property
    def view(self) -> GameView:
        """What the attacker knows."""
        ...

    @property
    def data(self) -> pd.DataFrame:
        """Every record of any trial, canonical: what models that train together are given."""
        ...

    def dropped_row(self, world: World, number: int) -> int | None:
        """Position in `data` of the one record that a trial trains without, or None for all."""
        ...

    def table(self, world: World, number: int) -> pd.DataFrame:
        """What a trial trains on, canonical: `data` without its dropped row; a copy."""
        ...

    def rows_requested(self, world: World) -> int:
        """Synthetic rows asked of a model of this world."""
        ...


def without(data: pd.DataFrame, row: int | None) -> pd.DataFrame:
    """A copy of a canonical table without one row, or with all, numbered from 0."""
    kept = data if row is None else data.drop(index=row)
    return kept.reset_index(drop=True)
