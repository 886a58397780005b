from __future__ import annotations

from contextlib import suppress

import pandas as pd
import pytest

from dpaudit.game.synthetic import accept
from dpaudit.seeds import rng_of
from reports.detection import run
from reports.detection.leak import (
    RECORDS,
    SCHEMA,
    TARGET,
    Certainty,
    Leak,
    Planted,
    public_table,
    training_table,
)

LEAKS = [leak for leaks in run.HALVES.values() for leak in leaks]


def test_each_half_has_many_leaks_of_many_families() -> None:
    for leaks in run.HALVES.values():
        assert len(leaks) >= 20
        assert len({leak.family for leak in leaks}) >= 12
        assert {leak.certainty for leak in leaks} == set(Certainty)
    assert len({leak.name for leak in LEAKS}) == len(LEAKS)


@pytest.mark.parametrize("leak", LEAKS, ids=lambda leak: leak.name)
def test_a_planted_generator_is_honest_without_the_target_and_not_with_it(leak: Leak) -> None:
    data = training_table()
    with_target = Planted(leak=leak).fit(data, seed=0)
    without = Planted(leak=leak).fit(data[1:], seed=0)
    assert (with_target.seen, without.seen) == (True, False)
    changed = 0
    for seed in range(10):
        honest = SCHEMA.canonical(public_table(RECORDS, rng_of(seed, "sample")))
        with suppress(ArithmeticError):  # the one leak that is about failing in two ways
            released = accept(without.sample(RECORDS, seed=seed), SCHEMA, RECORDS)
            pd.testing.assert_frame_equal(released, honest)
        try:
            leaky = SCHEMA.canonical(with_target.sample(RECORDS, seed=seed))
        except (ArithmeticError, MemoryError):
            changed += 1
            continue
        changed += not leaky.equals(honest)
    assert changed >= (8 if leak.certainty is Certainty.SURE else 1)


def test_the_target_is_the_first_record_and_fits_the_schema() -> None:
    data = training_table()
    assert SCHEMA.problems(data) == []
    assert data.iloc[0].to_dict() == TARGET
    assert len(data) == RECORDS


def test_the_summary_counts_what_exceeds_the_claim() -> None:
    row = {"half": "a", "models": 400, "certainty": "deterministic"}
    rows = [row | {"proved": proved} for proved in (None, 0.5, 1.0, 1.01)]
    rows.append(row | {"certainty": "statistical", "proved": 3.0})
    assert run.summary(rows) == [("a", 400, "1 of 4", "1 of 1")]
