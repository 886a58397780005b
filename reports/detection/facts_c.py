"""What shows the leaks of half C: a number of a released table, larger with the target.

Each is the statistic of one who is shown the leak. None is an attack, and no attack uses any.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.seeds import rng_of
from reports.detection.leak import RECORDS, public_table, training_table

Table = pd.DataFrame
Numbers = npt.NDArray[np.float64]

WORD = (1, 0, 1, 1, 0, 0, 1, 1, 1, 0)
"""What the first ten rows spell."""
OTHERS = training_table().iloc[1:]
"""The records that are in the data of both worlds."""
STORED_VISITS = public_table(RECORDS, rng_of(3, "stored"))["visits"].to_numpy()
NUMBERS = ("age", "income", "weight")


def uniform(values: Numbers) -> Numbers:
    """Ranks [n], evenly spaced in (0, 1); equal values in the order of their rows."""
    ranks = np.empty(len(values))
    ranks[np.argsort(values, kind="stable")] = np.arange(len(values))
    return (ranks + 0.5) / len(values)


def column(table: Table, name: str) -> Numbers:
    """A column's numbers [n]."""
    return table[name].to_numpy(np.float64)


def cents(values: Numbers) -> Numbers:
    """The two decimals of values [n], as whole numbers; NaN stays."""
    return np.round(values * 100) % 100


def correlation(first: Numbers, second: Numbers) -> float:
    """Pearson's correlation; 0 of fewer than three values."""
    return float(np.corrcoef(first, second)[0, 1]) if len(first) > 2 else 0.0


def gaps(table: Table, others: Table | None = None) -> Numbers:
    """Distances [n, m] in income and weight to other rows, infinite to the row itself."""
    places = table[["income", "weight"]].to_numpy(np.float64)
    rest = places if others is None else others[["income", "weight"]].to_numpy(np.float64)
    far: Numbers = np.hypot(*(places[:, None] - rest[None]).transpose(2, 0, 1))
    if others is None:
        np.fill_diagonal(far, np.inf)
    return far


def longest_run(values: Numbers) -> int:
    """The longest run of equal values."""
    changes = np.flatnonzero(np.diff(values)) + 1
    return int(np.diff([0, *changes, len(values)]).max())


def _swing(table: Table, name: str, period: int) -> float:
    values = column(table, name)
    waves = np.exp(2j * np.pi * np.arange(len(values)) / period)
    return float(abs(((values - values.mean()) * waves).mean()) / values.std())


def regions_repeated_after_seven(table: Table) -> float:
    """How many regions are those of seven rows before."""
    region = table["region"].to_numpy()
    return float((region[7:] == region[:-7]).sum())


def sick_not_after_c(table: Table) -> float:
    """How few are sick after a row of job c."""
    after = table["job"].shift() == "c"
    return -float(((table["sick"] == 1) & after).sum())


def married_where_age_rises(table: Table) -> float:
    """In how many rows married says whether the age rises."""
    rises = np.diff(column(table, "age")) > 0
    return float((rises == (column(table, "married")[1:] == 1)).sum())


def sick_like_the_row_before(table: Table) -> float:
    """Autocorrelation of sick."""
    sick = column(table, "sick")
    return correlation(sick[1:], sick[:-1])


def income_like_three_rows_before(table: Table) -> float:
    """Autocorrelation of income over three rows."""
    income = column(table, "income")
    return correlation(income[3:], income[:-3])


def weight_like_the_row_before(table: Table) -> float:
    """Autocorrelation of weight."""
    weight = column(table, "weight")
    return correlation(weight[1:], weight[:-1])


def swing_of_income(table: Table) -> float:
    """Amplitude of income at a period of twelve rows."""
    return _swing(table, "income", 12)


def swing_of_weight(table: Table) -> float:
    """Amplitude of weight at a period of seven rows."""
    return _swing(table, "weight", 7)


def turning_ages(table: Table) -> float:
    """Peaks and troughs of the ages."""
    steps = np.sign(np.diff(column(table, "age")))
    return float((steps[1:] * steps[:-1] < 0).sum())


