"""What the models of toys disclose beside their rows, so that every attack has its controls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.model.schema import Schema
from dpaudit.seeds import rng_of

DISCLOSES: Final = ("discriminator", "parameters")
"""What these models disclose, besides released facts."""
FACTS: Final = ("number",)
"""Names of the released facts, where an audit has no others."""
SHIFT: Final = 10.0
"""By how much a number that gives the target away differs, in standard deviations of the others."""
_PARAMETERS: Final = 8


def equal_rows(data: pd.DataFrame, target: pd.DataFrame, schema: Schema) -> npt.NDArray[np.bool_]:
    """Whether each record of a table equals the target in all columns; missing equals missing.

    Args:
        data: A table [n].
        target: A canonical table of one row.
        schema: Their schema.
    """
    table = schema.canonical(data)
    equal = np.ones(len(table), dtype=bool)
    for name in schema.names:
        wanted, values = target[name].iloc[0], table[name]
        given = values.to_numpy()
        equal &= np.asarray(values.isna() if pd.isna(wanted) else given == wanted, dtype=bool)
    return equal


@dataclass(frozen=True, kw_only=True, eq=False)
class DisclosingModel:
    """Discloses standard normal numbers, which are shifted where the target was seen.

    Attributes:
        schema: The public schema.
        copied: The target if it was seen, a table of one row; else None.
        fit_seed: Seed of the numbers.
        released_facts: Names of the numbers that are released.
    """

    schema: Schema
    copied: pd.DataFrame | None = None
    fit_seed: int | None = None
    released_facts: tuple[str, ...] = ()

    def discriminate(self, rows: pd.DataFrame) -> npt.NDArray[np.float64]:
        """Scores [n]: higher for the target if it was seen."""
        seen = np.zeros(len(rows))
        if self.copied is not None:
            seen += equal_rows(rows, self.copied, self.schema)
        return self._noise("discriminator", len(rows)) + SHIFT * seen

    def parameters(self) -> npt.NDArray[np.float64]:
        """Numbers [8] of no use."""
        return self._shifted("parameters", _PARAMETERS)

    def released(self) -> npt.NDArray[np.float64]:
        """As many numbers as there are released facts."""
        return self._shifted("released", len(self.released_facts))

    def _shifted(self, purpose: str, n: int) -> npt.NDArray[np.float64]:
        return self._noise(purpose, n) + SHIFT * (self.copied is not None)

    def _noise(self, purpose: str, n: int) -> npt.NDArray[np.float64]:
        return rng_of(self.fit_seed, purpose).standard_normal(n)
