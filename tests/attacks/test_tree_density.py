from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import dpaudit
from dpaudit.auditing.entry import audit_by_keywords
from dpaudit.errors import SettingsError
from dpaudit.model.column import Column, Kind
from dpaudit.model.encoding import values_of_table
from dpaudit.model.schema import Schema
from dpaudit.seeds import rng_of
from dpaudit_attacks.tree_density import TreeDensity
from samples import PEOPLE, game_view, people

BITS = Schema(
    columns=tuple(Column(name=name, kind=Kind.BINARY, categories=(0, 1)) for name in "abc")
)


def bits(*rows: str) -> pd.DataFrame:
    return pd.DataFrame(
        [[int(bit) for bit in row] for row in rows], columns=list("abc")[: len(rows[0])]
    )


def test_the_density_is_that_of_the_tree_by_hand() -> None:
    # a and b are equal, c is a coin: the tree is a-b and one of the pairs with c.
    table = bits("000", "001", "110", "111")
    others = bits("000", "011", "100", "111")
    view = game_view(BITS, bits("111"), others=others, n_rows=4)
    ratio, density = TreeDensity().features(table, view)
    cell, alone, with_c = 3 / 5, 3 / 5, 2 / 5  # counts 2, 2 and 1, one row added
    assert density == pytest.approx(math.log(cell * with_c / alone))
    # In the known rows a-b has one row in the cell, a-c one and b-c two: a-c is taken, as
    # a-c and b-c are equally far from independence in the synthetic table.
    known = math.log((2 / 5) * (2 / 5) / (3 / 5))
    assert ratio == pytest.approx(density - known)


def test_a_single_column_has_its_own_frequency() -> None:
    schema = Schema(columns=BITS.columns[:1])
    view = game_view(schema, bits("1"), others=bits("0", "0", "1"), n_rows=3)
    ratio, density = TreeDensity().features(bits("1", "1", "0"), view)
    assert density == pytest.approx(math.log(3 / 4))
    assert ratio == pytest.approx(math.log((3 / 4) / (2 / 4)))


def test_the_ratio_is_one_for_the_table_that_the_attacker_knows() -> None:
    table = people(60)
    others = table[1:].reset_index(drop=True)
    view = game_view(PEOPLE, table[:1], others=others, n_rows=len(others))
    assert TreeDensity().features(others, view)[0] == 0.0
    with_target = pd.concat([others[1:], view.target], ignore_index=True)
    assert TreeDensity().features(with_target, view)[0] > 0.0


def test_a_stack_has_the_features_of_each_table() -> None:
    table = people(60)
    view = game_view(PEOPLE, table[:1], others=table[1:].reset_index(drop=True), n_rows=60)
    tables = [people(60).sample(60, replace=True, random_state=s) for s in range(4)]
    stack = np.stack([values_of_table(one, PEOPLE) for one in tables])
    alone = [TreeDensity().features(one, view) for one in tables]
    np.testing.assert_array_equal(TreeDensity().features_many(stack, view), alone)


def test_bins_must_be_positive() -> None:
    with pytest.raises(SettingsError, match="`bins` must be a whole number of at least 1"):
        TreeDensity(bins=0)


def correlated(n: int) -> pd.DataFrame:
    rng = rng_of(0, "correlated bits")
    first = rng.integers(2, size=n)
    return pd.DataFrame({"a": first, "b": first, "c": rng.integers(2, size=n)})


def rows_drawn(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
    return data.sample(n_rows, replace=True, random_state=seed)


def rows_invented(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
    return correlated(200).sample(n_rows, replace=True, random_state=seed)


@pytest.mark.ci
@pytest.mark.parametrize(
    ("generator", "leaks"),
    [(rows_drawn, True), pytest.param(rows_invented, False, marks=pytest.mark.ci)],
)
def test_a_record_that_breaks_a_dependence_shows_and_one_that_was_not_used_does_not(
    generator: dpaudit.Generator, leaks: bool
) -> None:
    table = correlated(40)
    table.loc[0] = [0, 1, 0]  # the only record whose a and b differ
    result = audit_by_keywords(
        generator,
        table,
        schema=BITS,
        target="row:0",
        attacks=("query-tree",),
        epsilon=0.5,
        shadow_models=40,
        rows=200,
    )
    assert (result.verdict is dpaudit.Verdict.VIOLATION) == leaks
