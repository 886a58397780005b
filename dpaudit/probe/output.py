"""Probes of the output's form: its scale, its whole numbers, its number of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.bounds import one_run_p_value
from dpaudit.model.claim import Neighbours
from dpaudit.model.column import Column, Kind, as_numbers
from dpaudit.model.schema import Schema
from dpaudit.model.severity import Severity
from dpaudit.probe.challenge import dropped, inserted, needed, one_coin, unprovable
from dpaudit.probe.result import NotApplicable, Observation
from dpaudit.probe.subject import SCHEMA, Subject
from dpaudit.probe.trainer import Trainer

_AWAY: Final = 100.0
"""Ranges by which columns are moved away from 0."""
_FITS: Final = 2
_ROUNDING: Final = 1e-6
"""What errors of floating-point numbers may add to a whole number."""
_MORE: Final = 13
"""Rows asked for beyond those of the table."""


def scale_wrong(subject: Subject, trainer: Trainer) -> Observation | NotApplicable:
    """Checks that the output moves with numbers and public bounds that are moved far from 0."""
    moved = [c for c in subject.schema.columns if c.kind.numeric and c.name != subject.schema.label]
    if not moved:
        return NotApplicable("the table has no numeric column besides its label")
    if SCHEMA not in subject.maker.takes:
        return NotApplicable("the generator takes no schema, so its bounds cannot be moved")
    schema, data = _away(subject.schema, subject.data, moved)
    tables = trainer.tables(
        subject.build(schema, data),
        data,
        [trainer.fit_of(i) for i in range(_FITS)],
        schema=schema,
        rows=subject.rows,
    )
    outside = {
        column.name: min(_outside(table, column) for table in tables)
        for column in schema.columns
        if column.name in {c.name for c in moved}
    }
    wrong = [name for name, share in outside.items() if share > 0.5]
    certainty = "a generator that keeps to public bounds produces no value outside them"
    if not wrong:
        words = "the output moves with the bounds when all numbers are moved far from 0"
        read = tuple(column.name for column in moved)
        return Observation(False, words, {"columns": len(moved)}, certainty=certainty, read=read)
    [column] = [column for column in schema.columns if column.name == wrong[0]]
    values = as_numbers(tables[0][column.name])
    lower, upper = column.bounds
    return Observation(
        True,
        f"{len(wrong)} of {len(moved)} columns lie mostly outside their bounds: {column.name} in "
        f"[{np.nanmin(values):.4g}, {np.nanmax(values):.4g}], bounds [{lower:.6g}, {upper:.6g}]",
        {"columns": len(wrong), "of": len(moved)},
        certainty=certainty,
    )


def integers_truncated(subject: Subject, trainer: Trainer) -> Observation | NotApplicable:
    """Compares whole numbers with the same column declared continuous, from the same seed.

    Bins of whole numbers end one above the largest, those of a continuous column at it, so that
    one drawn from a bin may look cut off in all bins but the last. An alarm is therefore checked
    on a table whose whole numbers all are the largest.
    """
    whole = [
        column
        for column in subject.schema.columns
        if column.kind is Kind.INTEGER and column.name != subject.schema.label
    ]
    if not whole:
        return NotApplicable("the table has no column of whole numbers besides its label")
    if SCHEMA not in subject.maker.takes:
        return NotApplicable("the generator takes no schema, so kinds cannot be changed")
    steps = _steps(subject, trainer, whole, subject.data)
    if not len(steps) or np.abs(steps).max() >= 1.0 or not np.any(steps):
        return NotApplicable(
            "declared continuous, whole numbers are generated differently or stay whole: nothing "
            "to compare"
        )
    mean, low, high = float(steps.mean()), float(steps.min()), float(steps.max())
    down = high <= _ROUNDING and low < -0.6
    if down:
        largest = subject.data.assign(**{column.name: column.bounds.upper for column in whole})
        down = not np.any(_steps(subject, trainer, whole, largest) > _ROUNDING)
    return Observation(
        down,
        f"against the same column declared continuous, whole numbers differ by {low:.2f} to "
        f"{high:.2f}, {mean:.3f} on average",
        {"mean": mean, "smallest": low, "largest": high, "values": len(steps)},
        certainty="rounding to the nearest moves no number by more than a half, and whole numbers "
        "drawn from bins of their own reach the largest",
    )


def _steps(
    subject: Subject, trainer: Trainer, whole: Sequence[Column], data: pd.DataFrame
) -> npt.NDArray[np.float64]:
    """By how much whole numbers differ from the same columns declared continuous, same seed."""
    twin = replace(
        subject.schema,
        columns=tuple(
            replace(column, kind=Kind.CONTINUOUS) if column in whole else column
            for column in subject.schema.columns
        ),
    )
    rounded, continuous = (
        trainer.tables(
            subject.build(schema),
            schema.canonical(data),
            [trainer.fit_of(0)],
            schema=schema,
            rows=subject.rows,
        )[0]
        for schema in (subject.schema, twin)
    )
    steps: npt.NDArray[np.float64] = np.concatenate(
        [as_numbers(rounded[c.name]) - as_numbers(continuous[c.name]) for c in whole]
    )
    return steps[~np.isnan(steps)]


def row_count_leaks(subject: Subject, trainer: Trainer) -> Observation | NotApplicable:
    """Asks for another number of rows than the table has."""
    generator, data, n = subject.build(), subject.data, len(subject.data)
    asked = n + _MORE
    coins = inserted([n - 1], [n], subject.claim)
    with_base = pd.concat([data, data.iloc[[0]]], ignore_index=True)

    def counts(heads: list[bool], first: int) -> list[int]:
        fits = [
            trainer.fit_of(first + i, dropped(coins, np.array([fell])))
            for i, fell in enumerate(heads)
        ]
        models = trainer.models(generator, with_base, fits)
        return [
            len(model.sample(asked, seed=fit.sample_seed))
            for model, fit in zip(models, fits, strict=True)
        ]

    found = counts([True, False], 0)
    if found == [asked, asked]:
        return Observation(False, "as many rows as asked for", {"asked": asked}, 1.0)
    basis = f"asked for {asked} rows it gives {found[0]}, or {found[1]} for another table"
    numbers = {"asked": asked, "given": found[0], "given_without_record": found[1]}
    sizes = [n, n - 1]
    if found != sizes or subject.claim.neighbours is Neighbours.REPLACE_ONE:
        certainty = "a number of rows is the one asked for or it is not"
        return Observation(True, basis, numbers, certainty=certainty, severity=Severity.BUG)
    claim = one_coin(subject.claim)
    guesses = needed(claim, subject.settings.alpha)
    if guesses is None or guesses > subject.settings.fits:
        return unprovable(claim, basis, guesses)
    toss = [bool(x) for x in trainer.stream("coins").rng().random(guesses) < 0.5]
    given = counts(toss, 2)
    right = sum((count == n) == fell for count, fell in zip(given, toss, strict=True))
    p_value = one_run_p_value(right, guesses, guesses, epsilon=claim.epsilon, delta=0.0)
    words = f"{basis}: as many as it was trained on"
    return Observation(
        p_value <= subject.settings.alpha, words, numbers | {"right": right}, p_value
    )


def _away(schema: Schema, data: pd.DataFrame, moved: list[Column]) -> tuple[Schema, pd.DataFrame]:
    columns, table = [], data.copy()
    for column in schema.columns:
        if column in moved:
            lower, upper = column.bounds
            shift = np.ceil(_AWAY * (upper - lower) - lower)
            columns.append(replace(column, lower=lower + shift, upper=upper + shift))
            table[column.name] = as_numbers(data[column.name]) + shift
        else:
            columns.append(column)
    other = replace(schema, columns=tuple(columns))
    canonical = other.canonical(table)
    for column in columns:  # rounding must not push a value over its bound
        if column.kind.numeric:
            canonical[column.name] = canonical[column.name].clip(*column.bounds)
    return other, other.canonical(canonical)


def _outside(table: pd.DataFrame, column: Column) -> float:
    values = as_numbers(table[column.name])
    lower, upper = column.bounds
    slack = 1e-6 * abs(upper)
    return float(np.mean((values < lower - slack) | (values > upper + slack)))
