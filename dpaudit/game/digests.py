"""Digests of synthetic tables: equal for equal tables, whatever attacks see of them."""

from __future__ import annotations

import hashlib

import numpy as np
import pandas as pd

from dpaudit.plugins.protocols import FloatArray

_BYTES = 16


def digest_of_table(table: pd.DataFrame) -> bytes:
    """A digest of a table in canonical form (`Schema.canonical`).

    Categories that the schema does not name count as they are written.
    """
    found = hashlib.blake2b(digest_size=_BYTES)
    for _, values in table.items():
        numbers = values.to_numpy()
        found.update(f"{numbers.dtype} ".encode())
        if numbers.dtype == object:
            found.update("\0".join(map(repr, numbers)).encode("utf-8", "backslashreplace"))
        else:
            found.update(numbers.tobytes())
    return found.digest()


def digest_of_values(values: FloatArray) -> bytes:
    """A digest of a table's values [n, d], as `dpaudit.model.encoding.values_of` gives them."""
    plain = np.where(np.isnan(values), np.nan, values + 0.0)  # one NaN, one zero
    return hashlib.blake2b(plain.tobytes(), digest_size=_BYTES).digest()
