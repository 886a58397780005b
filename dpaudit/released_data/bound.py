"""A lower bound on epsilon from one released table, where fair coins decided who was in train."""

from __future__ import annotations

from typing import Final

import numpy as np

from dpaudit.bounds import one_run_in_turn, one_run_in_turn_detectable
from dpaudit.plugins.protocols import BoolArray
from dpaudit.results.verdict import Power

MOST_GUESSED: Final = 2_000
"""Coins that are guessed at most, the surest; fixed beforehand, for the cost grows with its square.
"""


def released_bound(right: BoolArray, *, delta: float, confidence: float) -> float:
    """The bound of `one_run_in_turn` from the first guesses.

    Given the coins on which the attack was chosen, those of the scored rows are still fair and
    independent, and the generator is (ε, δ)-DP in each. Guessing stops after a number of turns that
    is fixed beforehand, so that the walk is shorter; but each scored coin, guessed or not, adds up
    to δ to the expected number of those that are revealed, and all of that is set aside.

    Args:
        right: Whether the guess of each scored row's coin is right, the surest first; shape (m,).
        delta: δ of the claim, in [0, 1).
        confidence: One-sided confidence, in (0, 1).

    Returns:
        The bound, at least 0.

    Raises:
        SettingsError: If an argument is out of range.
    """
    guessed, scaled = _first(len(right), delta)
    if scaled >= 1.0:
        return 0.0
    return one_run_in_turn(right[:guessed], delta=scaled, confidence=confidence)


def released_power(rows: int, *, claim_epsilon: float, delta: float, confidence: float) -> Power:
    """What the bound can prove with so many scored rows.

    Args:
        rows: Scored rows, each with a coin; at least 1.
        claim_epsilon: ε of the claim.
        delta: δ of the claim, in [0, 1).
        confidence: One-sided confidence, in (0, 1).

    Returns:
        The bound if all guesses are right, and the smallest ε of randomised response on each coin
        that is exposed with probability 0.8.

    Raises:
        SettingsError: If an argument is out of range.
    """
    guessed, scaled = _first(rows, delta)
    if scaled >= 1.0:
        return Power(0.0, None)
    return Power(
        released_bound(np.ones(rows, dtype=np.bool_), delta=delta, confidence=confidence),
        one_run_in_turn_detectable(
            claim_epsilon=claim_epsilon, canaries=guessed, delta=scaled, confidence=confidence
        ),
    )


def _first(rows: int, delta: float) -> tuple[int, float]:
    """How many guesses count, and the δ at which they set aside what δ gives away of all rows."""
    guessed = min(rows, MOST_GUESSED)
    return guessed, delta * rows / guessed
