import numpy as np
import pytest

from dpaudit.plugins.protocols import FloatArray
from dpaudit.released_data.copies import (
    ClosestDistances,
    Copied,
    Copies,
    Distances,
    equal_rows,
    find_copies,
    nearness_thresholds,
)
from dpaudit.released_data.rows import find_nearest

N = 2000


def rows(n: int, seed: int) -> FloatArray:
    return np.random.default_rng(seed).random((n, 4))


def found(train: FloatArray, synthetic: FloatArray, holdout: FloatArray | None) -> Copies:
    synthetic_32 = synthetic.astype(np.float32)

    def to(of: FloatArray) -> Distances:
        return find_nearest(of.astype(np.float32), synthetic_32, neighbours=1).distances[:, 0]

    return find_copies(
        Copied(
            equal_rows(train, synthetic),
            None if holdout is None else equal_rows(holdout, synthetic),
            None if holdout is None else ClosestDistances(to(train), to(holdout)),
        ),
        synthetic_copied=equal_rows(synthetic, train),
        riskiest=range(100),
        rng=np.random.default_rng(0),
        confidence=0.95,
    )


def test_rows_are_equal_if_every_value_is_and_missing_values_equal_each_other() -> None:
    rows = np.array([[1.0, np.nan], [0.0, 2.0], [1.0, 3.0]])
    among = np.array([[1.0, np.nan], [-0.0, 2.0], [3.0, 1.0]])
    assert equal_rows(rows, among).tolist() == [True, True, False]


def test_copied_records_are_proved_and_counted() -> None:
    train, holdout = rows(N, 1), rows(N, 2)
    synthetic = np.concatenate([rows(N, 3), train[100:140]])
    copies = found(train, synthetic, holdout)
    assert copies.proved
    assert copies.exact.records.train.found == copies.synthetic.found == 40
    assert 30 <= (copies.exact.records.at_least or 0) <= 40
    assert copies.riskiest == tuple(range(100))


def test_records_that_are_only_shaken_are_near_copies() -> None:
    train, holdout = rows(N, 1), rows(N, 2)
    synthetic = np.concatenate([rows(N, 3), train[:200] + 1e-4])
    copies = found(train, synthetic, holdout)
    assert copies.exact.records.train.found == 0
    assert any(one.records.proved for one in copies.near)


def test_another_sample_of_the_population_has_copies_and_proves_nothing() -> None:
    wide = [np.floor(rows(N, seed) * 5) for seed in (1, 2, 3)]  # 625 cells: chance copies most
    copies = found(wide[0], wide[2], wide[1])
    assert copies.exact.records.train.rate > 0.9
    assert not copies.proved


def test_false_alarms_are_rare_over_all_tests() -> None:
    alarms = 0
    for seed in range(100):
        pooled = np.random.default_rng(seed).random((1200, 3))
        alarms += found(pooled[:400], pooled[400:800] * 0.999, pooled[800:]).proved
    assert alarms <= 12  # more have probability 0.002 at 5 %


def test_without_a_holdout_copies_are_counted_and_nothing_is_proved() -> None:
    train = rows(N, 1)
    copies = found(train, train.copy(), None)
    assert copies.exact.records.train.rate == 1.0
    assert copies.near == ()
    assert not copies.proved


def test_thresholds_come_from_enough_records_and_are_above_zero() -> None:
    assert nearness_thresholds(np.arange(10.0)) == ()
    assert nearness_thresholds(np.zeros(10_000)) == ()
    (share, within), *_ = nearness_thresholds(np.arange(1000.0))
    assert (share, within) == (0.01, pytest.approx(9.99))
