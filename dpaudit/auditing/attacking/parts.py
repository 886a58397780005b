"""The trials of an audit in two parts: those that fit an attack, and those that it is scored on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dpaudit.plugins.protocols import BoolArray, FloatArray

MIN_FITTED = 4
"""Finished trials of each world that the fitting part needs."""


class Part(NamedTuple):
    """Trials of both worlds in one part of the split: features [n, f] and membership [n]."""

    features: FloatArray
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


def fitting_mask(n: int, n_fitting: int, rng: np.random.Generator) -> BoolArray:
    """A random choice [n] of the trials of one world that form the fitting part."""
    mask = np.zeros(n, dtype=np.bool_)
    mask[rng.permutation(n)[:n_fitting]] = True
    return mask


def arrange(
    worlds: Sequence[Sequence[FloatArray | None]], masks: Sequence[BoolArray]
) -> SplitTrials | None:
    """Sorts outcomes into the two parts.

    Args:
        worlds: Features of the trials of world "in", then of "out", by trial number; None where a
            trial failed.
        masks: For each world, which trials are in the fitting part.

    Returns:
        The parts; None if too few trials finished to fit and score an attack.
    """
    fitting = gather(worlds, masks, fitting=True)
    scored = gather(worlds, masks, fitting=False)
    if fitting is None or scored is None:
        return None
    failed_in, failed_out = (
        sum(outcome is None and not fits for outcome, fits in zip(outcomes, mask, strict=True))
        for outcomes, mask in zip(worlds, masks, strict=True)
    )
    return SplitTrials(fitting, scored, failed_in=failed_in, failed_out=failed_out)


def gather(
    worlds: Sequence[Sequence[FloatArray | None]], masks: Sequence[BoolArray], *, fitting: bool
) -> Part | None:
    """One part of the split; None if it has too few finished trials of a world.

    Args:
        worlds: As for `arrange`.
        masks: As for `arrange`.
        fitting: Which part.

    Returns:
        The finished trials, world "in" first.
    """
    features: list[FloatArray] = []
    member: list[bool] = []
    for is_member, outcomes, mask in zip((True, False), worlds, masks, strict=True):
        chosen = [outcome for outcome, fits in zip(outcomes, mask, strict=True) if fits == fitting]
        present = [outcome for outcome in chosen if outcome is not None]
        if len(present) < (MIN_FITTED if fitting else 1):
            return None
        features += present
        member += [is_member] * len(present)
    return Part(np.vstack(features), np.array(member, dtype=np.bool_))
