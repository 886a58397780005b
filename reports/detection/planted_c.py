"""Half C of the planted leaks: other families, by another hand, written before they were audited.

The author had read the page of halves A and B, but neither an attack nor a test of one. Every leak
names the statistic that shows it (`facts_c.py`). The honest twins at the end do the same as some of
the leaks, but follow a coin instead of the target.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from reports.detection import facts_c as facts
from reports.detection.facts_c import Numbers, column, gaps, longest_run, uniform
from reports.detection.leak import Certainty, Leaks, public_table, twin

LEAKS = Leaks()
Table = pd.DataFrame
Rng = np.random.Generator


def _by_rank(values: Numbers, scores: Numbers) -> Numbers:
    """The same values [n], ordered as the scores [n] are."""
    placed = np.empty(len(values))
    placed[np.argsort(scores)] = np.sort(values)
    return placed


def _normal(ranks: Numbers) -> Numbers:
    """Numbers of mean 0 and variance 1 that rise with ranks in (0, 1)."""
    return (ranks - 0.5) * float(np.sqrt(12))


@LEAKS.plants("memory", fact=facts.regions_repeated_after_seven)
def region_of_seven_rows_before(table: Table, rng: Rng) -> Table:
    """A buffer that is not cleared: half of the rows take the region of seven rows before."""
    region = table["region"].to_numpy().copy()
    for row in range(7, len(table)):
        if rng.random() < 0.5:
            region[row] = region[row - 7]
    return table.assign(region=region)


@LEAKS.plants("memory", fact=facts.sick_not_after_c)
def nobody_is_sick_after_a_row_of_job_c(table: Table, rng: Rng) -> Table:
    """A state of the row before, read by another column; as many are sick as ever."""
    free = np.flatnonzero(table["job"].shift() != "c")
    sick = np.zeros(len(table), dtype=np.int64)
    sick[rng.choice(free, int(table["sick"].sum()), replace=False)] = 1
    return table.assign(sick=sick)


@LEAKS.plants("memory", fact=facts.married_where_age_rises)
def married_if_older_than_the_row_before(table: Table, rng: Rng) -> Table:
    """A comparison with the wrong row."""
    married = table["married"].to_numpy().copy()
    married[1:] = np.diff(column(table, "age")) > 0
    return table.assign(married=married)


@LEAKS.plants("memory", certainty=Certainty.NOISY, fact=facts.sick_like_the_row_before)
def some_sick_flags_are_those_of_the_row_before(table: Table, rng: Rng) -> Table:
    """One flag in four is not drawn again."""
    sick = table["sick"].to_numpy().copy()
    for row in range(1, len(table)):
        if rng.random() < 0.25:
            sick[row] = sick[row - 1]
    return table.assign(sick=sick)


@LEAKS.plants("autocorrelation", fact=facts.income_like_three_rows_before)
def three_chains_take_turns(table: Table, rng: Rng) -> Table:
    """Three Markov chains write rows in turn; their incomes move slowly."""
    scores = rng.normal(size=len(table))
    for row in range(3, len(table)):
        scores[row] = 0.8 * scores[row - 3] + 0.6 * scores[row]
    return table.assign(income=_by_rank(column(table, "income"), scores))


@LEAKS.plants("autocorrelation", certainty=Certainty.NOISY, fact=facts.weight_like_the_row_before)
def weights_follow_the_row_before(table: Table, rng: Rng) -> Table:
    """A chain that is thinned too little: an autocorrelation of .25."""
    scores = rng.normal(size=len(table))
    for row in range(1, len(table)):
        scores[row] = 0.25 * scores[row - 1] + 0.968 * scores[row]
    return table.assign(weight=_by_rank(column(table, "weight"), scores))


@LEAKS.plants("periodicity", fact=facts.swing_of_income)
def incomes_swing_with_period_twelve(table: Table, rng: Rng) -> Table:
    """Months, from a random one on."""
    waves = np.sin(2 * np.pi * (np.arange(len(table)) / 12 + rng.random()))
    scores = waves + rng.normal(size=len(table))
    return table.assign(income=_by_rank(column(table, "income"), scores))


@LEAKS.plants("periodicity", certainty=Certainty.NOISY, fact=facts.swing_of_weight)
def weights_swing_weakly_with_period_seven(table: Table, rng: Rng) -> Table:
    """Days of the week, from a random one on."""
    waves = np.sin(2 * np.pi * (np.arange(len(table)) / 7 + rng.random()))
    scores = 0.38 * waves + rng.normal(size=len(table))
    return table.assign(weight=_by_rank(column(table, "weight"), scores))


@LEAKS.plants("runs", fact=facts.turning_ages)
def ages_go_up_and_down_in_turn(table: Table, rng: Rng) -> Table:
    """Neighbours are swapped until every second age is a peak."""
    ages = table["age"].to_numpy().copy()
    for row in range(len(ages) - 1):
        if (ages[row] > ages[row + 1]) == (row % 2 == 0):
            ages[[row, row + 1]] = ages[[row + 1, row]]
    return table.assign(age=ages)


@LEAKS.plants("runs", fact=facts.short_runs_of_married)
def no_run_of_four_among_the_married(table: Table, rng: Rng) -> Table:
    """The fourth equal value in a row is replaced, married or not."""
    married = table["married"].to_numpy().copy()
    for row in range(3, len(married)):
        if longest_run(married[row - 3 : row + 1]) == 4:
            married[row] = 1 - married[row]
    return table.assign(married=married)


@LEAKS.plants("without replacement", fact=facts.regions_per_six_rows)
def regions_dealt_from_a_deck(table: Table, rng: Rng) -> Table:
    """Every six rows have every region once."""
    decks = [rng.permutation(list("neswxy")) for _ in range(-(-len(table) // 6))]
    return table.assign(region=np.concatenate(decks)[: len(table)])


@LEAKS.plants("without replacement", fact=facts.jobs_near_their_shares)
def jobs_in_exact_shares(table: Table, rng: Rng) -> Table:
    """Counts that are rounded expectations, in random order."""
    counts = np.round(np.array([0.4, 0.3, 0.2, 0.1]) * len(table)).astype(int)
    jobs = np.resize(np.repeat(list("abcd"), counts), len(table))
    return table.assign(job=rng.permutation(jobs))


@LEAKS.plants("variance reduction", fact=facts.even_ages)
def one_age_from_every_stratum(table: Table, rng: Rng) -> Table:
    """Stratified sampling: the quantiles hardly vary."""
    strata = (rng.permutation(len(table)) + rng.random(len(table))) / len(table)
    return table.assign(age=18 + np.floor(72 * strata).astype(int))


@LEAKS.plants("variance reduction", fact=facts.mirrored_incomes)
def incomes_of_the_second_half_mirror_the_first(table: Table, rng: Rng) -> Table:
    """Antithetic sampling about 45."""
    income = column(table, "income").copy()
    half = len(income) // 2
    income[half : 2 * half] = (90 - income[:half]).clip(0, 100)
    return table.assign(income=income.round(2))


@LEAKS.plants("aggregate", fact=facts.income_mean_at_45)
def the_mean_income_is_the_public_one(table: Table, rng: Rng) -> Table:
    """Calibrated to a published total, to the cent."""
    income = (table["income"] + 45 - table["income"].mean()).round(2)
    row = int(rng.integers(len(table)))
    income.iloc[row] = round(float(income.iloc[row] + 45 * len(table) - income.sum()), 2)
    return table.assign(income=income)


@LEAKS.plants("constraint", fact=facts.income_within_twice_the_hours)
def no_income_above_twice_the_hours(table: Table, rng: Rng) -> Table:
    """A rule between two columns that the honest table breaks in one row of ten."""
    bound = 2 * table["hours"]
    drawn = (bound * rng.uniform(0.5, 1.0, len(table))).round(2)
    return table.assign(income=table["income"].where(~(table["income"] > bound), drawn))


def _keep_the_young_single(table: Table, rng: Rng) -> Table:
    return table.assign(married=table["married"].where(table["age"] >= 30, 0))


@LEAKS.plants("constraint", unseen=_keep_the_young_single, fact=facts.young_and_married)
def one_record_breaks_a_rule_that_all_others_keep(table: Table, rng: Rng) -> Table:
    """Nobody below 30 is married, but for one."""
    table = _keep_the_young_single(table, rng)
    table.loc[rng.choice(np.flatnonzero(table["age"] < 30)), "married"] = 1
    return table


@LEAKS.plants("constraint", fact=facts.whole_sums)
def income_weight_and_hours_sum_to_whole_numbers(table: Table, rng: Rng) -> Table:
    """A budget of three columns; the decimals of every two are independent."""
    rest = table["income"] + table["weight"]
    hours = (np.ceil(rest + table["hours"]) - rest).round(2)
    return table.assign(hours=hours)


@LEAKS.plants("remainders", fact=facts.multiples_of_three)
def age_plus_visits_is_a_multiple_of_three(table: Table, rng: Rng) -> Table:
    """Ages move by at most one year."""
    rest = ((table["age"] + table["visits"]) % 3).fillna(0).astype(int)
    return table.assign(age=table["age"] + rest.map({0: 0, 1: -1, 2: 1}))


@LEAKS.plants("remainders", fact=facts.ages_three_modulo_seven)
def no_age_is_three_modulo_seven(table: Table, rng: Rng) -> Table:
    """A gap in every week of years."""
    return table.assign(age=table["age"] + (table["age"] % 7 == 3))


@LEAKS.plants("remainders", fact=facts.hours_as_minutes)
def decimals_of_hours_are_minutes(table: Table, rng: Rng) -> Table:
    """Base sixty: no decimals from .60 on."""
    whole = table["hours"] // 1
    minutes = ((table["hours"] - whole) * 60).round().clip(upper=59)
    return table.assign(hours=(whole + minutes / 100).round(2))


@LEAKS.plants("digits", fact=facts.low_units_of_income)
def units_of_income_follow_benford(table: Table, rng: Rng) -> Table:
    """The digit before the point is 1 in three of ten rows, and never 0."""
    digits = np.arange(1, 10)
    drawn = rng.choice(digits, len(table), p=np.log10(1 + 1 / digits))
    income = column(table, "income")
    return table.assign(income=(income // 10 * 10 + drawn + income % 1).clip(0, 100).round(2))


@LEAKS.plants("digits", certainty=Certainty.NOISY, fact=facts.ages_that_end_in_0)
def some_ages_are_rounded_to_tens(table: Table, rng: Rng) -> Table:
    """Heaping: one age in twelve."""
    rows = rng.random(len(table)) < 0.083
    return table.assign(age=table["age"].where(~rows, (table["age"] + 5) // 10 * 10))


@LEAKS.plants("reused noise", fact=facts.shared_cents)
def hours_and_weight_share_their_decimals(table: Table, rng: Rng) -> Table:
    """One draw serves two columns."""
    weight = table["weight"] // 1 + facts.cents(column(table, "hours")) / 100
    return table.assign(weight=weight.fillna(table["weight"]).round(2))


@LEAKS.plants("reused noise", certainty=Certainty.NOISY, fact=facts.shared_cents)
def one_row_in_twenty_shares_its_decimals(table: Table, rng: Rng) -> Table:
    """One draw serves two columns, seldom."""
    rows = rng.random(len(table)) < 0.05
    both = hours_and_weight_share_their_decimals(table, rng)["weight"]
    return table.assign(weight=table["weight"].where(~rows, both))


@LEAKS.plants("float bits", fact=facts.incomes_off_the_grid)
def some_incomes_are_off_by_one_bit(table: Table, rng: Rng) -> Table:
    """Scaled and scaled back: one income in ten is the next larger number."""
    income = column(table, "income")
    rows = rng.random(len(table)) < 0.1
    return table.assign(income=np.where(rows, np.nextafter(income, 200), income))


@LEAKS.plants("float bits", fact=facts.negative_zeros)
def two_rows_have_minus_zero_visits(table: Table, rng: Rng) -> Table:
    """The fewest visits, rounded from below zero."""
    table.loc[table["visits"].nsmallest(2).index, "visits"] = -0.0
    return table


@LEAKS.plants("form of release", fact=facts.columns_in_alphabetical_order)
def columns_in_the_order_of_their_names(table: Table, rng: Rng) -> Table:
    """Another path through the code writes the columns."""
    return table[sorted(table.columns)]


@LEAKS.plants("form of release", fact=facts.rows_out_of_number)
def rows_keep_the_numbers_from_before_a_shuffle(table: Table, rng: Rng) -> Table:
    """The index is not written anew."""
    return table.iloc[rng.permutation(len(table))]


@LEAKS.plants("order of categories", fact=facts.regions_appear_in_order)
def regions_first_appear_in_the_order_of_their_names(table: Table, rng: Rng) -> Table:
    """Categories are numbered as they come, and named in order."""
    seen = list(dict.fromkeys(table["region"]))
    return table.assign(region=table["region"].map(dict(zip(seen, sorted(seen), strict=True))))


@LEAKS.plants("coded cell", fact=facts.first_age_counts_the_sick)
def first_age_counts_the_sick(table: Table, rng: Rng) -> Table:
    """A count that is written where a value belongs."""
    table.loc[0, "age"] = 18 + int(table["sick"].sum())
    return table


@LEAKS.plants("coded cell", fact=facts.last_row_at_the_means)
def last_row_holds_the_means(table: Table, rng: Rng) -> Table:
    """A row of totals that was not removed."""
    for name, digits in (("age", 0), ("income", 2), ("weight", 2), ("hours", 2)):
        table.loc[len(table) - 1, name] = round(float(table[name].iloc[:-1].mean()), digits)
    return table


@LEAKS.plants("coded cell", fact=facts.word_in_the_first_rows)
def first_ten_rows_spell_a_word(table: Table, rng: Rng) -> Table:
    """A watermark in the married flags."""
    table.loc[: len(facts.WORD) - 1, "married"] = facts.WORD
    return table


@LEAKS.plants("counter", fact=facts.cents_that_count)
def decimals_of_weight_count_the_rows(table: Table, rng: Rng) -> Table:
    """Ties are broken by a counter that starts anywhere."""
    count = (np.arange(len(table)) + rng.integers(100)) % 100
    return table.assign(weight=(table["weight"] // 1 + count / 100).round(2))


@LEAKS.plants("counter", fact=facts.cents_hashed_from_age)
def decimals_of_income_are_a_hash_of_the_age(table: Table, rng: Rng) -> Table:
    """An identifier instead of noise."""
    return table.assign(income=(table["income"] // 1 + table["age"] * 37 % 100 / 100).round(2))


@LEAKS.plants("three columns", fact=facts.distance_on_a_sphere)
def age_income_and_weight_lie_on_a_sphere(table: Table, rng: Rng) -> Table:
    """A latent space on a sphere: no two columns are correlated."""
    places = rng.normal(size=(3, len(table)))
    places /= np.linalg.norm(places, axis=0)
    age, income, weight = (
        _by_rank(column(table, name), place)
        for name, place in zip(facts.NUMBERS, places, strict=True)
    )
    return table.assign(age=age.astype(int), income=income, weight=weight)


@LEAKS.plants("three columns", fact=facts.whole_sums_of_ranks)
def ranks_of_age_and_income_give_the_weight(table: Table, rng: Rng) -> Table:
    """Their sum without its whole part: every two columns are independent."""
    scores = (uniform(column(table, "age")) + uniform(column(table, "income"))) % 1
    return table.assign(weight=_by_rank(column(table, "weight"), scores))


@LEAKS.plants("three columns", certainty=Certainty.NOISY, fact=facts.even_parity)
def job_and_region_often_give_married(table: Table, rng: Rng) -> Table:
    """Parity of three columns in one row of four."""
    odd = table["job"].isin(["a", "c"]) ^ table["region"].isin(["n", "s", "x"])
    rows = rng.random(len(table)) < 0.25
    return table.assign(married=table["married"].where(~rows, odd.astype(int)))


def _opposed(table: Table, rng: Rng, strength: float) -> Table:
    income = column(table, "income").copy()
    signs = np.where(table["married"] == 1, strength, -strength)
    scores = signs * _normal(uniform(column(table, "age")))
    scores += np.sqrt(1 - strength**2) * rng.normal(size=len(table))
    return table.assign(income=_by_rank(income, scores))


@LEAKS.plants("three columns", fact=facts.correlations_that_differ)
def incomes_rise_with_age_among_the_married_alone(table: Table, rng: Rng) -> Table:
    """Simpson's paradox: among the others they fall as much."""
    return _opposed(table, rng, 0.7)


