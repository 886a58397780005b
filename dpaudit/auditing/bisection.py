"""Runs one audit over many releases of a package and finds where its verdict changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import ClassVar, NamedTuple

from dpaudit.auditing.entry import Machine, run_audit
from dpaudit.auditing.games import build_spec
from dpaudit.auditing.settings import AuditSettings
from dpaudit.auditing.spec import AuditSpec
from dpaudit.errors import RegistryError
from dpaudit.external.environments import Environment, create_environment
from dpaudit.external.libraries import Library
from dpaudit.formatting import error_text
from dpaudit.game.flight import OnProgress, ignore_progress
from dpaudit.game.pool import workers_ended
from dpaudit.model.tables import Table
from dpaudit.results.document import Document, NonNegative, Probability
from dpaudit.results.verdict import Verdict


@dataclass(frozen=True, kw_only=True)
class ReleasedSubject:
    """Something that can be audited at any release of a package.

    Attributes:
        package: The package, as its index calls it.
        environment: The environment, with the release that is pinned.
        spec: The audit of a release, once its environment is there.
    """

    package: str
    environment: Environment
    spec: Callable[[str], AuditSpec]

    @classmethod
    def of_library(
        cls, library: Library, method: str, table: Table, settings: AuditSettings
    ) -> ReleasedSubject:
        """A method of a library, audited with the same settings at every release.

        Raises:
            RegistryError: If the library has no such method.
        """
        library.check_method(method)
        return cls(
            package=library.distribution,
            environment=library.environment,
            spec=lambda version: build_spec(f"{library.name}@{version}:{method}", table, settings),
        )


class ReleaseOutcome(NamedTuple):
    """What was found of one release.

    Attributes:
        version: The release.
        verdict: The verdict; null if it could not be audited or replayed.
        proved: The bound that decides, in the unit of the claim; null if there is none, and for a
            violation by replay that has no limit.
        seconds: Wall time.
        run_folder: The run folder of an audit; null for a replay.
        reason: Why there is no verdict; null if there is one.
    """

    version: str
    verdict: Verdict | None
    proved: float | None
    seconds: NonNegative | None
    run_folder: str | None
    reason: str | None

    @property
    def ending(self) -> str:
        """The verdict, or that there is none."""
        return "not audited" if self.verdict is None else self.verdict.value


class ChangedBetween(NamedTuple):
    """Two releases, audited one after the other, whose verdicts differ."""

    before: str
    after: str


@dataclass(frozen=True, kw_only=True)
class Bisection(Document):
    """Audits or replays of a package's releases, as `dpaudit bisect --json` prints them.

    Attributes:
        package: The package.
        confidence: Confidence of each bound by itself.
        releases: The releases, the oldest first.
        changes: Where the verdict changes; by replay, where a violation begins or ends.
    """

    schema_version: ClassVar[int] = 1
    called: ClassVar[str] = "a bisection"
    package: str
    confidence: Probability
    releases: tuple[ReleaseOutcome, ...]
    changes: tuple[ChangedBetween, ...]

    @classmethod
    def of(
        cls, package: str, releases: Sequence[ReleaseOutcome], *, confidence: float
    ) -> Bisection:
        """The record of releases of a package."""
        return cls(
            package=package,
            confidence=confidence,
            releases=tuple(releases),
            changes=tuple(
                ChangedBetween(before.version, after.version)
                for before, after in verdict_changes(releases)
            ),
        )


def audit_releases(
    subject: ReleasedSubject,
    versions: Sequence[str],
    *,
    out: Path | None = None,
    python: Path | None = None,
    jobs: int | None = None,
    trial_timeout: float | None = None,
    on_progress: OnProgress = ignore_progress,
    on_step: Callable[[str], None] = lambda _: None,
) -> Iterator[ReleaseOutcome]:
    """Audits one release after another, each in its own environment and run folder.

    All use the same random streams, so two releases that behave the same have the same result.

    Args:
        subject: What is audited.
        versions: The releases.
        out: The folder for one run folder per release, named by version; by default each run folder
            is where its audit would go. The same call resumes.
        python: The interpreter for their environments; by default one that fits.
        jobs: As for `dpaudit.audit`.
        trial_timeout: As for `dpaudit.audit`.
        on_progress: Called after every trial.
        on_step: Called with a description of each next step.

    Yields:
        The outcome of each release. A release that cannot be installed, or whose worker does not
        start, has the reason, and the next one follows.

    Raises:
        InputError: If the audit itself is unusable, whatever the release.
        AttackError: If an attack fails on a valid synthetic table.
        InterruptedRunError: On Ctrl-C; the same call resumes.
    """
    with workers_ended():
        for version in versions:
            try:
                environment = subject.environment.with_release(subject.package, version)
                create_environment(environment, python=python, on_step=on_step)
                spec = subject.spec(version)
            except RegistryError as error:
                yield ReleaseOutcome(version, None, None, None, None, error_text(error))
                continue
            folder = spec.default_folder if out is None else out / version
            on_step(f"auditing {subject.package} {version}; run folder {folder}")
            machine = Machine(jobs=jobs, trial_timeout=trial_timeout)
            result = run_audit(spec, folder, jobs=machine, on_progress=on_progress)
            yield ReleaseOutcome(
                version, result.verdict, result.proved, result.seconds, str(result.folder), None
            )


def verdict_changes(
    releases: Sequence[ReleaseOutcome],
) -> list[tuple[ReleaseOutcome, ReleaseOutcome]]:
    """Releases audited one after the other whose verdicts differ, from the oldest to the newest.

    Args:
        releases: The outcome of each, in order; releases that were not audited are skipped.
    """
    audited = [one for one in releases if one.verdict is not None]
    return [pair for pair in pairwise(audited) if pair[0].verdict is not pair[1].verdict]


def gravest_verdict(releases: Sequence[ReleaseOutcome]) -> Verdict:
    """The verdict that decides the exit code: a violation anywhere, else no verdict anywhere.

    Args:
        releases: The outcome of each.
    """
    verdicts = [one.verdict or Verdict.INCONCLUSIVE for one in releases]
    order = (
        *(Verdict.VIOLATION, Verdict.INVALID, Verdict.OVERSPENT, Verdict.INCONCLUSIVE),
        *(Verdict.MEASURED, Verdict.CONSISTENT),
    )
    return min(verdicts, key=order.index)
