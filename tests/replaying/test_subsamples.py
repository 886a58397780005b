"""Replays of secret sub-samples: amplified where the record's own coin is all that decides."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from dpaudit.results.verdict import Verdict
from listened import CELLS, line_of, replayed

pytestmark = pytest.mark.usefixtures("worlds")

RATE = 0.5
CLAIM = {"epsilon": 3.535, "delta": 1e-5}
"""What Gaussian noise of mu 1 spends on a sub-sample of this rate: 3.534."""


def cells_of(counts: Any) -> Any:
    return np.repeat(np.arange(CELLS), counts)


def by_mask(values: Any, rng: Any) -> Any:
    return values[rng.random(len(values)) < RATE]


def by_those_that_are_out(values: Any, rng: Any) -> Any:
    return values[~(rng.random(len(values)) < 1.0 - RATE)]


def by_binomial(values: Any, rng: Any) -> Any:
    return values[rng.binomial(1, RATE, len(values)) == 1]


def one_by_one(values: Any, rng: Any) -> Any:
    own = random.Random(int(rng.integers(2**31)))
    return np.array([one for one in values if own.random() < RATE], dtype=int)


def element_by_element(values: Any, rng: Any) -> Any:
    coins = rng.random(len(values))
    found = [one for one, coin in zip(values, coins, strict=True) if coin < RATE]
    return np.array(found, dtype=int)


def by_torch(values: Any, rng: Any) -> Any:
    import torch

    mask = torch.rand(len(values)) < RATE
    return values[mask.nonzero(as_tuple=False).reshape(-1).tolist()]


def by_torch_bits(values: Any, rng: Any) -> Any:
    import torch

    return values[torch.bernoulli(torch.full((len(values),), RATE)).numpy() == 1]


def gaussian_of(chosen: Any, scale: float = 1.0) -> Any:
    def train(counts: Any, rng: Any) -> Any:
        counted = np.bincount(chosen(cells_of(counts), rng), minlength=CELLS)
        return counted + rng.normal(0.0, scale, CELLS)

    return train


WAYS = [one_by_one, by_binomial, element_by_element]
IN_TORCH = [by_torch, by_torch_bits]


@pytest.mark.parametrize(
    "chosen",
    [
        by_mask,
        by_those_that_are_out,
        *(pytest.param(one, marks=pytest.mark.ci) for one in (*WAYS, *IN_TORCH)),
    ],
)
def test_a_poisson_sub_sample_is_followed_however_it_is_written(chosen: Any) -> None:
    if chosen in IN_TORCH:
        pytest.importorskip("torch")
    record = replayed(gaussian_of(chosen), **CLAIM)
    assert record.verdict is Verdict.CONSISTENT, str(record)
    assert record.spent == pytest.approx(3.534, abs=2e-3)
    assert not record.not_followed
    [line] = record.ledger
    assert (line.sampling, line.counts_as) == (pytest.approx(RATE), "released")
    assert "sub-sample" in str(record)


def test_half_the_noise_on_a_sub_sample_is_overspent() -> None:
    record = replayed(gaussian_of(by_mask, 0.5), **CLAIM)
    assert record.verdict is Verdict.OVERSPENT, str(record)
    assert record.ledger[0].place == line_of(gaussian_of, "rng.normal")


def out_of_one_alone(counts: Any, rng: Any) -> Any:
    """All counts with half of epsilon, and nearly bare counts of a mask's complement."""
    chosen = by_those_that_are_out(cells_of(counts), rng)
    noisy = np.bincount(chosen, minlength=CELLS) + rng.laplace(0.0, 0.01, CELLS)
    return [counts + rng.laplace(0.0, 2.0, CELLS), noisy]


def out_of_one_and_in_another(counts: Any, rng: Any) -> Any:
    both = [by_those_that_are_out(cells_of(counts), rng), by_mask(cells_of(counts), rng)]
    return [np.bincount(one, minlength=CELLS) + rng.laplace(0.0, 1.2, CELLS) for one in both]


@pytest.mark.parametrize(
    ("train", "verdict"),
    [
        (out_of_one_alone, Verdict.OVERSPENT),
        (out_of_one_and_in_another, Verdict.OVERSPENT),
    ],
)
def test_what_a_record_moves_when_its_coin_is_out_is_charged_too(
    train: Any, verdict: Verdict
) -> None:
    record = replayed(train, proof="composition")
    assert record.verdict is verdict, str(record)
    assert not record.of_proof
    assert "as if sub-samples were public" in str(record.spent_note)


