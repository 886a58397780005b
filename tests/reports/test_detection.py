from __future__ import annotations

from contextlib import suppress
from functools import cache
from itertools import product

import pandas as pd
import pytest

from dpaudit.auditing.games import audit_settings
from dpaudit.bounds import CoinPlan
from dpaudit.plugins.release import accept
from dpaudit.seeds import rng_of
from reports.detection import planted_c, planted_d, run
from reports.detection.alone import PUBLISHED
from reports.detection.leak import (
    RECORDS,
    SCHEMA,
    TARGET,
    Certainty,
    Leak,
    Planted,
    PlantedModel,
    public_table,
    training_table,
    unchanged,
)
from reports.detection.perfect import Shown, provable, provable_by_fact, shown

LEAKS = [leak for leaks in run.HALVES.values() for leak in leaks]


def test_each_half_has_many_leaks_of_many_families() -> None:
    for leaks in run.HALVES.values():
        assert len(leaks) >= 20
        assert len({leak.family for leak in leaks}) >= 12
        assert {leak.certainty for leak in leaks} >= {Certainty.SURE, Certainty.NOISY}
    assert len({leak.name for leak in LEAKS}) == len(LEAKS)


@cache
def public_release(seed: int) -> pd.DataFrame:
    """What a generator without a leak releases."""
    return SCHEMA.canonical(public_table(RECORDS, rng_of(seed, "sample")))


@pytest.mark.slow
@pytest.mark.parametrize(
    "leak", [leak for leak in LEAKS if leak.fact is None], ids=lambda leak: leak.name
)
def test_a_planted_generator_is_honest_without_the_target_and_not_with_it(leak: Leak) -> None:
    data = training_table()
    with_target = Planted(leak=leak).fit(data, seed=0)
    without = Planted(leak=leak).fit(data[1:], seed=0)
    assert (with_target.seen, without.seen) == (True, False)
    changed = 0
    for seed in range(10):
        honest = public_release(seed)
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


@pytest.mark.slow
@pytest.mark.parametrize("leak", [*planted_c.LEAKS, *planted_d.LEAKS], ids=lambda leak: leak.name)
def test_the_statistic_of_a_leak_is_larger_with_the_target(leak: Leak) -> None:
    assert leak.fact is not None
    facts: dict[bool, list[float]] = {True: [], False: []}
    for seen, values in facts.items():
        for seed in range(20):
            released = PlantedModel(leak=leak, seen=seen).sample(RECORDS, seed=seed)
            values.append(leak.fact(released))
            accepted = accept(released, SCHEMA, RECORDS)
            honest = public_release(seed)
            assert seen or leak.unseen is not unchanged or accepted.equals(honest)
    larger = sum(a > b for a, b in product(facts[True], facts[False])) / 400
    if leak.certainty is Certainty.NONE:
        assert facts[True] == facts[False]
    else:
        assert larger > (0.97 if leak.certainty is Certainty.SURE else 0.6)


@pytest.mark.ci
def test_who_sees_the_statistic_proves_no_twin_and_what_is_sure() -> None:
    leaks = {leak.name: leak for leak in planted_c.LEAKS}
    highest = provable(Shown(1.0, 0.0), 400)
    sure = leaks["visits are the same in every table"]
    assert provable_by_fact(sure, 400) == pytest.approx(highest, abs=0.1)
    # Guesses above and below thresholds that were chosen on other tables: chance.
    assert provable_by_fact(leaks["coin: three chains take turns"], 400) < 0.5


def test_the_target_is_the_first_record_and_fits_the_schema() -> None:
    data = training_table()
    assert SCHEMA.problems(data) == []
    assert data.iloc[0].to_dict() == TARGET
    assert len(data) == RECORDS


def test_the_summary_counts_what_exceeds_the_claim() -> None:
    row = {"half": "a", "models": 400, "certainty": "deterministic", "perfect": 4.0}
    alone = {"groundhog": 1.2, "query-target": 0.9}
    rows = [row | {"proved": proved, "alone": alone} for proved in (None, 0.5, 1.0, 1.01)]
    rows.append(row | {"certainty": "statistical", "proved": 3.0, "alone": alone, "perfect": 0.0})
    assert run.summary(rows) == [
        ("deterministic", "a", 400, "1 of 4", "4 of 4", "0 of 4", "4 of 4"),
        ("statistical", "a", 400, "1 of 1", "1 of 1", "0 of 1", "0 of 1"),
    ]


def test_every_leak_is_audited_with_every_number_of_models() -> None:
    planned = list(run.plan(tuple(run.HALVES), (100, 400), quick=False))
    assert len(planned) == 2 * len(LEAKS) == len(set(planned))
    certain = [leak.certainty for _, leak, models in planned if models == 400]
    assert certain == sorted(certain, key=list(Certainty).index)


@pytest.mark.ci
def test_published_attacks_judge_the_trials_of_the_default_audit() -> None:
    leak = next(leak for leak in LEAKS if leak.name == "largest weight is a hundred")
    row = run.audited(leak, 60, 1)
    assert row["alone"].keys() == PUBLISHED.keys()
    assert all(0.0 <= bound <= row["perfect"] for bound in row["alone"].values())
    assert row["alone"]["groundhog"] > 0.5  # the maximum is one of its features
    assert row["proved"] > 0.5


@pytest.mark.ci
def test_attacks_on_tables_prove_nothing_where_no_table_comes() -> None:
    leak = next(leak for leak in LEAKS if leak.name == "one row too few")
    row = run.audited(leak, 20, 1)
    assert row["alone"] == dict.fromkeys(PUBLISHED, 0.0)
    assert row["attack"] == "trial outcomes"


@pytest.mark.slow
def test_what_is_shown_is_how_often_a_table_changes() -> None:
    rates = {leak.name: shown(leak) for leak in LEAKS if leak.family in ("rare", "failing")}
    for name, expected in {
        "the target itself in one of ten tables": Shown(0.1, 0.0),
        "the targets income in one of four tables": Shown(0.25, 0.0),
        "fails half of the time": Shown(0.5, 0.0),
        "fails in another way": Shown(0.5, 0.5),
    }.items():
        assert rates[name] == pytest.approx(expected, abs=0.1)


def test_a_leak_that_is_always_shown_proves_all_that_can_be_proved() -> None:
    scored = audit_settings(shadow_models=400).game.scored
    highest = CoinPlan(trials=scored, delta=0.0, confidence=0.95).provable()
    assert provable(Shown(1.0, 0.0), 400) == pytest.approx(highest)
    assert provable(Shown(1.0, 1.0), 400) == pytest.approx(highest)
    assert provable(Shown(0.0, 0.0), 400) == 0.0
    # Twelve guesses, all right: 12 log(p) = log(.05) at p = .779, odds of e^1.26.
    assert provable(Shown(0.1, 0.0), 400) == pytest.approx(1.26, abs=0.01)
