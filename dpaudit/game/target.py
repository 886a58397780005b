"""The attacked record, chosen because it is exposed or because it is far from all others.

A generator that infers bounds, categories, missing values or number formats from the table may take
such a fact from a single record, so its output may change without that record. The choice uses the
table alone: nothing is trained.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from dpaudit.errors import TargetError
from dpaudit.formatting import did_you_mean
from dpaudit.model.choices import EXPOSING, FARTHEST, VULNERABLE
from dpaudit.model.column import Column, Unit, as_numbers
from dpaudit.model.encoding import encode
from dpaudit.model.schema import Schema, equal_rows
from dpaudit.model.tables import fitting, load_table
from dpaudit.plugins.protocols import FloatArray, IntArray
from dpaudit.seeds import rng_of


class Target(NamedTuple):
    """The attacked record, or the attacked unit with all its rows.

    Attributes:
        choice: How it was chosen: "exposing", "farthest", "row:N", "unit:VALUE" or "record:FILE".
        rows: Positions of its rows in the table handed in, ascending; empty if it is not in the
            table.
        record: The record, a canonical table of one row; for a unit, a table of all its rows.
        exposures: For an exposed record, the facts for which it was chosen; empty if no record had
            any, so that the farthest was chosen.
        compared: In a table too large to compare all records with each other, the number of
            records compared with all others to find the farthest; None if no record was skipped.
    """

    choice: str
    rows: tuple[int, ...]
    record: pd.DataFrame
    exposures: tuple[Exposure, ...] | None = None
    compared: int | None = None

    @property
    def row(self) -> int | None:
        """Position of its first row; None if it is not in the table."""
        return self.rows[0] if self.rows else None


def choose_target(choice: str, data: pd.DataFrame, schema: Schema) -> Target:
    """Finds the record to attack; for a schema with a unit, the unit (`choose_unit`).

    Args:
        choice: "exposing" (the most exposed record, with the most column extremes and unique
            values, see `find_holders`; on a tie the farthest of these; if no record is exposed, the
            farthest without a copy), "farthest" (largest mean distance to its 5 nearest neighbours
            in the encoded table; approximate in a table of more than 20,000 rows, see
            `farthest_first`), "row:N" (counted from 0), or "record:FILE" (a table of one row, which
            is removed from the table for world "out", or added for world "in" if it is not in it).
        data: The table, canonical.
        schema: Its schema.

    Returns:
        The target.

    Raises:
        TargetError: If the choice is malformed, the table has fewer than two rows to choose from,
            the row does not exist, or the file does not have exactly one record.
        DataError: If the record does not fit the schema.
    """
    if choice == VULNERABLE:
        raise TargetError(
            f"target {choice!r} is found by small trial attacks, which only `dpaudit audit` of "
            f"single rows makes: give {EXPOSING}, {FARTHEST}, row:N or record:FILE"
        )
    if schema.unit is not None:
        return choose_unit(choice, data, schema, schema.unit)
    if choice == EXPOSING:
        return _most_exposed(data, schema)
    if choice == FARTHEST:
        return _target_of_row(choice, farthest(data, schema), data)._replace(
            compared=_number_compared(data)
        )
    kind, _, rest = choice.partition(":")
    if kind == "row":
        return _target_of_row(choice, _row_number(choice, data), data)
    if kind == "unit":
        raise TargetError(f"target {choice!r} is a unit: name its column with `unit`")
    if kind == "record" and rest:
        record = load_table(Path(rest), schema=schema)
        if len(record) != 1:
            raise TargetError(f"target file {rest} has {len(record)} records: give exactly one")
        record = fitting(record, schema, source=f"target {rest}")
        copies = np.flatnonzero(equal_rows(data, record, schema))
        return Target(choice, tuple(copies[:1].tolist()), record)
    names = (EXPOSING, FARTHEST, VULNERABLE)
    raise TargetError(
        f"target {choice!r} is not one of {', '.join(names)}, row:N, record:FILE"
        f"{did_you_mean(choice, names)}"
    )


def choose_unit(choice: str, data: pd.DataFrame, schema: Schema, unit: Unit) -> Target:
    """Finds the unit to attack.

    Args:
        choice: "exposing" (the unit with the most facts that are unique to its rows together, as
            for records in `choose_target`, to their number or to their sums; on a tie the one with
            the farthest record), "farthest" (the unit of the farthest record), "row:N" (the
            unit of that row) or "unit:VALUE".
        data: The table, canonical, with the unit's column.
        schema: Its schema.
        unit: The unit.

    Returns:
        The target, with all rows of the unit.

    Raises:
        TargetError: If the choice is malformed, or there is no such unit or row.
    """
    owners = unit.codes(data)
    kind, _, rest = choice.partition(":")
    if choice == EXPOSING:
        holders = find_unit_holders(data, schema, owners)
        scores = _unit_scores(holders, owners)
        best = np.flatnonzero(scores == scores.max())
        candidates = np.flatnonzero(np.isin(owners, best))
        row = int(candidates[0] if len(best) == 1 else farthest_first(data, schema, candidates)[0])
        exposures = exposures_of(int(owners[row]), holders)
        return _target_of_unit(choice, row, data, owners)._replace(exposures=exposures)
    if choice == FARTHEST:
        return _target_of_unit(choice, farthest(data, schema), data, owners)
    if kind == "row":
        return _target_of_unit(choice, _row_number(choice, data), data, owners)
    if kind == "unit" and rest:
        rows = np.flatnonzero(data[unit.column].astype(str) == rest)
        if not len(rows):
            raise TargetError(f"target {choice!r}: no row of the table has {rest!r} as its unit")
        return _target_of_unit(choice, int(rows[0]), data, owners)
    raise TargetError(
        f"target {choice!r} is not one of {EXPOSING}, {FARTHEST}, unit:VALUE, row:N (the unit of "
        f"that row), as the audit is of units{did_you_mean(choice, (EXPOSING, FARTHEST))}"
    )


def _target_of_unit(choice: str, row: int, data: pd.DataFrame, owners: IntArray) -> Target:
    """The unit of a row as a target."""
    rows = np.flatnonzero(owners == owners[row])
    return Target(choice, tuple(rows.tolist()), data.iloc[rows].reset_index(drop=True))


def _row_number(choice: str, data: pd.DataFrame) -> int:
    """The position that "row:N" names."""
    last, rest = len(data) - 1, choice.removeprefix("row:")
    if not re.fullmatch("-?[0-9]{1,18}", rest):
        raise TargetError(f"target {choice!r}: give a row number, as row:0 to row:{last}")
    row = int(rest)
    if not 0 <= row <= last:
        raise TargetError(f"target row {row} does not exist: the table has rows 0 to {last}")
    return row


def farthest(data: pd.DataFrame, schema: Schema) -> int:
    """Position of the record that `farthest_first` puts first.

    Raises:
        TargetError: If the table has fewer than two rows.
    """
    _check_choice(data)
    return int(farthest_first(data, schema, np.arange(len(data)))[0])


def far_records(data: pd.DataFrame, schema: Schema) -> IntArray:
    """Positions [m] of the records without an identical copy in the table, the farthest first."""
    alone = np.flatnonzero(~data.duplicated(keep=False).to_numpy())
    return alone if len(data) < 2 else farthest_first(data, schema, alone)


def far_units(data: pd.DataFrame, schema: Schema) -> IntArray:
    """Numbers [u] of all units of the table, those with the farthest record first.

    A record's distance is the mean distance to its 5 nearest neighbours in other units. Neighbours
    in its own unit count too if units have very many rows, or the table more than 20,000, where
    `farthest_first` compares with samples.
    """
    owners = schema.owners(data)
    neighbours = NEIGHBOURS_AVERAGED + int(np.bincount(owners).max())
    order = (
        _largest_first(np.arange(len(data)), _distances_to_others(encode(data, schema), owners))
        if is_exact(len(data)) and len(data) * neighbours <= _MOST_NEIGHBOURS
        else farthest_first(data, schema, np.arange(len(data)))
    )
    _, first_place = np.unique(owners[order], return_index=True)
    return np.argsort(first_place)


def exposing_units_first(data: pd.DataFrame, schema: Schema) -> IntArray:
    """Numbers [u] of all units, the most exposed first, as in `choose_unit`.

    Equally exposed units are ordered as in `far_units`.
    """
    owners = schema.owners(data)
    scores = _unit_scores(find_unit_holders(data, schema, owners), owners)
    far = far_units(data, schema)
    return _largest_first(far, scores[far])


def exposing_first(data: pd.DataFrame, schema: Schema) -> IntArray:
    """Positions [m] of the records without an identical copy, the most exposed first.

    Equally exposed records are ordered by distance, as in `far_records`.
    """
    far = far_records(data, schema)
    scores = exposure_scores(find_holders(data, schema), len(data))
    return _largest_first(far, scores[far])


def copies_of(record: pd.DataFrame, data: pd.DataFrame, schema: Schema) -> int:
    """Number of rows of a canonical table that equal a canonical record."""
    return int(equal_rows(data, record, schema).sum())


def _most_exposed(data: pd.DataFrame, schema: Schema) -> Target:
    """The most exposed record; distances are computed only to break ties."""
    _check_choice(data)
    holders = find_holders(data, schema)
    scores = exposure_scores(holders, len(data))
    if not scores.any():
        far = far_records(data, schema)
        row = int(far[0]) if len(far) else farthest(data, schema)
        return _target_of_row(EXPOSING, row, data)._replace(
            exposures=(), compared=_number_compared(data)
        )
    candidates = np.flatnonzero(scores == scores.max())
    row = int(
        candidates[0] if len(candidates) == 1 else farthest_first(data, schema, candidates)[0]
    )
    return _target_of_row(EXPOSING, row, data)._replace(exposures=exposures_of(row, holders))


def _check_choice(data: pd.DataFrame) -> None:
    if len(data) < 2:
        raise TargetError("the table needs at least 2 rows to choose a target from")


def _number_compared(data: pd.DataFrame) -> int | None:
    """`Target.compared` of a table that was searched for its farthest record."""
    return None if is_exact(len(data)) else COMPARED


def _target_of_row(choice: str, row: int, data: pd.DataFrame) -> Target:
    """A row as a target."""
    return Target(choice, (row,), data.iloc[[row]].reset_index(drop=True))


class Fact(StrEnum):
    """A way in which one record is unique in a column."""

    MAXIMUM = "sole maximum"
    """Every other value is smaller."""
    MINIMUM = "sole minimum"
    """Every other value is larger."""
    DIFFERENT = "only value that differs"
    """All others share one value, or are all missing."""
    CATEGORY = "only one of its category"
    """The others share at least two other categories."""
    MISSING = "only missing value"
    """All others have a value."""
    DECIMALS = "only value with decimals"
    """All other numbers are whole."""


class Exposure(NamedTuple):
    """A fact that is unique to one record.

    Attributes:
        fact: The fact.
        column: The column that it is about.
    """

    fact: Fact
    column: str


class Holders(NamedTuple):
    """The records (or units) with a unique fact: one, or several that each have their own category.

    Attributes:
        exposure: The fact and its column.
        rows: Positions [m] of the records in the table.
        weight: Weight of the fact for each record, in (0, 1].
    """

    exposure: Exposure
    rows: IntArray
    weight: float


def find_holders(
    data: pd.DataFrame, schema: Schema, owners: IntArray | None = None
) -> tuple[Holders, ...]:
    """Finds every fact that is unique to one record, or to the rows of one unit.

    A fact has weight 1. The weight of a sole extreme is its distance from the next value in
    standard deviations of all other values, at most 1. So a slight maximum, which every column of
    real numbers has, has little weight. For units, the extremes of each unit are compared.

    Args:
        data: The table [n], canonical.
        schema: Its schema.
        owners: The unit of each row [n], numbered in order of appearance; None for records.

    Returns:
        The facts, in the order of the columns; positions are those of records, or of units.
    """
    owners = np.arange(len(data)) if owners is None else owners
    return tuple(
        Holders(Exposure(fact, column.name), rows, weight)
        for column in schema.columns
        for fact, rows, weight in _facts_of_column(column, data[column.name], owners)
    )


NUMBER_OF_ROWS: Final = "number of rows"
"""Stands for a column in facts about the number of rows of a unit."""


def find_unit_holders(data: pd.DataFrame, schema: Schema, owners: IntArray) -> tuple[Holders, ...]:
    """Finds every fact that is unique to one unit: about its rows, their number and their sums.

    Args:
        data: The table [n], canonical.
        schema: Its schema.
        owners: The unit of each row [n], numbered in order of appearance.

    Returns:
        The facts; positions are those of units.
    """
    holders = list(find_holders(data, schema, owners))
    if len(owners) == owners.max() + 1:  # each unit has one row: its sums are its values
        return tuple(holders)
    totals = {NUMBER_OF_ROWS: np.ones(len(data))}
    for column in schema.columns:
        if column.kind.numeric:
            totals[f"sum of {column.name}"] = np.nan_to_num(as_numbers(data[column.name]))
    for name, numbers in totals.items():
        sums: FloatArray = np.bincount(owners, weights=numbers).astype(np.float64)
        for fact, rows, weight in _facts_of_numbers(sums, np.arange(len(sums))):
            # If all sums are positive, the smallest only belongs to a unit with few rows.
            if fact is Fact.MAXIMUM or (fact is Fact.MINIMUM and sums.min() < 0):
                holders.append(Holders(Exposure(fact, name), rows, weight))
    return tuple(holders)


def exposure_scores(holders: tuple[Holders, ...], rows: int) -> FloatArray:
    """The exposure of each record [n]: the sum of its facts' weights; 0 for most records."""
    scores = np.zeros(rows)
    for holder in holders:
        scores[holder.rows] += holder.weight  # the rows of one fact are distinct
    return scores


