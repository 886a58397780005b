"""Generators whose privacy is known exactly, in the style of libraries; each claims just that."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy.optimize import brentq

from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.schema import Schema
from dpaudit.replaying.guarantee import gaussian_epsilon

CELLS: Final = 4
DELTA: Final = 1e-5
SCHEMA: Final = Schema.from_document(
    {
        "columns": [
            {"name": "a", "kind": "integer", "lower": 0, "upper": CELLS - 1},
            {"name": "x", "kind": "continuous", "lower": 0.0, "upper": 1.0},
        ]
    }
)
Rng = np.random.Generator


def table() -> pd.DataFrame:
    """Forty records, of which the last is alone in the last cell."""
    rng = np.random.default_rng(3)
    cells = np.append(rng.integers(0, CELLS - 1, size=39), CELLS - 1)
    return pd.DataFrame({"a": cells, "x": np.linspace(0.0, 1.0, 40)})


@dataclass
class Mechanism:
    """A generator of cells: what it does with counts is its `train`.

    Attributes:
        name: In the tables.
        epsilon: What it costs exactly, at delta.
        delta: The delta.
        train: From counts, values and random numbers to probabilities of the cells.
    """

    name: str
    epsilon: float
    delta: float
    train: Callable[[Any, Any, Rng], Any]

    @property
    def claim(self) -> PrivacyClaim:
        """Exactly what it costs."""
        return PrivacyClaim(epsilon=self.epsilon, delta=self.delta)

    def fit(self, data: pd.DataFrame, *, seed: int) -> Mechanism:
        """Trains it."""
        values = data["a"].to_numpy()
        counts = np.bincount(values, minlength=CELLS)
        self.p = self.train(counts, values, np.random.default_rng(seed))
        return self

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Draws cells."""
        rng = np.random.default_rng(seed)
        return pd.DataFrame({"a": rng.choice(CELLS, size=n, p=self.p), "x": np.zeros(n)})


def shares(counts: Any) -> Any:
    """Noisy counts as probabilities."""
    kept = np.maximum(counts, 0.0) + 1e-9
    return kept / kept.sum()


def at(place: int) -> Any:
    """Probabilities that show one place."""
    p = np.full(CELLS, 0.1)
    p[place] = 0.7
    return p


def gaussian(sigma: float) -> Callable[[Any, Any, Rng], Any]:
    """Gaussian noise on all counts."""
    return lambda counts, values, rng: shares(counts + rng.normal(0.0, sigma, size=CELLS))


def laplace(counts: Any, values: Any, rng: Rng) -> Any:
    """Laplace noise, count by count."""
    return shares(np.array([count + rng.laplace(scale=1.0) for count in counts]))


def discrete(counts: Any, values: Any, rng: Rng) -> Any:
    """The difference of two geometric draws: discrete Laplace noise."""
    p = 1.0 - math.exp(-1.0)
    return shares(counts + rng.geometric(p, size=CELLS) - rng.geometric(p, size=CELLS))


def noisy_max(counts: Any, values: Any, rng: Rng) -> Any:
    """Report noisy max: Laplace noise of scale 2, only the place is shown."""
    return at(int(np.argmax(counts + rng.laplace(0.0, 2.0, size=CELLS))))


def gumbel_max(counts: Any, values: Any, rng: Rng) -> Any:
    """The exponential mechanism by Gumbel noise."""
    return at(int(np.argmax(counts + rng.gumbel(scale=2.0, size=CELLS))))


def exponential_mechanism(counts: Any, values: Any, rng: Rng) -> Any:
    """The exponential mechanism by its probabilities."""
    weights = np.exp(0.5 * (counts - counts.max()))
    return at(int(rng.choice(CELLS, p=weights / weights.sum())))


def sparse_vector(counts: Any, values: Any, rng: Rng) -> Any:
    """The first count above a noisy threshold."""
    threshold, place = 15.0 + rng.laplace(0.0, 2.0), 0
    for place in range(CELLS):
        if counts[place] + rng.laplace(0.0, 4.0) > threshold:
            break
    return at(place)


def votes(counts: Any, values: Any, rng: Rng) -> Any:
    """PATE: 20 teachers on a partition vote, and only the winner of the noisy votes is shown."""
    teachers = [values[number::20] for number in range(20)]
    votes = np.bincount([int(own[0]) if len(own) else 0 for own in teachers], minlength=CELLS)
    return at(int(np.argmax(votes + rng.laplace(0.0, 2.0, size=CELLS))))


def ratio(counts: Any, values: Any, rng: Rng) -> Any:
    """The noisy share of the last cell: a noisy count over a noisy total."""
    share = (counts[-1] + rng.normal()) / (len(values) + rng.normal())
    p = 1.0 / (1.0 + math.exp(-20.0 * share))
    return np.array([*(np.full(CELLS - 1, (1.0 - p) / (CELLS - 1))), p])


def ratio_epsilon() -> float:
    """What that ratio costs, from the density of the angle of a Gaussian vector.

    Projected normal distribution: Mardia and Jupp (2000), Directional Statistics, section 3.5.6,
    here for both ends of the vector.
    """
    angle = np.linspace(
        -0.5, 0.5, 200_001
    )  # of the vector from (0, 1), some 20 deviations each way
    densities = []
    for count, total in ((1.0, 40.0), (0.0, 39.0)):
        along = count * np.sin(angle) + total * np.cos(angle)
        across = count * np.cos(angle) - total * np.sin(angle)
        densities.append(along * np.exp(-0.5 * across**2) / math.sqrt(2 * math.pi))

    def above(epsilon: float) -> float:
        worst = max(
            np.trapezoid(np.maximum(one - math.exp(epsilon) * other, 0.0), angle)
            for one, other in (densities, densities[::-1])
        )
        return float(worst) - DELTA

    return float(brentq(above, 0.0, 20.0))


