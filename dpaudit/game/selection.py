"""The game of a search for a target: each trial lacks one of many candidates, or none."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from dpaudit.errors import SettingsError
from dpaudit.game.playable import without
from dpaudit.protocols import GameView, World


@dataclass(frozen=True, kw_only=True)
class SelectionGame:
    """World "in" is the whole table for all candidates; "out" lacks the one of the trial's number.

    It adds and removes records whatever relation the audit plays: a record that stands out when it
    is left out also stands out when it is replaced.

    Attributes:
        view: What the attacker knows; its target is the table [m] of all candidates.
        data: The table, canonical.
        candidates: Positions [m] of the candidates in it.
        models: Numbers that each candidate has: trial n of world "out" belongs to candidate
            n // models.

    Raises:
        SettingsError: If fewer than one synthetic row is requested.
    """

    view: GameView
    data: pd.DataFrame
    candidates: tuple[int, ...]
    models: int

    def __post_init__(self) -> None:
        if self.view.n_rows < 1:
            raise SettingsError(f"--rows must be at least 1, got {self.view.n_rows}")

    def number(self, candidate: int, model: int) -> int:
        """Number of the trial of world "out" that is a candidate's model."""
        return candidate * self.models + model

    def owner(self, number: int) -> int:
        """The candidate that a trial of world "out" belongs to."""
        return number // self.models

    def dropped_row(self, world: World, number: int) -> int | None:
        """The candidate that a trial trains without; None in world "in"."""
        return None if world is World.IN else self.candidates[self.owner(number)]

    def table(self, world: World, number: int) -> pd.DataFrame:
        """What a trial trains on: a copy."""
        return without(self.data, self.dropped_row(world, number))

    def rows_requested(self, world: World) -> int:
        """Synthetic rows asked of a model: the same in both worlds."""
        del world
        return self.view.n_rows
