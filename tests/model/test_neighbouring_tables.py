"""Worst cases: what each table is, and that nothing but a public schema makes it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.errors import SchemaError
from dpaudit.model.choices import WorstCase
from dpaudit.model.column import Column, Kind
from dpaudit.model.neighbouring_tables import NeighbouringTables, searched_tables, worst_case_tables
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


NAMED = list(WorstCase)


@pytest.mark.parametrize("name", NAMED)
def test_every_table_fits_its_schema_and_holds_the_target_once(name: WorstCase) -> None:
    pair = built(name)
    assert pair.schema.problems(pair.data) == []
    records = [tuple(map(str, row)) for row in pair.data.itertuples(index=False)]
    assert records.count(records[pair.rows[0]]) == 1
    assert pair.rows == (len(records) - 1,)
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


def test_the_target_of_an_outlier_is_far_from_all_others() -> None:
    data = built(WorstCase.OUTLIER).data
    assert len(data) == 41
    assert data["pay"].iloc[:-1].between(-1.5, 0.5).all()
    assert data["pay"].nunique() == 41
    assert set(data["town"].iloc[:-1]) == set("abcdefghijklmn")
    assert data.iloc[-1].tolist()[:3] == [21, 8.5, "o"]


def test_the_target_of_inside_lies_between_the_others() -> None:
    data = built(WorstCase.INSIDE).data
    assert data["pay"].tolist() == [-1.5, 8.5] * 5 + [3.5]
    assert data["town"].tolist() == ["a", "o"] * 5 + ["b"]
    assert data["ill"].tolist() == [0, 1] * 5 + [1]


def test_one_record_beside_the_target_of_missing_has_values() -> None:
    data = built(WorstCase.MISSING).data
    assert data["pay"].notna().sum() == 2
    assert data["pay"].iloc[[0, -1]].tolist() == [-1.5, 8.5]
    assert data["age"].tolist() == [18] * 40 + [21]


@pytest.mark.parametrize(("name", "records"), [("batch", 9), ("crowd", 257)])
def test_equal_records_come_in_several_numbers(name: str, records: int) -> None:
    data = built(WorstCase(name)).data
    assert len(data) == records
    assert len(data.drop_duplicates()) == 2


def columns(name: str) -> st.SearchStrategy[Column]:
    """Any column with at least two values."""
    texts = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=5, unique=True).map(tuple)
    wholes = st.integers(-50, 50)
    return st.one_of(
        st.builds(
            lambda kind, lower, width, missing: Column(
                name=name, kind=kind, lower=lower, upper=lower + width, missing=missing
            ),
            st.sampled_from([Kind.INTEGER, Kind.CONTINUOUS]),
            wholes,
            st.integers(1, 90),
            st.booleans(),
        ),
        texts.map(
            lambda values: Column(
                name=name,
                kind=Kind.CATEGORICAL,
                categories=values,
                missing=len(values) == 1 or "f" in values,
            )
        ),
    )


@settings(max_examples=40)  # each is dozens of tables
@given(st.integers(1, 4).flatmap(lambda n: st.tuples(*(columns(name) for name in "abcd"[:n]))))
def test_every_candidate_of_a_search_is_a_valid_pair(of: tuple[Column, ...]) -> None:
    schema = Schema(columns=of)
    found = searched_tables(schema)
    assert next(iter(found)) is WorstCase.OPPOSITE
    assert {WorstCase.REVERSED, WorstCase.BATCH, WorstCase.CROWD} <= set(found)
    for name, pair in found.items():
        assert pair.choice == f"worst-case:{name}"
        assert pair.schema == schema
        assert schema.problems(pair.data) == []
        records = [tuple(map(str, row)) for row in pair.data.itertuples(index=False)]
        assert records.count(records[-1]) == 1
        assert pair.rows == (len(records) - 1,)
    tables = [pair.data.to_csv() for pair in found.values()]
    assert len(set(tables)) == len(tables)


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
        (
            WorstCase.INSIDE,
            replace(SCHEMA, columns=SCHEMA.columns[-1:]),
            "a column with a value between its first and its last",
        ),
        (
            WorstCase.MISSING,
            replace(SCHEMA, columns=SCHEMA.columns[-1:]),
            "a column of two values that may also be missing",
        ),
    ],
)
def test_schemas_that_do_not_do_are_refused(
    name: WorstCase, schema: Schema | None, message: str
) -> None:
    with pytest.raises(SchemaError, match=message):
        worst_case_tables(name, schema)
