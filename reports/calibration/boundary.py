"""Which error counts prove a violation under a rule, asked as seldom as possible."""

from __future__ import annotations

from functools import cache
from typing import Protocol

import numpy as np
from scipy.stats import binom

# Counts less probable than this are not enumerated; their mass is added to the rate.
_NEGLIGIBLE = 1e-11


class Rule(Protocol):
    """A bound on epsilon from error counts."""

    def __call__(
        self,
        false_negatives: int,
        false_positives: int,
        n_in: int,
        n_out: int,
        *,
        delta: float,
        confidence: float,
    ) -> float:
        """The bound."""

    def __hash__(self) -> int:
        """Functions are distinguished by identity."""


class Boundary:
    """The counts at which a rule's bound exceeds epsilon, learnt on demand.

    Fewer errors never prove less and the worlds may be swapped (the package's property tests say
    so of its rules), so that one answer settles all counts beyond it, and their mirror images.
    """

    def __init__(
        self, rule: Rule, n: int, *, epsilon: float, delta: float, confidence: float
    ) -> None:
        self._rule, self._n, self._epsilon = rule, n, epsilon
        self._settings = {"delta": delta, "confidence": confidence}
        # By false positives: most false negatives known to prove, fewest known not to.
        self._proves = np.full(n + 1, -1)
        self._fails = np.full(n + 1, n + 1)

    def proves(self, false_negatives: int, false_positives: int) -> bool:
        """Whether the bound at these counts exceeds epsilon."""
        if false_negatives <= self._proves[false_positives]:
            return True
        if false_negatives >= self._fails[false_positives]:
            return False
        bound = self._rule(false_negatives, false_positives, self._n, self._n, **self._settings)
        for fn, fp in ((false_negatives, false_positives), (false_positives, false_negatives)):
            if bound > self._epsilon:
                np.maximum(self._proves[: fp + 1], fn, out=self._proves[: fp + 1])
            else:
                np.minimum(self._fails[fp:], fn, out=self._fails[fp:])
        return bound > self._epsilon

    def rate(self, fpr: float, fnr: float) -> float:
        """Probability that the bound exceeds epsilon, summed over all counts."""
        counts = np.arange(self._n + 1)
        mass = binom.pmf(counts, self._n, fpr)
        plausible = np.flatnonzero(mass > _NEGLIGIBLE)
        first, last = (int(binom.ppf(q, self._n, fnr)) for q in (_NEGLIGIBLE, 1.0 - _NEGLIGIBLE))
        most = [self._most(int(fp), first, last) for fp in plausible]
        rejected = float(mass[plausible] @ binom.cdf(most, self._n, fnr))
        return min(1.0, rejected + float(mass[mass <= _NEGLIGIBLE].sum()) + 2.0 * _NEGLIGIBLE)

    def _most(self, false_positives: int, first: int, last: int) -> int:
        """Most false negatives in [first, last] that prove; first - 1 for none."""
        low = max(int(self._proves[false_positives]), first - 1)
        high = min(int(self._fails[false_positives]), last + 1)
        step = 1
        while high - low > 1:  # gallop down from where the last column ended, then bisect
            middle = max(high - step, (low + high) // 2)
            if self.proves(middle, false_positives):
                low = middle
            else:
                high, step = middle, 2 * step
        return low


@cache
def boundary(rule: Rule, n: int, epsilon: float, delta: float, confidence: float) -> Boundary:
    """The one boundary of these settings: what one cell learns the next one knows."""
    return Boundary(rule, n, epsilon=epsilon, delta=delta, confidence=confidence)
