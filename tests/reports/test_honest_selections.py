"""The claims of the honest selections, coins, samplers and trainings, by formula or brute force.

Finite releases: their chances are computed twice, by formula and from fits of the generator.
Noisy counts: the law of the noise by formula, and compared with draws. Trainings: their claims are
what their noise steps cost, composed here anew.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import stats

import exact_losses as exact
from honest_chances import FINITE, TOLD_ELSEWHERE, keyed, loss, outside, split, votes
from reports.replay.honest import (
    exponential,
    noisy_max,
    quantiles,
    responses,
    samplers,
    secret_coins,
    sparse_vectors,
    stability,
    subsamples,
    synthesizers,
    torch_training,
    training,
)
from reports.replay.honest.case import Case

MODULES = (
    exponential,
    noisy_max,
    quantiles,
    responses,
    samplers,
    secret_coins,
    sparse_vectors,
    stability,
    subsamples,
    synthesizers,
    torch_training,
    training,
)
CASES = {case.name: case for module in MODULES for case in module.CASES}


class Staircase(NamedTuple):
    """The law of staircase noise of sensitivity 1 (Geng and Viswanath 2014, definition 1)."""

    epsilon: float

    def pdf(self, at: Any) -> Any:
        gamma, b = 1.0 / (1.0 + math.exp(self.epsilon / 2)), math.exp(-self.epsilon)
        highest = (1.0 - b) / (2.0 * (gamma + b * (1.0 - gamma)))
        stair = np.floor(np.abs(at)) + (np.abs(at) % 1.0 >= gamma)
        return highest * np.exp(-self.epsilon * stair)

    def cdf(self, at: Any) -> Any:
        fine = np.arange(-60.0, 60.0, 1e-4) + 5e-5
        return np.interp(at, fine + 5e-5, np.cumsum(self.pdf(fine)) * 1e-4)


class Cells(NamedTuple):
    """A discrete law by its chances from `least` on, a step apart."""

    least: float
    chances: Any
    step: float = 1.0

    def pdf(self, at: Any) -> Any:
        index = np.rint((np.asarray(at) - self.least) / self.step).astype(int)
        inside = (index >= 0) & (index < len(self.chances))
        return np.where(inside, self.chances[np.clip(index, 0, len(self.chances) - 1)], 0.0)


def whole(pmf: Callable[[Any], Any], size: int = 600) -> Cells:
    return Cells(-size, pmf(np.arange(-size, size + 1)))


def rounded_law(own: Any) -> Cells:
    law = stats.laplace(scale=own.scale)
    return whole(lambda at: np.abs(law.sf(np.abs(at) - 0.5) - law.sf(np.abs(at) + 0.5)), 200)


def discrete_gaussian(own: Any) -> Cells:
    variance = float(own._variance())
    weights = np.exp(-(np.arange(-60, 61) ** 2) / (2 * variance))
    return Cells(-60, weights / weights.sum())


class Mixture(NamedTuple):
    """Laplace laws of two scales, each in half of the draws."""

    scales: tuple[float, float]

    def pdf(self, at: Any) -> Any:
        return sum(stats.laplace.pdf(at, scale=scale) for scale in self.scales) / 2

    def cdf(self, at: Any) -> Any:
        return sum(stats.laplace.cdf(at, scale=scale) for scale in self.scales) / 2


class Within(NamedTuple):
    """Laplace noise given that it is within bounds."""

    own: Any

    def pdf(self, at: Any) -> Any:
        law, bound = stats.laplace(scale=self.own.scale), self.own.within
        return np.where(np.abs(at) <= bound, law.pdf(at) / (1 - 2 * law.sf(bound)), 0.0)

    def cdf(self, at: Any) -> Any:
        law, bound = stats.laplace(scale=self.own.scale), self.own.within
        inside = (law.cdf(np.clip(at, -bound, bound)) - law.sf(bound)) / (1 - 2 * law.sf(bound))
        return np.clip(inside, 0.0, 1.0)


def laplace_law(own: Any) -> Any:
    return stats.laplace(scale=own.scale)


def normal_law(own: Any) -> Any:
    return stats.norm(scale=own.scale)


NOISE: dict[str, Callable[[Any], Any]] = {
    "difference of geometric draws": lambda own: whole(
        lambda at: stats.dlaplace.pmf(at, 1.0 / own.scale), 200
    ),
    **dict.fromkeys(
        (
            "Laplace by inversion",
            "Laplace by inversion, one by one",
            "Laplace by a random sign",
            "Laplace by two exponential draws",
            "Laplace of SystemRandom",
            "Laplace by a mixture of Gaussians",
            "Laplace of scipy, frozen",
            "Laplace of RandomState",
            "Laplace from a pool",
        ),
        laplace_law,
    ),
    "logistic noise": lambda own: stats.logistic(scale=own.scale),
    "Cauchy noise": lambda own: stats.cauchy(scale=own.scale),
    "Laplace rounded before it is added": rounded_law,
    "staircase noise": lambda own: Staircase(1.0 / own.scale),
    "Gaussian by Box and Muller": normal_law,
    "Gaussian by the polar method": normal_law,
    "binomial noise": lambda own: whole(
        lambda at: stats.binom.pmf(at + int(400 * own.scale**2) // 2, int(400 * own.scale**2), 0.5)
    ),
    "Skellam noise": lambda own: whole(
        lambda at: stats.skellam.pmf(at, 50.0 * own.scale**2, 50.0 * own.scale**2), 150
    ),
    "discrete Laplace by exact coins": lambda own: whole(
        lambda at: stats.dlaplace.pmf(at, 1.0 / own._whole()), 200
    ),
    "discrete Gaussian by exact coins": discrete_gaussian,
    "Laplace on a fine grid": lambda own: Cells(
        -30.0, stats.dlaplace.pmf(np.arange(-30000, 30001), 1e-3 / own.scale), 1e-3
    ),
    "secret scale": lambda own: Mixture(own._scales()),
    "Laplace within bounds": Within,
}
"""Laws of noise that is made by hand; the target moves a count by 1."""


def noise_loss(law: Any, delta: float) -> float:
    """The loss of one noisy number that moves by 1."""
    if isinstance(law, Cells):
        at = law.least + law.step * np.arange(-1 / law.step, len(law.chances) + 1 / law.step)
        step = 1.0
    else:
        at, step = np.arange(-25.0, 26.0, 0.001) + 0.0003, 0.001
    if not delta:
        at = np.append(at, [0.0, 1.0])  # where Laplace laws have kinks
    one, other = law.pdf(at - 1.0), law.pdf(at)
    if delta:
        return exact.approximate(one * step, other * step, delta)
    seen = np.minimum(one, other) > 1e-14
    return exact.largest(one[seen], other[seen])


def over_gaps(case: Case, own: Any) -> float:
    edges = [
        np.concatenate([[0.0], np.sort(table["x"]), [1.0]]) for table in (case.table, case.without)
    ]
    both = np.unique(np.concatenate(edges))
    middle, densities = (both[1:] + both[:-1]) / 2, []
    for own_edges in edges:
        n = len(own_edges) - 2
        scores = -own.half * np.abs(np.arange(n + 1) - 0.9 * n) / 0.9
        weights = np.exp(scores)
        normal = (weights * np.diff(own_edges)).sum()
        densities.append((weights / normal)[np.searchsorted(own_edges, middle) - 1])
    return exact.largest(*densities)


def sparse_with_value(case: Case, own: Any) -> float:
    """The place costs its ratio, and its count 1/2 more if the target moves it, either way."""
    laws = (stats.laplace(scale=2.0), stats.laplace(scale=4.0))
    one, other = (
        exact.sparse(table.sum().tolist(), 6.5, *laws) for table in (case.table, case.without)
    )
    moved = (case.table.sum() - case.without.sum()).to_numpy()
    bare = isinstance(own, sparse_vectors.WithBareValue)
    if bare:
        return math.inf
    return max(
        abs(math.log(p / other[found])) + (0.5 * moved[found[0]] if found else 0.0)
        for found, p in one.items()
    )


def sparse_with_gap(case: Case, own: Any) -> float:
    """The largest loss over places and gaps, and of finding nothing."""
    bare = isinstance(own, sparse_vectors.WithFreeGapBare)
    noise = np.zeros(1) if bare else exact.GRID[np.abs(exact.GRID) < 60.0][::4]
    weights = np.ones(1) if bare else stats.laplace.pdf(noise, scale=2.0)
    law, gaps, found = stats.laplace(scale=4.0), np.linspace(0.0, 60.0, 121)[:, None], []
    worlds = []
    for table in (case.table, case.without):
        before, densities = weights, []
        for count in table.sum().tolist():
            densities.append((before * law.pdf(gaps + 6.5 + noise - count)).sum(axis=1))
            before = before * law.cdf(6.5 + noise - count)
        worlds.append(np.concatenate([*densities, [before.sum()]]))
    found.append(exact.largest(*worlds))
    return max(found)


def winner_with_gap(case: Case, own: Any) -> float:
    """The largest loss over winners and gaps."""
    at, gaps = exact.GRID[np.abs(exact.GRID) < 60.0][::4], np.linspace(0.0, 40.0, 81)[:, None]
    law, worlds = stats.laplace(scale=own.scale), []
    for table in (case.table, case.without):
        scores, densities = votes(table), []
        for winner in range(4):
            total = 0.0
            for second in {0, 1, 2, 3} - {winner}:
                rest = {0, 1, 2, 3} - {winner, second}
                below = np.prod([law.cdf(at - scores[other]) for other in rest], axis=0)
                both = law.pdf(at + gaps - scores[winner]) * law.pdf(at - scores[second])
                total = total + (both * below).sum(axis=1)
            densities.append(total)
        worlds.append(np.concatenate(densities))
    return exact.largest(*worlds)


def one_of_two(case: Case, own: Any) -> float:
    y = np.arange(-20.0, 21.0, 0.001)
    asked, other = (stats.laplace.pdf(y - count, scale=0.5) for count in (1.0, 0.0))
    told = isinstance(own, secret_coins.OneOfTwoTold)
    return exact.largest(asked, other) if told else exact.largest(asked, (asked + other) / 2)


def redrawn(case: Case, own: Any) -> float:
    if isinstance(own, samplers.RedrawnUntilAbove):
        return math.inf
    law, y = stats.laplace(scale=own.scale), np.linspace(0.0, 20.0, 2001)
    return exact.largest(law.pdf(y - 1.0) / law.cdf(1.0), law.pdf(y) / law.cdf(0.0))


def objective(case: Case, own: Any) -> float:
    """The density of the minimum by a change of variable."""
    w, densities = np.linspace(-30.0, 30.0, 6001)[:, None], []
    for table in (case.table, case.without):
        x = table["x"].to_numpy()
        falls = 1.0 / (1.0 + np.exp(np.clip(w * x, -700, 700)))
        slope = (x * falls).sum(axis=1) - w[:, 0]
        jacobian = 1.0 + (x**2 * falls * (1.0 - falls)).sum(axis=1)
        densities.append(np.log(jacobian) - np.abs(slope) / own.scale)
    return float(np.abs(densities[0] - densities[1]).max())


def stump(case: Case, own: Any) -> float:
    """The split's ratio and, in either direction, the ratio of the leaf that moves."""
    one, other = (split(table, own) for table in (case.table, case.without))
    return max(abs(math.log(one[at] / other[at])) for at in one) + 0.5


