"""Checks and counts of a table under its public schema."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from dpaudit.errors import DataError
from dpaudit.model.column import MISSING, OTHER
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import IntArray


def require_table(data: pd.DataFrame, schema: Schema) -> None:
    """Checks that columns and values of a table fit a schema.

    Raises:
        DataError: If they do not.
    """
    _refuse(schema.problems(data))


def require_columns(data: pd.DataFrame, schema: Schema) -> None:
    """Checks that a table has the columns of a schema, whatever their values.

    Raises:
        DataError: If it has not.
    """
    _refuse(schema.column_problems(data))


def count_codes(codes: IntArray, *, cells: int, missing: bool) -> IntArray:
    """How often each cell of a public domain occurs.

    Args:
        codes: Cells 0, 1, ... of the values [n], `MISSING` or `OTHER`.
        cells: Size of the domain.
        missing: Whether its last cell counts missing values, which else count nowhere, as values
            that the schema does not know.

    Returns:
        Counts [cells].
    """
    codes = np.where(codes == MISSING, cells - 1 if missing else OTHER, codes)
    return np.bincount(codes[codes != OTHER], minlength=cells)


def _refuse(problems: Sequence[str]) -> None:
    if problems:
        raise DataError(f"the table does not fit the schema: {'; '.join(problems)}")
