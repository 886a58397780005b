"""Features of a stack of tables: equal to plain loops, and each table as if it were alone."""

from __future__ import annotations

import tracemalloc
from itertools import combinations, product
from math import fsum, isnan, sqrt
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.model.column import Column, Kind
from dpaudit.model.encoding import table_of, values_of_table
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import BatchAttack, FloatArray, GameView
from dpaudit_attacks import columns as blocks
from dpaudit_attacks.form import TableForm
from dpaudit_attacks.groundhog import Correlation, Ensemble, Histogram, Naive
from dpaudit_attacks.marginals import MarginalQueries
from dpaudit_attacks.queries import AbsoluteQueries, TargetQueries, column_subsets
from dpaudit_attacks.tree_density import TreeDensity
from samples import game_view

BINS = 4
DISCRETE = Schema(
    columns=(
        Column(name="few", kind=Kind.INTEGER, lower=-1, upper=1, missing=True),
        Column(name="flag", kind=Kind.BINARY, categories=(False, True)),
        Column(name="job", kind=Kind.CATEGORICAL, categories=("a", "b", "c"), missing=True),
    )
)
MIXED = Schema(
    columns=(
        *DISCRETE.columns,
        Column(name="real", kind=Kind.CONTINUOUS, lower=0.0, upper=1.0),
        Column(name="hole", kind=Kind.CONTINUOUS, lower=-0.3, upper=0.9, missing=True),
        Column(name="whole", kind=Kind.INTEGER, lower=0, upper=10),
    )
)
Row = dict[str, Any]


def attacks(schema: Schema) -> list[BatchAttack]:
    found: list[BatchAttack] = [
        Naive(),
        Naive(spread="variance"),
        Histogram(bins=BINS),
        Correlation(),
        Ensemble(bins=BINS),
        TargetQueries(max_queries=40, bins=BINS),
    ]
    return [*found, AbsoluteQueries()] if schema is DISCRETE else found


# The oracle: one table, one column, one value at a time, in plain Python.


def is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and isnan(value))


def place(column: Column, value: Any) -> int | str:
    """The bin or category of a value."""
    if is_missing(value):
        return "missing"
    if not column.kind.numeric:
        return column.categories.index(value) if value in column.categories else "other"
    lower, upper = column.bounds
    if not lower <= value <= upper:
        return "below" if value < lower else "above"
    inner = [lower + (upper - lower) * k / BINS for k in range(1, BINS)]
    return sum(value >= edge for edge in inner)


