"""Tests whether a random split made train and hold-out: exact where one did, and what they see."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from threadpoolctl import threadpool_limits

from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import BoolArray
from dpaudit.released_data.exchangeability import (
    Exchangeability,
    exchangeability,
    extremes_p_value,
    marginals_p_value,
    repeats_p_value,
)
from dpaudit.released_data.rows import Keys, column_keys

SCHEMA = Schema(
    columns=(
        Column(name="x", kind=Kind.CONTINUOUS, lower=-9.0, upper=9.0),
        Column(name="y", kind=Kind.CONTINUOUS, lower=-9.0, upper=9.0),
        Column(name="c", kind=Kind.CATEGORICAL, categories=("a", "b", "d")),
    )
)
Dealt = Callable[[pd.DataFrame, np.random.Generator], BoolArray]


def people(rng: np.random.Generator, rows: int = 600) -> pd.DataFrame:
    numbers = {name: rng.normal(size=rows).clip(-9, 9) for name in "xy"}
    return pd.DataFrame(numbers | {"c": np.array(["a", "b", "d"])[rng.integers(3, size=rows)]})


def at_random(table: pd.DataFrame, rng: np.random.Generator) -> BoolArray:
    return rng.permutation(len(table)) < len(table) // 2


def examined(dealt: Dealt, seed: int) -> Exchangeability:
    rng = np.random.default_rng(seed)
    table = people(rng)
    inside = dealt(table, rng)
    return exchangeability(table, inside, SCHEMA, rng, compared=np.arange(len(table)))


@pytest.mark.parametrize("runs", [10, pytest.param(40, marks=pytest.mark.slow)])
def test_a_random_split_is_seldom_suspected(runs: int) -> None:
    found = [examined(at_random, seed) for seed in range(runs)]
    assert sum(one.differ or one.repeats_removed for one in found) <= binom.ppf(0.999, runs, 0.05)
    for name in ("extremes", "marginals", "neighbours", "classifier"):
        assert 0.25 < np.mean([getattr(one, name) for one in found]) < 0.75, name


def sorted_file(table: pd.DataFrame, rng: np.random.Generator) -> BoolArray:
    return (table.x < table.x.median()).to_numpy()


def rare_category_in_train(table: pd.DataFrame, rng: np.random.Generator) -> BoolArray:
    return at_random(table, rng) | ((table.c == "d") & (table.x > 1.0)).to_numpy()


def inliers(table: pd.DataFrame, rng: np.random.Generator) -> BoolArray:
    return at_random(table, rng) & (table[["x", "y"]].abs() < 1.9).all(axis=1).to_numpy()


@pytest.mark.parametrize("dealt", [sorted_file, rare_category_in_train, inliers])
def test_splits_that_are_not_random_are_found(dealt: Dealt) -> None:
    assert examined(dealt, 0).differ


def test_groups_that_stay_together_are_found_by_their_neighbours() -> None:
    rng = np.random.default_rng(0)
    heads = people(rng, rows=200)
    table = pd.concat([heads] * 3, ignore_index=True)
    table["x"] = (table.x + rng.normal(scale=0.01, size=len(table))).clip(-9, 9)
    inside = np.tile(rng.permutation(200) < 100, 3)
    found = exchangeability(table, inside, SCHEMA, rng, compared=np.arange(len(table)))
    assert found.neighbours <= 0.01


def repeated(rng: np.random.Generator, rows: int = 2000, kinds: int = 4000) -> Keys:
    return column_keys(rng.integers(kinds, size=(rows, 1)).astype(float))


def p_after(clear: Callable[[Keys, BoolArray], BoolArray], seed: int) -> float:
    """The p-value after some rows of a random split were removed."""
    rng = np.random.default_rng(seed)
    keys = repeated(rng)
    inside = rng.permutation(len(keys)) < len(keys) // 2
    kept = clear(keys[:, 0], inside)
    return repeats_p_value(keys[kept], inside[kept], rng)


def first_of_each(keys: Keys) -> BoolArray:
    found = np.zeros(len(keys), dtype=np.bool_)
    found[np.unique(keys, return_index=True)[1]] = True
    return found


def one_sided(keys: Keys, inside: BoolArray) -> BoolArray:
    return inside | ~np.isin(keys, keys[inside])


def of_train(keys: Keys, inside: BoolArray) -> BoolArray:
    kept = ~inside
    kept[np.flatnonzero(inside)] = first_of_each(keys[inside])
    return kept


def of_each(keys: Keys, inside: BoolArray) -> BoolArray:
    return of_train(keys, inside) & of_train(keys, ~inside)


@pytest.mark.parametrize("clear", [one_sided, of_train, of_each])
def test_repeats_that_were_removed_are_found(
    clear: Callable[[Keys, BoolArray], BoolArray],
) -> None:
    assert max(p_after(clear, seed) for seed in range(3)) <= 0.01


def test_repeats_that_were_removed_by_some_columns_alone_are_found() -> None:
    rng = np.random.default_rng(0)
    repeats, numbers = repeated(rng), column_keys(rng.normal(size=(2000, 2)))
    inside = rng.permutation(2000) < 1000
    kept = one_sided(repeats[:, 0], inside)
    keys = np.column_stack([repeats, numbers[:, 1]])
    assert repeats_p_value(keys[kept], inside[kept], rng) <= 0.002
    assert repeats_p_value(keys, inside, rng) > 0.01


@pytest.mark.parametrize("runs", [20, pytest.param(60, marks=pytest.mark.ci)])
def test_repeats_of_a_random_split_are_exchangeable(runs: int) -> None:
    p_values = [p_after(lambda keys, inside: np.ones_like(inside), seed) for seed in range(runs)]
    assert sum(p <= 0.05 for p in p_values) <= binom.ppf(0.999, runs, 0.05)
    assert 0.35 < np.mean(p_values) < 0.65


def test_without_repeats_nothing_is_suspected() -> None:
    keys = column_keys(np.arange(50.0)[:, None])
    assert repeats_p_value(keys, np.arange(50) < 25, np.random.default_rng(0)) == 1.0


def test_one_frequent_record_in_one_table_alone_is_found() -> None:
    keys = column_keys(np.concatenate([np.zeros(20), np.arange(1.0, 400.0)])[:, None])
    inside = np.arange(len(keys)) < 20 + 199
    assert repeats_p_value(keys, inside, np.random.default_rng(0)) <= 0.002


def test_extremes_need_numeric_columns() -> None:
    inside = np.arange(10) < 5
    assert extremes_p_value(np.empty((10, 0)), inside, np.random.default_rng(0)) == 1.0


def test_the_split_itself_counts_among_those_that_are_as_far() -> None:
    rng = np.random.default_rng(3)
    split = np.arange(100) < 50
    labels = np.array([split, *(rng.permutation(split) for _ in range(99))])
    assert marginals_p_value(split[:, None].astype(float), labels) == 1 / 100


@pytest.mark.parametrize("far", ["extremes", "marginals", "neighbours", "classifier"])
def test_one_way_of_differing_is_enough(far: str) -> None:
    alike = Exchangeability(1.0, 1.0, 1.0, 1.0, 1.0)
    assert not alike.differ
    assert alike._replace(**{far: 1e-6}).differ


def test_means_do_not_depend_on_the_number_of_threads() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2_000, 60)).astype(np.float32)
    label = np.arange(2_000) % 2 == 0
    labels = np.array([label, *(rng.permutation(label) for _ in range(300))])
    found = []
    for threads in (1, 2):
        with threadpool_limits(limits=threads):
            found.append(marginals_p_value(rows, labels))
    assert found[0] == found[1]
