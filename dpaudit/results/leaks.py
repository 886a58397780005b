"""What carries an attack: the whole output, many features equally, or a few features."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Final, NamedTuple

from dpaudit.formatting import listed
from dpaudit.plugins.protocols import THE_TRIAL, FeatureName
from dpaudit.results.record import Leak
from dpaudit.results.verdict import DIFFERENT_SEEDS, Check

SEVERAL: Final = " & "
"""Between the columns of a feature about several of them."""
NO_COLUMN: Final = frozenset({THE_TRIAL, "whole rows"})
"""The column of a feature that is about no column in particular."""
LEAKS_NAMED: Final = 3
"""Features, or groups of them, that one sentence names."""
LEAKS_LISTED: Final = 5
"""Features, or groups of them, that a table lists."""
NEGLIGIBLE: Final = 0.01
"""A feature counts as important if permuting it costs the attack at least this much AUC."""
SEPARATES: Final = 0.1
"""|AUC - 1/2| from which a feature alone separates the worlds."""

TRIAL_OUTCOMES: Final = "trial outcomes"
"""Name of the attack on how trials end."""
WHOLE_OUTPUT: Final = "the whole output, which the seed does not change"
_SHARE: Final = "share of "
"""Prefix of a feature of one category of a column."""
MANY: Final = "many redundant features"
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
    if in_output and any(check.name == DIFFERENT_SEEDS and not check.passed for check in checks):
        return Carrier.WHOLE_OUTPUT
    if max((leak.importance for leak in leaks), default=0.0) >= NEGLIGIBLE:
        return Carrier.FEATURES
    alone = [leak for leak in leaks if (leak.separation or 0.0) >= SEPARATES]
    return Carrier.MANY if len(alone) > 1 else Carrier.NONE


def carriers(leaks: Sequence[Leak]) -> list[Leak]:
    """The features that an attack needs, or that separate the worlds alone."""
    return [
        leak
        for leak in leaks
        if leak.importance >= NEGLIGIBLE or (leak.separation or 0.0) >= SEPARATES
    ]


def by_importance(leaks: Sequence[Leak]) -> list[Leak]:
    """Features by importance; by separation if they are redundant, as none is important then."""
    by_separation = sorted(leaks, key=lambda leak: -(leak.separation or 0.0))
    if carrier(leaks) is Carrier.MANY:
        return by_separation
    return sorted(by_separation, key=lambda leak: -leak.importance)


def leak_reason(leaks: Sequence[Leak], checks: Sequence[Check]) -> str:
    """Where the leak of a violation is."""
    names = "; ".join(top_leaks(leaks))
    return {
        Carrier.WHOLE_OUTPUT: f"the leak is in {WHOLE_OUTPUT}",
        Carrier.MANY: f"{MANY}: {names}",
        Carrier.FEATURES: f"the leak is in {names}",
        Carrier.NONE: NO_FEATURE,
    }[carrier(leaks, checks)]


def top_leaks(leaks: Sequence[Leak]) -> tuple[str, ...]:
    """The first features as every sentence names them; the table of a report begins with these."""
    return tuple(group.name for group in group_leaks(leaks)[:LEAKS_NAMED])


def leaks_in(leaks: Sequence[Leak], columns: Sequence[str]) -> bool:
    """Whether a feature that sentences name is about one of these columns, or about all of them."""
    named = {of for group in group_leaks(leaks)[:LEAKS_NAMED] for of in group.columns}
    parts = {part for of in named for part in of.split(SEVERAL)}
    return not named.isdisjoint(NO_COLUMN) or not (named | parts).isdisjoint(columns)


def feature(leak: Leak) -> str:
    """A feature's name for people: "maximum (Age)", "rows equal to the target (Age & Sex)"."""
    return str(FeatureName(leak.column, leak.feature))


class LeakGroup(NamedTuple):
    """Similar features of several columns or categories, or a single feature.

    Attributes:
        name: Their common name: "education, 9 categories".
        importance: Importance of the most important feature.
        separation: Separation of the most separating feature; None if none separates.
        features: Number of features.
        columns: The columns that they are about, one or several joined for each feature.
    """

    name: str
    importance: float
    separation: float | None
    features: int
    columns: tuple[str, ...]


def group_leaks(leaks: Sequence[Leak]) -> tuple[LeakGroup, ...]:
    """Groups leaking features, the most important first.

    The categories of one column form a group, and so does one statistic of several columns.
    Features of negligible importance are left out if others have more: they are redundant.

    Args:
        leaks: The features, in order.

    Returns:
        The groups, in the order of their first features.
    """
    some = [leak for leak in leaks if leak.importance >= NEGLIGIBLE]
    groups: dict[tuple[str, str], list[Leak]] = {}
    for leak in some or leaks:
        is_share = leak.feature.startswith(_SHARE)
        key = ("category", leak.column) if is_share else ("feature", leak.feature)
        groups.setdefault(key, []).append(leak)
    return tuple(
        LeakGroup(
            name=_group_name(group),
            importance=max(leak.importance for leak in group),
            separation=max(
                (leak.separation for leak in group if leak.separation is not None), default=None
            ),
            features=len(group),
            columns=tuple(leak.column for leak in group),
        )
        for group in groups.values()
    )


def _group_name(group: Sequence[Leak]) -> str:
    first = group[0]
    if len(group) == 1:
        return feature(first)
    if first.feature.startswith(_SHARE):
        return f"{first.column}, {len(group)} categories"
    columns = listed([leak.column for leak in group], LEAKS_NAMED)
    return str(FeatureName(columns, first.feature))