DENSITIES: dict[str, Callable[[Case, Any], float]] = {
    **{case.name: over_gaps for case in quantiles.CASES if "gaps" in case.name},
    "sparse vector with a noisy count": sparse_with_value,
    "sparse vector with its gap": sparse_with_gap,
    "noisy max with its gap": winner_with_gap,
    "one of two counts": one_of_two,
    "drawn again while negative": redrawn,
    "logistic, objective perturbed": objective,
    "split by the exponential mechanism": stump,
}
"""Losses by densities of what is released."""


PROVED: dict[str, Callable[[], float]] = {
    # steps of mechanisms, whose releases are functions of their answers
    "scale follows the first answer": lambda: 1 / 2 + 1 / 2,
    "mean of two adaptive answers": lambda: 1 / 2 + 1 / 2,
    "asked again until it is clear": lambda: 0.1 + 0.2 + 0.4 + 0.3,
    "count behind a one-time pad": lambda: 1.0,
    "noise in place": lambda: 1.0,
    "seed of the fit": lambda: 1.0,
    "shared key, Laplace": lambda: 1.0,
    "noise of each record's own": lambda: 1.0,
    "Laplace noise of torch": lambda: 1.0,
    "early stopping on a noisy loss": lambda: 5 * (1 / 10 + 1 / 10),
    "ridge, output perturbed": lambda: (1 / 41) / (1 / training.OutputPerturbed()._curvature()),
    "k-means": lambda: 3 * 2 / training.Means.scale,
    "MWEM": lambda: 3 * (synthesizers.Mwem.epsilon / 6 + 1 / (2 * 3 / synthesizers.Mwem.epsilon)),
    "network of noisy tables": lambda: 2 / 2,
    "noisy marginals": lambda: 3 / 3,
    "rows of noisy counts": lambda: 1 / synthesizers.Rows.scale,
    "select and measure": lambda: of_rho(
        4 / (2 * synthesizers.SelectAndMeasure.sigma**2)
        + (2 * synthesizers.SelectAndMeasure.rate) ** 2 / 8
    ),
    # Gaussian steps at delta 1e-5
    **dict.fromkeys(
        ("noisy gradient descent", "noisy gradient descent, noise overwritten"),
        lambda: exact.gaussian(math.sqrt(10) / training.Descent().sigma, 1e-5),
    ),
    "gradient descent in torch": lambda: exact.gaussian(
        math.sqrt(10) / torch_training.TorchDescent.sigma, 1e-5
    ),
    "running sums by a tree": lambda: exact.gaussian(math.sqrt(3) / training.TreeSums.sigma, 1e-5),
    "public batches of a permutation": lambda: exact.gaussian(
        math.sqrt(2) / subsamples.PublicBatches.sigma, 1e-5
    ),
    # sub-samples
    **dict.fromkeys(
        (case.name for case in subsamples.CASES if not case.delta),
        lambda: math.log(1.0 + 0.25 * (math.e - 1.0)),
    ),
    "Poisson, Gaussian": lambda: exact.composed(0.25, 1.0, 1, 1e-5),
    "Poisson, eight Gaussian steps": lambda: exact.composed(0.25, 2.0, 8, 1e-5),
    **dict.fromkeys(
        ("DP-SGD in numpy", "DP-SGD in numpy, batches by data"),
        lambda: exact.composed(0.25, 1.5, 10, 1e-5),
    ),
    "DP-SGD in torch": lambda: exact.composed(0.5, 1.5, 8, 1e-5),
    "variational autoencoder": lambda: exact.composed(0.5, 1.0, 4, 1e-5),
}
"""Claims by composition: what is released shows at most that."""


