"""Pairs of tables: valid, neighbours, and shrunk towards what is easy to read."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

from dpaudit.model.claim import Neighbours
from dpaudit.model.column import Column, Kind, Unit
from dpaudit.model.neighbouring_tables import NeighbouringTables
from dpaudit.model.schema import Schema
from dpaudit.searching.pairs import base_pair, crowds, neighbouring_pairs, simple_values, size

COLUMNS = (
    Column(name="sex", kind=Kind.BINARY, categories=("f", "m")),
    Column(name="age", kind=Kind.INTEGER, lower=-3, upper=90, missing=True),
    Column(name="x", kind=Kind.CONTINUOUS, lower=-1.5, upper=2.5),
)
SCHEMA = Schema(columns=COLUMNS)
PER_PATIENT = Schema(columns=COLUMNS, unit=Unit(column="patient", max_rows=2))


def without(pair: NeighbouringTables) -> pd.DataFrame:
    """The table without the record, or with another in its place."""
    others = pair.data.drop(index=list(pair.rows))
    return pd.concat([others, pair.replacement]) if pair.replacement is not None else others


@pytest.mark.parametrize("schema", [SCHEMA, PER_PATIENT])
@pytest.mark.parametrize("relation", list(Neighbours))
@given(data=st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_tables_fit_the_schema_and_differ_in_one_record_or_unit(
    schema: Schema, relation: Neighbours, data: st.DataObject
) -> None:
    pair = data.draw(neighbouring_pairs(schema, neighbours=relation, records=0))
    other = without(pair)
    for table in (pair.data, other):
        assert not schema.problems(table)
    is_replaced = relation is Neighbours.REPLACE_ONE
    assert len(other) == len(pair.data) - (0 if is_replaced else len(pair.rows))
    if schema.unit is None:
        assert len(pair.rows) == 1
    else:
        owners = pair.data[schema.unit.column]
        assert set(owners.iloc[list(pair.rows)]) == {0}
        assert set(owners.drop(index=list(pair.rows))).isdisjoint({0})
        assert owners.value_counts().max() <= 2
    if pair.replacement is not None:
        own = pair.data.iloc[list(pair.rows)].reset_index(drop=True)
        assert not own.equals(pair.replacement)


@given(data=st.data())
@settings(max_examples=30, deadline=None)
def test_tables_have_as_many_rows_as_were_asked_for(data: st.DataObject) -> None:
    pair = data.draw(neighbouring_pairs(SCHEMA, neighbours=Neighbours.ADD_REMOVE, records=100))
    assert len(without(pair)) >= 100
    assert len(base_pair(SCHEMA, Neighbours.ADD_REMOVE, 100).data) == 101
    assert all(len(crowd.data) > 100 for crowd in crowds(SCHEMA, Neighbours.ADD_REMOVE, 100))


def test_simple_values_hold_the_bounds_and_what_may_be_missing() -> None:
    sex, age, x = map(simple_values, COLUMNS)
    assert sex == ["f", "m"]
    assert age[:2] == [-3.0, 90.0]
    assert pd.isna(age[-1])
    assert {-1.5, 2.5, 0.0} <= set(x)


def test_the_smallest_pair_is_a_record_alone() -> None:
    pairs = neighbouring_pairs(SCHEMA, neighbours=Neighbours.ADD_REMOVE, records=0)
    pair = find(pairs, lambda pair: True)
    assert pair.data.to_numpy().tolist() == [["f", -3.0, -1.5]]


def test_shrinking_ends_at_the_number_of_rows_that_matters() -> None:
    pairs = neighbouring_pairs(SCHEMA, neighbours=Neighbours.ADD_REMOVE, records=0)
    pair = find(pairs, lambda pair: len(pair.data) >= 128, settings=settings(max_examples=2000))
    assert len(pair.data) == 128
    assert size(pair) < size(base_pair(SCHEMA, Neighbours.ADD_REMOVE, 200))
