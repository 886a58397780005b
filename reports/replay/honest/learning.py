"""Small models: means, moments, covariances, clusters, tables of classes, regressions."""

# ruff: noqa: D102 (overridden methods: their class says what they do)

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from dpaudit.model.schema import Schema
from reports.replay.honest.case import NUMBERS_SCHEMA, Case, numbers_table
from reports.replay.honest.exact import DELTA, gaussian_epsilon

FAMILY: Final = "small models"
Rng = np.random.Generator
NAMES: Final = ("u", "v", "w")
THREE: Final = Schema.from_document(
    {"columns": [{"name": n, "kind": "continuous", "lower": 0.0, "upper": 1.0} for n in NAMES]}
)
LABELLED: Final = Schema.from_document(
    {"columns": [{"name": n, "kind": "integer", "lower": 0, "upper": 1} for n in ("b", "c", "y")]}
)
WIDE: Final = Schema.from_document(
    {"columns": [{"name": "x", "kind": "continuous", "lower": 0.0, "upper": 5.0}]}
)


def three_table() -> pd.DataFrame:
    """Sixty records in the unit cube; the last is in its corner."""
    rng = np.random.default_rng(8)
    return pd.DataFrame(
        np.vstack([rng.uniform(0, 0.6, (59, 3)).round(3), np.ones(3)]), columns=NAMES
    )


def labelled_table() -> pd.DataFrame:
    """Sixty records of two features and a label; the last has one feature of two."""
    rng = np.random.default_rng(9)
    bits = np.vstack([rng.integers(0, 2, (59, 3)), [1, 0, 1]])
    return pd.DataFrame(bits, columns=["b", "c", "y"])


class MeanInBounds:
    """A noisy sum of clipped values over a noisy count."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> MeanInBounds:
        """Half of epsilon for each."""
        rng = np.random.default_rng(seed)
        total = self.clipped(data["x"]).sum() + rng.laplace(scale=2.0)  # fault: mean
        count = len(data) + rng.laplace(scale=2.0)
        self.mean = float(np.clip(total / max(count, 1.0), 0.0, 1.0))
        self.total = float(total)
        return self

    def clipped(self, x: Any) -> Any:
        """Between public bounds."""
        return x.clip(0.0, 1.0)

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Rows around the mean."""
        drawn = np.random.default_rng(seed).exponential(self.mean + 0.01, size=n)
        return pd.DataFrame({"x": np.minimum(drawn, 1.0)})


class MeanWithoutBounds(MeanInBounds):
    """Not clipped."""

    def clipped(self, x: Any) -> Any:
        return x


class Moments:
    """A noisy sum and a noisy sum of squares."""

    scale = 2.0

    def fit(self, data: pd.DataFrame, *, seed: int) -> Moments:
        """Takes both."""
        rng = np.random.default_rng(seed)
        x = data["x"].to_numpy()
        self.first = float(x.sum() + rng.laplace(0.0, self.scale))  # fault: moments
        self.second = float((x**2).sum() + rng.laplace(0.0, self.scale))  # fault: moments
        return self

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Normal rows, cut at the bounds."""
        mean = self.first / n
        deviation = math.sqrt(max(self.second / n - mean**2, 0.01))
        drawn = np.random.default_rng(seed).normal(mean, deviation, size=n)
        return pd.DataFrame({"x": np.clip(drawn, 0.0, 1.0)})


class MomentsOfAllOfIt(Moments):
    """Each has the whole budget."""

    scale = 1.0


class Covariance:
    """A second-moment matrix with symmetric Gaussian noise."""

    sigma = 2.0

    def fit(self, data: pd.DataFrame, *, seed: int) -> Covariance:
        """Noise of the upper triangle, mirrored."""
        x = data[list(NAMES)].to_numpy()
        self.matrix = x.T @ x + self.noise(np.random.default_rng(seed))
        return self

    def noise(self, rng: Rng) -> Any:
        """A symmetric matrix."""
        upper = np.triu(rng.normal(0.0, self.sigma, size=(3, 3)))
        return upper + np.triu(upper, 1).T

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Rows along the main directions."""
        values, vectors = np.linalg.eigh(self.matrix)
        normal = np.random.default_rng(seed).normal(size=(n, 3))
        rows = normal * np.sqrt(np.maximum(values, 0.0) / n) @ vectors.T
        return pd.DataFrame(np.clip(np.abs(rows), 0.0, 1.0), columns=list(NAMES))


class CovarianceOfMeanNoise(Covariance):
    """A matrix of noise and its mirror image, averaged: less noise off the diagonal."""

    def noise(self, rng: Rng) -> Any:
        full = rng.normal(0.0, self.sigma, size=(3, 3))  # fault: covariance
        return (full + full.T) / 2