def of_rho(rho: float) -> float:
    """Epsilon at 1e-5 of zero-concentrated privacy (Bun and Steinke 2016, proposition 1.3)."""
    return rho + 2.0 * math.sqrt(rho * math.log(1e5))


def test_every_case_is_verified() -> None:
    assert {*FINITE, *NOISE, *DENSITIES, *PROVED} == {*CASES}
    assert len(CASES) >= 55


@pytest.mark.parametrize("name", FINITE)
def test_finite_releases_show_exactly_the_claim(name: str) -> None:
    case, (_, law) = CASES[name], FINITE[name]
    shown = loss(case, law, case.generator())
    assert shown <= case.epsilon + 1e-9
    if case not in stability.CASES:  # their delta is exact, at any epsilon
        assert shown == pytest.approx(case.epsilon, abs=2e-6)
    if name not in TOLD_ELSEWHERE:
        assert case.twin is not None
        twin = loss(case, law, case.twin())
        keeps_scores = case in noisy_max.CASES or name == "top two by torch"
        assert keeps_scores or twin == pytest.approx(case.twin_shows, abs=1e-5)


def test_deltas_of_stability_histograms_are_exact() -> None:
    for case in stability.CASES[:6]:
        one, other = (keyed(table, case.generator()) for table in (case.table, case.without))
        seen = sum(p for key, p in one.items() if "z" in key)
        assert other.keys() <= one.keys()
        assert seen == pytest.approx(case.delta, rel=1e-3)
        assert seen <= case.delta + 1e-12


