"""The last bits of numbers, which floating-point noise leaves readable.

Mironov 2012, "On significance of the least significant bits for differential privacy": the sum of a
value and naive Laplace noise cannot be any float, and which floats it can be depends on the value.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dpaudit.model.column import Kind
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FeatureName, FloatArray
from dpaudit_attacks.columns import settled, slot_counts
from dpaudit_attacks.form.view import Beside, FeatureGroup, flat, labelled

FINE: Final = (8, 16, 24, 32, 36, *range(40, 65))
"""Powers k of the counts; a number between 1/2 and 1 is a multiple of 2^-53."""
_MANTISSA: Final = 53
LABELS: Final = (*(f"numbers that are no multiples of 2^-{k}" for k in FINE), "mean of zero bits")


def bits_names(schema: Schema) -> list[FeatureName]:
    """Names of the features; see `bits_values`."""
    return labelled([c.name for c in schema.columns if c.kind is Kind.CONTINUOUS], LABELS)


def bits_values(view: Beside) -> FloatArray:
    """Counts of numbers by their last bit that is set, of each continuous column.

    Args:
        view: M tables.

    Returns:
        Features [M, f]: how many numbers are no multiples of 2^-k, for each k of `FINE`, and how
        many of the 53 bits of a number are zeros at its end, on average.
    """
    numeric = [column for column in view.schema.columns if column.kind.numeric]
    continuous = np.array([column.kind is Kind.CONTINUOUS for column in numeric], dtype=np.bool_)
    numbers = np.nan_to_num(view.stack.numbers[:, continuous])
    fractions, exponents = np.frexp(numbers)
    whole = np.ldexp(fractions, _MANTISSA).astype(np.int64)
    zeros = np.bitwise_count((whole & -whole) - 1).astype(np.int64)
    finest = np.clip(_MANTISSA - zeros - exponents, 0, FINE[-1] + 1)
    finest[whole == 0] = 0  # a multiple of every power, as a missing number counts
    coarser = slot_counts(finest.reshape(-1, view.n_rows), FINE[-1] + 2).cumsum(axis=1)
    finer = (view.n_rows - coarser[:, FINE]).reshape(*finest.shape[:2], len(FINE))
    mean = settled(np.where(whole == 0, 0, zeros).sum(axis=-1) / view.n_rows)
    return flat([*np.moveaxis(finer, -1, 0), mean])


BITS = FeatureGroup(bits_names, bits_values)
