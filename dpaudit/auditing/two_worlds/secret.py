"""The attack on a secret: guesses one value of the target from its other values and a release.

What people have in common lets anyone guess, whether or not the record was in the table. So guesses
are compared between the two worlds, as Stadler, Oprisanu and Troncoso (2022) do. A guess is a
function of the release, so differential privacy covers it: with the record it is right at most
e^epsilon times as often as without it, plus delta, and the other way round. Whether the guess is
right is therefore an attack like any other, with a score of 1 or 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pandas as pd

from dpaudit.errors import SettingsError
from dpaudit.formatting import did_you_mean
from dpaudit.model.column import Column
from dpaudit.model.encoding import encode, values_of_table
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import BoolArray, FeatureName, FloatArray, GameView, Scorer

TOLERANCE: Final = 0.05
"""A guessed number or date is right if it is off by at most this share of the column's range."""
_FARTHEST: Final = 10.0
"""Encoded values are clipped here: a release may hold any finite number."""


@dataclass(frozen=True)
class SecretGuess:
    """Guesses the target's value in one column by a decision tree, grown on each release.

    On releases of 1,000 rows of Adult the tree guesses values of other people about as often as a
    forest of ten trees does, at a tenth of its cost, and more often than the nearest row does. It
    guesses values of released rows as often as the nearest row does, the forest less often.

    Attributes:
        column: The column.
    """

    column: str

    def check(self, game: GameView) -> None:
        """Refuses a secret that cannot be guessed, or that everyone knows.

        Raises:
            SettingsError: If the column is not in the schema, is the only one, is constant, or the
                target has no value in it.
        """
        names, column = game.schema.names, self.column
        if column not in names:
            hint = did_you_mean(column, names)
            raise SettingsError(f"`secret` names {column!r}, which is not a column{hint}")
        if len(names) == 1:
            raise SettingsError(
                f"`secret` is guessed from other columns, and {column!r} is the only one: leave it "
                "out"
            )
        if game.target[column].isna().any():
            raise SettingsError(
                f"the target has no value in {column!r}, the column of `secret`: name another "
                "column, or another target"
            )
        if pd.concat([game.target[column], game.others[column]]).nunique(dropna=False) == 1:
            raise SettingsError(
                f"column {column!r} is constant, so it is no `secret`: name another column"
            )

    def feature_names(self, game: GameView) -> tuple[FeatureName, ...]:
        """The name of the only feature."""
        del game
        return (FeatureName(self.column, "guessed right from the other values"),)

    def features(self, table: pd.DataFrame, game: GameView) -> FloatArray:
        """Whether the guess from a release is right [1]: 1 or 0."""
        from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

        column = column_of(game.schema, self.column)
        (known, values), (asked, [secret]) = (
            self._split(of, game.schema) for of in (table, game.target)
        )
        given = ~np.isnan(values)
        if not given.any():
            return np.zeros(1)
        kind = DecisionTreeRegressor if column.kind.numeric else DecisionTreeClassifier
        [guess] = kind(random_state=0).fit(known[given], values[given]).predict(asked)
        allowed = TOLERANCE * (column.bounds[1] - column.bounds[0]) if column.kind.numeric else 0.0
        return np.array([abs(guess - secret) <= allowed], dtype=np.float64)

    def fit(self, features: FloatArray, member: BoolArray, *, seed: int) -> Scorer:
        """Learns nothing: the guess was fixed beforehand."""
        del features, member, seed
        return _was_right

    def _split(self, table: pd.DataFrame, schema: Schema) -> tuple[FloatArray, FloatArray]:
        """The known values [n, w] of records, encoded, and their secrets [n]."""
        secret = column_of(schema, self.column)
        others = tuple(column for column in schema.columns if column is not secret)
        known = encode(table, replace(schema, columns=others, label=None))
        values = values_of_table(table, replace(schema, columns=(secret,), label=None))
        return np.clip(known, -_FARTHEST, _FARTHEST), values[:, 0]


def column_of(schema: Schema, name: str) -> Column:
    """The column of a name."""
    return next(column for column in schema.columns if column.name == name)


def _was_right(features: FloatArray) -> FloatArray:
    """Scores [n] of feature vectors [n, 1]: whether the guess is right."""
    return features[:, 0]
