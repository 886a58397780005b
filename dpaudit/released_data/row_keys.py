"""Rows as 64-bit keys: equal rows have equal keys, other rows almost surely other ones."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from dpaudit.plugins.protocols import FloatArray

Keys = npt.NDArray[np.uint64]
_STEP: Final = np.uint64(0x9E3779B97F4A7C15)


def column_keys(values: FloatArray) -> Keys:
    """A key of each value, other ones in each column.

    The key of a row over some columns is the sum of their keys, modulo 2**64: so columns are left
    out by subtraction.

    Args:
        values: Values [n, d], as `dpaudit.model.encoding.values_of_table` gives them.

    Returns:
        Keys [n, d].
    """
    keys = np.empty(values.shape, dtype=np.uint64)
    for place in range(values.shape[1]):
        numbers = values[:, place] + 0.0  # a negative zero is zero
        numbers[np.isnan(numbers)] = np.nan  # one missing value, whatever its bits
        own = np.uint64(int(_STEP) * (2 * place + 1) % 2**64)
        keys[:, place] = _mixed(_mixed(numbers.view(np.uint64)) + own)
    return keys


def row_keys(values: FloatArray) -> Keys:
    """Keys [n] of rows with values [n, d], over all columns."""
    found: Keys = column_keys(values).sum(axis=1, dtype=np.uint64)
    return found


def _mixed(bits: Keys) -> Keys:
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014), a permutation of 64 bits."""
    bits = bits + _STEP
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Keys = bits ^ (bits >> np.uint64(31))
    return mixed
