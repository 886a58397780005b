"""The exponential mechanism in ten spellings, and choices that are shown only in part."""

from __future__ import annotations

import bisect
import itertools
import math
import random
from typing import Any

import numpy as np
import pandas as pd

from reports.replay.honest.bases import NumberModel, PlaceModel, even_table
from reports.replay.honest.case import (
    CELLS,
    CELLS_SCHEMA,
    NUMBERS_SCHEMA,
    Case,
    numbers_table,
)


class Selecting(PlaceModel):
    """Selects a cell with probability in proportion to exp(rate · count).

    Attributes:
        rate: Half the epsilon of the textbook, for counts that move by one.
    """

    def __init__(self, rate: float = 0.5) -> None:
        self.rate = rate

    def fit(self, data: pd.DataFrame, *, seed: int) -> Selecting:
        """Selects a cell."""
        scores = self.rate * np.bincount(data["a"], minlength=CELLS)
        self.place = int(self._pick(scores - scores.max(), seed))
        return self

    def _pick(self, scores: Any, seed: int) -> int:
        raise NotImplementedError


def probabilities(scores: Any) -> Any:
    """Probabilities in proportion to the exponentials of scores."""
    weights = np.exp(scores)
    return weights / weights.sum()


class Choice(Selecting):
    """By numpy's weighted choice."""

    def _pick(self, scores: Any, seed: int) -> int:
        rng = np.random.default_rng(seed)
        return rng.choice(len(scores), p=probabilities(scores))  # fault: choice


class SearchSorted(Selecting):
    """By searching a uniform number in the cumulated probabilities."""

    def _pick(self, scores: Any, seed: int) -> int:
        u = np.random.default_rng(seed).random()  # fault: search
        return min(np.searchsorted(np.cumsum(probabilities(scores)), u), CELLS - 1)  # fault: search


class FirstAbove(Selecting):
    """By the first cumulated probability above a uniform number."""

    def _pick(self, scores: Any, seed: int) -> int:
        u = np.random.default_rng(seed).uniform()  # fault: first-above
        return (np.cumsum(probabilities(scores)) > u).argmax()  # fault: first-above


class Loop(Selecting):
    """By subtracting one probability after another."""

    def _pick(self, scores: Any, seed: int) -> int:
        left = np.random.default_rng(seed).random()  # fault: loop
        for place, p in enumerate(probabilities(scores)):
            left -= p
            if left < 0.0:  # fault: loop
                return place
        return CELLS - 1


class Bisection(Selecting):
    """In plain Python, by bisection of running sums of the weights."""

    def _pick(self, scores: Any, seed: int) -> int:
        sums = list(itertools.accumulate(np.exp(scores).tolist()))
        u = random.Random(seed).random()  # fault: bisection
        return min(bisect.bisect(sums, u * sums[-1]), CELLS - 1)  # fault: bisection


class PythonChoices(Selecting):
    """By `random.choices`."""

    def _pick(self, scores: Any, seed: int) -> int:
        own = random.Random(seed)
        return own.choices(range(CELLS), weights=np.exp(scores).tolist())[0]  # fault: choices


class Gumbel(Selecting):
    """By the largest score after Gumbel noise."""

    def _pick(self, scores: Any, seed: int) -> int:
        rng = np.random.default_rng(seed)
        return np.argmax(scores + rng.gumbel(size=len(scores)))  # fault: gumbel


class GumbelByHand(Selecting):
    """The same with Gumbel noise made of uniform numbers."""

    def _pick(self, scores: Any, seed: int) -> int:
        u = np.random.default_rng(seed).random(len(scores))  # fault: gumbel-by-hand
        return np.argmax(scores - np.log(-np.log(u)))  # fault: gumbel-by-hand


class Race(Selecting):
    """By exponential clocks that run at the weights; the first to ring is selected."""

    def _pick(self, scores: Any, seed: int) -> int:
        clocks = np.random.default_rng(seed).exponential(size=len(scores))  # fault: race
        return int(np.argmin(clocks / np.exp(scores)))  # fault: race


class PermuteAndFlip(Selecting):
    """Looks at the cells in random order and takes each with probability exp(score)."""

    def _pick(self, scores: Any, seed: int) -> int:
        rng = np.random.default_rng(seed)
        for place in rng.permutation(len(scores)):
            if rng.random() <= np.exp(scores[place]):  # fault: permute
                return int(place)
        raise AssertionError("the largest score is 0, which is always taken")


