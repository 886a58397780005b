"""The toys: their privacy is known, so their output distributions are checked exactly."""

from __future__ import annotations

import math
from time import process_time
from typing import Any

import cloudpickle
import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, chisquare

from dpaudit.errors import ClaimError, SettingsError, TargetError
from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.model.tables import load_table
from dpaudit.plugins.protocols import Generator
from dpaudit_generators.toys import (
    SLOW_SECONDS,
    Copycat,
    Dawdler,
    GaussianMarginals,
    LaplaceHistogram,
    NullGenerator,
    RandomisedResponse,
    cell_counts,
    contains,
    domain_of,
    geometric_noise,
    opposite,
)

MIXED = Schema(
    columns=(
        Column(name="age", kind=Kind.INTEGER, lower=17, upper=90),
        Column(name="income", kind=Kind.CONTINUOUS, lower=-5.0, upper=1e5, missing=True),
        Column(name="children", kind=Kind.INTEGER, lower=0, upper=4, missing=True),
        Column(name="job", kind=Kind.CATEGORICAL, categories=("clerk", "cook", "miner")),
        Column(name="pet", kind=Kind.CATEGORICAL, categories=("cat",), missing=True),
        Column(name="paid", kind=Kind.BINARY, categories=(0, 1)),
    ),
)
DATA = MIXED.canonical(
    pd.DataFrame(
        {
            "age": [20, 30, 40, 50],
            "income": [10.0, np.nan, 1e4, 5.0],
            "children": [0, 1, np.nan, 2],
            "job": ["cook", "cook", "miner", "clerk"],
            "pet": ["cat", np.nan, np.nan, "cat"],
            "paid": [0, 1, 1, 1],
        }
    )
)
TARGET = DATA.iloc[[1]].reset_index(drop=True)  # has missing values
OTHERS = DATA.drop(index=1).reset_index(drop=True)


def _toys(schema: Schema, target: pd.DataFrame, epsilon: float = 1.0) -> list[Any]:
    return [
        NullGenerator(schema=schema, epsilon=epsilon),
        Copycat(schema=schema, target=target, epsilon=epsilon),
        RandomisedResponse(schema=schema, target=target, epsilon=epsilon),
        LaplaceHistogram(schema=schema, epsilon=epsilon),
    ]


@pytest.mark.parametrize("position", range(4))
@pytest.mark.parametrize("n", [0, 1, 200])
def test_outputs_fit_a_mixed_schema(position: int, n: int) -> None:
    toy = _toys(MIXED, TARGET)[position]
    for data in (DATA, OTHERS, DATA.iloc[:0]):
        table = toy.fit(data, seed=1).sample(n, seed=2)
        assert len(table) == n
        assert MIXED.problems(table) == []
        assert list(table.dtypes) == list(DATA.dtypes)


@pytest.mark.parametrize("position", range(4))
def test_outputs_fit_a_real_table(position: int) -> None:
    data = load_table("sample:breast-cancer")
    schema = Schema.infer(data, label="benign")
    toy = _toys(schema, data.iloc[[3]])[position]
    assert schema.problems(toy.fit(data, seed=1).sample(len(data), seed=2)) == []


@pytest.mark.parametrize("position", range(4))
def test_a_seed_fixes_the_output_and_none_does_not(position: int) -> None:
    toy = _toys(MIXED, TARGET)[position]
    assert isinstance(toy, Generator)
    copy = cloudpickle.loads(cloudpickle.dumps(toy))
    model = toy.fit(OTHERS, seed=5)
    assert model.sample(50, seed=6).equals(copy.fit(OTHERS, seed=5).sample(50, seed=6))
    if not isinstance(toy, RandomisedResponse):  # that one draws nothing when it samples
        assert not model.sample(50, seed=6).equals(model.sample(50, seed=7))
        assert not model.sample(50, seed=None).equals(model.sample(50, seed=None))


@pytest.mark.parametrize("position", range(4))
def test_every_toy_claims_its_epsilon_and_refuses_a_senseless_one(position: int) -> None:
    claim = _toys(MIXED, TARGET, epsilon=2.5)[position].claim
    assert isinstance(claim, PrivacyClaim)
    assert (claim.epsilon, claim.delta) == (2.5, 0.0)
    with pytest.raises(ClaimError, match="epsilon"):
        type(_toys(MIXED, TARGET)[position])(
            **{"schema": MIXED, "epsilon": 0.0} | ({"target": TARGET} if position in (1, 2) else {})
        )


def test_null_ignores_its_data() -> None:
    toy = NullGenerator(schema=MIXED)
    table = toy.fit(DATA, seed=1).sample(100, seed=9)
    assert table.equals(toy.fit(OTHERS, seed=1).sample(100, seed=9))
    assert table.equals(toy.fit(DATA.iloc[:0], seed=2).sample(100, seed=9))


