"""What one fit in each world says of a pair of tables, and the smallest pair of each finding."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

import pandas as pd

from dpaudit.auditing.two_worlds.spec import TwoWorldSpec, with_pair
from dpaudit.errors import ReplayError, WorldEndedError
from dpaudit.model.neighbouring_tables import NeighbouringTables
from dpaudit.replaying.findings import Options, ReplayAccess, ReplayFindings
from dpaudit.replaying.fits import Fits
from dpaudit.replaying.processes import Processes
from dpaudit.replaying.run import charge, follow_lone_draws, learn_gap_draws
from dpaudit.replaying.transcript import Parting, PartKind
from dpaudit.replaying.verdict import decide, is_over_delta
from dpaudit.results.verdict import Verdict
from dpaudit.searching.pairs import size

_MOST_GAPS: Final = 600
"""Fits for finding draws from ranges whose ends depend on data, for each pair."""
_CONFIRMING: Final = (2, 3, 4)
"""Numbers of the fits that confirm what the first one showed; each has seeds of its own."""

_NO_FAILURE: Final = ("goes on", "ends")
"""What is said of a world that does not fail where the other one does."""


class FindingKind(StrEnum):
    """What a pair shows, the worst first."""

    OVERSPENT = "overspent"
    FAILURE = "failure"
    AROUND = "around"
    STORED = "stored"
    OUTSIDE = "outside"
    UNKNOWN = "unknown"


class PairFinding(NamedTuple):
    """What a pair shows; two findings are the same if their kinds and places are.

    Attributes:
        kind: Its kind; None if it shows nothing.
        place: A line, a place in the release, a column, or a reason.
        ratio: What the steps spend, divided by the claim; infinite if they spend without limit.
        pair: The tables.
    """

    kind: FindingKind | None
    place: str
    ratio: float
    pair: NeighbouringTables

    @property
    def key(self) -> tuple[FindingKind | None, str]:
        """What distinguishes it from other findings."""
        return self.kind, self.place

    @property
    def rank(self) -> tuple[int, float]:
        """The worst finding has the lowest."""
        assert self.kind is not None
        return list(FindingKind).index(self.kind), -self.ratio


@dataclass
class Examiner:
    """Examines pairs.

    Attributes:
        open_processes: Starts both worlds.
        spec: The generator and its claim; its tables are replaced.
        options: As of a replay.
        costliest: The pair that spends most among those that show nothing, at first any.
        without: Places of the release that differ between two fits of one table.
        tried: How many pairs were examined.
        seconds: The time that took.
        failed: In how many of them both fits failed before they spent more than the claim.
        failure: Why, in the last one.
        ended: With how many of them a process ended.
        end: How, in the last one.
        smallest: The smallest pair of each finding.
    """

    open_processes: Callable[[], Processes]
    spec: TwoWorldSpec
    options: Options
    costliest: PairFinding
    without: frozenset[str] = frozenset()
    tried: int = 0
    seconds: float = 0.0
    failed: int = 0
    failure: str = ""
    ended: int = 0
    end: str = ""
    smallest: dict[tuple[FindingKind | None, str], PairFinding] = field(default_factory=dict)
    _processes: Processes | None = None
    _first: Fits | None = None

    def fits_of(
        self,
        pair: NeighbouringTables,
        files: tuple[str, ...] = ("",),
        other_file: str | None = "",
        *,
        say: Callable[[str], None] = lambda line: None,
    ) -> Fits:
        """The fits of a pair; what one pair shows of the code's lines is known to the next.

        Args:
            pair: The pair.
            files: As in `with_pair`.
            other_file: As in `with_pair`.
            say: Called with a line of progress.
        """
        self._processes = self._processes or self.open_processes()
        fits = Fits(
            self._processes,
            with_pair(self.spec, pair, files=files, other_file=other_file),
            watches_state=self.options.access is ReplayAccess.MODEL,
            say=say,
        )
        self._first = self._first or fits
        fits.learned.lines = self._first.learned.lines
        return fits

    def examine(self, pair: NeighbouringTables) -> PairFinding:
        """What a pair shows; nothing if it ends a process, which the next pair starts again."""
        started = time.monotonic()
        try:
            finding = self._examine(pair, 1)
        except WorldEndedError as error:
            self.lose_processes(error)
            finding = PairFinding(None, "", -1.0, pair)
        self.tried += 1
        self.seconds += time.monotonic() - started
        if finding.kind is None:
            if finding.ratio > self.costliest.ratio:
                self.costliest = finding
            return finding
        known = self.smallest.get(finding.key)
        if known is None or size(pair) < size(known.pair):
            self.smallest[finding.key] = finding
        return finding

    @property
    def ranked(self) -> list[PairFinding]:
        """All findings, the worst first."""
        return sorted(self.smallest.values(), key=lambda finding: finding.rank)

    @property
    def pace(self) -> float:
        """Seconds of a pair."""
        return self.seconds / self.tried

    def lose_processes(self, error: WorldEndedError) -> None:
        """Counts a pair that ended a process; the next one starts both again."""
        self.ended, self.end, self._processes = self.ended + 1, str(error), None

    def is_confirmed(self, finding: PairFinding) -> bool:
        """Whether fits with other seeds show the same."""
        try:
            return all(
                self._examine(finding.pair, number).key == finding.key for number in _CONFIRMING
            )
        except WorldEndedError as error:
            self.lose_processes(error)
            return False

    def _examine(self, pair: NeighbouringTables, number: int) -> PairFinding:
        fits = self.fits_of(pair)
        try:
            transcript = fits.pair(number, keeps_tables=True)
        except WorldEndedError:
            raise
        except ReplayError as error:  # too much of the code depends on the record to be followed
            return PairFinding(FindingKind.UNKNOWN, str(error), 0.0, pair)
        findings = ReplayFindings(public_coins=self.options.public_coins, without=self.without)
        findings.add(fits, transcript)
        if learn_gap_draws(fits, findings, most=_MOST_GAPS):
            transcript = fits.pair(number, keeps_tables=True)
            findings.add(fits, transcript)
        fails_in_both = None not in transcript.failures and transcript.parting is None
        follow_lone_draws(fits, findings)
        charge(fits, self.options, findings)
        verdict, of_proof, reasons = decide(self.spec.claim, self.options, findings)
        spent = findings.spent
        claimed = self.spec.claim.value
        is_shown = is_over_delta(self.spec.claim, spent)  # then no epsilon holds at that delta
        is_unlimited = spent.is_unlimited or is_shown
        ratio = math.inf if is_unlimited else (spent.value or 0.0) / claimed

        def finding(kind: FindingKind | None, place: str) -> PairFinding:
            return PairFinding(kind, place, ratio, pair)

        if verdict is Verdict.OVERSPENT or of_proof:
            lines = sorted(spent.lines, key=lambda line: -(line.delta or 0.0) if is_shown else 0.0)
            return finding(FindingKind.OVERSPENT, lines[0].place if lines else "")
        if fails_in_both:
            self.failed += 1
            self.failure = transcript.failures[0] or ""
            return PairFinding(None, "", -1.0, pair)
        if findings.parting is not None:
            return finding(*_kind_and_place(findings.parting))
        if findings.stored:
            return finding(FindingKind.STORED, re.sub(r"\[.*", "", next(iter(findings.stored))))
        if column := _outside_in_one(transcript.tables, pair):
            return finding(FindingKind.OUTSIDE, column)
        is_unknown = spent.value is None or transcript.unfollowed
        if is_unknown and verdict is Verdict.INCONCLUSIVE and findings.moves:
            return finding(FindingKind.UNKNOWN, reasons[0])
        return finding(None, "")


def _kind_and_place(parting: Parting) -> tuple[FindingKind, str]:
    """A parting as a finding; numbers in its values do not distinguish findings."""
    if parting.kind is PartKind.FAILURE:
        return FindingKind.FAILURE, next(
            value for value in parting.values if value not in _NO_FAILURE
        )
    where = next((str(site) for site in parting.sites if site is not None), "")
    return FindingKind.AROUND, where or re.sub(r"\d+", "", parting.values[0])


def _outside_in_one(
    tables: tuple[pd.DataFrame | None, pd.DataFrame | None], pair: NeighbouringTables
) -> str:
    """The first column whose synthetic values leave the schema in one world alone, if any."""
    first, second = tables
    if first is None or second is None:
        return ""
    leaving = [
        column.name
        for column in pair.schema.columns
        if column.name in first
        and column.name in second
        and bool(column.problems(first[column.name])) != bool(column.problems(second[column.name]))
    ]
    return next(iter(leaving), "")
