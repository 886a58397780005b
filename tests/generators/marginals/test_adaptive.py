"""Deviations over few or many bins: which are used, what is released, and what a record shifts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstest

from dpaudit.model.column import Column, Kind
from dpaudit.model.encoding import values_of_table
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FloatArray, IntArray, Job, World
from dpaudit_generators.marginals import Marginals, Structure, release
from dpaudit_generators.marginals.release import AdaptiveDeviations, DeviationTree

SCHEMA = Schema(
    columns=(
        Column(name="x", kind=Kind.CONTINUOUS, lower=0.0, upper=1.0),
        Column(name="y", kind=Kind.CONTINUOUS, lower=0.0, upper=1.0, missing=True),
        Column(name="pet", kind=Kind.BINARY, categories=(0, 1)),
        Column(name="ill", kind=Kind.BINARY, categories=("no", "yes")),
    ),
    label="ill",
)
MU = 1.6


def people(*, ill: int, well: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(ill)
    n = ill + well
    values = {"x": rng.random(n) ** 2, "y": rng.random(n), "pet": rng.integers(0, 2, n)}
    labels = ["yes"] * ill + ["no"] * well
    return SCHEMA.canonical(pd.DataFrame(values | {"ill": labels}))


def generator(mu: float = MU, bins: int | None = None) -> Marginals:
    return Marginals(schema=SCHEMA, tree=Structure.DEVIATIONS, mu=mu, bins=bins)


def tree(mu: float = MU) -> AdaptiveDeviations:
    found = generator(mu).mechanism
    assert isinstance(found, AdaptiveDeviations)
    return found


def test_many_bins_are_used_where_enough_records_are_outside_the_largest_class() -> None:
    own = tree()
    needed = 16 * np.sqrt(3) / own.many.deviations_mu
    assert own.many.deviations_mu == pytest.approx(np.sqrt(0.8) * MU)
    for largest in (100.0, 1e6):  # how many are in it does not count
        assert own.chosen(np.array([largest, needed - 0.01])) is own.few
        assert own.chosen(np.array([needed + 0.01, largest])) is own.many
    # Noise may leave a class below 0.
    assert own.chosen(np.array([500.0, -3.0])) is own.few
    # Of three classes the two smaller ones count together.
    assert own.chosen(np.array([1e6, needed / 2, needed / 2 + 0.01])) is own.many


@pytest.mark.parametrize(("ill", "bins"), [(2, 4), (250, 16)])
def test_it_is_the_tree_over_the_bins_that_it_chose(ill: int, bins: int) -> None:
    data = people(ill=ill)
    adapted, fixed = generator().fit(data, seed=5), generator(bins=bins).fit(data, seed=5)
    assert adapted.tables.domain.bins == fixed.tables.domain.bins == bins
    np.testing.assert_array_equal(adapted.shares, fixed.shares)

    named = dict(zip(generator().released_facts, adapted.released(), strict=True))
    assert len(named) == len(adapted.released())  # no two numbers have the same name
    for name, number in zip(generator(bins=bins).released_facts, fixed.released(), strict=True):
        found = named.pop(name) if name in ("ill = no", "ill = yes") else None
        found = named.pop(f"{name}, in {bins} bins") if found is None else found
        assert found == number
    assert len(named) > 10
    assert set(named.values()) == {0.0}  # of the other bins nothing was measured


@pytest.mark.parametrize("seed", [None, 3])
def test_each_step_is_drawn_once(seed: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    # Without a seed a second stream for the classes would be a second look at them.
    opened = []

    def noted(given: int | None, purpose: str) -> np.random.Generator:
        opened.append((given, purpose))
        return np.random.default_rng(len(opened))

    monkeypatch.setattr(release, "rng_of", noted)
    model = generator().fit(people(ill=9), seed=seed)
    assert opened == [(seed, "columns"), (seed, "deviations")]
    classes = model.released()[:2] * tree().few.label_scale
    noise = np.random.default_rng(1).standard_normal(2) * tree().few.label_scale
    assert classes == pytest.approx(np.array([300.0, 9.0]) + noise)


class Scores(NamedTuple):
    """What the best attack sees of each model, by how much the record shifts it, and the bins."""

    values: FloatArray
    shifts: FloatArray
    bins: IntArray


def scores(own: AdaptiveDeviations, numbers: FloatArray, table: pd.DataFrame) -> Scores:
    """The likelihood-ratio statistic of the first record, given what each step said before.

    Normal with a standard deviation of 1 and, without the record, a mean of 0.
    """
    found, shifts, bins = [], [], []
    for row in numbers:
        used = own.chosen(row[:2] * own.few.label_scale)
        first = 2 if used is own.few else len(own.few.names)
        seen = np.append(row[:2], row[first : first + len(used.names) - 2])
        cells = used.domain.cells(values_of_table(table, SCHEMA))
        record, others = cells[:1], cells[1:]
        around = used.centre(seen[: len(used.alone_scales)] * used.alone_scales)
        shift, expected = (
            used.in_units(used.alone(some).astype(float), *used.deviations(some, around))
            for some in (record, others)
        )
        length = np.linalg.norm(shift)
        found.append((seen - expected) @ shift / length)
        shifts.append(length)
        bins.append(used.domain.bins)
    return Scores(np.array(found), np.array(shifts), np.array(bins))


@pytest.mark.ci
def test_a_record_that_tips_the_choice_shifts_the_best_statistic_by_at_most_mu() -> None:
    own = tree()
    needed = 16 * np.sqrt(3) / own.many.deviations_mu
    table = people(ill=int(needed))  # the first record is ill
    generated = generator()

    def released(dropped: tuple[int, ...]) -> FloatArray:
        first = 7000 * len(dropped)
        jobs = [Job(World.OUT, number, dropped, first + number) for number in range(2000)]
        return np.array([one.numbers for one in generated.fit_many(table, jobs).models])

    without = scores(own, released((0,)), table)
    with_it = scores(own, released(()), table)
    for one in (without, with_it):
        assert 0.2 < (one.bins == 16).mean() < 0.8  # both ways are taken
        assert one.shifts.max() <= MU * (1.0 + 1e-9)
    assert (with_it.bins == 16).mean() > (without.bins == 16).mean()
    assert kstest(without.values, "norm").pvalue > 1e-4
    assert kstest(with_it.values - with_it.shifts, "norm").pvalue > 1e-4
    assert kstest(with_it.values - with_it.shifts / 2, "norm").pvalue < 1e-4  # this test can fail


def test_a_record_raises_the_numbers_of_both_trees() -> None:
    record = people(ill=1).iloc[:1]
    effect = generator().released_effect(record)
    few = generator(bins=4).released_effect(record)
    many = generator(bins=16).released_effect(record)
    np.testing.assert_array_equal(effect, np.append(few, many[2:]))
    assert len(effect) == len(generator().released_facts)


@pytest.mark.parametrize(
    ("columns", "label"),
    [(SCHEMA.columns[2:], "ill"), (SCHEMA.columns, "x")],
    ids=["no numbers", "numeric label"],
)
def test_where_there_is_nothing_to_choose_the_tree_has_few_bins(
    columns: tuple[Column, ...], label: str
) -> None:
    schema = Schema(columns=columns, label=label)
    own = Marginals(schema=schema, tree=Structure.DEVIATIONS, epsilon=10.0)
    assert isinstance(own.mechanism, DeviationTree)
    model = own.fit(people(ill=2000, well=2000)[list(schema.names)], seed=1)
    assert model.tables.domain.bins == 4


def test_more_records_have_finer_columns() -> None:
    rng = np.random.default_rng(0)
    narrow = 0.53 + 0.004 * rng.standard_normal(8000)  # within one of 16 bins
    data = SCHEMA.canonical(
        pd.DataFrame({"x": narrow, "y": rng.random(8000), "pet": 0, "ill": ["no", "yes"] * 4000})
    )

    def spread(rows: int) -> float:
        """How wide the middle nine tenths of the synthetic values are."""
        drawn = generator(1.0).fit(data.iloc[:rows], seed=2).sample(2000, seed=1)["x"]
        return float(drawn.quantile(0.95) - drawn.quantile(0.05))

    assert spread(8000) < 1 / 8
    assert spread(8) > 1 / 8
