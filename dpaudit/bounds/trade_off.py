"""Families of trade-off functions: what a guarantee leaves of an attack's two error rates.

A member of a family is named by its level: mu of Gaussian differential privacy, rho of zCDP, or the
factor by which the epsilons of a privacy curve are multiplied. The larger the level, the smaller
the errors that an attack may have.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from dpaudit.bounds._checks import BoolArray, FloatArray
from dpaudit.model.currencies import CurvePoint

# ndtr of less underflows, and 1 - ndtr of more is 0.
_LARGEST_SCORE = 37.0
# A finite set of orders leaves constraints of zCDP out: it makes the region of rates larger and
# every limit on rho smaller, never larger. Against 20,000 orders these lose at most 0.5 % of rho,
# for errors from 0.45 to 0.001, and from (0.9, 0.0001) to (0.99, 0.000001).
_ORDERS: Final = 1.0 + np.geomspace(1e-3, 100.0, 64)
_ORDERS.setflags(write=False)
_SWEEPS = 3
_SOLVER_STEPS = 80
_SOLVER_WIDTH = 1e-10
_LARGEST_EXPONENT = 700.0


class TradeOff(Hashable, Protocol):
    """A family of convex symmetric trade-off functions (Dong, Roth and Su 2022, Definition 2.1)."""

    def least_fnr(self, fpr: FloatArray, level: float) -> FloatArray:
        """Smallest false-negative rate that the guarantee of this level allows.

        Args:
            fpr: False-positive rates, in [0, 1]; shape (m,).
            level: The level. Below 0: the curve of rates worse than chance.

        Returns:
            The rates, not increasing in fpr nor in level; shape (m,).
        """
        ...

    def level(self, fnr: FloatArray, fpr: FloatArray) -> FloatArray:
        """Smallest level that allows these rates: the inverse of `least_fnr`.

        Args:
            fnr: False-negative rates, in (0, 1].
            fpr: False-positive rates, in (0, 1]; broadcast with fnr.

        Returns:
            The levels; negative for rates worse than chance, minus infinity where a rate is 1.
        """
        ...


@dataclass(frozen=True)
class GaussianTradeOff:
    """Gaussian differential privacy: telling N(0, 1) from N(mu, 1) (Dong, Roth and Su 2022)."""

    def least_fnr(self, fpr: FloatArray, level: float) -> FloatArray:
        """Φ(Φ⁻¹(1 − FPR) − μ)."""
        rates: FloatArray = ndtr(-ndtri(fpr) - level)
        return rates

    def level(self, fnr: FloatArray, fpr: FloatArray) -> FloatArray:
        """Φ⁻¹(1 − FPR) − Φ⁻¹(FNR)."""
        levels: FloatArray = -ndtri(fpr) - ndtri(fnr)
        return levels


@dataclass(frozen=True)
class ConcentratedTradeOff:
    """Zero-concentrated differential privacy (Bun and Steinke 2016, Definition 1.1).

    Post-processing an output to a guess does not raise a Rényi divergence, so that the guesses in
    the two worlds, Bernoulli variables, have divergence at most ρα for every order α > 1 and in
    both directions. The pairs of rates that satisfy this form a convex set (exp((α − 1) D_α) is
    jointly convex: van Erven and Harremoës 2014), symmetric under exchange of the two rates.
    """

    def least_fnr(self, fpr: FloatArray, level: float) -> FloatArray:
        """The largest rate that one order alone demands, never above that of all orders.

        The order that matters most is looked for where the last one is met with equality.
        """
        if level < 0.0:
            mirrored: FloatArray = 1.0 - self.least_fnr(1.0 - fpr, -level)
            return mirrored
        out = np.clip(-ndtri(fpr), -_LARGEST_SCORE, _LARGEST_SCORE)
        target = np.sqrt(2.0 * level)
        into = target - out  # that of the Gaussian mechanism
        least = np.full(out.shape, np.inf)
        for _ in range(_SWEEPS):
            found = _most_telling(into, out)
            into = _met_with_equality(found.constraint, out, target)
            least = np.minimum(least, into)
        return np.where(fpr >= 1.0, 0.0, np.where(fpr <= 0.0, 1.0, ndtr(-least)))

    def level(self, fnr: FloatArray, fpr: FloatArray) -> FloatArray:
        """The largest D_α/α over orders and directions, negative for rates worse than chance."""
        fnr, fpr = np.broadcast_arrays(np.asarray(fnr, dtype=float), np.asarray(fpr, dtype=float))
        into = np.clip(-ndtri(fnr), -_LARGEST_SCORE, _LARGEST_SCORE).ravel()
        out = np.clip(-ndtri(fpr), -_LARGEST_SCORE, _LARGEST_SCORE).ravel()
        sign = np.where(into + out >= 0.0, 1.0, -1.0)
        levels = (sign * _most_telling(into, out).level).reshape(fnr.shape)
        return np.where((fnr >= 1.0) | (fpr >= 1.0), -np.inf, levels)


@dataclass(frozen=True)
class CurveTradeOff:
    """A privacy curve with all its epsilons multiplied by the level; every point holds at once.

    Attributes:
        points: Points (ε, δ), at least one.
    """

    points: tuple[CurvePoint, ...]

    def least_fnr(self, fpr: FloatArray, level: float) -> FloatArray:
        """Max over points of 1 − δ − e^ε FPR and e^−ε (1 − δ − FPR) (Kairouz et al. 2015)."""
        least = np.zeros(np.shape(fpr))
        for epsilon, delta in self.points:
            factor = np.exp(np.clip(level * epsilon, -_LARGEST_EXPONENT, _LARGEST_EXPONENT))
            least = np.maximum(least, 1.0 - delta - factor * fpr)
            least = np.maximum(least, (1.0 - delta - fpr) / factor)
        return least

    def level(self, fnr: FloatArray, fpr: FloatArray) -> FloatArray:
        """Max over points of the log of their larger privacy ratio, divided by ε."""
        levels = np.full(np.broadcast_shapes(np.shape(fnr), np.shape(fpr)), -np.inf)
        with np.errstate(divide="ignore"):
            for epsilon, delta in self.points:
                left = (1.0 - delta - fnr) / fpr
                ratio = np.maximum(np.maximum(left, (1.0 - delta - fpr) / fnr), 0.0)
                levels = np.maximum(levels, np.log(ratio) / epsilon)
        return levels


class _Constraint(NamedTuple):
    """Orders, and whether the divergence is that of world "out" from "in"; shape (m,) each."""

    order: FloatArray
    backward: BoolArray


class _Telling(NamedTuple):
    """The constraint that demands the largest level, and that level; shape (m,)."""

    constraint: _Constraint
    level: FloatArray


def _most_telling(into: FloatArray, out: FloatArray) -> _Telling:
    """The order and direction with the largest D_α/α.

    Args:
        into: Normal scores of the true-positive rates; shape (m,).
        out: Normal scores of the true-negative rates; shape (m,).
    """
    orders = np.concatenate([_ORDERS, _ORDERS])[:, None]
    backward = np.repeat([False, True], _ORDERS.size)[:, None]
    levels = _divergence(_Constraint(orders, backward), into, out)
    best = levels.argmax(axis=0)
    constraint = _Constraint(orders[best, 0], backward[best, 0])
    return _Telling(constraint, levels[best, np.arange(into.size)])


def _divergence(constraint: _Constraint, into: FloatArray, out: FloatArray) -> FloatArray:
    """D_α/α of two Bernoulli variables with these normal scores of their right guesses."""
    order, backward = constraint
    guess = log_ndtr(into), log_ndtr(-into)  # "in" and "out", in world "in"
    other = log_ndtr(-out), log_ndtr(out)  # the same in world "out"
    terms = [
        np.where(
            backward, order * there + (1.0 - order) * here, order * here + (1.0 - order) * there
        )
        for here, there in zip(guess, other, strict=True)
    ]
    found: FloatArray = np.logaddexp(*terms) / (order * (order - 1.0))
    return np.maximum(found, 0.0)


def _met_with_equality(constraint: _Constraint, out: FloatArray, target: float) -> FloatArray:
    """The score of the true-positive rate at which a constraint is met, from above.

    Args:
        constraint: Order and direction for each rate.
        out: Normal scores of the true-negative rates; shape (m,).
        target: √(2ρ): scores are nearly straight in it.
    """

    def excess(into: FloatArray) -> FloatArray:
        found: FloatArray = np.sqrt(2.0 * _divergence(constraint, into, out)) - target
        return found

    low, high = -out, np.minimum(2.0 * target - out + 1e-6, _LARGEST_SCORE)
    low_value, high_value = np.full(out.shape, -target), excess(high)
    while np.any(short := (high_value < 0.0) & (high < _LARGEST_SCORE)):
        step = 2.0 * (high - low) + 1.0
        high = np.where(short, np.minimum(high + step, _LARGEST_SCORE), high)
        high_value = excess(high)
    never = high_value < 0.0  # the order alone allows any rate
    for turn in range(_SOLVER_STEPS):
        if np.all((high - low <= _SOLVER_WIDTH) | never):
            break
        middle = (low + high) / 2.0
        if turn % 4 < 3:  # regula falsi (Illinois)
            with np.errstate(invalid="ignore", divide="ignore"):
                straight = (low * high_value - high * low_value) / (high_value - low_value)
            middle = np.where((low < straight) & (straight < high), straight, middle)
        value = excess(middle)
        above = value >= 0.0
        low_value = np.where(above, low_value / 2.0, value)
        high_value = np.where(above, value, high_value / 2.0)
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return high