def agrees(found: Counter[Any], chances: exact.Chances) -> bool:
    """Whether numbers of outcomes agree with chances: rare ones are put together."""
    fits, rare, seen_rare, statistic, cells = found.total(), 0.0, 0, 0.0, 0
    if any(chances.get(outcome, 0.0) <= 0.0 for outcome in found):
        return False
    for outcome, p in chances.items():
        if fits * p < 5.0:
            rare, seen_rare = rare + p, seen_rare + found[outcome]
        else:
            statistic, cells = statistic + (found[outcome] - fits * p) ** 2 / (fits * p), cells + 1
    if fits * rare >= 5.0:
        statistic, cells = statistic + (seen_rare - fits * rare) ** 2 / (fits * rare), cells + 1
    elif seen_rare > 12:
        return False
    return cells < 2 or stats.chi2.sf(statistic, cells - 1) > 1e-5


@pytest.mark.parametrize("name", FINITE)
@pytest.mark.parametrize("twin", [False, True])
def test_fits_have_these_chances(name: str, twin: bool) -> None:
    case, (shown, law) = CASES[name], FINITE[name]
    make = case.twin if twin else case.generator
    assert make is not None
    for table in (case.table,) if twin else (case.table, outside(case)[0]):
        fits = 120
        found = Counter(shown(make().fit(table, seed=seed)) for seed in range(fits))
        assert agrees(found, law(table, make())), (found, law(table, make()))


