"""Small synthesizers: MWEM, select and measure, Bayesian networks, noisy marginals, rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from reports.replay.honest.bases import Rng, binary_schema
from reports.replay.honest.case import CELLS, CELLS_SCHEMA, Case, cells_table

DELTA = 1e-5
COLUMNS = ("b0", "b1", "b2")


def bits_table() -> pd.DataFrame:
    """Twenty-four records of three correlated bits; the target, the last, alone has 1, 0, 1."""
    kinds = [(0, 0, 0)] * 9 + [(1, 1, 1)] * 7 + [(0, 1, 0)] * 4 + [(1, 1, 0)] * 4
    return pd.DataFrame([*kinds, (1, 0, 1)], columns=list(COLUMNS))


def cube(data: pd.DataFrame) -> Any:
    """Counts of the eight cells."""
    counts = np.zeros((2, 2, 2))
    np.add.at(counts, tuple(data[name].to_numpy(dtype=int) for name in COLUMNS), 1.0)
    return counts


class CubeModel:
    """A model that has released a distribution over eight cells."""

    p: Any

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Draws cells."""
        cells = np.random.default_rng(seed).choice(8, size=n, p=np.ravel(self.p))
        return pd.DataFrame(
            {name: cells // 2 ** (2 - place) % 2 for place, name in enumerate(COLUMNS)}
        )


class Mwem(CubeModel):
    """Three rounds: the query with the largest error, measured, and multiplicative weights."""

    rounds, epsilon, records = 3, 1.0, 24.0

    def fit(self, data: pd.DataFrame, *, seed: int) -> Mwem:
        """Improves a distribution three times."""
        rng, counts = np.random.default_rng(seed), cube(data)
        queries = [(axes, cell) for axes in ((0, 1), (0, 2), (1, 2)) for cell in np.ndindex(2, 2)]
        synthetic, share = np.full((2, 2, 2), self.records / 8), self.epsilon / self.rounds
        for _ in range(self.rounds):
            errors = np.array([abs(ask(counts, q) - ask(synthetic, q)) for q in queries])
            weights = np.exp(share / 2 * (errors - errors.max()) / 2)
            query = queries[rng.choice(len(queries), p=weights / weights.sum())]
            answer = self._measured(ask(counts, query), 2 / share, rng)
            factor = np.exp((answer - ask(synthetic, query)) / (2 * self.records))
            synthetic[region(query)] *= factor
            synthetic *= self.records / synthetic.sum()
        self.p = synthetic / synthetic.sum()
        return self

    def _measured(self, count: float, scale: float, rng: Rng) -> float:
        return count + rng.laplace(scale=scale)  # fault: mwem


class MwemForgotten(Mwem):
    """The twin: the scale is divided by the number of cells."""

    def _measured(self, count: float, scale: float, rng: Rng) -> float:
        return count + rng.laplace(scale=scale / 12)  # fault: mwem


def region(query: Any) -> Any:
    """The part of the cube that a query counts."""
    axes, cell = query
    return tuple(cell[axes.index(axis)] if axis in axes else slice(None) for axis in range(3))


def ask(counts: Any, query: Any) -> float:
    """The answer to a query."""
    return float(counts[region(query)].sum())


class SelectAndMeasure(CubeModel):
    """Single columns, then one selected pair, all by Gaussian noise, as in MST and AIM."""

    sigma, rate = 4.0, 0.25

    def fit(self, data: pd.DataFrame, *, seed: int) -> SelectAndMeasure:
        """Measures columns, selects a pair and measures it."""
        rng, counts, pairs = np.random.default_rng(seed), cube(data), ((0, 1), (0, 2), (1, 2))
        exact = np.array([counts.sum(axis=rest) for rest in ((1, 2), (0, 2), (0, 1))])
        ones = exact + rng.normal(0.0, self.sigma, (3, 2))  # fault: mst
        shares = [np.maximum(one, 0.5) / np.maximum(one, 0.5).sum() for one in ones]
        errors = []
        for one, two in pairs:
            (rest,) = {0, 1, 2} - {one, two}
            expected = 24 * np.outer(shares[one], shares[two])
            errors.append(np.abs(counts.sum(axis=rest) - expected).max())
        weights = np.exp(self.rate * (np.array(errors) - max(errors)))
        one, two = pairs[np.searchsorted(np.cumsum(weights / weights.sum()), rng.random())]
        (rest,) = {0, 1, 2} - {one, two}
        joint = np.maximum(counts.sum(axis=rest) + rng.normal(0.0, self.sigma, (2, 2)), 0.1)
        whole = np.einsum("ij,k->ijk", joint / joint.sum(), shares[rest])
        self.p = np.moveaxis(whole, (0, 1, 2), (one, two, rest))
        return self


class SelectAndMeasureTwice(SelectAndMeasure):
    """The twin: a share of the budget is taken for a deviation."""

    sigma = 0.4


class Network(CubeModel):
    """A chain of noisy tables, as in PrivBayes; only conditional probabilities are kept."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> Network:
        """Counts two tables of pairs."""
        rng, counts = np.random.default_rng(seed), cube(data)
        first = self._table(counts.sum(axis=2), rng)
        second = self._table(counts.sum(axis=0), rng)
        second /= second.sum(axis=1, keepdims=True)
        self.p = (first / first.sum())[:, :, None] * second[None]
        return self

    def _table(self, counts: Any, rng: Rng) -> Any:
        noisy = counts + rng.laplace(scale=2.0, size=counts.shape)  # fault: network
        return np.maximum(noisy, 1e-3)


class NetworkOfSeen(Network):
    """The twin: cells that do not occur get no noise."""

    def _table(self, counts: Any, rng: Rng) -> Any:
        noisy = counts + rng.laplace(scale=2.0, size=counts.shape)  # fault: network
        return np.where(counts > 0, np.maximum(noisy, 1e-3), 1e-6)


class Marginals(CubeModel):
    """Independent columns by noisy counts, which the model keeps."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> Marginals:
        """Counts every column."""
        rng = np.random.default_rng(seed)
        self.counts = {}
        for name in COLUMNS:
            noise = rng.laplace(scale=self._scale(name), size=2)  # fault: marginals
            self.counts[name] = np.bincount(data[name], minlength=2) + noise  # fault: marginals
        one, two, three = (np.maximum(self.counts[name], 0.1) for name in COLUMNS)
        p = np.einsum("i,j,k->ijk", one, two, three)
        self.p = p / p.sum()
        return self

    def _scale(self, name: str) -> float:
        return 3.0


class MarginalsUneven(Marginals):
    """The twin: one column has a tenth of the noise."""

    def _scale(self, name: str) -> float:
        return 0.3 if name == "b2" else 3.0


class Rows:
    """As many rows of each cell as its rounded noisy count says."""

    scale = 1.0

    def fit(self, data: pd.DataFrame, *, seed: int) -> Rows:
        """Counts cells and writes rows."""
        rng = np.random.default_rng(seed)
        counts = np.bincount(data["a"], minlength=CELLS)
        noisy = counts + rng.laplace(scale=self.scale, size=CELLS)  # fault: rows
        times = np.maximum(np.rint(noisy), 0).astype(int)
        self.rows = np.repeat(np.arange(CELLS), times).tolist()
        return self

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Repeats the rows."""
        return pd.DataFrame({"a": np.resize(self.rows or [0], n)})


class RowsOfLittleNoise(Rows):
    """The twin: a quarter of the noise."""

    scale = 0.25


def _case(name: str, generator: Any, twin: Any, marker: str, **known: Any) -> Case:
    stated: dict[str, Any] = {
        "table": bits_table(),
        "schema": binary_schema(list(COLUMNS)),
        "target": "row:24",
    }
    return Case(
        name=name,
        family="small synthesizers",
        generator=generator,
        twin=twin,
        twin_marker=f"# fault: {marker}",
        **(stated | known),
    )


CASES = (
    _case(
        "MWEM",
        Mwem,
        MwemForgotten,
        "mwem",
        epsilon=1.0,
        note="three rounds of 1/6 for a selection and 1/6 for a measurement",
    ),
    _case(
        "select and measure",
        SelectAndMeasure,
        SelectAndMeasureTwice,
        "mst",
        epsilon=2.838708,
        delta=DELTA,
        note="rho is four times 1 / (2 sigma^2), and rate^2 / 2 for the selection",
    ),
    _case(
        "network of noisy tables",
        Network,
        NetworkOfSeen,
        "network",
        epsilon=1.0,
        spends=1.0,
        twin_spends=math.inf,
        twin_shows=math.inf,
        note="one count of each of two tables moves by 1 under a scale of 2",
    ),
    _case(
        "noisy marginals",
        Marginals,
        MarginalsUneven,
        "marginals",
        epsilon=1.0,
        spends=1.0,
        twin_spends=4.0,
        twin_shows=4.0,
        released=True,
        note="one count of each of three columns moves by 1 under a scale of 3",
    ),
    _case(
        "rows of noisy counts",
        Rows,
        RowsOfLittleNoise,
        "rows",
        epsilon=1.0,
        table=cells_table(),
        schema=CELLS_SCHEMA,
        target="row:39",
        spends=1.0,
        twin_spends=4.0,
        twin_shows=4.0,
        note="rounded Laplace noise; the tail of the count reaches 1",
    ),
)
