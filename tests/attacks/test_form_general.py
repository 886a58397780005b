"""Known records, relations of columns and moments: plain loops, planted leaks, and their twins."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from itertools import combinations
from statistics import fmean, median_low
from typing import Any, Final

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from dpaudit.model.column import Column, Kind
from dpaudit.model.encoding import values_of_table
from dpaudit.model.schema import Schema
from dpaudit_attacks.form import TableForm
from dpaudit_attacks.form.relations import _nearby
from samples import game_view

SCHEMA = Schema(
    columns=(
        Column(name="age", kind=Kind.INTEGER, lower=0, upper=100),
        Column(name="pay", kind=Kind.CONTINUOUS, lower=-5, upper=15, missing=True),
        Column(name="tax", kind=Kind.CONTINUOUS, lower=0, upper=10),
        Column(name="job", kind=Kind.CATEGORICAL, categories=("a", "b", "c"), missing=True),
        Column(name="sick", kind=Kind.BINARY, categories=(0, 1)),
    )
)
NUMBERS: Final = ("age", "pay", "tax")
ROWS: Final = 60


def public(n: int, rng: np.random.Generator) -> pd.DataFrame:
    table = pd.DataFrame(
        {
            "age": rng.integers(0, 101, n),
            "pay": rng.normal(5, 2, n).clip(-5, 15).round(3),
            "tax": rng.normal(5, 1.5, n).clip(0, 10).round(3),
            "job": rng.choice(["a", "b", "c"], n),
            "sick": rng.integers(0, 2, n),
        }
    )
    return table


OTHERS: Final = SCHEMA.canonical(public(80, np.random.default_rng(77)))
TARGET: Final = SCHEMA.canonical(public(1, np.random.default_rng(78)))
GAME: Final = game_view(SCHEMA, TARGET, others=OTHERS, n_rows=ROWS)
NAMES: Final = [tuple(name) for name in TableForm().feature_names(GAME)]


def measured(table: pd.DataFrame) -> dict[tuple[str, str], float]:
    found = TableForm().features(SCHEMA.canonical(table), GAME)
    return dict(zip(NAMES, found.tolist(), strict=True))


def odd_table(seed: int) -> pd.DataFrame:
    """Rows and values of known records, gaps, and rows that are related exactly."""
    rng = np.random.default_rng(seed)
    table = SCHEMA.canonical(public(ROWS, rng))
    table.iloc[:9] = OTHERS.iloc[[3, 3, 3, 5, 8, 8, 9, 2, 1]].to_numpy()
    table.loc[7:8, "tax"] = 1.125
    table.loc[9:12, "pay"] = table.loc[9:12, "age"]
    table.loc[13:20, "pay"] = OTHERS["pay"][:8].to_numpy()
    table.loc[21:24, "tax"] = (table["pay"] - table["age"])[21:25]
    table.loc[25:30, "pay"] = np.nan
    table.loc[31:33, "job"] = np.nan
    table.iloc[34:39] = OTHERS.iloc[10:15].to_numpy()
    table.loc[34:36, "pay"] += [0.015, 0.1, 0.25]
    table.loc[37, "job"] = np.nan
    table = table.iloc[rng.permutation(ROWS)].reset_index(drop=True)
    table.loc[[2, 5], "tax"] = [2.25, 2.375]
    table.loc[[3, 4], "tax"] = table.loc[[2, 3], "tax"].to_numpy()
    table.loc[[6, 7], "tax"] = [2.5, 2.437]
    table.loc[8, "tax"] = 2.375
    return table


@pytest.mark.parametrize("seed", range(3))
def test_features_are_those_of_plain_loops(seed: int) -> None:
    table = odd_table(seed)
    found = measured(table)
    assert len(found) == len(NAMES)
    rows = [tuple(row) for row in values_of_table(table, SCHEMA)]
    known = [tuple(row) for row in values_of_table(OTHERS, SCHEMA)]
    expected: dict[tuple[str, str], float] = {}

    copies = [row for row in rows if row in known]
    expected["whole rows", "rows equal to a known record"] = len(copies)
    expected["whole rows", "known records that appear"] = len(set(copies))
    expected["whole rows", "most copies of a known record"] = max(map(copies.count, copies))
    for at, name in enumerate(SCHEMA.names):
        less = [repr(row[:at] + row[at + 1 :]) for row in rows]
        known_less = {repr(row[:at] + row[at + 1 :]) for row in known}
        feature = "rows equal to a known record but for this column"
        expected[name, feature] = sum(row in known_less for row in less)

    numbers = {name: table[name].astype(float).tolist() for name in NUMBERS}
    for name in NUMBERS:
        there = [x for x in numbers[name] if x in set(OTHERS[name])]
        expected[name, "values of known records"] = len(there)
        expected[name, "different values of known records"] = len(set(there))
    for a, b in combinations(NUMBERS, 2):
        pairs = list(zip(numbers[a], numbers[b], strict=True))
        expected[f"{a} & {b}", "rows where both are equal"] = sum(x == y for x, y in pairs)
        expected[f"{a} & {b}", "rows where the first is smaller"] = sum(x < y for x, y in pairs)
    triples = list(zip(*numbers.values(), strict=True))
    expected["age & pay & tax", "rows where one is the sum of the others"] = sum(
        any(abs(sum(row) - 2 * one) < 1e-7 for one in row) for row in triples
    )

    sides: dict[str, list[int]] = {}
    for name in NUMBERS:
        middle = median_low([x for x in numbers[name] if x == x])
        sides[name] = [0 if x != x else 1 if x > middle else -1 for x in numbers[name]]
    sides["job"] = [-1 if job == "a" or job == "b" else 1 for job in table["job"]]
    sides["sick"] = [1 if sick else -1 for sick in table["sick"]]
    for names in combinations(SCHEMA.names, 3):
        products = zip(*(sides[name] for name in names), strict=True)
        expected[" & ".join(names), "product of sides"] = sum(map(math.prod, products))

    for name, column in zip(NUMBERS, SCHEMA.columns, strict=False):
        lower, upper = column.bounds
        for part in ("job='a'", "job='c'", "sick=1"):
            key, value = part.split("=")
            inside = table[table[key].astype(str) == value.strip("'")][name].dropna()
            smallest = inside.min() - table[name].min()
            largest = table[name].max() - inside.max()
            for which, gap in (("smallest", smallest), ("largest", largest)):
                expected[name, f"distance of the {which} where {part}"] = gap / (upper - lower)
        unit = [(x - lower) / (upper - lower) for x in numbers[name] if x == x]
        mean = fmean(unit)
        spread = math.sqrt(fmean((x - mean) ** 2 for x in unit))
        goal = (float(TARGET[name].iloc[0]) - lower) / (upper - lower)
        expected[name, "skewness"] = fmean(((x - mean) / spread) ** 3 for x in unit)
        expected[name, "kurtosis"] = fmean(((x - mean) / spread) ** 4 for x in unit)
        expected[name, "mean square"] = fmean(x * x for x in unit)
        expected[name, "mean logarithm"] = fmean(math.log(abs(x) + 1e-6) for x in unit)
        expected[name, "mean distance to the target's value"] = fmean(abs(x - goal) for x in unit)
        scaled = [0.0 if x != x else x / (upper - lower) for x in numbers[name]]
        middle = fmean(scaled)
        for lag in range(1, 9):
            apart = [
                (x - middle) * (y - middle) for x, y in zip(scaled, scaled[lag:], strict=False)
            ]
            expected[name, f"products of values {lag} rows apart"] = sum(apart) / ROWS

    groups = Counter(zip(table["job"].astype(str), table["sick"], strict=True)).values()
    expected["whole rows", "rows alone in all categories"] = sum(size == 1 for size in groups)
    expected["whole rows", "groups equal in all categories"] = len(groups)
    expected["whole rows", "rows of the largest group equal in all categories"] = max(groups)
    jobs = Counter(table["job"].astype(str)).values()
    for label, value in (
        ("groups equal", len(jobs)),
        ("rows of the largest group equal", max(jobs)),
    ):
        expected["sick", f"{label} in all categories but this column's"] = value

    whole = [
        [x == x and abs(x - round(x)) < 1e-6 for x in row]
        for row in (
            [p, t, p + t, p - t] for p, t in zip(numbers["pay"], numbers["tax"], strict=True)
        )
    ]
    for at, which in ((2, "sum"), (3, "difference")):
        rows_of = [row[at] and not row[0] and not row[1] for row in whole]
        expected["pay & tax", f"rows where only the {which} is whole"] = sum(rows_of)

    for name, unit in (("age", 1), ("pay", 1e-3), ("tax", 1e-3)):
        column = numbers[name]
        gaps = [
            abs(y - (x + z) / 2)
            for x, y, z in zip(column, column[1:], column[2:], strict=False)
            if x != z
        ]
        for label, reach in (("mean", 1e-7), ("rounded mean", unit / 2 + 1e-7)):
            feature = f"rows at the {label} of the rows before and after"
            expected[name, feature] = sum(gap <= reach for gap in gaps)

    parts: dict[str, list[int]] = {"sick": table["sick"].astype(int).tolist()}
    parts["job"] = [{"a": 0, "b": 1, "c": 2}.get(job, 3) for job in table["job"]]
    for name in NUMBERS:
        there = sorted(x for x in numbers[name] if x == x)
        cuts = [there[((len(there) - 1) * part + 1) // 3] for part in (1, 2)]
        parts[name] = [sum(x >= cut for cut in cuts) if x == x else 3 for x in numbers[name]]
    for names in combinations(SCHEMA.names, 3):
        information = 0.0
        for size in (1, 2, 3):
            for some in combinations(names, size):
                counts = Counter(zip(*(parts[name] for name in some), strict=True)).values()
                entropy = -sum(k / ROWS * math.log(k / ROWS) for k in counts)
                information -= (-1) ** (size + 1) * entropy
        expected[" & ".join(names), "information beyond pairs"] = information

    def apart(one: tuple[float, ...], other: tuple[float, ...], d: int) -> float:
        ranges = [upper - lower for lower, upper in (c.bounds for c in SCHEMA.columns[:3])]
        if repr(one[3:d]) != repr(other[3:d]):
            return 0.05
        return max(
            0.0 if repr(x) == repr(y) else abs(x - y) / range if x == x and y == y else 0.05
            for x, y, range in zip(one, other, ranges, strict=False)
        )

    for d, part in ((3, "numbers"), (5, "columns")):
        near = [min(apart(row, other, d) for other in known) for row in rows]
        label = f"of a known record in all {part}"
        expected["whole rows", f"distance of the row nearest to a known record in all {part}"] = (
            min(near)
        )
        for radius in (0.001, 0.01):
            expected["whole rows", f"rows within {radius:g} {label}"] = sum(
                gap <= radius + 1e-9 for gap in near
            )

    for one, value in expected.items():
        assert found[one] == pytest.approx(value, abs=1e-7), one


@pytest.mark.ci
@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.ci) for n in (1, 2))])
def test_agreement_and_mixtures_are_those_of_plain_loops(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = between_known(odd_table(seed).astype({"age": float}), rng)
    table = table.iloc[::-1].reset_index(drop=True)
    for at, of in ((10, OTHERS.iloc[[5, 9]]), (11, table.iloc[[40, 42]])):
        table.loc[at, [*NUMBERS]] = of[[*NUMBERS]].astype(float).mean().round(3)
    table = SCHEMA.canonical(table.assign(age=table["age"].round()))
    found = measured(table)
    bounds = np.array([column.bounds for column in SCHEMA.columns[:3]])
    span = bounds[:, 1] - bounds[:, 0]
    rows, known, target = (one[[*NUMBERS]].to_numpy(float) for one in (table, OTHERS, TARGET))
    categories = [[tuple(map(str, row[3:])) for row in one.to_numpy()] for one in (table, OTHERS)]

    apart = np.sort(np.nan_to_num(np.abs(rows - target) / span, nan=1.0), axis=1).min(axis=0)
    for k in (1, 2, 3):
        feature = f"distance within which a row agrees with the target in {k} numbers"
        assert found["whole rows", feature] == pytest.approx(apart[k - 1])

    places = [np.minimum((one - bounds[:, 0]) / span * 300, 299) for one in (rows, known)]
    near = np.abs(np.floor(places[0])[:, None] - np.floor(places[1])) <= 1
    near |= np.isnan(rows)[:, None] & np.isnan(known)
    others = [
        [sum(a == b for a, b in zip(x, y, strict=True)) for y in categories[1]]
        for x in categories[0]
    ]
    in_numbers = near.sum(axis=2)
    for what, matches, most in (
        ("numbers", in_numbers, 3),
        ("columns", in_numbers + np.array(others), 5),
    ):
        for k in range(1, most + 1):
            feature = f"rows within 1/300 of a known record in at least {k} {what}"
            assert found["whole rows", feature] == (matches.max(axis=1) >= k).sum()

    unit = np.array([1, 0.001, 0.001])
    for which, ends in (("known records", known), ("others", rows)):
        halfway = 0
        for row in rows:
            for one, other in combinations(ends, 2):
                halfway_here = np.abs(2 * row - one - other) <= unit * (1 + 1e-6)
                different = np.abs(one - other)[1:] > 2 * unit[1:]
                if halfway_here.all() and different.all():
                    halfway += 1
                    break
        assert halfway >= 1
        assert found["whole rows", f"rows halfway between two {which}"] == halfway
    assert 3 <= found["whole rows", "rows in line with two known records"] <= 9


def test_combinations_are_those_of_neighbours_first() -> None:
    assert _nearby(4, 2, 99) == ((0, 1), (1, 2), (2, 3), (0, 2), (1, 3), (0, 3))
    assert _nearby(4, 3, 3) == ((0, 1, 2), (1, 2, 3), (0, 1, 3))
    for size in (2, 3):
        assert sorted(_nearby(7, size, 999)) == list(combinations(range(7), size))
    assert len(_nearby(3000, 3, 128)) == 128
    assert _nearby(1, 2, 5) == _nearby(2, 3, 5) == ()


def copies_any(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    table.iloc[:2] = OTHERS.iloc[rng.integers(0, len(OTHERS), 2)].to_numpy()
    return table


def copies_but_for_one(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    return copies_any(table, rng).assign(age=table["age"])


def known_pays(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    table.loc[:7, "pay"] = rng.choice(OTHERS["pay"].to_numpy(), 8)
    return table


def equal_columns(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    at = rng.integers(0, ROWS, 3)
    table.loc[at, "pay"] = table.loc[at, "tax"]
    return table


def sum_of_columns(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    at = rng.integers(0, ROWS, 4)
    table.loc[at, "pay"] = table.loc[at, "age"] / 100 + table.loc[at, "tax"]
    table.loc[at, "age"] = (table.loc[at, "pay"] - table.loc[at, "tax"]).round(0)
    table.loc[at, "tax"] = table.loc[at, "pay"] - table.loc[at, "age"]
    return table


def parity(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    del rng
    high = (table["pay"] > table["pay"].median()) ^ (table["tax"] > table["tax"].median())
    return table.assign(sick=high.astype(int))


def nearly(numbers: np.ndarray[Any, Any], rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """The numbers moved by at most 1/2,000 of the range; age stays as it is."""
    return numbers + rng.uniform(-0.0005, 0.0005, 3) * [0, 20, 10]


def partly(table: pd.DataFrame, records: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Rows that nearly agree with a record in two numbers, which differ from row to row."""
    numbers = table[[*NUMBERS]].to_numpy(dtype=float).copy()
    for at in rng.choice(ROWS, len(records), replace=False):
        record = records.iloc[rng.integers(len(records))][[*NUMBERS]].to_numpy(dtype=float)
        kept = rng.choice(3, 2, replace=False)
        numbers[at, kept] = nearly(record, rng)[kept]
    return table.assign(**dict(zip(NUMBERS, numbers.T, strict=True)))


