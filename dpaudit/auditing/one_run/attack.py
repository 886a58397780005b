"""The attack of a one-run audit: no fitting, one score per canary, a fixed number of guesses."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from dpaudit.bounds import auc, one_run
from dpaudit.model.encoding import encode
from dpaudit.plugins.protocols import BoolArray, FloatArray, GameView

NAME = "closest-record"
GUESSED = 0.2
"""Share of the canaries whose coin is guessed.

Chosen once, on generators that release (noisy) training rows: resampling n of n rows releases a
row with probability 0.63, so about 0.31 of all canaries are seen, and a fifth is safely among them.
"""
FARTHEST = 10.0
"""Encoded values beyond this count as this: a generator may return any finite number."""


class ClosestRecord:
    """Scores each canary by minus its distance to the nearest synthetic record.

    Euclidean on the encoded tables (`dpaudit.model.encoding`), so numbers count by their share of
    the schema's range and categories by whether they differ. Not corrected by how near known
    records lie: canaries are far from those by choice, and in simulations the correction lost
    power.
    """

    def features(self, table: pd.DataFrame, game: GameView) -> FloatArray:
        """Scores [m] of the canaries, at most 0; larger means "in"."""
        from sklearn.neighbors import NearestNeighbors

        synthetic = np.clip(encode(table, game.schema), -FARTHEST, FARTHEST)
        nearest = NearestNeighbors(n_neighbors=1).fit(synthetic)
        distances, _ = nearest.kneighbors(encode(game.target, game.schema))
        scores: FloatArray = -distances[:, 0]
        return scores


class Guessed(NamedTuple):
    """What the guesses of one training came to.

    Attributes:
        correct: Canaries guessed in that were.
        guesses: Canaries guessed in.
        coins: Which canaries [m] were in.
        scores: Their scores [m].
    """

    correct: int
    guesses: int
    coins: BoolArray
    scores: FloatArray

    @property
    def auc(self) -> float:
        """AUC of the scores of all canaries; 0.5 if all coins fell alike."""
        return auc(self.scores, self.coins) if 0 < self.coins.sum() < len(self.coins) else 0.5

    def bound(self, *, delta: float, confidence: float) -> float:
        """Proved lower bound on epsilon."""
        return one_run(
            self.correct, self.guesses, len(self.coins), delta=delta, confidence=confidence
        )


def guesses_of(canaries: int) -> int:
    """How many of a number of canaries are guessed: fixed before any training."""
    return round(GUESSED * canaries)


def guess(scores: FloatArray, coins: BoolArray) -> Guessed:
    """Guesses "in" for the best scores and abstains on the rest.

    No canary is guessed "out": a generator that memorises shows what it was trained on, hardly what
    it was not. Which canaries are guessed depends on the output alone; how many, on nothing.

    Args:
        scores: Scores [m]; ties go to the earlier canary.
        coins: Which canaries [m] were in; only compared with the guesses.

    Returns:
        The guesses.
    """
    count = guesses_of(len(scores))
    chosen = np.argsort(-scores, kind="stable")[:count]
    return Guessed(int(coins[chosen].sum()), count, coins, scores)