def two_answers(counts: Any, rng: Any) -> Any:
    counted = np.bincount(by_mask(cells_of(counts), rng), minlength=CELLS)
    return [counted + rng.normal(0.0, 2**0.5, CELLS) for _ in range(2)]


def ten_steps(counts: Any, rng: Any) -> Any:
    model, values = np.zeros(CELLS), cells_of(counts)
    for _ in range(10):
        counted = np.bincount(values[rng.random(len(values)) < 0.1], minlength=CELLS)
        model = 0.9 * model + np.clip(counted + rng.normal(0.0, 1.0, CELLS), -9.0, 9.0)
    return model


def max_of_a_sample(counts: Any, rng: Any) -> Any:
    counted = np.bincount(by_mask(cells_of(counts), rng), minlength=CELLS)
    return int(np.argmax(counted + rng.gumbel(0.0, 2.0, CELLS)))


@pytest.mark.ci
def test_answers_of_one_coin_are_composed_before_it() -> None:
    assert replayed(two_answers, **CLAIM).spent == pytest.approx(3.534, abs=2e-3)


@pytest.mark.ci
def test_steps_of_many_coins_are_composed() -> None:
    record = replayed(ten_steps, epsilon=2.86, delta=1e-5)
    assert record.verdict is Verdict.CONSISTENT, str(record)
    assert record.spent == pytest.approx(2.8545, abs=5e-3)
    assert record.ledger[0].times == 10


def test_a_selection_from_a_sub_sample_is_consistent() -> None:
    record = replayed(max_of_a_sample)
    assert record.verdict is Verdict.CONSISTENT, str(record)
    assert record.spent is not None
    assert 0 < record.spent < 0.7


def dp_sgd(counts: Any, rng: Any) -> Any:
    import torch

    records = torch.as_tensor(cells_of(counts) / 3.0).float().reshape(-1, 1)
    weights = torch.zeros(1)
    for _ in range(10):
        batch = records[torch.rand(len(records)) < 0.1]
        gradients = torch.clamp(4.0 * (weights - batch), -1.0, 1.0)
        noisy = gradients.sum(0) + torch.normal(0.0, 1.0, size=(1,))
        weights = weights - 0.01 * noisy
    return weights


@pytest.mark.ci
def test_a_training_in_torch_on_sub_samples_spends_what_its_accountant_says() -> None:
    pytest.importorskip("torch")
    record = replayed(dp_sgd, epsilon=2.86, delta=1e-5)
    assert record.verdict is Verdict.CONSISTENT, str(record)
    assert record.spent == pytest.approx(2.8545, abs=0.3)


def kept_from_step_to_step(counts: Any, rng: Any) -> Any:
    kept, model, values = np.zeros(CELLS), [], cells_of(counts)
    for _ in range(3):
        chosen = values[rng.random(len(values)) < 0.95]
        kept = 0.5 * kept + np.bincount(chosen, minlength=CELLS)
        model.append(kept + rng.laplace(0.0, 0.3, CELLS))
    return model


def size_without_noise(counts: Any, rng: Any) -> Any:
    counted = np.bincount(by_mask(cells_of(counts), rng), minlength=CELLS)
    return [counted + rng.laplace(0.0, 1.0, CELLS), int(counted.sum())]


def of_fixed_size(counts: Any, rng: Any) -> Any:
    values = cells_of(counts)
    chosen = values[np.argsort(rng.random(len(values)))[:38]]
    return np.bincount(chosen, minlength=CELLS) + rng.laplace(0.0, 0.3, CELLS)


def rate_by_rows(counts: Any, rng: Any) -> Any:
    values = cells_of(counts)
    chosen = values[rng.random(len(values)) < 20 / len(values)]
    return np.bincount(chosen, minlength=CELLS) + rng.laplace(0.0, 0.3, CELLS)


@pytest.mark.parametrize(
    "train",
    [
        size_without_noise,
        of_fixed_size,
        pytest.param(kept_from_step_to_step, marks=pytest.mark.ci),
        pytest.param(rate_by_rows, marks=pytest.mark.ci),
    ],
)
def test_what_is_no_pure_sub_sample_is_never_consistent_with_less_than_it_leaks(
    train: Any,
) -> None:
    record = replayed(train, epsilon=0.1)
    assert record.verdict in (Verdict.INCONCLUSIVE, Verdict.OVERSPENT), str(record)


@pytest.mark.ci
def test_each_record_under_one_coin_is_not_followed_where_records_are_replaced() -> None:
    record = replayed(gaussian_of(by_mask), **CLAIM, neighbours="replace-one")
    assert record.verdict in (Verdict.INCONCLUSIVE, Verdict.OVERSPENT), str(record)
