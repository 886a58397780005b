"""Noisy marginals: each step against a plain account of it, the claim against the noise."""

from __future__ import annotations

import math
from itertools import combinations
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pandas as pd
import pytest
from scipy.stats import chisquare, kstest

import dpaudit
from dpaudit.auditing.entry import audit_by_keywords
from dpaudit.errors import ClaimError, DataError, SettingsError
from dpaudit.model.claim import ConcentratedClaim, GaussianClaim, PrivacyClaim
from dpaudit.model.column import OTHER, Column, Kind
from dpaudit.model.encoding import values_of_table
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import Generator, Job, World, trains_many
from dpaudit.trace import trace
from dpaudit_generators.batches import Domain
from dpaudit_generators.marginals import Marginals, Structure
from dpaudit_generators.marginals.release import (
    ROOT,
    ChosenTree,
    PublicTree,
    TreeTables,
    choose_tree,
    distances,
    joint_counts,
    shares_along,
    total_of,
)

MIXED = Schema(
    columns=(
        Column(name="age", kind=Kind.INTEGER, lower=17, upper=90),
        Column(name="income", kind=Kind.CONTINUOUS, lower=-5.0, upper=1e5, missing=True),
        Column(name="children", kind=Kind.INTEGER, lower=0, upper=2, missing=True),
        Column(name="job", kind=Kind.CATEGORICAL, categories=("clerk", "cook", "miner")),
        Column(name="pet", kind=Kind.CATEGORICAL, categories=("cat",), missing=True),
        Column(name="paid", kind=Kind.BINARY, categories=(0, 1)),
    ),
    label="paid",
)
DATA = MIXED.canonical(
    pd.DataFrame(
        {
            "age": [20, 30, 40, 50, 90, 17],
            "income": [10.0, np.nan, 1e4, 5.0, 1e5, -5.0],
            "children": [0, 1, np.nan, 2, 2, 0],
            "job": ["cook", "cook", "miner", "clerk", "clerk", "cook"],
            "pet": ["cat", np.nan, np.nan, "cat", "cat", "cat"],
            "paid": [0, 1, 1, 1, 0, 1],
        }
    )
)
STRUCTURES = [structure for structure in Structure if structure is not Structure.AUTO]
BITS = Schema(
    columns=tuple(Column(name=name, kind=Kind.BINARY, categories=(0, 1)) for name in "abcd"),
    label="a",
)
PARENTS = (5, 0, 1, ROOT, 3, 3)


def tables(parents: tuple[int, ...] = PARENTS, bins: int = 4) -> TreeTables:
    return TreeTables(Domain(MIXED, bins), parents)


def cells_of(data: pd.DataFrame, bins: int = 4) -> np.ndarray[Any, np.dtype[np.int64]]:
    return Domain(MIXED, bins).cells(values_of_table(data, MIXED))


# cells


def test_cells_are_those_of_the_schema() -> None:
    assert Domain(MIXED, 4).sizes.tolist() == [4, 5, 4, 3, 2, 2]
    assert cells_of(DATA).tolist() == [
        [0, 0, 0, 1, 0, 0],
        [0, 4, 1, 1, 1, 1],
        [1, 0, 3, 2, 1, 1],
        [1, 0, 2, 0, 0, 1],
        [3, 3, 2, 0, 0, 0],
        [0, 0, 0, 1, 0, 1],
    ]
    assert Domain(MIXED, 4).names[2:5] == (
        (
            "children from 0 to 1",
            "children from 1 to 2",
            "children from 2 to 3",
            "children missing",
        ),
        ("job = clerk", "job = cook", "job = miner"),
        ("pet = cat", "pet missing"),
    )


def test_values_beyond_the_schema_are_at_its_edge_or_nowhere() -> None:
    odd = DATA.assign(age=[-9, 99, 40, 50, 90, 17], job=["pilot", *DATA["job"][1:]])
    odd["paid"] = odd["paid"].astype(object)
    odd.loc[2, "paid"] = np.nan
    cells = cells_of(odd)
    assert cells[:2, 0].tolist() == [0, 3]
    assert cells[:, 3].tolist() == [OTHER, 1, 2, 0, 0, 1]
    assert cells[2, 5] == OTHER


