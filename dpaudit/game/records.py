"""Which records share the shadow models of an audit, and which of them each model has."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpaudit.errors import SettingsError
from dpaudit.game.selection import halves
from dpaudit.game.target import exposing_first
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import BoolArray


def choose_records(data: pd.DataFrame, schema: Schema, records: int) -> tuple[int, ...]:
    """The records that stand out most, of those without a copy in the table.

    A function of the table alone, never of the coins, so that the bound holds whatever is chosen.

    Args:
        data: The table, canonical.
        schema: Its schema.
        records: Number of records k.

    Returns:
        Their positions [k], the most exposing first.

    Raises:
        SettingsError: If too few records are without a copy.
    """
    alone = exposing_first(data, schema)
    if len(alone) < records:
        raise SettingsError(
            f"`records` is {records}, but only {len(alone)} records of the table have no "
            "identical copy: give fewer, or drop duplicate rows"
        )
    return tuple(int(row) for row in alone[:records])


def draw_included(
    trainings: int, *, fitted: int, records: int, rng: np.random.Generator
) -> BoolArray:
    """Draws which records each model is trained with, before any is.

    Of the fitting part half of the models have each record; the first two have the same ones, so
    that they differ by their seeds alone. Of the rest each has each by an independent fair coin.

    Args:
        trainings: Number of models R.
        fitted: How many of the first ones form the fitting part; even, at least 4.
        records: Number of records k.
        rng: Draws them.

    Returns:
        Which records each model is trained with [R, k].
    """
    first = rng.integers(2, size=records).astype(np.bool_)
    balanced = np.vstack([first, first, ~first, ~first, halves(fitted - 4, records, rng)])
    coins = rng.integers(2, size=(trainings - fitted, records)).astype(np.bool_)
    included: BoolArray = np.vstack([balanced, coins])
    return included
