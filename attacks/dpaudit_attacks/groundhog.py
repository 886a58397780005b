"""The GroundHog attacks: features of the whole synthetic table, independent of the target.

Stadler, Oprisanu, Troncoso: "Synthetic Data - Anonymisation Groundhog Day", USENIX Security 2022.
The features do not depend on the target; the classifier learns how its presence changes them.
F_naive are summary statistics of each column, F_hist its distribution over public bins, F_corr the
correlations of every two columns. Bins come from the schema and keep their identity, because
published versions of F_hist made two errors: they sorted counts, and binned with the data of one
world.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dpaudit.errors import SettingsError
from dpaudit.model.column import Column
from dpaudit.model.encoding import encode_values, layout, width
from dpaudit.model.schema import Schema
from dpaudit.model.setting import AT_LEAST_1, check_number
from dpaudit.plugins.protocols import FeatureName, FloatArray, GameView, IntArray
from dpaudit_attacks.classifiers import CHOSEN, ClassifierAttack
from dpaudit_attacks.columns import (
    FAR,
    ColumnStack,
    bin_counts,
    bin_names,
    category_names,
    in_blocks,
    in_fixed_order,
    limits,
    round_sums,
    slot_counts,
)


class _GroundHog(ClassifierAttack):
    """The base of the paper's attacks, which processes a few tables at a time."""

    def features_many(self, values: FloatArray, game: GameView) -> FloatArray:
        """Features [M, f] of the values [M, n, d] of many synthetic tables."""
        n_rows, encoded = values.shape[1], width(game.schema)
        return in_blocks(
            lambda block: self._features(block, game.schema),
            values,
            cells=encoded * max(n_rows, encoded),
        )

    @abstractmethod
    def _features(self, values: FloatArray, schema: Schema) -> FloatArray:
        """Features [m, f] of the values [m, n, d] of a few tables."""


@dataclass(frozen=True, kw_only=True)
class Naive(_GroundHog):
    """Summary statistics of each column.

    Attributes:
        spread: "std" (standard deviation, the paper's text) or "variance" (its published code).

    Raises:
        SettingsError: If an option is outside its range.
    """

    spread: str = "std"

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_spread(self.spread)

    def feature_names(self, game: GameView) -> tuple[FeatureName, ...]:
        """Names of the features, in the order of `features`."""
        return naive_names(game.schema, spread=self.spread)

    def _features(self, values: FloatArray, schema: Schema) -> FloatArray:
        return naive_values(ColumnStack.of(values, schema), schema, spread=self.spread)


@dataclass(frozen=True, kw_only=True)
class Histogram(_GroundHog):
    """Proportions of each column's values in public bins and categories.

    Attributes:
        bins: Equal bins over a numeric column's bounds.

    Raises:
        SettingsError: If an option is outside its range.
    """

    bins: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("bins", self.bins, AT_LEAST_1, whole=True)

    def feature_names(self, game: GameView) -> tuple[FeatureName, ...]:
        """Names of the features, in the order of `features`."""
        return histogram_names(game.schema, bins=self.bins)

    def _features(self, values: FloatArray, schema: Schema) -> FloatArray:
        return histogram_values(ColumnStack.of(values, schema), schema, bins=self.bins)


@dataclass(frozen=True, kw_only=True)
class Correlation(_GroundHog):
    """Correlations of every two numeric columns and one-hot categories."""

    def feature_names(self, game: GameView) -> tuple[FeatureName, ...]:
        """Names of the features, in the order of `features`."""
        return correlation_names(game.schema)

    def _features(self, values: FloatArray, schema: Schema) -> FloatArray:
        return correlation_values(values, schema)


