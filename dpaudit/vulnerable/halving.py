"""How a search for the most vulnerable record spends its trainings, and what it goes by.

Sequential halving (Karnin, Koren and Somekh 2013, "Almost optimal exploration in multi-armed
bandits"): every round doubles the models of each candidate that is left and keeps the better half,
so that each round but the first costs the same and most models go to the candidates that matter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpaudit.protocols import FloatArray

MOST_CANDIDATES = 64
"""As in the published audits of PATE-GAN."""
SHARE_IN = 1 / 4
"""Of the trainings, at least this share makes the models of world "in", which candidates share."""
RELATIVE_ROUNDING = 1e-9
"""Features that spread by less than this share of their size differ by rounding alone."""


class Round(NamedTuple):
    """One round of a search.

    Attributes:
        candidates: How many are left; the better half of them is kept.
        models: Models of world "out" that each of them has had by the end of the round.
    """

    candidates: int
    models: int


class Halving(NamedTuple):
    """The plan of a search.

    Attributes:
        models_in: Models trained on the whole table, compared with those of every candidate.
        rounds: The rounds, in order.
    """

    models_in: int
    rounds: tuple[Round, ...]

    @property
    def candidates(self) -> int:
        """Candidates of the first round."""
        return self.rounds[0].candidates

    @property
    def most_models(self) -> int:
        """Models of world "out" of a candidate that reaches the last round."""
        return self.rounds[-1].models

    @property
    def trainings(self) -> int:
        """Trainings of all rounds and of world "in"."""
        return self.models_in + _trainings(self.rounds)

    @property
    def in_words(self) -> str:
        """The plan in one line."""
        counts = ", ".join(f"{models} without each of {left}" for left, models in self.rounds)
        return (
            f"target: {self.trainings} trainings compare {self.candidates} candidates "
            f"({self.models_in} with all records; {counts})"
        )


def halve(shadow_models: int, records: int) -> Halving:
    """Plans a search in exactly the trainings of an audit.

    Args:
        shadow_models: Shadow models of the audit, both worlds together; at least 20.
        records: Records of the table that could be candidates, at least 2.

    Returns:
        The plan: 64 candidates, or fewer where the table has fewer or the audit is too small to
        train one model without each (below 300 shadow models).
    """
    most = shadow_models - round(SHARE_IN * shadow_models)
    candidates = min(MOST_CANDIDATES, records)
    while _trainings(_rounds(candidates, 1)) > most:
        candidates = (candidates + 1) // 2
    first = most // _trainings(_rounds(candidates, 1))
    rounds = _rounds(candidates, first)
    return Halving(shadow_models - _trainings(rounds), rounds)


def separation(inside: FloatArray, outside: FloatArray, spread: FloatArray) -> float:
    """How far apart two worlds lie: the largest difference of a feature's means over its spread.

    It needs but one model of world "out", and no fitting. In the last rounds, where a classifier
    could be cross-validated, that found no more and took a thousand times as long.

    Args:
        inside: Features [m, f] of models trained with the candidate.
        outside: The same [k, f] of models trained without it.
        spread: Standard deviation [f] of each feature over models of both kinds; 0 where it does
            not count.

    Returns:
        The separation; minus infinity where a world has no model.
    """
    if not len(inside) or not len(outside):
        return -np.inf
    with np.errstate(all="ignore"):
        apart = np.abs(inside.mean(axis=0) - outside.mean(axis=0)) / spread
    return float(np.max(apart, where=(spread > 0) & np.isfinite(apart), initial=0.0))


def spread_of(features: FloatArray) -> FloatArray:
    """Standard deviation [f] of features [n, f]; 0 where all differences are rounding errors."""
    with np.errstate(all="ignore"):
        spread: FloatArray = features.std(axis=0)
    return np.where(spread > RELATIVE_ROUNDING * np.abs(features).max(axis=0), spread, 0.0)


def _rounds(candidates: int, models: int) -> tuple[Round, ...]:
    rounds = []
    while candidates > 1:
        rounds.append(Round(candidates, models))
        candidates, models = (candidates + 1) // 2, 2 * models
    return tuple(rounds)


def _trainings(rounds: tuple[Round, ...]) -> int:
    """Models of world "out" of all candidates; each round adds to those of the one before."""
    earlier = (0, *(models for _, models in rounds[:-1]))
    return sum(left * (models - had) for (left, models), had in zip(rounds, earlier, strict=True))
