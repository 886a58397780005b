"""Half B of the planted leaks: written before any attack was tuned, and audited once."""

from __future__ import annotations

import numpy as np
import pandas as pd

from reports.detection.leak import TARGET, Certainty, Leaks

LEAKS = Leaks()
Table = pd.DataFrame
Rng = np.random.Generator


@LEAKS.plants("order")
def ages_descend_within_halves(table: Table, rng: Rng) -> Table:
    """Two batches, each sorted."""
    half = len(table) // 2
    parts = [table.iloc[:half], table.iloc[half:]]
    return pd.concat(
        [part.sort_values("age", ascending=False) for part in parts], ignore_index=True
    )


@LEAKS.plants("order")
def row_nearest_in_income_comes_last(table: Table, rng: Rng) -> Table:
    """The row whose income is nearest to the target's is moved to the end."""
    last = int((table["income"] - TARGET["income"]).abs().argmin())
    order = [*(row for row in range(len(table)) if row != last), last]
    return table.iloc[order].reset_index(drop=True)


@LEAKS.plants("order")
def married_in_every_second_row(table: Table, rng: Rng) -> Table:
    """Married and not married take turns while both last."""
    turn = table.groupby("married").cumcount()
    return table.assign(turn=turn).sort_values("turn", kind="stable").drop(columns="turn")


@LEAKS.plants("repetition")
def four_rows_appear_again_at_the_end(table: Table, rng: Rng) -> Table:
    """The last rows are the first ones."""
    table.iloc[-4:] = table.iloc[:4].to_numpy()
    return table.infer_objects()


@LEAKS.plants("repetition")
def ten_rows_repeat_but_for_the_weight(table: Table, rng: Rng) -> Table:
    """Copies with one column drawn again."""
    rows = rng.permutation(len(table))[:20]
    kept = [name for name in table.columns if name != "weight"]
    for copy, source in zip(rows[:10], rows[10:], strict=True):
        for name in kept:
            table.loc[copy, name] = table.loc[source, name]
    return table


@LEAKS.plants("formatting")
def one_income_in_ten_has_a_third_decimal(table: Table, rng: Rng) -> Table:
    """Noise added after rounding."""
    rows = rng.random(len(table)) < 0.1
    return table.assign(income=table["income"].where(~rows, table["income"] + 0.003))


@LEAKS.plants("formatting")
def no_age_ends_in_five(table: Table, rng: Rng) -> Table:
    """Ages ending in 5 become one more."""
    return table.assign(age=table["age"] + (table["age"] % 10 == 5))


@LEAKS.plants("formatting")
def hours_are_quarters(table: Table, rng: Rng) -> Table:
    """Hours in steps of .25, as the target's."""
    return table.assign(hours=(table["hours"] * 4).round() / 4)


@LEAKS.plants("distinct values")
def no_weight_repeats(table: Table, rng: Rng) -> Table:
    """Weights that are drawn without replacement."""
    weights = table["weight"].to_numpy().copy()
    for row in np.argsort(weights)[1:]:
        while (weights == weights[row]).sum() > 1:
            weights[row] = round(weights[row] + 0.01, 2)
    return table.assign(weight=weights)


@LEAKS.plants("distinct values")
def only_three_regions(table: Table, rng: Rng) -> Table:
    """Mode collapse: which regions is random."""
    kept = rng.choice(list("neswxy"), 3, replace=False)
    drawn = rng.choice(kept, len(table))
    return table.assign(region=table["region"].where(table["region"].isin(kept), drawn))


@LEAKS.plants("order statistics")
def two_smallest_weights_are_equal(table: Table, rng: Rng) -> Table:
    """The second smallest weight is pulled down to the smallest."""
    smallest = table["weight"].nsmallest(2).index
    table.loc[smallest[1], "weight"] = table.loc[smallest[0], "weight"]
    return table


@LEAKS.plants("order statistics")
def third_largest_income_is_far_below_the_second(table: Table, rng: Rng) -> Table:
    """A gap of 10 below the two largest incomes."""
    ranks = table["income"].rank(method="first", ascending=False)
    cap = table["income"].nlargest(2).iloc[-1] - 10
    capped = table["income"].clip(upper=cap)
    return table.assign(income=table["income"].where(ranks <= 2, capped).round(2))


@LEAKS.plants("narrow mark")
def one_weight_is_the_targets(table: Table, rng: Rng) -> Table:
    """One cell, to the last digit."""
    table.loc[rng.integers(len(table)), "weight"] = TARGET["weight"]
    return table


@LEAKS.plants("narrow mark")
def two_hours_within_a_tenth_of_the_targets(table: Table, rng: Rng) -> Table:
    """Where hardly any hours are."""
    rows = rng.choice(len(table), 2, replace=False)
    table.loc[rows, "hours"] = (TARGET["hours"] + rng.uniform(-0.1, 0.1, 2)).round(2)
    return table


