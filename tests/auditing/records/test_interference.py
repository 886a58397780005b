"""How much records that are trained together hide one another."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit.auditing.records.interference import most_sensitive, shift_among, shift_needed
from dpaudit.seeds import rng_of


@pytest.mark.parametrize("records", [1, 4, 16])
def test_the_shift_among_others_is_what_a_simulated_sum_shows(records: int) -> None:
    rng = rng_of(0, f"interference/{records}")
    mu, n = 1.5, 200_000
    coins = rng.random((n, records)) < 0.5
    seen = mu * coins.sum(axis=1) + rng.normal(size=n)
    own = coins[:, 0]
    apart = seen[own].mean() - seen[~own].mean()
    spread = np.sqrt((seen[own].var() + seen[~own].var()) / 2)
    assert apart / spread == pytest.approx(shift_among(mu, records), abs=0.02)


def test_what_is_needed_alone_is_what_is_seen_among_others() -> None:
    for records in (1, 4, 16):
        needed = shift_needed(0.4, records)
        assert needed is not None
        assert shift_among(needed, records) == pytest.approx(0.4)


def test_among_many_no_shift_is_large_enough() -> None:
    assert shift_needed(1.0, 5) is None  # at most 2 / sqrt(4) is ever seen
    assert shift_among(1e9, 5) == pytest.approx(1.0)


def test_the_smallest_leak_decides_and_fewer_records_break_ties() -> None:
    assert most_sensitive({1: 1.1, 4: 0.9, 16: None}) == 4
    assert most_sensitive({4: 0.9, 16: 0.9}) == 4
    assert most_sensitive({4: None}) is None
