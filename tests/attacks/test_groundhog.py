from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.errors import SettingsError
from dpaudit.model.column import Column, Kind
from dpaudit.model.encoding import encode
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import Attack, FeatureName, GameView
from dpaudit.plugins.registry import ATTACKS, build
from dpaudit_attacks.groundhog import Correlation, Ensemble, Histogram, Naive
from samples import game_view

AGE = Column(name="Age", kind=Kind.INTEGER, lower=0, upper=100)
INCOME = Column(name="Income", kind=Kind.CONTINUOUS, lower=0.0, upper=1.0, missing=True)
SEX = Column(name="sex", kind=Kind.BINARY, categories=("F", "M"))
JOB = Column(name="job", kind=Kind.CATEGORICAL, categories=("a", "b", "c"), missing=True)
MIXED = Schema(columns=(AGE, INCOME, SEX, JOB))
ALL: list[Attack] = [Naive(), Histogram(), Correlation(), Ensemble()]


def game_of(schema: Schema, table: pd.DataFrame) -> GameView:
    table = schema.canonical(table)
    return game_view(schema, table.iloc[:1], others=table.iloc[1:], n_rows=len(table))


def measured(attack: Attack, schema: Schema, table: pd.DataFrame) -> dict[FeatureName, float]:
    """The features by name, after the checks that hold for every attack."""
    table = schema.canonical(table)
    game = game_of(schema, table)
    attack.check(game)
    names, values = attack.feature_names(game), attack.features(table, game)
    assert values.dtype == np.float64
    assert values.shape == (len(names),)
    assert len(set(names)) == len(names)
    assert np.isfinite(values).all()
    return dict(zip(names, values.tolist(), strict=True))


def mixed_table() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "Age": [10, 20, 20, 90],
            "Income": [0.0, np.nan, 0.5, 1.0],
            "sex": ["M", "F", "M", "M"],
            "job": ["c", "c", np.nan, "b"],
        }
    )


def numeric_schema(n: int) -> Schema:
    columns = (
        Column(name=f"c{i}", kind=Kind.INTEGER if i < 25 else Kind.CONTINUOUS, lower=0, upper=9)
        for i in range(n)
    )
    return Schema(columns=tuple(columns))


def one_column(column: Column, values: list[object]) -> pd.DataFrame:
    return pd.DataFrame({column.name: pd.Series(values, dtype=object)})


def test_sizes_for_the_published_table() -> None:
    schema = numeric_schema(29)
    table = pd.DataFrame(np.random.default_rng(0).integers(0, 10, (50, 29)), columns=schema.names)
    sizes = {type(a).__name__: len(measured(a, schema, table)) for a in ALL}
    assert sizes == {"Naive": 145, "Histogram": 29 * 12, "Correlation": 406, "Ensemble": 899}


def test_ensemble_is_the_three_concatenated() -> None:
    parts: list[Attack] = [Naive(spread="variance"), Histogram(bins=4), Correlation()]
    expected: dict[FeatureName, float] = {}
    for part in parts:
        expected |= measured(part, MIXED, mixed_table())
    both = measured(Ensemble(spread="variance", bins=4), MIXED, mixed_table())
    assert list(both.items()) == list(expected.items())


def test_naive_by_hand() -> None:
    found = {str(name): v for name, v in measured(Naive(), MIXED, mixed_table()).items()}
    assert found == pytest.approx(
        {
            "minimum (Age)": 10,
            "maximum (Age)": 90,
            "mean (Age)": 35,
            "median (Age)": 20,
            "standard deviation (Age)": np.sqrt((25**2 + 15**2 + 15**2 + 55**2) / 4),
            "minimum (Income)": 0,
            "maximum (Income)": 1,
            "mean (Income)": 0.5,
            "median (Income)": 0.5,
            "standard deviation (Income)": np.sqrt(0.5 / 3),
            "share missing (Income)": 0.25,
            "most frequent category (sex)": 1,
            "least frequent category (sex)": 0,
            "distinct categories (sex)": 2,
            "most frequent category (job)": 2,
            "least frequent category (job)": 1,
            "distinct categories (job)": 2,
            "share missing (job)": 0.25,
        }
    )


def test_naive_variance_is_the_square_of_the_standard_deviation() -> None:
    std = measured(Naive(), MIXED, mixed_table())[FeatureName("Age", "standard deviation")]
    variance = measured(Naive(spread="variance"), MIXED, mixed_table())
    assert variance[FeatureName("Age", "variance")] == pytest.approx(std**2)


