"""The schema: its invariants, what it infers, what it finds wrong, and its canonical tables."""

from __future__ import annotations

import decimal
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.errors import SchemaError
from dpaudit.model.column import MISSING, OTHER, Column, Kind, as_numbers
from dpaudit.model.schema import Schema

MIXED = Schema(
    columns=(
        Column(name="whole", kind=Kind.INTEGER, lower=0, upper=9),
        Column(name="gap", kind=Kind.INTEGER, lower=0, upper=9, missing=True),
        Column(name="real", kind=Kind.CONTINUOUS, lower=-1.5, upper=2.5, missing=True),
        Column(name="flag", kind=Kind.BINARY, categories=(0, 1)),
        Column(name="mood", kind=Kind.CATEGORICAL, categories=("low", "mid", "high"), missing=True),
    )
)


def column(**parts: object) -> Column:
    return Column(**{"name": "x", "kind": Kind.CONTINUOUS} | parts)


def one(kind: Kind = Kind.INTEGER, **parts: object) -> Schema:
    bounds = {"lower": 0, "upper": 9} if kind.numeric else {}
    return Schema(columns=(column(kind=kind, **(bounds | parts)),))


def table(values: object) -> pd.DataFrame:
    return pd.DataFrame({"x": values})


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ({}, "needs `lower` and `upper`"),
        ({"lower": 0}, "needs `lower` and `upper`"),
        ({"lower": 1, "upper": 1}, "must be below"),
        ({"lower": 2, "upper": 1}, "must be below"),
        ({"lower": 0, "upper": float("nan")}, "finite"),
        ({"lower": 0, "upper": float("inf")}, "finite"),
        ({"lower": -1e308, "upper": 1e308}, "finite"),
        ({"lower": 0, "upper": 10**400}, "finite"),
        ({"lower": 0, "upper": 2**53 + 2, "kind": Kind.INTEGER}, "9007199254740992"),
        ({"lower": 0, "upper": 1, "categories": ("a", "b")}, "not categories"),
        ({"lower": 0.5, "upper": 2, "kind": Kind.INTEGER}, "whole numbers"),
        ({"lower": 0, "upper": 1.5, "kind": Kind.INTEGER}, "whole numbers"),
        ({"kind": Kind.CATEGORICAL, "categories": ("a", "b"), "lower": 0}, "not bounds"),
        ({"kind": Kind.CATEGORICAL, "categories": ("a", "a", "b")}, "repeat"),
        ({"kind": Kind.CATEGORICAL, "categories": (1, True, 2)}, "repeat"),
        ({"kind": Kind.CATEGORICAL, "categories": ("a",)}, "single possible value"),
        ({"kind": Kind.CATEGORICAL}, "single possible value"),
        ({"kind": Kind.CATEGORICAL, "categories": (None, "a")}, "missing: true"),
        ({"kind": Kind.CATEGORICAL, "categories": (float("nan"), 1)}, "missing: true"),
        ({"kind": Kind.CATEGORICAL, "categories": ([1], 2)}, "not a text"),
        ({"kind": Kind.BINARY, "categories": ("a", "b", "c")}, "exactly 2"),
    ],
)
def test_a_column_refuses_parts_that_contradict_each_other(parts: dict, says: str) -> None:
    with pytest.raises(SchemaError, match="column 'x'") as caught:
        column(**parts)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_one_category_that_may_be_missing_is_two_possible_values() -> None:
    assert column(kind=Kind.CATEGORICAL, categories=("a",), missing=True).missing


def test_a_schema_refuses_no_columns_repeated_names_and_a_label_that_is_none() -> None:
    real = column(lower=0, upper=1)
    with pytest.raises(SchemaError, match="at least one column"):
        Schema(columns=())
    with pytest.raises(SchemaError, match="named twice: x"):
        Schema(columns=(real, real))
    with pytest.raises(SchemaError, match="label 'y' is not a column; columns: x"):
        Schema(columns=(real,), label="y")


def test_infers_each_kind() -> None:
    data = pd.DataFrame(
        {
            "zero_one": [0, 1, 1, 0],
            "one_two": [1, 2, 2, 1],
            "whole": [3.0, 5.0, np.nan, 4.0],
            "real": [0.5, 1.0, 2.0, 3.0],
            "flag": [True, False, True, True],
            "text": ["b", "a", "c", None],
            "two": ["n", "y", "n", "y"],
            "once": [7.0, np.nan, 7.0, 7.0],
            "coded": pd.Categorical([3, 1, 2, 1]),
            "nullable": pd.array([1, None, 5, 6], dtype="Int64"),
        }
    )
    schema = Schema.infer(data, label="flag")
    found = {c.name: c for c in schema.columns}
    assert schema.inferred
    assert schema.label == "flag"
    assert found["zero_one"] == Column(name="zero_one", kind=Kind.BINARY, categories=(0, 1))
    assert found["one_two"] == Column(name="one_two", kind=Kind.INTEGER, lower=1, upper=2)
    assert found["whole"] == Column(name="whole", kind=Kind.INTEGER, lower=3, upper=5, missing=True)
    assert found["real"] == Column(name="real", kind=Kind.CONTINUOUS, lower=0.5, upper=3)
    assert found["flag"].categories == (False, True)
    assert found["text"].categories == ("a", "b", "c")
    assert found["text"].missing
    assert found["two"].kind is Kind.BINARY
    assert found["once"].categories == (7,)
    assert found["once"].missing
    assert found["coded"].categories == (1, 2, 3)
    assert found["nullable"].bounds == (1, 6)
    assert schema.problems(data) == []


