"""Every probe by its stable name, and the settings with which probes are run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Final, NamedTuple

from dpaudit.errors import SettingsError
from dpaudit.formatting import did_you_mean
from dpaudit.model.choices import Severity
from dpaudit.model.claim import Neighbours
from dpaudit.model.setting import (
    AT_LEAST_1,
    CONFIDENCE,
    POSITIVE,
    SEED,
    Option,
    Panel,
    check_settings,
)


class Probe(NamedTuple):
    """The description of a probe.

    Attributes:
        id: Its stable name.
        severity: Severity of its alarm.
        correct: What a correct generator does.
        shows: What an alarm of severity violation proves, in words that suit every table.
        breaks: The claim that this contradicts.
    """

    id: str
    severity: Severity
    correct: str
    shows: str = ""
    breaks: str = "the claim under audit"


PROBES: Final = (
    Probe(
        "range-follows-record",
        Severity.VIOLATION,
        "numbers are scaled with public bounds, so that one record cannot move the output's range",
        "one record moves the range of the output",
    ),
    Probe(
        "category-follows-record",
        Severity.VIOLATION,
        "categories come from the public schema, whether a record has them or not",
        "a category appears in the output where one record has it",
    ),
    Probe(
        "constancy-follows-record",
        Severity.VIOLATION,
        "a column is scaled and encoded by public rules, even if one record alone varies it",
        "the output shows whether one record differs in a column that is constant otherwise",
    ),
    Probe(
        "missing-follows-record",
        Severity.VIOLATION,
        "missing values are handled by the public schema, whether a record has one or not",
        "the output shows whether one record has a missing value",
    ),
    Probe(
        "target-followed",
        Severity.VIOLATION,
        "the record named by `target` shows in the output no more than the claim allows",
        "the output shows whether the target is in the table",
    ),
    Probe(
        "label-counts-copied",
        Severity.VIOLATION,
        "labels are generated, or drawn from counts that were released with noise",
        "the output has the table's counts of labels, which one record changes",
    ),
    Probe(
        "rows-copied-verbatim",
        Severity.VIOLATION,
        "synthetic rows equal real ones no more often than rows that were left out",
        "rows of the output are copies of records",
    ),
    Probe(
        "seed-ignored",
        Severity.VIOLATION,
        "each training draws fresh noise",
        "the noise is not drawn anew in each training, so that one record shows",
    ),
    Probe(
        "nothing-random",
        Severity.VIOLATION,
        "without a seed, noise comes from the operating system's entropy",
        "without a seed nothing is random, so that one record shows",
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
        "the output has as many rows as the table, so that one record shows",
    ),
    Probe(
        "epsilon-ignored",
        Severity.VIOLATION,
        "as epsilon approaches 0 the output stops depending on the data",
        "with an epsilon near 0 the output still follows the table",
        breaks="the claim that it makes with that epsilon",
    ),
    Probe("delta-ignored", Severity.BUG, "the claim has the delta that was asked for"),
    Probe("scale-wrong", Severity.BUG, "the output is on the scale of the input"),
    Probe("integers-truncated", Severity.BUG, "whole numbers are rounded to the nearest"),
)


@dataclass(frozen=True, kw_only=True)
class ProbeSettings:
    """Every choice of a probe run.

    Attributes:
        epsilon: Claimed epsilon. Default: the generator's claim.
        delta: Claimed delta. Default: the generator's claim, else 0.
        neighbours: Neighbouring relation: add-remove, replace-one. Default: the generator's claim.
        target: Record to watch, as row:N; rows count from 0.
        only: Ids of the probes to run. Default: all.
        rows: Synthetic rows per model. Default: as many as are probed.
        records: Largest number of records to probe; a larger table is sampled, independently of its
            values.
        fits: Largest number of fits of one probe after its pilot.
        confidence: Confidence that no probe flags a generator that satisfies its claim.
        worker_memory: Memory limit in gigabytes of a generator that runs in its own process.
        seed: Seed of all randomness; another one gives independent results.

    Raises:
        SettingsError: If a setting is out of range, or a probe is unknown.
    """

    epsilon: Annotated[float | None, Option("E", panel=Panel.CLAIM)] = None
    delta: Annotated[float | None, Option("D", panel=Panel.CLAIM)] = None
    neighbours: Annotated[Neighbours | None, Option("RELATION", panel=Panel.CLAIM)] = None
    target: Annotated[str | None, Option("row:N")] = None
    only: Annotated[Sequence[str], Option("ID")] = ()
    rows: Annotated[int | None, AT_LEAST_1, Option("N")] = None
    records: Annotated[int, AT_LEAST_1, Option("N")] = 1000
    fits: Annotated[int, AT_LEAST_1, Option("N")] = 64
    confidence: Annotated[float, CONFIDENCE, Option("C")] = 0.99
    worker_memory: Annotated[float | None, POSITIVE, Option("GB", panel=Panel.MACHINE)] = None
    seed: Annotated[int, SEED, Option("S")] = 0

    def __post_init__(self) -> None:
        known = [probe.id for probe in PROBES]
        for name in self.only:
            if name not in known:
                hint = did_you_mean(name, known)
                raise SettingsError(f"no probe {name!r}{hint}; there is {', '.join(known)}")
        check_settings(self)
        if self.target is not None and not re.fullmatch("row:[0-9]{1,18}", self.target):
            raise SettingsError(f"`target` is {self.target!r}; give a row number, such as row:0")

    @property
    def probes(self) -> tuple[Probe, ...]:
        """The probes to run, in the order of the report."""
        return tuple(probe for probe in PROBES if not self.only or probe.id in self.only)

    def command(self, *subject: str) -> str:
        """The command that runs these probes again.

        Args:
            subject: The words that name the generator and the table.
        """
        return shlex.join(["dpaudit", "probe", *subject, *self.words])

    @property
    def words(self) -> list[str]:
        """What differs from the defaults, as words of the command."""
        changed = [
            (f"--{field.name.replace('_', '-')}", value)
            for field in fields(self)
            if field.name != "only" and (value := getattr(self, field.name)) != field.default
        ]
        chosen = [("--only", name) for name in self.only]
        return [str(word) for pair in (*changed, *chosen) for word in pair]

    @property
    def alpha(self) -> float:
        """Largest probability of a false alarm of one probe, whichever probes are run."""
        return (1.0 - self.confidence) / len(PROBES)