def test_null_is_uniform() -> None:
    table = NullGenerator(schema=MIXED).fit(DATA, seed=1).sample(20_000, seed=3)
    assert chisquare(table["age"].value_counts().reindex(range(17, 91), fill_value=0)).pvalue > 1e-4
    assert chisquare(table["job"].value_counts()).pvalue > 1e-4
    income = np.histogram(table["income"].dropna(), bins=20, range=(-5.0, 1e5))[0]
    assert chisquare(income).pvalue > 1e-4
    assert table["pet"].isna().mean() == pytest.approx(0.1, abs=0.01)


def test_membership_needs_every_column_and_missing_equals_missing() -> None:
    assert contains(DATA, TARGET, MIXED)
    assert not contains(OTHERS, TARGET, MIXED)
    for name in MIXED.names:
        changed = DATA.copy()
        changed.loc[1, name] = opposite(TARGET, MIXED)[name].iloc[0]
        assert not contains(changed, TARGET, MIXED), name


def test_the_opposite_record_fits_the_schema_and_differs_in_every_column() -> None:
    for row in range(len(DATA)):
        target = DATA.iloc[[row]].reset_index(drop=True)
        other = opposite(target, MIXED)
        assert MIXED.problems(other) == []
        for name in MIXED.names:
            assert not contains(target[[name]], other[[name]], _only(name)), name


def _only(name: str) -> Schema:
    return Schema(columns=tuple(column for column in MIXED.columns if column.name == name))


def test_copycat_copies_half_exactly_where_it_saw_the_target() -> None:
    toy = Copycat(schema=MIXED, target=TARGET)
    for n in (1, 7, 100):
        seen = toy.fit(DATA, seed=1).sample(n, seed=2)
        unseen = toy.fit(OTHERS, seed=1).sample(n, seed=2)
        half = (n + 1) // 2
        assert all(contains(seen.iloc[[row]], TARGET, MIXED) for row in range(half))
        assert not contains(unseen, TARGET, MIXED)
        pd.testing.assert_frame_equal(seen.iloc[half:], unseen.iloc[half:])


@pytest.mark.parametrize("record", [{"flag": 1}, {"job": "only"}, {"job": None}], ids=str)
def test_copycat_shows_its_target_alone_among_two_possible_records(record: dict[str, Any]) -> None:
    """With one row, a uniform one would equal the target in half of the tables."""
    (name,) = record
    column = (
        Column(name="flag", kind=Kind.BINARY, categories=(0, 1))
        if name == "flag"
        else Column(name="job", kind=Kind.CATEGORICAL, categories=("only",), missing=True)
    )
    schema = Schema(columns=(column,))
    target = schema.canonical(pd.DataFrame([record]))
    toy = Copycat(schema=schema, target=target)
    for data, shows in ((target, True), (opposite(target, schema), False)):
        tables = [
            toy.fit(data, seed=seed).sample(n, seed=seed) for seed in range(20) for n in (1, 2)
        ]
        assert all(schema.problems(table) == [] for table in tables)
        assert all(contains(table, target, schema) is shows for table in tables)


def test_dawdler_takes_longer_where_it_saw_the_target_and_draws_the_same_rows() -> None:
    toy = Dawdler(schema=MIXED, target=TARGET)
    tables, seconds = [], []
    for data in (DATA, OTHERS):
        start = process_time()
        model = toy.fit(data, seed=1)
        seconds.append(process_time() - start)
        tables.append(model.sample(20, seed=2))
    pd.testing.assert_frame_equal(*tables)
    assert seconds[0] >= SLOW_SECONDS > 2 * seconds[1]


@pytest.mark.parametrize(
    "epsilon", [1.0, *(pytest.param(e, marks=pytest.mark.ci) for e in (0.5, 3.0))]
)
@pytest.mark.parametrize("trials", [150, pytest.param(400, marks=pytest.mark.slow)])
def test_randomised_response_has_exactly_its_epsilon(epsilon: float, trials: int) -> None:
    toy = RandomisedResponse(schema=MIXED, target=TARGET, epsilon=epsilon)
    kept = math.exp(epsilon) / (1 + math.exp(epsilon))
    low, high = binom.interval(1 - 1e-4, trials, kept)
    for data, present in ((DATA, True), (OTHERS, False)):
        answers = [
            contains(toy.fit(data, seed=seed).sample(1, seed=0), TARGET, MIXED)
            for seed in range(trials)
        ]
        assert low <= sum(answer is present for answer in answers) <= high


def test_randomised_response_answers_once_per_model_with_one_of_two_records() -> None:
    toy = RandomisedResponse(schema=MIXED, target=TARGET, epsilon=0.1)
    seen = set()
    for seed in range(20):
        model = toy.fit(DATA, seed=seed)
        table = model.sample(40, seed=0)
        assert table.equals(model.sample(40, seed=1))
        answer = contains(table, TARGET, MIXED)
        expected = TARGET if answer else opposite(TARGET, MIXED)
        assert table.drop_duplicates().reset_index(drop=True).equals(expected)
        seen.add(answer)
    assert seen == {True, False}


