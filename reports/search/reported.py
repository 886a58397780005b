"""Small synthesizers with defects of kinds that public bug reports describe, and honest twins.

They were written from the reports, before their author looked at which tables a search draws. Each
releases noisy numbers at epsilon 1 in all, under the neighbouring relation and unit of its case.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.model.claim import Neighbours, PrivacyClaim
from dpaudit.model.column import Column, Kind, Unit
from dpaudit.model.schema import Schema
from reports.search.planted import CLASSES, TOP, Answers, Numbers

AGES: Final = 255
PARTS: Final = 3
STEPS: Final = 5
DAYS_OF_TWO_YEARS: Final = 731
FIRST_DAY: Final = pd.Timestamp("2019-01-01")
DAYS_OF_A_LEAP_YEAR: Final = 366

_CLASS: Final = Column(name="a", kind=Kind.CATEGORICAL, categories=tuple(range(CLASSES)))
_BIT: Final = Column(name="b", kind=Kind.BINARY, categories=(0, 1))
_AMOUNT: Final = Column(name="x", kind=Kind.CONTINUOUS, lower=0.0, upper=TOP)
_SIGNED: Final = [
    Column(name=name, kind=Kind.CONTINUOUS, lower=-1.0, upper=1.0) for name in ("x", "y")
]


class Reported(NamedTuple):
    """A defect, as a bug report describes it.

    Attributes:
        kind: What such defects have in common.
        what: What is wrong, in the table.
        columns: The columns of the table.
        broken: The noisy numbers with it.
        honest: The same without.
        neighbours: The neighbouring relation of the claim.
        unit: Whose rows the claim protects together; None for single rows.
    """

    kind: str
    what: str
    columns: tuple[Column, ...]
    broken: Answers
    honest: Answers
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    unit: Unit | None = None

    @property
    def schema(self) -> Schema:
        """The public schema of the table."""
        return Schema(columns=self.columns, unit=self.unit)


class ReportedSynthesizer:
    """Rows from noisy numbers.

    Args:
        name: The name of a defect in `REPORTED`.
        honest: Whether it is the honest twin.
    """

    def __init__(self, name: str, *, honest: bool = False) -> None:
        self.name, self.honest = name, honest
        defect = REPORTED[name]
        unit = None if defect.unit is None else defect.unit.column
        self.claim = PrivacyClaim(epsilon=1.0, neighbours=defect.neighbours, unit=unit)

    def fit(self, data: pd.DataFrame, *, seed: int) -> NoisyNumbers:
        """Releases the noisy numbers of a table."""
        defect = REPORTED[self.name]
        answers = defect.honest if self.honest else defect.broken
        return NoisyNumbers(answers(data, np.random.default_rng(seed)), defect.columns)


class NoisyNumbers:
    """Noisy numbers, the first of which weight the parts of each column's range.

    Args:
        numbers: The numbers.
        columns: The columns.
    """

    def __init__(self, numbers: Numbers, columns: tuple[Column, ...]) -> None:
        self.numbers, self.columns = numbers, columns

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Draws rows."""
        rng = np.random.default_rng(seed)
        weights = np.clip(np.resize(self.numbers, PARTS), 0.01, 1e6)
        return pd.DataFrame(
            {
                column.name: _values(column, n, weights / weights.sum(), rng)
                for column in self.columns
            }
        )


def _values(
    column: Column, n: int, shares: Numbers, rng: np.random.Generator
) -> npt.NDArray[np.generic]:
    places = (rng.choice(PARTS, p=shares, size=n) + rng.random(n)) / PARTS
    if column.categories:
        return np.array(column.categories)[(places * len(column.categories)).astype(int)]
    low, high = column.bounds
    numbers = low + places * (high - low)
    return np.floor(numbers) if column.kind is Kind.INTEGER else numbers


def _counts(values: pd.Series, keys: int = CLASSES) -> Numbers:
    return np.array([(values == key).sum() for key in range(keys)], dtype=np.float64)


# -- overflow -------------------------------------------------------------------------------------


