"""Replays a broken release and its twin on the same tables; audits both if replays do not decide.

The same audit over other releases of the package shows which of them have the bug.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Final, NamedTuple, Self

from dpaudit.auditing.entry import audit_by_keywords
from dpaudit.auditing.games import audit_settings, build_spec
from dpaudit.auditing.spec import AuditSpec
from dpaudit.bugs.bug import Bug, Case, Release
from dpaudit.errors import InputError, RegistryError, ReplayError, RunFolderError
from dpaudit.external.environments import create_environment
from dpaudit.external.generator import Library, WorkerGenerator
from dpaudit.files import io_reason, write_whole
from dpaudit.formatting import error_text, rounded, rounded_down
from dpaudit.game.flight import OnProgress, ignore_progress
from dpaudit.model.claim import Claim
from dpaudit.model.tables import load
from dpaudit.plugins.protocols import World
from dpaudit.replaying.record import ReplayRecord
from dpaudit.replaying.run import replay
from dpaudit.results.document import Document, NonNegative, Whole
from dpaudit.results.result import AuditResult
from dpaudit.results.verdict import Verdict
from dpaudit.versions import today, versions

_OF_REPLAY: Final = frozenset({"epsilon", "delta", "neighbours", "rows", "mu", "rho"})
"""Settings of an audit that a replay has, too."""
_PLACES: Final = 6
"""Largest number of a replay's lines of code that are kept."""


class ReplayEvidence(NamedTuple):
    """What a replay found.

    Attributes:
        verdict: Its verdict; null if the code cannot be replayed.
        of_proof: Whether a violation rests on the stated proof alone.
        proved: The lower bound on epsilon that the release shows; null if it has no limit, or there
            is no verdict.
        spent: What a proof by composition charges; null if that is not known or has no limit.
        reasons: The reasons for the verdict, or why the code cannot be replayed.
        places: The lines that cost or differ most.
        fits: Fits of the generator.
        seconds: Wall time.
    """

    verdict: Verdict | None
    of_proof: bool
    proved: float | None
    spent: float | None
    reasons: tuple[str, ...]
    places: tuple[str, ...]
    fits: Whole
    seconds: NonNegative

    @classmethod
    def of(cls, record: ReplayRecord) -> Self:
        """The evidence of a finished replay."""
        parting = record.parting.place if record.parting is not None else None
        places = [*record.fixed_seeds, parting, *(line.place for line in record.ledger)]
        return cls(
            verdict=record.verdict,
            of_proof=record.of_proof,
            proved=record.proved,
            spent=record.spent,
            reasons=record.reasons,
            places=tuple(dict.fromkeys(place for place in places if place))[:_PLACES],
            fits=record.fits,
            seconds=round(record.seconds, 1),
        )

    @property
    def text(self) -> str:
        """The finding in one line."""
        if self.verdict is None:
            return f"not possible: {self.reasons[0]}"
        bound = "no limit" if self.proved is None else f"at least {rounded_down(self.proved)}"
        spent = "" if self.spent is None else f"spends {rounded(self.spent)}, "
        word = f"{self.verdict}{' of the proof' if self.of_proof else ''}"
        why = "" if self.verdict is Verdict.CONSISTENT else f"; {self.reasons[0]}"
        return f"{word}, {spent}epsilon {bound} ({self.fits} fits){why}"

    @classmethod
    def none(cls, reason: str, seconds: float) -> Self:
        """The evidence of code that cannot be replayed."""
        return cls(None, False, None, None, (reason,), (), 0, round(seconds, 1))