@pytest.mark.parametrize("rows", [1, 2, 5, 6])
def test_naive_agrees_with_pandas(rows: int) -> None:
    rng = np.random.default_rng(rows)
    values = pd.Series(np.where(rng.random(rows) < 0.3, np.nan, rng.random(rows)))
    found = measured(Naive(), Schema(columns=(INCOME,)), values.to_frame("Income"))
    expected = [values.min(), values.max(), values.mean(), values.median(), values.std(ddof=0)]
    assert list(found.values())[:5] == pytest.approx(np.nan_to_num(expected).tolist())


def test_naive_of_nothing() -> None:
    table = pd.DataFrame({"Income": [np.nan] * 3, "job": pd.Series([np.nan] * 3, dtype=object)})
    found = measured(Naive(), Schema(columns=(INCOME, JOB)), table)
    assert list(found.values()) == [0, 0, 0, 0, 0, 1, -1, -1, 0, 1]


def test_naive_breaks_ties_by_the_lowest_code_and_counts_unnamed_categories_as_one() -> None:
    schema = Schema(columns=(JOB,))
    tied = measured(Naive(), schema, one_column(JOB, ["c", "b", "b", "c"]))
    assert list(tied.values()) == [1, 1, 2, 0]
    odd = measured(Naive(), schema, one_column(JOB, ["a", "x", "y", "x"]))
    assert list(odd.values()) == [3, 0, 2, 0]


def test_histogram_by_hand() -> None:
    found = measured(Histogram(bins=2), MIXED, mixed_table())
    assert {str(name): value for name, value in found.items()} == {
        "share below 0 (Age)": 0,
        "share in [0, 50) (Age)": 0.75,
        "share in [50, 100] (Age)": 0.25,
        "share above 100 (Age)": 0,
        "share below 0 (Income)": 0,
        "share in [0, 0.5) (Income)": 0.25,
        "share in [0.5, 1] (Income)": 0.5,
        "share above 1 (Income)": 0,
        "share of missing (Income)": 0.25,
        "share of 'F' (sex)": 0.25,
        "share of 'M' (sex)": 0.75,
        "share of other categories (sex)": 0,
        "share of 'a' (job)": 0,
        "share of 'b' (job)": 0.25,
        "share of 'c' (job)": 0.5,
        "share of other categories (job)": 0,
        "share of missing (job)": 0.25,
    }


@pytest.mark.parametrize(
    ("value", "slot"),
    [
        (-np.inf, 0),
        (-1, 0),
        (0, 1),
        (9.99, 1),
        (10, 2),
        (99, 10),
        (100, 10),
        (101, 11),
        (1e18, 11),
    ],
)
def test_bins_at_their_edges(value: float, slot: int) -> None:
    found = measured(Histogram(), Schema(columns=(AGE,)), pd.DataFrame({"Age": [value]}))
    assert list(found.values()) == [float(i == slot) for i in range(12)]


def test_bins_keep_their_identity() -> None:
    # Sorted counts, as in one published version, cannot tell these two tables apart.
    schema = Schema(columns=(AGE,))
    low = measured(Histogram(), schema, pd.DataFrame({"Age": [5, 5, 95]}))
    high = measured(Histogram(), schema, pd.DataFrame({"Age": [5, 95, 95]}))
    assert sorted(low.values()) == sorted(high.values())
    assert low != high


def test_first_bin_is_counted() -> None:
    # Zeroed for every continuous column in another published version.
    column = Column(name="x", kind=Kind.CONTINUOUS, lower=0.0, upper=1.0)
    found = measured(Histogram(), Schema(columns=(column,)), pd.DataFrame({"x": [0.0, 0.05]}))
    assert found[FeatureName("x", "share in [0, 0.1)")] == 1.0


@pytest.mark.parametrize(("upper", "edge"), [(332, 249), (644, 483), (664, 498)])
def test_whole_edges_are_exact(upper: int, edge: int) -> None:
    # 15 * (332 / 20) is a little above 249 in floating point, and would put 249 one bin too low.
    column = Column(name="x", kind=Kind.INTEGER, lower=0, upper=upper)
    table = pd.DataFrame({"x": [edge]})
    found = measured(Histogram(bins=20), Schema(columns=(column,)), table)
    assert list(found.values()).index(1.0) == 16


