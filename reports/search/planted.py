"""Small synthesizers whose defects show only on some pairs of tables, each with an honest twin.

Every one releases noisy numbers of a table with a category `a` of three values, a binary `b` and a
number `x` from 0 to 10, at epsilon 1 in all for a record that is added or removed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema

Numbers = npt.NDArray[np.float64]
Answers = Callable[[pd.DataFrame, np.random.Generator], Numbers]

CLASSES: Final = 3
TOP: Final = 10.0
SCHEMA: Final = Schema(
    columns=(
        Column(name="a", kind=Kind.CATEGORICAL, categories=tuple(range(CLASSES))),
        Column(name="b", kind=Kind.BINARY, categories=(0, 1)),
        Column(name="x", kind=Kind.CONTINUOUS, lower=0.0, upper=TOP),
    )
)


class Synthesizer:
    """Rows from noisy numbers.

    Args:
        name: The name of a defect in `DEFECTS`.
        honest: Whether it is the honest twin.
    """

    def __init__(self, name: str, *, honest: bool = False) -> None:
        self.name, self.honest = name, honest
        self.claim = PrivacyClaim(epsilon=1.0)

    def fit(self, data: pd.DataFrame, *, seed: int) -> Released:
        """Releases the noisy numbers of a table."""
        defect = DEFECTS[self.name]
        answers = defect.honest if self.honest else defect.broken
        return Released(answers(data, np.random.default_rng(seed)))


class Released:
    """Noisy numbers, of which the first three give the shares of the classes.

    Args:
        numbers: The numbers.
    """

    def __init__(self, numbers: Numbers) -> None:
        self.numbers = numbers

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Draws rows."""
        rng = np.random.default_rng(seed)
        weights = np.clip(np.resize(self.numbers, CLASSES), 0.01, 1e6)
        return pd.DataFrame(
            {
                "a": rng.choice(CLASSES, p=weights / weights.sum(), size=n),
                "b": rng.integers(0, 2, n),
                "x": rng.uniform(0.0, TOP, n),
            }
        )


class Defect(NamedTuple):
    """A defect.

    Attributes:
        what: What is wrong, in the table.
        broken: The noisy numbers with it.
        honest: The same without.
    """

    what: str
    broken: Answers
    honest: Answers


def _counts(data: pd.DataFrame) -> Numbers:
    return np.array([(data["a"] == value).sum() for value in range(CLASSES)], dtype=np.float64)


def _noisy_counts(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    return _counts(data) + rng.laplace(scale=1.0, size=CLASSES)


def _counts_in_a_byte(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    return _counts(data).astype(np.int8) + rng.laplace(scale=1.0, size=CLASSES)


def _sum_in_observed_range(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    span = float(data["x"].max() - data["x"].min()) if len(data) else 0.0
    return np.array([data["x"].sum() + rng.laplace(scale=max(span, 1.0))])


def _sum_in_public_range(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    return np.array([data["x"].sum() + rng.laplace(scale=TOP)])


def _noise_for_the_larger_bound(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    return np.array([(data["b"] + data["x"]).sum() + rng.laplace(scale=TOP)])


def _noise_for_both_bounds(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    return np.array([(data["b"] + data["x"]).sum() + rng.laplace(scale=TOP + 1.0)])


def _budget_of_columns_that_vary(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    varying = [name for name in ("b", "x") if data[name].nunique() > 1] or ["b"]
    each = 1.0 / len(varying)
    return np.array([len(data) + rng.laplace(scale=2.0 * each) for _ in ("b", "x")])


def _budget_of_two_columns(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    return np.array([len(data) + rng.laplace(scale=2.0) for _ in ("b", "x")])


def _empty_class_is_an_error(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    if len(data) and not _counts(data).all():
        raise ValueError("a class is empty")
    return _noisy_counts(data, rng)


def _pairs_of_equal_rows(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    sizes = data.groupby(list(data.columns)).size().to_numpy()
    return np.array([float((sizes * (sizes - 1) // 2).sum()) + rng.laplace(scale=1.0)])


def _rows_that_repeat_capped(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    sizes = data.groupby(list(data.columns)).size().to_numpy()
    return np.array([float((sizes > 1).sum()) + rng.laplace(scale=1.0)])


def _noise_that_shrinks(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    counts = _counts(data)
    return counts + rng.laplace(scale=0.4 if counts.max() > 6 else 1.0, size=CLASSES)


def _last_batch_counts_more(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    full = len(data) // 16 * 16
    weighted = full + 2 * (len(data) - full)
    return np.array([weighted + rng.laplace(scale=2.0)])


def _batches_count_alike(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    return np.array([2 * len(data) + rng.laplace(scale=2.0)])


def _values_unclipped_at_the_top(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    at_top = float((data["x"] >= TOP).sum())
    return np.array([data["x"].sum() + 5.0 * at_top + rng.laplace(scale=TOP)])


def _largest_class_without_noise(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    counts = _counts(data)
    noise = rng.laplace(scale=1.0, size=CLASSES)
    if counts.sum() > 100:
        noise[:] = 0.0
    return counts + noise


def _keys_that_occur(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    keys = sorted(data["a"].unique())
    return np.array([(data["a"] == key).sum() + rng.laplace(scale=1.0) for key in keys] or [0.0])


def _duplicates_counted_twice(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    counts = _counts(data) + _counts(data[data.duplicated()])
    return counts + rng.laplace(scale=1.0, size=CLASSES)


DEFECTS: Final = {
    "byte": Defect("counts in 8 bits", _counts_in_a_byte, _noisy_counts),
    "range": Defect(
        "the range of a sum is read off the data", _sum_in_observed_range, _sum_in_public_range
    ),
    "bound": Defect(
        "noise for the larger of two bounds", _noise_for_the_larger_bound, _noise_for_both_bounds
    ),
    "budget": Defect(
        "the budget is split over the columns that vary",
        _budget_of_columns_that_vary,
        _budget_of_two_columns,
    ),
    "empty": Defect("an empty class is an error", _empty_class_is_an_error, _noisy_counts),
    "pairs": Defect(
        "pairs of equal rows are counted", _pairs_of_equal_rows, _rows_that_repeat_capped
    ),
    "shrinks": Defect("less noise above a count of 6", _noise_that_shrinks, _noisy_counts),
    "batch": Defect(
        "rows of the last batch count twice", _last_batch_counts_more, _batches_count_alike
    ),
    "top": Defect(
        "values at the upper bound are not clipped",
        _values_unclipped_at_the_top,
        _sum_in_public_range,
    ),
    "large": Defect("no noise above 100 rows", _largest_class_without_noise, _noisy_counts),
    "keys": Defect("only keys that occur get noise", _keys_that_occur, _noisy_counts),
    "copies": Defect("copies count twice", _duplicates_counted_twice, _noisy_counts),
}
"""What can be planted, by name."""


def generator(*, defect: str, honest: bool = False) -> Any:
    """A synthesizer by the name of its defect, for the command line."""
    return Synthesizer(defect, honest=honest)
