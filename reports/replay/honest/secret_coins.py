"""Masks, mixtures and adaptive steps: what is released is less than what the steps spend."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from reports.replay.honest.bases import BitsModel, CountsModel, Rng, binary_schema, bits_table
from reports.replay.honest.case import CELLS, CELLS_SCHEMA, Case, cells_table

KEEP = math.e / (1.0 + math.e)


class Secret(CountsModel):
    """Noisy counts that are made of counts in one of several ways."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> Secret:
        """Makes them."""
        counts = np.bincount(data["a"], minlength=CELLS).astype(float)
        self.noisy = self._made(counts, np.random.default_rng(seed))
        return self

    def _made(self, counts: Any, rng: Rng) -> Any:
        raise NotImplementedError


class Adaptive(Secret):
    """The first noisy answer decides how much of the budget the second gets; both are kept."""

    def _made(self, counts: Any, rng: Rng) -> Any:
        first = float(counts[3] + rng.laplace(scale=2.0))
        self.scale = 2.0 if self._decisive(first, counts) > 0.5 else 4.0
        second = counts[3] + rng.laplace(scale=self.scale)  # fault: adaptive
        self.answers = (first, float(second))
        return np.append(np.full(3, 10.0), second)

    def _decisive(self, first: float, counts: Any) -> float:
        return first


class ScaleByTruth(Adaptive):
    """The twin: the count itself decides, and the scale is in the model."""

    def _decisive(self, first: float, counts: Any) -> float:
        return float(counts[3])  # fault: adaptive


class Averaged(Secret):
    """Two answers of which the second's scale follows the first; only their mean is released."""

    def _made(self, counts: Any, rng: Rng) -> Any:
        first = float(counts[3] + rng.laplace(scale=self._scale(2.0)))  # fault: averaged
        second = counts[3] + rng.laplace(scale=self._scale(2.0 if first > 0.5 else 4.0))
        return np.append(np.full(3, 10.0), (first + second) / 2)

    def _scale(self, scale: float) -> float:
        return scale


class AveragedOverdrawn(Averaged):
    """The twin: a tenth of the noise."""

    def _scale(self, scale: float) -> float:
        return scale / 10


class BudgetUntilSpent(Secret):
    """Asks again, each time with twice the budget, until a noisy answer is clear or 1 is spent."""

    first = 0.1

    def _made(self, counts: Any, rng: Rng) -> Any:
        left, epsilon, self.answers = 1.0, self.first, []
        while left >= epsilon:
            noisy = counts + rng.laplace(scale=1.0 / epsilon, size=CELLS)  # fault: budget
            self.answers.append(noisy)
            left -= epsilon
            if abs(noisy[3]) > 30.0:
                break
            epsilon = min(2.0 * epsilon, left) if left > 1e-9 else math.inf
        return self.answers[-1]


class BudgetNeverCharged(BudgetUntilSpent):
    """The twin: it begins with the whole budget, and has it four times over."""

    def _made(self, counts: Any, rng: Rng) -> Any:
        self.answers = [counts + rng.laplace(size=CELLS) for _ in range(4)]  # fault: budget
        return self.answers[-1]


class OneOfTwo(Secret):
    """A secret coin decides which of two counts is asked; which one is not said."""

    def _made(self, counts: Any, rng: Rng) -> Any:
        heads = rng.random() < 0.5  # fault: one-of-two
        asked = counts[3] if heads else 1.0
        self.answer = float(asked + rng.laplace(scale=0.5))  # fault: one-of-two
        self._noted(heads)
        return np.append(np.full(3, 10.0), self.answer)

    def _noted(self, heads: bool) -> None:
        """Keeps nothing."""


class OneOfTwoTold(OneOfTwo):
    """The twin: the coin is kept."""

    def _noted(self, heads: bool) -> None:
        self.heads = bool(heads)  # fault: one-of-two


class Padded(Secret):
    """Noisy counts, and two counts behind one-time pads that are thrown away."""

    def _made(self, counts: Any, rng: Rng) -> Any:
        pads = self._pads(rng)
        self.padded = [int((counts[place] + pads[place - 2]) % 64) for place in (2, 3)]
        return counts + rng.laplace(size=CELLS)

    def _pads(self, rng: Rng) -> Any:
        return rng.integers(0, 64, size=2)


class PadTwice(Padded):
    """The twin: both counts have the same pad, so their difference is told."""

    def _pads(self, rng: Rng) -> Any:
        return np.repeat(rng.integers(0, 64), 2)  # fault: padded


