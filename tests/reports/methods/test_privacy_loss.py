"""Divergence against closed forms, and the expected privacy loss on cases computed by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpaudit.errors import DataError, SettingsError
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from reports.methods.privacy_loss import (
    chebyshev_reach,
    divergence,
    expected_privacy_loss,
    removal_losses,
    upper_deviation,
)

SCHEMA = Schema(
    columns=tuple(Column(name=name, kind=Kind.CONTINUOUS, lower=-5, upper=5) for name in "ab")
)


@pytest.mark.parametrize(
    "dimensions", [*(pytest.param(n, marks=pytest.mark.ci) for n in (2, 50)), 10]
)
@pytest.mark.parametrize(
    ("mean", "scale", "low", "high"),
    # Limits are those that docs/utility.md states, as factors of the closed form.
    [(0.0, 1.0, -0.25, 0.25), (1.0, 1.0, 0.4, 1.3), (1.0, 1.3, 0.7, 2.4)],
)
def test_divergence_of_gaussians(
    dimensions: int, mean: float, scale: float, low: float, high: float
) -> None:
    """KL(N(0, I), N(m, s² I)) = d (log s + (1 + m²) / (2 s²) - 1/2), with m = mean / sqrt(d)."""
    shift = mean / np.sqrt(dimensions)
    exact = dimensions * (np.log(scale) + (1 + shift**2) / (2 * scale**2) - 0.5)
    estimates = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        sample = rng.normal(size=(1500, dimensions))
        other = rng.normal(shift, scale, size=(1500, dimensions))
        estimates.append(divergence(sample, other).value)
    unit = exact or 1.0
    assert low * unit < np.mean(estimates) < high * unit


def test_the_standard_error_is_that_of_repeats() -> None:
    rng = np.random.default_rng(1)
    found = [divergence(rng.normal(size=(300, 2)), rng.normal(size=(300, 2))) for _ in range(60)]
    spread = np.std([one.value for one in found], ddof=1)
    stated = np.mean([one.standard_error for one in found])
    assert 0.6 < spread / stated < 1.5


def test_divergence_by_hand() -> None:
    sample, other = np.array([[0.0], [1.0], [3.0]]), np.array([[0.5], [4.0]])
    # Distances within: 1, 1, 2; across: 0.5, 0.5, 1. Rows: 2 of the other, 2 others within.
    assert divergence(sample, other).value == pytest.approx(-np.log(2))


def test_repeated_rows_have_no_density() -> None:
    rows = np.array([[0.0], [0.0], [1.0]])
    with pytest.raises(DataError, match="rows repeat"):
        divergence(rows, rows + 0.5)
    with pytest.raises(DataError, match="synthetic rows repeat"):
        removal_losses(rows, np.repeat(rows, 2, axis=0), removed=1)
    with pytest.raises(DataError, match="give more rows"):
        divergence(rows[1:], rows, neighbour=2)
    with pytest.raises(SettingsError, match="at least 1"):
        divergence(rows, rows, neighbour=0)


def test_removal_by_hand() -> None:
    rows = np.array([[0.0], [1.0], [3.0], [7.0], [15.0]])
    # Without row 0 only row 1 loses its nearest neighbour: at distance 2 instead of 1. Row 0 has 4
    # rows left of 4 others, every other row 3 of 4.
    [found] = removal_losses(np.array([[0.1]]), rows, removed=1)
    assert found == pytest.approx((np.log(2) + 4 * np.log(3 / 4)) / 5)
    # Without rows 0 and 1: row 0 has its nearest at 3 instead of 1, row 1 at 2 instead of 1, row 3
    # at 4 instead of 2. Rows 0 and 1 have 3 left of 4 others, every other row 2.
    [found] = removal_losses(np.array([[0.1]]), rows, removed=2)
    expected = np.log(3) + np.log(2) + np.log(2) + 2 * np.log(3 / 4) + 3 * np.log(2 / 4)
    assert found == pytest.approx(expected / 5)


def test_chebyshev_by_hand() -> None:
    values = np.array([0.0, 0.0, 0.0, 4.0])  # mean 1, upper semi-variance 9 / 4
    assert upper_deviation(values) == 1.5
    assert chebyshev_reach(1.5, gamma=0.01) == pytest.approx(15.0)


def test_chebyshev_holds_where_the_distribution_is_known() -> None:
    # Exponential: mean 1, upper semi-variance 2 / e; beyond 1 + t lies exp(-1 - t).
    values = np.random.default_rng(1).exponential(size=200_000)
    assert upper_deviation(values) ** 2 == pytest.approx(2 / np.e, rel=0.02)
    for gamma in (0.1, 0.01, 1e-4):
        reach = chebyshev_reach(float(np.sqrt(2 / np.e)), gamma=gamma)
        assert np.exp(-1 - reach) <= gamma


def normal_table(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(rng.normal(size=(rows, 2)), columns=["a", "b"])


def test_the_loss_of_a_record_shrinks_with_the_table() -> None:
    real = normal_table(200, 1)
    small, large = (
        expected_privacy_loss(real, normal_table(rows, 2), SCHEMA, removed=1)
        for rows in (300, 3000)
    )
    assert small.records == large.records == 200
    assert abs(large.mean) < 0.01
    assert 0 < large.upper_deviation < small.upper_deviation / 4
    assert large.mu == pytest.approx(large.mean + large.upper_deviation / np.sqrt(1e-5))


def test_a_copy_of_the_table_looks_like_a_fresh_sample() -> None:
    """The limit that docs/utility.md states: it would be wrong if this test failed."""
    real = normal_table(600, 1)
    copied, fresh = (
        [expected_privacy_loss(real, of(seed), SCHEMA, records=600).mu for seed in range(2, 6)]
        for of in (lambda seed: real, lambda seed: normal_table(600, seed))
    )
    assert np.mean(copied) == pytest.approx(np.mean(fresh), rel=0.25)


def test_rows_per_record_are_removed_and_seeds_repeat() -> None:
    real, synthetic = normal_table(100, 1), normal_table(400, 2)
    found = expected_privacy_loss(real, synthetic, SCHEMA, records=30, seed=4)
    assert (found.removed, found.records) == (4, 30)
    assert found == expected_privacy_loss(real, synthetic, SCHEMA, records=30, seed=4)
    assert found != expected_privacy_loss(real, synthetic, SCHEMA, records=30, seed=5)


def test_settings_out_of_range_are_refused() -> None:
    real = normal_table(100, 1)
    for given, message in (({"records": 1}, "records"), ({"gamma": 0.0}, "gamma")):
        with pytest.raises(SettingsError, match=message):
            expected_privacy_loss(real, real, SCHEMA, **given)  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="begin at 1"):
        expected_privacy_loss(real, real, SCHEMA, removed=0)
    with pytest.raises(DataError, match="are too few"):
        expected_privacy_loss(real, real, SCHEMA, removed=99)
    with pytest.raises(DataError, match="has 1 rows"):
        expected_privacy_loss(real[:1], real, SCHEMA)
