"""Two planted leaks that show in synthetic rows: a count that gets no noise, and the rows' number.

Everything else is noisy, and there are many columns: what a default audit has to search through.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from dpaudit.model.claim import PrivacyClaim

COLUMNS, CELLS, ROWS = 11, 6, 60
NAMES = [f"c{at}" for at in range(COLUMNS)]
SCHEMA = {
    "columns": [
        *({"name": name, "kind": "integer", "lower": 0, "upper": CELLS - 1} for name in NAMES),
        {"name": "x", "kind": "continuous", "lower": 0.0, "upper": 1.0},
    ]
}


def table() -> pd.DataFrame:
    """A table whose last record is in the last cell of every column."""
    cells = np.random.default_rng(3).integers(0, CELLS, size=(ROWS, COLUMNS))
    cells[-1] = CELLS - 1
    return pd.DataFrame(cells, columns=NAMES).assign(x=np.linspace(0.0, 1.0, ROWS))


class OneCountPlain:
    """Noisy histograms; the centre of `x` is made of a count that gets no noise."""

    claim = PrivacyClaim(epsilon=0.1, delta=0.0)

    def fit(self, data: pd.DataFrame, *, seed: int) -> OneCountPlain:
        rng, self.shares = np.random.default_rng(seed), []
        for name in NAMES:
            counts = np.bincount(data[name], minlength=CELLS)
            noisy = counts + rng.laplace(0.0, COLUMNS / self.claim.epsilon, size=CELLS)
            kept = np.maximum(noisy, 0.0) + 1e-9
            self.shares.append(kept / kept.sum())
        self.plain = int(np.sum(data[NAMES[-1]] == CELLS - 1))
        self.rows = len(data)
        return self

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        rng = np.random.default_rng(seed)
        drawn = [rng.choice(CELLS, size=n, p=shares) for shares in self.shares]
        cells = pd.DataFrame(dict(zip(NAMES, drawn, strict=True)))
        return cells.assign(x=self.numbers(rng, n))

    def numbers(self, rng: np.random.Generator, n: int) -> Any:
        """Numbers around a centre that follows the count."""
        return np.clip(rng.normal(0.2 + 0.02 * self.plain, 0.1, size=n), 0.0, 1.0)


class RowsAsConstant(OneCountPlain):
    """The same, with the number of records as if it were public."""

    def numbers(self, rng: np.random.Generator, n: int) -> Any:
        """Numbers of a range that begins where the number of records says."""
        return self.rows / 200 + 0.3 * rng.random(n)
