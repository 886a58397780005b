"""What a trial keeps of a synthetic table and its model: the attacks' features, and a digest."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

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


class SeenTable(NamedTuple):
    """What attacks see of one model.

    Attributes:
        values: Values [n, d] of its synthetic table.
        table: The table in canonical form; None if nothing is lost in its values.
        written: The facts of its release (`dpaudit.plugins.release`); None if only its canonical
            form is known.
        disclosed: The disclosures of the model: at least those that the attacks see.
    """

    values: FloatArray
    table: pd.DataFrame | None = None
    written: FloatArray | None = None
    disclosed: Disclosed = NOTHING

    def canonical(self, game: GameView) -> pd.DataFrame:
        """The table in canonical form."""
        return table_of(self.values, game.schema) if self.table is None else self.table


def features_of_table(
    table: pd.DataFrame,
    attacks: Sequence[FeatureMaker],
    game: GameView,
    disclosed: Disclosed = NOTHING,
    *,
    written: FloatArray | None = None,
) -> FloatArray:
    """The features [f] of all attacks from one canonical table: see `features_of_tables`."""
    values = values_of_table(table, game.schema)
    [features] = features_of_tables([SeenTable(values, table, written, disclosed)], attacks, game)
    return features


def features_of_tables(
    seen: Sequence[SeenTable], attacks: Sequence[FeatureMaker], game: GameView
) -> list[FloatArray]:
    """The features of all attacks from each of several tables.

    A `BatchAttack` sees tables of one size at once. For linked tables, an attack's features are
    computed for each table, one after another.

    Args:
        seen: The tables, or the joined frames of linked tables.
        attacks: The attacks.
        game: What the attacker knows.

    Returns:
        For each table its features [f], attack after attack.

    Raises:
        AttackError: If an attack raises, or gives something that is not flat and finite.
    """
    if game.of_tables:
        joined = [game.joined(table.canonical(game)) for table in seen]

        def compute(attack: TakesFeatures) -> list[FloatArray]:
            views = game.of_tables.items()
            return [
                np.concatenate(
                    [features_of_table(tables[name], [attack], view) for name, view in views]
                )
                for tables in joined
            ]
    else:
        stacks = _stacks(seen, game)

        def compute(attack: TakesFeatures) -> list[FloatArray]:
            rows = {place: row for stack in stacks for place, row in stack.rows(attack, game)}
            return [rows[place] for place in range(len(seen))]

    parts = [
        [_features_of_model(attack, table.disclosed, game) for table in seen]
        if isinstance(attack, TakesModelFeatures)
        else compute(attack)
        for attack in attacks
    ]
    return [np.concatenate(by_attack) for by_attack in zip(*parts, strict=True)]


class _Stack(NamedTuple):
    """Tables of which attacks on values see as much.

    Attributes:
        tables: The tables, by their place among others.
        values: Their values [M, n, d].
        written: The facts of their releases [M, r]; None if these are not known.
        has_unnamed: Whether each has a category that the schema does not name. That has no value of
            its own, but attacks on releases see how it was written.
    """

    tables: dict[int, SeenTable]
    values: FloatArray
    written: FloatArray | None
    has_unnamed: bool

    def rows(self, attack: TakesFeatures, game: GameView) -> Iterator[tuple[int, FloatArray]]:
        """The place of each table and its features by one attack."""
        if isinstance(attack, ReleaseAttack if self.has_unnamed else BatchAttack):
            features = _features_of_values(attack, self.values, game, self.written)
            return zip(self.tables, features, strict=True)
        return (
            (place, _features_of_table(attack, table.canonical(game), game))
            for place, table in self.tables.items()
        )


def _stacks(seen: Sequence[SeenTable], game: GameView) -> list[_Stack]:
    """Groups tables by all that decides whether an attack may see them at once."""
    has_categories = not all(column.kind.numeric for column in game.schema.columns)
    groups: dict[tuple[tuple[int, ...], bool, bool], dict[int, SeenTable]] = {}
    for place, table in enumerate(seen):
        has_unnamed = has_categories and bool((table.values == OTHER).any())
        key = table.values.shape, table.written is None, has_unnamed
        groups.setdefault(key, {})[place] = table
    stacks = []
    for (_, _, has_unnamed), tables in groups.items():
        written = [table.written for table in tables.values() if table.written is not None]
        values = np.stack([table.values for table in tables.values()])
        stacks.append(_Stack(tables, values, np.stack(written) if written else None, has_unnamed))
    return stacks


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
            return attack.release_features(values, written, game)
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
