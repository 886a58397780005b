"""Probes of records: whether the output reveals a record that a coin puts in or leaves out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.bounds import one_run_p_value
from dpaudit.formatting import listed
from dpaudit.model.column import Category, Column, Kind
from dpaudit.model.encoding import values_of_table
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FloatArray
from dpaudit.probe.challenge import (
    PILOTS,
    SCHEMA,
    NotApplicable,
    Observation,
    Rule,
    Subject,
    Trainer,
    challenge,
    drops,
    fewest_guesses,
    insertions,
    rule,
    single_coin,
    summary,
    unprovable,
)

_WIDER = 10.0
"""Shift of a bound, in ranges of the data."""
_ROOM = 2.0
"""Sufficient room between data and bounds, in ranges of the data."""
_MOST_COLUMNS = 64
_NEW = "dpaudit-absent"
_PILOTS: Final = 5
"""Fits of each side; more because there are many features to choose from."""
_EQUAL: Final = 1e-6
"""Two numbers within this share of a column's range count as equal."""
_CLASSES: Final = 10
"""Largest number of values of a possible label column."""
_FITS: Final = 2
_CANARIES: Final = 200
"""Largest number of records decided by coins in one fit."""
_FEWEST: Final = 20
_MARGIN: Final = 1.5
"""Expected guesses per needed guess."""
_DIGITS: Final = 5
"""Equal numbers agree to this many digits: networks compute in single precision."""


class Canary(NamedTuple):
    """A record of the table with one value changed to one that no record has.

    Attributes:
        column: The column of that value.
        value: The value.
    """

    column: Column
    value: Any

    def features(self, table: pd.DataFrame) -> tuple[float, ...]:
        """The features of a synthetic table that may depend on the record."""
        values = table[self.column.name]
        if not self.column.kind.numeric:
            same = values.isna() if pd.isna(self.value) else values == self.value
            return (float(same.any()),)
        numbers = self.column.numbers(values)
        gone = np.isnan(numbers)
        extremes = (np.max(numbers[~gone]), np.min(numbers[~gone])) if not gone.all() else (0, 0)
        return (*map(float, extremes), *((float(gone.any()),) if pd.isna(self.value) else ()))

    def description(self, feature: int) -> str:
        """A feature in words."""
        name = self.column.name
        if self.column.kind.numeric:
            return f"{('the maximum', 'the minimum', 'missing values')[feature]} of {name}"
        if pd.isna(self.value):
            return f"missing values of {name}"
        return f"the category {self.value!r} of {name}"


def range_follows_record(subject: Subject, trainer: Trainer) -> Observation | NotApplicable:
    """Inserts extreme numbers, within public bounds."""
    schema = widen_bounds(subject)
    canaries = []
    for column in schema.columns:
        if column.kind.numeric and column.name != schema.label:
            lower, upper = column.bounds
            numbers = column.numbers(subject.data[column.name])
            above = upper - np.nanmax(numbers) >= np.nanmin(numbers) - lower
            canaries.append(Canary(column, upper if above else lower))
    if not canaries:
        return NotApplicable("the table has no numeric column other than its label")
    return probe_canaries(trainer, schema, subject.data, canaries)


def category_follows_record(subject: Subject, trainer: Trainer) -> Observation | NotApplicable:
    """Inserts categories that the schema allows and no record has."""
    schema = _with_new_categories(subject)
    canaries = [
        Canary(column, absent[0])
        for column in schema.columns
        if not column.kind.numeric
        and (absent := [c for c in column.categories if not (subject.data[column.name] == c).any()])
    ]
    if not canaries:
        return NotApplicable("no column has a category that the schema allows and no record has")
    return probe_canaries(trainer, schema, subject.data, canaries)


def widen_bounds(subject: Subject) -> Schema:
    """The schema, with upper bounds raised if the data leave no room below them.

    Bounds are public: a correct generator accepts any that contain the data.
    """
    if SCHEMA not in subject.maker.takes:
        return subject.schema
    return replace(
        subject.schema,
        columns=tuple(_wider(column, subject.data) for column in subject.schema.columns),
    )


def _wider(column: Column, data: pd.DataFrame) -> Column:
    if not column.kind.numeric:
        return column
    numbers = column.numbers(data[column.name])
    lower, upper = column.bounds
    low, high = float(np.nanmin(numbers)), float(np.nanmax(numbers))
    span = (high - low) or 1.0
    if max(upper - high, low - lower) >= _ROOM * span:
        return column
    raised = upper + _WIDER * span
    return replace(column, upper=float(np.ceil(raised)) if column.kind is Kind.INTEGER else raised)