class MainDirection(Covariance):
    """The first principal component of the noisy matrix."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> MainDirection:
        x = data[list(NAMES)].to_numpy()
        exact = x.T @ x
        values, vectors = np.linalg.eigh(exact + self.noise(np.random.default_rng(seed)))
        self.direction = vectors[:, -1] * np.sign(vectors[0, -1] or 1.0)
        self.strength = self.explained(values, exact)
        return self

    def explained(self, values: Any, exact: Any) -> float:
        """How much of the noisy matrix it explains."""
        return float(values[-1] / np.abs(values).sum())

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        scores = np.random.default_rng(seed).normal(size=(n, 1)) * self.strength
        return pd.DataFrame(np.clip(np.abs(scores * self.direction), 0, 1), columns=list(NAMES))


class ExplainedOfTheData(MainDirection):
    """How much of the data it explains."""

    def explained(self, values: Any, exact: Any) -> float:
        return float(self.direction @ exact @ self.direction / np.trace(exact))  # fault: main


class KMeans:
    """Two clusters; sums and counts are noisy in each of three rounds."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> KMeans:
        """A sixth of epsilon for each."""
        rng = np.random.default_rng(seed)
        x, centres = data["x"].to_numpy(), np.array([0.25, 0.75])
        for _ in range(3):
            near = np.abs(x[:, None] - centres).argmin(axis=1)
            sums = np.bincount(near, weights=x, minlength=2) + rng.laplace(0, 6.0, size=2)
            sizes = self.sizes(np.bincount(near, minlength=2), rng)
            centres = np.sort(np.clip(sums / np.maximum(sizes, 1.0), 0.0, 1.0))
        self.centres = centres
        return self

    def sizes(self, exact: Any, rng: Rng) -> Any:
        """Noisy sizes."""
        return exact + rng.laplace(0, 6.0, size=2)

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Rows around the centres."""
        rng = np.random.default_rng(seed)
        drawn = rng.choice(self.centres, size=n) + rng.normal(0, 0.05, size=n)
        return pd.DataFrame({"x": np.clip(drawn, 0.0, 1.0)})


class KMeansOfBareSizes(KMeans):
    """Sizes have no noise."""

    def sizes(self, exact: Any, rng: Rng) -> Any:
        return exact.astype(float)  # fault: clusters


class NaiveBayes:
    """Counts of the label, and of each feature by label: a third of epsilon for each."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> NaiveBayes:
        """Three tables."""
        rng = np.random.default_rng(seed)
        y = data["y"].to_numpy(dtype=int)
        self.prior = np.bincount(y, minlength=2) + rng.laplace(0, 3.0, 2)
        noise = rng.laplace(0, 3.0, size=(2, 2))
        self.tables = {}
        for name in ("b", "c"):
            table = np.zeros((2, 2))
            np.add.at(table, (y, data[name].to_numpy(dtype=int)), 1.0)
            self.tables[name] = table + noise
            noise = self.next(noise, rng)
        return self

    def next(self, noise: Any, rng: Rng) -> Any:
        """Noise of the next table."""
        return rng.laplace(0, 3.0, size=noise.shape)

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Labels first, then features."""
        rng = np.random.default_rng(seed)
        prior = np.maximum(self.prior, 0.1)
        y = (rng.random(n) < prior[1] / prior.sum()).astype(int)
        rows = {}
        for name, table in self.tables.items():
            kept = np.maximum(table, 0.1)
            rows[name] = (rng.random(n) < (kept[:, 1] / kept.sum(axis=1))[y]).astype(int)
        return pd.DataFrame({**rows, "y": y})


class NaiveBayesOfOneNoise(NaiveBayes):
    """The same noise for both features."""

    def next(self, noise: Any, rng: Rng) -> Any:
        return noise  # fault: bayes


class Regression:
    """Least squares from noisy moments."""

    sigma = 3.0

    def fit(self, data: pd.DataFrame, *, seed: int) -> Regression:
        """Noise for all products at once."""
        rng = np.random.default_rng(seed)
        x, y = data[["u", "v"]].to_numpy(), data["w"].to_numpy()
        gram = x.T @ x
        noise = rng.normal(0.0, self.sigma, size=3)
        gram += noise[[[0, 1], [1, 2]]]
        target = self.target(x.T @ y, rng)
        self.coefficients = np.linalg.solve(gram + 20.0 * np.eye(2), target)
        return self

    def target(self, products: Any, rng: Rng) -> Any:
        """Products with the outcome."""
        return products + rng.normal(0.0, self.sigma, size=2)

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Uniform features, and their outcome."""
        x = np.random.default_rng(seed).random((n, 2))
        w = np.clip(x @ self.coefficients, 0.0, 1.0)
        return pd.DataFrame({"u": x[:, 0], "v": x[:, 1], "w": w})


class RegressionOfBareProducts(Regression):
    """They have none."""

    def target(self, products: Any, rng: Rng) -> Any:
        return products  # fault: regression