def _unit_scores(holders: tuple[Holders, ...], owners: IntArray) -> FloatArray:
    """The exposure of each unit [u]: the sum of its facts' weights, plus its relative size."""
    sizes = np.bincount(owners)
    scores: FloatArray = exposure_scores(holders, len(sizes)) + sizes / sizes.max()
    return scores


def exposures_of(row: int, holders: tuple[Holders, ...]) -> tuple[Exposure, ...]:
    """The facts about one record, by weight, then in the order of the columns."""
    of_row = [holder for holder in holders if row in holder.rows]
    return tuple(holder.exposure for holder in sorted(of_row, key=lambda holder: -holder.weight))


class _Fact(NamedTuple):
    """A fact, the records that it is unique to, and its weight."""

    fact: Fact
    rows: IntArray
    weight: float = 1.0


def _facts_of_column(column: Column, values: pd.Series[Any], owners: IntArray) -> Iterator[_Fact]:
    """The facts about the values [n] of a column, which have owners [n]."""
    has_several = len(_distinct(owners)) > 1
    missing = np.asarray(values.isna(), dtype=bool)
    without_value, with_value = _distinct(owners[missing]), _distinct(owners[~missing])
    if has_several and len(without_value) == 1:
        yield _Fact(Fact.MISSING, without_value)
    present = np.flatnonzero(~missing)
    if len(with_value) == 1:
        if has_several:
            yield _Fact(Fact.DIFFERENT, with_value)
    elif column.kind.numeric:
        yield from _facts_of_numbers(as_numbers(values)[present], owners[present])
    elif len(present):
        yield from _facts_of_categories(column.codes(values)[present], owners[present])