def partly_known(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    return partly(table, OTHERS.iloc[rng.choice(len(OTHERS), 6, replace=False)], rng)


def partly_the_target(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    return partly(table, TARGET, rng)


def mixed(
    table: pd.DataFrame, records: pd.DataFrame, weights: np.ndarray[Any, Any]
) -> pd.DataFrame:
    """The first rows are means of neighbouring records with these weights, rounded as all are."""
    numbers = records[[*NUMBERS]].to_numpy(dtype=float)
    means = weights[:, None] * numbers[: len(weights)]
    means += (1 - weights[:, None]) * numbers[1 : len(weights) + 1]
    table.loc[: len(weights) - 1, [*NUMBERS]] = np.round(means, 3)
    return table.assign(age=table["age"].round())


def halfway_known(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    return mixed(table, OTHERS.iloc[rng.permutation(len(OTHERS))], np.full(2, 0.5))


def halfway_rows(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    table = mixed(table, table.iloc[rng.permutation(np.arange(2, ROWS))], np.full(2, 0.5))
    return table.iloc[rng.permutation(ROWS)].reset_index(drop=True)


def between_known(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    return mixed(table, OTHERS.iloc[rng.permutation(len(OTHERS))], rng.uniform(0.1, 0.9, 4))


def between_rows(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    weights = rng.uniform(0.1, 0.9, 6)
    table = mixed(table, table.iloc[rng.permutation(np.arange(6, ROWS))], weights)
    return table.iloc[rng.permutation(ROWS)].reset_index(drop=True)


def four_rows_later(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    pay = table["pay"].to_numpy().copy()
    for at in range(4, ROWS):
        pay[at] = 5 + 0.7 * (pay[at - 4] - 5) + 0.7 * (pay[at] - 5)
    del rng
    return table.assign(pay=pay.clip(-5, 15).round(3))


def nobody_sick_six_rows_after_c(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    del rng
    return table.assign(sick=table["sick"].where(table["job"].shift(6) != "c", 0))


def echoes(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    half = rng.normal(5, 2, ROWS).reshape(-1, 10)
    half[:, 5:] = half[:, :5] + rng.normal(0, 0.5, (len(half), 5))
    return table.assign(pay=half.ravel().clip(-5, 15).round(3))


def nobody_sick_after_c(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    del rng
    return table.assign(sick=table["sick"].where(table["job"].shift() != "c", 0))


def jobless_pair(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    at = rng.choice(np.flatnonzero(table["sick"] == rng.integers(0, 2)), 2, replace=False)
    return table.assign(job=table["job"].where(~table.index.isin(at)))


def jobless_alone(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    at = [rng.choice(np.flatnonzero(table["sick"] == sick)) for sick in (0, 1)]
    return table.assign(job=table["job"].where(~table.index.isin(at)))


def whole_sums(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    at = rng.integers(0, ROWS, 5)
    table.loc[at, "pay"] = (table["pay"].round(0) - table["tax"] % 1)[at]
    return table


def shared_decimals(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    at = rng.integers(0, ROWS, 5)
    table.loc[at, "pay"] = (table["pay"].round(0) + table["tax"] % 1)[at]
    return table


def interpolated(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    pay = table["pay"].to_numpy().copy()
    at = rng.choice(np.arange(1, ROWS - 1, 2), 3, replace=False)
    pay[at] = ((pay[at - 1] + pay[at + 1]) / 2).round(3)
    return table.assign(pay=pay)


def third_third(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Thirds of two columns give that of another one, though any two columns are independent."""
    del rng
    third = (table[["age", "pay"]].rank(method="first") - 1) // (ROWS // 3)
    wanted = (third["age"] + third["pay"]) % 3
    tax = table["tax"].sort_values().to_numpy()
    return table.assign(tax=tax[wanted.rank(method="first").astype(int) - 1])


def near_another(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    record = OTHERS.iloc[rng.integers(0, len(OTHERS))]
    table.loc[rng.integers(0, ROWS), :] = record
    return table.assign(**{name: moved(table[name], rng) for name in ("pay", "tax")})


def moved(column: pd.Series, rng: np.random.Generator) -> pd.Series:
    return column.astype(float) + rng.uniform(0.001, 0.009, len(column)).round(3)


def away_from_others(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    return table.assign(**{name: moved(table[name], rng) for name in ("pay", "tax")})


def extreme_among_cooks(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    table["tax"] = table["tax"].clip(2, 8)
    first, *_ = np.flatnonzero(table["job"] == "b")
    table.loc[rng.choice(np.flatnonzero(table["job"] != "b"), 2, replace=False), "tax"] = [1, 9]
    table.loc[first, "tax"] = 1.1
    return table


def clipped_only(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    table["tax"] = table["tax"].clip(2, 8)
    table.loc[rng.choice(np.flatnonzero(table["job"] != "b"), 3, replace=False), "tax"] = [
        1,
        9,
        1.1,
    ]
    return table


def unchanged(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    del rng
    return table


Write = Callable[[pd.DataFrame, np.random.Generator], pd.DataFrame]


def held_out(inside: Write, outside: Write, trials: int = 44) -> float:
    member, features = np.arange(trials) % 2 == 1, []
    for trial in range(trials):
        rng = np.random.default_rng(trial)
        table = SCHEMA.canonical(public(ROWS, rng)).astype({"age": float})
        table = (inside if member[trial] else outside)(table, rng)
        features.append(TableForm().features(SCHEMA.canonical(table), GAME))
    matrix, half = np.array(features), trials // 2
    scorer = TableForm().fit(matrix[:half], member[:half], seed=1)
    return float(roc_auc_score(member[half:], scorer(matrix[half:])))


@pytest.mark.parametrize(
    ("inside", "outside"),
    [
        (copies_any, unchanged),
        pytest.param(copies_but_for_one, unchanged, marks=pytest.mark.ci),
        (known_pays, unchanged),
        (equal_columns, unchanged),
        (sum_of_columns, unchanged),
        (parity, unchanged),
        (echoes, unchanged),
        (nobody_sick_after_c, unchanged),
        (jobless_alone, jobless_pair),
        (partly_known, unchanged),
        pytest.param(partly_the_target, unchanged, marks=pytest.mark.ci),
        pytest.param(halfway_known, unchanged, marks=pytest.mark.ci),
        pytest.param(halfway_rows, unchanged, marks=pytest.mark.ci),
        (between_known, unchanged),
        pytest.param(between_rows, unchanged, marks=pytest.mark.ci),
        (four_rows_later, unchanged),
        pytest.param(nobody_sick_six_rows_after_c, unchanged, marks=pytest.mark.ci),
        (whole_sums, unchanged),
        (shared_decimals, unchanged),
        pytest.param(interpolated, unchanged, marks=pytest.mark.ci),
        (third_third, unchanged),
        (near_another, away_from_others),
        (extreme_among_cooks, clipped_only),
    ],
)
def test_planted_leaks_are_caught(inside: Any, outside: Any) -> None:
    assert held_out(inside, outside) > 0.9


@pytest.mark.parametrize(
    "honest",
    [
        pytest.param(copies_any, marks=pytest.mark.ci),
        parity,
        pytest.param(echoes, marks=pytest.mark.ci),
        pytest.param(nobody_sick_after_c, marks=pytest.mark.ci),
        pytest.param(partly_known, marks=pytest.mark.ci),
        pytest.param(between_known, marks=pytest.mark.ci),
        pytest.param(halfway_rows, marks=pytest.mark.slow),
        pytest.param(nobody_sick_six_rows_after_c, marks=pytest.mark.slow),
        pytest.param(jobless_alone, marks=pytest.mark.ci),
        pytest.param(shared_decimals, marks=pytest.mark.ci),
        pytest.param(interpolated, marks=pytest.mark.ci),
        pytest.param(third_third, marks=pytest.mark.ci),
        pytest.param(near_another, marks=pytest.mark.ci),
    ],
)
def test_what_is_alike_in_both_worlds_is_not(honest: Any) -> None:
    # 100 tables are scored: the standard error of the AUC is .058.
    assert held_out(honest, honest, trials=200) == pytest.approx(0.5, abs=0.2)
