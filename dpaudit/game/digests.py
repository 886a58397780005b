"""Digests of synthetic tables: equal for equal tables, whatever attacks see of them."""

from __future__ import annotations

import hashlib

import numpy as np
import pandas as pd

from dpaudit.model.column import OTHER
from dpaudit.plugins.protocols import FloatArray

_BYTES = 16


def digest_of(values: FloatArray, table: pd.DataFrame | None = None) -> bytes:
    """A digest of a table.

    Args:
        values: Its values [n, d], as `dpaudit.model.encoding.values_of_table` gives them.
        table: The table in canonical form: categories that the schema does not name, which have
            one value, count as they are written, and so do the keys of several tables.
    """
    plain = np.where(np.isnan(values), np.nan, values + 0.0)  # one NaN, one zero
    found = hashlib.blake2b(plain.tobytes(), digest_size=_BYTES)
    has_keys = table is not None and table.shape[1] > values.shape[1]
    if table is not None and (has_keys or (values == OTHER).any()):
        for _, cells in table.select_dtypes("object").items():
            found.update("\0".join(map(repr, cells)).encode("utf-8", "backslashreplace"))
    return found.digest()
