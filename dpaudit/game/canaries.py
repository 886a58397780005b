"""The one-run game: one training on a table that each canary is in or not by a fair coin."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpaudit.errors import SettingsError
from dpaudit.game.protocol import without
from dpaudit.game.target import far_records
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import BoolArray, GameView, IntArray, World


@dataclass(frozen=True, kw_only=True)
class CanaryGame:
    """One training with many canaries, each included by its own fair coin.

    Attributes:
        view: What the attacker knows; its target is the table [m] of all canaries.
        data: The other rows and the included canaries, canonical, in the order of the table
            handed in.
    """

    view: GameView
    data: pd.DataFrame

    def dropped_rows(self, world: World, number: int) -> tuple[int, ...]:
        """None: the training reads every record of `data`."""
        del world, number
        return ()

    def table(self, world: World, number: int) -> pd.DataFrame:
        """What the model trains on: a copy."""
        del world, number
        return without(self.data, ())

    def rows_requested(self, world: World) -> int:
        """Synthetic rows asked of the model; fixed before the coins."""
        del world
        return self.view.n_rows


def choose_canaries(data: pd.DataFrame, schema: Schema, canaries: int) -> IntArray:
    """The records farthest from their nearest neighbours, of those without a copy in the table.

    A function of the table alone, never of the coins, so the bound holds whatever is chosen. Far
    records make the attack stronger: a synthetic record near one hardly has another source.

    Args:
        data: The table, canonical.
        schema: Its schema.
        canaries: Number of canaries m.

    Returns:
        Their positions [m], ascending.

    Raises:
        SettingsError: If too few records are without a copy.
    """
    alone = far_records(data, schema)
    if len(alone) < canaries:
        raise SettingsError(
            f"`canaries` is {canaries}, but only {len(alone)} records of the table have no "
            "identical copy: give fewer, or drop duplicate rows"
        )
    return np.sort(alone[:canaries])


def flip_coins(canaries: int, rng: np.random.Generator) -> BoolArray:
    """Independent fair coins [m]: which canaries are included."""
    return rng.integers(0, 2, canaries).astype(np.bool_)
