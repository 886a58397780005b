"""Tables for tests that need one and do not mind which."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpaudit.model.claim import Neighbours
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import GameView

QUICK_ATTACKS = tuple(
    f"{name},classifier=logistic-regression" for name in ("groundhog-naive", "query-target")
)
"""Attacks that cost little: most of an audit's time is that of forests."""

PEOPLE = Schema(
    columns=(
        Column(name="job", kind=Kind.CATEGORICAL, categories=("clerk", "cook", "miner")),
        Column(name="income", kind=Kind.CONTINUOUS, lower=0.0, upper=100.0, missing=True),
        Column(name="age", kind=Kind.INTEGER, lower=17, upper=90),
        Column(name="paid", kind=Kind.BINARY, categories=(0, 1)),
    ),
    label="paid",
)
"""A column of each kind, one with missing values, and a label."""


def people(n: int = 60, *, schema: Schema = PEOPLE) -> pd.DataFrame:
    """A canonical table [n]: the same one for the same `n`; nobody is a miner.

    Args:
        n: Number of records.
        schema: Another schema with these columns.
    """
    rng = np.random.default_rng(8)
    income = rng.uniform(0.0, 100.0, n)
    income[::7] = np.nan
    columns = {
        "job": rng.choice(["clerk", "cook"], n),
        "income": income,
        "age": rng.integers(20, 60, n),
        "paid": rng.integers(0, 2, n),
    }
    return schema.canonical(pd.DataFrame(columns))


def game_view(
    schema: Schema,
    target: pd.DataFrame,
    *,
    others: pd.DataFrame | None = None,
    n_rows: int = 1,
) -> GameView:
    """What an attacker knows of an add-remove game.

    Args:
        schema: The public schema.
        target: The target, one canonical row.
        others: The records of both worlds; without any the target stands for them.
        n_rows: Synthetic rows that are requested.
    """
    return GameView(
        schema=schema,
        others=target if others is None else others,
        target=target,
        n_rows=n_rows,
        neighbours=Neighbours.ADD_REMOVE,
    )
