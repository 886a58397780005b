"""Deviations of classes: each step against a plain account, the claim against the noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

from dpaudit.errors import SettingsError
from dpaudit.model.claim import GaussianClaim
from dpaudit.model.column import OTHER, Column, Kind
from dpaudit.model.encoding import values_of_table
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FloatArray, IntArray, Job, World
from dpaudit_generators.batches import Domain
from dpaudit_generators.marginals import Marginals, Structure
from dpaudit_generators.marginals.release import (
    Centre,
    DeviationTree,
    TreeTables,
    joint_counts,
    onto_simplex,
)

SCHEMA = Schema(
    columns=(
        Column(name="age", kind=Kind.INTEGER, lower=17, upper=90),
        Column(name="income", kind=Kind.CONTINUOUS, lower=0.0, upper=1e5, missing=True),
        Column(name="paid", kind=Kind.CATEGORICAL, categories=("no", "late", "yes"), missing=True),
        Column(name="pet", kind=Kind.BINARY, categories=(0, 1)),
    ),
    label="paid",
)
TREE = DeviationTree(Domain(SCHEMA, 4), 0.8, 2)
SIZES = TREE.domain.sizes


def cells(n: int, seed: int = 0) -> IntArray:
    """Cells of records, rare ones among them, and some that the schema has no place for."""
    rng = np.random.default_rng(seed)
    found = np.floor(rng.random((n, len(SIZES))) ** 2 * SIZES).astype(np.int64)
    return np.where(rng.random(found.shape) < 0.05, OTHER, found)


@dataclass(frozen=True)
class InCells:
    """Records whose cells are given."""

    given: IntArray

    def cells(self, domain: Domain) -> IntArray:
        return self.given

    def counts(self, tables: TreeTables) -> IntArray:
        return tables.counts(self.given)

    def joint(self, domain: Domain) -> FloatArray:
        return joint_counts(domain, self.given)


def centre(seed: int, concentration: float = 1.0) -> Centre:
    rng = np.random.default_rng(seed)
    own = [rng.dirichlet(np.full(SIZES[column], concentration)) for column in TREE.others]
    return Centre(rng.dirichlet(np.full(SIZES[2], concentration)), np.concatenate(own), 40.0)


def plainly(records: IntArray, around: Centre) -> FloatArray:
    """The sum of what records deviate by, one after the other."""
    radius = TREE.deviations(records, around).radius
    total = np.zeros((SIZES[2], TREE.starts[-1]))
    for record in records:
        if record[2] < 0:
            continue
        label = np.eye(SIZES[2])[record[2]] - around.classes
        others = np.zeros(TREE.starts[-1])
        for place, column in enumerate(TREE.others):
            if record[column] >= 0:
                own = slice(TREE.starts[place], TREE.starts[place + 1])
                others[own] = np.eye(SIZES[column])[record[column]] - around.cells[own]
        deviation = np.outer(label, others)
        total += deviation * min(1.0, radius / max(np.linalg.norm(deviation), 1e-300))
    return total


@pytest.mark.parametrize("seed", range(4))
def test_deviations_are_what_each_record_adds(seed: int) -> None:
    records, around = cells(60, seed), centre(seed)
    np.testing.assert_allclose(
        TREE.deviations(records, around).sums, plainly(records, around), atol=1e-12
    )


@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 12),
    concentration=st.sampled_from([1e-3, 0.1, 1.0, 100.0]),
)
def test_a_record_moves_the_deviations_by_at_most_the_radius(
    seed: int, n: int, concentration: float
) -> None:
    records, around = cells(n, seed), centre(seed, concentration)
    sums, radius = TREE.deviations(records, around)
    for removed in range(n):
        less = TREE.deviations(np.delete(records, removed, axis=0), around)
        assert less.radius == radius  # it depends on no record
        assert np.linalg.norm(sums - less.sums) <= radius * (1.0 + 1e-12) + 1e-12


def test_a_record_that_is_far_from_all_others_moves_them_by_the_radius() -> None:
    far = TREE.deviations(np.array([[3, 4, 3, 1]]), centre(1))
    assert np.linalg.norm(far.sums) == pytest.approx(far.radius)


def test_under_certain_cells_the_radius_is_that_of_one_column() -> None:
    sure = np.zeros(TREE.starts[-1])
    sure[TREE.starts[:-1]] = 1.0
    around = Centre(np.array([0.5, 0.5, 0.0, 0.0]), sure, 40.0)
    found = TREE.deviations(np.array([[3, 4, 3, 1]]), around)
    assert found.radius == pytest.approx(math.sqrt(1.5))
    assert np.linalg.norm(found.sums) == pytest.approx(found.radius)


def test_the_effect_of_a_record_is_exact_where_cells_are_equally_frequent() -> None:
    equal = np.concatenate([np.full(size, 1.0 / size) for size in SIZES[TREE.others]])
    around = Centre(np.full(4, 0.25), equal, 40.0)
    own, rest = cells(60, 1)[:1], cells(60, 2)
    before = TREE.in_units(TREE.alone(rest) * 1.0, *TREE.deviations(rest, around))
    both = np.vstack([own, rest])
    after = TREE.in_units(TREE.alone(both) * 1.0, *TREE.deviations(both, around))
    effect = TREE.effect(InCells(own))
    np.testing.assert_allclose(effect, after - before, atol=1e-12)
    assert np.linalg.norm(effect) == pytest.approx(TREE.mu)


def test_both_steps_cost_mu_together() -> None:
    counts = 1.0 / TREE.label_scale**2 + 3.0 / TREE.columns_scale**2
    assert counts + TREE.deviations_mu**2 == pytest.approx(0.8**2)


def released(generator: Marginals, data: pd.DataFrame, dropped: tuple[int, ...]) -> FloatArray:
    first = 9000 * len(dropped)
    jobs = [Job(World.OUT, number, dropped, first + number) for number in range(1000)]
    return np.array([one.numbers for one in generator.fit_many(data, jobs).models])


def people(n: int) -> pd.DataFrame:
    rng = np.random.default_rng(n)
    return SCHEMA.canonical(
        pd.DataFrame(
            {
                "age": rng.integers(17, 40, n),
                "income": rng.random(n) * 2e4,
                "paid": rng.choice(["no", "yes"], n, p=[0.9, 0.1]),
                "pet": rng.integers(0, 2, n),
            }
        )
    )


def test_every_number_has_noise_of_its_own_of_one_unit() -> None:
    empty = people(0)
    numbers = released(
        Marginals(schema=SCHEMA, tree=Structure.DEVIATIONS, mu=0.5, bins=4), empty, ()
    )
    assert numbers.shape[1] == len(set(TREE.names)) == 4 + 11 + 4 * 11
    assert np.abs(numbers.mean(axis=0)).max() < 5 / math.sqrt(1000)
    assert numbers.std(axis=0) == pytest.approx(1.0, rel=0.1)
    correlations = np.corrcoef(numbers.T)[np.triu_indices(numbers.shape[1], 1)]
    assert np.abs(correlations).max() < 0.17


def scores(mechanism: DeviationTree, numbers: FloatArray, rest: IntArray, own: IntArray) -> Any:
    """The likelihood-ratio statistic of a record, and by how much the record shifts it.

    Given what the first step said, noise is normal and the record's effect on all numbers is known:
    their product, over the length of the effect, is a standard normal number without the record.
    """
    alone = mechanism.alone(own).astype(np.float64), mechanism.alone(rest).astype(np.float64)
    found, lengths = [], []
    for row in numbers:
        around = mechanism.centre(row[: len(alone[0])] * mechanism.alone_scales)
        effect = mechanism.in_units(alone[0], *mechanism.deviations(own, around))
        expected = mechanism.in_units(alone[1], *mechanism.deviations(rest, around))
        lengths.append(np.linalg.norm(effect))
        found.append((row - expected) @ effect / lengths[-1])
    return np.array(found), np.array(lengths)


def test_a_record_shifts_the_best_statistic_by_mu_and_no_more() -> None:
    mu, data = 0.7, people(60)
    far = pd.DataFrame({"age": [89], "income": [9e4], "paid": ["late"], "pet": [1]})
    table = SCHEMA.canonical(pd.concat([far, data], ignore_index=True))
    generator = Marginals(schema=SCHEMA, tree=Structure.DEVIATIONS, mu=mu, bins=4)
    mechanism = generator.mechanism
    assert isinstance(mechanism, DeviationTree)
    of_all = mechanism.domain.cells(values_of_table(table, SCHEMA))
    rest, own = of_all[1:], of_all[:1]
    without, _ = scores(mechanism, released(generator, table, (0,)), rest, own)
    with_it, lengths = scores(mechanism, released(generator, table, ()), rest, own)
    assert lengths.max() <= mu * (1.0 + 1e-9)
    assert np.median(lengths) > 0.9 * mu  # so the claim is nearly exact
    assert kstest(without, "norm").pvalue > 1e-4
    assert kstest(with_it - lengths, "norm").pvalue > 1e-4
    assert kstest(with_it - lengths / 2, "norm").pvalue < 1e-4  # this test can fail


@given(st.lists(st.lists(st.floats(-50.0, 50.0), min_size=1, max_size=6), min_size=1, max_size=5))
def test_the_nearest_shares_are_nearest(rows: list[list[float]]) -> None:
    widths = np.array([len(row) for row in rows])
    flat = np.array([value for row in rows for value in row])
    shares = np.split(onto_simplex(flat, widths), np.cumsum(widths)[:-1])
    for row, own in zip(rows, shares, strict=True):
        assert own.min() >= 0.0
        assert own.sum() == pytest.approx(1.0)
        shift = np.array(row) - own  # equal where a share is above 0, and nowhere larger
        assert shift[own > 0] == pytest.approx(shift.max(), abs=1e-9)


def test_the_nearest_shares_of_a_known_point() -> None:
    found = onto_simplex(np.array([0.5, 0.9, -1.0, 7.0, 0.2, 0.8]), np.array([3, 1, 2]))
    assert found == pytest.approx([0.3, 0.7, 0.0, 1.0, 0.2, 0.8])


def test_with_a_large_budget_the_rows_are_those_of_the_table() -> None:
    data = people(4000)
    model = Marginals(schema=SCHEMA, tree=Structure.DEVIATIONS, mu=300.0, bins=4).fit(data, seed=1)
    of_all = model.tables.domain.cells(values_of_table(data, SCHEMA))
    for column in (0, 1, 3):
        rows = model.tables.table(model.shares, column)
        for label in (0, 2):
            own = np.bincount(of_all[of_all[:, 2] == label, column], minlength=SIZES[column])
            assert rows[label] == pytest.approx(own / own.sum(), abs=0.02)


def test_a_rare_class_is_measured_with_less_noise_than_by_counts_of_pairs() -> None:
    rng = np.random.default_rng(4)
    label = rng.random(700) < 0.07
    columns = {f"x{number}": rng.random(700) < np.where(label, 0.3, 0.03) for number in range(30)}
    schema = Schema(
        columns=tuple(
            Column(name=name, kind=Kind.BINARY, categories=(0, 1)) for name in (*columns, "label")
        ),
        label="label",
    )
    data = schema.canonical(pd.DataFrame(columns | {"label": label}).astype(int))

    def error(tree: Structure) -> float:
        """Of the rows of the rare class, over seeds: how far from .3 of ones."""
        models = [Marginals(schema=schema, tree=tree).fit(data, seed=seed) for seed in range(20)]
        rows = [
            one.tables.table(one.shares, column)[1, 1] for one in models for column in range(30)
        ]
        return float(np.sqrt(np.mean((np.array(rows) - 0.3) ** 2)))

    assert error(Structure.DEVIATIONS) < 0.75 * error(Structure.LABEL)


def test_what_it_needs_is_said() -> None:
    alone = Schema(columns=SCHEMA.columns[2:3], label="paid")
    with pytest.raises(
        SettingsError, match="needs a column in addition to the label: use tree=label"
    ):
        Marginals(schema=alone, tree=Structure.DEVIATIONS)
    with pytest.raises(SettingsError, match=r"tree=deviations needs a schema that names a label"):
        Marginals(schema=Schema(columns=SCHEMA.columns), tree=Structure.DEVIATIONS)


def test_the_claim_is_proved() -> None:
    generator = Marginals(schema=SCHEMA, tree=Structure.DEVIATIONS, mu=0.4)
    assert generator.claim.as_settings == GaussianClaim(mu=0.4).as_settings
    assert generator.claim.source.startswith("proved")
