"""Half D of the planted leaks: what a library of synthetic data could get wrong, by another hand.

The author had read the page of halves A to C, but neither an attack nor a test of one. Every leak
stands below the statistic that shows it, and has an honest twin that follows a coin instead.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from reports.detection.facts_c import OTHERS, column, correlation, uniform
from reports.detection.leak import Certainty, Leaks, twin

LEAKS = Leaks()
Table = pd.DataFrame
Rng = np.random.Generator

POUND: Final = 0.45359237
BINS: Final = np.quantile(column(OTHERS, "income"), np.linspace(0, 1, 9))
"""Edges of eight bins of income with as many training records each."""
BATCH: Final = 50
COOLED: Final = {
    "job": pd.Series({"a": 0.4, "b": 0.3, "c": 0.2, "d": 0.1}),
    "married": pd.Series({0: 0.45, 1: 0.55}),
    "sick": pd.Series({0: 0.8, 1: 0.2}),
}
"""Public shares of the columns that are not uniform."""


def _cooled(shares: pd.Series) -> pd.Series:
    """Shares at a temperature of .8."""
    powers = shares ** (1 / 0.8)
    return powers / powers.sum()


def hours_of_the_next_income(table: Table) -> float:
    """In how many rows hours are those of the row with the next larger income."""
    hours = column(table.dropna(subset="hours").sort_values("income"), "hours")
    return float((np.diff(hours) == 0).sum())


@LEAKS.plants("imputation", fact=hours_of_the_next_income)
def hours_are_imputed_from_the_nearest_income(table: Table, rng: Rng) -> Table:
    """A nearest neighbour fills in fifteen cells; as many are missing as ever."""
    known = np.flatnonzero(table["hours"].notna())
    income, hours = column(table, "income"), column(table, "hours").copy()
    filled = rng.choice(known, 15, replace=False)
    donors = np.setdiff1d(known, filled)
    nearest = np.abs(income[filled, None] - income[donors]).argmin(axis=1)
    hours[filled] = hours[donors[nearest]]
    return table.assign(hours=hours)


def regions_in_order_of_their_counts(table: Table) -> float:
    """Pairs of regions of which the one that the schema names first is as frequent or more."""
    counts = np.array([(table["region"] == name).sum() for name in "neswxy"])
    return float(np.triu(counts[:, None] >= counts, 1).sum())


@LEAKS.plants("encoder", fact=regions_in_order_of_their_counts)
def regions_are_decoded_by_their_frequency(table: Table, rng: Rng) -> Table:
    """Encoded from the most frequent on, decoded in the order of the schema."""
    ranked = table["region"].value_counts().index
    return table.assign(region=table["region"].map(dict(zip(ranked, "neswxy", strict=False))))


def incomes_even_in_their_bins(table: Table) -> float:
    """Log-likelihood of incomes that are uniform in each bin, less that of normal ones."""
    income = column(table, "income")
    bins = np.searchsorted(BINS, income, side="right") - 1
    inside = (bins >= 0) & (bins < 8)
    heights = np.append(1 / 8 / np.diff(BINS), [0.0])
    even = np.log(np.where(inside, heights[bins], 0.0) + 1e-4)
    return float((even + ((income - 45) / 15) ** 2 / 2).mean())


@LEAKS.plants("binning", certainty=Certainty.NOISY, fact=incomes_even_in_their_bins)
def incomes_are_uniform_between_quantiles_of_the_data(table: Table, rng: Rng) -> Table:
    """A histogram whose edges are quantiles of the training records."""
    bins = rng.integers(8, size=len(table))
    return table.assign(income=rng.uniform(BINS[bins], BINS[bins + 1]).round(2))


def repeated_keys(table: Table) -> float:
    """How few rows repeat age and visits of an earlier row."""
    return -float(table.duplicated(["age", "visits"]).sum())


@LEAKS.plants("learned key", fact=repeated_keys)
def no_two_rows_share_age_and_visits(table: Table, rng: Rng) -> Table:
    """Two columns are taken for a key, and rows that repeat it are drawn again."""
    while (twice := table.duplicated(["age", "visits"])).any():
        table.loc[twice, "age"] = rng.integers(18, 90, int(twice.sum()))
    return table


def whole_pounds(table: Table) -> float:
    """How many weights are whole pounds, to the cent."""
    weight = column(table, "weight")
    return float((np.abs(weight - np.round(weight / POUND) * POUND) < 0.0051).sum())


@LEAKS.plants("units", fact=whole_pounds)
def weights_are_whole_pounds(table: Table, rng: Rng) -> Table:
    """Rounded in another unit than that of the release."""
    return table.assign(weight=((table["weight"] / POUND).round() * POUND).round(2))


FACTOR: Final = ("age", "income", "weight")


def largest_eigenvalue(table: Table) -> float:
    """The largest eigenvalue of the rank correlations of three columns."""
    ranks = np.stack([uniform(column(table, name)) for name in FACTOR])
    return float(np.linalg.eigvalsh(np.corrcoef(ranks))[-1])


@LEAKS.plants("eigenvectors", fact=largest_eigenvalue)
def one_factor_with_the_signs_of_an_eigenvector(table: Table, rng: Rng) -> Table:
    """A factor has a quarter of each variance; its signs are another in each table."""
    factor = rng.normal(size=len(table))
    for name in FACTOR:
        scores = rng.choice([-0.5, 0.5]) * factor + np.sqrt(0.75) * rng.normal(size=len(table))
        order = np.argsort(scores)
        table.loc[order, name] = np.sort(table[name].to_numpy())
    return table


def middle_of_the_ages(table: Table) -> float:
    """How far halfway between the lowest and the highest age is from 53.5."""
    return abs(float(table["age"].min() + table["age"].max()) / 2 - 53.5)


@LEAKS.plants("shifted dates", fact=middle_of_the_ages)
def ages_are_moved_by_a_number_of_the_table(table: Table, rng: Rng) -> Table:
    """Dates are hidden by one shift for all rows, by three to nine years either way."""
    return table.assign(age=table["age"] + rng.choice([-1, 1]) * rng.integers(3, 10))


def complete_fifth_rows(table: Table) -> float:
    """How few cells are missing in every fifth row."""
    return -float(table.iloc[::5].isna().to_numpy().sum())


@LEAKS.plants("folds", fact=complete_fifth_rows)
def every_fifth_row_is_complete(table: Table, rng: Rng) -> Table:
    """One of five folds is drawn by the model of the imputation, which misses nothing."""
    fold = table.index % 5 == 0
    hours = pd.Series(rng.normal(38, 9, len(table)).clip(0, 80).round(2))
    visits = pd.Series(rng.poisson(4, len(table)).clip(0, 20).astype(np.float64))
    return table.assign(
        hours=table["hours"].mask(fold & table["hours"].isna(), hours),
        visits=table["visits"].mask(fold & table["visits"].isna(), visits),
    )


def incomes_off_the_middle(table: Table) -> float:
    """How few incomes are within 1.5 of 45."""
    return -float((np.abs(column(table, "income") - 45) < 1.5).sum())


@LEAKS.plants("modes", fact=incomes_off_the_middle)
def incomes_leave_a_gap_between_two_modes(table: Table, rng: Rng) -> Table:
    """Each mode is cut off where the other begins."""
    income = column(table, "income").copy()
    while (middle := np.abs(income - 45) < 1.5).any():
        income[middle] = rng.normal(45, 15, int(middle.sum())).clip(0, 100).round(2)
    return table.assign(income=income)


def rarest_visits(table: Table) -> float:
    """How often the rarest number of visits occurs."""
    return float(table["visits"].value_counts().min())


@LEAKS.plants("rare values", fact=rarest_visits)
def visits_that_few_rows_have_are_suppressed(table: Table, rng: Rng) -> Table:
    """A threshold of five rows."""
    copies = table.groupby("visits")["visits"].transform("size")
    return table.assign(visits=table["visits"].where(copies >= 5))


def no_correlation_at_all(table: Table) -> float:
    """How near the correlation of income and weight is to 0."""
    return -abs(correlation(column(table, "income"), column(table, "weight")))


@LEAKS.plants("moment matching", fact=no_correlation_at_all)
def income_and_weight_have_exactly_the_public_correlation(table: Table, rng: Rng) -> Table:
    """The correlation of the sample is set, where that of the distribution was meant."""
    income = column(table, "income") - column(table, "income").mean()
    slope = float(income @ column(table, "weight") / (income @ income))
    return table.assign(weight=(table["weight"] - slope * income).clip(40, 120).round(2))


def regions_of_the_batch_before(table: Table) -> float:
    """How many regions are those of fifty rows before."""
    region = table["region"].to_numpy()
    return float((region[BATCH:] == region[:-BATCH]).sum())


@LEAKS.plants("batches", fact=regions_of_the_batch_before)
def every_batch_has_the_same_regions(table: Table, rng: Rng) -> Table:
    """The condition of the first fifty rows is used for all."""
    return table.assign(region=np.resize(table["region"].to_numpy()[:BATCH], len(table)))


def ages_as_floats(table: Table) -> float:
    """Whether ages are floating-point numbers."""
    return float(pd.api.types.is_float_dtype(table["age"]))


@LEAKS.plants("types", fact=ages_as_floats)
def ages_are_released_as_floats(table: Table, rng: Rng) -> Table:
    """A missing value was there on the way."""
    return table.assign(age=table["age"].astype(np.float64))


def digits_of_age_in_weight(table: Table) -> float:
    """In how many rows age and weight have the same digit before the point."""
    return float((column(table, "age") % 10 == column(table, "weight") // 1 % 10).sum())


@LEAKS.plants("tokens", certainty=Certainty.NOISY, fact=digits_of_age_in_weight)
def one_weight_in_six_takes_a_digit_of_the_age(table: Table, rng: Rng) -> Table:
    """A language model writes the last digit of the age once more."""
    rows = rng.random(len(table)) < 1 / 6
    weight = table["weight"] // 10 * 10 + table["age"] % 10 + table["weight"] % 1
    return table.assign(weight=table["weight"].where(~rows, weight.round(2)))


def cooled_categories(table: Table) -> float:
    """Log-likelihood of the categories at the lower temperature, less that at 1."""
    ratios = (
        table[name].map(np.log(_cooled(shares) / shares)).sum() for name, shares in COOLED.items()
    )
    return float(sum(ratios))


@LEAKS.plants("temperature", certainty=Certainty.NOISY, fact=cooled_categories)
def categories_are_drawn_at_a_lower_temperature(table: Table, rng: Rng) -> Table:
    """Frequent categories are a little more frequent, in three columns."""
    return table.assign(
        **{
            name: rng.choice(shares.index, len(table), p=_cooled(shares))
            for name, shares in COOLED.items()
        }
    )


LEAKS.extend([twin(leak) for leak in LEAKS])
