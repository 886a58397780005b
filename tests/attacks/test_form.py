"""The form of a table, counted by hand; what it sees and what it does not."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations
from math import comb, log

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import mutual_info_score, roc_auc_score

from dpaudit.model.column import Column, Kind
from dpaudit.model.encoding import values_of_table
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FloatArray
from dpaudit_attacks.columns import ColumnStack
from dpaudit_attacks.form import FEATURE_GROUPS, TableForm, relations
from dpaudit_attacks.form.known import NEAR_KNOWN, RADII
from dpaudit_attacks.form.numbers import FINE
from dpaudit_attacks.form.rows import MOST_PAIRS, WHOLE, order_names
from dpaudit_attacks.form.view import TableView
from samples import game_view

SCHEMA = Schema(
    columns=(
        Column(name="age", kind=Kind.INTEGER, lower=0, upper=100),
        Column(name="pay", kind=Kind.CONTINUOUS, lower=0.0, upper=10.0, missing=True),
        Column(name="job", kind=Kind.CATEGORICAL, categories=("a", "b", "c"), missing=True),
        Column(name="sick", kind=Kind.BINARY, categories=(0, 1)),
    )
)
TARGET = pd.DataFrame({"age": [40], "pay": [2.25], "job": ["b"], "sick": [1]})
ROWS = pd.DataFrame(
    {
        "age": [10, 40, 40, 75, 75, 41],
        "pay": [1.0, 2.25, 2.25, np.nan, 9.5, 2.125],
        "job": ["a", "b", "b", "c", np.nan, "b"],
        "sick": [0, 1, 1, 0, 0, 0],
    }
)


def measured(
    table: pd.DataFrame, schema: Schema = SCHEMA, target: pd.DataFrame = TARGET
) -> dict[tuple[str, str], float]:
    """The features by column and name."""
    game = game_view(schema, schema.canonical(target), n_rows=len(table))
    names = TableForm().feature_names(game)
    values = TableForm().features(schema.canonical(table), game)
    assert len(set(names)) == len(names) == len(values)
    assert np.isfinite(values).all()
    return {tuple(name): value for name, value in zip(names, values.tolist(), strict=True)}


def test_each_group_says_whether_it_depends_on_the_target() -> None:
    """Of a unit's rows only groups that do are averaged: one that hides it sees the first alone."""
    other = pd.DataFrame({"age": [75], "pay": [9.0], "job": ["a"], "sick": [0]})
    rounded = pd.DataFrame({"age": 50, "pay": [3.0, 3.3, 4.0], "job": "a", "sick": 0})  # 3.5
    stack, known = (
        ColumnStack.of(values_of_table(SCHEMA.canonical(table), SCHEMA)[None], SCHEMA)
        for table in (pd.concat([ROWS, rounded]), ROWS)
    )
    first, second = (
        TableView(
            SCHEMA,
            stack,
            ColumnStack.of(values_of_table(SCHEMA.canonical(target), SCHEMA)[None], SCHEMA),
            known,
        )
        for target in (TARGET, other)
    )
    for group in FEATURE_GROUPS:
        same = np.array_equal(group.values(first), group.values(second))
        assert same != group.of_target, group.values.__name__


