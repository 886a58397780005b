"""Replays releases of a package: a binary search for the one at which the verdict changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from dpaudit.auditing.bisection import (
    Bisection,
    ChangedBetween,
    ReleasedSubject,
    ReleaseOutcome,
)
from dpaudit.auditing.two_worlds.spec import TwoWorldSpec
from dpaudit.errors import RegistryError, ReplayError, SettingsError
from dpaudit.external.environments import create_environment
from dpaudit.formatting import error_text
from dpaudit.replaying.findings import ReplayAccess
from dpaudit.replaying.record import ReplayRecord
from dpaudit.replaying.run import replay_of
from dpaudit.results.verdict import Verdict


class ReplayedRelease(NamedTuple):
    """The replay of one release.

    Attributes:
        version: The release.
        record: What the replay found; None if there could be none.
        reason: Why not; empty if there is one.
    """

    version: str
    record: ReplayRecord | None
    reason: str = ""

    @property
    def is_violation(self) -> bool:
        """Whether it is proved to violate the claim."""
        return self.record is not None and self.record.verdict is Verdict.VIOLATION

    @property
    def ending(self) -> str:
        """The verdict, or that there is none."""
        return "not replayed" if self.record is None else self.record.verdict.value

    @property
    def outcome(self) -> ReleaseOutcome:
        """The record of it, as a bisection has it."""
        if self.record is None:
            return ReleaseOutcome(self.version, None, None, None, None, self.reason)
        found = self.record
        return ReleaseOutcome(self.version, found.verdict, found.proved, found.seconds, None, None)


def replay_release(
    subject: ReleasedSubject,
    version: str,
    *,
    python: Path | None = None,
    on_step: Callable[[str], None] = lambda _: None,
) -> ReplayedRelease:
    """Replays one release in its own environment.

    Args:
        subject: What is replayed.
        version: The release.
        python: The interpreter for its environment; by default one that fits.
        on_step: Called with a description of each next step.

    Returns:
        The outcome. A release that cannot be installed or replayed has the reason.

    Raises:
        SettingsError: If the audit is not one in two worlds.
        InputError: If the audit itself is unusable, whatever the release.
    """
    try:
        environment = subject.environment.with_release(subject.package, version)
        create_environment(environment, python=python, on_step=on_step)
        spec = subject.spec(version)
        if not isinstance(spec, TwoWorldSpec):
            raise SettingsError("a replay is of two worlds: leave out `one_run` and `records`")
        on_step(f"replaying {subject.package} {version}")
        access = ReplayAccess.of(spec.settings.game.access.of_replay)
        return ReplayedRelease(version, replay_of(spec, access=access))
    except (RegistryError, ReplayError) as error:
        return ReplayedRelease(version, None, error_text(error))


def search_releases(
    versions: Sequence[str], replayed: Callable[[str], ReplayedRelease]
) -> Iterator[ReplayedRelease]:
    """Replays both ends, then halves the range until two neighbours differ.

    Only whether a release is proved to violate its claim counts as a difference. If it changes
    more than once, one of the changes is found.

    Args:
        versions: Releases, the oldest first.
        replayed: Replays one of them.

    Yields:
        Each replayed release, in the order of replay. A release in between that cannot be replayed
        is passed over for the nearest one to it.

    Raises:
        RegistryError: If an end of the range cannot be replayed.
    """
    ends = []
    for version in dict.fromkeys((versions[0], versions[-1])):
        end = replayed(version)
        yield end
        if end.record is None:
            raise RegistryError(
                f"{version}, an end of `versions`, cannot be replayed: {end.reason}; choose another"
            )
        ends.append(end)
    first, last = ends[0], ends[-1]
    if first.is_violation == last.is_violation:
        return
    low, high = 0, len(versions) - 1
    between = set(range(low + 1, high))
    while between:
        middle = min(between, key=lambda place: (abs(2 * place - low - high), place))
        found = replayed(versions[middle])
        yield found
        between.discard(middle)
        if found.record is None:
            continue
        if found.is_violation == first.is_violation:
            low = middle
        else:
            high = middle
        between &= set(range(low + 1, high))


def bisection_of(
    package: str, releases: Sequence[ReplayedRelease], *, order: Sequence[str], confidence: float
) -> Bisection:
    """The record of replayed releases.

    Args:
        package: The package.
        releases: Replayed releases, in any order.
        order: All versions, the oldest first.
        confidence: One-sided, of each bound by itself.

    Returns:
        The record, the oldest release first.
    """
    listed = sorted(releases, key=lambda one: order.index(one.version))
    there = [one for one in listed if one.record is not None]
    return Bisection(
        package=package,
        confidence=confidence,
        releases=tuple(one.outcome for one in listed),
        changes=tuple(
            ChangedBetween(before.version, after.version)
            for before, after in pairwise(there)
            if before.is_violation != after.is_violation
        ),
    )
