"""Facts of a table that hold of one record alone, and the record that they expose most."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpaudit.errors import TargetError
from dpaudit.game import target as targets
from dpaudit.game.target import (
    Exposure,
    Fact,
    choose_target,
    exposing_first,
    exposure_scores,
    exposures_of,
    far_records,
    farthest,
    find_holders,
)
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.model.tables import load

NONE = np.nan
BASE: dict[str, list[Any]] = {
    "whole": [1, 1, 2, 2, 3, 3, 4, 4],
    "real": [0.5, 0.5, 1.5, 1.5, 2.5, 2.5, 3.5, 3.5],
    "gap": [0.0, NONE, 1.0, NONE, 0.0, 1.0, 0.0, 1.0],
    "flag": [0, 1, 0, 1, 0, 1, 0, 1],
    "town": ["a", "b", "c", "a", "b", "c", "a", "b"],
}
"""Every value is held by two records or more, so that no record is exposed."""
SCHEMA = Schema(
    columns=(
        Column(name="whole", kind=Kind.INTEGER, lower=-100, upper=100),
        Column(name="real", kind=Kind.CONTINUOUS, lower=-100, upper=100),
        Column(name="gap", kind=Kind.CONTINUOUS, lower=-100, upper=100, missing=True),
        Column(name="flag", kind=Kind.BINARY, categories=(0, 1), missing=True),
        Column(name="town", kind=Kind.CATEGORICAL, categories=("a", "b", "c", "d")),
    )
)


def table_with(**columns: list[Any]) -> pd.DataFrame:
    return SCHEMA.canonical(pd.DataFrame({**BASE, **columns}))


def test_a_table_of_which_no_fact_holds_of_one_record_alone() -> None:
    data = table_with()
    assert find_holders(data, SCHEMA) == ()
    target = choose_target("exposing", data, SCHEMA)
    assert target.row == far_records(data, SCHEMA)[0]
    assert target.exposures == ()
    assert target.choice == "exposing"


@pytest.mark.parametrize(
    ("columns", "row", "facts"),
    [
        ({"whole": [1, 1, 2, 2, 3, 9, 4, 4]}, 5, ["sole maximum"]),
        ({"whole": [1, 1, 2, -9, 2, 3, 4, 4]}, 3, ["sole minimum"]),
        ({"real": [0.5, 0.5, 1.5, 99.5, 2.5, 2.5, 3.5, 3.5]}, 3, ["sole maximum"]),
        ({"real": [0.5, 0.5, 1.5, 1.5, 2.5, 2.5, -99.5, 3.5]}, 6, ["sole minimum"]),
        ({"whole": [7, 7, 7, 7, 8, 7, 7, 7]}, 4, ["only value that differs"]),
        ({"whole": [7, 7, 6, 7, 7, 7, 7, 7]}, 2, ["only value that differs"]),
        ({"gap": [NONE] * 7 + [3.0]}, 7, ["only value that differs"]),
        ({"gap": [0.0, 1.0, NONE, 1.0, 0.0, 1.0, 0.0, 1.0]}, 2, ["only missing value"]),
        ({"gap": [0.0, 0.0, 1.0, 0.5, NONE, 1.0, 1.0, NONE]}, 3, ["only value with decimals"]),
        ({"flag": [0, 0, 0, 0, 0, 0, 1, 0]}, 6, ["only value that differs"]),
        ({"flag": [NONE, NONE, 1, NONE, NONE, NONE, NONE, NONE]}, 2, ["only value that differs"]),
        ({"flag": [0, 1, 0, NONE, 0, 1, 0, 1]}, 3, ["only missing value"]),
        ({"town": ["a", "b", "c", "d", "b", "c", "a", "b"]}, 3, ["only one of its category"]),
        ({"town": ["a", "a", "a", "a", "a", "a", "d", "a"]}, 6, ["only value that differs"]),
        ({"gap": [1.0] * 7 + [1.5]}, 7, ["only value that differs", "only value with decimals"]),
    ],
)
def test_each_fact_exposes_its_record(
    columns: dict[str, list[Any]], row: int, facts: list[str]
) -> None:
    data = table_with(**columns)
    target = choose_target("exposing", data, SCHEMA)
    [name] = columns
    assert target.row == row
    assert target.exposures == tuple(Exposure(Fact(fact), name) for fact in facts)
    assert target.record.equals(data.iloc[[row]].reset_index(drop=True))


def test_an_extreme_counts_by_how_far_it_stands_out_and_at_most_one() -> None:
    """The others of [0, 0, 2, 2, x] have standard deviation 1."""
    schema = Schema(columns=(Column(name="x", kind=Kind.CONTINUOUS, lower=0, upper=1000),))
    for highest, weight in ((2.25, 0.25), (2.75, 0.75), (3.0, 1.0), (900.0, 1.0)):
        data = pd.DataFrame({"x": [0, 0, 2, 2, highest]})
        maximum, *_ = find_holders(data, schema)
        assert maximum.exposure == Exposure(Fact.MAXIMUM, "x")
        assert maximum.weight == pytest.approx(weight)


def test_more_facts_count_more_than_one_extreme_however_far() -> None:
    data = table_with(
        whole=[1, 1, 2, 2, 3, 3, 4, 100], town=["d", *BASE["town"][1:]], flag=[NONE, *[0, 1] * 3, 0]
    )
    target = choose_target("exposing", data, SCHEMA)
    assert target.row == 0
    assert target.exposures == (
        Exposure(Fact.MISSING, "flag"),
        Exposure(Fact.CATEGORY, "town"),
    )


def test_what_counts_most_is_named_first() -> None:
    data = table_with(
        whole=[1, 1, 2, 2, 3, 3, 4, 5], real=[0.5, 0.5, 1.5, 1.5, 2.5, 2.5, 3.5, 90.5]
    )
    target = choose_target("exposing", data, SCHEMA)
    assert target.exposures == (Exposure(Fact.MAXIMUM, "real"), Exposure(Fact.MAXIMUM, "whole"))
    scores = exposure_scores(find_holders(data, SCHEMA), len(data))
    others = np.array([1, 1, 2, 2, 3, 3, 4])
    assert scores.tolist() == [0.0] * 7 + [pytest.approx(1 + 1 / others.std())]


def test_of_records_that_expose_alike_the_farther_one_is_taken() -> None:
    columns = {"whole": [0, 0, 0, 0, 0, 0, 0, 9], "flag": [0, 0, 1, 0, 0, 0, 0, 0]}
    data = table_with(**columns)
    scores = exposure_scores(find_holders(data, SCHEMA), len(data))
    assert scores.tolist() == [0, 0, 1, 0, 0, 0, 0, 1]
    # A differing binary value is farther in the encoding than 9 of a range of 200.
    assert choose_target("exposing", data, SCHEMA).row == 2
    moved = table_with(**{**columns, "whole": [-100] * 7 + [100], "town": ["a"] * 7 + ["b"]})
    assert choose_target("exposing", moved, SCHEMA).row == 7


def test_a_tie_is_a_function_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """No distance is computed where one record exposes most: it takes long in a large table."""

    def none(*_: object) -> None:
        raise AssertionError("no distance is needed")

    data = table_with(whole=[1, 1, 2, 2, 3, 9, 4, 4])
    first = choose_target("exposing", data, SCHEMA)
    monkeypatch.setattr(targets, "farthest_first", none)
    assert choose_target("exposing", data, SCHEMA).row == first.row == 5


def test_numbers_near_the_largest_do_not_overflow() -> None:
    schema = Schema(columns=(Column(name="x", kind=Kind.CONTINUOUS, lower=-1e300, upper=1e300),))
    data = pd.DataFrame({"x": [-1e300, -1e300, 0.0, 0.0, 1e300]})
    target = choose_target("exposing", data, schema)
    assert (target.row, target.exposures) == (4, (Exposure(Fact.MAXIMUM, "x"),))


@pytest.mark.parametrize("rows", [0, 1])
def test_a_table_without_a_choice_is_refused(rows: int) -> None:
    with pytest.raises(TargetError, match="at least 2 rows"):
        choose_target("exposing", table_with().head(rows), SCHEMA)


def test_two_records_that_differ_expose_each_other() -> None:
    data = table_with().iloc[[0, 2]].reset_index(drop=True)
    target = choose_target("exposing", data, SCHEMA)
    assert target.row == 0
    assert {one.fact for one in target.exposures or ()} == {Fact.DIFFERENT}


def test_a_search_tries_the_exposing_records_first_and_then_the_far_ones() -> None:
    data = table_with(
        whole=[1, 1, 2, 2, 3, 9, 4, 4], town=["d", *BASE["town"][1:]], flag=[0, 0, *[1] * 5, NONE]
    )
    scores = exposure_scores(find_holders(data, SCHEMA), len(data))
    assert np.flatnonzero(scores).tolist() == [0, 5, 7]
    order = exposing_first(data, SCHEMA).tolist()
    far = far_records(data, SCHEMA).tolist()
    assert order == [row for row in far if scores[row]] + [row for row in far if not scores[row]]


def test_cervical_cancer_has_the_target_of_the_published_audit() -> None:
    """Raw, the record with most sexually transmitted diseases is not the farthest."""
    table = load("tests/data/cervical_cancer.csv.gz", None)
    target = choose_target("exposing", table.data, table.schema)
    assert target.row == 407 != farthest(table.data, table.schema)
    named = [(one.fact.value, one.column) for one in target.exposures or ()]
    assert {("sole maximum", "STDs_number"), ("sole maximum", "STDs_N_diagnosis")} <= {*named}


def test_holders_of_lone_categories_are_found_together() -> None:
    schema = Schema(columns=(Column(name="id", kind=Kind.CATEGORICAL, categories=tuple("abcd")),))
    data = schema.canonical(pd.DataFrame({"id": list("abcd")}))
    [holders] = find_holders(data, schema)
    assert holders.exposure == Exposure(Fact.CATEGORY, "id")
    assert holders.rows.tolist() == [0, 1, 2, 3]
    assert exposures_of(2, (holders,)) == (holders.exposure,)
