"""The train rows that a synthetic table gives away, with a limit on the share of false names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from dpaudit.plugins.protocols import BoolArray, FloatArray
from dpaudit.released_data.membership import choose_attack, testable

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

    The attack is chosen on one half and applied to the other, both ways. A member's p-value is its
    rank among the hold-out rows of its half; the rows named in each half are those of Benjamini and
    Hochberg 1995 at half the rate, which holds for such p-values although they share the hold-out
    rows (Bates et al. 2023). The shares of false names of the halves add up at most.

    Args:
        scores: Scores [n] by attack, that do not depend on who is a member.
        inside: Whether each row is in train; shape (n,).
        rng: Parts the rows.

    Returns:
        The rows, smallest p-value first; empty if too few are there.
    """
    half = np.zeros(len(inside), dtype=np.bool_)
    half[rng.permutation(len(inside))[: len(inside) // 2]] = True
    if not testable(inside, half):
        return ()
    found: list[RiskyRow] = []
    for part in (half, ~half):
        known = {name: of[~part] for name, of in scores.items()}
        of = scores[choose_attack(known, inside[~part], rng)]
        rows, others = np.flatnonzero(part & inside), np.sort(of[part & ~inside])
        above = len(others) - np.searchsorted(others, of[rows], side="left")
        p_values: FloatArray = np.asarray((1.0 + above) / (1.0 + len(others)), dtype=np.float64)
        for place in np.flatnonzero(discovered(p_values, rate=FALSE_DISCOVERIES / 2)):
            found.append(RiskyRow(int(rows[place]), float(p_values[place])))
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
