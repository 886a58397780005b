"""Digests of tables: equal for equal tables, and for no others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from dpaudit.game.features import digest_of
from dpaudit.model.column import Column, Kind
from dpaudit.model.encoding import values_of_table
from dpaudit.model.schema import Schema

SCHEMA = Schema(
    columns=(
        Column(name="age", kind=Kind.INTEGER, lower=0, upper=9, missing=True),
        Column(name="job", kind=Kind.CATEGORICAL, categories=("a", "b"), missing=True),
    )
)


def of(ages: list[Any], jobs: list[Any]) -> bytes:
    table = SCHEMA.canonical(pd.DataFrame({"age": ages, "job": jobs}))
    return digest_of(values_of_table(table, SCHEMA), table)


def test_a_table_is_one_table_however_it_was_made() -> None:
    assert of([1, 2, None], ["a", None, "x"]) == of([1.0, 2.0, np.nan], ["a", np.nan, "x"])
    values = np.array([[1.0, 0.0], [np.nan, -0.0]])
    assert digest_of(values) == digest_of(np.array([[1.0, -0.0], [-np.nan, 0.0]]))


def test_a_cell_an_unnamed_category_and_the_order_of_rows_make_another() -> None:
    found = [
        of([1, 2], ["a", "b"]),
        of([1, 3], ["a", "b"]),
        of([1, 2], ["a", "a"]),
        of([1, 2], ["a", "x"]),
        of([1, 2], ["a", "y"]),
        of([2, 1], ["b", "a"]),
    ]
    assert len(set(found)) == len(found)
    rows = np.array([[1.0, 0.0], [2.0, 1.0]])
    assert digest_of(rows) != digest_of(rows[::-1])
