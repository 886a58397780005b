"""Every probe by its stable name: the severity of its alarm, and what a correct generator does."""

from __future__ import annotations

from typing import Final, NamedTuple

from dpaudit.model.severity import Severity


class Probe(NamedTuple):
    """What is known of a probe before it is run.

    Attributes:
        id: Its stable name.
        severity: Severity of its alarm.
        correct: What a correct generator does.
    """

    id: str
    severity: Severity
    correct: str


PROBES: Final = (
    Probe(
        "range-follows-record",
        Severity.VIOLATION,
        "numbers are scaled with public bounds, so that one record cannot move the output's range",
    ),
    Probe(
        "category-follows-record",
        Severity.VIOLATION,
        "categories come from the public schema, whether a record has them or not",
    ),
    Probe(
        "constancy-follows-record",
        Severity.VIOLATION,
        "a column is scaled and encoded by public rules, even if one record alone varies it",
    ),
    Probe(
        "missing-follows-record",
        Severity.VIOLATION,
        "missing values are handled by the public schema, whether a record has one or not",
    ),
    Probe(
        "target-followed",
        Severity.VIOLATION,
        "the record named by `target` shows in the output no more than the claim allows",
    ),
    Probe(
        "label-counts-copied",
        Severity.VIOLATION,
        "labels are generated, or drawn from counts that were released with noise",
    ),
    Probe(
        "rows-copied-verbatim",
        Severity.VIOLATION,
        "synthetic rows equal real ones no more often than rows that were left out",
    ),
    Probe(
        "seed-ignored",
        Severity.VIOLATION,
        "each training draws fresh noise",
    ),
    Probe(
        "nothing-random",
        Severity.VIOLATION,
        "without a seed, noise comes from the operating system's entropy",
    ),
    Probe(
        "settings-follow-rows",
        Severity.BUG,
        "numbers of teachers, batches and layers are public constants, never functions of n",
    ),
    Probe(
        "row-order-matters",
        Severity.NOTE,
        "what happens to a record depends on the record, not on its position",
    ),
    Probe(
        "row-count-leaks",
        Severity.VIOLATION,
        "sample(n) gives n rows, however many the table has",
    ),
    Probe(
        "epsilon-ignored",
        Severity.VIOLATION,
        "as epsilon approaches 0 the output stops depending on the data",
    ),
    Probe("delta-ignored", Severity.BUG, "the claim has the delta that was asked for"),
    Probe(
        "scale-wrong",
        Severity.BUG,
        "the output is on the scale of the input",
    ),
    Probe(
        "integers-truncated",
        Severity.BUG,
        "whole numbers are rounded to the nearest",
    ),
)
