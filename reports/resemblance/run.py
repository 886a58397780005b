"""How often audit-data's red flag is raised for honest tables, and for training rows with changes.

Usage: python -m reports.resemblance.run [--data DIR] [--quick]   (5 minutes in one process)

Writes results/tables.json and the table of README.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy.stats import norm

from dpaudit.model.tables import load_table
from dpaudit.released_data.resemblance import find_resemblance
from dpaudit.released_data.tables import load_released
from dpaudit.seeds import rng_of
from reports import markdown
from reports.cervical import published_table
from reports.command import StudyParser, start, write_json
from reports.data import table_file

ADULT, CERVICAL = "adult", "cervical-cancer"
TABLES: Final = (ADULT, CERVICAL)
HONEST_TABLES: Final = 10
"""Tables of each honest generator from each population."""
ROWS: Final = 1000
BINS: Final = 8

Draws = np.random.Generator
Maker = Callable[[pd.DataFrame, pd.DataFrame, Draws], pd.DataFrame]
"""Makes a table from training rows, other rows of the population, and random draws."""


def marginals(train: pd.DataFrame, others: pd.DataFrame, rng: Draws) -> pd.DataFrame:
    """Draws each column by itself."""
    return pd.DataFrame({name: rng.permutation(train[name].to_numpy()) for name in train})


def copula(train: pd.DataFrame, others: pd.DataFrame, rng: Draws) -> pd.DataFrame:
    """A Gaussian copula with the columns' own values; the order of categories is alphabetical."""
    ordered = train.apply(lambda column: pd.factorize(column, sort=True)[0])
    jumbled = ordered + rng.random(ordered.shape)  # equal values in random order
    normal = norm.ppf((jumbled.rank().to_numpy() - 0.5) / len(train))
    drawn = rng.multivariate_normal(np.zeros(train.shape[1]), np.cov(normal.T), size=len(train))
    places = (norm.cdf(drawn / normal.std(axis=0)) * len(train)).astype(int)
    return pd.DataFrame(
        {
            name: train[name].sort_values().to_numpy()[place]
            for name, place in zip(train, places.T, strict=True)
        }
    )


def bootstrap(train: pd.DataFrame, others: pd.DataFrame, rng: Draws) -> pd.DataFrame:
    """Draws rows of other people, with replacement."""
    return others.iloc[rng.integers(len(others), size=len(train))].reset_index(drop=True)


def coarse(train: pd.DataFrame, others: pd.DataFrame, rng: Draws) -> pd.DataFrame:
    """Rows of other people, with each number drawn anew from one of eight bins."""
    drawn = bootstrap(train, others, rng)
    for name in _numbers(drawn):
        ends = np.unique(np.nanquantile(train[name], np.linspace(0.0, 1.0, BINS + 1)))
        if len(ends) > BINS // 2:
            bins = np.clip(np.searchsorted(ends, drawn[name], side="right") - 1, 0, len(ends) - 2)
            drawn[name] = _like(train[name], rng.uniform(ends[bins], ends[bins + 1]))
    return drawn


def shifted(train: pd.DataFrame, others: pd.DataFrame, rng: Draws) -> pd.DataFrame:
    """Moves one number by up to 2 steps and another by up to 1, and multiplies a third by 1.01."""
    changed = train.copy()
    for name, most in zip(_numbers(train), (2, 1), strict=False):
        step = 1 if train[name].dtype.kind in "iu" else 0.01 * train[name].std()
        changed[name] = train[name] + step * rng.integers(-most, most + 1, len(train))
    return scaled(changed, others, rng)


def scaled(train: pd.DataFrame, others: pd.DataFrame, rng: Draws) -> pd.DataFrame:
    """Multiplies the number with most values by 1.01."""
    name = max(_numbers(train), key=lambda column: train[column].nunique())
    return train.assign(**{name: _like(train[name], 1.01 * train[name])})


def noisy(train: pd.DataFrame, others: pd.DataFrame, rng: Draws) -> pd.DataFrame:
    """Adds noise of 1 % of its standard deviation to each number."""
    noise = {
        name: 0.01 * train[name].std() * rng.normal(size=len(train)) for name in _numbers(train)
    }
    return train.assign(
        **{name: _like(train[name], train[name] + of) for name, of in noise.items()}
    )


def permuted(train: pd.DataFrame, others: pd.DataFrame, rng: Draws) -> pd.DataFrame:
    """Permutes one column."""
    name = train.columns[int(rng.integers(train.shape[1]))]
    return train.assign(**{name: rng.permutation(train[name].to_numpy())})


