"""The features that attacks compute from synthetic tables, inside the trial."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import pandas as pd

from dpaudit.errors import AttackError
from dpaudit.formatting import error_line
from dpaudit.model.column import OTHER
from dpaudit.model.encoding import table_of, values_of_table
from dpaudit.plugins.protocols import BatchAttack, FloatArray, GameView


class TakesFeatures(Protocol):
    """The part of an attack that sees a synthetic table, and so runs in the trial."""

    def features(self, table: pd.DataFrame, game: GameView) -> FloatArray:
        """Features [f] of one synthetic table in canonical form (`Schema.canonical`)."""
        ...


def features_of_table(
    table: pd.DataFrame, attacks: Sequence[TakesFeatures], game: GameView
) -> FloatArray:
    """The features of all attacks from one canonical table.

    Args:
        table: The table.
        attacks: The attacks.
        game: What the attacker knows.

    Returns:
        Features [f], those of each attack in turn.

    Raises:
        AttackError: If an attack raises, or gives something that is not flat and finite.
    """
    # Read once for all attacks on values; a category that the schema does not name has none.
    values = values_of_table(table, game.schema)
    named = not (values == OTHER).any() or all(c.kind.numeric for c in game.schema.columns)
    return np.concatenate(
        [
            _of_all(attack, values[None], game)[0]
            if named and isinstance(attack, BatchAttack)
            else _of_one(attack, table, game)
            for attack in attacks
        ]
    )


def features_of_values(
    values: FloatArray, attacks: Sequence[TakesFeatures], game: GameView
) -> list[FloatArray]:
    """The features of all attacks from each of many tables.

    Args:
        values: Values [M, n, d] of the tables, as `dpaudit.model.encoding.values_of` gives them.
        attacks: The attacks; a `BatchAttack` sees all tables at once.
        game: What the attacker knows.

    Returns:
        For each table, features [f], those of each attack in turn.

    Raises:
        AttackError: If an attack raises, or gives something that is not flat and finite.
    """
    parts = [
        _of_all(attack, values, game)
        if isinstance(attack, BatchAttack)
        else [_of_one(attack, table_of(mine, game.schema), game) for mine in values]
        for attack in attacks
    ]
    return [np.concatenate(of_one_table) for of_one_table in zip(*parts, strict=True)]


def _of_one(attack: TakesFeatures, table: pd.DataFrame, game: GameView) -> FloatArray:
    features = _called(attack, lambda: attack.features(table, game))
    if features.ndim != 1 or not np.isfinite(features).all():
        raise AttackError(
            f"attack {type(attack).__name__} must give a flat array of finite features"
        )
    return features


def _of_all(attack: BatchAttack, values: FloatArray, game: GameView) -> FloatArray:
    features = _called(attack, lambda: attack.features_many(values, game))
    if features.ndim != 2 or len(features) != len(values) or not np.isfinite(features).all():
        raise AttackError(
            f"attack {type(attack).__name__} must give a flat array of finite features of each of "
            f"{len(values)} tables"
        )
    return features


def _called(attack: TakesFeatures, compute: Callable[[], FloatArray]) -> FloatArray:
    try:
        return np.asarray(compute(), dtype=np.float64)
    except Exception as error:
        name = type(attack).__name__
        raise AttackError(f"attack {name} failed: {error_line(error)}") from error
