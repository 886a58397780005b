"""What other canaries cost: the attack on marginals of one canary alone, and among many."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from dpaudit.auditing.one_run.attack import CanaryMarginals, interference
from dpaudit.auditing.spec import view_of
from dpaudit.game.target import far_records
from dpaudit.game.worlds import choose_canaries
from dpaudit.model.claim import Neighbours
from dpaudit.model.schema import Schema
from dpaudit.model.tables import load
from dpaudit.seeds import Stream
from reports.one_run.games import Generator

WATCHED = 20
"""Canaries that are compared: the farthest records, which are among any number of canaries."""
NUMBERS = (1, 20, 50, 100, 200)
ROWS = 5_000


def lone_aucs(
    generator: Generator,
    table: pd.DataFrame,
    schema: Schema,
    *,
    quick: bool,
    auc_of: Callable[..., float],
) -> list[dict[str, Any]]:
    """AUC over the watched canaries, for each number of canaries in the table.

    With one, every watched canary is attacked in trainings of its own, and every other record is
    known to be in. The number of coins that are scored is the same for all numbers of canaries.
    """
    loaded = load(table, schema)
    watched = far_records(loaded.data, loaded.schema)[:WATCHED]
    trainings, found = (2 if quick else 40), []
    for canaries in NUMBERS:
        if canaries == 1:
            sets = [np.array([row]) for row in watched]
        else:
            sets = [choose_canaries(loaded.data, loaded.schema, canaries)]
        scores: list[float] = []
        coins: list[bool] = []
        lost = []
        for place, rows in enumerate(sets):
            view = view_of(loaded, rows, rows=ROWS, neighbours=Neighbours.ADD_REMOVE)
            lost.append(interference(replace(view)))
            seen = np.isin(rows, watched)
            for number in range(trainings):
                rng = Stream(number, "", f"interference/{canaries}/{place}", 0).rng()
                fell = rng.random(len(rows)) < 0.5
                data = loaded.data[~np.isin(np.arange(len(loaded.data)), rows[~fell])]
                made = generator(data.reset_index(drop=True), ROWS, int(rng.integers(2**32)))
                scored = CanaryMarginals().features(loaded.schema.canonical(made), view)
                scores += scored[seen].tolist()
                coins += fell[seen].tolist()
        found.append(
            {
                "canaries": canaries,
                "coins": len(coins),
                "AUC": round(auc_of(np.array(scores), np.array(coins)), 3),
                "interference, computed": round(float(np.mean(lost)), 3),
            }
        )
    return found
