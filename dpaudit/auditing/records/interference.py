"""How much records that are trained together hide one another, and how many to train together.

A record shifts what an attack sees by mu standard deviations of the mechanism's noise. If k records
all shift the same statistic, the coins of the k - 1 others, of variance mu²/4 each, are noise to an
attack on one of them: it sees a shift of mu / sqrt(1 + (k - 1) mu²/4). Records that shift
statistics of their own do not disturb one another. A real generator is somewhere in between.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from dpaudit.auditing.records.plan import size_of
from dpaudit.auditing.settings import AuditSettings
from dpaudit.bounds import coin_detectable_shift
from dpaudit.model.claim import PrivacyClaim
from dpaudit.results.verdict import POWER


class Caught(NamedTuple):
    """The smallest Gaussian leak on each record that an audit of k records catches.

    Attributes:
        records: Records that each model serves, k.
        guesses: Scored models times records.
        apart: mu of that leak if records do not disturb one another; None if none is caught.
        together: The same if all of them shift the same statistic.
    """

    records: int
    guesses: int
    apart: float | None
    together: float | None


def shift_needed(seen: float, records: int) -> float | None:
    """The shift of one record alone of which so much is seen among k that shift the same statistic.

    Args:
        seen: The shift that has to be seen, at least 0.
        records: Records, k.

    Returns:
        The shift; None if no shift is large enough.
    """
    left = 1.0 - (records - 1) * seen * seen / 4.0
    return seen / math.sqrt(left) if left > 0.0 else None


def caught_with(
    records: Iterable[int], settings: AuditSettings, claim: PrivacyClaim
) -> list[Caught]:
    """What as many models catch with each number of records, with 80 % power.

    Args:
        records: Numbers of records.
        settings: Those of the audit; its own number of records does not matter.
        claim: The claim under audit.

    Returns:
        One for each number, in order.
    """
    found = []
    for k in records:
        size = size_of(settings, claim, records=k)
        seen = coin_detectable_shift(claim_epsilon=claim.epsilon, power=POWER, **size)
        together = None if seen is None else shift_needed(seen, k)
        found.append(Caught(k, size["trials"], seen, together))
    return found


def most_sensitive(leaks: Mapping[int, float | None]) -> int | None:
    """The number of records with which the smallest leak is caught; None if none is caught."""
    return min(
        (records for records, leak in leaks.items() if leak is not None),
        key=lambda records: (leaks[records], records),
        default=None,
    )
