"""What a trial keeps of a synthetic table and its model: the attacks' features, and a digest."""

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
"""The part of either kind of attack that runs in the trial."""
NOTHING: Disclosed = {}
"""The disclosures of a model that is attacked through its synthetic table alone."""


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

    For linked tables, an attack's features are computed for each table, one after another.

    Args:
        table: The table, or the joined frame of linked tables.
        attacks: The attacks.
        game: What the attacker knows.
        disclosed: The disclosures of the table's model: at least those that the attacks see.
        written: The facts of its release (`dpaudit.plugins.release`); None if only its canonical
            form is known.
        values: Its values [n, d], if they are known.

    Returns:
        Features [f], attack after attack.

    Raises:
        AttackError: If an attack raises, or gives something that is not flat and finite.
    """
    if game.of_tables:
        tables = game.joined(table)

        def compute(attack: TakesFeatures) -> FloatArray:
            views = game.of_tables.items()
            return np.concatenate(
                [features_of_table(tables[name], [attack], view) for name, view in views]
            )
    else:
        # Encoded once for all attacks on values. A category that the schema does not name has no
        # value of its own, but attacks on releases see how it was written.
        encoded = values_of_table(table, game.schema) if values is None else values
        has_known_categories = not (encoded == OTHER).any() or all(
            c.kind.numeric for c in game.schema.columns
        )

        def compute(attack: TakesFeatures) -> FloatArray:
            if isinstance(attack, BatchAttack if has_known_categories else ReleaseAttack):
                return _features_of_values(attack, encoded[None], game, written).ravel()
            return _features_of_table(attack, table, game)

    return np.concatenate(
        [
            _features_of_model(attack, disclosed, game)
            if isinstance(attack, TakesModelFeatures)
            else compute(attack)
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
        disclosed: The disclosures of the model of each table.

    Returns:
        For each table its features [f], attack after attack.

    Raises:
        AttackError: If an attack raises, or gives something that is not flat and finite.
    """
    parts = [
        [_features_of_model(attack, by_model, game) for by_model in disclosed]
        if isinstance(attack, TakesModelFeatures)
        else _features_of_values(attack, values, game)
        if isinstance(attack, BatchAttack)
        else [_features_of_table(attack, table_of(table, game.schema), game) for table in values]
        for attack in attacks
    ]
    return [np.concatenate(by_attack) for by_attack in zip(*parts, strict=True)]


def _features_of_table(attack: TakesFeatures, table: pd.DataFrame, game: GameView) -> FloatArray:
    """The features of one table by one attack."""
    return _check_features(attack, _call_attack(attack, lambda: attack.features(table, game)))


def _features_of_model(
    attack: TakesModelFeatures, disclosed: Disclosed, game: GameView
) -> FloatArray:
    """The features of one model by an attack on its disclosures."""
    seen = disclosed[attack.sees]
    return _check_features(attack, _call_attack(attack, lambda: attack.model_features(seen, game)))


def _check_features(attack: FeatureMaker, features: FloatArray) -> FloatArray:
    """Returns features, after checking that they are flat and finite."""
    if features.ndim != 1 or not np.isfinite(features).all():
        raise AttackError(
            f"attack {type(attack).__name__} must give a flat array of finite features"
        )
    return features


def _features_of_values(
    attack: BatchAttack, values: FloatArray, game: GameView, written: FloatArray | None = None
) -> FloatArray:
    """The features of many tables by one attack [M, f]."""

    def compute() -> FloatArray:
        if written is not None and isinstance(attack, ReleaseAttack):
            return attack.release_features(values, written[None], game)
        return attack.features_many(values, game)

    features = _call_attack(attack, compute)
    if features.ndim != 2 or len(features) != len(values) or not np.isfinite(features).all():
        raise AttackError(
            f"attack {type(attack).__name__} must give a flat array of finite features of each of "
            f"{len(values)} tables"
        )
    return features


def _call_attack(attack: FeatureMaker, compute: Callable[[], FloatArray]) -> FloatArray:
    """Computes features; an error that the attack raises becomes an `AttackError`."""
    try:
        return np.asarray(compute(), dtype=np.float64)
    except Exception as error:
        name = type(attack).__name__
        raise AttackError(f"attack {name} failed: {located(error)}") from error


def digest_of(values: FloatArray, table: pd.DataFrame | None = None) -> bytes:
    """A digest of a table.

    Args:
        values: Its values [n, d], as `dpaudit.model.encoding.values_of_table` gives them.
        table: The table in canonical form. Categories that the schema does not name share one
            value, and keys of linked tables have none: the digest takes both as they are written.
    """
    normalised = np.where(np.isnan(values), np.nan, values + 0.0)  # one NaN, one zero
    digest = hashlib.blake2b(normalised.tobytes(), digest_size=16)
    has_keys = table is not None and table.shape[1] > values.shape[1]
    if table is not None and (has_keys or (values == OTHER).any()):
        for _, cells in table.select_dtypes("object").items():
            digest.update("\0".join(map(repr, cells)).encode("utf-8", "backslashreplace"))
    return digest.digest()
