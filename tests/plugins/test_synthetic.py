"""What a generator gave is read once, and reads as the schema's canonical form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpaudit.errors import TrialError
from dpaudit.game.features import features_of_table
from dpaudit.model.column import Column, Kind, Unit
from dpaudit.model.encoding import values_of_table
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FeatureName, FloatArray, GameView
from dpaudit.plugins.release import accept, units_together, with_units
from samples import PEOPLE, game_view, people

WHOLE = Schema(
    columns=(
        *PEOPLE.columns,
        Column(name="rooms", kind=Kind.INTEGER, lower=0, upper=9, missing=True),
    )
)


def given() -> pd.DataFrame:
    table = people(20).assign(rooms=[1.0, np.nan] * 10)
    return table.set_index(pd.Index(range(100, 120)))[["rooms", "paid", "age", "income", "job"]]


CHANGES: dict[str, Any] = {
    "as it is": lambda table: table,
    "float32": lambda table: table.astype({"income": "float32", "age": "float32"}),
    "small integers": lambda table: table.astype({"age": "int8", "paid": "int8"}),
    "not whole": lambda table: table.assign(age=table["age"] + 0.5),
    "truth values": lambda table: table.assign(paid=table["paid"] == 1, age=True),
    "objects": lambda table: table.astype(object),
    "nullable": lambda table: table.convert_dtypes(),
    "texts of numbers": lambda table: table.assign(age=table["age"].astype(str)),
    "categories": lambda table: table.astype({"job": "category"}),
    "unheard of": lambda table: table.assign(job="pilot"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_accepted_is_canonical(change: str) -> None:
    table = CHANGES[change](given())
    expected = WHOLE.canonical(table)
    found = accept(table, WHOLE, len(table))
    pd.testing.assert_frame_equal(found, expected)
    assert isinstance(found.index, pd.RangeIndex)
    before = found.copy()
    table.loc[:, "income"] = -1.0  # the generator keeps no hold on it
    pd.testing.assert_frame_equal(found, before)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([np.nan] * 20, "column 'age' has missing values"),
        ([None] * 20, "column 'age' has missing values"),
        ([pd.NA] * 20, "column 'age' has missing values"),
        ([np.inf] * 20, "column 'age' has infinite values"),
        (["old"] * 20, "column 'age' holds values that are not numbers"),
        (pd.Timestamp("2020-01-01"), "column 'age' holds values that are not numbers"),
    ],
)
def test_what_is_no_record_is_refused(values: Any, said: str) -> None:
    with pytest.raises(TrialError, match=said):
        accept(given().assign(age=values), WHOLE, 20)


class Counting:
    """An attack on values that says which of its methods was asked."""

    def check(self, game: GameView) -> None:
        del game

    def feature_names(self, game: GameView) -> tuple[FeatureName, ...]:
        del game
        return (FeatureName("all", "asked"),)

    def features(self, table: pd.DataFrame, game: GameView) -> FloatArray:
        del table, game
        return np.array([1.0])

    def features_many(self, values: FloatArray, game: GameView) -> FloatArray:
        del game
        assert values.shape == (1, 20, 5)
        return np.array([[2.0]])

    def fit(self, features: FloatArray, member: FloatArray, *, seed: int) -> Any:
        del features, member, seed


def test_attacks_on_values_share_one_reading_unless_a_category_has_no_value() -> None:
    table = WHOLE.canonical(given())
    game = game_view(WHOLE, table[:1], n_rows=20)
    attacks: Any = [Counting(), Counting()]
    assert features_of_table(table, attacks, game).tolist() == [2.0, 2.0]
    odd = table.assign(job=["pilot", *table["job"][1:]])
    assert features_of_table(odd, attacks, game).tolist() == [1.0, 1.0]


def test_the_target_s_values_are_read_once() -> None:
    table = WHOLE.canonical(given())
    game = game_view(WHOLE, table[:1], n_rows=20)
    np.testing.assert_array_equal(game.target_values, values_of_table(table[:1], WHOLE))
    assert game.target_values is game.target_values
    with pytest.raises(ValueError, match="read-only"):
        game.target_values[0, 0] = 1.0


OF_PATIENTS = PEOPLE.with_unit(Unit(column="patient"))


def test_rows_of_a_released_unit_stand_together_in_their_order() -> None:
    released = people(6).assign(patient=["b", None, "b", "a", None, "b"])
    together = units_together(released, OF_PATIENTS)
    assert together.index.tolist() == [0, 2, 5, 1, 4, 3]
    table = accept(together, OF_PATIENTS, 6)
    assert list(table.columns) == PEOPLE.names
    seen = with_units(table, together, OF_PATIENTS)
    assert list(seen.columns) == [*PEOPLE.names, "patient"]
    assert seen["patient"].fillna("?").tolist() == ["b", "b", "b", "?", "?", "a"]
    pd.testing.assert_frame_equal(seen[PEOPLE.names], table)


@pytest.mark.parametrize("released", [people(6), "no table", people(6).assign(patient=1)])
def test_a_release_without_units_is_as_it_was(released: Any) -> None:
    schema = PEOPLE if "patient" in released else OF_PATIENTS
    assert units_together(released, schema) is released
    assert with_units(people(6), released, schema).equals(people(6))