def swapped(train: pd.DataFrame, others: pd.DataFrame, rng: Draws) -> pd.DataFrame:
    """Replaces one value in twenty by that of another row."""
    return train.where(rng.random(train.shape) >= 0.05, marginals(train, others, rng))


HONEST: Final[Mapping[str, Maker]] = {
    maker.__name__: maker for maker in (marginals, copula, bootstrap, coarse)
}
CHANGED: Final[Mapping[str, Maker]] = {
    maker.__name__: maker for maker in (shifted, scaled, noisy, permuted, swapped)
}


def _numbers(table: pd.DataFrame) -> list[str]:
    """Columns of numbers with more than two values."""
    numbers = table.select_dtypes("number")
    return [str(name) for name in numbers if numbers[name].nunique() > 2]


def _like(column: pd.Series[Any], values: Any) -> Any:
    return np.rint(values) if column.dtype.kind in "iu" else values


def heavy_tails(rows: int, rng: Draws) -> pd.DataFrame:
    """Numbers without a variance on scales up to 10^12, and a category."""
    scales = {f"x{power}": 10.0**power * rng.standard_t(1.5, rows) for power in (0, 3, 6, 12)}
    return pd.DataFrame(scales | {"group": rng.choice(list("abc"), rows)})


def frequent_rows(rows: int, rng: Draws) -> pd.DataFrame:
    """Few values in each column, so that one row in six or so has an equal."""
    skewed = np.array([0.4, 0.25, 0.15, 0.1, 0.07, 0.03])
    codes = {f"k{place}": rng.choice(list("abcdef"), rows, p=skewed) for place in range(6)}
    return pd.DataFrame(
        codes | {"visits": rng.poisson(3.0, rows), "age": rng.integers(20, 90, rows)}
    )


def two_columns(rows: int, rng: Draws) -> pd.DataFrame:
    """Two numbers, with 30 % of one missing."""
    numbers = rng.normal(size=(rows, 2))
    numbers[rng.random(rows) < 0.3, 1] = np.nan
    return pd.DataFrame(numbers, columns=["a", "b"])


SIMULATED: Final = {
    "heavy tails": (heavy_tails, ROWS),
    "frequent rows": (frequent_rows, ROWS),
    "frequent rows, 200": (frequent_rows, 200),
    "two columns": (two_columns, ROWS),
}


def main(given: Sequence[str] | None = None) -> None:
    """Makes all tables and compares each with its training rows; writes the page's table."""
    parser = StudyParser(__file__, __doc__, tables=TABLES)
    run = parser.run_of(parser.parse_args(given))
    public = {
        ADULT: load_table(table_file(ADULT, run.data)),
        CERVICAL: published_table(run.data),
    }
    results = []
    for name in (*public, *SIMULATED):
        honest = product(HONEST.items(), range(1 if run.quick else HONEST_TABLES))
        for (made, make), number in (*honest, *((of, 0) for of in CHANGED.items())):
            rng = rng_of(number, f"resemblance, {name}, {made}")
            if name in public:
                both = public[name].iloc[rng.permutation(len(public[name]))[: 2 * ROWS]]
            else:
                simulate, rows = SIMULATED[name]
                both = simulate(2 * rows, rng)
            half = len(both) // 2
            train, others = (of.reset_index(drop=True) for of in (both[:half], both[half:]))
            results.append(
                {"table": name, "made": made, **_compare(train, make(train, others, rng), rng)}
            )
    write_json(run.out / "tables.json", results)
    if run.is_whole:
        markdown.replace_table(run.home / "README.md", page(results))


def _compare(train: pd.DataFrame, synthetic: pd.DataFrame, rng: Draws) -> dict[str, Any]:
    tables = load_released(train, synthetic)
    found = find_resemblance(tables.train, tables.synthetic, tables.schema, rng)
    if found is None:
        return {"flagged": None}
    return {
        **{of: round(share, 4) for of, share in found._asdict().items()},
        "flagged": found.flagged,
    }


def page(results: Sequence[Mapping[str, Any]]) -> str:
    """The results as a Markdown table: flags, and the largest (of changed rows: least) difference.

    Args:
        results: One for each table.
    """
    rows = []
    for made in (*HONEST, *CHANGED):
        extreme = max if made in HONEST else min
        cells = []
        for name in (*TABLES, *SIMULATED):
            of = [result for result in results if (result["table"], result["made"]) == (name, made)]
            apart = [each["synthetic"] - each["train"] for each in of if "train" in each]
            flags = sum(bool(each["flagged"]) for each in of)
            cells.append(f"{flags} of {len(of)} ({markdown.number(extreme(apart, default=None))})")
        rows.append([made, *cells])
    return markdown.table(["synthetic table", *TABLES, *SIMULATED], rows)


if __name__ == "__main__":
    start(main)