def _with_new_categories(subject: Subject) -> Schema:
    """The schema; if it was inferred from the data, text columns get one more category."""
    if not subject.schema.inferred or SCHEMA not in subject.maker.takes:
        return subject.schema

    def more(column: Column) -> Column:
        texts = column.kind is Kind.CATEGORICAL and all(
            isinstance(category, str) for category in column.categories
        )
        if not texts or column.name == subject.schema.label:
            return column
        categories: tuple[Category, ...] = (*column.categories, _NEW)
        return replace(column, categories=categories)

    return replace(subject.schema, columns=tuple(map(more, subject.schema.columns)))


def probe_canaries(
    trainer: Trainer, schema: Schema, base: pd.DataFrame, canaries: Sequence[Canary]
) -> Observation | NotApplicable:
    """Chooses features by pilot fits with all records and with none; then runs the coins.

    Args:
        trainer: Trains.
        schema: The table's schema.
        base: The table, canonical.
        canaries: Unique values for records of the table; one record each.

    Returns:
        What was observed, or why so few fits cannot test the claim.
    """
    subject = trainer.subject
    rng = trainer.stream("canaries").rng()
    if len(canaries) > _MOST_COLUMNS:
        chosen = sorted(rng.choice(len(canaries), _MOST_COLUMNS, replace=False))
        canaries = [canaries[i] for i in chosen]
    n, m = len(base), len(canaries)
    bases = base.iloc[rng.integers(0, n, m)].reset_index(drop=True)
    records = bases.astype(object)
    for position, canary in enumerate(canaries):
        records.loc[position, canary.column.name] = canary.value
    data = schema.canonical(pd.concat([base.astype(object), bases, records], ignore_index=True))
    coins = insertions(range(n + m, n + 2 * m), range(n, n + m), subject.claim)
    generator = subject.build(schema, base)

    def features(tables: Sequence[pd.DataFrame]) -> list[FloatArray]:
        return [np.array([c.features(table) for table in tables]) for c in canaries]

    sides = []
    for side, picked in enumerate(("heads", "tails")):
        dropped = [position for coin in coins for position in getattr(coin, picked)]
        fits = [trainer.fit_of(PILOTS * side + i, dropped) for i in range(PILOTS)]
        tables = trainer.tables(generator, data, fits, schema=schema)
        sides.append(features(tables))
    rules = {
        position: guesser
        for position in range(m)
        if (guesser := rule(sides[0][position], sides[1][position])) is not None
    }
    if not rules:
        words = f"none of {m} inserted records moved the output in the pilot"
        read = tuple(canary.column.name for canary in canaries)
        return Observation(False, words, {}, 1.0, read=read)
    most = fewest_guesses(subject.claim, subject.settings.alpha) or m
    best = sorted(rules, key=lambda position: -rules[position].score)[:most]
    return challenge(
        trainer,
        generator,
        data,
        [coins[position] for position in best],
        lambda table: [rules[i].guess(np.asarray(canaries[i].features(table))) for i in best],
        schema=schema,
        basis=_basis(canaries, rules, best, sides),
        never=sorted(
            position for i, coin in enumerate(coins) if i not in best for position in coin.tails
        ),
    )


def _basis(
    canaries: Sequence[Canary],
    rules: dict[int, Rule],
    best: Sequence[int],
    sides: Sequence[list[FloatArray]],
) -> str:
    first, feature = best[0], rules[best[0]].feature
    values = [float(side[first][:, feature].mean()) for side in sides]
    others = f" and {len(best) - 1} more" if len(best) > 1 else ""
    return (
        f"{canaries[first].description(feature)} ({values[0]:.4g} with the record, {values[1]:.4g} "
        f"without){others}"
    )


def constancy_follows_record(subject: Subject, trainer: Trainer) -> Observation | NotApplicable:
    """Makes every column but the label constant; then inserts records with one other value each."""
    constant, canaries = subject.data.astype(object), []
    for column in subject.schema.columns:
        present = subject.data[column.name].dropna()
        if column.name == subject.schema.label or present.empty:
            continue
        usual = present.mode().iloc[0]
        constant[column.name] = usual
        other = _other(column, usual)
        if other is not None:
            canaries.append(Canary(column, other))
    if not canaries:
        return NotApplicable("no column other than the label has two possible values")
    return probe_canaries(trainer, subject.schema, subject.schema.canonical(constant), canaries)


