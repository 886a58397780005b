"""One trial: its name, its input and its outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from dpaudit.errors import TrialError
from dpaudit.formatting import clipped, error_line, located, one_line, raised_at
from dpaudit.game.features import FeatureMaker, TakesModelFeatures
from dpaudit.game.worlds import OneTable
from dpaudit.plugins.access import Disclosure
from dpaudit.plugins.protocols import FloatArray, Job, ReleaseAttack, World
from dpaudit.seeds import Stream

_LONGEST_REASON = 300
_LONGEST_MESSAGE = 10_000


class Role(StrEnum):
    """What a trial is run for."""

    NULL_CONTROL = "null-control"
    POSITIVE_CONTROL = "positive-control"
    AUDIT = "audit"
    REPLAY = "replay"
    ONE_RUN = "one-run"
    TARGET_SELECTION = "target-selection"

    @property
    def in_words(self) -> str:
        """The role as it reads in a sentence."""
        return self.value.replace("-", " ")


class Trial(NamedTuple):
    """The name of a trial, from which its random streams follow."""

    role: Role
    world: World
    number: int

    @property
    def id(self) -> str:
        """Key of the trial in the store."""
        return f"{self.role}/{self.world}/{self.number}"

    def seed(self, purpose: str, *, root: int, audit: str) -> int:
        """The seed of one of this trial's streams; a replay has its original's seeds."""
        role = Role.AUDIT if self.role is Role.REPLAY else self.role
        return Stream(root, audit, f"{role}/{purpose}", self.number, self.world).seed()


class TrialStatus(StrEnum):
    """How a trial ended."""

    FINISHED = "finished"
    FAILED = "failed"
    CRASHED = "crashed"


class ModelClaim(NamedTuple):
    """What one fitted model claims: epsilon and delta for the neighbours of the game."""

    epsilon: float
    delta: float


@dataclass(frozen=True, kw_only=True, slots=True)
class TrialEnd:
    """How one trial ended: its outcome without the features.

    Attributes:
        trial: The trial.
        status: How it ended.
        error: Why it failed, in one line that may be shared; empty if it finished.
        rows: Number of synthetic rows if it differs from the request; else None.
        claimed: The claim of the fitted model itself for the neighbours of the game, if it makes
            one.
        seconds: Wall time of training, sampling and features; an equal share of it for models that
            are trained together.
        attempts: Number of times that it was started.
        table: Digest of the synthetic table; None unless finished.
    """

    trial: Trial
    status: TrialStatus
    error: str = ""
    rows: int | None = None
    claimed: ModelClaim | None = None
    seconds: float = 0.0
    attempts: int = 1
    table: bytes | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome(TrialEnd):
    """The whole outcome of one trial, as a worker returns it.

    Attributes:
        features: Features of all attacks, concatenated [f]; None unless finished.
        message: Error of the generator. It may quote records: for the local log, never stored.
        traceback: Traceback of the error, which may quote records too.
    """

    features: FloatArray | None = None
    message: str = field(default="", compare=False)
    traceback: str = field(default="", compare=False)


def reason_of(error: BaseException) -> str:
    """Why a trial failed, without texts of foreign exceptions, which may quote records.

    Args:
        error: Error of the generator, or a `TrialError` about what the generator returned.

    Returns:
        The text of a `TrialError`, else the type of the error and where the generator's code raised
        it; at most 300 characters.
    """
    if isinstance(error, TrialError):
        text = error.shareable.encode("utf-8", "backslashreplace").decode()  # any store holds it
        return clipped(one_line(text), _LONGEST_REASON)
    place = raised_at(error)
    return clipped(f"{type(error).__name__}{place and f' at {place}'}", _LONGEST_REASON)


def message_of(error: BaseException) -> str:
    """The full text of an error with its place and cause in one line, for the local log only."""
    cause = f" (from {error_line(error.__cause__)})" if error.__cause__ else ""
    return clipped(f"{located(error)}{cause}", _LONGEST_MESSAGE)


@dataclass(frozen=True, kw_only=True)
class Payload:
    """The input of a worker for any trial of an audit.

    Attributes:
        game: The game whose trials they are.
        generators: One pickled generator per role; each trial, or batch of trials, unpickles a
            fresh one, so no state passes from one to the next.
        attacks: Attacks that take features of every synthetic table or of a model's disclosures.
        root: Root seed.
        audit: Identifies the audit in the names of random streams.
    """

    game: OneTable
    generators: dict[Role, bytes]
    attacks: Sequence[FeatureMaker]
    root: int
    audit: str

    @cached_property  # asking what a protocol fits takes as long as a fast mechanism
    def seen(self) -> frozenset[Disclosure]:
        """Disclosures of a model that attacks see in addition to its synthetic table."""
        return frozenset(
            attack.sees for attack in self.attacks if isinstance(attack, TakesModelFeatures)
        )

    @property
    def is_timed(self) -> bool:
        """Whether an attack sees what a training costs: then each model is trained alone."""
        return Disclosure.COST in self.seen

    @cached_property
    def sees_release(self) -> bool:
        """Whether an attack sees how one table was written, in addition to its values."""
        is_single = not self.game.view.of_tables
        return is_single and any(isinstance(attack, ReleaseAttack) for attack in self.attacks)

    def seed(self, trial: Trial, purpose: str) -> int:
        """The seed of one of a trial's streams."""
        return trial.seed(purpose, root=self.root, audit=self.audit)

    def job(self, trial: Trial) -> Job:
        """The job of a trial for a `BatchGenerator`."""
        _, world, number = trial
        dropped_rows = self.game.dropped_rows(world, number)
        return Job(world, number, dropped_rows, self.seed(trial, "fit"))