@dataclass(frozen=True, kw_only=True)
class Ensemble(_GroundHog):
    """The three feature sets together: naive, histogram, correlation.

    Attributes:
        bins: Equal bins over a numeric column's bounds.
        spread: "std" (standard deviation, the paper's text) or "variance" (its published code).

    Raises:
        SettingsError: If an option is outside its range.
    """

    bins: int = 10
    spread: str = "std"
    classifier: str = CHOSEN

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("bins", self.bins, AT_LEAST_1, whole=True)
        _require_spread(self.spread)

    def feature_names(self, game: GameView) -> tuple[FeatureName, ...]:
        """Names of the features, in the order of `features`."""
        return (
            *naive_names(game.schema, spread=self.spread),
            *histogram_names(game.schema, bins=self.bins),
            *correlation_names(game.schema),
        )

    def _features(self, values: FloatArray, schema: Schema) -> FloatArray:
        stack = ColumnStack.of(values, schema)
        parts = [
            naive_values(stack, schema, spread=self.spread),
            histogram_values(stack, schema, bins=self.bins),
            correlation_values(values, schema),
        ]
        return np.concatenate(parts, axis=1)


def _require_spread(spread: str) -> None:
    if spread not in SPREADS:
        choices = " or ".join(repr(name) for name in SPREADS)
        raise SettingsError(f"spread must be {choices}, got {spread!r}")


SPREADS = ("std", "variance")
_SPREAD_NAME = {"std": "standard deviation", "variance": "variance"}


def naive_names(schema: Schema, *, spread: str) -> tuple[FeatureName, ...]:
    """Names of the features; see `naive_values`."""
    numeric = ["min", "max", "mean", "median", _SPREAD_NAME[spread]]
    categorical = ["most frequent category", "least frequent category", "distinct categories"]
    return tuple(
        FeatureName(column.name, feature)
        for column in schema.columns
        for feature in (numeric if column.kind.numeric else categorical)
        + ["share missing"] * column.missing
    )


def naive_values(stack: ColumnStack, schema: Schema, *, spread: str) -> FloatArray:
    """Summary statistics, column by column.

    For a number: minimum, maximum, mean, median and spread (dividing by the count) of the values
    present; 0 if there are none. For a category: the codes of the most and the least frequent
    category that occurs (on a tie the lowest code; unnamed categories share the code after the
    last; -1 if none occurs), and the number of categories that occur. Then, if values may be
    missing, the share of missing ones.

    Args:
        stack: M tables.
        schema: Their schema.
        spread: "std" as in the paper's text, or "variance" as in its published code.

    Returns:
        Features [M, f].
    """
    bounds = [column.bounds for column in schema.columns if column.kind.numeric]
    widths = np.array([upper - lower for lower, upper in bounds], dtype=np.float64)
    numeric = iter(_summarise_numbers(stack, widths, spread=spread).swapaxes(0, 1))
    categorical = iter(stack.slots.swapaxes(0, 1))
    parts = []
    for column in schema.columns:
        if column.kind.numeric:
            summary = next(numeric)
        else:
            summary = _summarise_categories(
                slot_counts(next(categorical), len(column.categories) + 2)
            )
        parts.append(summary if column.missing else summary[:, :-1])
    return np.concatenate(parts, axis=1)