def test_all_constant_columns_are_named_in_one_error() -> None:
    data = pd.DataFrame({"a": [1, 1], "fine": [1, 2], "b": ["x", "x"], "c": [np.nan, np.nan]})
    with pytest.raises(SchemaError) as caught:
        Schema.infer(data)
    message = str(caught.value)
    assert "column 'a' is constant (one value everywhere)" in message
    assert "column 'b' is constant (one value everywhere)" in message
    assert "column 'c' is constant (missing everywhere)" in message
    assert "fine" not in message
    assert "drop it" in message


def test_levels_that_a_type_declares_are_categories() -> None:
    kinds = pd.Categorical(["low", "high"] * 3, categories=["low", "mid", "high"], ordered=True)
    plain = pd.Categorical([3, 1] * 3, categories=[3, 2, 1])
    columns = Schema.infer(pd.DataFrame({"a": kinds, "b": plain})).columns
    assert [column.categories for column in columns] == [("low", "mid", "high"), (1, 2, 3)]
    assert [column.kind for column in columns] == [Kind.CATEGORICAL] * 2


def test_two_large_whole_numbers_stay_apart_as_categories() -> None:
    large = [2**63, 2**63 + 1]
    code = {"name": "code", "kind": "binary", "categories": large}
    schema = Schema.from_document({"columns": [code]})
    data = pd.DataFrame({"code": np.array(large * 3, dtype=np.uint64)})
    assert schema.problems(data) == []
    assert schema.canonical(data)["code"].tolist() == large * 3


def test_bounds_of_whole_numbers_are_printed_without_a_point() -> None:
    schema = Schema.infer(pd.DataFrame({"age": [17, 40, 90, 33]}))
    assert '"lower": 17,' in schema.to_json()
    assert '"upper": 90' in schema.to_json()
    [problem] = schema.problems(pd.DataFrame({"age": [16]}))
    assert "[17, 90]" in problem


def test_nothing_is_inferred_from_a_single_row() -> None:
    with pytest.raises(SchemaError, match=r"a single row shows no bounds .*: give more rows"):
        Schema.infer(pd.DataFrame({"a": [1], "b": ["x"]}))


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ([1.0, np.inf, 2.0], "infinite"),
        ([np.inf, np.nan], "infinite"),
        ([1, -np.inf, "a"], "infinite"),
        ([[1], [2]], "list"),
        ([decimal.Decimal(1), decimal.Decimal(2)], "Decimal"),
        ([1 + 2j, 2, 3], "complex"),
        ([f"name {i}" for i in range(1001)], "1001 distinct texts in 1001 rows: drop it"),
        ([1, 2**60], r"beyond 2\*\*53"),
        (np.array([2**63, 2**63 + 1] * 3, dtype=np.uint64), r"beyond 2\*\*53"),
    ],
)
def test_a_column_that_is_neither_number_nor_category_is_refused(values: object, says: str) -> None:
    with pytest.raises(SchemaError, match=says):
        Schema.infer(table(values))


def test_refuses_column_names_that_repeat_or_are_not_text() -> None:
    with pytest.raises(SchemaError, match=r"column names repeat: a; rename"):
        Schema.infer(pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]))
    with pytest.raises(SchemaError, match="column name 0 is not text"):
        Schema.infer(pd.DataFrame([[1, 2], [3, 4]]))


def test_column_problems_names_what_lacks_what_is_extra_and_what_repeats() -> None:
    schema = Schema(columns=(column(lower=0, upper=1), column(name="y", lower=0, upper=1)))
    assert schema.problems(pd.DataFrame({"x": [0.5], "z": [1]})) == [
        "column 'y' is missing",
        "column 'z' is not in the schema",
    ]
    twice = pd.DataFrame([[0, 0, 0]], columns=["x", "x", "y"])
    assert schema.problems(twice) == ["column names repeat: x"]