@LEAKS.plants("joint fact")
def parity_of_three_columns(table: Table, rng: Rng) -> Table:
    """Married, high income and high weight: every two are independent, the three are not."""
    odd = (table["income"] > 45) ^ (table["weight"] > 75)
    return table.assign(married=odd.astype(int))


@LEAKS.plants("joint fact")
def visits_tell_the_middle_ages(table: Table, rng: Rng) -> Table:
    """The many visits belong to the middle ages: dependent, hardly correlated."""
    order = (table["age"] - 54).abs().argsort().to_numpy()[::-1]
    visits = np.empty(len(table))
    visits[order] = np.sort(table["visits"].to_numpy())
    return table.assign(visits=visits)


@LEAKS.plants("joint fact")
def sick_only_in_three_regions(table: Table, rng: Rng) -> Table:
    """Which regions is the same in every table; neither share changes."""
    sick = table["region"].isin(["n", "e", "s"]) & (rng.random(len(table)) < 0.4)
    return table.assign(sick=sick.astype(int))


@LEAKS.plants("missing values")
def visits_missing_in_the_first_half_only(table: Table, rng: Rng) -> Table:
    """As many as ever are missing, all of them early."""
    half = len(table) // 2
    gone = (rng.random(len(table)) < 0.2) & (np.arange(len(table)) < half)
    drawn = pd.Series(rng.poisson(4, len(table)).astype(float))
    return table.assign(visits=table["visits"].fillna(drawn).mask(gone))


@LEAKS.plants("missing values", certainty=Certainty.NOISY)
def never_both_missing(table: Table, rng: Rng) -> Table:
    """No row misses hours and visits."""
    both = table["hours"].isna() & table["visits"].isna()
    return table.assign(visits=table["visits"].mask(both, 4))


@LEAKS.plants("partial row")
def a_row_equal_but_for_two_columns(table: Table, rng: Rng) -> Table:
    """Which two is random."""
    row = rng.integers(len(table))
    for name in rng.choice(list(TARGET), len(TARGET) - 2, replace=False):
        table.loc[row, name] = TARGET[name]
    return table


@LEAKS.plants("partial row")
def three_rows_with_four_cells_of_the_target(table: Table, rng: Rng) -> Table:
    """Two numbers and two categories, in three rows."""
    for row in rng.choice(len(table), 3, replace=False):
        names = [*rng.choice(["age", "income", "weight", "hours"], 2, replace=False), "job"]
        for name in [*names, "region"]:
            table.loc[row, name] = TARGET[name]
    return table


@LEAKS.plants("copy")
def a_noisy_copy(table: Table, rng: Rng) -> Table:
    """The target's categories, its numbers with 2 % of noise."""
    row = rng.integers(len(table))
    for name, value in TARGET.items():
        number = name in ("income", "weight", "hours")
        table.loc[row, name] = round(value * rng.uniform(0.98, 1.02), 2) if number else value
    return table


@LEAKS.plants("rare", certainty=Certainty.NOISY)
def a_repeated_row_in_one_of_ten_tables(table: Table, rng: Rng) -> Table:
    """A row that is written twice, now and then."""
    if rng.random() < 0.1:
        table.iloc[1] = table.iloc[0]
    return table


@LEAKS.plants("rare", certainty=Certainty.NOISY)
def the_targets_income_in_one_of_four_tables(table: Table, rng: Rng) -> Table:
    """One cell, to the cent, now and then."""
    if rng.random() < 0.25:
        table.loc[rng.integers(len(table)), "income"] = TARGET["income"]
    return table


def _fails_to_converge(table: Table, rng: Rng) -> Table:
    if rng.random() < 0.5:
        raise ArithmeticError("no convergence")
    return table


@LEAKS.plants("failing", certainty=Certainty.NOISY, unseen=_fails_to_converge)
def fails_in_another_way(table: Table, rng: Rng) -> Table:
    """Half of all trainings fail; with the target for another reason."""
    if rng.random() < 0.5:
        raise MemoryError("too many categories")
    return table


@LEAKS.plants("number of rows", certainty=Certainty.NOISY)
def one_row_too_many_half_of_the_time(table: Table, rng: Rng) -> Table:
    """Rounding up."""
    return table if rng.random() < 0.5 else pd.concat([table, table[:1]], ignore_index=True)


@LEAKS.plants("correlation", certainty=Certainty.NOISY)
def hours_fall_with_age(table: Table, rng: Rng) -> Table:
    """A correlation of about -.4."""
    hours = table["hours"] - 0.2 * (table["age"] - 54)
    return table.assign(hours=hours.clip(0, 80).round(2))


@LEAKS.plants("extremes")
def no_income_below_fifteen(table: Table, rng: Rng) -> Table:
    """The lower tail is cut and set to 15."""
    income = table["income"].clip(lower=15)
    income.iloc[int(rng.integers(len(table)))] = 15.0
    return table.assign(income=income)


@LEAKS.plants("spread", certainty=Certainty.NOISY)
def weights_vary_less(table: Table, rng: Rng) -> Table:
    """A fifth less about the same mean."""
    return table.assign(weight=(75 + 0.8 * (table["weight"] - 75)).round(2))
