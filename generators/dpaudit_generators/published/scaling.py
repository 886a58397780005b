"""How published PATE-GANs turn a table into numbers, and the numbers back."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.model.encoding import EncodedColumn, encode, layout
from dpaudit.model.encoding import width as encoded_width
from dpaudit.model.schema import MISSING, Kind, Schema
from dpaudit.plugins.protocols import FloatArray
from dpaudit_generators.pate_gan.bounds import schema_of_data
from dpaudit_generators.published.mixture import PUBLIC, SLOTS, Mixture, fit_mixture
from dpaudit_generators.published.switches import Switch

Matrix = npt.NDArray[np.float32] | FloatArray


class Span(StrEnum):
    """What numbers are scaled to."""

    UNIT = "unit"
    """Bounds to [0, 1]."""
    SYMMETRIC = "symmetric"
    """Bounds to [-1, 1]."""
    MIXTURE = "mixture"
    """Four deviations about the mean of a component to [-1, 1], and which component, one-hot."""


@dataclass(frozen=True, kw_only=True)
class Scaling:
    """The numbers that a table was scaled with.

    Columns of the matrix are those of `dpaudit.model.encoding.layout`; behind them, under
    `Span.MIXTURE`, `SLOTS` for each numeric column that say which component a number is of.
    All that turns matrices back does so entry by entry: no table depends on another of its stack.

    Attributes:
        schema: The schema, with the bounds in use.
        span: What numbers are scaled to.
        switches: Deviations in turning numbers back.
        mixtures: Of the places of numbers within the bounds, one for each numeric column; empty
            unless the span is `MIXTURE`.
    """

    schema: Schema
    span: Span
    switches: frozenset[Switch]
    mixtures: tuple[Mixture, ...]

    @property
    def width(self) -> int:
        """Columns of the matrix; the same for all tables of a schema."""
        return self._first_slot + SLOTS * len(self.mixtures)

    @cached_property
    def groups(self) -> tuple[slice, ...]:
        """Columns of the matrix that are one-hot together."""
        chosen = [block.value for block in layout(self.schema) if not block.column.kind.numeric]
        return (*chosen, *(self._slots(index) for index in range(len(self.mixtures))))

    @cached_property
    def possible(self) -> npt.NDArray[np.bool_]:
        """Whether a column of the matrix may differ from 0 [width]: an unused slot may not."""
        found = np.ones(self.width, dtype=np.bool_)
        for index, mixture in enumerate(self.mixtures):
            found[self._slots(index)] = np.arange(SLOTS) < len(mixture.components)
        return found

    @cached_property
    def numbers(self) -> Mapping[str, tuple[float, ...]]:
        """What scales each numeric column, in its own scale.

        Its bounds; of a fitted mixture, mean and standard deviation of each component.
        """
        found: dict[str, tuple[float, ...]] = {}
        for index, block in enumerate(self._numeric):
            lower, upper = block.column.bounds
            found[block.column.name] = (lower, upper)
            if self.mixtures and self.mixtures[index] != PUBLIC:
                found[block.column.name] = tuple(
                    number
                    for mean, deviation, _ in self.mixtures[index].components
                    for number in (lower + mean * (upper - lower), deviation * (upper - lower))
                )
        return found

    def encode(self, data: pd.DataFrame) -> npt.NDArray[np.float32]:
        """Scales a table.

        Args:
            data: A table [n] with the schema's columns.

        Returns:
            Matrix [n, width]; a value beyond the bounds counts as one, a missing number as the
            middle of them.

        Raises:
            SchemaError: If a numeric column holds something that is not a number.
        """
        matrix = np.zeros((len(data), self.width))
        matrix[:, : self._first_slot] = encode(data, self.schema)
        places = np.clip(matrix[:, self._places], 0.0, 1.0)
        if self.span is Span.SYMMETRIC:
            places = 2.0 * places - 1.0
        for index, mixture in enumerate(self.mixtures):
            places[:, index], matrix[:, self._slots(index)] = mixture.encode(places[:, index])
        matrix[:, self._places] = places
        return matrix.astype(np.float32)

    def unrounded(self, matrix: Matrix) -> FloatArray:
        """Turns matrices back into values as they are before they are rounded.

        Args:
            matrix: Scaled rows [..., width]; numbers are clipped to the span.

        Returns:
            Values [..., d] as `dpaudit.model.encoding.values_of` gives them, but for rounding.
        """
        values = np.empty((*matrix.shape[:-1], len(self.schema.columns)))
        values[..., self._is_numeric] = self._numbers(matrix)
        for position, (column, value, indicator) in enumerate(layout(self.schema)):
            if indicator is not None:
                values[..., position][matrix[..., indicator] >= 0.5] = np.nan
            elif not column.kind.numeric:
                codes = matrix[..., value].argmax(axis=-1)
                values[..., position] = np.where(codes == len(column.categories), MISSING, codes)
        return values

    def values(self, matrix: Matrix) -> FloatArray:
        """Turns matrices back into values as the generator gives them out.

        Args:
            matrix: Scaled rows [..., width], read as `unrounded` does.

        Returns:
            Values [..., d], `unrounded` but for integers: to the nearest, or down.
        """
        values = self.unrounded(matrix)
        if Switch.OUTPUT_NOT_INVERTED in self.switches:
            return values  # nobody knows that they were whole numbers
        whole = [column.kind is Kind.INTEGER for column in self.schema.columns]
        rounded = np.floor if Switch.INTEGERS_TRUNCATED in self.switches else np.rint
        values[..., whole] = rounded(values[..., whole])
        return values

    def _numbers(self, matrix: Matrix) -> FloatArray:
        """Numbers before rounding, none missing, [..., numeric]."""
        places: FloatArray = matrix[..., self._places].astype(np.float64)
        for index, mixture in enumerate(self.mixtures):
            places[..., index] = mixture.decode(places[..., index], matrix[..., self._slots(index)])
        if self.span is Span.SYMMETRIC:
            places = (places + 1.0) / 2.0
        fitted = any(mixture != PUBLIC for mixture in self.mixtures)  # and may pass the extremes
        if not fitted or Switch.OUTPUT_NOT_INVERTED in self.switches:
            places = np.clip(places, 0.0, 1.0)
        lower, upper = np.array([block.column.bounds for block in self._numeric]).reshape(-1, 2).T
        if Switch.OUTPUT_NOT_INVERTED in self.switches:
            return places
        if Switch.OUTPUT_SHIFTED in self.switches:
            return np.asarray(places * upper + lower)
        numbers: FloatArray = lower + places * (upper - lower)
        return numbers if fitted else np.clip(numbers, lower, upper)  # rounding errors

    @cached_property
    def _first_slot(self) -> int:
        return encoded_width(self.schema)

    def _slots(self, index: int) -> slice:
        start = self._first_slot + SLOTS * index
        return slice(start, start + SLOTS)

    @cached_property
    def _numeric(self) -> tuple[EncodedColumn, ...]:
        return tuple(block for block in layout(self.schema) if block.column.kind.numeric)

    @cached_property
    def _places(self) -> list[int]:
        return [block.value.start for block in self._numeric]

    @cached_property
    def _is_numeric(self) -> list[bool]:
        return [column.kind.numeric for column in self.schema.columns]


def fit_scaling(
    data: pd.DataFrame, schema: Schema, *, span: Span, switches: Collection[Switch]
) -> Scaling:
    """Settles the numbers that scale a table.

    Args:
        data: The table [n]; read under `Switch.BOUNDS_FROM_DATA` alone.
        schema: The public schema.
        span: What numbers are to be scaled to.
        switches: Deviations; those that are not about scaling are of no account.

    Returns:
        The scaling: by the schema's bounds, or what the table gives in their place.

    Raises:
        SchemaError: If a numeric column holds something that is not a number.
    """
    private = Switch.BOUNDS_FROM_DATA in switches
    used = schema_of_data(schema, data) if private else schema
    numeric = [block for block in layout(used) if block.column.kind.numeric]
    mixtures = [PUBLIC] * len(numeric) if span is Span.MIXTURE else []
    if mixtures and private:
        matrix = encode(data, used)
        for index, block in enumerate(numeric):
            known = np.ones(len(data), dtype=np.bool_)
            if block.indicator is not None:
                known = matrix[:, block.indicator] == 0.0
            mixtures[index] = fit_mixture(np.clip(matrix[known, block.value.start], 0.0, 1.0))
    deviations = {Switch.OUTPUT_NOT_INVERTED, Switch.OUTPUT_SHIFTED, Switch.INTEGERS_TRUNCATED}
    return Scaling(
        schema=used,
        span=span,
        switches=frozenset(deviations.intersection(switches)),
        mixtures=tuple(mixtures),
    )
