"""What an attacker sees in the outputs of a mechanism: numbers, flags, order, and bits.

Outputs are numbers, texts, sequences or dictionaries of them. They become a table with a column
for each place, and that becomes features with names that a sentence can use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

BITS: Final = "the lowest bit of "
"""Prefix of features whose leak ends if outputs are rounded to a public grid."""
MOST_PLACES: Final = 30
"""Largest number of places of an output that become features."""
_MOST_PAIRS: Final = 8
"""With more places, differences between them are left out."""
_MOST_FLAGS: Final = 6
"""Largest number of recurring values of a place that become flags."""
_OFTEN: Final = 0.002
"""Share of outputs above which a value counts as a flag."""


def table_of(outputs: Any) -> pd.DataFrame:
    """Outputs as a table, a row for each; places that one output lacks are missing.

    Args:
        outputs: An array of numbers, its first axis the outputs; or a sequence of outputs.
    """
    try:
        numbers = np.asarray(outputs, dtype=np.float64)
    except (TypeError, ValueError):
        rows = [dict(_leaves(output, "")) for output in outputs]
        return pd.DataFrame.from_records(rows).iloc[:, :MOST_PLACES]
    flat = numbers.reshape(len(numbers), -1)[:, :MOST_PLACES]
    several = [f"output {number + 1}" for number in range(flat.shape[1])]
    names = ["the output"] if numbers.ndim == 1 else several
    return pd.DataFrame(flat, columns=names)


def _leaves(output: Any, name: str) -> Iterator[tuple[str, Any]]:
    """The numbers and texts of an output, each with the name of its place."""
    if isinstance(output, Mapping):
        for key, value in output.items():
            yield from _leaves(value, f"{name}[{key!r}]" if name else f"output {key!r}")
    elif isinstance(output, list | tuple | np.ndarray):
        for number, value in enumerate(output):
            yield from _leaves(value, f"{name}[{number}]" if name else f"output {number + 1}")
    else:
        is_plain = output is None or isinstance(output, str | int | float | np.number | np.bool_)
        yield name or "the output", output if is_plain else repr(output)


@dataclass(frozen=True)
class Features:
    """Names and values of features, fixed by outputs that are not counted.

    Attributes:
        places: The places that outputs have.
        flags: Values that recur, by place.
    """

    places: tuple[str, ...]
    flags: Mapping[str, tuple[Any, ...]]

    @classmethod
    def of(cls, outputs: pd.DataFrame) -> Features:
        """The features of outputs like these."""
        often = {
            str(place): [
                value
                for value, count in Counter(outputs[place].tolist()).most_common(_MOST_FLAGS)
                if count > _OFTEN * len(outputs) and value == value
            ]
            for place in outputs
        }
        return cls(
            tuple(map(str, outputs)),
            {place: tuple(values) for place, values in often.items()},
        )

    def named(self, outputs: pd.DataFrame) -> dict[str, FloatArray]:
        """The values of each feature, by its name.

        Args:
            outputs: A table of `table_of`.
        """
        outputs = outputs.reindex(columns=list(self.places))
        numbers = {place: _numbers(outputs[place]) for place in self.places}
        columns: dict[str, Any] = {}
        for place, values in numbers.items():
            columns[place] = values
            for flag in self.flags[place]:
                columns[f"{place} is {_shown(flag)}"] = outputs[place] == flag
            columns[f"{place} is missing"] = outputs[place].isna()
            columns[f"{BITS}{place}"] = lowest_bits(values)
        if len(self.places) > 1:
            columns |= self._of_several(outputs, np.stack(list(numbers.values()), axis=1))
        return {name: np.asarray(values, dtype=np.float64) for name, values in columns.items()}

    def _of_several(self, outputs: pd.DataFrame, numbers: FloatArray) -> Iterator[tuple[str, Any]]:
        """Features of all places together, as pairs of name and values."""
        filled = np.where(np.isnan(numbers), -np.inf, numbers)
        yield "the largest output", filled.max(axis=1)
        yield "the place of the largest output", filled.argmax(axis=1) + 1
        yield "the sum of the outputs", np.nansum(numbers, axis=1)
        yield "the number of outputs", outputs.notna().sum(axis=1)
        for flag in dict.fromkeys(flag for flags in self.flags.values() for flag in flags):
            is_flag = (outputs == flag).to_numpy()
            yield f"the number of outputs {_shown(flag)}", is_flag.sum(axis=1)
            first = np.where(is_flag.any(axis=1), is_flag.argmax(axis=1) + 1, 0)
            yield f"the place of the first output {_shown(flag)}", first
        if len(self.places) <= _MOST_PAIRS:
            for i, j in combinations(range(len(self.places)), 2):
                name = f"{self.places[i]} minus {self.places[j]}"
                yield name, numbers[:, i] - numbers[:, j]


def _shown(flag: Any) -> str:
    return f"{flag:g}" if isinstance(flag, float) else repr(flag)


def _numbers(values: pd.Series[Any]) -> FloatArray:
    """A column's numbers; NaN where it has none."""
    if values.dtype.kind in "fiub":
        return values.to_numpy(dtype=np.float64)
    return pd.to_numeric(values, errors="coerce").to_numpy(dtype=np.float64)


def lowest_bits(numbers: FloatArray) -> FloatArray:
    """The exponent of the lowest bit that is set; 0 where the number is 0, infinite or missing.

    Noise drawn in floating point leaves bits that its sum with a larger number cannot have
    (Mironov 2012).
    """
    bits = np.zeros(numbers.shape)
    known = np.isfinite(numbers) & (numbers != 0)
    mantissas, exponents = np.frexp(numbers[known])
    whole = np.abs(np.ldexp(mantissas, 53)).astype(np.int64)
    bits[known] = exponents - 53 + np.log2(whole & -whole)
    return bits
