"""Worst cases: what each table is, and that nothing but a public schema makes it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpaudit.errors import SchemaError
from dpaudit.model.choices import WorstCase
from dpaudit.model.column import Column, Kind
from dpaudit.model.neighbouring_tables import NeighbouringTables, worst_case_tables
from dpaudit.model.schema import Schema

SCHEMA = Schema(
    columns=(
        Column(name="age", kind=Kind.INTEGER, lower=18, upper=21),
        Column(name="pay", kind=Kind.CONTINUOUS, lower=-1.5, upper=8.5, missing=True),
        Column(name="town", kind=Kind.CATEGORICAL, categories=tuple("abcdefghijklmno")),
        Column(name="only", kind=Kind.CATEGORICAL, categories=("yes",), missing=True),
        Column(name="ill", kind=Kind.BINARY, categories=(0, 1)),
    ),
    label="ill",
)


def built(name: WorstCase, schema: Schema = SCHEMA) -> NeighbouringTables:
    return worst_case_tables(name, None if name.has_own_schema else schema)


@pytest.mark.parametrize("name", WorstCase)
def test_every_table_fits_its_schema_and_holds_the_target_once(name: WorstCase) -> None:
    pair = built(name)
    assert pair.schema.problems(pair.data) == []
    records = [tuple(map(str, row)) for row in pair.data.itertuples(index=False)]
    assert records.count(records[pair.row]) == 1
    assert pair.row == len(records) - 1
    assert pair.replacement is not None
    [instead] = pair.replacement.itertuples(index=False)
    assert tuple(map(str, instead)) in records[:-1]
    assert pair.choice == f"worst-case:{name}"
    assert f"worst case {name}, built from the public schema alone: " in pair.account
    assert "same number of rows" in pair.account


def test_opposite_differs_in_every_column_from_ten_equal_records() -> None:
    data = built(WorstCase.OPPOSITE).data
    assert len(data) == 11
    assert len(data.iloc[:-1].drop_duplicates()) == 1
    assert data.iloc[0].tolist() == [18, -1.5, "a", "yes", 0]
    assert data.iloc[-1].tolist()[:3] == [21, 8.5, "o"]
    assert data["only"].isna().tolist() == [False] * 10 + [True]


def test_the_target_of_one_hot_alone_has_the_last_value_of_each_column() -> None:
    data = built(WorstCase.ONE_HOT).data
    assert data["town"].tolist() == list("abcdefghijklmno")  # each record another category
    assert data["age"].tolist() == [18, 19, 20] * 4 + [18, 19, 21]
    assert (data["pay"] == 8.5).tolist() == [False] * 14 + [True]
    assert data["ill"].tolist() == [0] * 14 + [1]
    many = Column(name="town", kind=Kind.CATEGORICAL, categories=tuple(map(str, range(900))))
    data = built(WorstCase.ONE_HOT, Schema(columns=(many,))).data
    assert data["town"].tolist() == [*map(str, range(49)), "899"]


def test_the_values_of_mixed_all_occur_but_not_together() -> None:
    data = built(WorstCase.MIXED).data
    assert data.iloc[-1].tolist() == [21, -1.5, "o", "yes", 1]
    for name in data.columns:
        assert data[name].iloc[-1] in data[name].iloc[:-1].tolist()
    assert len(data.iloc[:-1].drop_duplicates()) == 2


def test_narrow_is_opposite_on_three_columns_with_the_label() -> None:
    pair = built(WorstCase.NARROW)
    assert pair.schema.names == list(pair.data.columns) == ["age", "pay", "ill"]
    assert pair.schema.label == "ill"
    assert pair.data.iloc[-1].tolist() == [21, 8.5, 1]
    without_label = built(WorstCase.NARROW, replace(SCHEMA, label=None))
    assert without_label.schema.names == ["age", "pay", "town"]
    again = worst_case_tables(WorstCase.NARROW, pair.schema)
    assert again.schema == pair.schema
    assert again.data.equals(pair.data)


def test_mst_has_eleven_rows_and_three_binary_columns() -> None:
    pair = built(WorstCase.MST)
    assert pair.data.to_numpy().tolist() == [[0, 0, 0]] * 10 + [[1, 1, 1]]
    assert worst_case_tables(WorstCase.MST, pair.schema).data.equals(pair.data)


@pytest.mark.parametrize(
    ("name", "schema", "message"),
    [
        (WorstCase.OPPOSITE, None, "opposite is built from a schema alone: give `schema`"),
        (WorstCase.MIXED, replace(SCHEMA, inferred=True), "needs a public schema, .* inferred"),
        (WorstCase.NARROW, replace(SCHEMA, inferred=True), "needs a public schema, .* inferred"),
        (WorstCase.MST, SCHEMA, "mst has its own schema: leave out `schema`"),
        (
            WorstCase.MIXED,
            replace(SCHEMA, columns=SCHEMA.columns[:1], label=None),
            "at least 2 columns to mix",
        ),
    ],
)
def test_schemas_that_do_not_do_are_refused(
    name: WorstCase, schema: Schema | None, message: str
) -> None:
    with pytest.raises(SchemaError, match=message):
        worst_case_tables(name, schema)