def missing_follows_record(subject: Subject, trainer: Trainer) -> Observation | NotApplicable:
    """Inserts missing values into columns that may have them, after filling those of the table."""
    may = [column for column in subject.schema.columns if column.missing]
    if not may:
        return NotApplicable("the schema allows no missing values")
    filled, canaries = subject.data.copy(), []
    for column in may:
        values = filled[column.name]
        present = values.dropna()
        if not present.empty:
            filled[column.name] = values.where(values.notna(), present.mode().iloc[0])
            canaries.append(Canary(column, np.nan))
    if not canaries:
        return NotApplicable("every column that may have missing values has no other")
    return probe_canaries(trainer, subject.schema, filled, canaries)


def _other(column: Column, usual: Any) -> Any:
    """A possible value other than the usual one: the farther bound, or the first other category."""
    if column.kind.numeric:
        lower, upper = column.bounds
        return upper if upper - usual >= usual - lower else lower
    return next((other for other in column.categories if other != usual), None)


def target_followed(subject: Subject, trainer: Trainer) -> Observation | NotApplicable:
    """Checks whether the output depends on the named record: in similar rows, or as a whole."""
    if subject.target is None:
        return NotApplicable("no record was named: give `target`, such as row:0")
    record, n = subject.target, len(subject.data)
    wanted = values_of_table(subject.data.iloc[[record]], subject.schema)[0]

    def features(table: pd.DataFrame) -> dict[str, float]:
        return summary(table, subject) | _likeness(table, wanted, subject.schema)

    observation = single_coin(
        trainer,
        subject.build(),
        pd.concat([subject.data, subject.data.iloc[[(record + 1) % n]]], ignore_index=True),
        insertions([record], [n], subject.claim)[0],
        features,
        basis="the output differs with and without the target",
        pilots=_PILOTS,
    )
    if observation is None:
        words = "the target moved the output in the pilot no more than the seeds did"
        return Observation(False, words, {}, 1.0)
    return observation


def _likeness(table: pd.DataFrame, wanted: FloatArray, schema: Schema) -> dict[str, float]:
    """How similar the rows of a synthetic table are to a record with the wanted values [d]."""
    values = values_of_table(table, schema)
    apart = np.empty_like(values)
    for position, column in enumerate(schema.columns):
        mine, its = values[:, position], wanted[position]
        if column.kind.numeric:
            lower, upper = column.bounds
            away = np.abs(mine - its) / (upper - lower)
            both = np.isnan(mine) & np.isnan(its)
            apart[:, position] = np.where(both, 0.0, np.nan_to_num(away, nan=1.0))
        else:
            apart[:, position] = mine != its
    equal = apart <= _EQUAL
    features = {
        "share of rows equal to the target": float(equal.all(axis=1).mean()),
        "distance of the nearest row": float(apart.sum(axis=1).min()),
    }
    for position, column in enumerate(schema.columns):
        name = column.name
        features[f"share of rows with the target's {name}"] = float(equal[:, position].mean())
        if column.missing:
            features[f"share of missing {name}"] = float(table[name].isna().mean())
    return features