@pytest.mark.parametrize(
    ("schema", "values", "says"),
    [
        (one(), [1, 20, 30], "a value is outside the bounds [0, 9] (2 row(s), first at row 1)"),
        (one(upper=1_000_000), [1_000_001], "a value is outside the bounds [0, 1000000]"),
        (one(), [0.5], "a value is not a whole number"),
        (one(), [np.inf], "a value is infinite"),
        (one(), [np.nan, 1], "a value is missing, the schema says none is"),
        (one(), pd.array([1, None], dtype="Int64"), "a value is missing"),
        (one(), [1, "two"], "a value is not a number (1 row(s), first at row 1)"),
        (one(), [[1], 2], "a value is not a number (1 row(s), first at row 0)"),
        (one(), pd.to_datetime(["2020-01-01"]), "convert dates"),
        (one(Kind.CONTINUOUS), [-0.25], "a value is outside the bounds [0, 9]"),
        (
            one(Kind.BINARY, categories=("a", "b")),
            ["a", "c"],
            "a value is not one of its 2 categories (1 row(s), first at row 1)",
        ),
        (one(Kind.BINARY, categories=(0, 1)), [0, 2], "a value is not one of its 2 categories"),
        (one(Kind.BINARY, categories=(0, 1)), ["0", "1"], "a value is not one of its 2"),
        (one(Kind.BINARY, categories=("a", "b")), ["a", None], "a value is missing"),
    ],
)
def test_value_problems_show_count_and_place_and_no_value(
    schema: Schema, values: object, says: str
) -> None:
    problems = schema.problems(table(values))
    assert len(problems) == 1
    assert problems[0].startswith("column 'x': ")
    assert says in problems[0]
    assert "np." not in problems[0]


def test_every_problem_is_reported_at_once() -> None:
    schema = Schema(columns=(column(lower=0, upper=1), column(name="y", lower=0, upper=1)))
    assert len(schema.problems(pd.DataFrame({"x": [7, np.inf], "y": [np.nan, 3.0]}))) == 4


def test_codes_and_equal_categories() -> None:
    coded = column(kind=Kind.CATEGORICAL, categories=(0, 1, "a"), missing=True)
    values = pd.Series([1.0, True, 1, "a", None, np.nan, "1", 2], dtype=object)
    assert coded.codes(values).tolist() == [1, 1, 1, 2, MISSING, MISSING, OTHER, OTHER]
    canonical = Schema(columns=(coded,)).canonical(table(values))["x"].tolist()
    assert [type(v) for v in canonical[:3]] == [int, int, int]
    assert canonical[6:] == ["1", 2]


rows = st.tuples(
    st.integers(0, 9),
    st.none() | st.integers(0, 9),
    st.none() | st.floats(-1.5, 2.5),
    st.sampled_from([0, 1]),
    st.none() | st.sampled_from(["low", "mid", "high"]),
)


@given(st.lists(rows, min_size=1, max_size=6), st.data())
@settings(max_examples=40)
def test_dtypes_follow_from_the_schema_alone_whichever_row_is_dropped(
    drawn: list, data: st.DataObject
) -> None:
    full = pd.DataFrame(drawn, columns=MIXED.names)
    dropped = data.draw(st.integers(0, len(drawn) - 1))
    rest = full.drop(index=dropped)
    canonical = MIXED.canonical(rest)
    assert canonical.dtypes.astype(str).tolist() == [
        "int64",
        "float64",
        "float64",
        "object",
        "object",
    ]
    assert canonical.index.equals(pd.RangeIndex(len(drawn) - 1))
    # ... and read anew without the row, so that pandas guesses other dtypes on the way.
    anew = pd.DataFrame(drawn[:dropped] + drawn[dropped + 1 :], columns=MIXED.names)
    pd.testing.assert_frame_equal(MIXED.canonical(anew), canonical)
    pd.testing.assert_frame_equal(MIXED.canonical(canonical), canonical)


def test_canonical_orders_columns_and_ignores_others() -> None:
    data = pd.DataFrame({"mood": ["low"], "other": [1], "flag": [1.0], "real": [0]})
    data = data.assign(gap=[pd.NA], whole=["3"])
    canonical = MIXED.canonical(data)
    assert list(canonical) == MIXED.names
    assert canonical["whole"].tolist() == [3]
    assert canonical["gap"].isna().all()


@pytest.mark.parametrize("value", [0.5, 1e300, -np.inf, np.nan])
def test_a_whole_column_that_is_not_stays_float_and_exact(value: float) -> None:
    canonical = one().canonical(table([value, 1.0]))["x"]
    assert canonical.dtype == np.float64
    np.testing.assert_array_equal(canonical, [value, 1.0])


def test_as_numbers_names_the_row_of_the_first_that_is_none() -> None:
    assert as_numbers(pd.Series(["1", None, 2.5, True])).tolist()[2:] == [2.5, 1.0]
    with pytest.raises(
        SchemaError, match=r"column 'x': a value is not a number \(2 row\(s\), first at row 2\)"
    ):
        as_numbers(pd.Series([1, None, "one", "two"], name="x"))
    with pytest.raises(SchemaError, match="convert dates"):
        as_numbers(pd.Series(pd.to_datetime(["2020-01-01"]), name="x"))


