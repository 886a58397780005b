"""What was guessed of many records that share their shadow models: a part of `result.json`."""

from __future__ import annotations

from dataclasses import dataclass

from dpaudit.results.fields import Whole


@dataclass(frozen=True, kw_only=True)
class RecordOutcome:
    """What was guessed of one of many records.

    Attributes:
        row: Its row in the table, from 0.
        guesses: Scored models of which it was guessed whether they had it.
        correct: Right guesses.
    """

    row: Whole
    guesses: Whole
    correct: Whole


@dataclass(frozen=True, kw_only=True)
class RecordsOutcome:
    """How an audit of many records per shadow model ended.

    Attributes:
        scored: Scored models that finished; each had each record by a fair coin.
        each: The records and what the deciding attack guessed of them.
    """

    scored: Whole
    each: tuple[RecordOutcome, ...]
