from __future__ import annotations

import hashlib
import subprocess
import sys
from itertools import combinations, product
from math import comb

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dpaudit.errors import SettingsError
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FeatureName, GameView
from dpaudit_attacks.queries import AbsoluteQueries, TargetQueries, column_subsets, count_matches
from samples import game_view

BIT = [Column(name=name, kind=Kind.BINARY, categories=(0, 1)) for name in "xyz"]
CUBE = Schema(columns=tuple(BIT))


def game_of(schema: Schema, target: dict[str, object]) -> GameView:
    return game_view(schema, schema.canonical(pd.DataFrame([target], columns=schema.names)))


def counted(
    attack: TargetQueries | AbsoluteQueries, game: GameView, rows: list[dict[str, object]]
) -> dict[FeatureName, float]:
    table = game.schema.canonical(pd.DataFrame(rows, columns=game.schema.names))
    attack.check(game)
    names, values = attack.feature_names(game), attack.features(table, game)
    assert values.dtype == np.float64
    assert values.shape == (len(names),) == (len(set(names)),)
    return dict(zip(names, values.tolist(), strict=True))


def about(columns: str) -> FeatureName:
    return FeatureName(columns, "rows equal to the target")


def test_target_queries_by_hand() -> None:
    game = game_of(CUBE, {"x": 1, "y": 1, "z": 0})
    rows: list[dict[str, object]] = [
        {"x": 1, "y": 1, "z": 0},
        {"x": 1, "y": 1, "z": 1},
        {"x": 0, "y": 1, "z": 0},
        {"x": 5, "y": 0, "z": 1},
    ]
    assert counted(TargetQueries(), game, rows) == {
        about("any values"): 4,
        about("x"): 2,
        about("y"): 3,
        about("z"): 2,
        about("x & y"): 2,
        about("x & z"): 1,
        about("y & z"): 2,
        about("x & y & z"): 1,
    }


def test_what_equal_means() -> None:
    schema = Schema(
        columns=(
            Column(name="few", kind=Kind.INTEGER, lower=0, upper=9, missing=True),
            Column(name="many", kind=Kind.INTEGER, lower=0, upper=100, missing=True),
            Column(name="real", kind=Kind.CONTINUOUS, lower=0.0, upper=1.0),
            Column(name="kind", kind=Kind.CATEGORICAL, categories=("a", "b"), missing=True),
        )
    )
    game = game_of(schema, {"few": 3, "many": np.nan, "real": 1.0, "kind": np.nan})
    rows: list[dict[str, object]] = [
        {"few": 3, "many": 42, "real": 0.91, "kind": "zzz"},
        {"few": 3.5, "many": np.nan, "real": 1.01, "kind": "a"},
        {"few": 4, "many": -1, "real": 0.89, "kind": np.nan},
    ]
    found = counted(TargetQueries(), game, rows)
    assert [found[about(name)] for name in schema.names] == [1, 1, 1, 1]
    absent = game_of(schema, {"few": np.nan, "many": 5, "real": 0.5, "kind": "b"})
    rows_without: list[dict[str, object]] = [{**row, "few": np.nan} for row in rows[:2]]
    assert counted(TargetQueries(), absent, [*rows_without, rows[2]])[about("few")] == 2
    present = game_of(schema, {"few": 3, "many": 45, "real": 0.0, "kind": "a"})
    found = counted(TargetQueries(), present, rows)
    assert [found[about(name)] for name in schema.names] == [1, 1, 0, 1]
    fewer = counted(TargetQueries(bins=2), present, rows)
    assert [fewer[about(name)] for name in schema.names] == [3, 1, 0, 1]


@pytest.mark.parametrize(("upper", "classes"), [(9, 10), (10, 10), (100, 10)])
def test_whole_numbers_are_binned_as_soon_as_there_are_more_than_bins(
    upper: int, classes: int
) -> None:
    schema = Schema(columns=(Column(name="n", kind=Kind.INTEGER, lower=0, upper=upper), BIT[0]))
    bit = BIT[0].name
    rows: list[dict[str, object]] = [{"n": value, bit: 0} for value in range(upper + 1)]
    sizes = [
        counted(TargetQueries(bins=10), game_of(schema, row), rows)[about("n")] for row in rows
    ]
    assert sum(1.0 / size for size in sizes) == pytest.approx(classes)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_counts_agree_with_loops(data: st.DataObject) -> None:
    d = data.draw(st.integers(1, 12))
    equal = data.draw(arrays(np.bool_, (data.draw(st.integers(1, 30)), d)))
    subsets = data.draw(arrays(np.bool_, (data.draw(st.integers(1, 20)), d)))
    expected = [
        sum(all(row[c] for c in range(d) if subset[c]) for row in equal) for subset in subsets
    ]
    assert count_matches(equal[None], subsets).tolist() == [expected]


def test_counts_of_more_distinct_rows_than_a_block_and_of_many_columns() -> None:
    rng = np.random.default_rng(0)
    equal = rng.random((3000, 300)) < 0.99
    subsets = rng.random((50, 300)) < rng.random((50, 1))
    expected = [int(equal[:, subset].all(axis=1).sum()) for subset in subsets]
    assert count_matches(equal[None], subsets).tolist() == [expected]
    assert max(expected) > 0


@pytest.mark.parametrize("d", [1, 2, 5, 12])
def test_all_subsets_where_they_fit(d: int) -> None:
    subsets = column_subsets(d, 4096)
    assert len(subsets) == 2**d == len(np.unique(subsets, axis=0))