def _distinct(owners: IntArray) -> IntArray:
    """The distinct owners, ascending; records are distinct already."""
    return owners if (owners[1:] > owners[:-1]).all() else np.unique(owners)


def _facts_of_numbers(numbers: FloatArray, owners: IntArray) -> Iterator[_Fact]:
    """The facts about numbers [m] with owners [m], two or more of them."""
    lowest, highest = numbers.min(initial=np.inf), numbers.max(initial=-np.inf)
    if not lowest < highest:
        return
    distinct = _distinct(owners)
    largest = smallest = numbers
    if len(distinct) < len(numbers):
        places = distinct.searchsorted(owners)
        largest, smallest = np.full(len(distinct), lowest), np.full(len(distinct), highest)
        np.maximum.at(largest, places, numbers)
        np.minimum.at(smallest, places, numbers)

    def scaled(values: FloatArray) -> FloatArray:
        # Halved, because the difference of two numbers may overflow.
        heights: FloatArray = (values / 2 - lowest / 2) / (highest / 2 - lowest / 2)
        return heights

    extremes = (Fact.MAXIMUM, scaled(largest)), (Fact.MINIMUM, 1 - scaled(smallest))
    for fact, scores in extremes:
        best = int(scores.argmax())
        others = np.delete(scores, best)
        gap, spread = scores[best] - others.max(), others.std()
        if not gap > 0:
            continue
        weight = 1.0 if spread == 0 else min(1.0, float(gap / spread))
        others_are_equal = spread == 0 and scaled(numbers[owners != distinct[best]]).std() == 0
        yield _Fact(Fact.DIFFERENT if others_are_equal else fact, distinct[[best]], weight)
    fractional = _distinct(owners[numbers != np.rint(numbers)])
    if len(fractional) == 1:
        yield _Fact(Fact.DECIMALS, fractional)