@pytest.mark.parametrize("bins", [1, 3, 4, 10])
def test_a_value_of_a_cell_is_in_that_cell(bins: int) -> None:
    domain, rng = Domain(MIXED, bins), np.random.default_rng(1)
    cells = np.floor(rng.random((500, 6)) * domain.sizes).astype(np.int64)
    places = np.where(rng.random((500, 6)) < 0.1, 1.0 - 1e-9, rng.random((500, 6)))
    values = domain.values(cells, places)
    assert domain.cells(values).tolist() == cells.tolist()
    numbers = values[:, 0]
    assert (numbers == np.rint(numbers)).all()
    assert (numbers.min(), numbers.max()) == (17, 90)


def test_whole_numbers_of_a_bin_are_equally_likely() -> None:
    domain = Domain(MIXED, 4)
    cells = np.zeros((6000, 6), dtype=np.int64)
    ages = domain.values(cells, np.random.default_rng(0).random(cells.shape))[:, 0]
    found, counts = np.unique(ages, return_counts=True)
    assert found.tolist() == list(range(17, 35))
    assert chisquare(counts).pvalue > 1e-4


# tables along a tree


def test_counts_are_those_of_pandas() -> None:
    own, cells = tables(), cells_of(DATA)
    counts = own.counts(cells).astype(np.float64)
    for column, parent in enumerate(PARENTS):
        expected = np.zeros_like(own.table(counts, column))
        for record in cells:
            expected[0 if parent == ROOT else record[parent], record[column]] += 1
        assert own.table(counts, column).tolist() == expected.tolist()
    assert len(own.names) == len(set(own.names)) == len(counts)
    assert own.names[own.starts[5]] == "job = clerk & paid = 0"


@pytest.mark.parametrize("parents", [PARENTS, (ROOT,) * 6, (5, 5, 5, 5, 5, ROOT)])
def test_a_record_changes_one_cell_of_each_table_by_one(parents: tuple[int, ...]) -> None:
    own, cells = tables(parents), cells_of(DATA)
    for record in range(len(cells)):
        change = own.counts(cells) - own.counts(np.delete(cells, record, axis=0))
        assert [int(own.table(change, column).sum()) for column in range(6)] == [1] * 6
        assert sorted(set(change.tolist())) == [0, 1]


def test_a_record_that_the_schema_has_no_place_for_counts_in_fewer_tables() -> None:
    odd = DATA.iloc[[0]].assign(job="pilot")
    assert tables().counts(cells_of(odd)).sum() == 3  # not job, nor its children


def test_drawing_follows_the_shares_along_the_tree() -> None:
    own, rng = tables(), np.random.default_rng(3)
    noisy = np.where(rng.random(own.starts[-1]) < 0.2, 0.0, rng.random(own.starts[-1]))
    shares = shares_along(own, noisy, np.ones(6))
    drawn = own.draw(shares, rng.random((30_000, 6)))
    for column, parent in enumerate(PARENTS):
        for row, share in enumerate(own.table(shares, column)):
            given = drawn if parent == ROOT else drawn[drawn[:, parent] == row]
            counts = np.bincount(given[:, column], minlength=len(share))
            assert (counts[share == 0] == 0).all()
            if len(given) and (share > 0).sum() > 1:
                expected = share[share > 0] * len(given)
                assert chisquare(counts[share > 0], expected, sum_check=False).pvalue > 1e-5


def test_the_largest_uniform_number_stays_in_its_row() -> None:
    own = tables()
    shares = shares_along(own, np.ones(own.starts[-1]), np.ones(6))
    drawn = own.draw(shares, np.full((3, 6), 1.0 - 2.0**-53))
    assert (drawn == own.domain.sizes - 1).all()


def test_shares_are_those_of_clipped_counts_with_the_roots_averaged() -> None:
    own = TreeTables(Domain(BITS, 4), (ROOT, 0, 0, 0))
    noisy = np.array(
        [3.0, 9.0, *[4.0, -1.0, -3.0, -2.0], *[1.0, 1.0, 2.0, 6.0], *[2.0, 2.0, 9.0, 1.0]]
    )
    shares = shares_along(own, noisy, np.ones(4))
    root = (np.array([3.0, 9.0]) + np.array([3 + 2 + 4, -5 + 8 + 10]) / 2) / 2.5
    assert shares[:2] == pytest.approx(root / root.sum())
    assert shares[2:6].tolist() == [1.0, 0.0, 1.0, 0.0]  # nothing left of a row: its column
    assert shares[6:].tolist() == [0.5, 0.5, 0.25, 0.75, 0.5, 0.5, 0.9, 0.1]
    assert shares_along(own, -noisy.clip(1), np.ones(4)).tolist() == [0.5] * 14
    assert total_of(noisy, np.diff(own.starts)) == pytest.approx((12 * 2 - 2 + 10 + 14) / (2 + 3))