class Xored(BitsModel):
    """Whether each of two columns has a one, noisily; only the exclusive or is released."""

    columns = ("b0", "b1")

    def fit(self, data: pd.DataFrame, *, seed: int) -> Xored:
        """Turns each bit by a coin of its own."""
        flips = np.random.default_rng(seed).random(2) >= KEEP  # fault: xored
        noisy = data[["b0", "b1"]].max().to_numpy() ^ flips  # fault: xored
        self._release([int(bit) for bit in noisy])
        return self

    def _release(self, noisy: list[int]) -> None:
        self.told = [noisy[0] ^ noisy[1], 0]


class XoredTold(Xored):
    """The twin: both noisy bits are kept."""

    def _release(self, noisy: list[int]) -> None:
        super()._release(noisy)
        self.bits = noisy  # fault: xored


class ResponseToComparison(BitsModel):
    """Whether a noisy count is large, told by randomised response."""

    columns = ("b0", "b1")

    def fit(self, data: pd.DataFrame, *, seed: int) -> ResponseToComparison:
        """Compares a noisy count and tells the truth in seven of ten fits."""
        rng = np.random.default_rng(seed)
        large = bool(data["b0"].sum() + rng.laplace(scale=0.5) > 0.5)  # fault: compared
        self._release(large, rng)
        return self

    def _release(self, large: bool, rng: Rng) -> None:
        self.told = [int(large == (rng.random() < 0.7)), 0]


class ComparisonTold(ResponseToComparison):
    """The twin: the answer to the comparison is told."""

    def _release(self, large: bool, rng: Rng) -> None:
        self.told = [int(large), int(rng.random() < 0.7)]


def _case(name: str, generator: Any, twin: Any, marker: str, **known: Any) -> Case:
    stated: dict[str, Any] = {"table": cells_table(), "schema": CELLS_SCHEMA, "target": "row:39"}
    return Case(
        name=name,
        family="secret coins and adaptive steps",
        generator=generator,
        twin=twin,
        twin_marker=f"# fault: {marker}",
        **(stated | known),
    )


TWO_BITS: dict[str, Any] = {
    "table": bits_table(2).assign(b1=0),
    "schema": binary_schema(["b0", "b1"]),
    "target": "row:12",
}
ALL: dict[str, Any] = {"twin_spends": math.inf, "twin_shows": math.inf}

CASES = (
    _case(
        "scale follows the first answer",
        Adaptive,
        ScaleByTruth,
        "adaptive",
        epsilon=1.0,
        released=True,
        note="1/2 for the first answer and at most 1/2 for the second, by composition",
        **ALL,
    ),
    _case(
        "mean of two adaptive answers",
        Averaged,
        AveragedOverdrawn,
        "averaged",
        epsilon=1.0,
        twin_spends=10.0,
        note="the same by post-processing; the mean alone shows less",
    ),
    _case(
        "asked again until it is clear",
        BudgetUntilSpent,
        BudgetNeverCharged,
        "budget",
        epsilon=1.0,
        released=True,
        twin_spends=4.0,
        twin_shows=4.0,
        note="at most .1 + .2 + .4 + .3; noisy answers decide when it stops",
    ),
    _case(
        "one of two counts",
        OneOfTwo,
        OneOfTwoTold,
        "one-of-two",
        epsilon=1.433781,
        twin_spends=2.0,
        twin_shows=2.0,
        note="2 f(y - 1) / (f(y) + f(y - 1)) with noise of scale 1/2",
    ),
    _case(
        "count behind a one-time pad",
        Padded,
        PadTwice,
        "padded",
        epsilon=1.0,
        released=True,
        note="the padded count is uniform in both worlds; the noisy count costs 1",
        **ALL,
    ),
    _case(
        "exclusive or of two noisy bits",
        Xored,
        XoredTold,
        "xored",
        epsilon=0.433781,
        spends=1.0,
        twin_spends=1.0,
        twin_shows=1.0,
        **TWO_BITS,
        note="the target has one of the bits; two coins turn the exclusive or",
    ),
    _case(
        "randomised response to a comparison",
        ResponseToComparison,
        ComparisonTold,
        "compared",
        epsilon=0.516907,
        spends=0.516907,
        twin_spends=1.489881,
        twin_shows=1.489881,
        **TWO_BITS,
        note="the chance that 1 + Laplace noise exceeds 1/2, then a coin of .7",
    ),
)
