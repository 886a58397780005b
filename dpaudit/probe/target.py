"""The probe of one named record: a coin on whether it is in the table."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from dpaudit.model.encoding import values_of_table
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FloatArray
from dpaudit.probe.challenge import inserted
from dpaudit.probe.comparison import summary
from dpaudit.probe.result import NotApplicable, Observation
from dpaudit.probe.single import single_coin
from dpaudit.probe.subject import Subject
from dpaudit.probe.trainer import Trainer

_PILOTS: Final = 5
"""Fits of each side: there are many features to choose from."""
_EQUAL: Final = 1e-6
"""Share of a column's range up to which two numbers are equal."""


def target_followed(subject: Subject, trainer: Trainer) -> Observation | NotApplicable:
    """Checks whether anything follows the named record: what is like it, and the whole output."""
    if subject.target is None:
        return NotApplicable("no record was named: give `target`, such as row:0")
    record, n = subject.target, len(subject.data)
    wanted = values_of_table(subject.data.iloc[[record]], subject.schema)[0]

    def features(table: pd.DataFrame) -> dict[str, float]:
        return summary(table, subject) | _likeness(table, wanted, subject.schema)

    found = single_coin(
        subject,
        trainer,
        subject.build(),
        pd.concat([subject.data, subject.data.iloc[[(record + 1) % n]]], ignore_index=True),
        inserted([record], [n], subject.claim)[0],
        features,
        basis="the output differs with and without the target",
        pilots=_PILOTS,
    )
    if found is None:
        words = "the target moved the output in the pilot no more than the seeds did"
        return Observation(False, words, {}, 1.0)
    return found


def _likeness(table: pd.DataFrame, wanted: FloatArray, schema: Schema) -> dict[str, float]:
    """How like a record, whose values [d] are wanted, the rows of a synthetic table are."""
    values = values_of_table(table, schema)
    apart = np.empty_like(values)
    for position, column in enumerate(schema.columns):
        mine, its = values[:, position], wanted[position]
        if column.kind.numeric:
            lower, upper = column.bounds
            away = np.abs(mine - its) / (upper - lower)
            both = np.isnan(mine) & np.isnan(its)
            apart[:, position] = np.where(both, 0.0, np.nan_to_num(away, nan=1.0))
        else:
            apart[:, position] = mine != its
    equal = apart <= _EQUAL
    found = {
        "share of rows equal to the target": float(equal.all(axis=1).mean()),
        "distance of the nearest row": float(apart.sum(axis=1).min()),
    }
    for position, column in enumerate(schema.columns):
        name = column.name
        found[f"share of rows with the target's {name}"] = float(equal[:, position].mean())
        if column.missing:
            found[f"share of missing {name}"] = float(table[name].isna().mean())
    return found
