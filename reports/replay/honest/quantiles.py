"""Quantiles by the exponential mechanism, over values and over gaps, and by noisy bisection."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from reports.replay.honest.bases import NumberModel
from reports.replay.honest.case import NUMBERS_SCHEMA, Case, numbers_table

QUANTILE = 0.9


class OverValues(NumberModel):
    """The median among eleven values; a record moves each score by at most 1/2."""

    def __init__(self, epsilon: float = 1.0) -> None:
        self.epsilon = epsilon

    def fit(self, data: pd.DataFrame, *, seed: int) -> OverValues:
        """Selects a value."""
        x, values = data["x"].to_numpy(), np.linspace(0.0, 1.0, 11)
        below = (x[:, None] < values).sum(axis=0)
        scores = -np.abs(len(x) / 2 - below)
        weights = np.exp(self.epsilon * scores / (2 * 0.5))
        u = np.random.default_rng(seed).random()  # fault: values
        cumulated = np.cumsum(weights / weights.sum())
        self.value = float(values[min(np.searchsorted(cumulated, u), 10)])  # fault: values
        return self


class OverGaps(NumberModel):
    """A high quantile: a gap between sorted numbers, then any number in it.

    Attributes:
        half: The factor 1/2 of the exponential mechanism.
    """

    def __init__(self, half: float = 0.5) -> None:
        self.half = half

    def fit(self, data: pd.DataFrame, *, seed: int) -> OverGaps:
        """Selects a gap and draws from it."""
        rng = np.random.default_rng(seed)
        edges = np.concatenate([[0.0], np.sort(data["x"].to_numpy()), [1.0]])
        distance = np.abs(np.arange(len(edges) - 1) - QUANTILE * len(data))
        scores = -self.half * distance / max(QUANTILE, 1.0 - QUANTILE)
        gap = self._pick(scores, np.diff(edges), rng)
        self.value = float(rng.uniform(edges[gap], edges[gap + 1]))
        return self

    def _pick(self, scores: Any, lengths: Any, rng: np.random.Generator) -> int:
        weights = np.exp(scores) * lengths
        return int(rng.choice(len(weights), p=weights / weights.sum()))  # fault: gaps


class OverGapsByGumbel(OverGaps):
    """The same by Gumbel noise on the logarithms of the weights."""

    def _pick(self, scores: Any, lengths: Any, rng: np.random.Generator) -> int:
        with np.errstate(divide="ignore"):
            logarithms = scores + np.log(lengths)
        return int(np.argmax(logarithms + rng.gumbel(size=len(scores))))  # fault: gaps-gumbel


class OverGapsByLoop(OverGaps):
    """The same with one number for the gap and the place in it."""

    def _pick(self, scores: Any, lengths: Any, rng: np.random.Generator) -> int:
        weights = np.exp(scores) * lengths
        left = rng.random() * weights.sum()  # fault: gaps-loop
        for gap, weight in enumerate(weights):
            if left < weight:  # fault: gaps-loop
                return gap
            left -= weight
        return len(weights) - 1


class Bisected(NumberModel):
    """Five noisy counts halve the range in which a high quantile lies.

    Attributes:
        scale: Of the noise of each count; five of them share epsilon 1.
    """

    def __init__(self, scale: float = 5.0) -> None:
        self.scale = scale

    def fit(self, data: pd.DataFrame, *, seed: int) -> Bisected:
        """Halves the range."""
        rng, x = np.random.default_rng(seed), data["x"].to_numpy()
        lower, upper = 0.0, 1.0
        for _ in range(5):
            middle = (lower + upper) / 2
            above = np.sum(x > middle) + rng.laplace(scale=self.scale)  # fault: bisected
            if above > 8.0:
                lower = middle
            else:
                upper = middle
        self.value = lower
        return self


def _case(name: str, generator: Any, twin: Any, marker: str, **known: Any) -> Case:
    return Case(
        name=name,
        family="quantiles",
        generator=generator,
        table=numbers_table(),
        schema=NUMBERS_SCHEMA,
        target="row:39",
        twin=twin,
        twin_marker=f"# fault: {marker}",
        **known,
    )


GAPS: dict[str, Any] = {
    "epsilon": 0.883144,
    "twin_shows": 1.536139,
    "note": "the largest ratio of the two piecewise constant densities of the number",
}

CASES = (
    _case(
        "median over values",
        OverValues,
        lambda: OverValues(4.0),
        "values",
        epsilon=0.810952,
        spends=0.810952,
        twin_spends=3.982186,
        twin_shows=3.982186,
        note="the largest ratio of eleven probabilities; the twin's epsilon is 4",
    ),
    _case("quantile over gaps", OverGaps, lambda: OverGaps(1.0), "gaps", **GAPS),
    _case(
        "quantile over gaps by Gumbel noise",
        OverGapsByGumbel,
        lambda: OverGapsByGumbel(1.0),
        "gaps-gumbel",
        **GAPS,
    ),
    _case(
        "quantile over gaps by a loop",
        OverGapsByLoop,
        lambda: OverGapsByLoop(1.0),
        "gaps-loop",
        **GAPS,
    ),
    _case(
        "quantile by noisy bisection",
        Bisected,
        lambda: Bisected(1.0),
        "bisected",
        epsilon=1.0,
        twin_shows=5.0,
        note="only 32 paths: the largest ratio of their probabilities. The twin spends 1 per count",
    ),
)
