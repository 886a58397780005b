import numpy as np
import pytest
from scipy.stats import fisher_exact

from dpaudit.errors import SettingsError
from dpaudit.released_data.copies import Excess, Hits, excess_of, excess_p_value


@pytest.mark.parametrize(
    ("a", "n", "b", "m"), [(0, 10, 3, 12), (7, 20, 1, 15), (30, 30, 0, 5), (40, 2000, 22, 1000)]
)
def test_the_p_value_is_fishers(a: int, n: int, b: int, m: int) -> None:
    expected = fisher_exact([[a, n - a], [b, m - b]], alternative="greater").pvalue
    assert excess_p_value(Hits(a, n), Hits(b, m)) == pytest.approx(expected, rel=1e-9)


def test_large_tables_take_no_time_and_lose_no_digits() -> None:
    assert excess_p_value(Hits(500_000, 10**6), Hits(500_000, 10**6)) == pytest.approx(
        0.5, abs=1e-3
    )
    assert excess_p_value(Hits(501_500, 10**6), Hits(498_500, 10**6)) < 0.001


def test_without_a_holdout_there_is_no_limit() -> None:
    for holdout in (None, Hits(0, 0)):
        found = excess_of(Hits(9, 10), holdout, confidence=0.95, tests=1)
        assert found == Excess(Hits(9, 10))
        assert not found.proved


def limit(train: Hits, holdout: Hits, tests: int = 1) -> int:
    found = excess_of(train, holdout, confidence=0.95, tests=tests).at_least
    assert found is not None
    return found


def test_the_limit_is_the_fewest_that_chance_leaves() -> None:
    train, holdout = Hits(60, 1000), Hits(10, 1000)
    least = limit(train, holdout)
    assert excess_p_value(Hits(60 - least, 1000), holdout) > 0.05
    assert excess_p_value(Hits(60 - least + 1, 1000), holdout) <= 0.05
    assert limit(train, holdout, tests=100) < least


def test_equal_rates_prove_nothing_and_copies_of_train_records_alone_nearly_all() -> None:
    assert limit(Hits(100, 1000), Hits(100, 1000)) == 0
    assert 90 <= limit(Hits(100, 1000), Hits(0, 1000)) < 100


@pytest.mark.parametrize("memorised", [0, 15])
def test_the_limit_is_wrong_no_more_often_than_it_says(memorised: int) -> None:
    rng = np.random.default_rng(7)
    repeats, wrong = 2000, 0
    for _ in range(repeats):
        by_chance = rng.random(600) < 0.05  # of records whose split is drawn after the table
        train, holdout = by_chance[:400].copy(), by_chance[400:]
        train[:memorised] = True
        hits = Hits(int(train.sum()), 400), Hits(int(holdout.sum()), 200)
        wrong += limit(*hits) > memorised
    assert wrong / repeats <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / repeats)
    assert wrong  # it is not merely never wrong


def test_confidence_is_checked() -> None:
    with pytest.raises(SettingsError, match="confidence"):
        excess_of(Hits(1, 2), Hits(1, 2), confidence=1.5, tests=1)
