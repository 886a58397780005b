"""All the ways to cut a set of attack scores in two, and the trials below each cut."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpaudit.bounds._checks import BoolArray, FloatArray, IntArray
from dpaudit.errors import SettingsError


class LabelledScores(NamedTuple):
    """Attack scores (n,) and whether each trial is of the "in" world (n,)."""

    scores: FloatArray
    member: BoolArray


class Cuts(NamedTuple):
    """Every way to cut the scores in two, from the lowest cut to the highest.

    Attributes:
        values: The cuts: below all scores, between adjacent distinct ones, above all; shape (m,).
        members: Members whose score lies below each cut; shape (m,), the last one all of them.
        others: Non-members whose score lies below each cut; shape (m,), the last one all of them.
    """

    values: FloatArray
    members: IntArray
    others: IntArray

    @property
    def n_in(self) -> int:
        """Trials of the "in" world."""
        return int(self.members[-1])

    @property
    def n_out(self) -> int:
        """Trials of the "out" world."""
        return int(self.others[-1])


def cuts_of(scores: FloatArray, member: BoolArray) -> Cuts:
    """Lists the cuts of scores that `checked` has passed."""
    distinct, position = np.unique(scores, return_inverse=True)
    below, above = distinct[:-1], distinct[1:]
    middle = (below + above) / 2.0
    # Between neighbouring floats the midpoint rounds to either; the upper one separates them.
    middle = np.where((below < middle) & (middle <= above), middle, above)
    values = np.concatenate([distinct[:1], middle, np.nextafter(distinct[-1:], np.inf)])

    def cumulative(of: BoolArray) -> IntArray:
        counts = np.bincount(position[of], minlength=distinct.size)
        return np.concatenate([[0], np.cumsum(counts)])

    return Cuts(values=values, members=cumulative(member), others=cumulative(~member))


def checked(scores: FloatArray, member: BoolArray) -> LabelledScores:
    """Returns both as arrays, or says why they do not fit together.

    Raises:
        SettingsError: If they do not.
    """
    scores = np.asarray(scores, dtype=np.float64)
    member = np.asarray(member)
    if scores.ndim != 1 or scores.shape != member.shape:
        raise SettingsError(
            f"scores of shape {scores.shape} with membership of shape {member.shape}; "
            "give one score and one membership bit per trial"
        )
    if member.dtype != np.bool_:
        raise SettingsError(f"membership is of type {member.dtype}; give booleans")
    if not np.all(np.isfinite(scores)):
        broken = int(np.count_nonzero(~np.isfinite(scores)))
        raise SettingsError(f"{broken} scores are not finite; the attack must return real numbers")
    if member.all() or not member.any():
        raise SettingsError("all trials are of one world; a threshold needs trials of both")
    return LabelledScores(scores, member)
