"""The features of synthetic tables that the record moves, for an audit after a replay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from dpaudit.auditing.settings import DEFAULT_ATTACKS
from dpaudit.game.features import features_of_table
from dpaudit.plugins.named import named_attacks
from dpaudit.plugins.protocols import FeatureName, FloatArray, GameView

MOST_FEATURES: Final = 8
"""Number of features handed over."""
_BESIDE_BEST: Final = 1 / 3
"""Features that move by less than this share of the best one are left out."""
_FARTHEST: Final = 100.0
"""Beyond this many standard deviations all features are equally good."""


class MovedFeature(NamedTuple):
    """A feature of synthetic tables that the record moves.

    Attributes:
        attack: The attack whose feature it is.
        column: Its column, or columns.
        feature: What it measures.
        inside: Its mean with the record.
        outside: Its mean without it.
        spreads: How far it moves, in its own standard deviations; null if these are 0.
        pairs: Number of pairs of tables in which it moves that way.
    """

    attack: str
    column: str
    feature: str
    inside: float
    outside: float
    spreads: float | None
    pairs: int

    def __str__(self) -> str:
        """The feature in a few words."""
        return str(FeatureName(self.column, self.feature))


def moved_features(
    pairs: Sequence[tuple[pd.DataFrame, pd.DataFrame]], view: GameView
) -> tuple[MovedFeature, ...]:
    """The features of the default attacks that move most, relative to their own spread.

    Args:
        pairs: Synthetic tables of world "in" and "out", canonical; the two of a pair were made
            with the same random numbers.
        view: What the attacker knows.

    Returns:
        At most `MOST_FEATURES`, largest move first; none for fewer than two pairs.

    Raises:
        AttackError: If an attack fails on a table.
    """
    if len(pairs) < 2:
        return ()
    attacks = named_attacks(DEFAULT_ATTACKS)
    names = [(attack.name, name) for attack in attacks for name in attack.feature_names(view)]
    makers = [attack.attack for attack in attacks]
    inside, outside = (
        np.array([features_of_table(pair[world], makers, view) for pair in pairs])
        for world in (0, 1)
    )
    moved = inside - outside
    mean = moved.mean(axis=0)
    error = moved.std(axis=0, ddof=1) / np.sqrt(len(pairs))
    spread = np.sqrt((inside.var(axis=0, ddof=1) + outside.var(axis=0, ddof=1)) / 2)
    alike = np.sum(np.sign(moved) == np.sign(mean), axis=0)
    far = _ratio(np.abs(mean), spread)
    # of thousands of features some seem to move by chance: only a safe lower estimate counts
    sure = np.minimum(_ratio(np.maximum(np.abs(mean) - error, 0.0), spread), _FARTHEST)
    least = max(_BESIDE_BEST * float(sure.max()), np.finfo(float).tiny)
    best = [at for at in np.argsort(-sure, kind="stable") if sure[at] >= least][:MOST_FEATURES]
    return tuple(
        MovedFeature(
            attack=names[at][0],
            column=names[at][1].column,
            feature=names[at][1].feature,
            inside=float(inside[:, at].mean()),
            outside=float(outside[:, at].mean()),
            spreads=float(far[at]) if np.isfinite(far[at]) else None,
            pairs=int(alike[at]),
        )
        for at in best
    )


def _ratio(part: FloatArray, whole: FloatArray) -> FloatArray:
    """Their ratio; infinite if only the denominator is 0, up to rounding."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(whole > 1e-9 * part, part / whole, np.inf)
    return np.where(part > 0, ratio, 0.0)
