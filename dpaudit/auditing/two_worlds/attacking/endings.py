"""The attack on how trials end: whether there is a table, with how many rows, and if not, why.

Anyone who runs a generator sees that too, so differential privacy covers it: a generator that fails
only if a record is in the table reveals that record without a single synthetic row. No other attack
can use a trial without a table; this one uses every trial.
"""

from __future__ import annotations

import re
import zlib
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from dpaudit.game.trial import TrialEnd, TrialStatus
from dpaudit.plugins.named import NamedAttack
from dpaudit.plugins.protocols import (
    THE_TRIAL,
    BoolArray,
    FeatureName,
    FloatArray,
    GameView,
    Scorer,
)
from dpaudit.results.leaks import TRIAL_OUTCOMES

FEATURES: Final = (
    FeatureName(THE_TRIAL, "whether it finished"),
    FeatureName(THE_TRIAL, "number of rows"),
    FeatureName(THE_TRIAL, "way of failing"),
)
DEPTH = 4
"""Depth of the decision tree on three features."""
_NUMBERS = re.compile(r"[0-9]+")


class Ending(NamedTuple):
    """How a trial ended, as an attacker sees it.

    Attributes:
        rows: Synthetic rows received; None if as many as requested, or if there is no table.
        way: What was wrong, without numbers; empty if the trial finished.
    """

    rows: int | None
    way: str


def ending(outcome: TrialEnd) -> Ending:
    """How a trial ended."""
    return Ending(outcome.rows, _NUMBERS.sub("", outcome.error))


class HowTrialsEnd:
    """Guesses membership from how a trial ended."""

    def check(self, game: GameView) -> None:
        """Accepts every game."""
        del game

    def feature_names(self, game: GameView) -> tuple[FeatureName, ...]:
        """The three features of an ending."""
        del game
        return FEATURES

    def features(self, table: pd.DataFrame, game: GameView) -> FloatArray:
        """The features of a trial that finished with this table."""
        del game
        return np.array([1.0, len(table), 0.0])

    def fit(self, features: FloatArray, member: BoolArray, *, seed: int) -> Scorer:
        """Trains a small decision tree."""
        from sklearn.tree import DecisionTreeClassifier

        tree = DecisionTreeClassifier(max_depth=DEPTH, random_state=seed).fit(features, member)
        column = list(tree.classes_).index(True)

        def score(features: FloatArray) -> FloatArray:
            scores: FloatArray = tree.predict_proba(features)[:, column]
            return scores

        return score


ENDINGS: Final = NamedAttack(TRIAL_OUTCOMES, HowTrialsEnd())
"""The attack under its name in results."""


def features_of_ending(outcome: TrialEnd, *, requested: int) -> FloatArray:
    """Features [3] of how a trial ended.

    Args:
        outcome: The trial.
        requested: Synthetic rows that it was asked for.

    Returns:
        Whether it finished; the number of rows (the number requested if there is no table); and a
        code for the way it failed (0 if it finished): trees do not need these codes in any order.
    """
    if outcome.status is TrialStatus.FINISHED:
        return np.array([1.0, requested, 0.0])
    seen = ending(outcome)
    code = 1 + zlib.crc32(seen.way.encode())
    return np.array([0.0, requested if seen.rows is None else seen.rows, code])
