"""Splits models of which none failed into those that train an attack and those that it scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpaudit.auditing.two_worlds.attacking import Part, SplitTrials
from dpaudit.plugins.protocols import FloatArray


def split(worlds: Sequence[Sequence[FloatArray]], *, fitted: int) -> SplitTrials:
    """The features of models in two parts.

    Args:
        worlds: Features of the models of world "in", then "out".
        fitted: How many models of each world train the attack; they come first.
    """

    def part(rows: slice) -> Part:
        inside, outside = (world[rows] for world in worlds)
        member = np.repeat([True, False], [len(inside), len(outside)])
        return Part(np.vstack([*inside, *outside]), member)

    return SplitTrials(part(slice(fitted)), part(slice(fitted, None)), failed_in=0, failed_out=0)