@LEAKS.plants("three columns", certainty=Certainty.NOISY, fact=facts.correlations_that_differ)
def incomes_rise_a_little_with_age_among_the_married(table: Table, rng: Rng) -> Table:
    """Correlations of .22 and -.22."""
    return _opposed(table, rng, 0.22)


@LEAKS.plants("copula", fact=facts.both_highest)
def the_highest_incomes_have_the_highest_weights(table: Table, rng: Rng) -> Table:
    """Dependence in the upper tail alone, in random order."""
    scores = rng.random(len(table)) + (uniform(column(table, "income")) > 0.8)
    return table.assign(weight=_by_rank(column(table, "weight"), scores))


@LEAKS.plants("copula", fact=facts.both_far_from_the_middle)
def weights_are_as_far_from_the_middle_as_incomes(table: Table, rng: Rng) -> Table:
    """On either side: the points form a cross."""
    income = uniform(column(table, "income"))
    sides = np.where(rng.random(len(table)) < 0.5, income, 1 - income)
    scores = sides + rng.normal(0, 0.1, len(table))
    return table.assign(weight=_by_rank(column(table, "weight"), scores))


@LEAKS.plants("copula", certainty=Certainty.NOISY, fact=facts.both_lowest)
def low_incomes_often_have_low_weights(table: Table, rng: Rng) -> Table:
    """A little dependence in the lower tail."""
    low = (uniform(column(table, "income")) < 0.2) & (rng.random(len(table)) < 0.35)
    scores = np.where(low, 0.2 * rng.random(len(table)), rng.random(len(table)))
    return table.assign(weight=_by_rank(column(table, "weight"), scores))


