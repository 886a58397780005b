"""Probes for randomness that is missing or not used."""

from __future__ import annotations

from typing import Final

import pandas as pd

from dpaudit.plugins.protocols import is_seedable
from dpaudit.probe.challenge import challenge, inserted
from dpaudit.probe.result import NotApplicable, Observation
from dpaudit.probe.subject import Subject
from dpaudit.probe.trainer import Trainer

_TRIED: Final = 3
"""Records tried, one after another."""


def seed_ignored(subject: Subject, trainer: Trainer) -> Observation | NotApplicable:
    """Checks whether fits with different seeds give one table, and whether it reveals a record.

    The seeds of training and sampling both differ, because noise may be drawn with either.
    """
    if not is_seedable(subject.build()):
        return NotApplicable("the generator says that it cannot be seeded")
    return _determined(subject, trainer, seeded=True)


def nothing_random(subject: Subject, trainer: Trainer) -> Observation | NotApplicable:
    """Checks the same without seeds, as in production."""
    return _determined(subject, trainer, seeded=False)


def _determined(subject: Subject, trainer: Trainer, *, seeded: bool) -> Observation | NotApplicable:
    """Guesses coins from a fixed output; one that does not depend on the data is private."""
    generator, data, n = subject.build(), subject.data, len(subject.data)
    what = "fits with different seeds" if seeded else "fits without a seed"
    one, other = trainer.tables(
        generator,
        data,
        [trainer.fit_of(i, seeded=seeded) for i in range(2)],
        schema=subject.schema,
        rows=subject.rows,
    )
    if not one.equals(other):
        return Observation(False, f"two {what} give two outputs", {}, 1.0)
    record = _revealed(subject, trainer, one, seeded=seeded)
    if record is None:
        return Observation(False, f"{what} give one output; no record tried moves it", {}, 1.0)
    with_base = pd.concat([data, data.iloc[[(record + 1) % n]]], ignore_index=True)
    return challenge(
        subject,
        trainer,
        generator,
        with_base,
        inserted([record], [n], subject.claim),
        lambda table: [table.equals(one)],
        schema=subject.schema,
        basis=f"{what} give one output, and another without record {record}",
        seeded=seeded,
    )


def _revealed(subject: Subject, trainer: Trainer, one: pd.DataFrame, *, seeded: bool) -> int | None:
    n = len(subject.data)
    for number in range(_TRIED):
        record = int(trainer.stream("record", number).rng().integers(n))
        fit = trainer.fit_of(2 + number, (record,), seeded=seeded)
        [table] = trainer.tables(
            subject.build(),
            subject.data,
            [fit],
            schema=subject.schema,
            rows=subject.rows,
        )
        if not table.equals(one):
            return record
    return None
