"""How much records that are trained together hide one another."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit.auditing.records.plan import most_sensitive, shift_needed
from dpaudit.seeds import rng_of


@pytest.mark.parametrize("records", [1, 4, 16])
def test_the_shift_needed_is_the_one_that_a_simulated_sum_has(records: int) -> None:
    rng = rng_of(0, f"interference/{records}")
    mu, n = 1.0, 200_000
    coins = rng.random((n, records)) < 0.5
    seen = mu * coins.sum(axis=1) + rng.normal(size=n)
    own = coins[:, 0]
    apart = seen[own].mean() - seen[~own].mean()
    spread = np.sqrt((seen[own].var() + seen[~own].var()) / 2)
    assert shift_needed(apart / spread, records) == pytest.approx(mu, rel=0.1)


def test_what_is_needed_alone_is_what_is_seen_among_others() -> None:
    for records in (1, 4, 16):
        needed = shift_needed(0.4, records)
        assert needed is not None
        noise = np.sqrt(1 + (records - 1) * needed**2 / 4)
        assert needed / noise == pytest.approx(0.4)


def test_among_many_no_shift_is_large_enough() -> None:
    assert shift_needed(1.0, 5) is None  # at most 2 / sqrt(4) is ever seen


def test_the_smallest_leak_decides_and_fewer_records_break_ties() -> None:
    assert most_sensitive({1: 1.1, 4: 0.9, 16: None}) == 4
    assert most_sensitive({4: 0.9, 16: 0.9}) == 4
    assert most_sensitive({4: None}) is None
