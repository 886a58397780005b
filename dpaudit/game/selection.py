"""The game of a search for a target: every model lacks a random half of the candidates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpaudit.game.protocol import without
from dpaudit.plugins.protocols import BoolArray, GameView, World


@dataclass(frozen=True, kw_only=True)
class SelectionGame:
    """One set of models for all candidates: a random half of them has each candidate.

    It adds and removes records whatever relation the audit uses: a record that stands out when it
    is left out also stands out when it is replaced. All trials belong to world "out", for each
    lacks records of the table.

    Attributes:
        view: What the attacker knows; its target is the table [m] of all candidates.
        data: The table, canonical.
        candidates: Positions [m] of the candidates in it.
        included: Which candidates each trial trains with [n, m].
    """

    view: GameView
    data: pd.DataFrame
    candidates: tuple[int, ...]
    included: BoolArray

    def dropped_rows(self, world: World, number: int) -> tuple[int, ...]:
        """The candidates that a trial trains without."""
        del world
        left_out = np.flatnonzero(~self.included[number])
        return tuple(self.candidates[place] for place in left_out)

    def table(self, world: World, number: int) -> pd.DataFrame:
        """What a trial trains on: a copy."""
        return without(self.data, self.dropped_rows(world, number))

    def rows_requested(self, world: World) -> int:
        """Synthetic rows asked of a model: the same for all."""
        del world
        return self.view.n_rows


def halves(trials: int, candidates: int, rng: np.random.Generator) -> BoolArray:
    """Draws, for each candidate, the half of the trials that train with it.

    Args:
        trials: Number of trials n; even.
        candidates: Number of candidates m.
        rng: Draws the halves, each candidate's independently of the others'.

    Returns:
        Which candidates each trial trains with [n, m].
    """
    column = np.arange(trials) < trials // 2
    return rng.permuted(np.repeat(column[:, None], candidates, axis=1), axis=0)
