"""The settings of a probe run: what the generator is held to, and how much is trained."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dpaudit.errors import SettingsError
from dpaudit.formatting import did_you_mean
from dpaudit.model.claim import Neighbours
from dpaudit.probe.catalogue import PROBES, Probe
from dpaudit.seeds import check_seed


@dataclass(frozen=True, kw_only=True)
class ProbeSettings:
    """Every choice of a probe run.

    Attributes:
        epsilon: Of the claim; the generator's own by default.
        delta: Of the claim; the generator's own by default.
        neighbours: Of the claim; as the claim says by default.
        target: A record to watch, as row:N, counted from 0; none by default.
        only: Ids of the probes to run; all by default.
        rows: Synthetic records of each model; by default as many as are probed.
        records: Largest number of records to probe; a larger table is sampled, independently of its
            values.
        fits: Largest number of fits of one probe after its pilot.
        confidence: Probability, in (0.5, 1), with which at least no probe at all flags a generator
            that keeps its claim.
        worker_memory: As of an audit.
        seed: Root of every random stream.

    Raises:
        SettingsError: If a setting is out of range, or a probe is unknown.
    """

    epsilon: float | None = None
    delta: float | None = None
    neighbours: Neighbours | None = None
    target: str | None = None
    only: Sequence[str] = ()
    rows: int | None = None
    records: int = 1000
    fits: int = 64
    confidence: float = 0.99
    worker_memory: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        known = [one.id for one in PROBES]
        for name in self.only:
            if name not in known:
                hint = did_you_mean(name, known)
                raise SettingsError(f"no probe {name!r}{hint}; there is {', '.join(known)}")
        for name, value in (("rows", self.rows), ("records", self.records), ("fits", self.fits)):
            if value is not None and value < 1:
                raise SettingsError(f"`{name}` must be at least 1, got {value}")
        if self.target is not None and not re.fullmatch("row:[0-9]{1,18}", self.target):
            raise SettingsError(f"`target` is {self.target!r}; give a row number, such as row:0")
        if not 0.5 < self.confidence < 1.0:
            raise SettingsError(f"`confidence` must be in (0.5, 1), got {self.confidence}")
        check_seed(self.seed)

    @property
    def probes(self) -> tuple[Probe, ...]:
        """The probes to run, in the order of the report."""
        return tuple(one for one in PROBES if not self.only or one.id in self.only)

    @property
    def alpha(self) -> float:
        """Largest probability of a false alarm of one probe, whichever probes are run."""
        return (1.0 - self.confidence) / len(PROBES)
