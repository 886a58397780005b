"""What the engine asks of a game: one table, and the rows of it that each trial lacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pandas as pd

from dpaudit.plugins.protocols import GameView, World


class GameProtocol(Protocol):
    """A game whose trials the engine can run."""

    @property
    def view(self) -> GameView:
        """What the attacker knows."""
        ...

    @property
    def data(self) -> pd.DataFrame:
        """Every record of any trial, canonical: what models that train together are given."""
        ...

    def dropped_rows(self, world: World, number: int) -> tuple[int, ...]:
        """Positions in `data` of the records that a trial trains without."""
        ...

    def table(self, world: World, number: int) -> pd.DataFrame:
        """What a trial trains on, canonical: `data` without its dropped rows; a copy."""
        ...

    def rows_requested(self, world: World) -> int:
        """Synthetic rows asked of a model of this world."""
        ...


def without(data: pd.DataFrame, rows: Sequence[int]) -> pd.DataFrame:
    """A copy of a canonical table without some rows, numbered from 0."""
    return data.drop(index=list(rows)).reset_index(drop=True)