# the choice of a tree


def _random_cells(n: int, seed: int = 0) -> np.ndarray[Any, np.dtype[np.int64]]:
    sizes = Domain(MIXED, 4).sizes
    return np.floor(np.random.default_rng(seed).random((n, 6)) ** 2 * sizes).astype(np.int64)


def test_joint_counts_are_those_of_each_pair() -> None:
    domain, cells = Domain(MIXED, 4), _random_cells(5000)
    cells[7, 3] = OTHER
    joint = joint_counts(domain, cells)
    starts = np.append(0, np.cumsum(domain.sizes))
    for one, other in combinations(range(6), 2):
        known = cells[(cells[:, one] >= 0) & (cells[:, other] >= 0)]
        expected = np.zeros((domain.sizes[one], domain.sizes[other]))
        np.add.at(expected, (known[:, one], known[:, other]), 1)
        block = joint[starts[one] : starts[one + 1], starts[other] : starts[other + 1]]
        assert block.tolist() == expected.tolist()


def test_a_record_changes_a_distance_by_at_most_one() -> None:
    domain, cells = Domain(MIXED, 4), _random_cells(40)
    alone = np.random.default_rng(1).dirichlet(np.ones(domain.sizes.sum()))
    own = distances(domain, joint_counts(domain, cells), alone, 37.5)
    largest = 0.0
    for record in range(40):
        less = joint_counts(domain, np.delete(cells, record, axis=0))
        largest = max(largest, np.abs(distances(domain, less, alone, 37.5) - own).max())
    assert 0.9 < largest <= 1.0 + 1e-9


def test_a_tree_is_chosen_with_the_probabilities_of_the_exponential_mechanism() -> None:
    scores = np.array([[0.0, 2.0, 1.0], [2.0, 0.0, 0.5], [1.0, 0.5, 0.0]])
    epsilon, draws = 1.5, 4000
    pairs = {(0, 1): 2.0, (0, 2): 1.0, (1, 2): 0.5}
    weight = {pair: math.exp(epsilon * score / 2) for pair, score in pairs.items()}
    expected = {}
    for first, second in ((a, b) for a in pairs for b in pairs if a != b):
        chance = weight[first] / sum(weight.values())
        chance *= weight[second] / (sum(weight.values()) - weight[first])
        tree = frozenset((first, second))
        expected[tree] = expected.get(tree, 0.0) + chance
    rng = np.random.default_rng(5)
    found = dict.fromkeys(expected, 0)
    for _ in range(draws):
        parents = choose_tree(scores, epsilon=epsilon, root=1, rng=rng)
        assert parents[1] == ROOT
        edges = [tuple(sorted((child, above))) for child, above in enumerate(parents) if above >= 0]
        found[frozenset(edges)] += 1
    assert chisquare(list(found.values()), [draws * p for p in expected.values()]).pvalue > 1e-4


def test_without_noise_the_tree_is_the_heaviest() -> None:
    scores = np.zeros((5, 5))
    for one, other, score in ((0, 4, 9), (4, 2, 8), (0, 2, 7), (1, 3, 6), (3, 2, 5), (0, 1, 4)):
        scores[one, other] = scores[other, one] = score
    rng = np.random.default_rng(0)
    assert choose_tree(scores, epsilon=1e4, root=4, rng=rng) == (4, 3, 4, 2, ROOT)


# the claim