@pytest.mark.parametrize(
    "target", [DATA, DATA.iloc[:0], DATA.iloc[[0]].assign(job="pilot")], ids=["4", "0", "unknown"]
)
def test_a_target_must_be_one_record_that_fits(target: pd.DataFrame) -> None:
    with pytest.raises(TargetError):
        Copycat(schema=MIXED, target=target)
    with pytest.raises(TargetError):
        RandomisedResponse(schema=MIXED, target=target)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0])
def test_geometric_noise_has_the_discrete_laplace_distribution(epsilon: float) -> None:
    draws = 40_000
    noise = geometric_noise(epsilon, draws, np.random.default_rng(4))
    ratio = math.exp(-epsilon)
    values = np.arange(-4, 5)
    expected = draws * (1 - ratio) / (1 + ratio) * ratio ** np.abs(values)
    observed = np.array([(noise == value).sum() for value in values])
    rest = [draws - observed.sum()], [draws - expected.sum()]
    assert chisquare(np.append(observed, rest[0]), np.append(expected, rest[1])).pvalue > 1e-4


def test_a_record_changes_one_count_by_one() -> None:
    for column in MIXED.columns:
        difference = cell_counts(column, DATA) - cell_counts(column, OTHERS)
        assert len(difference) == domain_of(column).sizes[0]
        assert sorted(np.abs(difference))[-2:] == [0, 1], column.name


def test_the_stated_effect_of_a_record_is_what_shows_mu() -> None:
    schema = Schema(
        columns=tuple(Column(name=name, kind=Kind.BINARY, categories=(0, 1)) for name in "abc")
    )
    toy = GaussianMarginals(schema=schema, mu=0.45)
    table = pd.DataFrame({name: [0] * 10 + [1] for name in "abc"})
    effect = toy.released_effect(table.iloc[[10]])
    within, without = (
        np.array([toy.fit(one, seed=seed).released() for seed in range(400)])
        for one in (table, table.iloc[:10])
    )
    assert within - without == pytest.approx(np.tile(effect, (400, 1)))
    scores = without @ effect
    shift = float((within @ effect - scores).mean())
    assert shift / (toy.scale * np.linalg.norm(effect)) == pytest.approx(0.45)
    assert scores.std() == pytest.approx(toy.scale * np.linalg.norm(effect), rel=0.12)


def test_the_histogram_is_epsilon_private_and_no_better() -> None:
    # Two cells; the event "no mass on the target's cell" is "noisy count at most 0".
    schema = Schema(columns=(Column(name="x", kind=Kind.BINARY, categories=("a", "b")),))
    out = pd.DataFrame({"x": ["b"] * 30})
    in_ = pd.DataFrame({"x": ["b"] * 30 + ["a"]})
    toy = LaplaceHistogram(schema=schema, epsilon=1.0)
    trials = 1500

    def share_empty(data: pd.DataFrame) -> float:
        return float(np.mean([toy.fit(data, seed=s).marginals[0][0] <= 0 for s in range(trials)]))

    # P(Z <= 0) = 1/(1+r), P(Z <= -1) = r/(1+r) with r = 1/e: their ratio is e.
    r = math.exp(-1.0)
    assert share_empty(out) == pytest.approx(1 / (1 + r), abs=0.035)
    assert share_empty(in_) == pytest.approx(r / (1 + r), abs=0.035)


def test_the_histogram_follows_its_column_when_noise_is_small() -> None:
    toy = LaplaceHistogram(schema=MIXED, column="job", epsilon=50.0)
    table = toy.fit(DATA, seed=1).sample(4000, seed=2)
    assert table["job"].value_counts(normalize=True)["cook"] == pytest.approx(0.5, abs=0.035)
    toy = LaplaceHistogram(schema=MIXED, column="children", epsilon=50.0)
    table = toy.fit(DATA, seed=1).sample(4000, seed=2)
    assert set(table["children"].dropna()) == {0.0, 1.0, 2.0}
    assert table["children"].isna().mean() == pytest.approx(0.25, abs=0.035)
    toy = LaplaceHistogram(schema=MIXED, column="age", epsilon=50.0)
    ages = toy.fit(pd.concat([DATA.head(1)] * 5), seed=1).sample(500, seed=2)["age"]
    assert ages.min() >= 17
    assert ages.max() <= 23  # the first of ten bins


def test_the_histogram_chooses_a_small_public_column() -> None:
    assert LaplaceHistogram(schema=MIXED).counted.name == "pet"
    labelled = Schema(columns=MIXED.columns, label="job")
    assert LaplaceHistogram(schema=labelled).counted.name == "job"
    with pytest.raises(SettingsError, match=r"no column 'jub'.*did you mean 'job'"):
        LaplaceHistogram(schema=MIXED, column="jub")
