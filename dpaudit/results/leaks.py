"""What carries an attack, in words: the whole output, many features alike, or a few of them."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Final

from dpaudit.results.record import Leak
from dpaudit.results.verdict import DIFFERENT_SEEDS, Check

LEAKS_NAMED: Final = 3
"""Features that one sentence names."""
NEGLIGIBLE: Final = 0.01
"""An attack that loses less AUC than this without a feature does not rely on that one."""
SEPARATES: Final = 0.1
"""|AUC - 1/2| from which a feature alone separates the worlds."""

TRIAL_OUTCOMES: Final = "trial outcomes"
"""Name of the attack on how trials end."""
THE_TRIAL: Final = "the trial itself"
"""Stands for a column in the features of how a trial ended."""
WHOLE_OUTPUT: Final = "the whole output, which the seed does not change"
MANY: Final = "many features each tell the worlds apart"
NO_FEATURE: Final = "no single feature carries the attack"


class Carrier(Enum):
    """What carries an attack."""

    WHOLE_OUTPUT = "every model of a world gives the same table: no column in particular"
    MANY = "features that repeat each other, so that none is important while the others are there"
    FEATURES = "the most important features"
    NONE = "no feature that could be named"


def carrier(leaks: Sequence[Leak], checks: Sequence[Check] = ()) -> Carrier:
    """What carries an attack.

    Args:
        leaks: Its features.
        checks: The checks of the run: one of them is whether seeds change the output.

    Returns:
        The kind of carrier.
    """
    in_output = not any(leak.column == THE_TRIAL for leak in leaks)
    if in_output and any(one.name == DIFFERENT_SEEDS and not one.passed for one in checks):
        return Carrier.WHOLE_OUTPUT
    if max((leak.importance for leak in leaks), default=0.0) >= NEGLIGIBLE:
        return Carrier.FEATURES
    alone = [leak for leak in leaks if (leak.separation or 0.0) >= SEPARATES]
    return Carrier.MANY if len(alone) > 1 else Carrier.NONE


def in_order(leaks: Sequence[Leak]) -> list[Leak]:
    """Features by importance; by separation where they repeat each other, as none is important."""
    by_separation = sorted(leaks, key=lambda leak: -(leak.separation or 0.0))
    if carrier(leaks) is Carrier.MANY:
        return by_separation
    return sorted(by_separation, key=lambda leak: -leak.importance)


def leak_reason(leaks: Sequence[Leak], checks: Sequence[Check]) -> str:
    """Where the leak of a violation is."""
    names = "; ".join(feature(leak) for leak in leaks[:LEAKS_NAMED])
    return {
        Carrier.WHOLE_OUTPUT: f"the leak is in {WHOLE_OUTPUT}",
        Carrier.MANY: f"{MANY}: {names}",
        Carrier.FEATURES: f"the leak is in {names}",
        Carrier.NONE: NO_FEATURE,
    }[carrier(leaks, checks)]


def feature(leak: Leak) -> str:
    """A feature's name: "max(Age)", or "rows equal to the target (Age & Sex)"."""
    gap = " " if " " in leak.feature else ""
    return f"{leak.feature}{gap}({leak.column})"