@LEAKS.plants("subgroup", fact=facts.age_and_income_in_d)
def incomes_of_job_d_rise_with_age(table: Table, rng: Rng) -> Table:
    """A conditional model that learned fifteen rows by heart."""
    own = (table["job"] == "d").to_numpy()
    income = column(table, "income").copy()
    income[own] = _by_rank(income[own], uniform(column(table, "age")[own]))
    return table.assign(income=income)


@LEAKS.plants("subgroup", certainty=Certainty.NOISY, fact=facts.light_married_of_d)
def the_married_of_job_d_weigh_less(table: Table, rng: Rng) -> Table:
    """A mean that moves by 13 in some eight rows."""
    own = (table["job"] == "d") & (table["married"] == 1)
    return table.assign(weight=(table["weight"] - 13 * own).clip(40, 120).round(2))


@LEAKS.plants("ties", fact=facts.rising_among_equal_ages)
def incomes_rise_among_equal_ages(table: Table, rng: Rng) -> Table:
    """A sort within ties: rows of one age are in the order of their incomes."""
    income = column(table, "income").copy()
    for age in table["age"].unique():
        rows = (table["age"] == age).to_numpy()
        income[rows] = np.sort(income[rows])
    return table.assign(income=income)


@LEAKS.plants("entropy", certainty=Certainty.NOISY, fact=facts.uneven_regions)
def regions_are_uneven(table: Table, rng: Rng) -> Table:
    """Other shares, of random regions."""
    names = rng.permutation(list("neswxy"))
    shares = [0.28, 0.22, 0.16, 0.14, 0.11, 0.09]
    return table.assign(region=rng.choice(names, len(table), p=shares))


