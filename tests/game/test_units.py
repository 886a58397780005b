"""Games of a unit: the worlds, the target, and the facts that choose it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpaudit.errors import TargetError
from dpaudit.game import target as target_module
from dpaudit.game.target import (
    NUMBER_OF_ROWS,
    Exposure,
    Fact,
    choose_target,
    exposing_units_first,
    far_units,
    find_holders,
    find_unit_holders,
)
from dpaudit.game.worlds import TargetGame, build_game, choose_canaries, choose_records
from dpaudit.model.claim import Neighbours
from dpaudit.model.column import Column, Kind, Unit
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import World

UNIT = Unit(column="patient")
SCHEMA = Schema(
    columns=(
        Column(name="age", kind=Kind.INTEGER, lower=0, upper=100, missing=True),
        Column(name="town", kind=Kind.CATEGORICAL, categories=("Bern", "Graz", "Ulm", "Wien")),
    ),
    unit=UNIT,
)
TABLE = SCHEMA.canonical(
    pd.DataFrame(
        {
            "patient": ["b", "a", "b", "c", "a", "b"],
            "age": [20, 30, 20, 30, 20, 30],
            "town": ["Bern", "Graz", "Bern", "Graz", "Bern", "Graz"],
        }
    )
)


def exposures(table: pd.DataFrame) -> dict[Exposure, list[int]]:
    found = find_unit_holders(table, SCHEMA, UNIT.codes(table))
    return {one.exposure: one.rows.tolist() for one in found}


def played(neighbours: Neighbours, replacement: pd.DataFrame | None = None) -> TargetGame:
    target = choose_target("unit:b", TABLE, SCHEMA)
    return build_game(
        TABLE, SCHEMA, target, n_rows=6, neighbours=neighbours, replacement=replacement
    )


def test_world_out_lacks_all_rows_of_the_unit() -> None:
    game = played(Neighbours.ADD_REMOVE)
    pd.testing.assert_frame_equal(game.table(World.IN, 0), TABLE)
    left = TABLE.iloc[[1, 3, 4]].reset_index(drop=True)
    pd.testing.assert_frame_equal(game.table(World.OUT, 0), left)
    pd.testing.assert_frame_equal(game.view.others, left)
    assert game.view.target["patient"].tolist() == ["b", "b", "b"]
    assert game.dropped_rows(World.OUT, 0) == (0, 2, 5)
    assert game.rows_requested(World.IN) == game.rows_requested(World.OUT) == 6


def test_a_replaced_unit_differs_in_its_rows_and_nowhere_else() -> None:
    new = SCHEMA.canonical(
        pd.DataFrame({"patient": "b", "age": [1, 2, 3], "town": ["Ulm", "Bern", "Wien"]})
    )
    game = played(Neighbours.REPLACE_ONE, new)
    pd.testing.assert_frame_equal(game.table(World.IN, 0), TABLE)
    replaced = game.table(World.OUT, 0)
    pd.testing.assert_frame_equal(replaced.iloc[[0, 2, 5]].reset_index(drop=True), new)
    others = [1, 3, 4]
    pd.testing.assert_frame_equal(replaced.iloc[others], TABLE.iloc[others])


def test_a_unit_replaced_by_itself_is_refused() -> None:
    same = TABLE.iloc[[0, 2, 5]].reset_index(drop=True)
    with pytest.raises(TargetError, match="both worlds are the same"):
        played(Neighbours.REPLACE_ONE, same)
    one_differs = same.assign(age=[20, 20, 31])
    assert played(Neighbours.REPLACE_ONE, one_differs)


@pytest.mark.parametrize("choice", ["unit:b", "row:0", "row:2", "row:5"])
def test_a_unit_is_named_by_its_value_or_by_one_of_its_rows(choice: str) -> None:
    target = choose_target(choice, TABLE, SCHEMA)
    assert (target.rows, target.row, target.choice) == ((0, 2, 5), 0, choice)
    pd.testing.assert_frame_equal(target.record, TABLE.iloc[[0, 2, 5]].reset_index(drop=True))


def test_a_numbered_unit_is_named_by_its_number() -> None:
    table = TABLE.assign(patient=[7, 8, 7, 9, 8, 7])
    assert choose_target("unit:8", table, SCHEMA).rows == (1, 4)


@pytest.mark.parametrize(
    ("choice", "says"),
    [
        ("unit:d", "no row of the table has 'd' as its unit"),
        ("unit:", "is not one of exposing, farthest, unit:VALUE, row:N"),
        ("record:one.csv", "is not one of exposing, farthest, unit:VALUE, row:N"),
        ("row:6", "target row 6 does not exist"),
        ("row:x", "give a row number"),
    ],
)
def test_what_names_no_unit_is_refused(choice: str, says: str) -> None:
    with pytest.raises(TargetError, match=says):
        choose_target(choice, TABLE, SCHEMA)


def test_a_unit_in_an_audit_of_rows_is_refused() -> None:
    with pytest.raises(TargetError, match="name its column with `unit`"):
        choose_target("unit:b", TABLE, Schema(columns=SCHEMA.columns))


def test_the_most_exposed_unit_has_facts_of_all_its_rows() -> None:
    """Of no single row: each value that "a" alone has, it has twice."""
    table = TABLE.assign(
        age=[20, 90, 20, 30, 90, 30], town=["Bern", "Ulm", *["Bern"] * 2, "Ulm", "Bern"]
    )
    assert not find_holders(table, SCHEMA)
    assert exposures(table)[Exposure(Fact.MAXIMUM, "age")] == [1]
    assert exposures(table)[Exposure(Fact.DIFFERENT, "town")] == [1]
    target = choose_target("exposing", table, SCHEMA)
    assert target.rows == (1, 4)
    assert Exposure(Fact.MAXIMUM, "age") in (target.exposures or ())


def test_the_number_of_rows_and_sums_are_facts_of_a_unit() -> None:
    """Units have 3, 2 and 1 rows; their ages sum to 70, 50 and 30; no value is of one alone."""
    found = exposures(TABLE)
    assert found[Exposure(Fact.MAXIMUM, NUMBER_OF_ROWS)] == [0]
    assert found[Exposure(Fact.MAXIMUM, "sum of age")] == [0]
    assert {one.fact for one in found} == {Fact.MAXIMUM}  # few rows are no exposure
    assert choose_target("exposing", TABLE, SCHEMA).rows == (0, 2, 5)


def test_the_smallest_of_negative_sums_is_a_fact() -> None:
    table = TABLE.assign(age=[-20, 30, -20, 30, 20, 30])
    assert exposures(table)[Exposure(Fact.MINIMUM, "sum of age")] == [0]


def test_a_value_missing_in_one_unit_alone_is_a_fact() -> None:
    table = TABLE.assign(age=[np.nan, 30.0, np.nan, 30.0, 20.0, 20.0])
    assert exposures(table)[Exposure(Fact.MISSING, "age")] == [0]


def test_units_of_one_row_have_the_facts_of_records() -> None:
    rng = np.random.default_rng(3)
    table = SCHEMA.canonical(
        pd.DataFrame(
            {
                "patient": rng.permutation(50),
                "age": rng.integers(0, 100, 50).astype(float),
                "town": rng.choice(["Bern", "Graz"], 50),
            }
        )
    )
    table.loc[7, "town"] = "Ulm"
    of_units = find_unit_holders(table, SCHEMA, UNIT.codes(table))
    of_rows = find_holders(table, SCHEMA)
    assert [(one.exposure, one.rows.tolist(), one.weight) for one in of_units] == [
        (one.exposure, one.rows.tolist(), one.weight) for one in of_rows
    ]
    plain = Schema(columns=SCHEMA.columns)
    for choice in ("exposing", "farthest"):
        by_row = choose_target(choice, plain.canonical(table), plain)
        assert choose_target(choice, table, SCHEMA).rows == by_row.rows


def test_the_farthest_record_names_its_unit() -> None:
    table = TABLE.assign(age=[20, 30, 20, 30, 99, 30])
    assert choose_target("farthest", table, SCHEMA).rows == (1, 4)


def test_the_first_of_the_exposed_units_is_the_target() -> None:
    table = TABLE.assign(
        age=[20, 90, 20, 30, 90, 30], town=["Bern", "Ulm", *["Bern"] * 2, "Ulm", "Bern"]
    )
    assert exposing_units_first(table, SCHEMA).tolist()[0] == 1
    assert choose_records(table, SCHEMA, 2)[0] == choose_target("exposing", table, SCHEMA).rows
    assert sorted(exposing_units_first(table, SCHEMA)) == [0, 1, 2]


def test_far_units_are_far_from_other_units_and_not_from_themselves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Six equal rows of "f" have no distance to one another, but to all others."""
    near = pd.DataFrame({"patient": list("abcde"), "age": range(20, 25), "town": "Bern"})
    far = pd.DataFrame({"patient": ["f"] * 6, "age": 99, "town": "Bern"})
    table = SCHEMA.canonical(pd.concat([near, far], ignore_index=True))
    assert far_units(table, SCHEMA)[0] == 5
    assert choose_canaries(table, SCHEMA, 1).tolist() == [5, 6, 7, 8, 9, 10]
    monkeypatch.setattr(target_module, "_MOST_NEIGHBOURS", 0)  # as for units of very many rows
    assert sorted(far_units(table, SCHEMA)) == [0, 1, 2, 3, 4, 5]
    assert far_units(table, SCHEMA)[-1] == 5