class AuditEvidence(NamedTuple):
    """What a black-box audit found.

    Attributes:
        verdict: Its verdict.
        proved: The lower bound on epsilon that decides; null if there is none.
        provable: What a perfect attack could have proved with as many models.
        models: Shadow models.
        failed_in: Models of world "in" that failed.
        failed_out: Models of world "out" that failed.
        seconds: Wall time.
    """

    verdict: Verdict
    proved: float | None
    provable: float | None
    models: Whole
    failed_in: Whole
    failed_out: Whole
    seconds: NonNegative

    @classmethod
    def of(cls, result: AuditResult, seconds: float) -> Self:
        """The evidence of a finished audit."""
        return cls(
            verdict=result.verdict,
            proved=result.proved,
            provable=result.max_provable_epsilon,
            models=sum(result.shadow_models.values()),
            failed_in=result.failures.get(World.IN, 0),
            failed_out=result.failures.get(World.OUT, 0),
            seconds=round(seconds, 1),
        )

    @property
    def text(self) -> str:
        """The finding in one line."""
        if self.proved is None or self.provable is None:
            return f"{self.verdict} ({self.models} models)"
        bound = f"at least {rounded_down(self.proved)} of {rounded_down(self.provable)} provable"
        return f"{self.verdict}, epsilon {bound} ({self.models} models)"


class SideFound(NamedTuple):
    """The evidence about one side of a bug.

    Attributes:
        account: What ran, in words.
        replay: What a replay found.
        audit: What a black-box audit found; null if none was needed.
    """

    account: str
    replay: ReplayEvidence
    audit: AuditEvidence | None

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdicts of replay and audit, if there are any."""
        verdicts = [self.replay.verdict, self.audit.verdict if self.audit else None]
        return tuple(verdict for verdict in verdicts if verdict is not None)

    @property
    def is_violation(self) -> bool:
        """Whether any evidence proves a violation."""
        return Verdict.VIOLATION in self.verdicts

    @property
    def seconds(self) -> float:
        """Wall time of all of it."""
        return self.replay.seconds + (self.audit.seconds if self.audit else 0.0)


@dataclass(frozen=True, kw_only=True)
class BugOutcome(Document):
    """The evidence about a bug, as `dpaudit bugs run` writes it.

    Attributes:
        id: The bug.
        case: Digest of everything that decides: adapter, tables, pins, parameters, settings, seed.
        claim: The claim of both sides.
        broken: The release with the bug.
        twin: The same without it.
        versions: Versions of dpaudit and its libraries.
        date: The day, in UTC.
    """

    schema_version: ClassVar[int] = 2
    called: ClassVar[str] = "an outcome of `dpaudit bugs run`"
    kept_in: ClassVar[str] = "an ID.json that `dpaudit bugs run` wrote"

    id: str
    case: str
    claim: Claim
    broken: SideFound
    twin: SideFound
    versions: Mapping[str, str]
    date: str

    @property
    def is_decided(self) -> bool:
        """Whether replays alone prove the bug and clear its twin."""
        undecided = (None, Verdict.VIOLATION, Verdict.OVERSPENT)
        violated = self.broken.replay.verdict is Verdict.VIOLATION
        return violated and self.twin.replay.verdict not in undecided

    @property
    def is_whole(self) -> bool:
        """Whether there are audits of both sides, too."""
        return self.broken.audit is not None and self.twin.audit is not None

    @property
    def is_proved(self) -> bool:
        """Whether the broken release is proved to violate its claim, and its twin never is."""
        silent = self.twin.audit is None or self.twin.audit.verdict is Verdict.CONSISTENT
        shown = self.is_decided or self.is_whole
        return shown and self.broken.is_violation and silent and not self.twin.is_violation

    def sides(self) -> Iterator[tuple[str, SideFound]]:
        """Both sides by name."""
        yield "broken", self.broken
        yield "twin", self.twin


class BugRun(NamedTuple):
    """How bugs are run.

    Attributes:
        out: Where each `ID.json` goes, so that a run can be resumed.
        black_box: Whether to audit both sides although replays decide.
        keeps_folders: Whether the run folders of audits stay in `out`, so that an audit resumes.
        seed: Root of every random stream.
        jobs: Worker processes of an audit; one per available core if None.
        on_step: Called with a description of each step before it begins.
        on_progress: Called after every trial of an audit.
    """

    out: Path
    black_box: bool = False
    keeps_folders: bool = True
    seed: int = 0
    jobs: int | None = None
    on_step: Callable[[str], None] = lambda step: None
    on_progress: OnProgress = ignore_progress


class BugEnding(NamedTuple):
    """How the run of one bug ended.

    Attributes:
        bug: The bug.
        outcome: What was found; None if it could not be run.
        reason: Why it could not be run.
    """

    bug: Bug
    outcome: BugOutcome | None
    reason: str = ""


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
    outcome = _load_kept(path, digest)
    if outcome is not None and (outcome.is_whole or (outcome.is_decided and not run.black_box)):
        run.on_step(f"found {outcome.date}, in {path}")
        return BugEnding(bug, outcome)
    for release in (case.broken, case.twin):
        create_environment(release.environment, on_step=run.on_step)
    if outcome is None:
        broken, claim = replay_side(bug, case, case.broken, run)
        twin, _ = replay_side(bug, case, case.twin, run)
        outcome = BugOutcome(
            id=bug.id,
            case=digest,
            claim=claim,
            broken=broken,
            twin=twin,
            versions=versions(),
            date=today(),
        )
        _write(path, outcome)
    if run.black_box or not outcome.is_decided:
        broken = _audit(bug, case, case.broken, outcome.broken, run, f"{bug.id}-broken")
        twin = _audit(bug, case, case.twin, outcome.twin, run, f"{bug.id}-twin")
        outcome = replace(outcome, broken=broken, twin=twin, date=today())
        _write(path, outcome)
    return BugEnding(bug, outcome)


def case_of(bug: Bug) -> Case:
    """The case of a bug.

    Raises:
        RegistryError: If it has none.
    """
    if bug.case is None:
        raise RegistryError(f"{bug.id} cannot be run ({bug.status}): {bug.note}")
    return bug.case


def case_digest(case: Case, *, seed: int) -> str:
    """A digest of everything that decides the outcome of a case.

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
    decides = [case.method, sides, dict(case.settings), seed]
    decides += [] if case.replay_access == "rows" else [case.replay_access]
    text = json.dumps(decides, sort_keys=True, default=str)
    parts = [text.encode(), *(file.read_bytes() for file in files)]
    return hashlib.blake2b(b"".join(hashlib.sha256(p).digest() for p in parts)).hexdigest()[:16]


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


