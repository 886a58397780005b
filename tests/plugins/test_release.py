"""How a release differs from the canonical table of its values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpaudit.external.session import FILE
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.plugins.release import RELEASE, accept_columns, release_facts, release_names

SCHEMA = Schema(
    columns=(
        Column(name="age", kind=Kind.INTEGER, lower=0, upper=99),
        Column(name="pay", kind=Kind.CONTINUOUS, lower=0, upper=9, missing=True),
        Column(name="job", kind=Kind.CATEGORICAL, categories=("a", "b"), missing=True),
        Column(name="paid", kind=Kind.BINARY, categories=(0, 1)),
    )
)
ROWS = {
    "age": [30, 40, 50],
    "pay": [1.5, np.nan, 0.0],
    "job": ["a", "b", np.nan],
    "paid": [0, 1, 1],
}


def plain() -> pd.DataFrame:
    return SCHEMA.canonical(pd.DataFrame(ROWS))


def facts(release: pd.DataFrame) -> dict[tuple[str, str], float]:
    """The facts that are not 0."""
    found = release_facts(release, accept_columns(release, SCHEMA, 3), SCHEMA)
    names = release_names(SCHEMA)
    assert len(found) == len(names) == len(set(names))
    assert np.isfinite(found).all()
    return {(*name,): value for name, value in zip(names, found, strict=True) if value}


def with_attribute(table: pd.DataFrame) -> pd.DataFrame:
    table.attrs["rows"] = 7
    return table


def of_file(text: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    def read(table: pd.DataFrame) -> pd.DataFrame:
        table.attrs[FILE] = text.encode()
        return table

    return read


class Named(pd.DataFrame):
    """Another type of table."""


def test_a_canonical_table_has_no_facts() -> None:
    assert facts(plain()) == {}


FILE_TEXT = plain().to_csv(index=False)


@pytest.mark.parametrize(
    ("write", "shown"),
    [
        (lambda t: t[["pay", "age", "job", "paid"]], {"columns out of order": 1}),
        (lambda t: t[["paid", "age", "pay", "job"]], {"columns out of order": 3}),
        (lambda t: t.rename_axis(columns="x"), {"kind of table and names of its axes": None}),
        (Named, {"kind of table and names of its axes": None}),
        (lambda t: t.set_flags(allows_duplicate_labels=False), {
            "kind of table and names of its axes": None}),
        (with_attribute, {"attributes": 1, "code of the attributes": None}),
        (lambda t: t.rename_axis(index="id"), {"kind of index": None}),
        (lambda t: t.set_axis(pd.Index(np.array([0, 1, 2]))), {"kind of index": None}),
        (lambda t: t.set_index(np.array([5, 9, 9])), {
            "kind of index": None, "smallest index label": 5, "largest index label": 7,
            "index labels that are not the row's number": 3, "repeated index labels": 1}),
        (lambda t: t.set_index(np.array([2, 1, 0])), {
            "index labels that are not the row's number": 2,
            "index labels below the one before": 2}),
        (lambda t: t.set_index(np.array(["x", "y", "zz"], dtype=object)), {
            "smallest index label": 1, "kind of index": None}),
        (of_file(FILE_TEXT), {}),
        (of_file(FILE_TEXT.replace("\n", "\r\n")), {
            "carriage returns in the file": 4, "bytes of the file beyond those of plain CSV": 4,
            "code of the file's first line": None}),
        (of_file(FILE_TEXT.replace("1.5", "1.50").replace(",b", ',"b"')), {
            "quotation marks in the file": 2, "bytes of the file beyond those of plain CSV": 3}),
    ],
)  # fmt: skip
def test_each_fact_of_the_whole(write: Any, shown: dict[str, float | None]) -> None:
    found = facts(write(plain()))
    if not shown:
        assert found == {}
    for name, value in shown.items():
        assert found[RELEASE, name] == (value if value is not None else found[RELEASE, name])


@pytest.mark.parametrize(
    ("column", "values", "shown"),
    [
        ("age", pd.Series([30, 40, 50], dtype="int8"), {"dtype as written": None}),
        ("age", pd.Series([30, 40, 50.0]), {"dtype as written": None}),
        ("pay", pd.Series([1.5, np.nan, -0.0]), {"negative zeros": 1}),
        ("pay", pd.Series(["1.50", None, "0.0"], dtype=object), {
            "dtype as written": None, "values of another type": 2, "values written otherwise": 1,
            "characters beyond the plain form": 1, "kinds of missing values": None,
            "code of the texts": None}),
        ("job", pd.Series(["a", "b", None], dtype=object), {"kinds of missing values": None}),
        ("job", pd.Series(["a", " B", np.nan], dtype=object), {
            "values written otherwise": 1, "padded texts": 1, "capital letters": 1,
            "characters beyond the plain form": 1, "code of the texts": None}),
        ("job", pd.Categorical(["a", "b", None], categories=["b", "a"]), {
            "dtype as written": None, "levels of the dtype": 2,
            "code of the dtype's levels": None}),
        ("paid", pd.Series([False, True, True]), {"dtype as written": None}),
        ("paid", pd.Series([0, True, 1.0], dtype=object), {
            "values of another type": 2, "values written otherwise": 2,
            "characters beyond the plain form": 5, "code of the texts": None,
            "capital letters": 1}),
    ],
)  # fmt: skip
def test_each_fact_of_a_column(column: str, values: Any, shown: dict[str, float | None]) -> None:
    found = facts(plain().assign(**{column: values}))
    assert {name for _, name in found} == set(shown)
    for name, value in shown.items():
        assert value is None or found[column, name] == value


def test_texts_that_differ_have_different_codes() -> None:
    def code(text: str) -> float:
        jobs = pd.Series([text, "b", np.nan], dtype=object)
        return facts(plain().assign(job=jobs))["job", "code of the texts"]

    assert len({code(text) for text in ("A", "a ", " a", "c", "C")}) == 5
    assert code("a\udfff") > 0  # any text has one


@pytest.mark.parametrize(
    "index",
    [
        pd.Index([1.5, np.nan, 2.0]),
        pd.Index(["a", 1, None], dtype=object),
        pd.Index([True, False, True]),
        pd.date_range("2020-01-01", periods=3, tz="UTC"),
        pd.period_range("2020-01", periods=3, freq="M"),
        pd.interval_range(0, 3),
        pd.CategoricalIndex(["x", "y", "x"]),
        pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)]),
        pd.Index([2**70, 1, 2], dtype=object),
        pd.Index([float("inf"), 1.0, 2.0]),
        pd.Index([(1, 2), (3, 4), (5, 6)], tupleize_cols=False),
    ],
    ids=repr,
)
def test_any_index_has_facts(index: pd.Index[Any]) -> None:
    assert facts(plain().set_axis(index))[RELEASE, "kind of index"] > 0


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("pay", pd.array([1, None, 0], dtype="Int64")),
        ("pay", pd.arrays.SparseArray([1.5, np.nan, 0.0])),
        ("pay", np.array([1.5, np.nan, 0.0], dtype=np.float32)),
        ("age", pd.array([30, 40, 50], dtype="UInt8")),
        ("age", pd.Series(["30", "40", "50"], dtype="string")),
        ("job", pd.array(["a", None, "z"], dtype="string")),
        ("job", pd.Series([("a", 1), ("b", 2), pd.NaT], dtype=object)),
        ("job", pd.Series([b"a", 3.5, pd.Timestamp(0)], dtype=object)),
        ("paid", pd.array([True, False, True], dtype="boolean")),
    ],
    ids=repr,
)
def test_any_dtype_has_facts(column: str, values: Any) -> None:
    assert {name for of, name in facts(plain().assign(**{column: values})) if of == column}


def test_a_number_of_numpy_is_of_another_type_and_written_alike() -> None:
    paid = pd.Series([np.int64(0), np.int64(1), 1], dtype=object)
    assert facts(plain().assign(paid=paid)) == {
        ("paid", "values of another type"): 2,
    }
