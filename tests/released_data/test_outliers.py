import numpy as np
import pytest

from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FloatArray
from dpaudit.released_data.copies import Outliers, find_outliers

NUMBERS = 8
SCHEMA = Schema(
    columns=(
        *(
            Column(name=f"x{i}", kind=Kind.CONTINUOUS, lower=-99.0, upper=99.0, missing=True)
            for i in range(NUMBERS)
        ),
        Column(name="city", kind=Kind.CATEGORICAL, categories=tuple(f"c{i}" for i in range(900))),
    )
)


def table(n: int, seed: int) -> FloatArray:
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.normal(size=(n, NUMBERS)), rng.integers(0, 40, n)])


def found(train: FloatArray, synthetic: FloatArray, holdout: FloatArray | None) -> Outliers:
    rng = np.random.default_rng(0)
    return find_outliers(train, synthetic, holdout, SCHEMA, rng=rng, confidence=0.95)


def clipped(values: FloatArray, bounds: FloatArray) -> FloatArray:
    """A table with the smallest and largest values of another, as generators that scale make it."""
    made = values.copy()
    numbers = slice(0, NUMBERS)
    made[0, numbers], made[1, numbers] = bounds[:, numbers].min(0), bounds[:, numbers].max(0)
    return np.clip(made, bounds.min(0), bounds.max(0))


def test_bounds_of_the_train_table_are_found() -> None:
    train, holdout = table(500, 1), table(500, 2)
    outliers = found(train, clipped(table(500, 3), train), holdout)
    assert outliers.ends is not None
    assert outliers.ends.train.found == outliers.ends.train.of == 2 * NUMBERS
    assert outliers.ends.holdout.found == 0
    assert outliers.ends_proved
    assert all(one.minimum and one.maximum for one in outliers.columns if one.column != "city")


def test_bounds_of_nobody_are_not() -> None:
    train, holdout = table(500, 1), table(500, 2)
    outliers = found(train, np.clip(table(500, 3), -1.0, 1.0), holdout)
    assert outliers.ends is not None
    assert outliers.ends.train.found == 0
    assert not outliers.proved


def test_rare_categories_of_train_records_are_found() -> None:
    train, holdout, synthetic = table(500, 1), table(500, 2), table(500, 3)
    train[:20, -1] = 100 + np.arange(20)
    holdout[:20, -1] = 200 + np.arange(20)
    synthetic[:20, -1] = 100 + np.arange(20)
    first = found(train, synthetic, holdout).columns[0]
    assert first.column == "city"
    assert first.repeated.train.found == 20
    assert first.repeated.holdout is not None
    assert first.repeated.holdout.found == 0
    assert first.repeated.proved


@pytest.mark.parametrize(("runs", "most"), [(20, 4), pytest.param(100, 12, marks=pytest.mark.slow)])
def test_false_alarms_are_rare_over_all_tests(runs: int, most: int) -> None:
    alarms = 0
    for seed in range(runs):
        pooled = np.round(table(1200, seed), 1)
        pooled[np.random.default_rng(seed).random(pooled.shape) < 0.1] = np.nan
        pooled[:, -1] = np.nan_to_num(pooled[:, -1], nan=-1.0)
        synthetic = clipped(pooled[400:800], pooled)  # bounds of all three parts together
        alarms += found(pooled[:400], synthetic, pooled[800:]).proved
    assert alarms <= most  # more have probability 0.002 at 5 %, 0.003 of 20


def test_unequal_parts_give_no_alarm_by_their_sizes() -> None:
    pooled = table(3300, 5)
    outliers = found(pooled[:3000], clipped(table(500, 3), pooled), pooled[3000:])
    assert outliers.ends is not None
    assert outliers.ends.train.found > outliers.ends.holdout.found  # there are ten times as many
    assert not outliers.ends_proved


def test_without_a_holdout_values_are_counted_and_nothing_is_proved() -> None:
    train = table(500, 1)
    outliers = found(train, train, None)
    assert outliers.ends is None
    assert outliers.columns[0].repeated.train.rate == 1.0
    assert outliers.columns[0].minimum is None
    assert not outliers.proved