def test_survives_its_json() -> None:
    document = json.loads(json.dumps(MIXED.to_document()))
    assert Schema.from_document(document) == MIXED
    inferred = Schema.infer(pd.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "x"]}), label="b")
    assert Schema.from_document(inferred.to_document()) == inferred


def entry(**parts: object) -> dict:
    return {"name": "x", "kind": "integer", "lower": 0, "upper": 1} | parts


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ({}, 'needs a list "columns"'),
        ({"columns": 5}, 'needs a list "columns"'),
        ({"columns": "abc"}, 'needs a list "columns"'),
        ({"columns": [1]}, "column number 0"),
        ({"columns": [{"kind": "integer"}]}, "column number 0"),
        ({"columns": [entry(kind="int")]}, "kind must be one of continuous, integer"),
        ({"columns": [entry(uper=1)]}, "unknown keys uper; a column has name, kind, lower"),
        ({"columns": [entry(lower="0")]}, "`lower` must be a number"),
        ({"columns": [entry(upper=True)]}, "`upper` must be a number"),
        ({"columns": [entry(missing="no")]}, "`missing` must be true or false"),
        ({"columns": [{"name": "x", "kind": "binary", "categories": "ab"}]}, "must be a list"),
        ({"columns": [{"name": "x", "kind": "binary", "categories": 5}]}, "must be a list"),
        ({"columns": [entry()], "inferred": "no"}, "`inferred` must be true or false"),
        ({"columns": [entry()], "format": "dpaudit-schema/9"}, "dpaudit-schema/9"),
        ({"columns": [entry()], "lable": "x"}, "unknown keys lable"),
        ({"columns": [entry()], "label": "y"}, "label 'y' is not a column"),
    ],
)
def test_a_malformed_document_is_refused(document: dict, says: str) -> None:
    with pytest.raises(SchemaError) as caught:
        Schema.from_document(document)
    assert says in str(caught.value)


def test_a_document_reports_every_malformed_column() -> None:
    with pytest.raises(SchemaError, match=r"'a'.*'b'"):
        Schema.from_document({"columns": [entry(name="a", kind="no"), entry(name="b", lower=3)]})


SDV_COLUMNS = {
    "age": {"sdtype": "numerical", "computer_representation": "Int64"},
    "pay": {"sdtype": "numerical"},
    "town": {"sdtype": "categorical"},
    "fine": {"sdtype": "boolean"},
    "born": {"sdtype": "datetime", "datetime_format": "%d.%m.%Y"},
}
SDV_TABLE = pd.DataFrame(
    {
        "age": [30, 40, 50],
        "pay": [1, 2, 3],
        "town": ["a", "b", "c"],
        "fine": [True, False, True],
        "born": ["01.02.1970", "28.02.1970", "01.03.1970"],
        "id": ["p", "q", "r"],
    }
)


@pytest.mark.parametrize(
    "metadata", [{"columns": SDV_COLUMNS}, {"tables": {"people": {"columns": SDV_COLUMNS}}}]
)
def test_reads_sdv_metadata(metadata: dict) -> None:
    schema = Schema.from_sdv(metadata, SDV_TABLE)
    assert schema.inferred
    assert [c.kind.value for c in schema.columns] == [
        "integer",
        "continuous",
        "categorical",
        "binary",
        "integer",
    ]
    assert schema.columns[0].bounds == (30, 50)
    assert schema.columns[4].date == "%d.%m.%Y"
    assert schema.columns[4].bounds == (31, 59)


@pytest.mark.parametrize(
    ("metadata", "says"),
    [
        ({"tables": {}}, "0 tables"),
        ({"tables": {"a": {}, "b": {}}}, "2 tables"),
        ({"tables": {"a": {}}}, "columns"),
        ({"tables": {"a": 5}}, "columns"),
        ({"columns": {"id": {"sdtype": "id"}}}, "sdtype 'id' is not supported: drop it"),
        ({"columns": {"age": {"sdtype": "address"}}}, "sdtype 'address' is not supported"),
        ({"columns": {"age": 5}}, "sdtype None"),
        ({"columns": {"lost": {"sdtype": "numerical"}}}, "in the metadata but not in the table"),
        ({"columns": {"town": {"sdtype": "numerical"}}}, "declared continuous but holds no number"),
        ({"columns": {}}, "at least one column"),
    ],
)
def test_refuses_sdv_metadata_that_an_audit_cannot_use(metadata: dict, says: str) -> None:
    with pytest.raises(SchemaError) as caught:
        Schema.from_sdv(metadata, SDV_TABLE)
    assert says in str(caught.value)