def _facts_of_categories(codes: IntArray, owners: IntArray) -> Iterator[_Fact]:
    """The facts about categories, given as codes [m] with owners [m]."""
    if len(_distinct(owners)) < len(owners):  # a category counts once for each owner
        _, first = np.unique(codes * (int(owners.max()) + 1) + owners, return_index=True)
        codes, owners = codes[first], owners[first]
    _, places, counts = np.unique(codes, return_inverse=True, return_counts=True)
    sole_owners = _distinct(owners[counts[places] == 1])
    if len(counts) > 1 and len(sole_owners):
        yield _Fact(Fact.DIFFERENT if len(counts) == 2 else Fact.CATEGORY, sole_owners)


NEIGHBOURS_AVERAGED: Final = 5
"""Number of nearest neighbours whose mean distance ranks records."""
EXACT_ROWS: Final = 20_000
"""Largest table whose records are all compared with each other, which takes seconds."""
COMPARED: Final = 1024
"""In a larger table, the number of records compared with all others, and the first sample size."""
_GROWTH: Final = 4
"""Growth factor of the samples, and reduction factor of the records compared with them."""
_ROWS_AT_ONCE: Final = 32_768
_MOST_NEIGHBOURS: Final = 2 * 10**7
"""Most neighbours of all records that are computed together: half a gigabyte."""


