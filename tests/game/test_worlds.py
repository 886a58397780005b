"""The two worlds differ in one record and in nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.errors import DataError, SettingsError, TargetError
from dpaudit.game.target import Target, choose_target, copies_of, farthest
from dpaudit.game.worlds import TargetGame, build_game
from dpaudit.model.claim import Neighbours
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import GameView, World

SCHEMA = Schema(
    columns=(
        Column(name="age", kind=Kind.INTEGER, lower=0, upper=100),
        Column(name="pay", kind=Kind.CONTINUOUS, lower=0, upper=1000, missing=True),
        Column(name="flag", kind=Kind.BINARY, categories=(0, 1), missing=True),
        Column(name="town", kind=Kind.CATEGORICAL, categories=("a", "b", "c")),
    )
)
TABLE = SCHEMA.canonical(
    pd.DataFrame(
        {
            "age": [30, 31, 99, 32, 33, 34, 30],
            "pay": [10.0, np.nan, 990.0, 20.0, 15.0, 12.0, 11.0],
            "flag": [0, 1, np.nan, 1, 0, 1, 1],
            "town": ["a", "a", "c", "b", "a", "b", "a"],
        }
    )
)
NEW = pd.DataFrame({"age": [50], "pay": [500.0], "flag": [1], "town": ["c"]})


def played(
    choice: str = "row:2",
    *,
    data: pd.DataFrame = TABLE,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
    replacement: pd.DataFrame | None = None,
    n_rows: int = 7,
) -> TargetGame:
    return build_game(
        data,
        SCHEMA,
        choose_target(choice, data, SCHEMA),
        n_rows=n_rows,
        neighbours=neighbours,
        replacement=replacement,
    )


def record_file(folder: Path, data: pd.DataFrame) -> str:
    data.to_csv(folder / "record.csv", index=False)
    return f"record:{folder / 'record.csv'}"


rows = st.tuples(
    st.integers(0, 100),
    st.none() | st.floats(0, 1000),
    st.none() | st.sampled_from([0, 1]),
    st.sampled_from(["a", "b", "c"]),
)


@given(st.lists(rows, min_size=2, max_size=8, unique=True), st.data())
@settings(max_examples=40)
def test_add_remove_worlds_differ_in_the_target_alone(drawn: list, data: st.DataObject) -> None:
    table = SCHEMA.canonical(pd.DataFrame(drawn, columns=SCHEMA.names))
    row = data.draw(st.integers(0, len(table) - 1))
    game = played(f"row:{row}", data=table)
    inside, outside = game.table(World.IN, 0), game.table(World.OUT, 0)
    pd.testing.assert_frame_equal(inside, table, check_exact=True)
    expected = table.drop(index=row).reset_index(drop=True)
    pd.testing.assert_frame_equal(outside, expected, check_exact=True)
    pd.testing.assert_frame_equal(game.view.others, expected, check_exact=True)
    assert inside.dtypes.equals(outside.dtypes)
    assert inside.index.equals(pd.RangeIndex(len(table)))
    assert outside.index.equals(pd.RangeIndex(len(table) - 1))
    pd.testing.assert_frame_equal(game.view.target, table.iloc[[row]].reset_index(drop=True))
    assert {game.rows_requested(world) for world in World} == {7}


@given(st.lists(rows, min_size=3, max_size=8, unique=True), st.data())
@settings(max_examples=40)
def test_replace_one_worlds_differ_in_one_place(drawn: list, data: st.DataObject) -> None:
    *kept, last = drawn
    table = SCHEMA.canonical(pd.DataFrame(kept, columns=SCHEMA.names))
    replacement = SCHEMA.canonical(pd.DataFrame([last], columns=SCHEMA.names))
    row = data.draw(st.integers(0, len(table) - 1))
    game = played(
        f"row:{row}", data=table, neighbours=Neighbours.REPLACE_ONE, replacement=replacement
    )
    inside, outside = game.table(World.IN, 0), game.table(World.OUT, 0)
    pd.testing.assert_frame_equal(inside, table, check_exact=True)
    pd.testing.assert_frame_equal(outside.drop(index=row), table.drop(index=row), check_exact=True)
    pd.testing.assert_frame_equal(outside.iloc[[row]].reset_index(drop=True), replacement)
    assert inside.dtypes.equals(outside.dtypes)
    assert len(game.view.others) == len(table) - 1


def test_a_record_outside_the_table_is_added_at_its_end(tmp_path: Path) -> None:
    choice = record_file(tmp_path, NEW)
    game = played(choice)
    assert choose_target(choice, TABLE, SCHEMA).row is None
    pd.testing.assert_frame_equal(game.table(World.OUT, 0), TABLE)
    pd.testing.assert_frame_equal(game.table(World.IN, 0).iloc[:-1], TABLE)
    assert game.table(World.IN, 0).iloc[-1].tolist() == [50, 500.0, 1, "c"]
    assert game.table(World.IN, 0).dtypes.equals(TABLE.dtypes)


@pytest.mark.parametrize("row", [1, 2, 3])
def test_a_record_of_the_table_is_found_and_removed(tmp_path: Path, row: int) -> None:
    choice = record_file(tmp_path, TABLE.iloc[[row]])  # rows 1 and 2 have missing values
    target = choose_target(choice, TABLE, SCHEMA)
    assert target.row == row
    assert target.choice == choice
    pd.testing.assert_frame_equal(
        played(choice).table(World.OUT, 0), played(f"row:{row}").table(World.OUT, 0)
    )


def test_a_record_may_be_added_to_any_world_of_replace_one(tmp_path: Path) -> None:
    replacement = SCHEMA.canonical(NEW.assign(age=51))
    game = played(
        record_file(tmp_path, NEW), neighbours=Neighbours.REPLACE_ONE, replacement=replacement
    )
    assert game.table(World.IN, 0)["age"].tolist()[-1] == 50
    assert game.table(World.OUT, 0)["age"].tolist()[-1] == 51
    pd.testing.assert_frame_equal(game.view.others, TABLE)


def test_rows_equal_to_the_target_are_in_both_worlds(tmp_path: Path) -> None:
    for row in (1, 3):  # with and without missing values
        twice = SCHEMA.canonical(pd.concat([TABLE, TABLE.iloc[[row]]]))
        assert copies_of(TABLE.iloc[[row]], twice, SCHEMA) == 2
        for choice in (f"row:{row}", "row:7", record_file(tmp_path, TABLE.iloc[[row]])):
            game = played(choice, data=twice)
            inside, outside = (game.table(world, 0) for world in World)
            assert (len(inside), len(outside)) == (8, 7)
            assert copies_of(TABLE.iloc[[row]], inside, SCHEMA) == 2
            assert copies_of(TABLE.iloc[[row]], outside, SCHEMA) == 1


def test_a_replacement_that_equals_the_target_is_refused() -> None:
    with pytest.raises(TargetError, match="both worlds"):
        played(neighbours=Neighbours.REPLACE_ONE, replacement=TABLE.iloc[[2]])


@pytest.mark.parametrize(
    ("choice", "says"),
    [
        ("row:7", "row 7 does not exist: the table has rows 0 to 6"),
        ("row:-1", "row -1 does not exist"),
        ("row:", "give a row number, as row:0 to row:6"),
        ("row:two", "give a row number"),
        ("row:1.0", "give a row number"),
        ("row:--1", "give a row number"),
        ("row:1-", "give a row number"),
        ("row:\u00b2", "give a row number"),
        ("row:1_0", "give a row number"),
        ("row:" + "9" * 5000, "give a row number"),
        ("farest", "not one of exposing, farthest, vulnerable, row:N, record:FILE"),
        ("vulnerable", "which only `dpaudit audit` of single rows makes: give exposing, farthest"),
        ("exposin", "record:FILE (did you mean 'exposing'?)"),
        ("", "not one of exposing"),
        ("record:", "not one of exposing"),
        ("record", "not one of exposing"),
        ("3", "not one of exposing"),
    ],
)
def test_a_malformed_choice_is_refused(choice: str, says: str) -> None:
    with pytest.raises(TargetError) as caught:
        choose_target(choice, TABLE, SCHEMA)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("data", "error", "says"),
    [
        (pd.concat([NEW, NEW]), TargetError, "has 2 records: give exactly one"),
        (NEW.head(0), DataError, "no rows"),
        (NEW.drop(columns="pay"), DataError, "column 'pay' is missing"),
        (NEW.assign(age=101), DataError, "a value is outside the bounds"),
        (NEW.assign(town="z"), DataError, "a value is not one of its 3 categories"),
        (NEW.assign(town=np.nan), DataError, "a value is missing"),
    ],
)
def test_a_record_file_must_hold_one_record_that_fits(
    tmp_path: Path, data: pd.DataFrame, error: type[Exception], says: str
) -> None:
    choice = record_file(tmp_path, data)
    with pytest.raises(error) as caught:
        choose_target(choice, TABLE, SCHEMA)
    assert says in str(caught.value)
    assert "record.csv" in str(caught.value)


def test_a_record_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        choose_target(f"record:{tmp_path}/none.csv", TABLE, SCHEMA)


def test_the_farthest_record_by_hand() -> None:
    assert farthest(TABLE, SCHEMA) == 2
    target = choose_target("farthest", TABLE, SCHEMA)
    assert target.row == 2
    assert target.record["age"].tolist() == [99]
    shuffled = SCHEMA.canonical(TABLE.iloc[[5, 4, 3, 1, 0, 2, 6]])
    assert farthest(shuffled, SCHEMA) == 5
    assert farthest(TABLE.head(2), SCHEMA) == 0
    with pytest.raises(TargetError, match="at least 2 rows"):
        farthest(TABLE.head(1), SCHEMA)


def test_the_distance_is_a_mean_over_five_neighbours() -> None:
    """A pair far from everyone is found though each has one near neighbour."""
    schema = Schema(columns=(Column(name="x", kind=Kind.CONTINUOUS, lower=0, upper=1),))
    crowd = np.linspace(0, 0.2, 21)
    data = pd.DataFrame({"x": [*crowd, 0.45, 0.99, 1.0]})
    distances = np.sort(np.abs(data["x"].to_numpy()[:, None] - data["x"].to_numpy()), axis=1)
    assert farthest(data, schema) == int(distances[:, 1:6].mean(axis=1).argmax()) == 23


def test_a_game_needs_rows() -> None:
    with pytest.raises(SettingsError, match="`rows` must be a number of at least 1, got 0"):
        played(n_rows=0)


@pytest.mark.parametrize(
    ("neighbours", "lacks_in", "lacks_out"),
    [
        (Neighbours.ADD_REMOVE, (), ()),
        (Neighbours.ADD_REMOVE, (3,), ()),
        (Neighbours.ADD_REMOVE, (3,), (4,)),
        (Neighbours.ADD_REMOVE, (), (7,)),
        (Neighbours.ADD_REMOVE, (), (-1,)),
        (Neighbours.ADD_REMOVE, (), (2, 2)),
        (Neighbours.REPLACE_ONE, (), (3,)),
        (Neighbours.REPLACE_ONE, (3,), (3,)),
        (Neighbours.REPLACE_ONE, (3,), (5,)),
        (Neighbours.REPLACE_ONE, (7,), (6,)),
        (Neighbours.REPLACE_ONE, (2, 3), (1, 2)),
        (Neighbours.REPLACE_ONE, (), ()),
    ],
)
def test_worlds_that_are_no_neighbours_make_no_game(
    neighbours: Neighbours, lacks_in: tuple[int, ...], lacks_out: tuple[int, ...]
) -> None:
    view = GameView(
        schema=SCHEMA,
        others=TABLE,
        target=SCHEMA.canonical(NEW),
        n_rows=5,
        neighbours=neighbours,
    )
    with pytest.raises(SettingsError, match=f"they are not {neighbours} neighbours"):
        TargetGame(view=view, data=TABLE, missing={World.IN: lacks_in, World.OUT: lacks_out})


def test_building_a_game_changes_nothing_it_was_given() -> None:
    before = TABLE.copy(deep=True)
    game = played()
    for number, world in enumerate(World):
        table = game.table(world, 0)
        table.loc[0, "age"] = number
        assert game.table(world, 0).loc[0, "age"] == 30
    pd.testing.assert_frame_equal(TABLE, before)
    assert game.view.others.loc[0, "age"] == 30


def test_a_target_is_a_plain_value() -> None:
    target = Target("row:0", (0,), TABLE.head(1))
    assert target.choice == "row:0"