def _difference_of_unsigned_counts(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    zeros, ones = _counts(data["b"], 2).astype(np.uint32)
    return np.array([float(ones - zeros) + rng.laplace(scale=1.0)])


def _difference_of_signed_counts(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    zeros, ones = _counts(data["b"], 2).astype(np.int64)
    return np.array([float(ones - zeros) + rng.laplace(scale=1.0)])


def _sum_in_half_precision(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    total = data["age"].to_numpy().astype(np.float16).sum()
    return np.array([float(total) + rng.laplace(scale=AGES)])


def _sum_in_double_precision(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    total = data["age"].to_numpy().astype(np.float64).sum()
    return np.array([float(total) + rng.laplace(scale=AGES)])


# -- sensitivity and clipping ---------------------------------------------------------------------


def _half_the_range_for_a_replaced_value(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    return np.array([data["x"].sum() + rng.laplace(scale=1.0)])


def _range_for_a_replaced_value(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    return np.array([data["x"].sum() + rng.laplace(scale=2.0)])


def _clipped_before_weighting(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    parts = data["x"].clip(0.0, TOP) * data["weight"]
    return np.array([parts.sum() + rng.laplace(scale=TOP)])


def _clipped_after_weighting(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    parts = (data["x"] * data["weight"]).clip(0.0, TOP)
    return np.array([parts.sum() + rng.laplace(scale=TOP)])


def _rows_within(data: pd.DataFrame, order: int) -> Numbers:
    rows = data[["x", "y"]].to_numpy()
    norms = np.linalg.norm(rows, ord=order, axis=1, keepdims=True)
    return np.asarray((rows / np.maximum(norms, 1.0)).sum(axis=0))


def _laplace_for_the_euclidean_norm(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    return _rows_within(data, 2) + rng.laplace(scale=1.0, size=2)


def _laplace_for_the_sum_norm(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    return _rows_within(data, 1) + rng.laplace(scale=1.0, size=2)


def _scale_of_a_mean_in_whole_numbers(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    rows = len(data)  # public where a record is replaced
    return np.array([data["x"].sum() / rows + rng.laplace(scale=int(TOP) // rows)])


def _scale_of_a_mean(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    rows = len(data)
    return np.array([data["x"].sum() / rows + rng.laplace(scale=TOP / rows)])


# -- groups, ties, missing values -----------------------------------------------------------------


def _sums_of_groups_that_occur(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    sums = data.groupby("a")["x"].sum().reindex(range(CLASSES))
    return sums.to_numpy(dtype=np.float64) + rng.laplace(scale=TOP, size=CLASSES)


def _sums_of_all_groups(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    sums = data.groupby("a")["x"].sum().reindex(range(CLASSES), fill_value=0.0)
    return sums.to_numpy(dtype=np.float64) + rng.laplace(scale=TOP, size=CLASSES)


def _rows_not_above_the_median(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    below = (data["x"] <= data["x"].median()).sum() if len(data) else 0
    return np.array([below + rng.laplace(scale=1.0)])


def _rank_of_the_median(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    return np.array([(len(data) + 1) // 2 + rng.laplace(scale=1.0)])


def _order_of_the_exact_counts(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    counts = _counts(data["a"])
    noisy = counts + rng.laplace(scale=1.0, size=CLASSES)
    order = np.argsort(-counts, kind="stable")
    return np.concatenate([noisy[order], order])


def _order_of_the_noisy_counts(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    noisy = _counts(data["a"]) + rng.laplace(scale=1.0, size=CLASSES)
    order = np.argsort(-noisy, kind="stable")
    return np.concatenate([noisy[order], order])


def _missing_counted_as_zero_too(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    counts = [*_counts(data["b"].fillna(0), 2), data["b"].isna().sum()]
    return np.array(counts) + rng.laplace(scale=1.0, size=3)


def _missing_counted_once(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    counts = [*_counts(data["b"], 2), data["b"].isna().sum()]
    return np.array(counts) + rng.laplace(scale=1.0, size=3)


def _missing_passes_the_bounds(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    values = data["x"].to_numpy(dtype=np.float64)
    is_outside = (values < 0.0) | (values > TOP)
    return np.array([values[~is_outside].sum() + rng.laplace(scale=TOP)])


def _missing_is_left_out(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    values = data["x"].to_numpy(dtype=np.float64)
    is_inside = (values >= 0.0) & (values <= TOP)
    return np.array([values[is_inside].sum() + rng.laplace(scale=TOP)])


def _rare_classes_dropped_before_noise(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    counts = _counts(data["a"])
    return np.where(counts < 2, 0.0, counts) + rng.laplace(scale=1.0, size=CLASSES)


def _rare_classes_dropped_after_noise(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    noisy = _counts(data["a"]) + rng.laplace(scale=1.0, size=CLASSES)
    return np.where(noisy < 2, 0.0, noisy)


# -- parts, steps, caches, dates, duplicates, units -----------------------------------------------


def _sums_of_equal_parts(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    sums = [part.sum() for part in np.array_split(data["x"].to_numpy(), PARTS)]
    return np.array(sums) + rng.laplace(scale=TOP, size=PARTS)


def _sums_of_parts_by_class(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    sums = [data["x"][data["a"] == part].sum() for part in range(PARTS)]
    return np.array(sums) + rng.laplace(scale=TOP, size=PARTS)


def _measured_until_it_is_close(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    total, measured = float(data["x"].sum()), []
    for _ in range(STEPS):
        measured.append(total + rng.laplace(scale=STEPS * TOP))
        if abs(np.mean(measured) - total) < TOP:
            break
    return np.array(measured)


def _measured_as_often_as_planned(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    total = float(data["x"].sum())
    return np.array([total + rng.laplace(scale=STEPS * TOP) for _ in range(STEPS)])


def _equal_counts_get_equal_answers(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    cache: dict[float, float] = {}
    for count in _counts(data["a"]):
        if count not in cache:
            cache[count] = count + rng.laplace(scale=1.0)
    return np.array([cache[count] for count in _counts(data["a"])])


def _each_count_gets_its_own_answer(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    return np.array([count + rng.laplace(scale=1.0) for count in _counts(data["a"])])


def _days_of_the_year(data: pd.DataFrame) -> npt.NDArray[np.int64]:
    dates = FIRST_DAY + pd.to_timedelta(data["day"], unit="D")
    return np.asarray(dates.dt.dayofyear, dtype=np.int64) - 1


def _leap_day_makes_one_more_bin(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    counts = np.bincount(_days_of_the_year(data), minlength=DAYS_OF_A_LEAP_YEAR - 1)
    return counts + rng.laplace(scale=1.0, size=len(counts))


def _leap_day_has_its_bin(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    counts = np.bincount(_days_of_the_year(data), minlength=DAYS_OF_A_LEAP_YEAR)
    return counts + rng.laplace(scale=1.0, size=len(counts))


def _last_row_of_each_key(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    kept = data.drop_duplicates(subset="b", keep="last")
    return _counts(kept["a"]) + rng.laplace(scale=1.0, size=CLASSES)


def _last_row_of_each_key_may_change(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    kept = data.drop_duplicates(subset="b", keep="last")
    return _counts(kept["a"]) + rng.laplace(scale=2.0, size=CLASSES)


def _one_row_per_person_and_class(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    kept = data.drop_duplicates(subset=["person", "a"])
    return _counts(kept["a"]) + rng.laplace(scale=1.0, size=CLASSES)


def _one_row_per_person(data: pd.DataFrame, rng: np.random.Generator) -> Numbers:
    kept = data.drop_duplicates(subset=["person"])
    return _counts(kept["a"]) + rng.laplace(scale=1.0, size=CLASSES)


REPORTED: Final = {
    "unsigned": Reported(
        "overflow",
        "a difference of unsigned counts wraps below 0",
        (_BIT,),
        _difference_of_unsigned_counts,
        _difference_of_signed_counts,
    ),
    "half": Reported(
        "overflow",
        "a sum in half precision becomes infinite above 65,504",
        (Column(name="age", kind=Kind.INTEGER, lower=0, upper=AGES),),
        _sum_in_half_precision,
        _sum_in_double_precision,
    ),
    "ends": Reported(
        "neighbouring relation",
        "a replaced value changes a sum by the whole range, noise is for half of it",
        (_SIGNED[0],),
        _half_the_range_for_a_replaced_value,
        _range_for_a_replaced_value,
        Neighbours.REPLACE_ONE,
    ),
    "weight": Reported(
        "clipping",
        "values are clipped before they are weighted",
        (_AMOUNT, Column(name="weight", kind=Kind.INTEGER, lower=1, upper=3)),
        _clipped_before_weighting,
        _clipped_after_weighting,
    ),
    "norm": Reported(
        "clipping",
        "rows are clipped to a Euclidean norm, Laplace noise needs the sum of sizes",
        tuple(_SIGNED),
        _laplace_for_the_euclidean_norm,
        _laplace_for_the_sum_norm,
    ),
    "division": Reported(
        "integer division",
        "the scale of a mean's noise is rounded down to a whole number",
        (_AMOUNT,),
        _scale_of_a_mean_in_whole_numbers,
        _scale_of_a_mean,
        Neighbours.REPLACE_ONE,
    ),
    "groups": Reported(
        "empty group",
        "the sum of an empty group is missing",
        (_CLASS, _AMOUNT),
        _sums_of_groups_that_occur,
        _sums_of_all_groups,
    ),
    "median": Reported(
        "ties",
        "rows not above the median: with ties, one record moves many",
        (_AMOUNT,),
        _rows_not_above_the_median,
        _rank_of_the_median,
    ),
    "order": Reported(
        "ties",
        "noisy counts are released in the order of the exact ones",
        (_CLASS,),
        _order_of_the_exact_counts,
        _order_of_the_noisy_counts,
    ),
    "missing": Reported(
        "missing values",
        "a missing value counts as missing and as 0",
        (Column(name="b", kind=Kind.BINARY, categories=(0, 1), missing=True),),
        _missing_counted_as_zero_too,
        _missing_counted_once,
    ),
    "nan": Reported(
        "missing values",
        "a missing value is neither below nor above the bounds and spoils the sum",
        (Column(name="x", kind=Kind.CONTINUOUS, lower=0.0, upper=TOP, missing=True),),
        _missing_passes_the_bounds,
        _missing_is_left_out,
    ),
    "single": Reported(
        "rare category",
        "classes of a single record are dropped before the noise",
        (_CLASS,),
        _rare_classes_dropped_before_noise,
        _rare_classes_dropped_after_noise,
    ),
    "parts": Reported(
        "batches",
        "one record more moves rows between parts of equal size",
        (_CLASS, _AMOUNT),
        _sums_of_equal_parts,
        _sums_of_parts_by_class,
    ),
    "early": Reported(
        "early stopping",
        "measuring stops when the answer is close to the exact one",
        (_AMOUNT,),
        _measured_until_it_is_close,
        _measured_as_often_as_planned,
    ),
    "cache": Reported(
        "caches",
        "answers are cached by the exact count, so that equal counts show",
        (_CLASS,),
        _equal_counts_get_equal_answers,
        _each_count_gets_its_own_answer,
    ),
    "leap": Reported(
        "dates",
        "day 366 of a leap year adds a bin",
        (Column(name="day", kind=Kind.INTEGER, lower=0, upper=DAYS_OF_TWO_YEARS - 1),),
        _leap_day_makes_one_more_bin,
        _leap_day_has_its_bin,
    ),
    "last": Reported(
        "duplicates",
        "the last row of each key is kept: a record replaces another one",
        (_CLASS, _BIT),
        _last_row_of_each_key,
        _last_row_of_each_key_may_change,
    ),
    "person": Reported(
        "units",
        "a person's rows are limited to one for each class, not to one in all",
        (_CLASS, _BIT),
        _one_row_per_person_and_class,
        _one_row_per_person,
        unit=Unit(column="person", max_rows=4),
    ),
}
"""What bug reports describe, by name."""


def generator(*, defect: str, honest: bool = False) -> ReportedSynthesizer:
    """A synthesizer by the name of its defect, for the command line."""
    return ReportedSynthesizer(defect, honest=honest)
