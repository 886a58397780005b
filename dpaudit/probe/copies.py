"""Probes for what is copied from the table: whole records, and counts of labels."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.bounds import one_run_p_value
from dpaudit.model.column import Column, Kind
from dpaudit.model.encoding import values_of_table
from dpaudit.model.schema import Schema
from dpaudit.probe.challenge import challenge, dropped, inserted, needed, unprovable
from dpaudit.probe.result import NotApplicable, Observation
from dpaudit.probe.subject import Subject
from dpaudit.probe.trainer import Trainer, listed

_CLASSES: Final = 10
"""Most values of a column that may be a label."""
_PILOTS: Final = 2
_CANARIES: Final = 200
"""Most records that coins decide in one fit."""
_FEWEST: Final = 20
_MARGIN: Final = 1.5
"""Expected guesses for each one that is needed."""
_DIGITS: Final = 5
"""Significant digits to which equal numbers agree: networks compute in single precision."""


def rows_copied_verbatim(subject: Subject, trainer: Trainer) -> Observation | NotApplicable:
    """Checks whether synthetic rows equal records that coins put in, and not those left out.

    Chance reproduces rows of a small table too, but those left out as often. The number of guesses
    is fixed: "in" for records found among the synthetic rows; where these are too few, "out" for
    others.
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
        # With another seed: a constant equals no record either.
        trainer.tables(generator, subject.data, [trainer.fit_of(1)])
        words = f"no synthetic row equals one of {len(single)} unique records"
        return Observation(False, words, numbers, 1.0)
    basis = f"{100 * share:.3g} % of the records are among the synthetic rows"
    guesses = needed(subject.claim, subject.settings.alpha)
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
    coins = inserted([int(i) for i in drawn], range(len(keys), len(keys) + m), subject.claim)
    toss = trainer.stream("coins").rng().random((fits, m)) < 0.5
    tables = trainer.tables(
        generator, data, [trainer.fit_of(1 + i, dropped(coins, row)) for i, row in enumerate(toss)]
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
    tables = trainer.tables(generator, data, [trainer.fit_of(i) for i in range(_PILOTS)], rows=n)
    for column in columns:
        if all(_counts(table, column) == _counts(data, column) for table in tables):
            break
    else:
        names = ", ".join(column.name for column in columns[:3])
        words = f"counts of {names} differ from the table's"
        read = tuple(column.name for column in columns)
        return Observation(False, words, {"columns": len(columns)}, 1.0, read=read)
    # The record comes first and the last one has another label: whether labels are used in order,
    # repeated or cut off, the first n reveal whether the record is among them.
    counts = _counts(data, column)
    rarest = min(counts, key=lambda value: counts[value])
    labels = data[column.name]
    record = int(np.flatnonzero(labels == rarest)[0])
    last = int(np.flatnonzero(labels != rarest)[-1])
    kept = [i for i in range(n) if i != last] + [last]
    arranged = data.iloc[[record, last, *kept]].reset_index(drop=True)
    expected = _counts(data, column)
    return challenge(
        subject,
        trainer,
        generator,
        arranged,
        inserted([0], [1], subject.claim),
        lambda table: [_counts(table, column) != expected],
        basis=f"counts of {column.name} equal the table's in {_PILOTS} of {_PILOTS} fits",
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
