"""Families of trade-off functions: what a guarantee leaves of an attack's two error rates.

A member of a family is named by its level: mu of Gaussian differential privacy, rho of zCDP, or the
factor by which the epsilons of a privacy curve are multiplied. The larger the level, the smaller
the errors that an attack may have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from dpaudit.bounds._checks import FloatArray
from dpaudit.model.currencies import CurvePoint

# ndtr of less underflows, and 1 - ndtr of more is 0.
_LARGEST_SCORE = 37.0
# A finite set of orders leaves constraints of zCDP out: it makes the region of rates larger and
# every limit on rho smaller, never larger. On (0.41, 0.41), (0.1, 0.3), (0.001, 0.9) these give the
# supremum over all orders to within 2e-4 of it.
_ORDERS: Final = 1.0 + np.geomspace(0.02, 500.0, 72)
_ORDERS.setflags(write=False)
_SOLVER_STEPS = 80
_SOLVER_WIDTH = 1e-10
_LARGEST_EXPONENT = 700.0


class TradeOff(Protocol):
    """A family of convex symmetric trade-off functions (Dong, Roth and Su 2022, Definition 2.1)."""

    def least_fnr(self, fpr: FloatArray, level: float) -> FloatArray:
        """Smallest false-negative rate that the guarantee of this level allows.

        Args:
            fpr: False-positive rates, in [0, 1]; shape (m,).
            level: The level. Below 0: the curve of what lies beyond a blind guess.

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
            The levels; negative beyond a blind guess, minus infinity where a rate is 1.
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
        """Where the constraint on the divergences is met with equality, never above it."""
        if level < 0.0:
            mirrored: FloatArray = 1.0 - self.least_fnr(1.0 - fpr, -level)
            return mirrored
        out = np.clip(-ndtri(fpr), -_LARGEST_SCORE, _LARGEST_SCORE)
        target = np.sqrt(2.0 * level)
        low = -out  # a blind guess
        low_value = np.full(out.shape, -target)
        high = low + 2.0 * target + 1e-9
        high_value = self._excess(high, out, target)
        while np.any(high_value < 0.0):
            short = high_value < 0.0
            high = np.where(short, high + 2.0 * target + 1.0, high)
            high_value = self._excess(high, out, target)
        for step in range(_SOLVER_STEPS):
            if np.all(high - low <= _SOLVER_WIDTH):
                break
            # Regula falsi (Illinois), with a bisection now and then; nearly straight in these scores.
            middle = (low * high_value - high * low_value) / (high_value - low_value)
            if step % 4 == 3:
                middle = (low + high) / 2.0
            value = self._excess(middle, out, target)
            above = value >= 0.0
            low_value = np.where(above, np.maximum(low_value, low_value / 2.0), value)
            high_value = np.where(above, value, high_value / 2.0)
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        rates: FloatArray = ndtr(-high)
        return np.where(fpr >= 1.0, 0.0, np.where(fpr <= 0.0, 1.0, rates))

    def level(self, fnr: FloatArray, fpr: FloatArray) -> FloatArray:
        """The largest D_α/α over orders and directions, negative beyond a blind guess."""
        fnr, fpr = np.broadcast_arrays(np.asarray(fnr, dtype=float), np.asarray(fpr, dtype=float))
        into = np.clip(-ndtri(fnr), -_LARGEST_SCORE, _LARGEST_SCORE)
        out = np.clip(-ndtri(fpr), -_LARGEST_SCORE, _LARGEST_SCORE)
        levels = np.where(into + out >= 0.0, 1.0, -1.0) * _divergence(into, out)
        return np.where((fnr >= 1.0) | (fpr >= 1.0), -np.inf, levels)

    @staticmethod
    def _excess(into: FloatArray, out: FloatArray, target: float) -> FloatArray:
        found: FloatArray = np.sqrt(2.0 * _divergence(into, out)) - target
        return found


@dataclass(frozen=True)
class CurveTradeOff:
    """A privacy curve with all its epsilons multiplied by the level; every point holds at once.

    Attributes:
        points: Points (ε, δ), at least one.
    """

    points: tuple[CurvePoint, ...]

    def least_fnr(self, fpr: FloatArray, level: float) -> FloatArray:
        """max over points of 1 − δ − e^ε FPR and e^−ε (1 − δ − FPR) (Kairouz et al. 2015)."""
        least = np.zeros(np.shape(fpr))
        for epsilon, delta in self.points:
            factor = np.exp(np.clip(level * epsilon, -_LARGEST_EXPONENT, _LARGEST_EXPONENT))
            least = np.maximum(least, 1.0 - delta - factor * fpr)
            least = np.maximum(least, (1.0 - delta - fpr) / factor)
        return least

    def level(self, fnr: FloatArray, fpr: FloatArray) -> FloatArray:
        """max over points of the log of their larger privacy ratio, divided by ε."""
        levels = np.full(np.broadcast_shapes(np.shape(fnr), np.shape(fpr)), -np.inf)
        with np.errstate(divide="ignore"):
            for epsilon, delta in self.points:
                left = (1.0 - delta - fnr) / fpr
                ratio = np.maximum(np.maximum(left, (1.0 - delta - fpr) / fnr), 0.0)
                levels = np.maximum(levels, np.log(ratio) / epsilon)
        return levels


def _divergence(into: FloatArray, out: FloatArray) -> FloatArray:
    """The largest D_α/α of two Bernoulli variables, over orders and both directions.

    Args:
        into: Normal score of the true-positive rate; shape (m,).
        out: Normal score of the true-negative rate; same shape.
    """
    guessed_in, guessed_out = log_ndtr(into), log_ndtr(-into)  # of world "in"
    wrong_in, right_out = log_ndtr(-out), log_ndtr(out)  # of world "out"
    largest = np.zeros(into.shape)
    for order in _ORDERS:
        scale = order * (order - 1.0)
        forward = np.logaddexp(
            order * guessed_in + (1.0 - order) * wrong_in,
            order * guessed_out + (1.0 - order) * right_out,
        )
        backward = np.logaddexp(
            order * wrong_in + (1.0 - order) * guessed_in,
            order * right_out + (1.0 - order) * guessed_out,
        )
        largest = np.maximum(largest, np.maximum(forward, backward) / scale)
    return largest
