"""Attacks on the rows of a unit: features by hand, and the same as before for one row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpaudit.model.column import Unit
from dpaudit.model.encoding import values_of_table
from dpaudit.plugins.access import released_effect
from dpaudit.plugins.protocols import FloatArray, GameView
from dpaudit_attacks.form import TableForm
from dpaudit_attacks.groundhog import Ensemble
from dpaudit_attacks.marginals import MarginalQueries
from dpaudit_attacks.models import Logan
from dpaudit_attacks.queries import OF_UNITS, TargetQueries
from dpaudit_attacks.tree_density import TreeDensity
from samples import PEOPLE, game_view, people

ATTACKS = [Ensemble(), TargetQueries(), TableForm(), MarginalQueries(), TreeDensity()]
OTHERS = people(40)
TABLES = np.stack(
    [values_of_table(people(80).iloc[start : start + 30], PEOPLE) for start in (0, 20, 45)]
)


def of_unit(rows: pd.DataFrame) -> GameView:
    return game_view(PEOPLE, rows.reset_index(drop=True), others=OTHERS, n_rows=30)


def named(attack: Any, view: GameView, values: FloatArray = TABLES) -> dict[str, list[float]]:
    features = attack.features_many(values, view)
    names = [str(name) for name in attack.feature_names(view)]
    assert features.shape == (len(values), len(names))
    assert len(set(names)) == len(names)
    return dict(zip(names, features.T.tolist(), strict=True))


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: type(attack).__name__)
def test_a_unit_of_one_row_has_the_features_of_the_row(attack: Any) -> None:
    view = of_unit(people(80).iloc[[50]])
    schema = replace(PEOPLE, unit=Unit(column="patient", max_rows=1))
    patient = {"patient": [3]}
    unit = replace(
        view,
        schema=schema,
        target=schema.canonical(view.target.assign(**patient)),
        others=schema.canonical(view.others.assign(patient=range(40))),
    )
    assert attack.feature_names(unit) == attack.feature_names(view)
    assert attack.features_many(TABLES, unit).tobytes() == (
        attack.features_many(TABLES, view).tobytes()
    )


def test_rows_are_counted_that_equal_any_of_the_unit() -> None:
    job = ["clerk", "cook", "clerk"]
    unit = people(3).assign(job=job, income=10.0, age=[20, 20, 60], paid=[0, 1, 0])
    table = people(4).assign(
        job=["clerk", "cook", "cook", "miner"], income=10.0, age=[20, 21, 60, 20], paid=[0, 1, 1, 0]
    )
    values = values_of_table(table, PEOPLE)[None]
    found = named(TargetQueries(), of_unit(unit), values)
    any_of, appear, pairs = OF_UNITS
    assert found[f"{any_of} (job)"] == [3.0]
    assert found[f"{appear} (job)"] == [3.0]
    assert found[f"{pairs} (job)"] == [1 * 2 + 2 * 1]
    assert found[f"{any_of} (job & paid)"] == [3.0]
    assert found[f"{appear} (job & income & age & paid)"] == [2.0]  # the third has no equal
    assert found[f"{any_of} (any values)"] == [4.0]
    follow = "rows that follow each other as in the unit"
    assert found[f"{follow} (job)"] == [1.0]  # clerk then cook, the first two
    assert found[f"{follow} (job & income & age & paid)"] == [1.0]
    assert found["values near the unit's sum (age)"] == [0.0]  # 100
    assert found["values near the unit's sum (income)"] == [0.0]  # 30
    near = values.copy()
    near[0, :2, 1] = 28.0
    assert named(TargetQueries(), of_unit(unit), near)["values near the unit's sum (income)"] == [2]


def test_a_large_unit_has_fewer_subsets_and_every_column() -> None:
    unit = of_unit(people(80).iloc[:40])
    names = [str(name) for name in TargetQueries(max_queries=64).feature_names(unit)]
    assert f"{OF_UNITS[0]} (age)" in names
    assert len([name for name in names if name.startswith(OF_UNITS[0])]) == 6  # 4 columns and 2


def test_features_of_many_tables_are_those_of_each() -> None:
    unit = of_unit(people(80).iloc[50:56])
    for attack in ATTACKS:
        together = attack.features_many(TABLES, unit)
        for number, values in enumerate(TABLES):
            assert attack.features_many(values[None], unit)[0].tobytes() == (
                together[number].tobytes()
            )


def test_form_averages_what_depends_on_the_target_alone() -> None:
    rows = people(80).iloc[50:53]
    together = named(TableForm(), of_unit(rows))
    alone = [named(TableForm(), of_unit(rows.iloc[[n]])) for n in range(3)]
    for name, values in together.items():
        np.testing.assert_allclose(values, np.mean([one[name] for one in alone], axis=0), atol=1e-9)
    differ = "values below the target's (age)"
    assert alone[0][differ] != alone[1][differ]


@pytest.mark.parametrize("attack", [MarginalQueries(), TreeDensity()])
def test_densities_of_the_rows_add_up(attack: Any) -> None:
    rows = people(80).iloc[50:53]
    together = attack.features_many(TABLES, of_unit(rows))
    alone = [attack.features_many(TABLES, of_unit(rows.iloc[[n]])) for n in range(3)]
    first = 1 if isinstance(attack, MarginalQueries) else 0  # its first is a mean ratio
    np.testing.assert_allclose(together[:, first:], sum(alone)[:, first:], atol=1e-6)


def test_the_score_of_a_unit_is_the_mean_of_its_rows() -> None:
    scores = np.array([3.0, 5.0, 1.0, 4.0, 6.0])
    found = Logan().model_features(scores, of_unit(people(2)))
    assert found.tolist() == [4.0, 4.0 - 11 / 3, 0.5]
    assert Logan().model_features(scores, of_unit(people(1))).tolist() == [3.0, -1.0, 0.25]


def test_effects_of_rows_add_up() -> None:
    class Counts:
        def released_effect(self, record: pd.DataFrame) -> list[float]:
            assert len(record) == 1
            return [1.0, float(record["age"].iloc[0])]

    rows = people(3).assign(age=[20, 30, 40])
    given: dict[str, Any] = {"name": "counts", "facts": ("rows", "age")}
    found = released_effect(Counts(), target=rows, replacement=None, **given)
    assert found is not None
    assert found.tolist() == [3.0, 90.0]
    replaced = released_effect(Counts(), target=rows, replacement=rows.assign(age=1), **given)
    assert replaced is not None
    assert replaced.tolist() == [0.0, 87.0]
