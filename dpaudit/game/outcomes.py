"""Outcomes of trials as read from a run folder: how each ended, and its features on request.

The features of all trials may exceed the memory. So the parts that most of an audit needs (status,
claim, seconds, digests of table and features) are read without them. Features are read as a matrix
of some trials for one attack, when it is fitted or scored.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpaudit.errors import AttackError
from dpaudit.game.trial import ModelClaim, Outcome, Role, Trial, TrialEnd, TrialStatus
from dpaudit.plugins.protocols import BoolArray, FloatArray, World

TABLE = """
CREATE TABLE IF NOT EXISTS trial (
    role TEXT NOT NULL, world TEXT NOT NULL, number INTEGER NOT NULL,
    status TEXT NOT NULL, error TEXT NOT NULL, rows INTEGER,
    claimed_epsilon REAL, claimed_delta REAL, seconds REAL NOT NULL, attempts INTEGER NOT NULL,
    table_hash TEXT, features_sha TEXT, row_sha TEXT NOT NULL, features BLOB,
    PRIMARY KEY (role, world, number)
);
"""
"""The table of outcomes. Features come last, because SQLite reads a row only as far as needed."""

SMALL_COLUMNS = (
    "role, world, number, status, error, rows, claimed_epsilon, claimed_delta, seconds, "
    "attempts, table_hash, features_sha, row_sha"
)
"""All columns except the features."""

_LITTLE_ENDIAN = np.dtype("<f8")


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredOutcome(TrialEnd):
    """How a trial ended, as the store returns it: without its features.

    Attributes:
        digest: SHA-256 of its features; None unless it finished.
    """

    digest: bytes | None = None

    @property
    def finished(self) -> bool:
        """Whether there are features."""
        return self.digest is not None


class StoredOutcomes(Mapping[Trial, StoredOutcome]):
    """The outcomes of one role in an open run folder, in the order of world and number.

    Nothing is cached: each access reads the store, and includes outcomes saved meanwhile.

    Args:
        find: Reads the outcome of one trial; None if it has none.
        role: The role.
        walk: Reads all outcomes of a role.
        vectors: Reads the features of finished trials, one by one.
        count: Counts the outcomes of a role.
    """

    def __init__(
        self,
        role: Role,
        *,
        find: Callable[[Trial], StoredOutcome | None],
        walk: Callable[[Role], Iterator[StoredOutcome]],
        vectors: Callable[[Iterable[Trial]], Iterator[FloatArray]],
        count: Callable[[Role], int],
    ) -> None:
        self._role = role
        self._find = find
        self._walk = walk
        self._vectors = vectors
        self._count = count

    def __getitem__(self, trial: Trial) -> StoredOutcome:
        outcome = self._find(trial) if trial.role is self._role else None
        if outcome is None:
            raise KeyError(trial)
        return outcome

    def __iter__(self) -> Iterator[Trial]:
        return (outcome.trial for outcome in self.stream())

    def __len__(self) -> int:
        return self._count(self._role)

    def stream(self) -> Iterator[StoredOutcome]:
        """All outcomes, one by one."""
        return self._walk(self._role)

    def features(
        self,
        trials: Sequence[Trial],
        place: slice = slice(None),
        *,
        left_out: BoolArray | None = None,
    ) -> StoredFeatures:
        """The features of some finished trials, read only when they are needed.

        Args:
            trials: The trials, in the order of the rows.
            place: Slice of their features, such as those of one attack.
            left_out: Which of these read as 0 in every trial; None for none.
        """
        return StoredFeatures(trials, place, self._vectors, left_out)


@dataclass(frozen=True)
class StoredFeatures:
    """Feature vectors [n, f] that stay in the run folder until rows of them are asked for.

    Indexed like an array: `features[:]` is the matrix, `features[rows]` some rows of it.

    Attributes:
        trials: The trial of each row.
        place: Slice of the features of a trial.
        vectors: Reads all features of trials, one by one.
        left_out: Which features of the slice read as 0; None for none.
    """

    trials: Sequence[Trial]
    place: slice
    vectors: Callable[[Iterable[Trial]], Iterator[FloatArray]]
    left_out: BoolArray | None = None

    def __len__(self) -> int:
        return len(self.trials)

    def __getitem__(self, rows: slice | npt.NDArray[np.intp] | BoolArray) -> FloatArray:
        """Reads some rows as a matrix.

        Raises:
            AttackError: If trials have different numbers of features.
            RunFolderError: If the store is damaged.
        """
        chosen = np.arange(len(self.trials))[rows]
        matrix = np.empty((0, 0))
        vectors = self.vectors(self.trials[row] for row in chosen)
        for position, vector in enumerate(vectors):
            features = vector[self.place]
            if position == 0:
                matrix = np.empty((len(chosen), len(features)))
            elif matrix.shape[1:] != features.shape:
                raise AttackError("an attack must give the same number of features of every table")
            matrix[position] = features
        if self.left_out is not None and matrix.size:
            matrix[:, self.left_out] = 0.0
        return matrix


def row_of(outcome: Outcome) -> tuple[Any, ...]:
    """A row of the table: `SMALL_COLUMNS`, then the features."""
    blob = digest = None
    if outcome.features is not None:
        blob = outcome.features.astype(_LITTLE_ENDIAN).tobytes()
        digest = hashlib.sha256(blob).hexdigest()
    role, world, number = outcome.trial
    columns = (
        role.value,
        world.value,
        number,
        outcome.status.value,
        outcome.error,
        outcome.rows,
        *(outcome.claimed or (None, None)),
        float(outcome.seconds),
        outcome.attempts,
        None if outcome.table is None else outcome.table.hex(),
        digest,
    )
    return (*columns, _checksum(columns), blob)


def outcome_of(row: Sequence[Any]) -> StoredOutcome:
    """An outcome from `SMALL_COLUMNS`.

    Raises:
        ValueError: If a column has changed since it was saved.
    """
    *columns, checksum = row
    role, world, number, status, error, count, epsilon, delta, *rest = columns
    seconds, attempts, table, digest = rest
    if _checksum(columns) != checksum:
        raise ValueError(f"trial {role}/{world}/{number} has changed")
    return StoredOutcome(
        trial=Trial(Role(role), World(world), number),
        status=TrialStatus(status),
        error=error,
        rows=count,
        claimed=None if epsilon is None else ModelClaim(epsilon, delta),
        seconds=seconds,
        attempts=attempts,
        table=None if table is None else bytes.fromhex(table),
        digest=None if digest is None else bytes.fromhex(digest),
    )


def vector_of(outcome: StoredOutcome, blob: bytes | None) -> FloatArray | None:
    """The features [f] of an outcome, read-only; None if it has no features.

    Raises:
        ValueError: If the features have changed since they were saved.
    """
    if (None if blob is None else hashlib.sha256(blob).digest()) != outcome.digest:
        raise ValueError(f"the features of trial {outcome.trial.id} have changed")
    return None if blob is None else np.frombuffer(blob, dtype=_LITTLE_ENDIAN)


def _checksum(columns: Sequence[Any]) -> str:
    """SHA-256 of all columns except the features, whose digest is one of the columns."""
    return hashlib.sha256(json.dumps(columns).encode()).hexdigest()
