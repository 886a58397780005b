"""The unit of privacy: rows that one column says belong together, such as those of a patient."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.errors import SchemaError
from dpaudit.formatting import counted, did_you_mean


@dataclass(frozen=True, kw_only=True)
class Unit:
    """Whose rows enter and leave a table together.

    Attributes:
        column: The column that names the unit of each row. It is no column of the schema: it has no
            kind and no bounds, and generators need not release it.
        max_rows: Largest number of rows that a unit may have; None if nothing is promised.

    Raises:
        SchemaError: If the column has no name, or `max_rows` is no whole number of at least 1.
    """

    column: str
    max_rows: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.column, str) or not self.column:
            raise SchemaError(f"the unit's column must be a name, got {self.column!r}")
        most: Any = self.max_rows
        whole = isinstance(most, Integral) and not isinstance(most, bool)
        if most is not None and not (whole and most >= 1):
            raise SchemaError(
                f"a unit has at most a whole number of rows, 1 or more, got {self.max_rows!r}"
            )

    @property
    def most(self) -> str:
        """How many rows a unit may have, in words."""
        if self.max_rows is None:
            return "any number of rows"
        return f"at most {counted(self.max_rows, 'row')}"

    def codes(self, data: pd.DataFrame) -> npt.NDArray[np.intp]:
        """The unit of each row [n], numbered in the order in which units appear."""
        codes, _ = pd.factorize(data[self.column], use_na_sentinel=False)
        return codes

    def most_rows(self, data: pd.DataFrame) -> int:
        """The rows that a unit may have: `max_rows`, else the most that one of a table has."""
        if self.max_rows is not None:
            return self.max_rows
        return int(np.bincount(self.codes(data)).max(initial=0))

    def problems(self, data: pd.DataFrame) -> list[str]:
        """What in a table contradicts this unit; empty if it fits."""
        if self.column not in data.columns:
            close = did_you_mean(self.column, list(map(str, data.columns)))
            return [f"the unit's column {self.column!r} is missing{close}"]
        missing = np.flatnonzero(data[self.column].isna())
        if len(missing):
            rows = counted(len(missing), "row")
            return [f"the unit {self.column!r} is missing in {rows}, the first is row {missing[0]}"]
        sizes = np.bincount(self.codes(data))
        if len(sizes) == 1:
            return [f"the unit {self.column!r} is constant: all rows belong to one unit"]
        if self.max_rows is None or sizes.max() <= self.max_rows:
            return []
        above = counted(int((sizes > self.max_rows).sum()), "unit")
        return [
            f"{above} of {self.column!r} with more than {counted(self.max_rows, 'row')} "
            f"(the largest has {sizes.max()})"
        ]

    def canonical(self, values: pd.Series[Any]) -> npt.NDArray[Any]:
        """The identifiers [n] as int64 if they are whole numbers, else as objects."""
        whole = values.dtype.kind in "iu"
        return values.to_numpy(dtype=np.int64 if whole else object)

    def to_document(self) -> dict[str, Any]:
        """This unit as JSON."""
        return {"column": self.column, "max_rows": self.max_rows}

    @staticmethod
    def from_document(document: object) -> Unit:
        """Reads a unit from a schema's JSON.

        Raises:
            SchemaError: If it is no unit.
        """
        if not isinstance(document, Mapping) or not {"column"} <= set(document) <= {
            "column",
            "max_rows",
        }:
            raise SchemaError(
                'the "unit" must be an object such as {"column": "patient_id", "max_rows": 10}'
            )
        return Unit(**document)