def test_unexpected_values_have_bins_of_their_own() -> None:
    found = measured(Histogram(), Schema(columns=(SEX,)), one_column(SEX, ["F", "x", "y", "M"]))
    assert list(found.values()) == [0.25, 0.25, 0.5]
    found = measured(Histogram(), Schema(columns=(SEX,)), one_column(SEX, ["F", np.nan]))
    assert list(found.values()) == [0.5, 0, 0]  # missing where it never may be: in no bin


def test_correlation_agrees_with_numpy_and_names_its_columns() -> None:
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        {
            "Age": rng.integers(0, 101, 40),
            "Income": np.where(rng.random(40) < 0.2, np.nan, rng.random(40)),
            "sex": rng.choice(["F", "M"], 40),
            "job": pd.Series(rng.choice(np.array(["a", "b", "c", None], dtype=object), 40)),
        }
    )
    found = measured(Correlation(), MIXED, table)
    matrix = np.asarray(np.corrcoef(encode(MIXED.canonical(table), MIXED), rowvar=False))
    assert list(found.values()) == pytest.approx(matrix[np.triu_indices(9, k=1)].tolist())
    assert found[FeatureName("sex", "correlation of sex='F' with sex='M'")] == pytest.approx(-1)
    income = table["Income"].fillna(0.5)
    assert found[FeatureName("Age & Income", "correlation")] == pytest.approx(
        table["Age"].corr(income)
    )
    assert found[
        FeatureName("Income & job", "correlation of Income missing with job missing")
    ] == pytest.approx(table["Income"].isna().astype(float).corr(table["job"].isna().astype(float)))


def test_undefined_correlations_are_zero() -> None:
    schema = numeric_schema(3)
    table = pd.DataFrame({"c0": [1, 2, 3], "c1": [7, 7, 7], "c2": [1, 2, 3]})
    assert list(measured(Correlation(), schema, table).values()) == pytest.approx([0, 1, 0])
    assert list(measured(Correlation(), schema, table[:1]).values()) == [0, 0, 0]
    # 0.1 has no finite binary expansion: the mean of a constant column is off by a rounding error
    column = [Column(name=n, kind=Kind.CONTINUOUS, lower=0.0, upper=1.0) for n in "ab"]
    constant = pd.DataFrame({"a": [0.1] * 7, "b": [0.1] * 7})
    assert list(measured(Correlation(), Schema(columns=tuple(column)), constant).values()) == [0]


wild = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True), st.sampled_from([0.0, 1.0, 0.5, 5e-324])
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(wild, wild, st.sampled_from(["F", "M", "?", None])), min_size=1))
def test_any_table_has_finite_features_without_warnings(
    rows: list[tuple[float, float, str | None]],
) -> None:
    height = Column(name="height", kind=Kind.CONTINUOUS, lower=-1.0, upper=1.0)
    schema = Schema(columns=(height, INCOME, SEX))
    found = measured(Ensemble(), schema, pd.DataFrame(rows, columns=schema.names))
    correlations = [value for name, value in found.items() if "correlation" in name.feature]
    assert max(map(abs, correlations)) <= 1


@pytest.mark.parametrize("attack", ALL)
def test_features_ignore_the_order_of_rows(attack: Attack) -> None:
    table = mixed_table()
    found = measured(attack, MIXED, table)
    assert measured(attack, MIXED, table[::-1]) == pytest.approx(found)


@pytest.mark.parametrize("bad", [0, -1, 2.5, "10", True])
def test_bins_must_be_a_positive_whole_number(bad: object) -> None:
    for attack in (Histogram, Ensemble):
        with pytest.raises(SettingsError, match="`bins` must be a whole number of at least 1"):
            attack(bins=bad)  # type: ignore[arg-type]


def test_options_are_set_through_the_registry() -> None:
    place = "dpaudit_attacks.groundhog:Ensemble"
    given = {"bins": 5, "spread": "variance", "classifier": "logistic-regression"}
    assert build(place, ATTACKS, given=given, offered={}) == Ensemble(
        bins=5, spread="variance", classifier="logistic-regression"
    )


def test_spread_and_classifier_are_checked() -> None:
    for attack in (Naive, Ensemble):
        with pytest.raises(SettingsError, match="spread must be 'std' or 'variance', got 'iqr'"):
            attack(spread="iqr")
    for any_attack in (Naive, Histogram, Correlation, Ensemble):
        with pytest.raises(SettingsError, match="did you mean 'random-forest'"):
            any_attack(classifier="randomforest")