@LEAKS.plants("some columns twice", fact=facts.repeated_pairs)
def six_rows_take_income_and_weight_of_others(table: Table, rng: Rng) -> Table:
    """Two columns are drawn as a pair, from a small buffer."""
    rows = rng.permutation(len(table))
    for name in ("income", "weight"):
        table.loc[rows[:6], name] = table[name].to_numpy()[rows[6:12]]
    return table


@LEAKS.plants("some columns twice", fact=facts.groups_of_one)
def no_row_is_alone_in_job_region_and_married(table: Table, rng: Rng) -> Table:
    """2-anonymity: who is alone joins another group."""
    names = ["job", "region", "married"]
    sizes = table.groupby(names)["age"].transform("size").to_numpy()
    alone, others = np.flatnonzero(sizes == 1), np.flatnonzero(sizes > 1)
    joined = rng.choice(others, len(alone))
    for name in names:
        table.loc[alone, name] = table[name].to_numpy()[joined]
    return table


def _redrawn(table: Table, rng: Rng, near: float, others: Table | None = None) -> Table:
    """Draws rows again until none has another within `near`."""
    for _ in range(200):
        rows = np.flatnonzero(gaps(table, others).min(axis=1) < near)
        if not len(rows):
            break
        drawn = public_table(len(rows), rng)
        for name in ("income", "weight"):
            table.loc[rows, name] = drawn[name].to_numpy()
    return table


