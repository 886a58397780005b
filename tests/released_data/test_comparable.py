"""Rows that can be compared whatever was done about repeated rows."""

import numpy as np

from dpaudit.released_data.exchangeability import comparable_rows


def test_rows_that_occur_once_in_continuous_columns_are_all_comparable() -> None:
    assert comparable_rows(np.random.default_rng(0).normal(size=(300, 3))).all()
    assert comparable_rows(np.arange(20.0)[:, None]).all()


def test_equal_rows_are_not_comparable_missing_values_included() -> None:
    values = np.random.default_rng(0).normal(size=(50, 2))
    values[7], values[3, 1], values[4] = values[9], np.nan, [values[3, 0], np.nan]
    assert np.flatnonzero(~comparable_rows(values)).tolist() == [3, 4, 7, 9]


def test_a_row_that_would_repeat_by_chance_is_not_comparable() -> None:
    rng = np.random.default_rng(0)
    values = np.column_stack([rng.normal(size=400), rng.integers(2, size=400)])
    values[1] = [values[0, 0], 1.0 - values[0, 1]]  # differs from row 0 in a column of two values
    assert np.flatnonzero(~comparable_rows(values)).tolist() == [0, 1]


def test_a_row_that_differs_in_a_value_that_never_repeats_is_comparable() -> None:
    values = np.column_stack([np.zeros(100), np.arange(100.0)])
    assert comparable_rows(values).all()


def test_what_is_comparable_does_not_depend_on_the_order_of_rows() -> None:
    rng = np.random.default_rng(1)
    values = rng.integers(9, size=(200, 4)).astype(float)
    order = rng.permutation(len(values))
    found = comparable_rows(values)
    assert found.any()
    assert not found.all()
    assert (comparable_rows(values[order]) == found[order]).all()


def test_a_single_row_is_comparable() -> None:
    assert comparable_rows(np.zeros((1, 2))).tolist() == [True]
