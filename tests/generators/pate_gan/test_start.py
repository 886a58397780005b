"""Records drawn from noisy marginals and weighted by the student."""

from __future__ import annotations

import math
from typing import Any

import cloudpickle
import numpy as np
import pandas as pd
import pytest

from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FloatArray
from dpaudit_generators.marginals import Marginals, Structure
from dpaudit_generators.pate_gan import PateGan, PateGanMarginals
from dpaudit_generators.pate_gan.model import CHOICES, sample_weighted
from samples import PEOPLE, people

COIN = Schema(columns=(Column(name="side", kind=Kind.BINARY, categories=(0, 1)),))
LABEL = Column(name="label", kind=Kind.BINARY, categories=(0, 1))
FAIR = Marginals(schema=COIN, mu=1e6, tree=Structure.INDEPENDENT).fit(
    pd.DataFrame({"side": [0, 1] * 5000}), seed=1
)


def share_of_ones(odds: float, n: int = 20_000) -> float:
    """Share of ones if the student says these odds of a one and even ones of a zero."""

    def score(values: FloatArray) -> FloatArray:
        return math.log(odds) * values[:, 0]

    return float(sample_weighted(FAIR, score, n, seed=3).mean())


@pytest.mark.parametrize("odds", [1.0, 3.0, 0.2, 1e9])
def test_a_candidate_is_kept_in_proportion_to_its_odds(odds: float) -> None:
    assert CHOICES == 2  # so both are ones in a quarter of the pairs, and one of them in half
    expected = 0.25 + 0.5 * odds / (1.0 + odds)
    assert share_of_ones(odds) == pytest.approx(expected, abs=4 * 0.5 / math.sqrt(20_000))


def test_candidates_share_their_label() -> None:
    schema = Schema(columns=(*COIN.columns, LABEL), label="label")
    table = pd.DataFrame({"side": [0, 1] * 500, "label": [0] * 900 + [1] * 100})
    start = Marginals(schema=schema, mu=1e6, tree=Structure.LABEL).fit(table, seed=1)

    def score(values: FloatArray) -> FloatArray:
        return 3.0 * values[:, 0] - 50.0 * values[:, 1]

    side, label = sample_weighted(start, score, 20_000, seed=3).mean(axis=0)
    assert label == pytest.approx(0.1, abs=0.01)  # however much the student dislikes the class
    assert side == pytest.approx(0.25 + 0.5 / (1.0 + math.exp(-3.0)), abs=0.02)


def test_any_number_of_records_is_drawn_and_huge_scores_are_no_trouble() -> None:
    for n in (0, 1, 5000):
        drawn = sample_weighted(FAIR, lambda values: 1e6 * values[:, 0] - 5e5, n, seed=1)
        assert drawn.shape == (n, 1)
        assert np.isin(drawn, [0.0, 1.0]).all()


def gan(**options: Any) -> PateGanMarginals:
    return PateGanMarginals(schema=PEOPLE, **{"teachers": 6, "epsilon": 8.0} | options)


def test_records_fit_the_schema_and_follow_the_table_when_the_budget_is_large() -> None:
    data = people(400)
    table = gan(epsilon=50.0).fit(data, seed=1).sample(3000, seed=2)
    assert PEOPLE.problems(table) == []
    assert list(table.dtypes) == list(data.dtypes)
    for column in PEOPLE.columns:
        if not column.kind.numeric:
            real = data[column.name].value_counts(normalize=True, dropna=False)
            made = table[column.name].value_counts(normalize=True, dropna=False)
            assert (real - made.reindex(real.index, fill_value=0.0)).abs().max() < 0.1


def test_without_a_seed_everything_is_fresh() -> None:
    data = people()
    one, other = (gan().fit(data, seed=None) for _ in range(2))
    assert not np.array_equal(one.released(), other.released())
    assert not one.sample(40, seed=None).equals(one.sample(40, seed=None))
    assert "operating system" in one.claim.source
    assert "drawn from a seed" in gan().fit(data, seed=1).claim.source


def test_a_model_holds_no_records() -> None:
    data = people()
    pickled = cloudpickle.dumps(gan(bins=4).fit(data, seed=1))
    assert len(cloudpickle.dumps(gan(bins=4).fit(data.head(3), seed=1))) == len(pickled)
    numbers = data.select_dtypes("number").to_numpy(dtype=np.float64).ravel()
    fractions = numbers[np.isfinite(numbers) & (numbers != np.rint(numbers))]
    assert len(fractions) > 10
    assert not any(number.tobytes() in pickled for number in fractions)


def test_the_effect_of_a_record_is_what_it_adds_to_the_released_numbers() -> None:
    data, generator = people(), gan(bins=4)
    effect = generator.released_effect(data.head(1))
    assert len(effect) == len(generator.released_facts)
    rest = data.drop(index=0).reset_index(drop=True)
    moved = generator.fit(data, seed=1).released() - generator.fit(rest, seed=1).released()
    labels = np.array([name.startswith("share of 1") for name in generator.released_facts])
    deviations = np.array([" & " in name for name in generator.released_facts])
    counts = ~labels & ~deviations
    np.testing.assert_allclose(moved[counts], effect[counts], atol=1e-9)
    assert np.count_nonzero(effect[counts]) == len(PEOPLE.columns)
    # What deviates depends on the counts: only the direction is known.
    assert moved[deviations] @ effect[deviations] > 0.5 * np.sum(effect[deviations] ** 2)
    assert not effect[labels].any()
    assert not PateGan(schema=PEOPLE).released_effect(data.head(1)).any()
