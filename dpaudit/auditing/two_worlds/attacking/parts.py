"""Splits the trials of an audit into the fitting part and the scored part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from dpaudit.plugins.protocols import BoolArray, FloatArray

MIN_FITTED = 4
"""Finished trials of each world that the fitting part needs."""


class FeatureRows(Protocol):
    """Feature vectors [n, f]: an array, or an object that reads its rows on demand."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: slice, /) -> FloatArray: ...


class Part(NamedTuple):
    """Trials of both worlds in one part of the split.

    Attributes:
        features: Their features [n, f]; `features[:]` is the whole matrix.
        member: Membership [n].
    """

    features: FeatureRows
    member: BoolArray


class SplitTrials(NamedTuple):
    """The trials of one audit as one attack sees them.

    Attributes:
        fitting: Finished trials of the fitting part.
        scored: Finished trials of the scored part.
        failed_in: Trials of world "in" in the scored part that failed.
        failed_out: The same for world "out".
    """

    fitting: Part
    scored: Part
    failed_in: int
    failed_out: int


def arrange(
    worlds: Sequence[Sequence[Any | None]],
    masks: Sequence[BoolArray],
    *,
    rows: Callable[[Sequence[Any]], FeatureRows] = np.vstack,
) -> SplitTrials | None:
    """Sorts outcomes into the two parts.

    Args:
        worlds: Results of the trials of world "in", then "out", by trial number: features, or keys
            for `rows`; None if a trial failed.
        masks: For each world, which trials are in the fitting part.
        rows: The feature vectors of some results.

    Returns:
        The parts; None if too few trials finished to fit and score an attack.
    """
    fitting = gather(worlds, masks, fitting=True, rows=rows)
    scored = gather(worlds, masks, fitting=False, rows=rows)
    if fitting is None or scored is None:
        return None
    failed_in, failed_out = (
        sum(outcome is None and not fits for outcome, fits in zip(outcomes, mask, strict=True))
        for outcomes, mask in zip(worlds, masks, strict=True)
    )
    return SplitTrials(fitting, scored, failed_in=failed_in, failed_out=failed_out)


def gather(
    worlds: Sequence[Sequence[Any | None]],
    masks: Sequence[BoolArray],
    *,
    fitting: bool,
    rows: Callable[[Sequence[Any]], FeatureRows] = np.vstack,
) -> Part | None:
    """One part of the split; None if it has too few finished trials of a world.

    Args:
        worlds: As for `arrange`.
        masks: As for `arrange`.
        fitting: Which part.
        rows: As for `arrange`.

    Returns:
        The finished trials, world "in" first.
    """
    results: list[Any] = []
    member: list[bool] = []
    for is_member, outcomes, mask in zip((True, False), worlds, masks, strict=True):
        chosen = [outcome for outcome, fits in zip(outcomes, mask, strict=True) if fits == fitting]
        present = [outcome for outcome in chosen if outcome is not None]
        if len(present) < (MIN_FITTED if fitting else 1):
            return None
        results += present
        member += [is_member] * len(present)
    return Part(rows(results), np.array(member, dtype=np.bool_))