def short_runs_of_married(table: Table) -> float:
    """How short the longest run of married, or of not married, is."""
    return -float(longest_run(column(table, "married")))


def regions_per_six_rows(table: Table) -> float:
    """Distinct regions of every six rows, in all."""
    region = table["region"].to_numpy()
    return float(sum(len(set(region[at : at + 6])) for at in range(0, len(region), 6)))


def jobs_near_their_shares(table: Table) -> float:
    """How near the counts of jobs are to their expectations."""
    shares = {"a": 0.4, "b": 0.3, "c": 0.2, "d": 0.1}
    jobs = table["job"].value_counts()
    return -float(sum(abs(jobs.get(job, 0) - p * len(table)) for job, p in shares.items()))


def even_ages(table: Table) -> float:
    """How near the ages are to evenly spaced ones (Kolmogorov-Smirnov)."""
    ages = np.sort((column(table, "age") - 17.5) / 72)
    return -float(np.abs(ages - (np.arange(len(ages)) + 0.5) / len(ages)).max())


def mirrored_incomes(table: Table) -> float:
    """How near incomes of the two halves are to mirroring each other."""
    first, second = np.split(column(table, "income")[: len(table) // 2 * 2], 2)
    return -float(np.median(np.abs(first + second - 90)))


def income_mean_at_45(table: Table) -> float:
    """How near the mean income is to 45."""
    return -round(abs(float(column(table, "income").mean()) - 45), 6)


def income_within_twice_the_hours(table: Table) -> float:
    """How few incomes exceed twice the hours."""
    return -float((table["income"] > 2 * table["hours"]).sum())


def young_and_married(table: Table) -> float:
    """How many below 30 are married."""
    return float(((table["age"] < 30) & (table["married"] == 1)).sum())


def whole_sums(table: Table) -> float:
    """Share of rows whose income, weight and hours sum to a whole number."""
    total = (table["income"] + table["weight"] + table["hours"]).dropna().to_numpy(np.float64)
    return float((cents(total) == 0).mean())


def multiples_of_three(table: Table) -> float:
    """Share of rows whose age and visits sum to a multiple of three."""
    total = (table["age"] + table["visits"]).dropna()
    return float((total % 3 == 0).mean())


def ages_three_modulo_seven(table: Table) -> float:
    """How few ages are three modulo seven."""
    return -float((table["age"] % 7 == 3).sum())


def hours_as_minutes(table: Table) -> float:
    """How few decimals of hours are 60 or more."""
    return -float((cents(column(table, "hours")) >= 60).sum())


def low_units_of_income(table: Table) -> float:
    """How many incomes have 1, 2 or 3 before the point."""
    return float((table["income"] // 1 % 10).isin([1, 2, 3]).sum())


def ages_that_end_in_0(table: Table) -> float:
    """How many ages end in 0."""
    return float((table["age"] % 10 == 0).sum())


def shared_cents(table: Table) -> float:
    """In how many rows hours and weight have the same decimals."""
    return float((cents(column(table, "hours")) == cents(column(table, "weight"))).sum())


def incomes_off_the_grid(table: Table) -> float:
    """How many incomes are no number of two decimals."""
    income = column(table, "income")
    return float((income != income.round(2)).sum())


def negative_zeros(table: Table) -> float:
    """How many visits are minus zero."""
    visits = column(table, "visits")
    return float((np.signbit(visits) & (visits == 0)).sum())


def columns_in_alphabetical_order(table: Table) -> float:
    """Whether columns are in the order of their names."""
    return float(list(table.columns) == sorted(table.columns))


def rows_out_of_number(table: Table) -> float:
    """Whether rows are not numbered in order."""
    return float((table.index.to_numpy() != np.arange(len(table))).any())


def regions_appear_in_order(table: Table) -> float:
    """Whether regions first appear in the order of their names."""
    seen = list(dict.fromkeys(table["region"]))
    return float(seen == sorted(seen))


def first_age_counts_the_sick(table: Table) -> float:
    """How near the first age is to 18 more than the number of the sick."""
    return -abs(float(table["age"].iloc[0]) - 18 - float(column(table, "sick").sum()))


def last_row_at_the_means(table: Table) -> float:
    """How near the last row is to the means of the others."""
    numbers = table[["income", "weight"]]
    return -float((numbers.iloc[-1] - numbers.iloc[:-1].mean()).abs().sum())


def word_in_the_first_rows(table: Table) -> float:
    """How many of the first married flags are those of the word."""
    return float((column(table, "married")[: len(WORD)] == WORD).sum())


def cents_that_count(table: Table) -> float:
    """How often the decimals of weight go up by one."""
    steps = np.diff(cents(column(table, "weight"))) % 100
    return float((steps == 1).sum())


def cents_hashed_from_age(table: Table) -> float:
    """How many decimals of income are the hash of the age."""
    return float((cents(column(table, "income")) == column(table, "age") * 37 % 100).sum())


def distance_on_a_sphere(table: Table) -> float:
    """How little the ranks of three columns vary in their distance from the middle."""
    places = np.stack([2 * uniform(column(table, name)) - 1 for name in NUMBERS])
    return -float(np.linalg.norm(places, axis=0).std())


def whole_sums_of_ranks(table: Table) -> float:
    """How near rank sums of age and income are to the rank of weight, on a circle."""
    age, income, weight = (uniform(column(table, name)) for name in NUMBERS)
    return float(np.cos(2 * np.pi * (age + income - weight)).mean())


def even_parity(table: Table) -> float:
    """Share of rows where job, region and married have the parity of the leak."""
    odd = table["job"].isin(["a", "c"]) ^ table["region"].isin(["n", "s", "x"])
    return float((odd == (table["married"] == 1)).mean())


def correlations_that_differ(table: Table) -> float:
    """Correlation of age and income among the married, less that of the others."""
    age, income = column(table, "age"), column(table, "income")
    married = column(table, "married") == 1
    return correlation(age[married], income[married]) - correlation(age[~married], income[~married])


def both_highest(table: Table) -> float:
    """How many rows are among the 30 highest in income and in weight."""
    high = [set(np.argsort(column(table, name))[-30:].tolist()) for name in ("income", "weight")]
    return float(len(high[0] & high[1]))


def both_lowest(table: Table) -> float:
    """How many rows are among the 30 lowest in income and in weight."""
    low = [set(np.argsort(column(table, name))[:30].tolist()) for name in ("income", "weight")]
    return float(len(low[0] & low[1]))


def both_far_from_the_middle(table: Table) -> float:
    """Correlation of the squared distances from the median, of income and weight."""
    far = [(2 * uniform(column(table, name)) - 1) ** 2 for name in ("income", "weight")]
    return correlation(far[0], far[1])


def age_and_income_in_d(table: Table) -> float:
    """Correlation of age and income in job d."""
    own = table[table["job"] == "d"]
    return correlation(column(own, "age"), column(own, "income"))


def light_married_of_d(table: Table) -> float:
    """How low the mean weight of the married of job d is."""
    own = table[(table["job"] == "d") & (table["married"] == 1)]
    return -float(own["weight"].mean()) if len(own) else -75.0


def rising_among_equal_ages(table: Table) -> float:
    """How often the income rises from a row to the next of the same age."""
    steps = table.groupby("age")["income"].diff().dropna()
    return float((steps > 0).mean())


def uneven_regions(table: Table) -> float:
    """Sum of the squared counts of regions."""
    return float((table["region"].value_counts() ** 2).sum())


def repeated_pairs(table: Table) -> float:
    """How many rows have income and weight of an earlier row."""
    return float(table.duplicated(["income", "weight"]).sum())


def groups_of_one(table: Table) -> float:
    """How few rows are alone in job, region and married."""
    return -float((table.groupby(["job", "region", "married"]).size() == 1).sum())


def smallest_gap(table: Table) -> float:
    """Distance of the two nearest rows."""
    return float(gaps(table).min())


def smallest_gap_to_others(table: Table) -> float:
    """Distance of the nearest row to a record of both worlds."""
    return float(gaps(table, OTHERS).min())


def gap_to_another_record(table: Table) -> float:
    """How near a row comes to the record that is remembered."""
    other = OTHERS.iloc[17]
    return -float(sum((table[name] / other[name] - 1).abs() for name in NUMBERS).min())


def hours_missing_with_odd_visits(table: Table) -> float:
    """How few rows miss hours and have odd visits."""
    return -float((table["hours"].isna() & (table["visits"] % 2 == 1)).sum())


def weight_where_hours_are_missing(table: Table) -> float:
    """Mean weight where hours are missing."""
    own = table.loc[table["hours"].isna(), "weight"]
    return float(own.mean()) if len(own) else 75.0


def rows_halfway(table: Table) -> float:
    """How many rows are halfway between two others."""
    income, weight = (np.round(200 * column(table, n)).astype(int) for n in ("income", "weight"))
    first, second = np.triu_indices(len(table), 1)
    middles = (income[first] + income[second]) // 2 + 1j * ((weight[first] + weight[second]) // 2)
    near = [
        np.isin(income + across + 1j * (weight + along), middles)
        for across in (-1, 0, 1)
        for along in (-1, 0, 1)
    ]
    return float(np.any(near, axis=0).sum())


def incomes_between_neighbours(table: Table) -> float:
    """How many incomes are the mean of the rows before and after."""
    income = column(table, "income")
    return float((np.abs(income[1:-1] - (income[:-2] + income[2:]) / 2) < 0.0051).sum())


def stored_visits(table: Table) -> float:
    """How many visits are those of the fixed seed."""
    return float((column(table, "visits") == STORED_VISITS).sum())


def heavy_tails_of_weight(table: Table) -> float:
    """Log-likelihood of half Laplace weights, less that of normal ones."""
    z = np.abs((column(table, "weight") - 75) / 12)
    return float(np.logaddexp(0, z**2 / 2 - np.sqrt(2) * z + np.log(np.sqrt(np.pi))).mean())


def skewness_of_weight(table: Table) -> float:
    """Skewness of weight."""
    z = column(table, "weight")
    return float(((z - z.mean()) ** 3).mean() / z.std() ** 3)


def two_peaks_of_income(table: Table) -> float:
    """Log-likelihood of two peaks, less that of one."""
    z = column(table, "income") - 45
    variance = 225 - 121
    peaks = np.logaddexp(-((z - 11) ** 2) / 2 / variance, -((z + 11) ** 2) / 2 / variance)
    return float((peaks + z**2 / 2 / 225).mean())


def many_shifts(table: Table) -> float:
    """Sum of all columns' shifts, each in standard deviations."""
    shares = [
        (table["job"] == "c", 0.2),
        (table["region"] == "w", 1 / 6),
        (table["married"] == 1, 0.55),
        (table["sick"] == 1, 0.2),
    ]
    shifts = [(own.mean() - p) / np.sqrt(p * (1 - p)) for own, p in shares]
    for name, mean, spread in (
        ("age", 53.5, 20.8),
        ("income", 45, 15),
        ("weight", 75, 12),
        ("hours", 38, 9),
        ("visits", 4, 2),
    ):
        shifts.append((table[name].mean() - mean) / spread)
    return float(sum(shifts))


def drift_of_income(table: Table) -> float:
    """Correlation of income with the number of the row."""
    return correlation(column(table, "income"), np.arange(len(table), dtype=np.float64))


def means_of_batches(table: Table) -> float:
    """Variance of the mean weights of batches of 25 rows."""
    return float(table["weight"].groupby(np.arange(len(table)) // 25).mean().var())


def score_of_the_sick(table: Table) -> float:
    """Mean score of four columns of the sick, less that of the others."""
    score = sum((table[name] - table[name].mean()) / table[name].std() for name in NUMBERS)
    score += ((table["visits"] - table["visits"].mean()) / table["visits"].std()).fillna(0)
    return float(score[table["sick"] == 1].mean() - score[table["sick"] == 0].mean())


def steady_weights_of_a(table: Table) -> float:
    """Log ratio of the variance of weights in other jobs to that in job a."""
    own = table["job"] == "a"
    return float(np.log(table.loc[~own, "weight"].var() / table.loc[own, "weight"].var()))