def plain_naive(rows: list[Row], schema: Schema, spread: str = "std") -> list[float]:
    found: list[float] = []
    for column in schema.columns:
        values = [row[column.name] for row in rows]
        present = [value for value in values if not is_missing(value)]
        if column.kind.numeric:
            n = max(len(present), 1)
            ordered = sorted(present) or [0.0]
            mean = fsum(present) / n
            variance = fsum((value - mean) ** 2 for value in present) / n
            median = (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
            deviation = sqrt(variance) if spread == "std" else variance
            found += [ordered[0], ordered[-1], mean, median, deviation]
        else:
            codes = [place(column, value) for value in present]
            codes = [len(column.categories) if code == "other" else code for code in codes]
            times = {code: codes.count(code) for code in sorted(codes)}  # type: ignore[type-var]
            most = max(times, key=lambda code: times[code], default=-1)
            least = min(times, key=lambda code: times[code], default=-1)
            found += [float(most), float(least), len(times)]
        found += [1 - len(present) / len(rows)] * column.missing
    return found


def plain_histogram(rows: list[Row], schema: Schema) -> list[float]:
    found: list[float] = []
    for column in schema.columns:
        places = [place(column, row[column.name]) for row in rows]
        asked: list[int | str] = (
            ["below", *range(BINS), "above"]
            if column.kind.numeric
            else [*range(len(column.categories)), "other"]
        )
        asked += ["missing"] * column.missing
        found += [places.count(one) / len(rows) for one in asked]
    return found


def plain_correlation(rows: list[Row], schema: Schema) -> list[float]:
    coded: list[list[float]] = []
    for column in schema.columns:
        values = [row[column.name] for row in rows]
        missing = [float(is_missing(value)) for value in values]
        if column.kind.numeric:
            lower, upper = column.bounds
            coded.append([0.5 if is_missing(x) else (x - lower) / (upper - lower) for x in values])
        else:
            coded += [[float(value == c) for value in values] for c in column.categories]
        coded += [missing] * column.missing
    return [plain_pearson(x, y) for x, y in combinations(coded, 2)]


def plain_pearson(x: list[float], y: list[float]) -> float:
    if len(set(x)) == 1 or len(set(y)) == 1:
        return 0.0
    dx = [value - fsum(x) / len(x) for value in x]
    dy = [value - fsum(y) / len(y) for value in y]
    both = fsum(a * b for a, b in zip(dx, dy, strict=True))
    return both / sqrt(fsum(a * a for a in dx) * fsum(b * b for b in dy))


def plain_target(rows: list[Row], schema: Schema, target: Row) -> list[float]:
    def equal(column: Column, value: Any) -> bool:
        wanted = target[column.name]
        few = column.kind is Kind.INTEGER and column.bounds[1] - column.bounds[0] < BINS
        if few and not is_missing(value) and not is_missing(wanted):
            return bool(value == wanted)
        return place(column, value) == place(column, wanted)

    hits = [[equal(column, row[column.name]) for column in schema.columns] for row in rows]
    return [
        sum(all(hit for hit, asked in zip(row, subset, strict=True) if asked) for row in hits)
        for subset in column_subsets(len(schema.columns), 40)
    ]


def plain_absolute(rows: list[Row], schema: Schema) -> list[float]:
    def possible(column: Column) -> list[Any]:
        if not column.kind.numeric:
            known = list(column.categories)
        else:
            known = list(range(int(column.bounds[0]), int(column.bounds[1]) + 1))
        return known + ["missing"] * column.missing

    seen = [
        tuple("missing" if is_missing(row[name]) else row[name] for name in schema.names)
        for row in rows
    ]
    return [seen.count(point) for point in product(*map(possible, schema.columns))]


def plain(attack: BatchAttack, rows: list[Row], schema: Schema, target: Row) -> list[float]:
    match attack:
        case Naive():
            return plain_naive(rows, schema, attack.spread)
        case Histogram():
            return plain_histogram(rows, schema)
        case Correlation():
            return plain_correlation(rows, schema)
        case Ensemble():
            first = plain_naive(rows, schema) + plain_histogram(rows, schema)
            return first + plain_correlation(rows, schema)
        case TargetQueries():
            return plain_target(rows, schema, target)
    return plain_absolute(rows, schema)


# Random tables of tenths, so that bins' edges and ties are hit and no column is nearly constant.


def drawn(schema: Schema, n: int, rng: np.random.Generator) -> list[Row]:
    """Records inside and outside the schema; some columns are constant."""
    columns: dict[str, list[Any]] = {}
    for column in schema.columns:
        if column.kind is Kind.CONTINUOUS:
            known: list[Any] = [k / 10 for k in range(-9, 22)]
        elif column.kind is Kind.INTEGER:
            known = [*range(-2, 13), 0.5]
        else:
            known = [*column.categories, "unheard of"]
        known += [None] * (column.missing * (1 + len(known) // 3))
        repeats = n if rng.random() < 0.3 else 1
        picks = rng.integers(len(known), size=-(-n // repeats)).repeat(repeats)
        columns[column.name] = [known[pick] for pick in picks]
    return [{name: columns[name][i] for name in columns} for i in range(n)]


def canonical(rows: list[Row], schema: Schema) -> pd.DataFrame:
    return schema.canonical(pd.DataFrame(rows, columns=schema.names).astype(object))


@pytest.mark.parametrize("schema", [MIXED, DISCRETE], ids=["mixed", "discrete"])
@pytest.mark.parametrize("n", [1, 2, *(pytest.param(n, marks=pytest.mark.ci) for n in (3, 8)), 70])
def test_a_stack_agrees_with_plain_loops_and_with_each_table_alone(schema: Schema, n: int) -> None:
    for seed in range(8 if n < 70 else 3):
        rng = np.random.default_rng(seed)
        tables = [drawn(schema, n, rng) for _ in range(4)]
        (target,) = drawn(schema, 1, rng)
        read = [canonical(rows, schema) for rows in tables]
        values = np.stack([values_of_table(table, schema) for table in read])
        game = game_view(schema, canonical([target], schema))
        for attack in attacks(schema):
            found = attack.features_many(values, game)
            assert found.dtype == np.float64
            assert found.shape == (len(tables), len(attack.feature_names(game)))
            expected = [plain(attack, rows, schema, target) for rows in tables]
            exact = isinstance(attack, Histogram | TargetQueries | AbsoluteQueries)
            tolerance = 0.0 if exact else 1e-9
            # Sums are rounded in units of the column's width, 12 at most, or of its square.
            np.testing.assert_allclose(found, expected, rtol=tolerance, atol=20 * tolerance)
            alone = [attack.features(table, game) for table in read]
            np.testing.assert_array_equal(found, alone)


def slot(number: float, cuts: list[float]) -> int:
    """0 below, 1.. the bins (closed on the left, the last on both sides), above, missing."""
    if isnan(number):
        return len(cuts) + 1
    if number > cuts[-1]:
        return len(cuts)
    return min(sum(cut <= number for cut in cuts), len(cuts) - 1)


@settings(deadline=None)
@given(
    st.lists(st.floats(allow_infinity=False), min_size=1, max_size=6),
    st.lists(st.floats(-1e300, 1e300), min_size=2, max_size=2, unique=True),
    st.integers(1, 60),
    st.data(),
)
def test_any_number_is_in_the_one_bin_that_holds_it(
    numbers: list[float], bounds: list[float], bins: int, data: st.DataObject
) -> None:
    lower, upper = sorted(bounds)
    column = Column(name="x", kind=Kind.CONTINUOUS, lower=lower, upper=upper, missing=True)
    cuts = blocks.edges(column, bins).tolist()
    near = [*cuts, *np.nextafter(cuts, -np.inf).tolist(), *np.nextafter(cuts, np.inf).tolist()]
    numbers = data.draw(st.permutations(numbers + data.draw(st.lists(st.sampled_from(near)))))
    slots = [slot(number, cuts) for number in numbers]
    values = np.array(numbers)[None, :, None].repeat(2, axis=0)
    schema = Schema(columns=(column,))
    game = game_view(schema, table_of(values[0, :1], schema))
    shares = Histogram(bins=bins).features_many(values, game)
    counted = [slots.count(k) / len(slots) for k in range(bins + 3)]
    assert shares.tolist() == [counted, counted]
    equal = TargetQueries(bins=bins).features_many(values, game)
    assert equal.tolist() == [[len(slots), slots.count(slots[0])]] * 2


def stack(schema: Schema, m: int, n: int, seed: int = 0) -> FloatArray:
    """Values as a generator gives them, a fifth missing where they may be."""
    rng = np.random.default_rng(seed)
    parts = []
    for column in schema.columns:
        if column.kind.numeric:
            lower, upper = column.bounds
            numbers = lower + (upper - lower) * rng.random((m, n))
            numbers = np.rint(numbers) if column.kind is Kind.INTEGER else numbers
            parts.append(
                np.where(rng.random((m, n)) < 0.2 * column.missing, np.nan, numbers),
            )
        else:
            codes = rng.integers(-int(column.missing), len(column.categories), (m, n))
            parts.append(codes.astype(np.float64))
    return np.stack(parts, axis=-1)


def continuous(d: int) -> Schema:
    columns = (
        Column(name=f"x{i}", kind=Kind.CONTINUOUS, lower=-1.0, upper=i + 0.3) for i in range(d)
    )
    return Schema(columns=tuple(columns))


SHAPES: list[tuple[Schema, int]] = [
    (MIXED, 1),
    (MIXED, 67),
    (DISCRETE, 5),
    (continuous(1), 33),
    (continuous(3), 4),
    (continuous(7), 101),
    (continuous(29), 686),
]
IDS = [f"{len(schema.columns)} columns, {n} rows" for schema, n in SHAPES]


def every_attack(schema: Schema, n: int) -> list[tuple[BatchAttack, GameView]]:
    target = table_of(stack(schema, 1, n, seed=9)[0], schema).iloc[:1]
    return [(attack, game_view(schema, target)) for attack in attacks(schema)]


@pytest.mark.parametrize(("schema", "n"), SHAPES, ids=IDS)
@pytest.mark.parametrize(
    "block", [1, *(pytest.param(2**n, marks=pytest.mark.ci) for n in (11, 17)), 2**24]
)
def test_a_table_does_not_depend_on_the_others_by_a_bit(
    schema: Schema, n: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = stack(schema, 32, n)
    for attack, game in every_attack(schema, n):
        monkeypatch.undo()
        alone = np.concatenate([attack.features_many(one[None], game) for one in values])
        assert alone.size == 0 or len(np.unique(alone, axis=0)) > 1 or n == 1
        monkeypatch.setattr(blocks, "BLOCK", block)
        for m in (1, 3, 32):
            assert attack.features_many(values[-m:], game).tobytes() == alone[-m:].tobytes()
        backwards = attack.features_many(values[::-1], game)
        assert backwards.tobytes() == alone[::-1].tobytes()
        strided = attack.features_many(np.asfortranarray(values), game)
        assert strided.tobytes() == alone.tobytes()


@pytest.mark.parametrize("n", [1, 2, 11])
@pytest.mark.parametrize("schema", [MIXED, continuous(12), continuous(29)], ids=["6", "12", "29"])
@pytest.mark.parametrize("attack", [TableForm(), MarginalQueries(), TreeDensity()], ids=repr)
def test_sums_over_columns_do_not_depend_on_the_other_tables(
    attack: BatchAttack, schema: Schema, n: int
) -> None:
    """If tables have one row, numpy adds the columns of one and of many in different orders."""
    values = stack(schema, 16, n)
    game = game_view(schema, table_of(stack(schema, 1, n, seed=9)[0], schema).iloc[:1])
    alone = np.concatenate([attack.features_many(one[None], game) for one in values])
    assert attack.features_many(values, game).tobytes() == alone.tobytes()


@pytest.mark.parametrize("attack", attacks(MIXED), ids=repr)
def test_strange_neighbours_change_nothing(attack: BatchAttack) -> None:
    values = stack(MIXED, 5, 20)
    strange = values.copy()
    strange[0] = np.where(np.isnan(strange[0]), -1e300, 1e300)
    strange[0, :, 1:3] = -2  # categories that the schema does not name
    strange[2, :, 4] = np.nan
    strange[4] = strange[4, 0]
    game = game_view(MIXED, table_of(values[1, :1], MIXED))
    before, given_values = attack.features_many(values, game), strange.copy()
    after = attack.features_many(strange, game)
    assert np.isfinite(after).all()
    assert after[[1, 3]].tobytes() == before[[1, 3]].tobytes()
    assert not np.array_equal(after[0], before[0])
    np.testing.assert_array_equal(strange, given_values)  # what was handed in is left alone


@pytest.mark.parametrize("attack", attacks(DISCRETE), ids=repr)
def test_no_tables_have_no_features(attack: BatchAttack) -> None:
    game = game_view(DISCRETE, table_of(stack(DISCRETE, 1, 1)[0], DISCRETE))
    found = attack.features_many(stack(DISCRETE, 0, 6), game)
    assert found.shape == (0, len(attack.feature_names(game)))


def test_the_bins_of_integers_at_their_edges() -> None:
    # 15 * (332 / 20) is a little above 249 in floating point, and would put 249 one bin too low.
    schema = Schema(columns=(Column(name="x", kind=Kind.INTEGER, lower=0, upper=332),))
    values = np.array([[[249.0]], [[248.0]], [[332.0]], [[333.0]], [[-1.0]]])
    game = game_view(schema, table_of(values[0], schema))
    found = Histogram(bins=20).features_many(values, game)
    assert found.argmax(axis=1).tolist() == [16, 15, 20, 21, 0]
    counted = TargetQueries(bins=20).features_many(values, game)
    assert counted[:, 1].tolist() == [1, 0, 0, 0, 0]


def test_far_numbers_are_pulled_back_in_every_table() -> None:
    schema = continuous(2)
    values = np.zeros((2, 4, 2))
    values[1, 0] = [1e300, -np.inf]
    found = Naive().features_many(values, game_view(schema, table_of(values[0], schema)))
    # the bounds are -1 to 0.3 and -1 to 1.3: at most a million widths outside them
    assert found[1, 1] == pytest.approx(0.3 + 1.3e6, rel=1e-12)
    assert found[1, 5] == pytest.approx(-1 - 2.3e6, rel=1e-12)
    assert not found[0].any()


@pytest.mark.parametrize(
    "attack", [Naive(), Histogram(), Correlation(), Ensemble(), TargetQueries()], ids=repr
)
def test_memory_does_not_grow_with_the_number_of_tables(attack: BatchAttack) -> None:
    schema = continuous(29)
    game = game_view(schema, table_of(stack(schema, 1, 1)[0], schema))
    few, many = stack(schema, 8, 686), np.zeros((64, 686, 29))

    def working(values: FloatArray) -> float:
        tracemalloc.start()
        found = attack.features_many(values, game)
        peak = tracemalloc.get_traced_memory()[1] - found.nbytes
        tracemalloc.stop()
        return peak / 2**20

    attack.features_many(few[:1], game)  # subsets are drawn once and kept
    assert working(many) < working(few) + 2 < 32


def test_every_attack_says_that_it_takes_stacks() -> None:
    assert all(isinstance(attack, BatchAttack) for attack in attacks(DISCRETE))
