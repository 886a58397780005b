"""How published PATE-GANs turn a table into scaled numbers, and these back into values."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.model.column import MISSING, Kind
from dpaudit.model.encoding import EncodedColumn, encode, layout
from dpaudit.model.encoding import width as encoded_width
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FloatArray
from dpaudit_generators.pate_gan.bounds import schema_of_data
from dpaudit_generators.published.mixture import PUBLIC, SLOTS, Mixture, fit_mixture
from dpaudit_generators.published.switches import Switch

Matrix = npt.NDArray[np.float32] | FloatArray


class Span(StrEnum):
    """The interval that numbers are scaled to."""

    UNIT = "unit"
    """From the bounds to [0, 1]."""
    SYMMETRIC = "symmetric"
    """From the bounds to [-1, 1]."""
    MIXTURE = "mixture"
    """From four deviations about a component's mean to [-1, 1]; a one-hot code says which one."""


@dataclass(frozen=True, kw_only=True)
class Scaling:
    """The numbers that a table was scaled with.

    Columns of the matrix are those of `dpaudit.model.encoding.layout`; after them, under
    `Span.MIXTURE`, `SLOTS` for each numeric column that say which component a number belongs to.
    Matrices are turned back entry by entry, so no table depends on the others of its stack.

    Attributes:
        schema: The schema, with the bounds in use.
        span: What numbers are scaled to.
        switches: Deviations in turning numbers back.
        mixtures: For each numeric column, that of the places of its numbers within the bounds;
            empty unless the span is `MIXTURE`.
    """

    schema: Schema
    span: Span
    switches: frozenset[Switch]
    mixtures: tuple[Mixture, ...]

    @property
    def width(self) -> int:
        """Number of columns of the matrix; the same for all tables of a schema."""
        return self._first_slot + SLOTS * len(self.mixtures)

    @cached_property
    def groups(self) -> tuple[slice, ...]:
        """Columns of the matrix that are one-hot together."""
        chosen = [block.value for block in layout(self.schema) if not block.column.kind.numeric]
        return (*chosen, *(self._slots(index) for index in range(len(self.mixtures))))

    @cached_property
    def possible(self) -> npt.NDArray[np.bool_]:
        """Whether each column of the matrix may differ from 0 [width]; unused slots may not."""
        found = np.ones(self.width, dtype=np.bool_)
        for index, mixture in enumerate(self.mixtures):
            found[self._slots(index)] = np.arange(SLOTS) < len(mixture.components)
        return found

    @cached_property
    def numbers(self) -> Mapping[str, tuple[float, ...]]:
        """The numbers that scale each numeric column, in its own scale.

        Its bounds; for a fitted mixture, mean and standard deviation of each component.
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
            Matrix [n, width]; a value beyond the bounds counts as the bound, a missing number as
            the middle between them.

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
        """Turns matrices back into values that are not rounded yet.

        Args:
            matrix: Scaled rows [..., width]; numbers are clipped to the span.

        Returns:
            Values [..., d], as `dpaudit.model.encoding.values_of` gives them except for rounding.
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
        """Turns matrices back into values as the generator releases them.

        Args:
            matrix: Scaled rows [..., width], read as in `unrounded`.

        Returns:
            Values [..., d]; integers are rounded to the nearest, or down.
        """
        values = self.unrounded(matrix)
        if Switch.OUTPUT_NOT_INVERTED in self.switches:
            return values  # in [0, 1], where nothing is a whole number any more
        whole = [column.kind is Kind.INTEGER for column in self.schema.columns]
        rounded = np.floor if Switch.INTEGERS_TRUNCATED in self.switches else np.rint
        values[..., whole] = rounded(values[..., whole])
        return values

    def _numbers(self, matrix: Matrix) -> FloatArray:
        """Numbers before rounding and before any is missing, [..., numeric]."""
        places: FloatArray = matrix[..., self._places].astype(np.float64)
        for index, mixture in enumerate(self.mixtures):
            places[..., index] = mixture.decode(places[..., index], matrix[..., self._slots(index)])
        if self.span is Span.SYMMETRIC:
            places = (places + 1.0) / 2.0
        fitted = any(mixture != PUBLIC for mixture in self.mixtures)  # these may pass the extremes
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
    """Chooses the numbers that scale a table.

    Args:
        data: The table [n]; read only under `Switch.BOUNDS_FROM_DATA`.
        schema: The public schema.
        span: What numbers are scaled to.
        switches: Deviations; those that are not about scaling are ignored.

    Returns:
        The scaling: by the schema's bounds, or by what is read off the table instead.

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
