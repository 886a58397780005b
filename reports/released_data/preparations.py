"""How tables are prepared before an audit, and a release of other people for each way.

Each maker takes a population in random order and gives train, hold-out and a release that knows
nothing of train: rows of other people, distributed as train is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

TAIL: Final = 0.005
"""Share of a numeric column's values beyond which a row is an outlier, at each end."""
DRIFT: Final = 0.5
"""Log odds of being in train per standard deviation of a column's rank, where it drifts."""
FAMILY: Final = 4
"""Rows of a household: alike but for some columns."""


class Prepared(NamedTuple):
    """The tables that are handed in."""

    train: pd.DataFrame
    holdout: pd.DataFrame
    release: pd.DataFrame


Prepare = Callable[[pd.DataFrame, int, np.random.Generator], Prepared]


def _keys(table: pd.DataFrame) -> Any:
    return pd.util.hash_pandas_object(table, index=False).to_numpy()


def distinct(table: pd.DataFrame) -> pd.DataFrame:
    """Without the repeats of a row."""
    return table.drop_duplicates()


def without(table: pd.DataFrame, other: pd.DataFrame) -> pd.DataFrame:
    """Without the rows that another table has."""
    return table[~np.isin(_keys(table), _keys(other))]


def parted(people: pd.DataFrame, rows: int) -> Prepared:
    """Train, hold-out and release of so many rows each, or of a third of all."""
    size = min(rows, len(people) // 3)
    return Prepared(*(people[start * size : (start + 1) * size] for start in range(3)))


def _repeats(
    clear: Callable[[pd.DataFrame, pd.DataFrame], tuple[pd.DataFrame, pd.DataFrame]],
) -> Prepare:
    """Parted at random; then repeats are removed."""

    def prepare(people: pd.DataFrame, rows: int, rng: np.random.Generator) -> Prepared:
        drawn = parted(people, rows)
        return Prepared(*clear(drawn.train, drawn.holdout), drawn.release)

    return prepare


def _before(people: pd.DataFrame, rows: int, rng: np.random.Generator) -> Prepared:
    return parted(distinct(people), rows)


def _sorted(people: pd.DataFrame, rows: int, rng: np.random.Generator) -> Prepared:
    ordered = people[: 3 * rows].sort_values(people.columns[0], kind="stable")
    middle = len(ordered) // 2
    first = ordered[:middle].sample(frac=1.0, random_state=rng)
    last = ordered[middle:].sample(frac=1.0, random_state=rng)
    size = middle // 2
    return Prepared(first[:size], last[:size], first[size:])


def _drifting(people: pd.DataFrame, rows: int, rng: np.random.Generator) -> Prepared:
    ranks = people[people.columns[0]][: 3 * rows].rank(pct=True).to_numpy()
    odds = DRIFT * (ranks - 0.5) * np.sqrt(12.0)
    early = rng.random(len(ranks)) < 1.0 / (1.0 + np.exp(-odds))
    first, last = people[: len(ranks)][early], people[: len(ranks)][~early]
    size = len(first) // 2
    return Prepared(first[:size], last[:size], first[size:])


def _families(*, together: bool) -> Prepare:
    """Households, each dealt to one table, or its rows one by one."""

    def prepare(people: pd.DataFrame, rows: int, rng: np.random.Generator) -> Prepared:
        heads = people[: 3 * rows // FAMILY].reset_index(drop=True)
        members = pd.concat([heads] * FAMILY, ignore_index=True)
        own = list(people.columns[: max(2, people.shape[1] // 3)])  # what is a person's own
        drawn = people[own].sample(len(members), replace=True, random_state=rng)
        members = members.assign(**{name: drawn[name].to_numpy() for name in own})
        if together:
            place = np.tile(rng.permutation(len(heads)), FAMILY)
        else:
            place = rng.permutation(len(members))
        return parted(members.iloc[np.argsort(place, kind="stable")], rows)

    return prepare


def _inliers(people: pd.DataFrame) -> Any:
    numbers = people.select_dtypes("number")
    low, high = numbers.quantile(TAIL), numbers.quantile(1.0 - TAIL)
    return ((numbers >= low) & (numbers <= high)).all(axis=1)


def _filtered(people: pd.DataFrame, rows: int, rng: np.random.Generator) -> Prepared:
    size = min(rows, len(people) // 3)
    rest, kept = people[:size], people[size:][_inliers(people)[size:]]
    half = min(size, len(kept) // 2)
    return Prepared(kept[:half], rest, kept[half : 2 * half])


def _elsewhere(people: pd.DataFrame, rows: int, rng: np.random.Generator) -> Prepared:
    """Train from the people with the most frequent value of a column, the hold-out from all."""
    column = people[people.columns[1]]
    size = min(rows, len(people) // 3)
    rest, site = people[:size], people[size:][(column == column.mode()[0])[size:]]
    half = min(size, len(site) // 2)
    return Prepared(site[:half], rest, site[half : 2 * half])


WAYS: Final[Mapping[str, Prepare]] = MappingProxyType(
    {
        "as drawn": lambda people, rows, rng: parted(people, rows),
        "repeats removed before the split": _before,
        "hold-out rows that are in train removed": _repeats(lambda t, h: (t, without(h, t))),
        "train rows that are in the hold-out removed": _repeats(lambda t, h: (without(t, h), h)),
        "repeats of train removed": _repeats(lambda t, h: (distinct(t), h)),
        "repeats of the hold-out removed": _repeats(lambda t, h: (t, distinct(h))),
        "repeats of each table removed": _repeats(lambda t, h: (distinct(t), distinct(h))),
        "all repeats removed, train first": _repeats(
            lambda t, h: (distinct(t), distinct(without(h, t)))
        ),
        "households, rows dealt one by one": _families(together=False),
        "households, each in one table": _families(together=True),
        "a sorted file, cut in two": _sorted,
        "drift": _drifting,
        "outliers removed from train": _filtered,
        "train of one site": _elsewhere,
    }
)
"""Ways to prepare tables, by name."""