@pytest.mark.parametrize(
    "structure", [pytest.param(Structure.LABEL, marks=pytest.mark.ci), Structure.INDEPENDENT]
)
def test_the_cells_of_a_record_are_a_normal_score_shifted_by_mu(structure: Structure) -> None:
    mu = 0.7
    generator = Marginals(schema=MIXED, tree=structure, mu=mu)
    mechanism = generator.mechanism
    assert isinstance(mechanism, PublicTree)
    own = mechanism.tables.places(cells_of(DATA.iloc[[4]]))[0]
    scores = {}
    for world, dropped in ((World.IN, ()), (World.OUT, (4,))):
        jobs = [Job(world, seed, dropped, seed + 9000 * len(dropped)) for seed in range(3000)]
        batch = generator.fit_many(DATA, jobs)
        true = mechanism.tables.counts(cells_of(DATA.drop(index=4)))[own].sum()
        scores[world] = np.array([one.numbers[own].sum() - true for one in batch.models]) * mu / 6
    assert kstest(scores[World.OUT], "norm").pvalue > 1e-4
    assert kstest(scores[World.IN] - mu, "norm").pvalue > 1e-4
    assert kstest(scores[World.IN] - mu / 2, "norm").pvalue < 1e-4  # this test can fail


def test_every_noisy_count_has_its_own_noise_of_one_scale() -> None:
    generator = Marginals(schema=MIXED, mu=0.5)
    jobs = [Job(World.IN, seed, (), seed) for seed in range(2000)]
    numbers = np.array([one.numbers for one in generator.fit_many(DATA, jobs).models])
    assert numbers.std(axis=0) == pytest.approx(math.sqrt(6) / 0.5, rel=0.1)
    correlations = np.corrcoef(numbers.T)[np.triu_indices(numbers.shape[1], 1)]
    assert np.abs(correlations).max() < 0.12


def test_the_steps_of_a_chosen_tree_cost_rho_together() -> None:
    mechanism = Marginals(schema=MIXED, tree=Structure.CHOSEN, rho=0.3).mechanism
    assert isinstance(mechanism, ChosenTree)
    alone, pairs = mechanism.scales
    steps = [6 / (2 * alone**2), 5 * mechanism.edge_epsilon**2 / 8, 5 / (2 * pairs**2)]
    assert steps == pytest.approx([0.1] * 3)


def test_what_a_chosen_tree_releases_is_its_tables_and_no_others() -> None:
    generator = Marginals(schema=MIXED, tree=Structure.CHOSEN, rho=5.0)
    model = generator.fit(DATA, seed=1)
    shown = dict(zip(generator.released_facts, model.released(), strict=True))
    assert len(shown) == len(generator.released_facts)
    names = MIXED.names
    for one, other in combinations(range(6), 2):
        facts = [
            shown[f"{a} & {b}"]
            for a in Domain(MIXED, 4).names[one]
            for b in Domain(MIXED, 4).names[other]
        ]
        joined = model.tree[names[one]] == names[other] or model.tree[names[other]] == names[one]
        assert any(facts) == joined
    assert [name for name, parent in model.tree.items() if parent is None] == ["paid"]


def test_with_little_noise_what_is_released_are_the_counts() -> None:
    model = Marginals(schema=MIXED, tree=Structure.CHOSEN, rho=1e12).fit(DATA, seed=1)
    facts = Marginals(schema=MIXED, tree=Structure.CHOSEN).released_facts
    shown = dict(zip(facts, np.rint(model.released()), strict=True))
    assert shown["job = cook"] == 3
    assert shown["age from 17 to 35"] == 3
    joint = {name: count for name, count in shown.items() if " & " in name and count}
    assert sum(joint.values()) == 5 * len(DATA)
    for name, count in joint.items():
        assert count <= min(shown[part] for part in name.split(" & "))


@pytest.mark.parametrize("structure", [Structure.LABEL, Structure.INDEPENDENT])
def test_records_are_drawn_from_what_is_released_alone(structure: Structure) -> None:
    generator = Marginals(schema=MIXED, tree=structure)
    mechanism, model = generator.mechanism, generator.fit(DATA, seed=4)
    assert isinstance(mechanism, PublicTree)
    scales = np.full(6, mechanism.scale)
    assert np.array_equal(model.shares, shares_along(model.tables, model.numbers, scales))
    assert model.tables == mechanism.tables