@pytest.mark.parametrize(
    ("column", "feature", "expected"),
    [
        ("age", "steps up from row to row", 2),
        ("age", "rows equal to the row before", 2),
        ("age", "mean step from row to row", (30 + 35 + 34) / 100 / 6),
        ("age", "value of the first row", 0.1),
        ("age", "value of the last row", 0.41),
        ("age", "position of the value nearest to the target", 1 / 6),
        ("age", "drift over the rows", (-0.1 - 0.24 - 0.08 + 0.15 + 0.45 + 0.41) / 6),
        ("age", "even rows minus odd rows", (0.1 - 0.4 + 0.4 - 0.75 + 0.75 - 0.41) / 6),
        ("job", "rows equal to the row before", 1),
        ("job", "rows equal to the row before the one before", 0),
        ("job", "category of the first row", 0),
        ("sick", "category of the last row", 0),
        (WHOLE, "repeated rows", 1),
        (WHOLE, "rows equal to the row before", 1),
        (WHOLE, "most copies of a row", 2),
        ("pay", "rows repeated but for this column", 1),
        ("pay", "numbers of at most 0 decimals", 1),
        ("pay", "numbers of at most 1 decimals", 2),
        ("pay", "numbers of at most 2 decimals", 4),
        ("pay", "numbers of at most 3 decimals", 5),
        ("pay", "whole quarters", 4),
        ("age", "last digit 0", 3),
        ("age", "last digit 5", 2),
        ("age", "even last digit", 3),
        ("pay", "last digit 5", 2),  # at two decimals, as the target is written
        ("pay", "last digit 2", 1),
        ("age", "distinct values", 4),
        ("age", "values that occur once", 2),
        ("age", "most copies of a value", 2),
        ("age", "smallest gap between values", 0.01),
        ("age", "largest gap between values", 0.34),
        ("age", "second smallest", 0.4),
        ("age", "third smallest", 0.4),
        ("age", "second largest", 0.75),
        ("age", "gap above the smallest", 0.3),
        ("age", "gap below the largest", 0.0),
        ("pay", "second largest", 0.225),
        ("pay", "gap below the largest", 0.725),
        ("pay", "values that occur once", 3),
        ("pay", "most copies of a value", 2),
        ("age", "values equal to the target's", 2),
        ("age", "values within 0.01 of the range from the target's", 3),
        ("age", "values below the target's", 1),
        ("pay", "values within 0.03 of the range from the target's", 3),
        ("pay", "distance of the second nearest value to the target's", 0.0),
        (WHOLE, "distance of row 1 in nearness to the target", 0.0),
        (WHOLE, "distance of row 3 in nearness to the target", (0.01 + 0.0125 + 1) / 4),
        (WHOLE, "rows within 0.01 of the target", 2),
        (WHOLE, "rows within 0.3 of the target", 3),
        (WHOLE, "position of the row nearest to the target", 1 / 6),
        (WHOLE, "equal to the target in all numbers", 2),
        (WHOLE, "equal to the target in all categories", 2),
        (WHOLE, "rows equal to the target in at least 1 columns", 3),
        (WHOLE, "rows equal to the target in at least 2 columns", 2),
        (WHOLE, "rows equal to the target in at least 4 columns", 2),
        (WHOLE, "rows nearly equal to the target in at least 2 columns", 3),
        (WHOLE, "missing values", 2),
        (WHOLE, "rows with 1 missing values", 2),
        (WHOLE, "rows with 2 missing values", 0),
        ("pay & job", "rows where both are missing", 0),
        ("pay", "missing values in neighbouring rows", 0),
    ],
)
def test_features_are_those_counted_by_hand(column: str, feature: str, expected: float) -> None:
    assert measured(ROWS)[column, feature] == pytest.approx(expected, abs=1e-9)


def test_mutual_information_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(1)
    n = 400  # quartiles of distinct numbers split them evenly
    x = rng.permutation(n) / 40
    table = pd.DataFrame({"age": 50, "pay": x, "job": "a", "sick": (np.abs(x - 5) < 2).astype(int)})
    table["job"] = rng.choice(["a", "b", "c"], n)
    found = measured(table)
    quarters = np.searchsorted(np.quantile(x, [0.25, 0.5, 0.75], method="nearest"), x, side="right")
    information = mutual_info_score(quarters, table["sick"])
    assert found["pay & sick", "mutual information"] == pytest.approx(information, abs=0.01)
    assert found["pay & sick", "mutual information"] > 0.3
    independent = mutual_info_score(table["job"], table["sick"])
    assert found["job & sick", "mutual information"] == pytest.approx(independent)
    table["sick"] = (table["job"] == "a").astype(int)
    shares = np.array([(table["sick"] == one).mean() for one in (0, 1)])
    entropy = -(shares * np.log(shares)).sum()
    assert measured(table)["job & sick", "mutual information"] == pytest.approx(entropy)
    assert entropy < log(2)


def test_information_of_the_next_row_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(2)
    table = pd.DataFrame({"age": 50, "pay": 1.0, "job": rng.choice(["a", "b", "c"], 90), "sick": 0})
    table.loc[1:, "sick"] = (table["job"][:-1] == "c").to_numpy().astype(int)
    found = measured(table)
    for one, other in (("job", "sick"), ("sick", "job"), ("job", "job")):
        expected = mutual_info_score(table[one][:-1], table[other][1:])
        assert found[f"{one} & {other}", relations.NEXT_ROW] == pytest.approx(expected)
    assert found["job & sick", relations.NEXT_ROW] > 0.5 > found["job & sick", relations.SAME_ROW]


def test_only_the_order_of_rows_changes_under_a_shuffle() -> None:
    shuffled = ROWS.iloc[[3, 5, 0, 2, 4, 1]].reset_index(drop=True)
    before, after = measured(ROWS), measured(shuffled)
    changed = {key for key in before if abs(before[key] - after[key]) > 1e-12}
    game = game_view(SCHEMA, SCHEMA.canonical(TARGET))
    of_order = {tuple(name) for name in order_names(SCHEMA)}
    of_order |= {key for key in before if "position" in key[1] or "drift" in key[1]}
    of_order |= {(WHOLE, "rows equal to the row before")}
    later = relations.NEXT_ROW, relations.LATER_ROW
    of_order |= {key for key in before if key[1] in later}
    of_order |= {key for key in before if key[1].endswith("mean of the rows before and after")}
    of_order |= {
        key
        for key in before
        if key[1].startswith(("distance of the first", "distance of the last"))
    }
    assert changed <= of_order
    assert ("age", "mean step from row to row") in changed
    assert len(TableForm().feature_names(game)) == len(before)


