"""The attacks of a one-run audit: no fitting, a score for each canary, guesses in turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from dpaudit.auditing.one_run.marginals import CanaryMarginals
from dpaudit.auditing.one_run.matches import CanaryMatches
from dpaudit.auditing.one_run.settings import CANARY_ATTACKS
from dpaudit.bounds import Guarantee, GuessesInTurn, auc
from dpaudit.bounds.table import Observed, proved
from dpaudit.game.features import FeatureMaker
from dpaudit.model.encoding import encode
from dpaudit.plugins.protocols import BoolArray, FloatArray, GameView

_CLOSEST, _MATCHES, _MARGINALS = CANARY_ATTACKS
FARTHEST: Final = 10.0
"""Encoded values are clipped here: a generator may return any finite number."""


class ClosestRecord:
    """Scores each canary by minus its distance to the nearest synthetic record.

    Euclidean on the encoded tables (`dpaudit.model.encoding`), so numbers count by their share of
    the schema's range and categories by whether they differ. The distance to known records is not
    subtracted: canaries are chosen far from them, and in simulations the correction lost power. Of
    a unit the nearest row counts.
    """

    def features(self, table: pd.DataFrame, game: GameView) -> FloatArray:
        """Scores [m] of the canaries, at most 0; larger means "in"."""
        from sklearn.neighbors import NearestNeighbors

        synthetic = np.clip(encode(table, game.schema), -FARTHEST, FARTHEST)
        nearest = NearestNeighbors(n_neighbors=1).fit(synthetic)
        distances, _ = nearest.kneighbors(encode(game.target, game.schema))
        owners = game.schema.owners(game.target)
        scores = np.full(owners.max() + 1, -np.inf)
        np.maximum.at(scores, owners, -distances[:, 0])
        return scores


def in_then_out(scores: FloatArray) -> GuessesInTurn:
    """Guesses "in" for the higher half, highest score first; then "out" for the rest, lowest first.

    This suits scores of unknown scale: a generator that memorises shows clearly what it was trained
    on, and less clearly what it was not. Equal scores get equal guesses; otherwise, if more than
    half of the canaries are memorised, some of those would be guessed "out". Canaries with the
    median score come last, as "in" unless more scores lie above them than below.
    """
    best = np.argsort(-scores, kind="stable")
    ordered = scores[best]
    middle = ordered[(len(scores) - 1) // 2]
    above, tied = best[ordered > middle], best[ordered == middle]
    below = best[ordered < middle][::-1]
    inside = np.arange(len(scores)) < len(above)
    inside[len(above) + len(below) :] = len(above) <= len(below)
    return GuessesInTurn(np.concatenate([above, below, tied]), inside)


def surest_first(scores: FloatArray) -> GuessesInTurn:
    """Guesses each coin by the sign of its log odds, the largest odds first."""
    order = np.argsort(-np.abs(scores), kind="stable")
    return GuessesInTurn(order, scores[order] > 0.0)


class CanaryAttack(NamedTuple):
    """One attack on the canaries; fixed before any training.

    Attributes:
        name: Its name in results.
        scorer: Scores the canaries from the synthetic table.
        guess: Turns the scores, and nothing else, into guesses.
    """

    name: str
    scorer: FeatureMaker
    guess: Callable[[FloatArray], GuessesInTurn]


ATTACKS: Final = (
    CanaryAttack(_CLOSEST, ClosestRecord(), in_then_out),
    CanaryAttack(_MATCHES, CanaryMatches(), in_then_out),
    CanaryAttack(_MARGINALS, CanaryMarginals(), surest_first),
)
"""The attacks of every one-run audit."""


class Guessed(NamedTuple):
    """The result of the guesses of one attack.

    Attributes:
        attack: Its name.
        right: Whether each guess is right, in the order of the guesses; shape (m,).
        coins: Which canaries were in, in the order of the table; shape (m,).
        scores: Their scores; shape (m,).
    """

    attack: str
    right: BoolArray
    coins: BoolArray
    scores: FloatArray

    @property
    def auc(self) -> float:
        """AUC of the scores of all canaries; 0.5 if all coins fell alike."""
        return auc(self.scores, self.coins) if 0 < self.coins.sum() < len(self.coins) else 0.5

    def bound(self, guarantee: Guarantee, *, confidence: float) -> float:
        """Lower bound on the level of a guarantee, valid for all numbers of guesses it tries."""
        return proved(guarantee.bounds(Observed.IN_TURN, self.right, confidence=confidence))


def guess(features: FloatArray, coins: BoolArray) -> tuple[Guessed, ...]:
    """Guesses every coin, by each attack.

    Args:
        features: Scores of the attacks, one after another; shape (attacks * m,).
        coins: Which canaries [m] were in; only compared with the guesses.

    Returns:
        The guesses of each attack, in the order of `ATTACKS`.
    """
    found = []
    for attack, scores in zip(ATTACKS, features.reshape(len(ATTACKS), len(coins)), strict=True):
        order, inside = attack.guess(scores)
        found.append(Guessed(attack.name, coins[order] == inside, coins, scores))
    return tuple(found)