@pytest.mark.parametrize(
    ("budget", "claim", "mu"),
    [
        ({}, PrivacyClaim(epsilon=1.0, delta=1e-5), 0.268),
        ({"epsilon": 10.0, "delta": 1e-5}, PrivacyClaim(epsilon=10.0, delta=1e-5), 2.0003),
        ({"mu": 0.4}, GaussianClaim(mu=0.4), 0.4),
        ({"rho": 0.5}, ConcentratedClaim(rho=0.5), 1.0),
    ],
)
def test_the_claim_is_the_budget_in_its_currency(
    budget: dict[str, float], claim: Any, mu: float
) -> None:
    generator = Marginals(schema=MIXED, **budget)
    assert type(generator.claim) is type(claim)
    assert generator.claim.as_settings == claim.as_settings
    assert generator.claim.source.startswith("exact")
    assert isinstance(generator.mechanism, PublicTree)
    assert generator.mechanism.mu == pytest.approx(mu, rel=1e-3)


def test_a_model_says_where_its_noise_came_from() -> None:
    generator = Marginals(schema=MIXED)
    assert "from a seed" in generator.fit(DATA, seed=1).claim.source
    model = generator.fit(DATA, seed=None)
    assert "operating system" in model.claim.source
    assert not np.array_equal(model.numbers, generator.fit(DATA, seed=None).numbers)
    assert not model.sample(9, seed=None).equals(model.sample(9, seed=None))


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"epsilon": 0.0}, ClaimError, "epsilon"),
        ({"mu": -1.0}, ClaimError, "mu"),
        ({"rho": 0.0}, ClaimError, "rho"),
        ({"delta": 0.0}, SettingsError, "delta"),
        ({"mu": 1.0, "epsilon": 1.0}, SettingsError, "given twice"),
        ({"mu": 1.0, "rho": 1.0}, SettingsError, "given twice"),
        ({"mu": 1.0, "tree": "chosen"}, SettingsError, "mu is for a public tree"),
        ({"bins": 0}, SettingsError, "`bins` must be a whole number .* got 0"),
        ({"bins": 2.5}, SettingsError, "`bins` must be a whole number .* got 2.5"),
        ({"bins": "abc"}, SettingsError, "`bins` must be a whole number .* got 'abc'"),
        ({"bins": 5000, "tree": "chosen"}, SettingsError, "at most 4096"),
        ({"tree": "star"}, SettingsError, "use auto, label, deviations, chosen, independent"),
    ],
)
def test_senseless_settings_are_refused(
    change: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        Marginals(schema=MIXED, **change)


def test_the_structure_follows_from_the_schema() -> None:
    assert Marginals(schema=MIXED).structure is Structure.LABEL
    unlabelled = Schema(columns=MIXED.columns)
    assert Marginals(schema=unlabelled).structure is Structure.CHOSEN
    assert Marginals(schema=Schema(columns=MIXED.columns[:1])).structure is Structure.INDEPENDENT
    with pytest.raises(SettingsError, match="names a label column"):
        Marginals(schema=unlabelled, tree=Structure.LABEL)


# the generator


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("n", [0, 1, 200])
def test_outputs_fit_a_mixed_schema(structure: Structure, n: int) -> None:
    generator = Marginals(schema=MIXED, tree=structure)
    assert isinstance(generator, Generator)
    generator.check(DATA)
    for data in (DATA, DATA.iloc[:0], DATA.assign(job="pilot", age=400)):
        table = generator.fit(data, seed=1).sample(n, seed=2)
        assert len(table) == n
        assert MIXED.problems(table) == []
        assert list(table.dtypes) == list(DATA.dtypes)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_models_fitted_together_are_those_fitted_alone(structure: Structure) -> None:
    generator = Marginals(schema=MIXED, tree=structure)
    assert trains_many(generator)
    drops = [(), (0,), (3,), (1, 4), tuple(range(6))]
    jobs = [Job(World.OUT, number, drop, 50 + number) for number, drop in enumerate(drops)]
    assert len({generator.batch_key(job) for job in jobs}) == 1
    copy = cloudpickle.loads(cloudpickle.dumps(generator))
    batch = copy.fit_many(DATA, jobs)
    values = batch.sample_many(40, range(5))
    for number, job in enumerate(jobs):
        alone = generator.fit(DATA.drop(index=list(job.dropped_rows)), seed=job.seed)
        assert np.array_equal(alone.released(), batch[number].released())
        assert alone.tree == batch[number].tree
        table = alone.sample(40, seed=number)
        assert np.array_equal(values_of_table(table, MIXED), values[number], equal_nan=True)


def test_other_columns_are_refused() -> None:
    with pytest.raises(DataError, match="column 'age' is missing"):
        Marginals(schema=MIXED).fit(DATA.drop(columns="age"), seed=1)
    with pytest.raises(DataError, match="outside the bounds"):
        Marginals(schema=MIXED).check(DATA.assign(age=400))


@pytest.mark.parametrize("structure", STRUCTURES[:3])
def test_with_a_large_budget_pairs_are_as_in_the_table(structure: Structure) -> None:
    rng = np.random.default_rng(8)
    a = rng.random(4000) < 0.3
    b = a ^ (rng.random(4000) < 0.1)
    c = b ^ (rng.random(4000) < 0.2)
    table = pd.DataFrame({"a": a, "b": b, "c": c, "d": rng.random(4000) < 0.5}).astype(int)
    drawn = Marginals(schema=BITS, tree=structure, epsilon=20.0).fit(table, seed=1)
    found = drawn.sample(20_000, seed=2).corr()
    pairs = [("a", "b"), ("a", "c"), ("a", "d")]
    pairs += [("b", "c")] if structure is Structure.CHOSEN else []
    for pair in pairs:
        assert found.loc[pair] == pytest.approx(table.corr().loc[pair], abs=0.04)
    if structure is Structure.CHOSEN:
        assert drawn.tree["c"] == "b"


def test_a_trace_shows_public_bounds() -> None:
    report = trace(Marginals(schema=MIXED), pd.concat([DATA] * 5, ignore_index=True), schema=MIXED)
    assert report.findings == ()
    assert "bounds-from-data" in report.checked


# audits


@pytest.mark.parametrize("structure", [Structure.LABEL, Structure.CHOSEN, Structure.INDEPENDENT])
def test_the_effect_of_a_record_is_what_it_adds_to_columns_and_public_pairs(
    structure: Structure,
) -> None:
    generator = Marginals(schema=MIXED, tree=structure)
    effect = generator.released_effect(DATA.iloc[[1]])
    facts = dict(zip(generator.released_facts, effect, strict=True))
    pairs = structure is Structure.LABEL
    assert sum(facts.values()) == 6
    assert facts["paid = 1"] == facts["paid = 1 & pet missing" if pairs else "pet missing"] == 1


@pytest.mark.ci
def test_among_many_counts_the_effect_is_what_proves_mu(tmp_path: Path) -> None:
    columns = tuple(Column(name=f"x{i}", kind=Kind.CONTINUOUS, lower=0, upper=1) for i in range(40))
    schema = Schema(columns=columns)
    generator = Marginals(schema=schema, tree=Structure.INDEPENDENT, mu=2.0)
    table = schema.canonical(
        pd.DataFrame(np.random.default_rng(0).random((60, 40))).set_axis(schema.names, axis=1)
    )
    result = audit_by_keywords(
        generator,
        table,
        schema=schema,
        target="row:7",
        access="released",
        attacks=("released",),
        shadow_models=200,
        probe=False,
        out=tmp_path / "run",
        jobs=1,
    )
    assert result.verdict is dpaudit.Verdict.CONSISTENT
    assert result.proved is not None
    assert result.proved > 1.0
    assert result.leaks[0].feature == "sum weighted by the target's effect"


def _audited(out: Path, **settings: Any) -> dpaudit.AuditResult:
    return audit_by_keywords(
        Marginals(schema=BITS, mu=2.0),
        schema=BITS,
        worst_case="opposite",
        access="released",
        attacks=("released",),
        shadow_models=200,
        probe=False,
        out=out,
        jobs=1,
        **settings,
    )


@pytest.mark.ci
def test_an_audit_of_the_released_counts_proves_most_of_mu(tmp_path: Path) -> None:
    result = _audited(tmp_path / "run")
    assert result.verdict is dpaudit.Verdict.CONSISTENT
    assert result.claim.as_settings == {"mu": 2.0}
    assert result.proved is not None
    assert 1.0 < result.proved <= 2.0


@pytest.mark.ci
def test_an_audit_of_half_the_true_mu_is_a_violation(tmp_path: Path) -> None:
    assert _audited(tmp_path / "run", mu=1.0).verdict is dpaudit.Verdict.VIOLATION
