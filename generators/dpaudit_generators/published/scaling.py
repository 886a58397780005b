"""How published PATE-GANs turn a table into scaled numbers, and these back into values.

Xu et al. 2019, "Modeling Tabular Data using Conditional GAN", section 4.2 (mode-specific
normalisation). A mixture fitted on a private table leaks, as its extremes would.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.model.column import MISSING, Column, Kind
from dpaudit.model.encoding import EncodedColumn, encode, layout
from dpaudit.model.encoding import width as encoded_width
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FloatArray
from dpaudit_generators.batches import schema_of_data
from dpaudit_generators.published.recipes import Span, Switch

COMPONENTS: Final = 5
"""Largest number of components of a mixture: the length of their one-hot code."""

SPREAD: Final = 4.0
"""Number of standard deviations of a component that is scaled to 1."""

_CONCENTRATION: Final = 1e-3  # weight concentration prior, so that most components get no weight

_LEAST_DEVIATION: Final = 1e-3

_SEED: Final = 0

_MOST_KEPT: Final = 4096  # mixtures: of two tables with 2,048 numeric columns

_fitted: dict[bytes, Mixture] = {}


class Component(NamedTuple):
    """A normal distribution and its share of the mixture."""

    mean: float
    deviation: float
    weight: float


class Mixture(NamedTuple):
    """At most `COMPONENTS` components by ascending mean, even those with hardly any weight."""

    components: tuple[Component, ...]

    @property
    def size(self) -> int:
        """Number of them."""
        return len(self.components)

    def encode(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Scales values by their most probable components.

        Args:
            values: Values [n].

        Returns:
            Places in [-1, 1], [n], and one-hot codes of the components, [n, size].
        """
        means, deviations, weights = np.array(self.components).T
        scores = (values[:, None] - means) / deviations
        likely = (np.log(weights / deviations) - scores**2 / 2.0).argmax(axis=1)
        places = np.take_along_axis(scores, likely[:, None], axis=1)[:, 0] / SPREAD
        return np.clip(places, -1.0, 1.0), np.eye(self.size)[likely]

    def decode(self, places: FloatArray, slots: npt.NDArray[np.float32] | FloatArray) -> FloatArray:
        """Turns places back into values.

        Args:
            places: Places [...], clipped to [-1, 1].
            slots: One number for each component, [..., size]; the largest names it.

        Returns:
            Values [...].
        """
        means, deviations, _ = np.array(self.components).T
        chosen = slots.argmax(axis=-1)
        decoded: FloatArray = means[chosen] + SPREAD * deviations[chosen] * np.clip(places, -1, 1)
        return decoded


PUBLIC: Final = Mixture((Component(0.5, 0.5 / SPREAD, 1.0),))
"""One component that covers [0, 1] and does not depend on data."""


def fit_mixture(values: FloatArray) -> Mixture:
    """Fits a Bayesian mixture to values in [0, 1], whose order does not matter.

    Args:
        values: The values [n], finite.

    Returns:
        Its components; `PUBLIC` if there are no values.
    """
    values = np.sort(values)
    key = hashlib.blake2b(values.tobytes(), digest_size=32).digest()
    mixture = _fitted.get(key)
    if mixture is None:
        mixture = _fit(values)
        while len(_fitted) >= _MOST_KEPT:
            _fitted.pop(next(iter(_fitted)))  # the oldest
        _fitted[key] = mixture
    return mixture


@cache
def _thread_pools() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()  # cached, because this takes longer than a fit