def _summarise_numbers(stack: ColumnStack, widths: FloatArray, *, spread: str) -> FloatArray:
    """Summaries [M, numeric columns, 6] of sorted numbers; the last is the share missing."""
    ordered = stack.ordered
    missing = np.isnan(ordered)
    absent = missing.sum(axis=-1)
    present = ordered.shape[-1] - absent
    divisor = np.maximum(present, 1)

    def at(place: IntArray) -> FloatArray:
        return np.take_along_axis(ordered, place[..., None], axis=-1)[..., 0]

    mean = np.where(missing, 0.0, ordered).sum(axis=-1) / divisor
    deviations = ordered - mean[..., None]
    deviations[missing] = 0.0
    variance = np.einsum("mdn,mdn->md", deviations, deviations) / divisor
    summary = np.stack(
        [
            ordered[..., 0],
            at(divisor - 1),
            round_sums(mean, widths),
            (at((divisor - 1) // 2) + at(divisor // 2)) / 2,
            round_sums(np.sqrt(variance), widths)
            if spread == "std"
            else round_sums(variance, widths**2),
            absent / ordered.shape[-1],
        ],
        axis=-1,
    )
    summary[present == 0, :-1] = 0.0
    return summary


def _summarise_categories(counts: IntArray) -> FloatArray:
    """Summary [M, 4] of the counts [M, slots] of a column; the last is the share missing."""
    seen = counts[:, :-1]
    occurring = seen > 0
    rarest = np.where(occurring, seen, np.iinfo(np.int64).max).argmin(axis=1)
    is_empty = ~occurring.any(axis=1)
    return np.column_stack(
        [
            np.where(is_empty, -1, seen.argmax(axis=1)),
            np.where(is_empty, -1, rarest),
            occurring.sum(axis=1),
            counts[:, -1] / counts.sum(axis=1),
        ]
    )


def histogram_names(schema: Schema, *, bins: int) -> tuple[FeatureName, ...]:
    """Names of the features; see `histogram_values`."""
    return tuple(
        FeatureName(column.name, feature)
        for column in schema.columns
        for feature in _share_names(column, schema, bins) + ["share of missing"] * column.missing
    )


def histogram_values(stack: ColumnStack, schema: Schema, *, bins: int) -> FloatArray:
    """Proportions of rows, column by column.

    For a number: below the bounds, in each of `bins` equal bins between them, above them. For
    categories: each one in schema order, then all others together. Then, if values may be missing,
    the share of missing ones.

    Args:
        stack: M tables.
        schema: Their schema.
        bins: Number of bins of a numeric column.

    Returns:
        Features [M, f].
    """
    numeric, categorical = iter(stack.ordered.swapaxes(0, 1)), iter(stack.slots.swapaxes(0, 1))
    parts = []
    for column in schema.columns:
        if column.kind.numeric:
            counts = bin_counts(next(numeric), limits(column, bins))
        else:
            counts = slot_counts(next(categorical), len(column.categories) + 2)
        parts.append(counts if column.missing else counts[:, :-1])
    n_rows = stack.numbers.shape[-1]
    return np.asarray(np.concatenate(parts, axis=1) / n_rows, dtype=np.float64)


def _share_names(column: Column, schema: Schema, bins: int) -> list[str]:
    """Names of the shares of one column."""
    if column.kind.numeric:
        return [f"share {place}" for place in bin_names(column, schema, bins)]
    named = [f"share of {name}" for name in category_names(column, schema)]
    return [*named, "share of other categories"]


def correlation_names(schema: Schema) -> tuple[FeatureName, ...]:
    """Names of the features; see `correlation_values`."""
    labels = []  # (column, part of it) for each encoded column
    for column, _, indicator in layout(schema):
        if column.kind.numeric:
            labels.append((column.name, ""))
        else:
            categories = category_names(column, schema)
            labels += [(column.name, f"{column.name}={name}") for name in categories]
        if indicator is not None or (column.missing and not column.kind.numeric):
            labels.append((column.name, f"{column.name} missing"))
    return tuple(_pair_name(*first, *second) for first, second in combinations(labels, 2))


def correlation_values(tables: FloatArray, schema: Schema) -> FloatArray:
    """Correlations of every two columns of the encoded tables, with one-hot categories.

    Args:
        tables: Values [M, n, d], as `dpaudit.model.encoding.values_of` gives them.
        schema: Their schema.

    Returns:
        The upper triangle, row by row, of each correlation matrix [M, f]; 0 where a column is
        constant.
    """
    matrix = np.clip(encode_values(in_fixed_order(tables), schema), -FAR, FAR)
    constant = matrix.max(axis=1) == matrix.min(axis=1)
    matrix -= matrix.mean(axis=1, keepdims=True)
    norms = np.sqrt(np.einsum("mnw,mnw->mw", matrix, matrix))
    # The mean of a constant may have a rounding error, which would show as correlation.
    norms[constant | (norms == 0)] = np.inf
    matrix /= norms[:, None]
    first, second = np.triu_indices(matrix.shape[2], k=1)
    products = (matrix.swapaxes(1, 2) @ matrix)[:, first, second]
    return round_sums(np.clip(products, -1.0, 1.0))


def _pair_name(column: str, part: str, other_column: str, other_part: str) -> FeatureName:
    """Name of the correlation of two columns, or of categories of them."""
    columns = column if column == other_column else f"{column} & {other_column}"
    if not part and not other_part:
        return FeatureName(columns, "correlation")
    return FeatureName(
        columns, f"correlation of {part or column} with {other_part or other_column}"
    )