class Shifted(Choice):
    """The selected cell is released after a random shift by at most one."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> Shifted:
        """Selects a cell and shifts it."""
        super().fit(data, seed=seed)
        shift = np.random.default_rng([seed, 1]).integers(-1, 2)
        self.place = int(self.place + shift) % CELLS
        return self


class ShiftForgotten(Choice):
    """The twin: the shift is computed, then the cell is released as it was selected."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> ShiftForgotten:
        """Selects a cell and shifts a copy."""
        super().fit(data, seed=seed)
        shifted = (self.place + np.random.default_rng([seed, 1]).integers(-1, 2)) % CELLS
        self.is_shifted = bool(shifted != self.place)
        return self


class Coarse(NumberModel):
    """A median among 41 values, of which only the half of the range is released."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> Coarse:
        """Selects a value and keeps its half."""
        x, values = data["x"].to_numpy(), np.linspace(0.0, 1.0, 41)
        above, below = ((x[:, None] > values).sum(axis=0), (x[:, None] < values).sum(axis=0))
        p = probabilities(-0.5 * np.abs(above - below))
        self._release(values, np.random.default_rng(seed).choice(41, p=p))  # fault: coarse
        return self

    def _release(self, values: Any, place: int) -> None:
        self.value = 0.75 if values[place] >= 0.25 else 0.25


class Fine(Coarse):
    """The twin: the value itself is kept as well."""

    def _release(self, values: Any, place: int) -> None:
        super()._release(values, place)
        self.exact = float(values[place])


def _selecting(name: str, kind: type[Selecting], marker: str) -> Case:
    return Case(
        name=f"exponential mechanism {name}",
        family="exponential mechanism",
        generator=kind,
        epsilon=SELECTED,
        table=even_table(),
        schema=CELLS_SCHEMA,
        target="row:12",
        spends=SELECTED,
        twin=lambda: kind(rate=2.0),
        twin_marker=f"# fault: {marker}",
        twin_spends=STEEP,
        twin_shows=STEEP,
        note="log of e^r / (3 + e^r) over 1/4, with r = 1/2; the twin has r = 2",
    )


SELECTED = 0.5 + math.log(4.0 / (3.0 + math.exp(0.5)))
STEEP = 2.0 + math.log(4.0 / (3.0 + math.exp(2.0)))

CASES = (
    _selecting("by choice(p=)", Choice, "choice"),
    _selecting("by searchsorted of a cumulated sum", SearchSorted, "search"),
    _selecting("by argmax of cumsum > u", FirstAbove, "first-above"),
    _selecting("by a loop", Loop, "loop"),
    _selecting("by bisection in Python", Bisection, "bisection"),
    _selecting("by random.choices", PythonChoices, "choices"),
    _selecting("by Gumbel noise", Gumbel, "gumbel"),
    _selecting("by Gumbel noise of uniforms", GumbelByHand, "gumbel-by-hand"),
    _selecting("by exponential clocks", Race, "race"),
    Case(
        name="permute and flip",
        family="exponential mechanism",
        generator=PermuteAndFlip,
        epsilon=0.47574,
        table=even_table(),
        schema=CELLS_SCHEMA,
        target="row:12",
        twin=lambda: PermuteAndFlip(rate=2.0),
        twin_marker="# fault: permute",
        twin_shows=1.39806,
        note="probabilities summed over all orders of four cells",
    ),
    Case(
        name="choice, then a random shift",
        family="exponential mechanism",
        generator=lambda: Shifted(rate=2.0),
        epsilon=0.954459,
        table=even_table(),
        schema=CELLS_SCHEMA,
        target="row:12",
        spends=STEEP,
        twin=lambda: ShiftForgotten(rate=2.0),
        twin_marker="# fault: choice",
        twin_spends=STEEP,
        twin_shows=STEEP,
        note="the mean of the probabilities of three neighbouring cells",
    ),
    Case(
        name="choice released as a half of the range",
        family="exponential mechanism",
        generator=Coarse,
        epsilon=0.06332,
        table=numbers_table(),
        schema=NUMBERS_SCHEMA,
        target="row:39",
        spends=0.06332,
        twin=Fine,
        twin_marker="# fault: coarse",
        twin_spends=0.936681,
        twin_shows=0.936681,
        note="the probabilities of the values are summed in each half",
    ),
)