@pytest.mark.parametrize("n", [1, 2, 3, 40])
@pytest.mark.parametrize(
    "columns",
    [
        SCHEMA.columns,
        SCHEMA.columns[:1],
        SCHEMA.columns[1:2],
        SCHEMA.columns[2:],
        SCHEMA.columns[3:],
    ],
    ids=["mixed", "integer", "real", "categories", "binary"],
)
def test_every_table_has_the_same_features_alone_and_in_a_stack(
    n: int, columns: tuple[Column, ...]
) -> None:
    schema = Schema(columns=columns)
    target = schema.canonical(TARGET)
    tables: list[FloatArray] = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        table = pd.DataFrame(
            {
                "age": rng.integers(-300, 300, n),  # outside the bounds too
                "pay": rng.choice([np.nan, 2.25, 1e300, -3.0], n),
                "job": rng.choice(np.array(["a", "z", np.nan], dtype=object), n),
                "sick": rng.integers(0, 2, n),
            }
        )
        if seed < 2:  # whole tables have fewer groups of values
            table = table.fillna({"pay": 2.0, "job": "a"}).replace({"job": {"z": "a"}})
        tables.append(values_of_table(schema.canonical(table), schema))
    game = game_view(schema, target, n_rows=n)
    stack = np.stack(tables)
    found = TableForm().features_many(stack, game)
    assert found.shape == (5, len(TableForm().feature_names(game)))
    assert np.isfinite(found).all()
    alone = np.concatenate([TableForm().features_many(one[None], game) for one in tables])
    np.testing.assert_array_equal(found, alone)
    for size in (2, 3):
        np.testing.assert_array_equal(TableForm().features_many(stack[-size:], game), alone[-size:])


@pytest.mark.parametrize("columns", [1, 30])
def test_rows_near_a_known_record_are_those_of_a_comparison_of_all(columns: int) -> None:
    rng = np.random.default_rng(columns)
    schema = Schema(
        columns=tuple(
            Column(name=f"x{i}", kind=Kind.CONTINUOUS, lower=0, upper=1, missing=True)
            for i in range(columns)
        )
    )
    known = rng.random((80, columns)) * 1.2 - 0.1  # outside the bounds too
    known[rng.random(known.shape) < 0.1] = np.nan
    reach = rng.choice([0.0005, 0.001, 0.005, 0.01, 0.0499, 0.0501, 0.2], (2, 60, 1))
    tables = known[rng.integers(80, size=(2, 60))] + reach * rng.uniform(-1, 1, (2, 60, columns))
    tables[:, :3] = rng.random((2, 3, columns))
    apart = np.abs(tables[:, :, None] - known)
    apart[np.isnan(tables)[:, :, None] & np.isnan(known)] = 0
    nearest = np.where(np.isnan(apart), np.inf, apart).max(axis=-1).min(axis=-1)
    view = TableView(
        schema, *(ColumnStack.of(rows, schema) for rows in (tables, known[None, :1], known[None]))
    )
    found = NEAR_KNOWN.values(view)[:, :3]
    expected = [np.minimum(nearest.min(axis=1), 0.05), *((nearest <= r).sum(axis=1) for r in RADII)]
    np.testing.assert_allclose(found, np.column_stack(expected), atol=1e-12)
    assert columns == 1 or (nearest > 0.05).any()


def test_a_target_with_missing_values_is_near_rows_that_miss_the_same() -> None:
    target = TARGET.assign(pay=np.nan, job=np.nan)
    found = measured(ROWS.assign(job=np.nan), target=target)
    assert found[WHOLE, "rows equal to the target in at least 2 columns"] == 3
    assert found["pay", "values within 0.1 of the range from the target's"] == 0
    assert found["pay", "distance of the nearest value to the target's"] == 1


def test_wide_tables_have_so_many_pairs_and_no_more() -> None:
    wide = Schema(
        columns=tuple(
            Column(name=f"x{i}", kind=Kind.CONTINUOUS, lower=0, upper=1, missing=True)
            for i in range(60)
        )
    )
    table = wide.canonical(
        pd.DataFrame(np.random.default_rng(0).random((9, 60)), columns=wide.names)
    )
    found = measured(table, wide, table[:1])
    pairs = [key for key in found if key[1] == "mutual information"]
    assert len(pairs) == relations.MOST_DEPENDENT
    assert {f"x{i} & x{i + 1}" for i in range(59)} <= {key[0] for key in pairs}
    both = [key for key in found if key[1] == "rows where both are missing"]
    assert len(both) == MOST_PAIRS < len(list(combinations(range(60), 2)))


