"""The honest cases of replays run, conform to their schemas, and cost what they state."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import ncx2, norm

from reports.replay.honest import folded, frequency, habits, layers, learning, linear, orders
from reports.replay.honest.case import Case
from reports.replay.honest.cases import every_case
from reports.replay.honest.exact import gaussian_epsilon, laplace_pdf

MODULES = (orders, linear, frequency, folded, layers, learning, habits)
CASES = [case for module in MODULES for case in module.CASES]
BY_NAME = {case.name: case for case in CASES}
FINE = np.linspace(-60.0, 60.0, 1_200_001)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_runs_and_conforms(case: Case) -> None:
    assert not case.schema.problems(case.table)
    for generator in (case.generator, case.twin):
        for table in () if generator is None else (case.table, case.without):
            given = table.copy()
            model = generator().fit(given, seed=1234)
            for rows in (5, len(table), 3 * len(table)):
                drawn = model.sample(rows, seed=77)
                assert len(drawn) == rows
                assert not case.schema.problems(case.schema.canonical(drawn))
            assert given.equals(table)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_states_what_is_known(case: Case) -> None:
    assert case.claim.epsilon == case.epsilon
    assert case.note
    assert (case.twin is None) == (not case.twin_marker)
    assert case.twin is None or case.fault_places
    shown = case.twin_shows
    assert shown is None or shown > case.epsilon
    if case.spends is not None:
        assert case.spends > case.epsilon - 1e-9 or case.delta > 0.01


def test_names_are_unique() -> None:
    names = [case.name for case in every_case()]
    assert len(set(names)) == len(names)


class Tape:
    """A generator of Gaussian numbers that come from a list, in units of their deviation."""

    def __init__(self, numbers: Any) -> None:
        self.numbers = list(numbers)

    def normal(self, loc: Any = 0.0, scale: float = 1.0, size: Any = None) -> Any:
        return loc + scale * self.standard_normal(size)

    def standard_normal(self, size: Any = None) -> Any:
        drawn = np.array([self.numbers.pop(0) for _ in range(math.prod(np.atleast_1d(size or 1)))])
        return float(drawn[0]) if size is None else drawn.reshape(size)


def released(model: Any) -> Any:
    """The numbers that a fitted model keeps."""
    kept = [value["bins"] if isinstance(value, dict) else value for value in vars(model).values()]
    return np.concatenate([np.ravel(value).astype(float) for value in kept])


LINEAR = [
    ("total", 12),
    ("weights", 12),
    ("average", 12),
    ("smoothed", 12),
    ("trend", 12),
    ("ridge", 12),
    ("filter", 12),
    ("decay", 8),
    ("low pass", 16),
    ("cosines", 4),
    ("gaussian tree", 31),
    ("strategy", 32),
    ("circle", 16),
    ("blocks", 16),
    ("covariance", 9),
]
"""Cases whose release is linear in Gaussian numbers, and in how many."""


LIMITED = [
    (name, draws, twin)
    for name, draws in LINEAR
    for twin in (False, True)
    if not twin or math.isfinite(BY_NAME[name].twin_shows or math.inf)
]


@pytest.mark.parametrize(("name", "draws", "twin"), LIMITED)
def test_linear_releases_cost_the_distance_of_their_means(
    name: str, draws: int, twin: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = BY_NAME[name]
    stated = case.twin_shows if twin else case.epsilon
    draws = {"average": 10}.get(name, draws) if twin else draws

    def release(table: Any, numbers: Any) -> Any:
        monkeypatch.setattr(np.random, "default_rng", lambda seed: Tape(numbers))
        generator = case.twin if twin else case.generator
        assert generator is not None
        return released(generator().fit(table, seed=1))

    inside, outside = (release(table, np.zeros(draws)) for table in (case.table, case.without))
    noise = np.stack([release(case.table, row) - inside for row in np.eye(draws)], axis=1)
    moved = inside - outside
    solved, *_ = np.linalg.lstsq(noise, moved, rcond=1e-9)
    assert np.allclose(noise @ solved, moved, atol=1e-9)  # else there is no limit
    assert gaussian_epsilon(float(np.linalg.norm(solved)), case.delta) == pytest.approx(stated)


def sup(density: Callable[[Any], Any], shift: float = 1.0) -> float:
    """The largest loss of a shifted density, as far as it is above 1e-12."""
    one, other = density(FINE - shift), density(FINE)
    seen = np.minimum(one, other) > 1e-12
    return float(np.abs(np.log(one[seen] / other[seen])).max())


def laplace_cdf(at: Any, scale: float) -> Any:
    return np.where(
        at < 0, 0.5 * np.exp(-np.abs(at) / scale), 1 - 0.5 * np.exp(-np.abs(at) / scale)
    )


def median_density(scale: float) -> Callable[[Any], Any]:
    def density(at: Any) -> Any:
        below = laplace_cdf(at, scale)
        return (below * laplace_cdf(-at, scale)) ** 2 * laplace_pdf(at, scale)

    return density


def smallest_density(at: Any) -> Any:
    return laplace_cdf(-at, 4.0) ** 3 * laplace_pdf(at, 4.0)


def sum_of_two(at: Any) -> Any:
    """Laplace numbers of scales 1 and 2."""
    return (2 * np.exp(-np.abs(at) / 2) - np.exp(-np.abs(at))) / 6


def folded_circle(scale: float) -> float:
    """Of the cosine: the density of either side of a circle of 20."""
    at = np.linspace(0.0, 10.0, 4_001)[:, None]
    turns = 20.0 * np.arange(-40, 41)
    one, other = (
        (laplace_pdf(at + turns - n, scale) + laplace_pdf(-at + turns - n, scale)).sum(axis=1)
        for n in (1, 0)
    )
    return float(np.abs(np.log(one / other)).max())


def wrapped(scale: float) -> float:
    """Modulo 10."""
    at = np.linspace(0.0, 10.0, 4_001)[:, None]
    turns = 10.0 * np.arange(-40, 41)
    one, other = (laplace_pdf(at + turns - n, scale).sum(axis=1) for n in (1, 0))
    return float(np.abs(np.log(one / other)).max())


def mixture(scale: float) -> float:
    """A bit of odds e^2 plus Laplace noise."""
    kept = 1.0 / (1.0 + math.exp(-2.0))
    one, other = laplace_pdf(FINE - 1, scale), laplace_pdf(FINE, scale)
    return float(
        np.log((kept * one + (1 - kept) * other) / (kept * other + (1 - kept) * one)).max()
    )


@pytest.mark.parametrize(
    ("stated", "integrated"),
    [
        (1.0, lambda: sup(median_density(3.0))),
        (2.0, lambda: sup(median_density(1.5))),
        (1.0, lambda: sup(smallest_density)),
        (BY_NAME["sites"].epsilon, lambda: sup(sum_of_two)),
        (BY_NAME["cosine"].epsilon, lambda: folded_circle(1.0)),
        (BY_NAME["modulo"].epsilon, lambda: wrapped(2.0)),
        (BY_NAME["modulo"].twin_shows, lambda: wrapped(1.0)),
        (BY_NAME["bit"].epsilon, lambda: mixture(1.0)),
        (BY_NAME["bit"].twin_shows, lambda: mixture(0.4)),
        (BY_NAME["thinned"].epsilon, layers.thinned_epsilon),
    ],
)
def test_costs_in_closed_form_are_those_of_densities(
    stated: float, integrated: Callable[[], float]
) -> None:
    assert integrated() == pytest.approx(stated, rel=2e-3)
    assert integrated() <= stated + 1e-9


def test_theorems_hold_with_room() -> None:
    assert layers.smooth_epsilon(layers.SmoothMedian()) < BY_NAME["smooth"].epsilon
    assert learning.output_epsilon(learning.OutputPerturbation()) < BY_NAME["output"].epsilon


EVEN = 1.0 - math.exp(-0.5) + 2 * math.sinh(0.5) * math.exp(-2.0) / (1.0 - math.exp(-2.0))
ODD_OF_FOUR = [(1 + last) / (3 + last) for last in (1.0, math.exp(-2.0))]


@pytest.mark.parametrize(
    ("name", "happens", "inside", "outside"),
    [
        ("parity", lambda kept: kept[0] == 1, EVEN, 1.0 - EVEN),
        ("more", lambda kept: kept[3] == 1, 1 - 0.5 * math.exp(-0.5), 0.5 * math.exp(-0.5)),
        ("gumbel", lambda kept: kept[0] == 1, *ODD_OF_FOUR),
        ("stable", lambda kept: kept.any(), 1 - 0.5 * math.exp(-0.5), 0.5 * math.exp(-0.5)),
        ("pad", lambda kept: kept[0] == 1, 0.5, 0.5),
        ("mask", lambda kept: kept[3] >= 4, 0.5, 0.5),
        ("maximum", lambda kept: kept[0] > 5, 1 - norm.cdf(4 / 3) ** 5, 1 - norm.cdf(5 / 3) ** 5),
        ("norm", lambda kept: kept[0] > 1.5, *ncx2.sf(1.5**2 / 0.36, 4, [1 / 0.36, 1e-12])),
    ],
)
def test_chances_are_those_of_the_formulas(
    name: str, happens: Callable[[Any], bool], inside: float, outside: float
) -> None:
    case = BY_NAME[name]
    for table, chance in ((case.table, inside), (case.without, outside)):
        models = (case.generator().fit(table, seed=seed) for seed in range(2_000))
        count = sum(bool(happens(released(model))) for model in models)
        assert abs(count - 2_000 * chance) < 4.5 * math.sqrt(2_000 * chance * (1 - chance))
