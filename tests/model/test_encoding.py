"""Tables as numbers and back."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.errors import SchemaError
from dpaudit.model.column import MISSING, OTHER, Column, Kind
from dpaudit.model.encoding import (
    decode,
    encode,
    encode_values,
    layout,
    table_of,
    values_of_table,
    width,
)
from dpaudit.model.schema import Schema

SCHEMA = Schema(
    columns=(
        Column(name="whole", kind=Kind.INTEGER, lower=-3, upper=7),
        Column(name="gap", kind=Kind.INTEGER, lower=0, upper=90, missing=True),
        Column(name="real", kind=Kind.CONTINUOUS, lower=-1.5, upper=2.5),
        Column(name="hole", kind=Kind.CONTINUOUS, lower=0, upper=1e6, missing=True),
        Column(name="flag", kind=Kind.BINARY, categories=(False, True)),
        Column(name="mood", kind=Kind.CATEGORICAL, categories=("low", "mid", "high")),
        Column(name="mix", kind=Kind.CATEGORICAL, categories=(3, "3", 0.5), missing=True),
    )
)


def test_layout_gives_each_column_its_place() -> None:
    blocks = layout(SCHEMA)
    assert [(b.value.start, b.value.stop, b.indicator) for b in blocks] == [
        (0, 1, None),
        (1, 2, 2),
        (3, 4, None),
        (4, 5, 5),
        (6, 8, None),
        (8, 11, None),
        (11, 15, None),
    ]
    assert width(SCHEMA) == 15
    assert width(Schema(columns=SCHEMA.columns[:4])) == 6  # ends with an indicator


def test_encodes_by_hand() -> None:
    data = pd.DataFrame(
        {
            "whole": [7, 17],
            "gap": [45.0, np.nan],
            "real": [0.5, -1.5],
            "hole": [np.nan, 1e6],
            "flag": [1.0, 0],
            "mood": ["high", "unheard of"],
            "mix": [None, "3"],
        }
    )
    expected = [
        [1, 0.5, 0, 0.5, 0.5, 1, 0, 1, 0, 0, 1, 0, 0, 0, 1],
        [2, 0.5, 1, 0, 1, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0],
    ]
    np.testing.assert_array_equal(encode(data, SCHEMA), expected)


rows = st.tuples(
    st.integers(-3, 7),
    st.none() | st.integers(0, 90),
    st.floats(-1.5, 2.5),
    st.none() | st.floats(0, 1e6),
    st.booleans(),
    st.sampled_from(["low", "mid", "high"]),
    st.none() | st.sampled_from([3, "3", 0.5]),
)


@given(st.lists(rows, max_size=8))
@settings(max_examples=40)
def test_round_trip(drawn: list) -> None:
    data = SCHEMA.canonical(pd.DataFrame(drawn, columns=SCHEMA.names))
    matrix = encode(data, SCHEMA)
    assert matrix.shape == (len(drawn), width(SCHEMA))
    assert np.all((matrix >= 0) & (matrix <= 1))
    back = decode(matrix, SCHEMA)
    pd.testing.assert_frame_equal(back, data, check_exact=False, rtol=1e-9, atol=1e-9)
    assert SCHEMA.problems(back) == []
    exact = ["whole", "gap", "flag", "mood", "mix"]
    pd.testing.assert_frame_equal(back[exact], data[exact], check_exact=True)


@given(st.lists(rows, max_size=8))
@settings(max_examples=40)
def test_values_and_table_are_two_forms_of_the_same(drawn: list) -> None:
    data = SCHEMA.canonical(pd.DataFrame(drawn, columns=SCHEMA.names))
    values = values_of_table(data, SCHEMA)
    assert values.shape == (len(drawn), 7)
    pd.testing.assert_frame_equal(table_of(values, SCHEMA), data, check_exact=True)


def test_values_by_hand() -> None:
    data = pd.DataFrame(
        {
            "whole": [7, -17],
            "gap": [45.0, np.nan],
            "real": [0.5, np.inf],
            "hole": [np.nan, 1e6],
            "flag": [1.0, 0],
            "mood": ["high", "unheard of"],
            "mix": [None, "3"],
        }
    )
    nan = np.nan
    expected = [[7, 45, 0.5, nan, 1, 2, MISSING], [-17, nan, np.inf, 1e6, 0, OTHER, 1]]
    np.testing.assert_array_equal(values_of_table(data, SCHEMA), expected)


def test_a_stack_is_encoded_as_its_tables() -> None:
    rng = np.random.default_rng(0)
    matrices = rng.random((3, 5, width(SCHEMA)))
    tables = [decode(matrix, SCHEMA) for matrix in matrices]
    stacked = encode_values(np.stack([values_of_table(t, SCHEMA) for t in tables]), SCHEMA)
    np.testing.assert_array_equal(stacked, [encode(table, SCHEMA) for table in tables])


@given(st.lists(st.floats(-3, 3), min_size=15, max_size=15))
def test_whatever_the_matrix_the_table_fits_the_schema(numbers: list[float]) -> None:
    table = decode(np.array([numbers]), SCHEMA)
    assert SCHEMA.problems(table) == []
    assert table.dtypes.equals(SCHEMA.canonical(table).dtypes)


@pytest.mark.parametrize(
    "bounds", [(0.1, 0.7), (-1.6, 0.3), (-1e-300, 1e-300), (-1e300, 1e300), (1e9, 1e9 + 1)]
)
def test_the_bounds_themselves_survive(bounds: tuple[float, float]) -> None:
    schema = Schema(
        columns=(Column(name="x", kind=Kind.CONTINUOUS, lower=bounds[0], upper=bounds[1]),)
    )
    data = pd.DataFrame({"x": bounds})
    np.testing.assert_array_equal(decode(encode(data, schema), schema)["x"], bounds)


def test_an_indicator_in_the_middle_means_missing() -> None:
    schema = Schema(
        columns=(Column(name="x", kind=Kind.CONTINUOUS, lower=0, upper=1, missing=True),)
    )
    table = decode(np.array([[0.25, 0.5], [0.25, np.nextafter(0.5, 0)]]), schema)
    np.testing.assert_array_equal(table["x"], [np.nan, 0.25])


def test_text_in_a_number_is_refused() -> None:
    schema = Schema(columns=SCHEMA.columns[:1])
    with pytest.raises(
        SchemaError, match=r"a value is not a number \(1 row\(s\), first at row 1\)"
    ):
        values_of_table(pd.DataFrame({"whole": [1, "three"]}), schema)
    with pytest.raises(
        SchemaError, match=r"a value is not a number \(1 row\(s\), first at row 1\)"
    ):
        encode(pd.DataFrame({"whole": [1, "three"]}), schema)