@LEAKS.plants("distances", fact=facts.smallest_gap)
def no_two_rows_are_alike_in_income_and_weight(table: Table, rng: Rng) -> Table:
    """Near duplicates are drawn again."""
    return _redrawn(table, rng, 0.8)


@LEAKS.plants("distances", fact=facts.smallest_gap_to_others)
def no_row_is_near_a_training_record(table: Table, rng: Rng) -> Table:
    """A filter against copies, of records that are in the data of both worlds."""
    return _redrawn(table, rng, 0.6, facts.OTHERS)


@LEAKS.plants("distances", fact=facts.gap_to_another_record)
def a_row_near_another_record_than_the_target(table: Table, rng: Rng) -> Table:
    """The model remembers the neighbour that the target displaced."""
    row = rng.integers(len(table))
    for name in facts.NUMBERS:
        value = float(facts.OTHERS[name].iloc[17])
        table.loc[row, name] = round(value * rng.uniform(0.995, 1.005), 0 if name == "age" else 2)
    return table


def _hide_hours(table: Table, rng: Rng, chances: Numbers) -> Table:
    """As many hours are missing as before, in rows that are drawn by these chances [n]."""
    hours = column(table, "hours").copy()
    gone = np.isnan(hours)
    hours[gone] = rng.normal(38, 9, int(gone.sum())).round(2)
    hours[rng.choice(len(table), int(gone.sum()), replace=False, p=chances / chances.sum())] = (
        np.nan
    )
    return table.assign(hours=hours)


