"""The prediction task: labels, splits, rankings; what has no answer is refused before any work."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpaudit.errors import DataError, SettingsError
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.usefulness.experiment import column_importance, ranking_agreement
from dpaudit.usefulness.task import PredictionTask, split, task_of

SCHEMA = Schema(
    columns=(
        Column(name="age", kind=Kind.INTEGER, lower=0, upper=100),
        Column(name="income", kind=Kind.CONTINUOUS, lower=0, upper=10, missing=True),
        Column(name="job", kind=Kind.CATEGORICAL, categories=("a", "b", "c")),
        Column(name="note", kind=Kind.CATEGORICAL, categories=("x", "y"), missing=True),
        Column(name="count", kind=Kind.INTEGER, lower=0, upper=1),
        Column(name="sick", kind=Kind.BINARY, categories=("no", "yes")),
    ),
    label="sick",
)


def table(rows: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    sick = rng.random(rows) < 0.2
    data = pd.DataFrame(
        {
            "age": rng.integers(0, 60, rows) + 30 * sick,
            "income": np.where(rng.random(rows) < 0.1, np.nan, rng.random(rows)),
            "job": np.where(sick, rng.choice(["a", "b"], rows), rng.choice(["b", "c"], rows)),
            "note": rng.choice(["x", None], rows),
            "count": 1,
            "sick": np.where(sick, "yes", "no"),
        }
    )
    return SCHEMA.canonical(data)


def task(**given: Any) -> PredictionTask:
    return task_of(SCHEMA, **{"label": None, "positive": None, **given})


def test_the_label_is_the_schemas_and_the_second_value_is_positive() -> None:
    assert (task().label, task().positive) == ("sick", "yes")
    assert task(positive="no").positive == "no"
    assert task(label="count").positive == 1
    assert task(label="age", positive="7").positive == 7
    assert task(label="job", positive="b").positive == "b"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"label": "sik"}, r"label 'sik' is not a column \(did you mean 'sick'\?\)"),
        ({"label": "income"}, "may be missing: drop the rows"),
        ({"label": "note"}, "may be missing: drop the rows"),
        ({"label": "job"}, "more than two values: say which is the `positive` one, one of 'a'"),
        ({"label": "age"}, r"a whole number in \[0, 100\]"),
        ({"label": "age", "positive": "old"}, "`positive` is 'old'"),
        ({"label": "age", "positive": "101"}, "`positive` is '101'"),
        ({"positive": "1"}, "`positive` is '1'; label 'sick' takes one of 'no', 'yes'"),
    ],
)
def test_labels_without_meaning_are_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        task(**given)


def test_a_table_needs_a_label_and_something_to_predict_it_from() -> None:
    nameless = Schema(columns=SCHEMA.columns)
    with pytest.raises(SettingsError, match="give `label`"):
        task_of(nameless, label=None, positive=None)
    alone = Schema(columns=SCHEMA.columns[-1:], label="sick")
    with pytest.raises(SettingsError, match="no column but the label"):
        task_of(alone, label=None, positive=None)
    continuous = Schema(
        columns=(Column(name="x", kind=Kind.CONTINUOUS, lower=0, upper=1), SCHEMA.columns[0])
    )
    with pytest.raises(SettingsError, match="is continuous"):
        task_of(continuous, label="x", positive=None)


def test_examples_are_cut_off_at_the_bounds_and_know_missing_values() -> None:
    data = table(4).assign(age=[-50, 0, 100, 10**6], income=[np.nan, 0.0, 5.0, 10.0])
    found = task().examples(data).features
    assert found[:, 0].tolist() == [0.0, 0.0, 1.0, 1.0]
    assert found[:, 1:3].tolist() == [[0.5, 1.0], [0.0, 0.0], [0.5, 0.0], [1.0, 0.0]]
    assert np.isfinite(found).all()


def test_the_split_keeps_shares_and_loses_no_row() -> None:
    data = table()
    parts = split(data, task(), share=0.25, seed=1)
    ages = sorted([*parts.train["age"], *parts.test["age"]])
    assert ages == sorted(data["age"])
    both = [(one["sick"] == "yes").sum() for one in (data, parts.test)]
    assert abs(both[1] - both[0] / 4) < 1
    pd.testing.assert_frame_equal(parts.test, split(data, task(), share=0.25, seed=1).test)
    assert not parts.test.equals(split(data, task(), share=0.25, seed=2).test)


def test_the_rarest_class_is_on_both_sides() -> None:
    data = table().assign(sick=["yes"] * 2 + ["no"] * 398)
    for part in split(data, task(), share=0.01, seed=1):
        assert (part["sick"] == "yes").sum() == 1
    with pytest.raises(DataError, match="has 1 rows in which 'sick' is 'yes', 2 are needed"):
        split(data[1:], task(), share=0.5, seed=1)


def test_ranking_agreement_by_hand() -> None:
    one = np.array([1.0, 2.0, 3.0])
    assert ranking_agreement(one, one) == 1.0
    assert ranking_agreement(one, -one) == 0.0
    assert ranking_agreement(one, np.array([1.0, 3.0, 2.0])) == pytest.approx(2 / 3)
    assert ranking_agreement(one, np.array([1.0, 1.0, 2.0])) == pytest.approx(2 / 3)
    with pytest.raises(SettingsError, match="at least 2"):
        ranking_agreement(one[:1], one[:1])


def test_importance_is_the_correlation_with_the_label() -> None:
    data = table()
    found = dict(zip(SCHEMA.names, column_importance(data, task()), strict=False))
    sick = (data["sick"] == "yes").to_numpy(dtype=float)
    assert found["age"] == pytest.approx(abs(np.corrcoef(data["age"], sick)[0, 1]))
    group_means = pd.Series(sick).groupby(data["job"].to_numpy()).transform("mean")
    assert found["job"] == pytest.approx(group_means.std() / sick.std(ddof=1))
    assert found["count"] == 0.0
    assert set(column_importance(data.assign(sick="no"), task())) == {0.0}
