"""Probes for randomness that is missing or not used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import pandas as pd

from dpaudit.plugins.protocols import is_seedable
from dpaudit.probe.challenge import challenge, inserted
from dpaudit.probe.comparison import summary
from dpaudit.probe.result import NotApplicable, Observation
from dpaudit.probe.single import single_coin
from dpaudit.probe.subject import Subject
from dpaudit.probe.trainer import Fit, Trainer

_TRIED: Final = 3
"""Records tried, one after another."""
_PILOT: Final = 10
"""Number of the first pilot fit; lower ones have been used by then."""


class _Half(NamedTuple):
    """One of the two seeds of a fit, varied alone.

    Attributes:
        fit: The fit that differs from the first in this seed only.
        seed: Whose seed it is, in words.
        other: Whose seed stays, in words.
    """

    fit: Fit
    seed: str
    other: str


def seed_ignored(subject: Subject, trainer: Trainer) -> Observation | NotApplicable:
    """Checks whether another seed changes the table, and whether what stays reveals a record.

    First the seeds of training and sampling both differ, because noise may be drawn with either;
    then each alone: noise that is always the same hides behind the randomness of the other half.
    """
    if not is_seedable(subject.build()):
        return NotApplicable("the generator says that it cannot be seeded")
    first, second = trainer.fit_of(0), trainer.fit_of(1)
    one, other = _tables(subject, trainer, [first, second])
    if one.equals(other):
        return _fixed(subject, trainer, one, "fits with different seeds", seeded=True)
    halves = (
        _Half(first._replace(seed=second.seed), "the fit", "the sample"),
        _Half(first._replace(sample_seed=second.sample_seed), "the sample", "the fit"),
    )
    tables = _tables(subject, trainer, [half.fit for half in halves])
    for half, table in zip(halves, tables, strict=True):
        if one.equals(table):
            return _hidden(subject, trainer, one, first, half)
    words = "the seed of the fit and that of the sample each change the output"
    return Observation(False, words, {}, 1.0)


def nothing_random(subject: Subject, trainer: Trainer) -> Observation | NotApplicable:
    """Checks without seeds, as in production, whether one output reveals a record."""
    what = "fits called with seed=None"
    one, other = _tables(subject, trainer, [trainer.fit_of(i, seeded=False) for i in range(2)])
    if one.equals(other):
        return _fixed(subject, trainer, one, what, seeded=False)
    return Observation(False, f"two {what} give two outputs", {}, 1.0)


def _fixed(
    subject: Subject, trainer: Trainer, one: pd.DataFrame, what: str, *, seeded: bool
) -> Observation | NotApplicable:
    """Guesses coins from a fixed output; one that does not depend on the data is private."""
    record = _revealed(
        subject, trainer, one, lambda i, record: trainer.fit_of(2 + i, [record], seeded=seeded)
    )
    if record is None:
        return Observation(False, f"{what} give one output; no record tried moves it", {}, 1.0)
    return challenge(
        subject,
        trainer,
        subject.build(),
        _with_base(subject, record),
        inserted([record], [len(subject.data)], subject.claim),
        lambda table: [table.equals(one)],
        schema=subject.schema,
        basis=f"{what} give one output, and another without record {record}",
        seeded=seeded,
    )


def _hidden(
    subject: Subject, trainer: Trainer, one: pd.DataFrame, first: Fit, half: _Half
) -> Observation | NotApplicable:
    """Guesses coins where one seed changes nothing, so that all noise is drawn with the other.

    That is no leak where the noise is enough: the fits of the test have fresh seeds of both kinds,
    which the guesses do not know.
    """
    unused = f"the seed of {half.seed} alone changes nothing"
    record = _revealed(subject, trainer, one, lambda _, record: first._replace(dropped=(record,)))
    if record is None:
        return Observation(False, f"{unused}; no record tried moves the output", {}, 1.0)
    found = single_coin(
        subject,
        trainer,
        subject.build(),
        _with_base(subject, record),
        inserted([record], [len(subject.data)], subject.claim)[0],
        lambda table: summary(table, subject),
        basis=f"{unused}, and record {record} moves the output",
        first=_PILOT,
    )
    if found is None:
        return NotApplicable(
            f"{unused}, so that all noise is drawn with the seed of {half.other}; record {record} "
            "moves the output, but in the pilot no more than that noise does: whether it is enough "
            "is for an audit"
        )
    return found


def _revealed(
    subject: Subject, trainer: Trainer, one: pd.DataFrame, fit: Callable[[int, int], Fit]
) -> int | None:
    """A record without which the table is another; the target is tried first, if there is one."""
    n = len(subject.data)
    drawn = [int(trainer.stream("record", i).rng().integers(n)) for i in range(_TRIED)]
    named = [] if subject.target is None else [subject.target]
    for number, record in enumerate([*named, *drawn]):
        [table] = _tables(subject, trainer, [fit(number, record)])
        if not table.equals(one):
            return record
    return None


def _tables(subject: Subject, trainer: Trainer, fits: Sequence[Fit]) -> list[pd.DataFrame]:
    return trainer.tables(
        subject.build(), subject.data, fits, schema=subject.schema, rows=subject.rows
    )


def _with_base(subject: Subject, record: int) -> pd.DataFrame:
    """The table, and last the record that the given one may be replaced by."""
    base = subject.data.iloc[[(record + 1) % len(subject.data)]]
    return pd.concat([subject.data, base], ignore_index=True)
