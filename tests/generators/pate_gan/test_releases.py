"""Private histograms: exact noise, prices that add up, and what is read off them."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpaudit.errors import SettingsError
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit_generators.pate import IndexArray, RandomBits, cells, discrete_laplace
from dpaudit_generators.pate_gan import PateGan, from_noise, mechanism, training
from dpaudit_generators.pate_gan.from_noise import (
    GRID,
    private_bounds,
    private_proportions,
    released_counts,
    split,
)
from dpaudit_generators.pate_gan.training import Teachers

INCOME = Column(name="income", kind=Kind.CONTINUOUS, lower=0.0, upper=1000.0)
AGE = Column(name="age", kind=Kind.INTEGER, lower=0, upper=120)
SICK = Column(name="sick", kind=Kind.CATEGORICAL, categories=("no", "yes"), missing=True)
SCHEMA = Schema(columns=(INCOME, AGE, SICK), label="sick")


def table(n: int = 4000) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    sick = rng.choice(np.array(["no", "yes", None], dtype=object), n, p=[0.85, 0.1, 0.05])
    return SCHEMA.canonical(
        pd.DataFrame(
            {"income": rng.uniform(100, 300, n), "age": rng.integers(20, 60, n), "sick": sick}
        )
    )


def bits(seed: int = 0) -> RandomBits:
    return RandomBits(seed, "histogram noise")


def generator(**settings: Any) -> PateGan:
    given = {"epsilon": 20.0, "teachers": 10, "rounds": 2}
    return PateGan(schema=SCHEMA, **given | settings)


PRIVATE = {"bounds": "private", "label_proportions": "private"}


@pytest.mark.parametrize("draws", [20_000, pytest.param(60_000, marks=pytest.mark.slow)])
def test_neighbouring_counts_are_as_likely_up_to_e_to_the_epsilon(draws: int) -> None:
    # One more record in one cell: the noisy count there has the law of the other, moved by one.
    epsilon = Fraction(1, 2)
    noisy = released_counts(np.full(draws, 7), epsilon=epsilon, bits=bits())
    seen = np.bincount(np.clip(noisy - 7 + 6, 0, 12), minlength=13)[1:12]
    p = math.tanh(0.25) * np.exp(-0.5 * np.abs(np.arange(-5, 6)))  # the discrete Laplace law
    assert (np.abs(seen - draws * p) < 4.5 * np.sqrt(draws * p)).all()
    assert np.abs(np.diff(np.log(p))).max() == pytest.approx(0.5)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 50.0])
@pytest.mark.parametrize("histograms", [1, 7, 300])
def test_the_parts_never_exceed_the_budget(epsilon: float, histograms: int) -> None:
    parts = split(epsilon, share=0.2, histograms=histograms)
    assert Fraction(parts.votes) + histograms * parts.each <= Fraction(epsilon)
    assert float(histograms * parts.each) == pytest.approx(0.2 * epsilon, rel=1e-5)
    assert split(epsilon, share=0.2, histograms=0).votes == epsilon


def test_a_share_too_small_for_any_noise_is_refused() -> None:
    with pytest.raises(SettingsError, match="leaves nothing for 300 private histograms"):
        split(1e-8, share=0.2, histograms=300)


def test_the_whole_budget_is_claimed_and_divided() -> None:
    gan = generator(epsilon=3.0, **PRIVATE)
    assert gan.split.histograms == 3
    assert gan.plan.epsilon <= gan.split.votes
    assert Fraction(gan.split.votes) + 3 * gan.split.each <= 3
    assert gan.claim.epsilon == 3.0
    assert "3 histogram(s) with discrete Laplace noise" in gan.claim.source
    plain = generator(epsilon=3.0)
    assert plain.plan.labels > gan.plan.labels
    assert plain.split.histograms == 0


def test_bounds_hold_nearly_all_values_on_the_public_grid() -> None:
    found = private_bounds(INCOME, table()["income"], epsilon=Fraction(1), bits=bits())
    lower, upper = found.bounds
    assert 50 < lower <= 100 + 1000 / 64
    assert 300 - 1000 / 64 <= upper < 400
    assert (lower * 64 / 1000).is_integer()
    whole = private_bounds(AGE, table()["age"], epsilon=Fraction(1), bits=bits())
    assert all(float(bound).is_integer() for bound in whole.bounds)
    assert 10 <= whole.bounds[0] <= 22


def test_an_outlier_is_followed_by_bounds_of_the_data_only() -> None:
    data = table()
    data.loc[17, "income"] = 999.0
    tops = {}
    for bounds in ("schema", "private", "data"):
        tops[bounds] = generator(bounds=bounds).fit(data, seed=1).schema.columns[0].bounds[1]
    assert tops["schema"] == 1000.0
    assert tops["private"] < 400.0
    assert tops["data"] == 999.0


@pytest.mark.parametrize("n", [0, *(pytest.param(n, marks=pytest.mark.ci) for n in (1, 5))])
def test_few_records_keep_the_public_bounds(n: int) -> None:
    for column, name in ((INCOME, "income"), (AGE, "age")):
        for seed in range(20):
            found = private_bounds(
                column, table().head(n)[name], epsilon=Fraction(1, 10), bits=bits(seed)
            )
            lower, upper = found.bounds
            assert column.bounds[0] <= lower < upper <= column.bounds[1]


def test_proportions_are_near_the_data_and_add_up_to_one() -> None:
    found = private_proportions(SICK, table()["sick"], epsilon=Fraction(1), bits=bits())
    np.testing.assert_allclose(found, [0.85, 0.1, 0.05], atol=0.02)
    assert sum(found) == pytest.approx(1.0)
    assert len(private_proportions(SICK, table(0)["sick"], epsilon=Fraction(1), bits=bits())) == 3


def test_labels_follow_the_released_proportions_and_records_are_given_them() -> None:
    model = generator(label_proportions="private").fit(table(), seed=1)
    synthetic = model.sample(5000, seed=2)
    assert SCHEMA.problems(synthetic) == []
    shares = synthetic["sick"].value_counts(normalize=True, dropna=False)
    np.testing.assert_allclose(shares.to_numpy(), sorted(model.proportions)[::-1], atol=0.03)
    # Generated without, the rare class is as frequent as the networks have it.
    plain = generator().fit(table(), seed=1)
    assert plain.proportions == ()


# What a training takes from the table. Tried by hand: these fail with the noise left out, at ten
# times the price, taken twice from one stream, or seeded in production.


def test_every_cell_of_every_histogram_gets_noise_of_its_own_at_its_price(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn: list[tuple[Any, RandomBits]] = []

    def noted(scale: Any, source: RandomBits) -> int:
        drawn.append((scale, source))
        return discrete_laplace(scale, source)

    monkeypatch.setattr(from_noise, "discrete_laplace", noted)
    gan = generator(**PRIVATE)
    gan.fit(table(50), seed=1)
    assert [scale for scale, _ in drawn] == [1 / gan.split.each] * (2 * GRID + 3)
    assert len({id(source) for _, source in drawn}) == 1  # one stream, so no noise is used twice
    drawn.clear()
    generator().fit(table(50), seed=1)
    assert drawn == []


def test_given_noisy_counts_and_votes_the_model_knows_no_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def counts(exact: IndexArray, **_: Any) -> IndexArray:
        return np.arange(len(exact)) * 1000

    def votes(self: Teachers, records: Any) -> IndexArray:
        return np.arange(records.shape[1])[None] % 11

    def trained(n: int) -> list[Any]:
        model = generator(**PRIVATE).fit(table(n), seed=1)
        weights = [weight.tobytes() for weight in model.weights]
        return [model.schema, model.proportions, model.claim, weights]

    monkeypatch.setattr(Teachers, "votes", votes)
    free = [trained(n)[:2] for n in (4000, 300)]
    assert free[0] != free[1]
    monkeypatch.setattr(from_noise, "released_counts", counts)
    here = trained(4000)
    assert here[0] != SCHEMA
    assert trained(300) == trained(1) == trained(0) == here


def test_production_takes_partition_and_noise_from_the_system(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keys: list[bytes] = []
    sources: list[int | None] = []

    def dealing(rows: Any, *, teachers: int, key: bytes) -> Any:
        keys.append(key)
        return cells(rows, teachers=teachers, key=key)

    def drawing(seed: int | None, purpose: str) -> RandomBits:
        sources.append(seed)
        return RandomBits(seed, purpose)

    monkeypatch.setattr(mechanism, "cells", dealing)
    monkeypatch.setattr(from_noise, "RandomBits", drawing)
    gan = generator(**PRIVATE)
    for seed in (None, None, 0, 0, 1):
        gan.fit(table(50), seed=seed)
    assert len(set(keys)) == 4
    assert keys[2] == keys[3]
    assert sources == [None, None, 0, 0, 1]


def test_a_value_beyond_the_released_bounds_counts_as_the_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[Any] = []

    def train(trainees: Any, **given: Any) -> list[Any]:
        seen.extend(trainee.records.rows for trainee in trainees)
        return trained(trainees, **given)

    trained = training.train
    monkeypatch.setattr(training, "train", train)
    data = table()
    data.loc[17, "income"] = 999.0
    model = generator(bounds="private").fit(data, seed=1)
    assert model.schema.columns[0].bounds[1] < 400.0
    assert seen[0][17, 0] == 1.0
    assert (seen[0].min(), seen[0].max()) == (0.0, 1.0)