class OutputPerturbation:
    """Logistic regression whose coefficients get noise of a direction and a gamma length.

    A convex loss of slope at most 1 in each record, strongly convex by the penalty: one record
    moves the minimum by at most its norm over the penalty (Chaudhuri and others 2011).
    """

    penalty, epsilon = 5.0, 1.0

    def fit(self, data: pd.DataFrame, *, seed: int) -> OutputPerturbation:
        """Fits, and perturbs."""
        rng = np.random.default_rng(seed)
        direction = rng.normal(size=2)
        length = rng.gamma(2.0, self.moved() / self.epsilon)
        noise = length * direction / np.linalg.norm(direction)
        self.coefficients = logistic(data, self.penalty) + noise  # fault: output
        return self

    def moved(self) -> float:
        """The most that a record of norm sqrt(2) moves the minimum."""
        return math.sqrt(2.0) / self.penalty

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Uniform features, and labels by the model."""
        rng = np.random.default_rng(seed)
        bits = rng.integers(0, 2, size=(n, 2))
        chance = 1.0 / (1.0 + np.exp(-np.clip(bits @ self.coefficients, -30.0, 30.0)))
        y = (rng.random(n) < chance).astype(int)
        return pd.DataFrame({"b": bits[:, 0], "c": bits[:, 1], "y": y})


class OutputPerturbationOfTheMean(OutputPerturbation):
    """Divided by the number of records, which is right for another penalty."""

    def moved(self) -> float:
        return math.sqrt(2.0) / (self.penalty * 60)


def logistic(data: pd.DataFrame, penalty: float) -> Any:
    """Coefficients of a penalised logistic regression without an intercept."""
    model = LogisticRegression(C=1 / penalty, fit_intercept=False, solver="newton-cholesky")
    return model.fit(data[["b", "c"]].to_numpy(), data["y"].to_numpy()).coef_[0]


def output_epsilon(generator: OutputPerturbation) -> float:
    """How far the last record moves the minimum, over the scale of the length."""
    data = labelled_table()
    shift = logistic(data, generator.penalty) - logistic(data.iloc[:-1], generator.penalty)
    return float(np.linalg.norm(shift)) / (generator.moved() / generator.epsilon)


def _case(
    name: str,
    generator: Callable[[], Any],
    twin: Callable[[], Any],
    table: pd.DataFrame,
    schema: Schema,
    **known: Any,
) -> Case:
    return Case(
        name=name,
        family=FAMILY,
        generator=generator,
        twin=twin,
        twin_marker=f"# fault: {name}",
        table=table,
        schema=schema,
        target=f"row:{len(table) - 1}",
        **known,
    )


PRODUCTS: Final = gaussian_epsilon(math.sqrt(6) / Covariance.sigma)
CASES: Final = (
    _case(
        "mean",
        MeanInBounds,
        MeanWithoutBounds,
        numbers_table(last=5.0),
        WIDE,
        epsilon=1.0,
        spends=1.0,
        twin_spends=3.0,
        twin_shows=3.0,
        note="two Laplace answers of one half each, the second behind a mean",
    ),
    _case(
        "moments",
        Moments,
        MomentsOfAllOfIt,
        numbers_table(),
        NUMBERS_SCHEMA,
        epsilon=1.0,
        spends=1.0,
        twin_spends=2.0,
        twin_shows=2.0,
        released=True,
        note="two Laplace answers of one half each; the record is 1, so both move by 1",
    ),
    _case(
        "covariance",
        Covariance,
        CovarianceOfMeanNoise,
        three_table(),
        THREE,
        epsilon=PRODUCTS,
        delta=DELTA,
        spends=PRODUCTS,
        twin_spends=gaussian_epsilon(3.0 / Covariance.sigma),
        twin_shows=gaussian_epsilon(3.0 / Covariance.sigma),
        released=True,
        note="six Gaussian products, each moves by 1",
    ),
    _case(
        "main",
        MainDirection,
        ExplainedOfTheData,
        three_table(),
        THREE,
        epsilon=PRODUCTS,
        delta=DELTA,
        spends=PRODUCTS,
        twin_spends=math.inf,
        note="post-processing of six Gaussian products; a direction shows less",
    ),
    _case(
        "clusters",
        KMeans,
        KMeansOfBareSizes,
        numbers_table(),
        NUMBERS_SCHEMA,
        epsilon=1.0,
        spends=1.0,
        twin_spends=math.inf,
        note="three rounds of two Laplace answers, a sixth each; the last centres show less",
    ),
    _case(
        "bayes",
        NaiveBayes,
        NaiveBayesOfOneNoise,
        labelled_table(),
        LABELLED,
        epsilon=1.0,
        spends=1.0,
        twin_spends=math.inf,
        twin_shows=math.inf,
        released=True,
        note="one of each of three Laplace tables moves by 1, each costs a third",
    ),
    _case(
        "regression",
        Regression,
        RegressionOfBareProducts,
        three_table(),
        THREE,
        epsilon=gaussian_epsilon(math.sqrt(5) / Regression.sigma),
        delta=DELTA,
        spends=gaussian_epsilon(math.sqrt(5) / Regression.sigma),
        twin_spends=math.inf,
        note="post-processing of five Gaussian products; two coefficients show less",
    ),
    _case(
        "output",
        OutputPerturbation,
        OutputPerturbationOfTheMean,
        labelled_table(),
        LABELLED,
        epsilon=1.0,
        twin_shows=output_epsilon(OutputPerturbationOfTheMean()),
        released=True,
        note="output perturbation, gamma length: by theorem; this record shows less",
    ),
)