def rows_copied_verbatim(subject: Subject, trainer: Trainer) -> Observation | NotApplicable:
    """Checks whether synthetic rows equal records that coins put in, but not those left out.

    Rows of a small table also recur by chance, but those left out equally often. The number of
    guesses is fixed: "in" for records found among the synthetic rows; if these are too few, "out"
    for others.
    """
    keys = _keys(subject.data, subject.schema)
    single = np.flatnonzero(~pd.Series(keys).duplicated(keep=False).to_numpy())
    if len(single) < _FEWEST:
        return NotApplicable(f"only {len(single)} of {len(keys)} records are unique")
    generator, schema = subject.build(), subject.schema
    [table] = trainer.tables(generator, subject.data, [trainer.fit_of(0)])
    share = float(np.isin(keys[single], _keys(table, schema)).mean())
    numbers = {"equal_to_real": share, "records": len(single)}
    lost = [name for name in trainer.variation.missing() if subject.data[name].notna().all()]
    if lost:
        return NotApplicable(
            f"{listed(lost)}: missing in every synthetic row, which equals no record"
        )
    if share == 0.0:
        # With another seed too: a constant also equals no record.
        trainer.tables(generator, subject.data, [trainer.fit_of(1)])
        words = f"no synthetic row equals one of {len(single)} unique records"
        return Observation(False, words, numbers, 1.0)
    basis = f"{100 * share:.3g} % of the records are among the synthetic rows"
    guesses = fewest_guesses(subject.claim, subject.settings.alpha)
    if guesses is None:
        return unprovable(subject.claim, basis, None)
    rng = trainer.stream("canaries").rng()
    m = min(_CANARIES, len(single) // 2)
    fits = min(subject.settings.fits, math.ceil(_MARGIN * guesses / (0.5 * m * share)))
    if fits * m < guesses:
        return unprovable(subject.claim, basis, math.ceil(guesses / m))
    drawn = rng.choice(single, m, replace=False)
    others = rng.choice(np.setdiff1d(np.arange(len(keys)), drawn), m)
    data = schema.canonical(pd.concat([subject.data, subject.data.iloc[others]], ignore_index=True))
    coins = insertions([int(i) for i in drawn], range(len(keys), len(keys) + m), subject.claim)
    toss = trainer.stream("coins").rng().random((fits, m)) < 0.5
    tables = trainer.tables(
        generator, data, [trainer.fit_of(1 + i, drops(coins, row)) for i, row in enumerate(toss)]
    )
    seen = np.array([np.isin(keys[drawn], _keys(table, schema)) for table in tables])
    order = np.argsort(~seen.ravel(), kind="stable")[:guesses]  # found ones first
    right = int(np.count_nonzero(seen.ravel()[order] == toss.ravel()[order]))
    p_value = one_run_p_value(
        right, guesses, fits * m, epsilon=subject.claim.epsilon, delta=subject.claim.delta
    )
    words = f"{basis}; of {guesses} guesses which ones a fit was given {right} were right"
    return Observation(
        p_value <= subject.settings.alpha,
        words,
        numbers | {"right": right, "guesses": guesses},
        p_value,
    )


def label_counts_copied(subject: Subject, trainer: Trainer) -> Observation | NotApplicable:
    """Checks whether label counts reveal a record that a coin puts in or leaves out."""
    columns = [column for column in subject.schema.columns if _may_be_label(column, subject)]
    if not columns:
        return NotApplicable("no column has few enough values to be a label")
    generator, data, n = subject.build(), subject.data, len(subject.data)
    tables = trainer.tables(generator, data, [trainer.fit_of(i) for i in range(_FITS)], rows=n)
    for column in columns:
        if all(_counts(table, column) == _counts(data, column) for table in tables):
            break
    else:
        names = ", ".join(column.name for column in columns[:3])
        words = f"counts of {names} differ from the table's"
        read = tuple(column.name for column in columns)
        return Observation(False, words, {"columns": len(columns)}, 1.0, read=read)
    # The record comes first and the last one has another label: whether labels are used in order,
    # repeated or truncated, the first n reveal whether the record is among them.
    counts = _counts(data, column)
    rarest = min(counts, key=lambda value: counts[value])
    labels = data[column.name]
    record = int(np.flatnonzero(labels == rarest)[0])
    last = int(np.flatnonzero(labels != rarest)[-1])
    kept = [i for i in range(n) if i != last] + [last]
    arranged = data.iloc[[record, last, *kept]].reset_index(drop=True)
    expected = _counts(data, column)
    return challenge(
        trainer,
        generator,
        arranged,
        insertions([0], [1], subject.claim),
        lambda table: [_counts(table, column) != expected],
        basis=f"counts of {column.name} equal the table's in {_FITS} of {_FITS} fits",
        rows=n,
    )


def _may_be_label(column: Column, subject: Subject) -> bool:
    if subject.schema.label is not None and column.name != subject.schema.label:
        return False
    values = subject.data[column.name].nunique()
    return column.kind is not Kind.CONTINUOUS and 2 <= values <= _CLASSES


def _counts(table: pd.DataFrame, column: Column) -> dict[object, int]:
    return {value: int(count) for value, count in table[column.name].value_counts().items()}


def _keys(table: pd.DataFrame, schema: Schema) -> npt.NDArray[np.object_]:
    """One key for each record [n]; keys of records that are equal up to rounding are equal."""
    values = values_of_table(table, schema)
    with np.errstate(divide="ignore", invalid="ignore"):
        digits = _DIGITS - np.ceil(np.log10(np.abs(values)))
        scale = 10.0 ** np.where(np.isfinite(digits), digits, 0.0)
        near = np.round(values * scale) / scale
    near = np.ascontiguousarray(near + 0.0)  # no negative zeros
    return np.array([row.tobytes() for row in near], dtype=object)
