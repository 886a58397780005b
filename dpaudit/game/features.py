"""What a trial keeps of a synthetic table and its model: the features of attacks, and a digest."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
import pandas as pd

from dpaudit.errors import AttackError
from dpaudit.formatting import located
from dpaudit.model.column import OTHER
from dpaudit.model.encoding import table_of, values_of_table
from dpaudit.plugins.access import Disclosed, Disclosure
from dpaudit.plugins.protocols import BatchAttack, FloatArray, GameView, ReleaseAttack


class TakesFeatures(Protocol):
    """The part of an attack that sees a synthetic table, and so runs in the trial."""

    def features(self, table: pd.DataFrame, game: GameView) -> FloatArray:
        """Features [f] of one synthetic table in canonical form (`Schema.canonical`)."""
        ...


@runtime_checkable
class TakesModelFeatures(Protocol):
    """The part of an attack on models that runs in the trial."""

    sees: Disclosure

    def model_features(self, disclosed: FloatArray, game: GameView) -> FloatArray:
        """Features [f] of what one model discloses."""
        ...


FeatureMaker: TypeAlias = TakesFeatures | TakesModelFeatures
"""What runs in the trial of either kind of attack."""
NOTHING: Disclosed = {}
"""The disclosure of a model that is attacked through its synthetic table alone."""


def features_of_table(
    table: pd.DataFrame,
    attacks: Sequence[FeatureMaker],
    game: GameView,
    disclosed: Disclosed = NOTHING,
    *,
    written: FloatArray | None = None,
    values: FloatArray | None = None,
) -> FloatArray:
    """The features of all attacks from one canonical table.

    Of several tables, an attack's features are those of each of them in turn.

    Args:
        table: The table, or the frame of several.
        attacks: The attacks.
        game: What the attacker knows.
        disclosed: What the table's model discloses: at least what the attacks see.
        written: The facts of its release (`dpaudit.plugins.release`); None if it has none but its
            canonical form.
        values: Its values [n, d], if they are known.

    Returns:
        Features [f], those of each attack in turn.

    Raises:
        AttackError: If an attack raises, or gives something that is not flat and finite.
    """
    if game.of_tables:
        tables = game.joined(table)

        def seen(attack: TakesFeatures) -> FloatArray:
            views = game.of_tables.items()
            return np.concatenate(
                [features_of_table(tables[name], [attack], view) for name, view in views]
            )
    else:
        # Read once for all attacks on values; a category that the schema does not name has none,
        # but attacks on releases see how it was written.
        read = values_of_table(table, game.schema) if values is None else values
        named = not (read == OTHER).any() or all(c.kind.numeric for c in game.schema.columns)

        def seen(attack: TakesFeatures) -> FloatArray:
            if isinstance(attack, BatchAttack if named else ReleaseAttack):
                return _of_all(attack, read[None], game, written).ravel()
            return _of_one(attack, table, game)

    return np.concatenate(
        [
            _of_model(attack, disclosed, game)
            if isinstance(attack, TakesModelFeatures)
            else seen(attack)
            for attack in attacks
        ]
    )


def features_of_values(
    values: FloatArray,
    attacks: Sequence[FeatureMaker],
    game: GameView,
    disclosed: Sequence[Disclosed],
) -> list[FloatArray]:
    """The features of all attacks from each of many tables.

    Args:
        values: Values [M, n, d] of the tables, as `dpaudit.model.encoding.values_of` gives them.
        attacks: The attacks; a `BatchAttack` sees all tables at once.
        game: What the attacker knows.
        disclosed: What the model of each table discloses.

    Returns:
        For each table, features [f], those of each attack in turn.

    Raises:
        AttackError: If an attack raises, or gives something that is not flat and finite.
    """
    parts = [
        [_of_model(attack, one, game) for one in disclosed]
        if isinstance(attack, TakesModelFeatures)
        else _of_all(attack, values, game)
        if isinstance(attack, BatchAttack)
        else [_of_one(attack, table_of(mine, game.schema), game) for mine in values]
        for attack in attacks
    ]
    return [np.concatenate(of_one_table) for of_one_table in zip(*parts, strict=True)]


def _of_one(attack: TakesFeatures, table: pd.DataFrame, game: GameView) -> FloatArray:
    return _flat(attack, _called(attack, lambda: attack.features(table, game)))


def _of_model(attack: TakesModelFeatures, disclosed: Disclosed, game: GameView) -> FloatArray:
    seen = disclosed[attack.sees]
    return _flat(attack, _called(attack, lambda: attack.model_features(seen, game)))


def _flat(attack: FeatureMaker, features: FloatArray) -> FloatArray:
    if features.ndim != 1 or not np.isfinite(features).all():
        raise AttackError(
            f"attack {type(attack).__name__} must give a flat array of finite features"
        )
    return features


def _of_all(
    attack: BatchAttack, values: FloatArray, game: GameView, written: FloatArray | None = None
) -> FloatArray:
    def compute() -> FloatArray:
        if written is not None and isinstance(attack, ReleaseAttack):
            return attack.release_features(values, written[None], game)
        return attack.features_many(values, game)

    features = _called(attack, compute)
    if features.ndim != 2 or len(features) != len(values) or not np.isfinite(features).all():
        raise AttackError(
            f"attack {type(attack).__name__} must give a flat array of finite features of each of "
            f"{len(values)} tables"
        )
    return features


def _called(attack: FeatureMaker, compute: Callable[[], FloatArray]) -> FloatArray:
    try:
        return np.asarray(compute(), dtype=np.float64)
    except Exception as error:
        name = type(attack).__name__
        raise AttackError(f"attack {name} failed: {located(error)}") from error


def digest_of(values: FloatArray, table: pd.DataFrame | None = None) -> bytes:
    """A digest of a table.

    Args:
        values: Its values [n, d], as `dpaudit.model.encoding.values_of_table` gives them.
        table: The table in canonical form: categories that the schema does not name, which have
            one value, count as they are written, and so do the keys of several tables.
    """
    plain = np.where(np.isnan(values), np.nan, values + 0.0)  # one NaN, one zero
    found = hashlib.blake2b(plain.tobytes(), digest_size=16)
    has_keys = table is not None and table.shape[1] > values.shape[1]
    if table is not None and (has_keys or (values == OTHER).any()):
        for _, cells in table.select_dtypes("object").items():
            found.update("\0".join(map(repr, cells)).encode("utf-8", "backslashreplace"))
    return found.digest()
