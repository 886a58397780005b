"""The parts of a conclusion: verdict, checks of the run, and power."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from dpaudit.model.claim import Claim

POWER: Final = 0.8
"""Probability of proving a violation that defines the smallest detectable epsilon."""
DIFFERENT_SEEDS: Final = "different seeds"
"""Name of the check that fails where every model of a world gives the same table."""

FRESH_TRIALS: Final = "fresh trials"
"""Name of the check that fails where another result was made of the same trials before."""


class Verdict(StrEnum):
    """What an audit concludes."""

    VIOLATION = "violation"
    OVERSPENT = "overspent"
    """Of a replay: the noise steps spend more than the claim; the release was not shown to."""
    CONSISTENT = "consistent"
    INCONCLUSIVE = "inconclusive"
    INVALID = "invalid"
    MEASURED = "measured"
    """No claim was given: the empirical epsilon is the result."""


BY_SEVERITY: Final = (
    Verdict.VIOLATION,
    Verdict.INVALID,
    Verdict.OVERSPENT,
    Verdict.INCONCLUSIVE,
    Verdict.MEASURED,
    Verdict.CONSISTENT,
)
"""All verdicts, the most severe first."""


def most_severe(verdicts: Iterable[Verdict]) -> Verdict:
    """The most severe of several verdicts; invalid if there is not one."""
    return min(verdicts, key=BY_SEVERITY.index, default=Verdict.INVALID)


class ClaimAndBound(Protocol):
    """A claim and what was proved of it."""

    @property
    def claim(self) -> Claim:
        """The claim under audit."""

    @property
    def proved(self) -> float | None:
        """The lower bound on what it limits; None if nothing was scored."""


def exceeds_claim(result: ClaimAndBound) -> bool:
    """Whether a bound lies above the claim: if not, only a probe can prove a violation."""
    return result.proved is not None and result.proved > result.claim.value


class Consequence(StrEnum):
    """The consequence of a failed check for the verdict."""

    INVALIDATES = "invalidates"
    WEAKENS = "weakens"
    WITHHOLDS = "withholds"
    NOTED = "noted"


class SampleUnit(StrEnum):
    """The unit of an audit's sample size."""

    TRIALS = "trials"
    CANARIES = "canaries"
    COINS = "records with a coin"
    RUNS = "simulated runs"

    @property
    def remedy(self) -> str:
        """What to add for a larger audit, such as shadow models."""
        return "shadow models" if self is SampleUnit.TRIALS else self.value


@dataclass(frozen=True)
class Check:
    """A check of the run itself.

    Attributes:
        name: What was checked.
        passed: Whether it held.
        detail: What was seen, in one sentence.
        consequence: What it means if it did not hold: the run is invalid; finding nothing proves
            nothing; a bound above the claim proves no violation; or it is only noted.
    """

    name: str
    passed: bool
    detail: str
    consequence: Consequence = Consequence.INVALIDATES

    @property
    def invalidates(self) -> bool:
        """Whether it failed and makes the run invalid."""
        return not self.passed and self.consequence is Consequence.INVALIDATES

    @property
    def withholds(self) -> bool:
        """Whether it failed, so that a bound above the claim proves no violation."""
        return not self.passed and self.consequence is Consequence.WITHHOLDS


class Power(NamedTuple):
    """What an audit can prove.

    Attributes:
        max_provable: The bound of a perfect attack, in the quantity of the claim.
        detectable: The minimum detectable epsilon (power 0.8) of randomised response under an
            optimal attack; in another quantity, of the mechanism that leaks as much at one
            threshold as that allows. None if there is none.
        detectable_gaussian: The same for a Gaussian leak; None at delta 0, or if it is not known.
    """

    max_provable: float
    detectable: float | None
    detectable_gaussian: float | None = None


class Decision(NamedTuple):
    """A verdict and its reasons, the main one first."""

    verdict: Verdict
    reasons: tuple[str, ...]
