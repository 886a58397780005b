"""Features of a set of rows have the same bits for every order of the rows."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd
import pytest

from dpaudit.model.column import Column, Kind
from dpaudit.model.encoding import values_of_table
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import BatchAttack, FloatArray, GameView
from dpaudit_attacks.columns import GRID, round_sums
from dpaudit_attacks.form import TableForm
from dpaudit_attacks.groundhog import Correlation, Ensemble, Histogram, Naive
from dpaudit_attacks.marginals import MarginalQueries
from dpaudit_attacks.queries import TargetQueries
from dpaudit_attacks.tree_density import TreeDensity
from samples import game_view

SCHEMA = Schema(
    columns=(
        Column(name="real", kind=Kind.CONTINUOUS, lower=0.1, upper=1e9),
        Column(name="hole", kind=Kind.CONTINUOUS, lower=-0.3, upper=0.9, missing=True),
        Column(name="whole", kind=Kind.INTEGER, lower=0, upper=10, missing=True),
        Column(name="job", kind=Kind.CATEGORICAL, categories=("a", "b", "c"), missing=True),
        Column(name="flag", kind=Kind.BINARY, categories=(0, 1)),
    )
)
ORDERED: Final = {
    "category of the first row",
    "category of the last row",
    "distance of the first row to the target",
    "distance of the last row to the target",
    "drift of missing values over the rows",
    "drift of the target's category over the rows",
    "drift over the rows",
    "even rows minus odd rows",
    "even rows minus odd rows with the target's category",
    "largest mutual information of the first with the second 2 to 8 rows later",
    "mean step from row to row",
    "missing values in neighbouring rows",
    "mutual information of the first with the second one row later",
    "position of the row most equal to the target",
    "position of the row nearest to the target",
    "position of the value nearest to the target",
    *(f"products of values {lag} rows apart" for lag in range(1, 9)),
    "rows at the mean of the rows before and after",
    "rows at the rounded mean of the rows before and after",
    "rows equal to the row before",
    "rows equal to the row before the one before",
    "steps up from row to row",
    "value of the first row",
    "value of the last row",
}
"""The features that are about the order of rows."""
ROWS: Final = 67
ATTACKS: Final = (
    Naive(),
    Naive(spread="variance"),
    Histogram(),
    Correlation(),
    Ensemble(),
    TargetQueries(),
    MarginalQueries(),
    TreeDensity(),
    TableForm(),
)


def table(seed: int) -> FloatArray:
    """Values [n, d] of sizes that no order of addition treats alike; some rows repeat."""
    rng = np.random.default_rng(seed)
    hole = rng.normal(0.3, 0.2, ROWS)
    hole[rng.random(ROWS) < 0.2] = np.nan
    hole[:2] = 0.0, -0.0
    whole = rng.integers(0, 11, ROWS).astype(np.float64)
    whole[rng.random(ROWS) < 0.2] = np.nan
    made = pd.DataFrame(
        {
            "real": 10.0 ** rng.uniform(-9, 15, ROWS),
            "hole": hole,
            "whole": whole,
            "job": rng.choice(np.array(["a", "b", np.nan], dtype=object), ROWS),
            "flag": rng.integers(0, 2, ROWS),
        }
    )
    made.iloc[10:14] = made.iloc[20:24].to_numpy()
    return values_of_table(SCHEMA.canonical(made.infer_objects()), SCHEMA)


@pytest.fixture(scope="module")
def game() -> GameView:
    records = {"real": [3.5], "hole": [0.25], "whole": [4], "job": ["b"], "flag": [1]}
    return game_view(SCHEMA, SCHEMA.canonical(pd.DataFrame(records)), n_rows=ROWS)


@pytest.mark.parametrize("attack", ATTACKS, ids=repr)
def test_only_features_of_the_order_follow_it(attack: BatchAttack, game: GameView) -> None:
    names = [name.feature for name in attack.feature_names(game)]
    follow: set[str] = set()
    for seed in range(3):
        values = table(seed)
        rng = np.random.default_rng(seed)
        orders = [rng.permutation(ROWS) for _ in range(40)] + [np.arange(ROWS)[::-1]]
        found = attack.features_many(np.stack([values, *(values[at] for at in orders)]), game)
        bits = found.view(np.uint64)
        follow |= {names[at] for at in np.flatnonzero((bits != bits[0]).any(axis=0))}
    assert follow == ORDERED & set(names)


def test_a_difference_of_a_last_bit_is_no_difference() -> None:
    sums = np.array([0.1 + 0.2, 0.3, -3e-18, 0.0, 1e-17, 7.0])
    assert round_sums(sums).tolist() == round_sums(sums[[1, 1, 3, 3, 3, 5]]).tolist()
    assert np.abs(round_sums(sums) - sums).max() <= GRID / 2
    wide = round_sums(sums * 1e12, 1e12)
    assert np.abs(wide / 1e12 - sums).max() <= GRID


@pytest.mark.parametrize("unit", [5e-324, 1e-300, 1e300, np.inf])
def test_a_unit_that_overflows_leaves_the_number(unit: float) -> None:
    assert round_sums(np.array([1.5, -2e200]), np.array([unit])).tolist() == pytest.approx(
        [1.5, -2e200], rel=1e-9, abs=unit
    )
