"""How outcomes of a two-world experiment are ranked as evidence against a claim."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from dpaudit.bounds._checks import FloatArray
from dpaudit.bounds._region import RejectionRegion
from dpaudit.bounds.clopper_pearson import statistic, upper_limits
from dpaudit.bounds.counts import Counts

# The exact bound ranks outcomes by statistics that do not depend on the requested confidence:
# otherwise more confidence could raise a bound (by up to 0.2 at 30 trials), because outcomes
# overtake one another.
_REFERENCE_CONFIDENCE = 0.95
# A ranking loses power at a δ that is further from its own than √(δ/n), by which the rates stray
# at which a claim is tightest: at δ = .1, 269 errors of 1000 in each world are worth .705 by the
# ranking of δ = 0 and .750 by their own. A ranking of its own for every δ would let outcomes
# overtake one another as δ grows.
_STEPS_PER_ONE = 200
# A δ that is a step up to rounding is that step.
_STEP_SLACK = 1e-9


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

    def lowest(self, outcomes: RejectionRegion, *, outside: RejectionRegion) -> float:
        """The smallest ratio of these outcomes outside a region; infinite if there are none."""
        fp = np.flatnonzero(outcomes.most_fn > outside.most_fn)
        # Among outcomes with as many false positives the one of most false negatives ranks last.
        lowest = statistic(self.fn_upper[outcomes.most_fn[fp]], self.fp_upper[fp], self.delta)
        return float(np.exp(np.min(lowest, initial=math.inf)))


class Step(NamedTuple):
    """One of the tests that the exact bound must pass.

    Attributes:
        asked: Ranks by the Clopper-Pearson bound at the confidence and δ of the test.
        reference: Ranks by the Clopper-Pearson bound at 95 % and the δ where the step begins.
    """

    asked: Ordering
    reference: Ordering

    @property
    def delta(self) -> float:
        """δ of the test."""
        return self.asked.delta


def steps(confidence: float, *, n_in: int, n_out: int, delta: float) -> list[Step]:
    """The tests of the exact bound, by rising δ; the last one is of δ itself.

    Each step of δ has a ranking of its own, that of where it begins. A step that δ has passed is
    tested where it ends: the bounds of all tests but the last do not depend on δ, and the smallest
    bound never rises with it. It is valid because it is no larger than that of the last test,
    whose ranking was fixed before the outcome.
    """
    asked = Ordering.at(confidence, n_in=n_in, n_out=n_out, delta=delta)
    reference = Ordering.at(_REFERENCE_CONFIDENCE, n_in=n_in, n_out=n_out, delta=0.0)
    last = math.floor(delta * _STEPS_PER_ONE + _STEP_SLACK)
    begins = [step / _STEPS_PER_ONE for step in range(last + 1)]
    return [
        Step(replace(asked, delta=end), replace(reference, delta=begin))
        for begin, end in zip(begins, [*begins[1:], delta], strict=True)
    ]