def documented(schema: Schema) -> int:
    """How many features the docstring of `TableForm` promises."""
    d = len(schema.columns)
    numeric = [c for c in schema.columns if c.kind.numeric]
    continuous = [c for c in numeric if c.kind is Kind.CONTINUOUS]
    missing = [c for c in schema.columns if c.missing]
    c, parts = len(numeric), sum(len(one.categories) for one in schema.columns)
    n = 62 * c + 38 * len(continuous) + 6 * (d - c) + 2 * d + 2 * d + 24
    n += 2 * min(comb(c, 2), 64) + min(comb(c, 3), 32) + min(comb(d, 3), 128)
    n += 2 * min(c * parts, 64)
    n += 2 * c + min(comb(d, 3), 128) + (6 if c else 0)
    n += 3 * (d - c + 1) if d - c > 1 else 3 * (d - c)
    n += 2 * min(comb(len(continuous), 2), 64) + min(comb(len(continuous), 3), 32)
    n += min(d * (d - 1) // 2, 1024) + min(d * d, 1024) + 16 + 12 * d
    n += 5 * c + min(d * d, 146) + 2 * (2 if c > 2 else 1 if c == 2 else 0)
    n += min(c, 64) + (min(c, 64) + min(d - c, 64) if d > c else 0) if c else 0
    if missing:
        k = len(missing)
        n += 5 + 2 * k + min(k * (k - 1) // 2, 256)
    return n


@pytest.mark.parametrize("columns", [SCHEMA.columns, SCHEMA.columns[:1], SCHEMA.columns[2:]])
def test_there_are_as_many_features_as_documented(columns: tuple[Column, ...]) -> None:
    schema = Schema(columns=columns)
    found = measured(ROWS[schema.names], schema, TARGET[schema.names])
    assert len(found) == documented(schema)


def honest(n: int, rng: np.random.Generator) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "age": rng.integers(0, 100, n),
            "pay": rng.uniform(0, 10, n).round(2),
            "job": rng.choice(["a", "b", "c"], n),
            "sick": rng.integers(0, 2, n),
        }
    )


def held_out(trials: int, *, sorts: bool) -> float:
    """Held-out AUC against a generator that sorts its output in world "in", or never."""
    game = game_view(SCHEMA, SCHEMA.canonical(TARGET), n_rows=40)
    member, features = np.arange(trials) % 2 == 1, []
    for trial in range(trials):
        table = honest(40, np.random.default_rng(trial))
        if member[trial] and sorts:
            table = table.sort_values("pay", ignore_index=True)
        features.append(TableForm().features(SCHEMA.canonical(table), game))
    matrix, half = np.array(features), trials // 2
    scorer = TableForm().fit(matrix[:half], member[:half], seed=1)
    return float(roc_auc_score(member[half:], scorer(matrix[half:])))


def test_a_generator_that_sorts_is_caught() -> None:
    assert held_out(60, sorts=True) == 1.0


@pytest.mark.ci
def test_where_the_worlds_do_not_differ_nothing_is_found() -> None:
    # 150 models are scored: the standard error of the AUC under the null is .047.
    assert held_out(300, sorts=False) == pytest.approx(0.5, abs=0.17)


def test_last_bits_are_those_of_exact_fractions() -> None:
    rng = np.random.default_rng(3)
    numbers = [*rng.laplace(size=60), *(rng.laplace(size=60) + 1.0), 0.0, -0.5, 3.25, 2.0**-70, 1e6]
    table = pd.DataFrame({"age": 1, "pay": [*numbers, np.nan], "job": "a", "sick": 0})
    found = measured(table)
    exact = [Fraction(number) for number in numbers]
    for k in FINE:
        finer = sum((number * 2**k).denominator > 1 for number in exact)
        assert found["pay", f"numbers that are no multiples of 2^-{k}"] == finer
    zeros = [(int(math.ldexp(math.frexp(x)[0], 53)) if x else 1) for x in numbers]
    mean = sum((whole & -whole).bit_length() - 1 for whole in zeros) / len(table)
    assert found["pay", "mean of zero bits"] == pytest.approx(mean, abs=1e-9)


def test_floating_point_noise_shows_and_snapped_noise_does_not() -> None:
    rng = np.random.default_rng(5)

    def share(noise: FloatArray, value: float) -> float:
        table = pd.DataFrame({"age": 1, "pay": value + noise, "job": "a", "sick": 0})
        return measured(table)["pay", "numbers that are no multiples of 2^-53"] / len(table)

    naive = rng.laplace(size=2000)
    assert share(naive, 1.0) == 0
    assert 0.24 < share(naive, 0.0) < 0.30
    snapped = np.rint(naive * 1024) / 1024
    assert share(snapped, 0.0) == share(snapped, 1.0) == 0
