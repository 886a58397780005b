from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpaudit.errors import SettingsError
from dpaudit.model.claim import Neighbours
from dpaudit.model.encoding import values_of_table
from dpaudit.plugins.protocols import GameView
from dpaudit_attacks.marginals import ALL, MOST, MarginalQueries
from dpaudit_attacks.queries import TargetQueries
from samples import PEOPLE, game_view, people


def game(n: int = 60) -> GameView:
    table = people(n)
    return game_view(PEOPLE, table[:1], others=table[1:].reset_index(drop=True), n_rows=n)


def counted(attack: MarginalQueries | TargetQueries, table: pd.DataFrame) -> dict[str, float]:
    names = attack.feature_names(game())
    values = attack.features(table, game())
    return {name.column: value for name, value in zip(names, values.tolist(), strict=True)}


def test_counts_are_those_of_the_target_s_cells() -> None:
    table = people(60)
    every = counted(TargetQueries(), table)
    found = counted(MarginalQueries(), table)
    assert len(found) == 1 + 6
    assert {name: count for name, count in found.items() if name != ALL} == {
        name: count for name, count in every.items() if name.count(" & ") == 1
    }
    named = counted(MarginalQueries(marginals="age+job/paid"), table)
    assert named.keys() == {ALL, "job & age", "paid"}
    assert named["job & age"] == every["job & age"]
    assert len(counted(MarginalQueries(order=3), table)) == 1 + 4


def test_the_density_ratio_is_one_for_the_table_that_the_attacker_knows() -> None:
    known = game().others
    attack, view = MarginalQueries(), game()
    equal = GameView(
        schema=PEOPLE,
        others=known,
        target=view.target,
        n_rows=len(known),
        neighbours=Neighbours.ADD_REMOVE,
    )
    assert attack.features(known, equal)[0] == pytest.approx(1.0)
    with_target = pd.concat([known[1:], view.target], ignore_index=True)
    assert attack.features(with_target, equal)[0] > 1.0


def test_a_stack_has_the_features_of_each_table() -> None:
    attack, view = MarginalQueries(), game()
    tables = [people(60).sample(60, replace=True, random_state=s) for s in range(4)]
    stack = np.stack([values_of_table(table, PEOPLE) for table in tables])
    alone = [attack.features(table, view) for table in tables]
    np.testing.assert_array_equal(attack.features_many(stack, view), alone)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"order": 0}, "`order` must be a whole number"),
        ({"order": 5}, "order=5 is more than the 4 columns"),
        ({"marginals": "age+jbo"}, r"no column 'jbo' \(did you mean 'job'\?\)"),
        ({"classifier": "chose"}, "did you mean 'chosen'"),
    ],
)
def test_marginals_that_there_are_not_are_refused(options: dict[str, object], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        MarginalQueries(**options).check(game())  # type: ignore[arg-type]


def test_too_many_marginals_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST == 65_536
    monkeypatch.setattr("dpaudit_attacks.marginals.MOST", 5)
    with pytest.raises(SettingsError, match="there are 6 marginals of 2 columns, more than 5"):
        MarginalQueries().check(game())
