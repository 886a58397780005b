"""Every probe by its stable name, and the settings with which probes are run."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
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


PROBES: Final = tuple(
    Probe(id_, Severity(entry.pop("severity", Severity.VIOLATION)), **entry)
    for id_, entry in tomllib.loads(
        Path(__file__).with_name("catalogue.toml").read_text(encoding="utf-8")
    ).items()
)
"""Every probe, in the order of the report."""


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
