"""The study of released tables: how tables that do not fit are put right."""

from __future__ import annotations

import pandas as pd

from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from reports.released_data.run import within_bounds

AGE = Column(name="age", kind=Kind.INTEGER, lower=20, upper=60)
KIND = Column(name="kind", kind=Kind.CATEGORICAL, categories=("a", "b"))
SCHEMA = Schema(columns=(AGE, KIND))


def test_scaled_numbers_are_scaled_back_and_rounded() -> None:
    drawn = pd.DataFrame({"age": [0.0, 0.49, 1.0], "kind": ["a", "b", "a"]})
    found = within_bounds(drawn, SCHEMA, "updated")
    assert found["age"].tolist() == [20, 40, 60]
    assert found["kind"].tolist() == ["a", "b", "a"]
    assert drawn["age"].tolist() == [0.0, 0.49, 1.0]  # the table itself is left alone


def test_numbers_beyond_the_bounds_count_as_the_bounds() -> None:
    drawn = pd.DataFrame({"age": [19, 33, 91], "kind": ["a", "b", "a"]})
    assert within_bounds(drawn, SCHEMA, "turing")["age"].tolist() == [20, 33, 60]