def replay_side(bug: Bug, case: Case, release: Release, run: BugRun) -> tuple[SideFound, Claim]:
    """Replays one side of a bug, whose environment exists.

    Args:
        bug: A row of the corpus.
        case: Its case.
        release: One of the case's sides, perhaps with another release of the package.
        run: How bugs are run.

    Returns:
        What the replay found, or why it is not possible; and the claim of that side.

    Raises:
        InputError: If the side cannot be used.
    """
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
            access=case.replay_access,
            seed=run.seed,
            **settings,
        )
    except ReplayError as error:
        none = ReplayEvidence.none(error_text(error), time.perf_counter() - start)
        return SideFound(release.account, none, None), _spec(case, generator, run.seed).claim
    return SideFound(release.account, ReplayEvidence.of(record), None), record.claim


def _audit(
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


def _load_kept(path: Path, digest: str) -> BugOutcome | None:
    """The outcome of an earlier run of the same case, if there is one."""
    if not path.exists():
        return None
    try:
        outcome = BugOutcome.load(path)
    except InputError:
        return None
    return outcome if outcome.case == digest else None


def _write(path: Path, outcome: BugOutcome) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, outcome.to_json())
    except OSError as error:
        raise RunFolderError(
            f"{path} cannot be written: {io_reason(error)}; name another folder"
        ) from None


def _spec(case: Case, generator: WorkerGenerator | str, seed: int) -> AuditSpec:
    """The audit of one side."""
    given = {**case.settings, "neighbours_file": str(case.neighbour), "seed": seed, "probe": False}
    return build_spec(generator, load(case.table, case.schema), audit_settings(**given))
