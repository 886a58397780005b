"""Which noise a function of uniform draws is: inverted distribution functions, Box and Muller.

The function is known by its values at some uniform draws. It is noise of a law if these are the
law's quantiles, times a scale: `-b * sign(u) * log(1 - 2 * abs(u))` is Laplace noise.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple

import numpy as np

POINTS = 16
"""Draws at which a function is known."""
_ROOTS = np.sqrt([2.0, 3.0, 5.0, 7.0, 11.0, 13.0, 17.0, 19.0])
_EXACT = 1e-9
_NORMAL = NormalDist()

QUANTILES: Dict[str, Callable[[Any], Any]] = {
    "laplace": lambda u: -np.sign(u - 0.5) * np.log(1.0 - 2.0 * np.abs(u - 0.5)),
    "gaussian": lambda u: np.array([_NORMAL.inv_cdf(draw) for draw in u]),
    "exponential": lambda u: -np.log1p(-u),
    "gumbel": lambda u: -np.log(-np.log(u)),
    "logistic": lambda u: np.log(u) - np.log1p(-u),
}
"""Of laws with scale 1, by the names of `dpaudit.replaying.laws`."""


class Known(NamedTuple):
    """A law, and what a draw of it is multiplied by.

    Attributes:
        law: Its name.
        factor: The factor of each element.
        form: How the draws are used; draws that are used in two forms are not followed.
        turn: Which of the two independent numbers of one form it is.
    """

    law: str
    factor: Any
    form: str
    turn: str = ""


def units(number: int) -> Any:
    """Points at which the draws of a source are taken to lie; two sources have different ones."""
    fractions = np.modf(np.arange(1, 8 * POINTS) * _ROOTS[number % len(_ROOTS)])[0]
    away = (np.abs(fractions - 0.5) > 0.02) & (fractions > 0.02) & (fractions < 0.98)
    return fractions[away][:POINTS]


def law_of(values: Any, drawn: Tuple[Any, ...]) -> Optional[Known]:
    """The law of which the values are draws.

    Args:
        values: Of each element at each point; shape (..., POINTS).
        drawn: The uniform draws of its one or two sources; shape (POINTS,) each.

    Returns:
        The law and factors; None if no law has these values.
    """
    if not np.isfinite(values).all() or not values.size:
        return None
    if len(drawn) == 2:
        return _box_muller(values, *drawn) or _box_muller(values, *drawn[::-1])
    for law, quantile in QUANTILES.items():
        for reflected in (False, True):
            factor = _multiple(values, quantile(1.0 - drawn[0] if reflected else drawn[0]))
            if factor is not None:
                return Known(law, factor, f"{law}{' reflected' * reflected}")
    return None


def _box_muller(values: Any, radius: Any, angle: Any) -> Optional[Known]:
    """Gaussian noise of two draws (Box and Muller 1958)."""
    for reflected in (False, True):
        length = np.sqrt(-2.0 * np.log(1.0 - radius if reflected else radius))
        for turn in (np.cos, np.sin):
            factor = _multiple(values, length * turn(2.0 * np.pi * angle))
            if factor is not None:
                form = f"Box and Muller{' reflected' * reflected}"
                return Known("gaussian", factor, form, turn.__name__)
    return None


def _multiple(values: Any, unit: Any) -> Optional[Any]:
    """The factor of each element by which its values are multiples of others; None if not so."""
    factor = values @ unit / (unit @ unit)
    gap = np.abs(values - np.multiply.outer(factor, unit)).max(axis=-1)
    return factor if np.all(factor != 0) and np.all(gap <= _EXACT * np.abs(factor)) else None
