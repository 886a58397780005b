"""Audits a broken release and its twin in the same game, and checks both verdicts.

The same audit over other releases of the package says which of them have the bug.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from dpaudit.auditing.bisection import ReleasedSubject
from dpaudit.auditing.entry import audit_by_keywords
from dpaudit.auditing.games import audit_settings, build_spec
from dpaudit.auditing.spec import AuditSpec
from dpaudit.bugs.bug import Bug, Case, Release
from dpaudit.errors import RegistryError
from dpaudit.external.environments import create_environment
from dpaudit.external.libraries import Library
from dpaudit.game.flight import OnProgress, ignore_progress
from dpaudit.model.tables import load
from dpaudit.results.result import AuditResult
from dpaudit.results.verdict import Verdict

SIDES: Final = {"broken": Verdict.VIOLATION, "twin": Verdict.CONSISTENT}
"""Both sides of a bug, and the verdict that each must end with."""


class Side(NamedTuple):
    """One audit of the two.

    Attributes:
        name: "broken" or "twin".
        account: What was audited, in words.
        result: What the audit found.
        seconds: How long it took, the environment not counted.
    """

    name: str
    account: str
    result: AuditResult
    seconds: float

    @property
    def as_expected(self) -> bool:
        """Whether it ended with the verdict that it must."""
        return self.result.verdict is SIDES[self.name]


def run_bug(
    bug: Bug,
    *,
    seed: int = 0,
    jobs: int | None = None,
    out: Path | None = None,
    on_step: Callable[[str], None] = lambda _: None,
    on_progress: OnProgress = ignore_progress,
) -> list[Side]:
    """Makes the environments of a bug, then audits the broken release and its twin.

    Args:
        bug: A row of the corpus.
        seed: Root of every random stream of both audits.
        jobs: Worker processes; one per available core if None.
        out: Where both run folders are made, so that the run can be resumed; none is kept if None.
        on_step: Called with what is about to be done.
        on_progress: Called after every trial.

    Returns:
        The broken release, then its twin.

    Raises:
        RegistryError: If the bug has no case, or an environment cannot be made.
        InputError: If the audit cannot be started.
    """
    if bug.case is None:
        raise RegistryError(f"{bug.id} cannot be run ({bug.status}): {bug.note}")
    case = bug.case
    sides = {"broken": case.broken, "twin": case.twin}
    for release in sides.values():
        create_environment(release.environment, on_step=on_step)
    done = []
    for name, release in sides.items():
        on_step(f"auditing {release.account}")
        start = time.perf_counter()
        result = _audited(
            bug, case, release, seed, jobs, out and out / f"{bug.id}-{name}", on_progress
        )
        done.append(Side(name, release.account, result, time.perf_counter() - start))
    return done


def library_of(bug: Bug, case: Case, release: Release) -> Library:
    """One side of a bug as a library whose one method is the case's."""
    return Library(
        name=bug.id,
        environment=release.environment,
        adapter=case.adapter,
        methods={case.method: case.method},
        summary=bug.flaw,
        package=bug.package,
    )


def _audited(
    bug: Bug,
    case: Case,
    release: Release,
    seed: int,
    jobs: int | None,
    out: Path | None,
    on_progress: OnProgress,
) -> AuditResult:
    library = library_of(bug, case, release)
    schema = load(case.table, case.schema).schema
    return audit_by_keywords(
        library.generator(case.method, schema=schema, parameters=release.parameters),
        case.table,
        schema=case.schema,
        neighbours_file=case.neighbour,
        seed=seed,
        jobs=jobs,
        out=out,
        progress=on_progress,
        probe=False,
        **dict(case.settings),
    )


def subject_of_bug(bug: Bug, *, seed: int = 0) -> ReleasedSubject:
    """The audit of a bug's broken side, to be run at any release of its package.

    Args:
        bug: A row of the corpus.
        seed: Root of every random stream.

    Returns:
        What `audit_releases` audits.

    Raises:
        RegistryError: If the bug has no case.
        InputError: If its settings or tables cannot be used.
    """
    case = bug.case
    if case is None:
        raise RegistryError(f"{bug.id} cannot be run ({bug.status}): {bug.note}")
    given = {**case.settings, "neighbours_file": str(case.neighbour), "seed": seed, "probe": False}
    settings = audit_settings(**given)
    table = load(case.table, case.schema)
    library = library_of(bug, case, case.broken)

    def spec(version: str) -> AuditSpec:
        generator = library.with_release(version).generator(
            case.method, schema=table.schema, parameters=case.broken.parameters
        )
        return build_spec(generator, table, settings)

    return ReleasedSubject(package=bug.package, environment=library.environment, spec=spec)
