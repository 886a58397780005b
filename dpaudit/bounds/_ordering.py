"""How outcomes of a two-world experiment are ranked as evidence against a claim."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpaudit.bounds._checks import FloatArray
from dpaudit.bounds._region import RejectionRegion
from dpaudit.bounds.clopper_pearson import statistic, upper_limits
from dpaudit.bounds.counts import Counts

# The exact bound ranks outcomes by statistics that depend neither on the requested confidence
# nor, within a step, on delta: otherwise more confidence could raise a bound (by up to 0.2 at
# 30 trials), because outcomes overtake one another. Where delta reaches a further step the bound
# must hold under that ranking too: rankings are only ever added, so that delta never helps.
_REFERENCE_CONFIDENCE = 0.95
_DELTA_STEPS = (0.0, 0.05)


@dataclass(frozen=True, eq=False)
class Ordering:
    """Ranks outcomes by their Clopper-Pearson statistic; fewer errors never rank lower.

    Attributes:
        fn_upper: Upper limits on the false-negative rate; shape (n_in + 1,), increasing.
        fp_upper: Upper limits on the false-positive rate; shape (n_out + 1,), increasing.
        delta: δ of the statistic.
    """

    fn_upper: FloatArray
    fp_upper: FloatArray
    delta: float

    @classmethod
    def at(cls, confidence: float, *, n_in: int, n_out: int, delta: float) -> Ordering:
        """Ranks by the bound that holds with this confidence."""
        tail = (1.0 - confidence) / 2.0
        return cls(upper_limits(n_in, tail), upper_limits(n_out, tail), delta)

    def statistic(self, counts: Counts) -> float:
        """Log of the larger privacy ratio at the limits, not clipped at 0."""
        fn_upper = self.fn_upper[counts.false_negatives]
        fp_upper = self.fp_upper[counts.false_positives]
        return float(statistic(fn_upper, fp_upper, self.delta))

    def at_least(self, ratio: float) -> RejectionRegion:
        """The outcomes whose statistic is at least ln ratio."""
        return RejectionRegion.of_ratio(
            ratio, fn_upper=self.fn_upper, fp_upper=self.fp_upper, delta=self.delta
        )

    def no_lower_than(self, counts: Counts) -> RejectionRegion:
        """The outcomes that rank at least as high as this one."""
        return self.at_least(math.exp(self.statistic(counts)))


def reference_orderings(*, n_in: int, n_out: int, delta: float) -> list[Ordering]:
    """The rankings under each of which the exact bound holds."""
    return [
        Ordering.at(_REFERENCE_CONFIDENCE, n_in=n_in, n_out=n_out, delta=step)
        for step in _DELTA_STEPS
        if step <= delta
    ]
