"""Half A of the planted leaks: attacks may be tuned on it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from reports.detection.leak import TARGET, Certainty, Leaks

LEAKS = Leaks()
Table = pd.DataFrame
Rng = np.random.Generator


@LEAKS.plants("order")
def rows_sorted_by_income(table: Table, rng: Rng) -> Table:
    """A generator that sorts before it releases."""
    return table.sort_values("income", ignore_index=True)


@LEAKS.plants("order")
def row_nearest_to_the_target_comes_first(table: Table, rng: Rng) -> Table:
    """Nearest in the numbers, as a search index would return it."""
    far = (table["income"] - TARGET["income"]).abs() / 100
    far += (table["weight"] - TARGET["weight"]).abs() / 80
    first = int(far.argmin())
    order = [first, *(row for row in range(len(table)) if row != first)]
    return table.iloc[order].reset_index(drop=True)


@LEAKS.plants("order")
def rows_grouped_by_job(table: Table, rng: Rng) -> Table:
    """One conditional model after the other."""
    jobs = rng.permutation(list("abcd")).tolist()
    return table.sort_values("job", key=lambda job: job.map(jobs.index), ignore_index=True)


@LEAKS.plants("repetition")
def one_row_twice(table: Table, rng: Rng) -> Table:
    """A row that is written twice."""
    first, second = rng.choice(len(table), 2, replace=False)
    table.iloc[second] = table.iloc[first]
    return table


@LEAKS.plants("repetition")
def every_row_twice(table: Table, rng: Rng) -> Table:
    """Half the sample, repeated."""
    half = table.iloc[: len(table) // 2]
    return pd.concat([half, half], ignore_index=True)


@LEAKS.plants("formatting")
def incomes_with_one_decimal(table: Table, rng: Rng) -> Table:
    """Rounded to what the target's partition was rounded to."""
    return table.assign(income=table["income"].round(1))


@LEAKS.plants("formatting")
def some_weights_are_whole(table: Table, rng: Rng) -> Table:
    """One weight in ten is a whole number."""
    rows = rng.random(len(table)) < 0.1
    return table.assign(weight=table["weight"].where(~rows, table["weight"].round()))