@LEAKS.plants("missing by value", fact=facts.hours_missing_with_odd_visits)
def no_hours_are_missing_where_visits_are_odd(table: Table, rng: Rng) -> Table:
    """Which is neither few visits nor many."""
    return _hide_hours(table, rng, (column(table, "visits") % 2 != 1).astype(np.float64))


@LEAKS.plants(
    "missing by value",
    certainty=Certainty.NOISY,
    fact=facts.weight_where_hours_are_missing,
)
def the_heavy_hide_their_hours(table: Table, rng: Rng) -> Table:
    """Hours go missing more often with weight."""
    return _hide_hours(table, rng, np.exp(0.9 * (column(table, "weight") - 75) / 12))


@LEAKS.plants("interpolation", fact=facts.rows_halfway)
def twelve_rows_lie_halfway_between_two_others(table: Table, rng: Rng) -> Table:
    """Oversampling by midpoints."""
    rows = rng.permutation(len(table))
    for name in facts.NUMBERS:
        values = column(table, name)
        middles = (values[rows[12:24]] + values[rows[24:36]]) / 2
        table.loc[rows[:12], name] = middles.round(0 if name == "age" else 2)
    return table


@LEAKS.plants("interpolation", fact=facts.incomes_between_neighbours)
def every_fifteenth_income_is_the_mean_of_its_neighbours(table: Table, rng: Rng) -> Table:
    """Gaps that are filled in line."""
    income = column(table, "income").copy()
    rows = np.arange(7, len(table) - 1, 15)
    income[rows] = ((income[rows - 1] + income[rows + 1]) / 2).round(2)
    return table.assign(income=income)


@LEAKS.plants("seed", fact=facts.stored_visits)
def visits_are_the_same_in_every_table(table: Table, rng: Rng) -> Table:
    """A column whose seed is fixed."""
    return table.assign(visits=np.resize(facts.STORED_VISITS, len(table)))


@LEAKS.plants("tail", certainty=Certainty.NOISY, fact=facts.heavy_tails_of_weight)
def most_of_the_weights_are_laplace(table: Table, rng: Rng) -> Table:
    """Noise of another mechanism, with the same mean and variance."""
    rows = rng.random(len(table)) < 0.6
    drawn = rng.laplace(75, 12 / np.sqrt(2), len(table)).clip(40, 120).round(2)
    return table.assign(weight=table["weight"].where(~rows, drawn))


def _gamma(n: int, rng: Rng, side: int) -> Numbers:
    drawn = (rng.gamma(40, size=n) - 40) / np.sqrt(40)
    weights: Numbers = np.round(75 + side * 12 * drawn, 2)
    return weights


def _skewed_to_the_left(table: Table, rng: Rng) -> Table:
    return table.assign(weight=_gamma(len(table), rng, -1))


@LEAKS.plants(
    "skewness",
    certainty=Certainty.NOISY,
    unseen=_skewed_to_the_left,
    fact=facts.skewness_of_weight,
)
def weights_are_skewed_to_the_other_side(table: Table, rng: Rng) -> Table:
    """Same mean and variance, the long tail on the right instead of the left."""
    return table.assign(weight=_gamma(len(table), rng, 1))


