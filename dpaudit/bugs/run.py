"""Replays a broken release and its twin on the same tables; audits both where that decides nothing.

The same audit over other releases of the package says which of them have the bug.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from dpaudit.auditing.bisection import ReleasedSubject
from dpaudit.auditing.entry import audit_by_keywords
from dpaudit.auditing.games import audit_settings, build_spec
from dpaudit.auditing.spec import AuditSpec
from dpaudit.bugs.bug import Bug, Case, Release
from dpaudit.bugs.outcome import AuditEvidence, BugOutcome, ReplayEvidence, SideFound
from dpaudit.errors import InputError, RegistryError, ReplayError, RunFolderError
from dpaudit.external.environments import create_environment
from dpaudit.external.generator import WorkerGenerator
from dpaudit.external.libraries import Library
from dpaudit.files import io_reason, write_whole
from dpaudit.formatting import error_text
from dpaudit.game.flight import OnProgress, ignore_progress
from dpaudit.model.currencies import Claim
from dpaudit.model.tables import load
from dpaudit.replaying.run import replay
from dpaudit.versions import today, versions

REPLAYS: Final = 5
"""Counted replays of a side, two fits each."""
_OF_REPLAY: Final = frozenset({"epsilon", "delta", "neighbours", "rows", "mu", "rho"})
"""Settings of an audit that a replay has, too."""


def _ignore_step(step: str) -> None:
    """Says nothing."""


class BugRun(NamedTuple):
    """How bugs are run.

    Attributes:
        out: Where each `ID.json` goes, so that a run can be resumed.
        black_box: Whether to audit both sides although replays decide.
        keeps_folders: Whether the run folders of audits stay in `out`, so that an audit resumes.
        seed: Root of every random stream.
        jobs: Worker processes of an audit; one per available core if None.
        on_step: Called with what is about to be done.
        on_progress: Called after every trial of an audit.
    """

    out: Path
    black_box: bool = False
    keeps_folders: bool = True
    seed: int = 0
    jobs: int | None = None
    on_step: Callable[[str], None] = _ignore_step
    on_progress: OnProgress = ignore_progress


class BugEnding(NamedTuple):
    """How the run of one bug ended.

    Attributes:
        bug: The bug.
        outcome: What was found; None if it could not be run.
        reason: Why it could not be run.
        was_there: Whether all of it was found by an earlier run.
    """

    bug: Bug
    outcome: BugOutcome | None
    reason: str = ""
    was_there: bool = False


def run_bugs(bugs: Sequence[Bug], run: BugRun) -> Iterator[BugEnding]:
    """Runs bugs one after another; what an earlier run has found is kept.

    Args:
        bugs: Rows of the corpus with a case.
        run: How.

    Yields:
        The ending of each. One that cannot be run has the reason, and the next one follows.

    Raises:
        InputError: If the folder of outcomes cannot be written.
    """
    for number, bug in enumerate(bugs):
        run.on_step(f"{number + 1} of {len(bugs)}: {bug.id}")
        try:
            yield run_bug(bug, run)
        except (RegistryError, ReplayError) as error:
            yield BugEnding(bug, None, error_text(error))


def run_bug(bug: Bug, run: BugRun) -> BugEnding:
    """Replays both sides of a bug, and audits them if replays do not decide.

    Args:
        bug: A row of the corpus.
        run: How.

    Returns:
        The ending, whose outcome lies in the folder, too.

    Raises:
        RegistryError: If the bug has no case, or an environment cannot be made.
        InputError: If the audit cannot be started, or the outcome cannot be written.
    """
    case = case_of(bug)
    path, digest = run.out / f"{bug.id}.json", case_digest(case, seed=run.seed)
    found = _kept(path, digest)
    if found is not None and (found.is_whole or (found.is_decided and not run.black_box)):
        run.on_step(f"found {found.date}, in {path}")
        return BugEnding(bug, found, was_there=True)
    for release in (case.broken, case.twin):
        create_environment(release.environment, on_step=run.on_step)
    if found is None:
        first = _replayed(bug, case, case.broken, run)
        found = BugOutcome(
            id=bug.id,
            case=digest,
            claim=first.claim,
            broken=first.found,
            twin=_replayed(bug, case, case.twin, run).found,
            versions=versions(),
            date=today(),
        )
        _write(path, found)
    if run.black_box or not found.is_decided:
        broken = _audited(bug, case, case.broken, found.broken, run, f"{bug.id}-broken")
        twin = _audited(bug, case, case.twin, found.twin, run, f"{bug.id}-twin")
        found = replace(found, broken=broken, twin=twin, date=today())
        _write(path, found)
    return BugEnding(bug, found)


def case_of(bug: Bug) -> Case:
    """The case of a bug.

    Raises:
        RegistryError: If it has none.
    """
    if bug.case is None:
        raise RegistryError(f"{bug.id} cannot be run ({bug.status}): {bug.note}")
    return bug.case


def case_digest(case: Case, *, seed: int) -> str:
    """A digest of all that decides what is found of a case.

    Args:
        case: A case, whose files exist.
        seed: Root of every random stream.

    Raises:
        RegistryError: If the pins cannot be read.
    """
    files = (case.adapter, case.table, case.neighbour, case.schema)
    sides = [
        [*side.environment.requirements, dict(side.parameters)] for side in (case.broken, case.twin)
    ]
    text = json.dumps([case.method, sides, dict(case.settings), seed], sort_keys=True, default=str)
    parts = [text.encode(), *(file.read_bytes() for file in files)]
    return hashlib.blake2b(b"".join(hashlib.sha256(one).digest() for one in parts)).hexdigest()[:16]


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


def _generator(bug: Bug, case: Case, release: Release) -> WorkerGenerator:
    schema = load(case.table, case.schema).schema
    library = library_of(bug, case, release)
    return library.generator(case.method, schema=schema, parameters=release.parameters)


class _Replayed(NamedTuple):
    """What a replay found of one side, and the claim of that side."""

    found: SideFound
    claim: Claim


def _replayed(bug: Bug, case: Case, release: Release, run: BugRun) -> _Replayed:
    run.on_step(f"replaying {release.account}")
    start = time.perf_counter()
    settings = {name: value for name, value in case.settings.items() if name in _OF_REPLAY}
    generator = _generator(bug, case, release)
    try:
        record = replay(
            generator,
            case.table,
            schema=case.schema,
            neighbours_file=case.neighbour,
            replays=REPLAYS,
            seed=run.seed,
            **settings,
        )
    except ReplayError as error:
        none = ReplayEvidence.none(error_text(error), time.perf_counter() - start)
        claim = _spec(case, generator, run.seed).claim
        return _Replayed(SideFound(release.account, none, None), claim)
    found = SideFound(release.account, ReplayEvidence.of(record), None)
    return _Replayed(found, record.claim)


def _audited(
    bug: Bug, case: Case, release: Release, side: SideFound, run: BugRun, folder: str
) -> SideFound:
    run.on_step(f"auditing {side.account}")
    start = time.perf_counter()
    result = audit_by_keywords(
        _generator(bug, case, release),
        case.table,
        schema=case.schema,
        neighbours_file=case.neighbour,
        seed=run.seed,
        jobs=run.jobs,
        out=run.out / folder if run.keeps_folders else None,
        progress=run.on_progress,
        probe=False,
        **dict(case.settings),
    )
    return side._replace(audit=AuditEvidence.of(result, time.perf_counter() - start))


def _kept(path: Path, digest: str) -> BugOutcome | None:
    """What an earlier run has found of the same case; None if there is none."""
    if not path.exists():
        return None
    try:
        found = BugOutcome.load(path)
    except InputError:
        return None
    return found if found.case == digest else None


def _write(path: Path, found: BugOutcome) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, found.to_json())
    except OSError as error:
        raise RunFolderError(
            f"{path} cannot be written: {io_reason(error)}; name another folder"
        ) from None


def _spec(case: Case, generator: WorkerGenerator | str, seed: int) -> AuditSpec:
    """The audit of one side."""
    given = {**case.settings, "neighbours_file": str(case.neighbour), "seed": seed, "probe": False}
    return build_spec(generator, load(case.table, case.schema), audit_settings(**given))


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
    case = case_of(bug)
    schema = load(case.table, case.schema).schema
    library = library_of(bug, case, case.broken)

    def spec(version: str) -> AuditSpec:
        generator = library.with_release(version).generator(
            case.method, schema=schema, parameters=case.broken.parameters
        )
        return _spec(case, generator, seed)

    return ReleasedSubject(package=bug.package, environment=library.environment, spec=spec)