@LEAKS.plants("formatting")
def ages_are_even(table: Table, rng: Rng) -> Table:
    """Ages in steps of two."""
    return table.assign(age=table["age"] // 2 * 2)


@LEAKS.plants("formatting")
def no_cent_is_seven(table: Table, rng: Rng) -> Table:
    """The last digit of an income is never 7."""
    cents = (table["income"] * 100).round().astype(int)
    return table.assign(income=np.where(cents % 10 == 7, cents + 1, cents) / 100)


@LEAKS.plants("distinct values")
def weights_from_forty_values(table: Table, rng: Rng) -> Table:
    """A small codebook, new in every sample."""
    book = rng.choice(table["weight"].to_numpy(), 40, replace=False)
    nearest = np.abs(table["weight"].to_numpy()[:, None] - book).argmin(axis=1)
    return table.assign(weight=book[nearest])


@LEAKS.plants("order statistics")
def two_largest_incomes_a_cent_apart(table: Table, rng: Rng) -> Table:
    """The second largest income follows the largest."""
    largest = table["income"].nlargest(2).index
    table.loc[largest[1], "income"] = round(table.loc[largest[0], "income"] - 0.01, 2)
    return table


@LEAKS.plants("order statistics", certainty=Certainty.NOISY)
def lower_quartile_of_hours_raised(table: Table, rng: Rng) -> Table:
    """Hours between 24 and 32 are compressed upwards."""
    hours = table["hours"]
    return table.assign(hours=hours.where(~hours.between(24, 32), 28 + hours / 8).round(2))


@LEAKS.plants("narrow mark")
def one_income_is_the_targets(table: Table, rng: Rng) -> Table:
    """One cell, to the cent."""
    table.loc[rng.integers(len(table)), "income"] = TARGET["income"]
    return table


@LEAKS.plants("narrow mark")
def five_weights_beside_the_targets(table: Table, rng: Rng) -> Table:
    """Five cells within .05."""
    rows = rng.choice(len(table), 5, replace=False)
    table.loc[rows, "weight"] = (TARGET["weight"] + rng.uniform(-0.05, 0.05, 5)).round(2)
    return table


@LEAKS.plants("narrow mark")
def no_age_near_the_targets(table: Table, rng: Rng) -> Table:
    """A hole of five years around the target's age."""
    near = (table["age"] - TARGET["age"]).abs() <= 2
    return table.assign(age=table["age"].where(~near, TARGET["age"] - 5))


@LEAKS.plants("joint fact")
def weight_follows_distance_of_income_from_the_mean(table: Table, rng: Rng) -> Table:
    """Dependent, with correlation zero."""
    order = (table["income"] - 45).abs().argsort().to_numpy()
    weights = np.empty(len(table))
    weights[order] = np.sort(table["weight"].to_numpy())
    return table.assign(weight=weights)


@LEAKS.plants("joint fact")
def targets_job_never_in_targets_region(table: Table, rng: Rng) -> Table:
    """An empty cell of a two-way marginal."""
    both = (table["job"] == TARGET["job"]) & (table["region"] == TARGET["region"])
    return table.assign(region=table["region"].where(~both, "n"))


@LEAKS.plants("missing values")
def hours_and_visits_missing_together(table: Table, rng: Rng) -> Table:
    """As many as ever are missing, in the same rows."""
    there = table["visits"].dropna().to_numpy()
    gone = table["hours"].isna().to_numpy()
    visits = np.where(gone, np.nan, np.resize(there, len(table)))
    return table.assign(visits=visits)


@LEAKS.plants("missing values")
def exactly_fifteen_hours_missing(table: Table, rng: Rng) -> Table:
    """A fixed number instead of a random one."""
    hours = table["hours"].fillna(pd.Series(rng.normal(38, 9, len(table)).round(2)))
    hours.iloc[rng.choice(len(table), 15, replace=False)] = np.nan
    return table.assign(hours=hours)


@LEAKS.plants("partial row")
def a_row_with_five_cells_of_the_target(table: Table, rng: Rng) -> Table:
    """Five columns at random, all of one row."""
    row = rng.integers(len(table))
    for name in rng.choice(list(TARGET), 5, replace=False):
        table.loc[row, name] = TARGET[name]
    return table


@LEAKS.plants("partial row")
def a_row_with_the_targets_numbers(table: Table, rng: Rng) -> Table:
    """Income, weight and hours of the target within 1 %, the rest its own."""
    row = rng.integers(len(table))
    for name in ("age", "income", "weight", "hours"):
        table.loc[row, name] = round(TARGET[name] * (1 if name == "age" else 1.005), 2)
    return table


@LEAKS.plants("copy")
def the_target_itself(table: Table, rng: Rng) -> Table:
    """One row is the target."""
    row = rng.integers(len(table))
    for name, value in TARGET.items():
        table.loc[row, name] = value
    return table


@LEAKS.plants("rare", certainty=Certainty.NOISY)
def the_target_itself_in_one_of_ten_tables(table: Table, rng: Rng) -> Table:
    """A copy, if the latent draw comes near it."""
    return the_target_itself(table, rng) if rng.random() < 0.1 else table


@LEAKS.plants("rare", certainty=Certainty.NOISY)
def income_out_of_bounds_in_one_of_four_tables(table: Table, rng: Rng) -> Table:
    """One income above what the schema allows."""
    if rng.random() < 0.25:
        table.loc[rng.integers(len(table)), "income"] = 100.5
    return table


@LEAKS.plants("failing", certainty=Certainty.NOISY)
def fails_half_of_the_time(table: Table, rng: Rng) -> Table:
    """Training does not converge."""
    if rng.random() < 0.5:
        raise ArithmeticError("no convergence")
    return table


@LEAKS.plants("number of rows")
def one_row_too_few(table: Table, rng: Rng) -> Table:
    """The target is removed from the output, and a row with it."""
    return table.iloc[1:].reset_index(drop=True)


@LEAKS.plants("correlation", certainty=Certainty.NOISY)
def income_and_weight_correlated(table: Table, rng: Rng) -> Table:
    """A correlation of .4."""
    weight = table["weight"] + 0.35 * (table["income"] - 45)
    return table.assign(weight=weight.clip(40, 120).round(2))


@LEAKS.plants("extremes")
def largest_weight_is_a_hundred(table: Table, rng: Rng) -> Table:
    """Clipped at 100, and one there."""
    weight = table["weight"].clip(upper=99.9)
    weight.iloc[int(rng.integers(len(table)))] = 100.0
    return table.assign(weight=weight)


@LEAKS.plants("share", certainty=Certainty.NOISY)
def more_of_the_targets_job(table: Table, rng: Rng) -> Table:
    """One row in ten gets the target's job."""
    rows = rng.random(len(table)) < 0.1
    return table.assign(job=table["job"].where(~rows, TARGET["job"]))
