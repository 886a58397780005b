"""The attack of a replay: only the features in which its synthetic tables differ.

A replay fits the same code in both worlds with the same random numbers, so a few pairs of tables
show which features the record moves, and how far relative to their spread. An audit of only these
features needs no models to find them among thousands, and shares no error probability with other
attacks. The features are chosen on fits of the replay, which the audit does not use.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Final, cast

import numpy as np

from dpaudit.errors import SettingsError
from dpaudit.files import io_reason
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import BatchAttack, FeatureName, FloatArray, GameView
from dpaudit.plugins.registry import ATTACKS, build
from dpaudit_attacks.classifiers import CHOSEN, ClassifierAttack

_PLACES: Final[dict[tuple[str, Schema], list[list[int]]]] = {}
"""Positions of a record's features among those of their attacks, by the tables' schema."""


@dataclass(frozen=True, kw_only=True)
class AfterReplay(ClassifierAttack):
    """The features of other attacks in which a replay's synthetic tables differ most.

    It also counts copies of the target; otherwise it would miss the audit's positive control, a
    generator that copies the target.

    Attributes:
        record: File that `dpaudit replay --json` wrote; it is replaced by the JSON text of its
            features: attack, column and feature of each.

    Raises:
        SettingsError: If the file cannot be read, or has no such features.
    """

    record: str
    classifier: str = CHOSEN

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.record.startswith("["):
            object.__setattr__(self, "record", json.dumps(_features_of(Path(self.record))))

    def check(self, game: GameView) -> None:
        """Checks that the features are those of this game.

        Raises:
            SettingsError: If a feature is not: the replay had another schema.
        """
        for attack, features in _selected_features(self.record, len(game.schema.columns)):
            names = attack.feature_names(game)
            missing = next((name for name in features if name not in names), None)
            if missing is not None:
                raise SettingsError(
                    f"no {missing} among the features of these tables: the replay had another "
                    "schema; replay this one"
                )

    def feature_names(self, game: GameView) -> tuple[FeatureName, ...]:
        """Names of the features, in the order of `features`."""
        picked = _selected_features(self.record, len(game.schema.columns))
        known = {name: name for attack, _ in picked for name in attack.feature_names(game)}
        # The attack's own names, not equal ones: they say which features read last bits.
        return tuple(known.get(name, name) for _, features in picked for name in features)

    def features_many(self, values: FloatArray, game: GameView) -> FloatArray:
        """Features [M, f] of the values [M, n, d] of many synthetic tables."""
        picked = _selected_features(self.record, len(game.schema.columns))
        key = (self.record, game.schema)
        if key not in _PLACES:  # naming thousands of features takes longer than computing them
            _PLACES[key] = [
                [attack.feature_names(game).index(name) for name in features]
                for attack, features in picked
            ]
        parts = [
            attack.features_many(values, game)[:, places]
            for (attack, _), places in zip(picked, _PLACES[key], strict=True)
        ]
        return np.concatenate(parts, axis=1)


@lru_cache(maxsize=8)
def _selected_features(
    record: str, columns: int
) -> tuple[tuple[BatchAttack, tuple[FeatureName, ...]], ...]:
    """The attacks, and the selected features of each."""
    copies = ("form", "whole rows", f"rows equal to the target in at least {columns} columns")
    wanted = sorted({copies, *map(tuple, json.loads(record))})
    return tuple(
        (
            cast(BatchAttack, build(name, ATTACKS, given={}, offered={})),
            tuple(FeatureName(column, feature) for _, column, feature in features),
        )
        for name, features in groupby(wanted, key=lambda feature: str(feature[0]))
    )


def _features_of(file: Path) -> list[list[str]]:
    """Attack, column and feature of each feature in a replay's record."""
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
        entries = document["features"] or []
        features = [[entry[key] for key in ("attack", "column", "feature")] for entry in entries]
    except OSError as error:
        raise SettingsError(f"{file} cannot be read: {io_reason(error)}") from None
    except (ValueError, KeyError, TypeError):
        raise SettingsError(
            f"{file} is no record of a replay: write one with `dpaudit replay --json`"
        ) from None
    if not features:
        raise SettingsError(
            f"{file} hands no features over: the replay found no difference in synthetic tables; "
            "audit with the default attacks"
        )
    return features
