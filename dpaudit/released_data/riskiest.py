"""The train rows that a synthetic table gives away, with a limit on the share of false names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from dpaudit.plugins.protocols import BoolArray, FloatArray
from dpaudit.released_data.membership import choose_attack, enough

FALSE_DISCOVERIES: Final = 0.05
"""Share of rows named by chance, at most in the mean."""


class RiskyRow(NamedTuple):
    """A train row that stands out.

    Attributes:
        row: Its position among the scored rows.
        p_value: Probability that a row that was not used scores as high.
    """

    row: int
    p_value: float


def riskiest(
    scores: Mapping[str, FloatArray], inside: BoolArray, rng: np.random.Generator
) -> tuple[RiskyRow, ...]:
    """Members whose score is too high for a row that was not used.

    The attack is chosen on a fifth of the rows, which are not named, and applied to the others. A
    member's p-value is its rank among the hold-out rows there; the rows named are those of
    Benjamini and Hochberg 1995, whose rate holds for such p-values although they share the hold-out
    rows (Bates et al. 2023).

    Args:
        scores: Scores [n] by attack, that do not depend on who is a member.
        inside: Whether each row is in train; shape (n,).
        rng: Parts the rows.

    Returns:
        The rows, smallest p-value first; empty if too few are there.
    """
    part = np.ones(len(inside), dtype=np.bool_)
    part[rng.permutation(len(inside))[: len(inside) // 5]] = False
    if not enough(inside, part):
        return ()
    known = {name: of[~part] for name, of in scores.items()}
    of = scores[choose_attack(known, inside[~part], rng)]
    rows, others = np.flatnonzero(part & inside), np.sort(of[part & ~inside])
    above = len(others) - np.searchsorted(others, of[rows], side="left")
    p_values: FloatArray = np.asarray((1.0 + above) / (1.0 + len(others)), dtype=np.float64)
    found = [
        RiskyRow(int(rows[place]), float(p_values[place]))
        for place in np.flatnonzero(discovered(p_values, rate=FALSE_DISCOVERIES))
    ]
    return tuple(sorted(found, key=lambda of: (of.p_value, of.row)))


def discovered(p_values: FloatArray, *, rate: float) -> BoolArray:
    """The hypotheses that the step-up procedure of Benjamini and Hochberg refutes.

    Args:
        p_values: One for each hypothesis; shape (n,).
        rate: The false discovery rate, in (0, 1).

    Returns:
        Whether each is refuted.
    """
    order = np.argsort(p_values, kind="stable")
    limits = rate * np.arange(1, len(p_values) + 1) / max(1, len(p_values))
    below = np.flatnonzero(p_values[order] <= limits)
    refuted = np.zeros(len(p_values), dtype=np.bool_)
    refuted[order[: below[-1] + 1 if len(below) else 0]] = True
    return refuted