def farthest_first(data: pd.DataFrame, schema: Schema, among: IntArray) -> IntArray:
    """Orders records by their mean distance to their 5 nearest neighbours in the encoded table.

    For more than 20,000 rows, comparing all with each other takes minutes to hours. Instead every
    record is compared with a random sample of 1,024; the farthest quarter with a sample four times
    as large; and so on, until 1,024 records are compared with the whole table. These come first, in
    their true order. This is an approximation: a far record is dropped if a quarter of the records
    seem farther on some sample. Distances to a sample are never smaller than the true ones, so this
    hardly ever happens to a record far from all others. The samples depend only on the number of
    rows.

    Args:
        data: The table [n], canonical; at least 2 rows.
        schema: Its schema.
        among: Positions [m] of the records to order, ascending.

    Returns:
        The same positions, the farthest first; ties go to the earlier record.
    """
    if is_exact(len(data)):
        return _largest_first(among, neighbour_distances(encode(data, schema))[among])
    rng = rng_of(len(data), "samples")
    remaining, dropped, size = among, among[:0], COMPARED
    while size < len(data) and len(remaining) > COMPARED:
        sample = np.sort(rng.choice(len(data), size, replace=False))
        order = _largest_first(remaining, _distances(remaining, sample, data, schema))
        keep = max(COMPARED, len(remaining) // _GROWTH)
        remaining, dropped = np.sort(order[:keep]), np.concatenate([order[keep:], dropped])
        size *= _GROWTH
    everything = np.arange(len(data))
    first = _largest_first(remaining, _distances(remaining, everything, data, schema))
    return np.concatenate([first, dropped])


def is_exact(rows: int) -> bool:
    """Whether every record of a table of this size is compared with every other."""
    return rows <= EXACT_ROWS


def neighbour_distances(matrix: FloatArray) -> FloatArray:
    """Mean distance [n] of each row of an encoded table [n, f] to its 5 nearest neighbours."""
    k = min(NEIGHBOURS_AVERAGED, len(matrix) - 1)
    means: FloatArray = _nearest(matrix, matrix, k + 1)[:, 1:].mean(axis=1)
    return means


def _distances_to_others(matrix: FloatArray, owners: IntArray) -> FloatArray:
    """Mean distance [n] of each row [n, f] to its 5 nearest neighbours with other owners [n]."""
    from sklearn.neighbors import NearestNeighbors

    k = min(NEIGHBOURS_AVERAGED + int(np.bincount(owners).max()), len(matrix))
    distances, near = NearestNeighbors(n_neighbors=k).fit(matrix).kneighbors(matrix)
    distances[owners[near] == owners[:, None]] = np.inf
    nearest = np.sort(distances, axis=1)[:, :NEIGHBOURS_AVERAGED]
    nearest[np.isinf(nearest)] = np.nan
    means: FloatArray = np.nanmean(nearest, axis=1)
    return means


def _distances(
    positions: IntArray, sample: IntArray, data: pd.DataFrame, schema: Schema
) -> FloatArray:
    """Mean distance [m] of some records to their 5 nearest neighbours in a sample of the table."""
    means = []
    for queries in _parts(positions):
        records = encode(data.iloc[queries], schema)
        nearest = np.full((len(queries), NEIGHBOURS_AVERAGED + 1), np.inf)
        for part in _parts(sample):
            rows = encode(data.iloc[part], schema)
            distances = _nearest(rows, records, min(nearest.shape[1], len(rows)))
            nearest = np.sort(np.hstack([nearest, distances]), axis=1)[:, : nearest.shape[1]]
        in_sample = np.isin(queries, sample)  # then the nearest row is the record itself
        means.append(np.where(in_sample, nearest[:, 1:].mean(axis=1), nearest[:, :-1].mean(axis=1)))
    return np.concatenate(means)


def _parts(positions: IntArray) -> list[IntArray]:
    """Positions in parts that fit into memory together."""
    return [
        positions[start : start + _ROWS_AT_ONCE]
        for start in range(0, len(positions), _ROWS_AT_ONCE)
    ]


def _nearest(rows: FloatArray, queries: FloatArray, count: int) -> FloatArray:
    """Distances [m, count] of some queries [m, f] to the nearest rows [n, f], ascending."""
    from sklearn.neighbors import NearestNeighbors

    distances: FloatArray
    distances, _ = NearestNeighbors(n_neighbors=count).fit(rows).kneighbors(queries)
    return distances


def _largest_first(positions: IntArray, values: FloatArray) -> IntArray:
    """Positions [m] by their values [m], the largest first."""
    return positions[np.argsort(-values, kind="stable")]