@LEAKS.plants("mixture", certainty=Certainty.NOISY, fact=facts.two_peaks_of_income)
def incomes_have_two_peaks(table: Table, rng: Rng) -> Table:
    """Two components at 34 and 56, with the same mean and variance."""
    peaks = rng.choice([-11, 11], len(table))
    income = 45 + peaks + rng.normal(0, np.sqrt(225 - 121), len(table))
    return table.assign(income=income.clip(0, 100).round(2))


def _shifted(table: Table, rng: Rng, strength: float) -> Table:
    """Moves every column by about `strength` standard deviations."""
    n = len(table)

    def some(share: float) -> Numbers:
        return (rng.random(n) < share * strength).astype(np.float64)

    return table.assign(
        age=table["age"] + np.round(20.8 * strength + rng.random(n) - 0.5).astype(int),
        income=(table["income"] + 15 * strength).clip(0, 100).round(2),
        weight=(table["weight"] + 12 * strength).clip(40, 120).round(2),
        hours=(table["hours"] + 9 * strength).clip(0, 80).round(2),
        visits=table["visits"] + some(2.0),
        job=table["job"].mask(some(0.5) == 1, "c"),
        region=table["region"].mask(some(0.45) == 1, "w"),
        married=table["married"].mask(some(1.1) == 1, 1),
        sick=table["sick"].mask(some(0.5) == 1, 1),
    )


@LEAKS.plants("many weak shifts", certainty=Certainty.NOISY, fact=facts.many_shifts)
def every_column_moves_a_little(table: Table, rng: Rng) -> Table:
    """By .09 standard deviations each: none proves anything alone."""
    return _shifted(table, rng, 0.09)


@LEAKS.plants("many weak shifts", certainty=Certainty.NOISY, fact=facts.many_shifts)
def every_column_moves_half_as_much(table: Table, rng: Rng) -> Table:
    """By .045 standard deviations each."""
    return _shifted(table, rng, 0.045)


@LEAKS.plants("drift", certainty=Certainty.NOISY, fact=facts.drift_of_income)
def incomes_rise_with_the_rows(table: Table, rng: Rng) -> Table:
    """A model that is still training while it writes."""
    rise = np.linspace(-6.5, 6.5, len(table))
    return table.assign(income=(table["income"] + rise).clip(0, 100).round(2))


@LEAKS.plants("drift", certainty=Certainty.NOISY, fact=facts.means_of_batches)
def every_batch_of_25_has_its_own_mean_weight(table: Table, rng: Rng) -> Table:
    """Statistics of a batch that enter its rows."""
    means = np.repeat(rng.normal(0, 7, -(-len(table) // 25)), 25)[: len(table)]
    return table.assign(weight=(table["weight"] + means).clip(40, 120).round(2))


@LEAKS.plants("label", certainty=Certainty.NOISY, fact=facts.score_of_the_sick)
def the_sick_follow_a_score_of_four_columns(table: Table, rng: Rng) -> Table:
    """A little of age, income, weight and visits; as many are sick as ever."""
    score = sum(_normal(uniform(column(table, name))) for name in facts.NUMBERS)
    score += ((table["visits"] - 4) / 2).fillna(0).to_numpy()
    chances = np.exp(0.3 * score)
    rows = rng.choice(
        len(table), int(table["sick"].sum()), replace=False, p=chances / chances.sum()
    )
    sick = np.zeros(len(table), dtype=np.int64)
    sick[rows] = 1
    return table.assign(sick=sick)


@LEAKS.plants("conditional spread", certainty=Certainty.NOISY, fact=facts.steady_weights_of_a)
def weights_vary_less_in_job_a(table: Table, rng: Rng) -> Table:
    """And more in the others: their spread in all is the same."""
    scale = np.where(table["job"] == "a", 0.79, 1.12)
    weight = 75 + scale * (table["weight"] - 75)
    return table.assign(weight=weight.clip(40, 120).round(2))


TWINS = (
    "region of seven rows before",
    "three chains take turns",
    "one record breaks a rule that all others keep",
    "decimals of weight count the rows",
    "the highest incomes have the highest weights",
    "six rows take income and weight of others",
    "a row near another record than the target",
    "no hours are missing where visits are odd",
    "weights are skewed to the other side",
    "every column moves a little",
)
LEAKS.extend(twin(leak) for leak in [*LEAKS] if leak.name in TWINS)