def _fit(values: FloatArray) -> Mixture:
    distinct = len(np.unique(values))
    if distinct == 0:
        return PUBLIC
    if distinct == 1:
        return Mixture((Component(float(values[0]), _LEAST_DEVIATION, 1.0),))
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import BayesianGaussianMixture

    model = BayesianGaussianMixture(
        n_components=min(COMPONENTS, distinct),
        covariance_type="diag",  # of one column, "full" is the same and slower
        weight_concentration_prior=_CONCENTRATION,
        reg_covar=_LEAST_DEVIATION**2,
        n_init=1,
        random_state=_SEED,
    )
    # Several threads would add up in a different order each time.
    with _thread_pools().limit(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # 100 rounds, as published
        model.fit(values[:, None])
    means, deviations = model.means_[:, 0], np.sqrt(model.covariances_[:, 0])
    # A component without values nearby keeps its place: a generator may choose it all the same.
    parts = zip(means, deviations, model.weights_, strict=True)
    return Mixture(tuple(sorted(Component(*map(float, numbers)) for numbers in parts)))


MOST: Final = 10
"""Largest number of distinct values of a one-hot column."""


class Levels(NamedTuple):
    """The values that a number may take, ascending places between its bounds in [0, 1]."""

    places: tuple[float, ...]

    @property
    def size(self) -> int:
        """Number of them."""
        return len(self.places)

    def encode(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Codes values by their nearest levels.

        Args:
            values: Values [n].

        Returns:
            Zeros [n], because nothing but the level matters, and one-hot codes [n, size].
        """
        nearest = np.abs(values[:, None] - np.array(self.places)).argmin(axis=1)
        return np.zeros(len(values)), np.eye(self.size)[nearest]

    def decode(self, places: FloatArray, slots: npt.NDArray[np.float32] | FloatArray) -> FloatArray:
        """Turns codes back into values.

        Args:
            places: Not read.
            slots: One number for each level, [..., size]; the largest names the level.

        Returns:
            Values [...].
        """
        del places
        decoded: FloatArray = np.array(self.places)[slots.argmax(axis=-1)]
        return decoded


def levels_of(values: FloatArray) -> Levels | None:
    """The distinct values of a column.

    Args:
        values: Values [n] in [0, 1], none of them missing.

    Returns:
        Its levels; None if there are none, or more than `MOST`.
    """
    distinct = np.unique(values)
    return Levels(tuple(map(float, distinct))) if 0 < len(distinct) <= MOST else None


def public_levels(column: Column) -> Levels | None:
    """The values that whole numbers may take within public bounds.

    Args:
        column: A numeric column.

    Returns:
        Its levels; None if it is continuous, or has more than `MOST`.
    """
    lower, upper = column.bounds
    steps = int(upper - lower)
    if column.kind is not Kind.INTEGER or steps != upper - lower or steps >= MOST:
        return None
    return Levels(tuple(step / steps for step in range(steps + 1)))


Matrix = npt.NDArray[np.float32] | FloatArray

Coding: TypeAlias = Mixture | Levels
"""How `Span.MIXTURE` codes a numeric column."""
SLOTS: Final = max(COMPONENTS, MOST)
"""Columns of the matrix that say which component or level a number belongs to."""


@dataclass(frozen=True, kw_only=True)
class Scaling:
    """The numbers that a table was scaled with.

    Columns of the matrix are those of `dpaudit.model.encoding.layout`; after them, under
    `Span.MIXTURE`, `SLOTS` for each numeric column that say which component or level a number
    belongs to. Matrices are turned back entry by entry, so no table depends on the others of its
    stack.

    Attributes:
        schema: The schema, with the bounds in use.
        span: Interval that numbers are scaled to.
        switches: Deviations in turning numbers back.
        codings: For each numeric column, how places of its numbers within the bounds are coded;
            empty unless the span is `MIXTURE`.
        absent: Columns of the matrix for categories that the table lacks, if it decided which ones
            there are.
    """

    schema: Schema
    span: Span
    switches: frozenset[Switch]
    codings: tuple[Coding, ...]
    absent: tuple[int, ...] = ()

    @property
    def width(self) -> int:
        """Number of columns of the matrix; the same for all tables of a schema."""
        return self._first_slot + SLOTS * len(self.codings)

    @cached_property
    def categories(self) -> tuple[slice, ...]:
        """Columns of the matrix that code together, one-hot, which value a column has."""
        chosen = [block.value for block in layout(self.schema) if not block.column.kind.numeric]
        numbers = enumerate(self.codings)
        return (*chosen, *(self._slots(i) for i, coding in numbers if isinstance(coding, Levels)))

    @cached_property
    def groups(self) -> tuple[slice, ...]:
        """Columns of the matrix that are one-hot together."""
        numbers = enumerate(self.codings)
        mixed = (self._slots(i) for i, coding in numbers if isinstance(coding, Mixture))
        return tuple(sorted((*self.categories, *mixed), key=lambda group: group.start))

    def columns_of(self, name: str) -> npt.NDArray[np.intp]:
        """Columns of the matrix that hold the value of a column of the schema.

        Args:
            name: Name of the column.
        """
        block = next(block for block in layout(self.schema) if block.column.name == name)
        own = np.arange(self.width)
        columns = own[block.value]
        if self.codings and block.column.kind.numeric:
            columns = np.concatenate([columns, own[self._slots(self._numeric.index(block))]])
        return columns

    @cached_property
    def possible(self) -> npt.NDArray[np.bool_]:
        """Whether each column of the matrix may differ from 0 [width].

        Unused slots, places of numbers that are one-hot and absent categories may not.
        """
        possible = np.ones(self.width, dtype=np.bool_)
        possible[list(self.absent)] = False
        for index, coding in enumerate(self.codings):
            possible[self._slots(index)] = np.arange(SLOTS) < coding.size
            possible[self._places[index]] = isinstance(coding, Mixture)
        return possible

    @cached_property
    def numbers(self) -> Mapping[str, tuple[float, ...]]:
        """The numbers that scale each numeric column, in its own scale.

        Its bounds; for a fitted mixture, mean and standard deviation of each component; for one
        with few distinct values, these values.
        """
        numbers: dict[str, tuple[float, ...]] = {}
        for index, block in enumerate(self._numeric):
            lower, upper = block.column.bounds
            numbers[block.column.name] = (lower, upper)
            coding = self.codings[index] if self.codings else PUBLIC
            if isinstance(coding, Levels):
                numbers[block.column.name] = tuple(
                    lower + place * (upper - lower) for place in coding.places
                )
            elif coding != PUBLIC:
                numbers[block.column.name] = tuple(
                    number
                    for mean, deviation, _ in coding.components
                    for number in (lower + mean * (upper - lower), deviation * (upper - lower))
                )
        return numbers

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
        for index, coding in enumerate(self.codings):
            places[:, index], codes = coding.encode(places[:, index])
            matrix[:, self._slots(index)][:, : coding.size] = codes
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
            return values  # in [0, 1], where there are no whole numbers any more
        whole = [column.kind is Kind.INTEGER for column in self.schema.columns]
        rounded = np.floor if Switch.INTEGERS_TRUNCATED in self.switches else np.rint
        values[..., whole] = rounded(values[..., whole])
        return values

    def _numbers(self, matrix: Matrix) -> FloatArray:
        """Numbers before rounding and before any is missing, [..., numeric]."""
        places: FloatArray = matrix[..., self._places].astype(np.float64)
        for index, coding in enumerate(self.codings):
            slots = matrix[..., self._slots(index)][..., : coding.size]
            places[..., index] = coding.decode(places[..., index], slots)
        if self.span is Span.SYMMETRIC:
            places = (places + 1.0) / 2.0
        places = np.clip(places, 0.0, 1.0)
        lower, upper = np.array([block.column.bounds for block in self._numeric]).reshape(-1, 2).T
        if Switch.OUTPUT_NOT_INVERTED in self.switches:
            return places
        if Switch.OUTPUT_SHIFTED in self.switches:
            return np.asarray(places * upper + lower)
        numbers: FloatArray = lower + places * (upper - lower)
        return np.clip(numbers, lower, upper)  # rounding errors

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
        span: Interval that numbers are scaled to.
        switches: Deviations; those that do not concern scaling are ignored.

    Returns:
        The scaling: by the schema's bounds, or by what is read off the table instead.

    Raises:
        SchemaError: If a numeric column holds something that is not a number.
    """
    private = Switch.BOUNDS_FROM_DATA in switches
    used = schema_of_data(schema, data) if private else schema
    codings: list[Coding] = []
    absent: list[int] = []
    if span is Span.MIXTURE:
        matrix = encode(data, used) if private else None
        for block in layout(used):
            if block.column.kind.numeric:
                codings.append(_coding(block, matrix))
            elif matrix is not None:
                missing = ~matrix[:, block.value].any(axis=0)
                absent += (block.value.start + np.flatnonzero(missing)).tolist()
    deviations = {Switch.OUTPUT_NOT_INVERTED, Switch.OUTPUT_SHIFTED, Switch.INTEGERS_TRUNCATED}
    return Scaling(
        schema=used,
        span=span,
        switches=frozenset(deviations.intersection(switches)),
        codings=tuple(codings),
        absent=tuple(absent),
    )


def _coding(block: EncodedColumn, matrix: FloatArray | None) -> Coding:
    """The coding of one numeric column: by an encoded table, or by public bounds without one."""
    if matrix is None:
        return public_levels(block.column) or PUBLIC
    known = np.ones(len(matrix), dtype=np.bool_)
    if block.indicator is not None:
        known = matrix[:, block.indicator] == 0.0
    values = np.clip(matrix[known, block.value.start], 0.0, 1.0)
    return levels_of(values) or fit_mixture(values)