@pytest.mark.parametrize(("d", "most"), [(13, 4096), (31, 4096), (31, 33), (31, 40), (400, 4096)])
def test_a_sample_of_subsets_where_they_do_not_fit(d: int, most: int) -> None:
    subsets = column_subsets(d, most)
    orders = subsets.sum(axis=1)
    assert len(np.unique(subsets, axis=0)) == len(subsets) <= most
    assert len(subsets) > 0.99 * most
    assert orders[0] == 0
    assert orders[-1] == d
    assert (np.diff(orders) >= 0).all()
    assert (orders == 1).sum() == d


def test_low_orders_come_first() -> None:
    orders = np.bincount(column_subsets(31, 4096).sum(axis=1), minlength=32)
    assert orders[2] == comb(31, 2)
    assert orders[3] == (4096 - 2 - 31 - comb(31, 2) + 1) // 2
    assert orders[4] == pytest.approx(orders[3] / 2, abs=1)
    pairs = column_subsets(31, 4096)[32 : 32 + comb(31, 2)]
    assert [tuple(np.flatnonzero(p).tolist()) for p in pairs] == list(combinations(range(31), 2))


def test_the_same_subsets_in_every_process() -> None:
    code = (
        "import hashlib; from dpaudit_attacks.queries import column_subsets;"
        "print(hashlib.sha256(column_subsets(31, 4096).tobytes()).hexdigest())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    here = hashlib.sha256(column_subsets(31, 4096).tobytes()).hexdigest()
    assert done.stdout.strip() == here
    assert not column_subsets(31, 4096).flags.writeable


def test_too_few_queries_are_refused() -> None:
    game = game_of(CUBE, {"x": 1, "y": 1, "z": 0})
    with pytest.raises(SettingsError, match=r"max_queries=4 is too few for 3 columns.*at least 5"):
        TargetQueries(max_queries=4).check(game)
    TargetQueries(max_queries=5).check(game)
    with pytest.raises(SettingsError, match="`max_queries` must be a whole number"):
        TargetQueries(max_queries=0)


def test_the_empty_query_counts_rows_whatever_they_hold() -> None:
    game = game_of(CUBE, {"x": 1, "y": 1, "z": 0})
    rows: list[dict[str, object]] = [{"x": "?", "y": None, "z": i} for i in range(7)]
    assert counted(TargetQueries(), game, rows)[about("any values")] == 7


def test_absolute_queries_by_hand() -> None:
    schema = Schema(
        columns=(
            Column(name="n", kind=Kind.INTEGER, lower=2, upper=3, missing=True),
            Column(name="c", kind=Kind.CATEGORICAL, categories=("a", "b"), missing=True),
        )
    )
    game = game_of(schema, {"n": 2, "c": "a"})
    rows: list[dict[str, object]] = [
        {"n": 2, "c": "b"},
        {"n": 2, "c": "b"},
        {"n": 3, "c": np.nan},
        {"n": np.nan, "c": np.nan},
        {"n": 2.5, "c": "a"},
        {"n": 4, "c": "a"},
        {"n": 2, "c": "unknown"},
    ]
    found = counted(AbsoluteQueries(), game, rows)
    shown = product(["2", "3", "missing"], ["'a'", "'b'", "missing"])
    assert [str(name) for name in found] == [f"rows equal to ({n}, {c}) (n & c)" for n, c in shown]
    assert list(found.values()) == [0, 2, 0, 0, 0, 1, 0, 0, 1]


def test_names_of_points_do_not_hold_the_values_of_an_inferred_schema() -> None:
    """Its bounds are values of records: names number the values instead."""
    column = Column(name="age", kind=Kind.INTEGER, lower=41, upper=43)
    inferred = Schema(columns=(column,), inferred=True)
    names = AbsoluteQueries().feature_names(game_of(inferred, {"age": 42}))
    assert [name.feature for name in names] == [f"rows equal to (value {n})" for n in (1, 2, 3)]


def test_missing_is_no_point_where_it_never_may_be() -> None:
    schema = Schema(columns=(Column(name="n", kind=Kind.INTEGER, lower=0, upper=1), BIT[0]))
    rows: list[dict[str, object]] = [{"n": np.nan, "x": 1}, {"n": 1, "x": np.nan}]
    found = counted(AbsoluteQueries(), game_of(schema, {"n": 0, "x": 0}), rows)
    assert list(found.values()) == [0, 0, 0, 0]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(*[st.integers(0, 1)] * 3), min_size=1))
def test_absolute_queries_agree_with_loops(points: list[tuple[int, ...]]) -> None:
    game = game_of(CUBE, {"x": 1, "y": 1, "z": 1})
    found = counted(AbsoluteQueries(), game, [dict(zip("xyz", p, strict=True)) for p in points])
    expected = [points.count(p) for p in product((0, 1), repeat=3)]
    assert list(found.values()) == expected


def test_domains_that_cannot_be_counted_are_refused() -> None:
    wide = [Column(name=f"w{i}", kind=Kind.INTEGER, lower=0, upper=99) for i in range(2)]
    game = game_of(Schema(columns=tuple(wide)), {"w0": 0, "w1": 0})
    with pytest.raises(SettingsError, match="10000 points, more than max_points=4096"):
        AbsoluteQueries().check(game)
    AbsoluteQueries(max_points=10_000).check(game)
    huge = tuple(Column(name=f"h{i}", kind=Kind.INTEGER, lower=0, upper=9) for i in range(60))
    with pytest.raises(SettingsError, match=r"about 10\^60 points"):
        AbsoluteQueries().check(game_of(Schema(columns=huge), {}))
    real = Column(name="height", kind=Kind.CONTINUOUS, lower=0.0, upper=1.0)
    with pytest.raises(SettingsError, match="continuous column \\('height'\\)"):
        AbsoluteQueries().check(game_of(Schema(columns=(real,)), {"height": 0.5}))
