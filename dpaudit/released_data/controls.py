"""What must hold before a finding counts, and what would have been found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from dpaudit.plugins.protocols import BoolArray, FloatArray
from dpaudit.released_data.grades import fit_grades, p_value
from dpaudit.released_data.membership import LEAST_ROWS, choose_attack, enough, parted
from dpaudit.released_data.scores import MembershipScores

LEVEL: Final = 0.01
"""Probability with which each control fails although all is well, at most."""
_MOST_FITTED: Final = 20_000
_SHARES: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
_SIMULATIONS: Final = 20
_FOUND: Final = 16
_SIMULATED_DRAWS: Final = 999


def phantom(
    scores: Mapping[str, FloatArray], inside: BoolArray, rng: np.random.Generator
) -> float | None:
    """The p-value of the same test between two halves of the hold-out, where nothing is to find.

    Args:
        scores: Scores [n] by attack.
        inside: Whether each row is in train; shape (n,).
        rng: Halves the hold-out, and for the test.

    Returns:
        The p-value; None if there are too few hold-out rows to test.
    """
    others = np.flatnonzero(~inside)
    phantoms = np.zeros(len(others), dtype=np.bool_)
    phantoms[rng.permutation(len(others))[: len(others) // 2]] = True
    fitting = parted(len(others), rng)
    if not enough(phantoms, fitting):
        return None
    of_others = {name: of[others] for name, of in scores.items()}
    known = {name: of[fitting] for name, of in of_others.items()}
    chosen = of_others[choose_attack(known, phantoms[fitting], rng)]
    grades = fit_grades(chosen[fitting], phantoms[fitting])
    return p_value(chosen[~fitting], phantoms[~fitting], grades, rng)


def detectable_copies(
    scores: MembershipScores,
    inside: BoolArray,
    fitting: BoolArray,
    rng: np.random.Generator,
    *,
    level: float,
) -> float | None:
    """The least share of train rows that, copied, would have been found with probability 0.8.

    Simulated on the very scores: who is a member is drawn anew, so that nothing of a leak that is
    there counts, so many members have the scores of copies, and the attack is chosen anew.

    Args:
        scores: Scores [n] by attack, and those of copies.
        inside: Whether each row is in train; shape (n,).
        fitting: Which rows serve the choice; shape (n,). Of very many, some do here.
        rng: Plants copies.
        level: The p-value at which a leak counts as found.

    Returns:
        The first share of a short list; None if even half of the rows would not be found.
    """
    known = rng.permutation(np.flatnonzero(fitting))[:_MOST_FITTED]
    if min(inside[known].sum(), (~inside[known]).sum()) < LEAST_ROWS:
        return None
    asked = np.flatnonzero(~fitting)

    def is_found(share: float) -> bool:
        found = 0
        for _ in range(_SIMULATIONS):
            drawn = inside.copy()
            for part in (known, asked):
                drawn[part] = rng.permutation(inside[part])
            copied = drawn & (rng.random(len(inside)) < share)
            planted = {
                name: np.where(copied, scores.if_copied[name], seen)
                for name, seen in scores.seen.items()
            }
            of_known = {name: of[known] for name, of in planted.items()}
            name = choose_attack(of_known, drawn[known], rng)
            grades = fit_grades(of_known[name], drawn[known])
            p = p_value(planted[name][asked], drawn[asked], grades, rng, draws=_SIMULATED_DRAWS)
            found += p <= level
        return found >= _FOUND

    low, high = 0, len(_SHARES)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_found(_SHARES[middle]) else (middle + 1, high)
    return _SHARES[low] if low < len(_SHARES) else None
