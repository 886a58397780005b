"""Splits a table with a label column into rows and labels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.errors import DataError
from dpaudit.model.column import Category
from dpaudit.model.encoding import encode
from dpaudit.model.schema import Schema
from dpaudit_generators.tables import require_table


class Labelled(NamedTuple):
    """A table in the form that `Pate.fit` takes.

    Attributes:
        rows: The other columns, encoded under the public schema, [n, width].
        labels: The label column [n].
        classes: All its categories, from the schema.
    """

    rows: npt.NDArray[np.float64]
    labels: npt.NDArray[Any]
    classes: tuple[Category, ...]


def labelled(data: pd.DataFrame, schema: Schema) -> Labelled:
    """Splits a table into rows and labels, using nothing but its public schema.

    Args:
        data: A table that fits the schema.
        schema: Its public schema, which names the label column.

    Returns:
        Rows, labels and the list of classes.

    Raises:
        DataError: If the table does not fit, or the schema names no label column with categories
            beside other columns.
    """
    by_name = {column.name: column for column in schema.columns}
    if schema.label is None:
        raise DataError("the schema names no label column: set `label` to one of its columns")
    column = by_name.pop(schema.label)
    if column.kind.numeric or not by_name:
        raise DataError(
            f"column {column.name!r} cannot be the label: it must be binary or categorical, with "
            "another column to learn from"
        )
    require_table(data, schema)
    rows = encode(data, replace(schema, columns=tuple(by_name.values()), label=None))
    return Labelled(rows, data[column.name].to_numpy(dtype=object), column.categories)
