"""The prediction task that a table is good or bad for: which column is predicted, from what."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd

from dpaudit.errors import DataError, SettingsError
from dpaudit.formatting import did_you_mean
from dpaudit.model.column import Category, Column, Kind
from dpaudit.model.encoding import encode
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FloatArray
from dpaudit.seeds import Stream
from dpaudit.usefulness.classifiers import Examples


@dataclass(frozen=True, kw_only=True)
class PredictionTask:
    """Predict whether the label has one value, from all other columns.

    Attributes:
        schema: The public schema.
        label: Name of the label column.
        positive: The value that is to be predicted; every other one is negative.
    """

    schema: Schema
    label: str
    positive: Category

    @cached_property
    def feature_schema(self) -> Schema:
        """The schema without the label."""
        columns = tuple(one for one in self.schema.columns if one.name != self.label)
        return replace(self.schema, columns=columns, label=None)

    def examples(self, table: pd.DataFrame) -> Examples:
        """A canonical table as features and labels.

        Features are scaled by the schema's bounds and cut off there, categories are one-hot, and a
        missing value is a feature of its own: no step looks at the table as a whole.
        """
        features: FloatArray = np.clip(encode(table, self.feature_schema), 0.0, 1.0)
        return Examples(features, (table[self.label] == self.positive).to_numpy(dtype=bool))


def task_of(schema: Schema, *, label: str | None, positive: str | None) -> PredictionTask:
    """The task that a caller asks for.

    Args:
        schema: The public schema.
        label: Name of the label column; None for the schema's own.
        positive: The value to predict, as text; None for the second of two.

    Returns:
        The task.

    Raises:
        SettingsError: If there is no such column, nothing to predict it from, or no such value.
    """
    name = schema.label if label is None else label
    if name is None:
        raise SettingsError("the schema names no label column: give `label`, the column to predict")
    columns = {column.name: column for column in schema.columns}
    if name not in columns:
        hint = did_you_mean(name, list(columns))
        raise SettingsError(f"label {name!r} is not a column{hint}: give another `label`")
    if len(columns) < 2:
        raise SettingsError(f"there is no column but the label {name!r} to predict it from")
    column = columns[name]
    if column.missing:
        raise SettingsError(
            f"label {name!r} may be missing: drop the rows without a label and say in the schema "
            "that none is missing"
        )
    if column.kind is Kind.CONTINUOUS:
        raise SettingsError(
            f"label {name!r} is continuous: `label` must name a column of classes; give another"
        )
    return PredictionTask(schema=schema, label=name, positive=_positive(column, positive))


class HeldOut(NamedTuple):
    """A table in two parts.

    Attributes:
        train: What generators and classifiers learn from.
        test: What they never see.
    """

    train: pd.DataFrame
    test: pd.DataFrame


def split(table: pd.DataFrame, task: PredictionTask, *, share: float, seed: int) -> HeldOut:
    """Splits a table at random, positive and negative records apart.

    Args:
        table: The canonical table.
        task: What is predicted.
        share: Share of the test part, in (0, 1).
        seed: Root of the random streams.

    Returns:
        Both parts, each with a record of either class at least; rows are numbered from 0.

    Raises:
        DataError: If one class has fewer than two records.
    """
    positive = task.examples(table).positive
    check_classes(positive.sum(), len(positive), task, what="the table", least=2)
    rng = Stream(seed, "utility", "split").rng()
    chosen = np.zeros(len(table), dtype=bool)
    for members in (np.flatnonzero(positive), np.flatnonzero(~positive)):
        count = min(max(round(share * len(members)), 1), len(members) - 1)
        chosen[rng.permutation(members)[:count]] = True
    return HeldOut(table[~chosen].reset_index(drop=True), table[chosen].reset_index(drop=True))


def check_classes(
    positive: int, rows: int, task: PredictionTask, *, what: str, least: int = 1
) -> None:
    """Refuses records in which one class is absent.

    Args:
        positive: Number of positive records.
        rows: Number of records.
        task: What is predicted.
        what: Which records, for the message.
        least: Fewest records of either class.

    Raises:
        DataError: If there are fewer.
    """
    for count, relation in ((positive, "is"), (rows - positive, "is not")):
        if count < least:
            raise DataError(
                f"{what} has {count} rows in which {task.label!r} {relation} {task.positive!r}, "
                f"{least} are needed: give more rows, or another `label` or `positive`"
            )


def _positive(column: Column, positive: str | None) -> Category:
    if column.kind is Kind.INTEGER:
        lower, upper = map(int, column.bounds)
        if positive is None and upper - lower == 1:
            return upper
        values: tuple[Category, ...] = ()
        if positive is not None:
            try:
                value = int(positive)
            except ValueError:
                value = lower - 1
            if lower <= value <= upper:
                return value
        shown = f"a whole number in [{lower}, {upper}]"
    else:
        values = column.categories
        if positive is None and len(values) == 2:
            return values[1]
        for one in values:
            if positive is not None and str(one) == str(positive):
                return one
        shown = f"one of {', '.join(map(repr, values[:10]))}{', …' if len(values) > 10 else ''}"
    if positive is None:
        raise SettingsError(
            f"label {column.name!r} has more than two values: say which is the `positive` one, "
            f"{shown}"
        )
    raise SettingsError(f"`positive` is {positive!r}; label {column.name!r} takes {shown}")
