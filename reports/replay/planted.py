"""One synthesizer as a library writes it, and ten faults that were planted in it, one at a time.

Honest, it costs what it claims: counts of ten columns, a clipped sum and a sparse search share
epsilon, and rows are drawn from what was released. A comment, `planted: NAME`, marks the line that
a replay must name: where noise is missing, the draw by which the count comes out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.schema import Schema

COLUMNS: Final = 10
LEVELS: Final = 3
CAP: Final = 2.0
EPSILON: Final = 1.0
SCHEMA: Final = Schema.from_document(
    {
        "columns": [
            *(
                {"name": f"a{place}", "kind": "integer", "lower": 0, "upper": LEVELS - 1}
                for place in range(COLUMNS)
            ),
            {"name": "income", "kind": "continuous", "lower": 0.0, "upper": 10.0},
        ]
    }
)


class Fault(NamedTuple):
    """A fault.

    Attributes:
        name: What the synthesizer is told, and its lines are marked with.
        what: In the table.
    """

    name: str
    what: str


FAULTS: Final = (
    Fault("half", "half the scale at one of ten steps"),
    Fault("sensitivity", "noise for a sum that moves by 1, where it moves by 2"),
    Fault("clipping", "clipping forgotten"),
    Fault("plain", "one count without noise"),
    Fault("seed", "the seed is fixed"),
    Fault("twice", "the budget of one step is spent by two"),
    Fault("rows", "the number of records is used as if it were public"),
    Fault("exit", "a loop that ends when the data says so"),
    Fault("sampler", "a sampler that looks at the data"),
    Fault("reused", "noise is used twice"),
)


def table() -> pd.DataFrame:
    """Sixty records; the last has the highest level everywhere and the highest income."""
    rng = np.random.default_rng(5)
    levels = {
        f"a{place}": np.append(rng.integers(0, LEVELS - 1, size=59), LEVELS - 1)
        for place in range(COLUMNS)
    }
    return pd.DataFrame({**levels, "income": np.append(rng.uniform(0.0, 2.0, size=59), 10.0)})


class Planted:
    """A synthesizer of a dozen steps.

    Attributes:
        fault: Name of the fault that it has; None for the honest one.
    """

    claim = PrivacyClaim(epsilon=EPSILON)

    def __init__(self, fault: str | None = None) -> None:
        self.fault = fault

    def fit(self, data: pd.DataFrame, *, seed: int) -> Planted:
        """Spends epsilon: .78 on ten steps of counts, .2 on a sum, .02 on a search."""
        rng = np.random.default_rng(7 if self.fault == "seed" else seed)
        self.counts = [
            self._histogram(data[f"a{place}"].to_numpy(), place, 0.078 * EPSILON, rng)
            for place in range(COLUMNS)
        ]
        self.total = self._sum(data["income"].to_numpy(), 0.2 * EPSILON, rng)
        self.many = self._search(data, 0.02 * EPSILON, rng)
        if self.fault == "sampler":
            self.seen = np.bincount(data["a3"], minlength=LEVELS) + 0.1
        return self

    def _histogram(self, values: Any, place: int, epsilon: float, rng: np.random.Generator) -> Any:
        counts = np.bincount(values, minlength=LEVELS).astype(float)
        if self.fault == "plain" and place == 4:
            return counts
        if self.fault == "reused" and place == 6:
            noise = rng.laplace(scale=1 / epsilon)  # planted: reused
            return np.array([one + noise for one in counts])
        if self.fault == "half" and place == 7:
            return counts + rng.laplace(scale=0.5 / epsilon, size=LEVELS)  # planted: half
        if self.fault == "rows" and place == 1:
            epsilon *= len(values)
            return counts / len(values) + rng.laplace(scale=1 / epsilon, size=3)  # planted: rows
        noisy = counts + rng.laplace(scale=1 / epsilon, size=LEVELS)  # planted: seed, twice
        if self.fault == "twice" and place == 2:
            again = counts + rng.laplace(scale=1 / epsilon, size=LEVELS)
            noisy = (np.maximum(noisy, 0.0) + np.maximum(again, 0.0)) / 2
        return noisy

    def _sum(self, incomes: Any, epsilon: float, rng: np.random.Generator) -> float:
        sensitivity = 1.0 if self.fault == "sensitivity" else CAP
        if self.fault != "clipping":
            incomes = np.minimum(incomes, CAP)
        noise = rng.laplace(scale=sensitivity / epsilon)  # planted: sensitivity, clipping
        return float(incomes.sum() + noise)

    def _search(self, data: pd.DataFrame, epsilon: float, rng: np.random.Generator) -> int:
        """How many columns have a record of the highest level before one that seems to lack it."""
        threshold = 0.5 + rng.laplace(scale=2 / epsilon)
        for place in range(COLUMNS):
            count = int((data[f"a{place}"] == LEVELS - 1).sum())
            if self.fault == "exit" and count == 0:
                return place
            if count + rng.laplace(scale=4 / epsilon) < threshold:  # planted: exit
                return place
        return COLUMNS

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Draws rows from what was released."""
        rng = np.random.default_rng(seed)
        drawn: dict[str, Any] = {}
        for place, noisy in enumerate(self.counts):
            weights = np.maximum(noisy, 0.0) + 1e-9
            if self.fault == "sampler" and place == 3:
                weights = self.seen
            p = weights / weights.sum()
            drawn[f"a{place}"] = rng.choice(LEVELS, size=n, p=p)  # planted: plain, sampler
        mean = min(max(self.total / n, 0.0), CAP)
        drawn["income"] = np.full(n, mean * (1 + 0.001 * self.many))
        return pd.DataFrame(drawn)


def lines_of(fault: str) -> tuple[int, ...]:
    """The lines that are marked with a fault."""
    source = Path(__file__).read_text(encoding="utf-8").splitlines()
    marked = [(number, line.partition("# planted: ")[2]) for number, line in enumerate(source, 1)]
    return tuple(number for number, names in marked if fault in names.split(", "))
