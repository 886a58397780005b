"""Scaling as published PATE-GANs do it: spans, bounds from data, and outputs not turned back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpaudit.model.column import Column, Kind
from dpaudit.model.encoding import encode, values_of, values_of_table
from dpaudit.model.encoding import width as encoded_width
from dpaudit.model.schema import Schema
from dpaudit_generators.published import scaling as scalings
from dpaudit_generators.published.recipes import Span, Switch
from dpaudit_generators.published.scaling import (
    COMPONENTS,
    PUBLIC,
    SLOTS,
    Scaling,
    fit_mixture,
    fit_scaling,
)

SCHEMA = Schema(
    columns=(
        Column(name="age", kind=Kind.INTEGER, lower=0, upper=120),
        Column(name="rent", kind=Kind.CONTINUOUS, lower=-50.0, upper=350.0, missing=True),
        Column(name="town", kind=Kind.CATEGORICAL, categories=("a", "b", "c"), missing=True),
        Column(name="ill", kind=Kind.BINARY, categories=(0, 1)),
    )
)


def table(n: int = 200, seed: int = 3) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    rent = np.where(rng.random(n) < 0.5, rng.normal(40.0, 3.0, n), rng.normal(200.0, 10.0, n))
    rent[::7] = np.nan
    town = pd.Series(rng.choice(["a", "b", "c"], n), dtype=object)
    town[::5] = np.nan
    return pd.DataFrame(
        {"age": rng.integers(18, 81, n), "rent": rent, "town": town, "ill": rng.integers(0, 2, n)}
    )


def scaling(data: pd.DataFrame, span: Span, *switches: Switch, schema: Schema = SCHEMA) -> Scaling:
    return fit_scaling(data, schema, span=span, switches=switches)


@pytest.mark.parametrize("span", Span)
@pytest.mark.parametrize("switches", [(), (Switch.BOUNDS_FROM_DATA,)])
def test_a_table_comes_back(span: Span, switches: tuple[Switch, ...]) -> None:
    data = table()
    fitted = scaling(data, span, *switches)
    matrix = fitted.encode(data)
    assert matrix.dtype == np.float32
    assert matrix.shape == (200, fitted.width)
    assert matrix.min() >= (0.0 if span is Span.UNIT else -1.0)
    assert matrix.max() <= 1.0
    values = fitted.values(matrix)
    expected = values_of_table(data, SCHEMA)
    np.testing.assert_array_equal(values[:, [0, 2, 3]], expected[:, [0, 2, 3]])
    np.testing.assert_allclose(values[:, 1], expected[:, 1], atol=1e-3)
    for group in fitted.groups:
        np.testing.assert_array_equal(matrix[:, group].sum(axis=1), 1.0)


def test_the_unit_span_is_the_encoding() -> None:
    data = table()
    data.loc[0, "age"] = 300  # beyond the bounds: counts as one
    fitted = scaling(data, Span.UNIT)
    assert fitted.width == encoded_width(SCHEMA)
    assert fitted.groups == (slice(3, 7), slice(7, 9))
    expected = np.clip(encode(data, SCHEMA), 0.0, 1.0)
    np.testing.assert_array_equal(fitted.encode(data), expected.astype(np.float32))
    random = np.random.default_rng(0).uniform(-0.5, 1.5, (4, 30, fitted.width))
    np.testing.assert_array_equal(fitted.values(random), values_of(random, SCHEMA))
    symmetric = scaling(data, Span.SYMMETRIC)
    expected[:, [0, 1]] = 2.0 * expected[:, [0, 1]] - 1.0
    np.testing.assert_array_equal(symmetric.encode(data), expected.astype(np.float32))


def test_bounds_are_public_unless_switched() -> None:
    data = table()
    public: dict[str, Any] = {"age": (0.0, 120.0), "rent": (-50.0, 350.0)}
    for span in Span:
        assert scaling(data, span).numbers == public
        assert scaling(data, span) == scaling(data[:3], span)  # no data read
    own = {
        "age": (float(data["age"].min()), float(data["age"].max())),
        "rent": (float(data["rent"].min()), float(data["rent"].max())),
    }
    for span in (Span.UNIT, Span.SYMMETRIC):
        assert scaling(data, span, Switch.BOUNDS_FROM_DATA).numbers == own


@pytest.mark.parametrize("span", Span)
def test_what_is_not_turned_back_stays_in_the_unit_interval(span: Span) -> None:
    data = table()
    for switches in [(), (Switch.BOUNDS_FROM_DATA,)]:
        fitted = scaling(data, span, *switches, Switch.OUTPUT_NOT_INVERTED)
        ages = fitted.values(fitted.encode(data))[:, 0]
        lower, upper = fitted.schema.columns[0].bounds
        np.testing.assert_allclose(ages, (data["age"] - lower) / (upper - lower), atol=1e-6)
        random = np.random.default_rng(0).uniform(-2.0, 2.0, (30, fitted.width))
        values = fitted.values(random)
        np.testing.assert_array_equal(values, fitted.unrounded(random))
        assert np.nanmin(values[:, :2]) >= 0.0
        assert np.nanmax(values[:, :2]) <= 1.0


def test_shifted_outputs_span_the_upper_bound() -> None:
    column = Column(name="age", kind=Kind.INTEGER, lower=10, upper=80)
    fitted = scaling(table(), Span.UNIT, Switch.OUTPUT_SHIFTED, schema=Schema(columns=(column,)))
    ages = fitted.unrounded(np.array([[0.0], [0.503], [1.0]]))[:, 0]
    np.testing.assert_allclose(ages, [10.0, 50.24, 90.0])
    truncated = scaling(
        table(),
        Span.UNIT,
        Switch.OUTPUT_SHIFTED,
        Switch.INTEGERS_TRUNCATED,
        schema=Schema(columns=(column,)),
    )
    assert truncated.values(np.array([[0.0], [0.5099], [1.0]]))[:, 0].tolist() == [10, 50, 90]


def test_integers_are_rounded_to_the_nearest_or_down() -> None:
    places = np.zeros((1, 1000, encoded_width(SCHEMA)), np.float32)
    places[..., 0] = np.linspace(0.0, 1.0, 1000)
    for switch, shift in ((None, 0.0), (Switch.INTEGERS_TRUNCATED, -0.5)):
        fitted = scaling(table(), Span.UNIT, *([switch] if switch else []))
        difference = (fitted.values(places) - fitted.unrounded(places))[..., 0]
        assert difference.mean() == pytest.approx(shift, abs=0.01)
        assert np.ptp(difference) <= 1.0
        np.testing.assert_array_equal(fitted.values(places)[..., 1], -50.0)  # not an integer


@pytest.mark.parametrize("span", Span)
def test_no_table_of_a_stack_depends_on_the_others(span: Span) -> None:
    data = table()
    fitted = scaling(data, span, Switch.BOUNDS_FROM_DATA)
    stack = np.random.default_rng(4).uniform(-1.2, 1.2, (8, 37, fitted.width)).astype(np.float32)
    together = fitted.values(stack)
    for count in (1, 3):
        for first in (0, 2, 5):
            part = slice(first, first + count)
            np.testing.assert_array_equal(fitted.values(stack[part]), together[part])
    np.testing.assert_array_equal(fitted.values(stack[4]), together[4])


def test_a_fitted_mixture_finds_the_modes() -> None:
    data = table(600)
    fitted = scaling(data, Span.MIXTURE, Switch.BOUNDS_FROM_DATA)
    assert fitted.width == encoded_width(SCHEMA) + 2 * SLOTS
    assert fitted.possible.sum() < fitted.width
    assert not fitted.encode(data)[:, ~fitted.possible].any()
    rent = np.array(fitted.numbers["rent"]).reshape(-1, 2)
    for mean, deviation in ((40.0, 3.0), (200.0, 10.0)):
        near = rent[np.abs(rent[:, 0] - mean) < 3.0 * deviation]
        assert len(near) > 0
        assert near[:, 1].max() < 15.0  # of all: 80; the prior widens each
    # u = 1 is four deviations above the mean of the slot's component.
    row = np.zeros((1, fitted.width))
    row[0, 1] = 1.0
    row[0, encoded_width(SCHEMA) + SLOTS] = 0.5
    row[0, encoded_width(SCHEMA) + 2 * SLOTS - 1] = 9.0  # of no component
    mean, deviation = rent[0]
    assert fitted.values(row)[0, 1] == pytest.approx(mean + 4.0 * deviation)


def test_few_values_are_one_hot_as_the_table_has_them() -> None:
    schema = Schema(
        columns=(
            Column(name="tests", kind=Kind.INTEGER, lower=0, upper=30),
            Column(name="dose", kind=Kind.CONTINUOUS, lower=0.0, upper=2.0),
            Column(name="town", kind=Kind.CATEGORICAL, categories=("a", "b", "c")),
            Column(name="age", kind=Kind.INTEGER, lower=0, upper=120),
        )
    )
    rng = np.random.default_rng(2)
    data = pd.DataFrame(
        {
            "tests": rng.choice([0, 1, 2, 7], 90),
            "dose": rng.choice([0.25, 1.5], 90),
            "town": rng.choice(["a", "c"], 90),
            "age": rng.integers(20, 80, 90),
        }
    )
    fitted = scaling(data, Span.MIXTURE, Switch.BOUNDS_FROM_DATA, schema=schema)
    assert fitted.possible.sum() == 4 + 2 + 2 + (1 + COMPONENTS)
    assert [group.start for group in fitted.groups] == sorted(g.start for g in fitted.groups)
    assert len(fitted.groups) == 4
    assert len(fitted.categories) == 3  # a mixture's components are no values
    assert fitted.numbers["tests"] == (0.0, 1.0, 2.0, 7.0)
    np.testing.assert_array_equal(
        fitted.values(fitted.encode(data))[:, :3], values_of_table(data, schema)[:, :3]
    )
    # Whatever a network makes, what the table lacks cannot come out.
    random = rng.normal(size=(500, fitted.width)) * fitted.possible
    random[:, ~fitted.possible] = 0.0
    random[:, list(fitted.absent)] = -9.0
    values = fitted.values(random)
    assert set(values[:, 0]) == {0.0, 1.0, 2.0, 7.0}
    assert set(values[:, 1]) == {0.25, 1.5}
    assert set(values[:, 2]) == {0.0, 2.0}
    ages = data["age"]
    assert ages.min() <= values[:, 3].min() <= values[:, 3].max() <= ages.max()


def test_few_values_are_public_without_the_deviation() -> None:
    whole = Column(name="whole", kind=Kind.INTEGER, lower=2, upper=11)
    wide = Column(name="wide", kind=Kind.INTEGER, lower=2, upper=12)
    real = Column(name="real", kind=Kind.CONTINUOUS, lower=0.0, upper=1.0)
    schema = Schema(columns=(whole, wide, real))
    data = pd.DataFrame({"whole": [3, 4], "wide": [3, 4], "real": [0.1, 0.2]})
    public = scaling(data, Span.MIXTURE, schema=schema)
    assert public.numbers["whole"] == pytest.approx(tuple(range(2, 12)))
    assert public.codings[1:] == (PUBLIC, PUBLIC)
    assert public == scaling(data[:1], Span.MIXTURE, schema=schema)


def test_one_record_moves_a_fitted_mixture() -> None:
    data = table()
    more = pd.concat([data, data[:1].assign(age=119)], ignore_index=True)
    for span in Span:
        fitted = [scaling(each, span, Switch.BOUNDS_FROM_DATA).numbers for each in (data, more)]
        assert fitted[0]["age"] != fitted[1]["age"]
        assert fitted[0]["rent"] == fitted[1]["rent"]


def test_a_mixture_is_fitted_once_and_forgets_the_order() -> None:
    values = np.random.default_rng(0).random(300)
    first = fit_mixture(values)
    assert fit_mixture(values[::-1]) is first
    scalings._fitted.clear()
    assert fit_mixture(values) == first
    assert fit_mixture(values[1:]) != first


@pytest.mark.parametrize(
    "ages", [[], [7], [7, 7, 7], [0, 0, 120], [1, 2, 3, 4, 5], [0, 0, 0, 0, 1], [np.nan] * 3]
)
def test_tiny_and_constant_columns(ages: list[float]) -> None:
    schema = Schema(columns=(Column(name="age", kind=Kind.INTEGER, lower=0, upper=120),))
    data = pd.DataFrame({"age": pd.Series(ages, dtype=float)})
    for span in Span:
        fitted = scaling(data, span, Switch.BOUNDS_FROM_DATA, schema=schema)
        values = fitted.values(fitted.encode(data))[:, 0]
        assert len(values) == len(ages)
        if not np.isnan(ages).any():
            np.testing.assert_array_equal(values, ages)
    assert fit_mixture(np.empty(0)) is PUBLIC