def gaussian_shares(counts: Any, values: Any, rng: Rng) -> Any:
    """Five parties' shares of Gaussian noise of scale 1, summed before anybody sees them."""
    parts = [
        (counts if party == 0 else 0 * counts) + rng.normal(0, 5**-0.5, CELLS) for party in range(5)
    ]
    return shares(np.sum(parts, axis=0))


def laplace_shares(counts: Any, values: Any, rng: Rng) -> Any:
    """Laplace noise as a difference of gamma shares of four parties."""
    noise = sum(rng.gamma(0.25, size=CELLS) - rng.gamma(0.25, size=CELLS) for _ in range(4))
    return shares(counts + noise)


def summed_draws(counts: Any, values: Any, rng: Rng) -> Any:
    """Three Laplace draws on all counts: together they cost what one does."""
    return shares(counts + sum(rng.laplace(size=CELLS) for _ in range(3)))


def adaptive(counts: Any, values: Any, rng: Rng) -> Any:
    """The second question depends on the first answer; both cost half."""
    first = counts[-1] + rng.laplace(0.0, 2.0)
    chosen = counts if float(first) > 1.0 else counts[::-1]
    return shares(chosen + rng.laplace(0.0, 2.0, size=CELLS))


def python_noise(counts: Any, values: Any, rng: Rng) -> Any:
    """Laplace noise of Python's own random numbers."""
    own = random.Random(int(rng.integers(2**31)))
    return shares(
        np.array([count + own.expovariate(1.0) - own.expovariate(1.0) for count in counts])
    )


def response(counts: Any, values: Any, rng: Rng) -> Any:
    """A coin of each record: kept with probability e / (1 + e). What it hides is not followed."""
    bits = values % 2
    kept = rng.random(len(bits)) < math.e / (1.0 + math.e)
    told = np.where(kept, bits, 1 - bits)
    return shares(np.array([np.sum(told == 0), np.sum(told == 1), 0, 0]))


def subsampled(counts: Any, values: Any, rng: Rng) -> Any:
    """Gaussian noise on counts of a secret Poisson sub-sample of rate 1/2."""
    chosen = values[rng.random(len(values)) < 0.5]
    return shares(np.bincount(chosen, minlength=CELLS) + rng.normal(0.0, 1.0, size=CELLS))


def subsampled_steps(counts: Any, values: Any, rng: Rng) -> Any:
    """Ten steps of rate 1/10, each on a sub-sample of its own."""
    model = np.zeros(CELLS)
    for _ in range(10):
        chosen = values[rng.random(len(values)) < 0.1]
        noisy = np.bincount(chosen, minlength=CELLS) + rng.normal(0.0, 1.0, size=CELLS)
        model = 0.9 * model + np.clip(noisy, -99.0, 99.0)
    return shares(model)


def running_sums(counts: Any, values: Any, rng: Rng) -> Any:
    """Running sums with correlated noise, as of a matrix mechanism; the record moves the last."""
    noise = np.tril(np.ones((CELLS, CELLS))) @ rng.normal(size=CELLS)
    return shares(np.cumsum(counts) + noise)


def consistent_epsilon() -> float:
    """What they cost: the total moves by 1, and across it the counts by what is left of 1."""
    return gaussian_epsilon(math.sqrt(1.0 + (1.0 - 1.0 / CELLS)), DELTA)


def consistent_counts(counts: Any, values: Any, rng: Rng) -> Any:
    """Noisy counts, moved so that they add up to a noisy total."""
    noisy, total = counts + rng.normal(size=CELLS), counts.sum() + rng.normal()
    return shares(noisy + (total - noisy.sum()) / CELLS)


MECHANISMS: Final = (
    *(
        Mechanism(f"Gaussian, mu {mu:g}", gaussian_epsilon(mu, DELTA), DELTA, gaussian(1.0 / mu))
        for mu in (0.2, 0.5, 1.0, 2.0)
    ),
    Mechanism("Laplace", 1.0, 0.0, laplace),
    Mechanism("discrete Laplace", 1.0, 0.0, discrete),
    Mechanism("report noisy max", 1.0, 0.0, noisy_max),
    Mechanism("Gumbel maximum", 1.0, 0.0, gumbel_max),
    Mechanism("exponential mechanism", 1.0, 0.0, exponential_mechanism),
    Mechanism("sparse vector", 1.0, 0.0, sparse_vector),
    Mechanism("PATE votes", 1.0, 0.0, votes),
    Mechanism("shares of Gaussian noise", gaussian_epsilon(1.0, DELTA), DELTA, gaussian_shares),
    Mechanism("shares of Laplace noise", 1.0, 0.0, laplace_shares),
    Mechanism("running sums, correlated noise", gaussian_epsilon(1.0, DELTA), DELTA, running_sums),
    Mechanism("counts with a noisy total", consistent_epsilon(), DELTA, consistent_counts),
    Mechanism("ratio of noisy counts", ratio_epsilon(), DELTA, ratio),
    Mechanism("three Laplace draws", 1.0, 0.0, summed_draws),
    Mechanism("two adaptive steps", 1.0, 0.0, adaptive),
    Mechanism("Python's random", 1.0, 0.0, python_noise),
    Mechanism("randomised response", 1.0, 0.0, response),
    Mechanism("subsampled Gaussian", 3.534, DELTA, subsampled),
    Mechanism("ten sub-sampled steps", 2.8545, DELTA, subsampled_steps),
)
