"""Keys that only one world has: what noise and a threshold spend on them is a delta."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpaudit.model.gaussian import gaussian_epsilon
from dpaudit.replaying.messages import lone_places
from dpaudit.results.verdict import Verdict
from listened import CELLS, line_of, replayed

pytestmark = pytest.mark.usefixtures("worlds")

DELTA = 0.5 * math.exp(-4.0)
"""The chance that 1 and Laplace noise of scale 1 are at least 5."""
TIED = math.exp(-4.0) / (1.0 + math.exp(-1.0))
"""The same of discrete Laplace noise: exactly 5 counts."""


def occurring(counts: Any) -> list[int]:
    """The cells that occur; the one that only world "in" has is in the middle."""
    return [cell for cell in (0, 3, 1, 2) if counts[cell]]


def in_an_array(counts: Any, rng: Any) -> Any:
    cells = np.array(occurring(counts))
    noisy = counts[cells] + rng.laplace(0.0, 1.0, len(cells))
    return cells[noisy >= 5.0], noisy[noisy >= 5.0]


def in_a_loop(counts: Any, rng: Any) -> Any:
    kept = {}
    for cell in occurring(counts):
        noisy = counts[cell] + rng.laplace(0.0, 1.0)
        if noisy >= 5.0:
            kept[cell] = float(noisy)
    return kept


def last_in_a_loop(counts: Any, rng: Any) -> Any:
    noisy = [float(counts[cell] + rng.laplace(0.0, 1.0)) for cell in np.flatnonzero(counts)]
    return [value for value in noisy if value >= 5.0]


def in_place(counts: Any, rng: Any) -> Any:
    noisy = counts[occurring(counts)].astype(float)
    noisy += rng.laplace(0.0, 1.0, noisy.size)
    return np.maximum(np.sort(noisy)[::-1], 5.0)[:3], int((noisy >= 5.0).sum())


def by_exponentials(counts: Any, rng: Any) -> Any:
    noisy = counts[occurring(counts)] + rng.exponential(1.0, len(occurring(counts)))
    noisy = noisy - rng.exponential(1.0, noisy.size)
    return noisy[noisy >= 5.0]


def thresholded(least: float, *, is_kept: Any = np.greater_equal, loops: bool = False) -> Any:
    """A histogram with discrete Laplace noise and a threshold."""

    def array(counts: Any, rng: Any) -> Any:
        cells, p = occurring(counts), 1.0 - math.exp(-1.0)
        noisy = counts[cells] + rng.geometric(p, len(cells)) - rng.geometric(p, len(cells))
        return noisy[is_kept(noisy, least)]

    def loop(counts: Any, rng: Any) -> Any:
        p, kept = 1.0 - math.exp(-1.0), []
        for cell in occurring(counts):
            noisy = int(counts[cell]) + (rng.geometric(p) - rng.geometric(p))
            if is_kept(noisy, least):
                kept.append(int(noisy))
        return kept

    return loop if loops else array


def two_loops_of_one_sided_draws(counts: Any, rng: Any) -> Any:
    kept, p = [], 1.0 - math.exp(-1.0)
    for cell in occurring(counts):
        noisy = int(counts[cell]) + rng.geometric(p) - rng.geometric(p)
        if noisy >= 5:
            kept.append(int(noisy))
    return kept


@pytest.mark.parametrize(
    ("train", "delta"),
    [
        (in_an_array, DELTA),
        (in_a_loop, DELTA),
        (last_in_a_loop, DELTA),
        (in_place, DELTA),
        (by_exponentials, DELTA),
        (thresholded(5.0), TIED),
        (thresholded(5.0, is_kept=np.greater), TIED / math.e),
        (thresholded(5.3), TIED / math.e),
        (thresholded(int(5.3)), TIED),
        (thresholded(5.0, loops=True), TIED),
        (thresholded(5.0, is_kept=np.greater, loops=True), TIED / math.e),
        (two_loops_of_one_sided_draws, TIED),
    ],
)
def test_a_threshold_spends_the_tail_of_its_noise(train: Any, delta: float) -> None:
    met = replayed(train, delta=delta, coins=False)
    assert met.verdict is Verdict.CONSISTENT, str(met)
    assert met.spent == 0.0
    assert met.spent_delta == pytest.approx(delta, abs=1e-9)


@pytest.mark.parametrize(
    ("train", "delta"), [(in_an_array, DELTA), (thresholded(5.0, loops=True), TIED)]
)
def test_less_than_the_tail_of_its_noise_is_overspent(train: Any, delta: float) -> None:
    exceeded = replayed(train, delta=0.9 * delta, coins=False)
    assert exceeded.verdict is Verdict.OVERSPENT, str(exceeded)
    assert exceeded.spent_delta == pytest.approx(delta, abs=1e-9)


def of_all_cells(counts: Any, rng: Any) -> Any:
    noisy = counts + rng.laplace(0.0, 1.0, CELLS)
    return noisy[noisy >= 5.0]


def test_a_threshold_on_all_public_cells_spends_no_delta() -> None:
    record = replayed(of_all_cells)
    assert record.verdict is Verdict.CONSISTENT, str(record)
    assert record.spent == pytest.approx(1.0)
    assert record.spent_delta is None


def gaussian_keys(counts: Any, rng: Any) -> Any:
    """A thresholded histogram, and one of all cells."""
    noisy = counts[occurring(counts)] + rng.normal(0.0, 2.0, len(occurring(counts)))
    return noisy[noisy > 8.0], counts + rng.normal(0.0, 3.0, CELLS)


def test_epsilon_is_composed_at_the_delta_that_is_left() -> None:
    delta = float(stats.norm.sf(3.5))
    record = replayed(gaussian_keys, epsilon=1.7, delta=2.0 * delta)
    assert record.verdict is Verdict.CONSISTENT, str(record)
    assert record.spent_delta == pytest.approx(delta, abs=1e-9)
    assert record.spent == pytest.approx(gaussian_epsilon(1.0 / 3.0, delta), rel=1e-6)
    spent = {line.place: line.delta for line in record.ledger}
    assert spent[line_of(gaussian_keys, "(0.0, 2.0,")] == pytest.approx(delta, abs=1e-9)
    assert spent[line_of(gaussian_keys, "(0.0, 3.0,")] is None
    none_left = replayed(gaussian_keys, epsilon=1.7, delta=delta, coins=False)
    assert none_left.spent_unlimited
    in_mu = replayed(gaussian_keys, epsilon=None, mu=5.0, coins=False)
    assert in_mu.spent_unlimited


def twice(counts: Any, rng: Any) -> Any:
    return in_an_array(counts, rng), in_a_loop(counts, rng)


def test_the_chances_of_two_keys_are_joined() -> None:
    record = replayed(twice, delta=0.1, coins=False)
    assert record.spent_delta == pytest.approx(1.0 - (1.0 - DELTA) ** 2, abs=1e-9)
    [first, second] = record.ledger
    assert first.delta == pytest.approx(DELTA, abs=1e-9)
    assert second.delta == pytest.approx(DELTA, abs=1e-9)
    hidden = replayed(twice, delta=DELTA, internal=[line_of(in_a_loop, "rng.laplace")])
    assert hidden.verdict is Verdict.CONSISTENT, str(hidden)


def test_an_exceeded_delta_refutes_a_proof_by_composition() -> None:
    record = replayed(in_an_array, delta=1e-5, coins=False, proof="composition")
    assert record.verdict is Verdict.VIOLATION
    assert record.of_proof
    [line] = record.ledger
    assert f"{line.place}: spends delta 0.00916" in " ".join(str(record).split())


def without_cut_off(counts: Any, rng: Any) -> Any:
    return counts[occurring(counts)] + rng.laplace(0.0, 1.0, len(occurring(counts)))


def without_cut_off_in_a_loop(counts: Any, rng: Any) -> Any:
    return {cell: float(counts[cell] + rng.laplace()) for cell in occurring(counts)}


@pytest.mark.parametrize("train", [without_cut_off, without_cut_off_in_a_loop])
def test_a_key_that_is_always_shown_spends_all_delta(train: Any) -> None:
    record = replayed(train, delta=0.1, coins=False)
    assert record.verdict is Verdict.OVERSPENT, str(record)
    assert record.spent_delta == 1.0


def total_of_occurring(counts: Any, rng: Any) -> Any:
    return float(without_cut_off(counts, rng).sum())


def largest_of_occurring(counts: Any, rng: Any) -> Any:
    return float(without_cut_off(counts, rng).max())


def noisy_threshold(counts: Any, rng: Any) -> Any:
    limit = 5.0 + rng.laplace()
    noisy = without_cut_off(counts, rng)
    return noisy[noisy >= limit]


def scale_by_number(counts: Any, rng: Any) -> Any:
    cells = occurring(counts)
    noisy = counts[cells] + rng.laplace(0.0, len(cells), len(cells))
    return noisy[noisy >= 5.0]


def shown_between(counts: Any, rng: Any) -> Any:
    noisy = without_cut_off(counts, rng)
    return noisy[(noisy >= 1.2) & (noisy < 2.0)]


def noisy_number_of_keys(counts: Any, rng: Any) -> Any:
    """Whether a key is shown is protected by further noise."""
    return float(len(in_an_array(counts, rng)[0]) + rng.laplace(0.0, 4.0))


@pytest.mark.parametrize(
    "train",
    [
        total_of_occurring,
        largest_of_occurring,
        noisy_threshold,
        scale_by_number,
        shown_between,
        noisy_number_of_keys,
    ],
)
def test_what_is_no_threshold_is_not_accused(train: Callable[..., Any]) -> None:
    record = replayed(train, delta=1e-6, coins=False, proof="composition")
    assert record.verdict is Verdict.INCONCLUSIVE, str(record)
    assert record.spent_delta is None


@pytest.mark.parametrize(
    ("longer", "shorter", "places"),
    [
        ([3.0, 1.0, 2.0], [3.0, 2.0], [1]),
        ([3.0, 2.0, 1.0], [3.0, 2.0], [2]),
        ([3.0], [], [0]),
        ([2.0, 2.0, 1.0], [2.0, 1.0], [0, 1]),
        ([1.0, 2.0, 2.0, 2.0], [1.0, 2.0, 2.0], [1, 2, 3]),
        ([3.0, 1.0, 2.0], [3.0, 4.0], []),
        ([3.0, 1.0], [3.0, 1.0], []),
    ],
)
def test_the_value_of_one_sequence_alone_is_found(
    longer: list[float], shorter: list[float], places: list[int]
) -> None:
    assert list(lone_places(np.array(longer), np.array(shorter))) == places


def with_equal_counts(counts: Any, rng: Any) -> Any:
    """Cells with as many records as the one of world "in" alone, low enough to be shown often."""
    cells = [0, 3, 4, 5] if counts[3] else [0, 4, 5]
    noisy = np.array([20, *[1] * (len(cells) - 1)]) + rng.laplace(0.0, 1.0, len(cells))
    return {cell: float(value) for cell, value in zip(cells, noisy, strict=True) if value > 2.0}


def with_equal_counts_in_a_loop(counts: Any, rng: Any) -> Any:
    kept = {}
    for cell in [0, 3, 4, 5] if counts[3] else [0, 4, 5]:
        noisy = (1 if cell else 20) + rng.laplace(0.0, 1.0)
        if noisy > 2.0:
            kept[cell] = float(noisy)
    return kept


@pytest.mark.parametrize("train", [with_equal_counts, with_equal_counts_in_a_loop])
def test_a_key_among_others_with_as_many_records_is_found(train: Any) -> None:
    record = replayed(train, delta=0.19)
    assert record.verdict is Verdict.CONSISTENT, str(record)
    assert record.spent_delta == pytest.approx(0.5 * math.exp(-1.0), abs=1e-9)