@pytest.mark.parametrize("name", NOISE)
def test_noise_made_by_hand_costs_exactly_the_claim(name: str) -> None:
    case, law = CASES[name], NOISE[name]
    shown = noise_loss(law(case.generator()), case.delta)
    assert case.epsilon - 5e-6 <= shown <= case.epsilon + 2e-6
    if not isinstance(case.twin_shows, float) or math.isinf(case.twin_shows):
        return
    assert case.twin is not None
    assert noise_loss(law(case.twin()), case.delta) == pytest.approx(case.twin_shows, abs=1e-4)


@pytest.mark.parametrize("name", NOISE)
def test_noise_made_by_hand_has_this_law(name: str) -> None:
    own = CASES[name].generator()
    drawn = np.concatenate([np.asarray(own._noise(4, seed), float) for seed in range(400)])
    law = NOISE[name](own)
    if isinstance(law, Cells) and law.step == 1.0:
        chances = {law.least + at: float(p) for at, p in enumerate(law.chances)}
        assert agrees(Counter(drawn.tolist()), chances)
    else:
        cdf = stats.laplace.cdf if isinstance(law, Cells) else law.cdf
        assert stats.kstest(drawn, cdf).pvalue > 1e-5


@pytest.mark.parametrize("name", DENSITIES)
def test_densities_show_exactly_the_claim(name: str) -> None:
    case, law = CASES[name], DENSITIES[name]
    assert case.epsilon - 2e-6 <= law(case, case.generator()) <= case.epsilon + 1e-9
    if case.twin_shows is not None and name != "noisy max with its gap":
        assert case.twin is not None
        assert law(case, case.twin()) == pytest.approx(case.twin_shows, abs=1e-4)


@pytest.mark.parametrize("name", PROVED)
def test_claims_by_composition_are_what_the_steps_cost(name: str) -> None:
    composed = PROVED[name]()
    assert composed - 1e-6 <= CASES[name].epsilon <= composed + 3e-3


@pytest.mark.parametrize("table", ["table", "without"])
def test_clipped_gradients_of_a_record_have_the_norm_that_noise_is_for(table: str) -> None:
    for own in (training.Descent(), training.DpSgd(1.5)):
        gradients = np.linspace(-1.0, 1.0, 21)
        assert np.abs(own._clipped(gradients)).max() <= own.clip + 1e-12
        assert own._noisy(3.0, Fixed()) - 3.0 == pytest.approx(own.sigma * own.clip)


class Fixed(np.random.Generator):
    """A generator whose Gaussian draw is one deviation."""

    def __init__(self) -> None:
        super().__init__(np.random.PCG64(1))

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        return loc + scale


def test_names_are_unique_and_faults_marked() -> None:
    assert len(CASES) == sum(len(module.CASES) for module in MODULES)
    for case in CASES.values():
        assert case.twin is None or case.fault_places, case.name


@pytest.mark.parametrize("name", CASES)
def test_rows_conform_and_the_table_stays_as_it_is(name: str) -> None:
    case = CASES[name]
    assert not case.schema.problems(case.table)
    assert case.spends is None or case.spends > case.epsilon - 1e-9
    assert case.twin_shows is None or case.twin_shows > case.epsilon
    for make in (case.generator, case.twin):
        assert make is not None
        for table in (case.table, outside(case)[0]):
            given = table.copy()
            model = make().fit(given, seed=1234)
            for rows in (5, 3 * len(table)):
                drawn = model.sample(rows, seed=77)
                assert len(drawn) == rows
                assert not case.schema.problems(case.schema.canonical(drawn))
            assert given.equals(table)
