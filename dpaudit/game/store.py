"""The run folder: one SQLite file, one transaction per finished batch of trials, one writer.

The write-ahead log is synchronised at each batch, so an acknowledged trial is on disk. The writer
holds `flock` on the folder, which the system releases when the process dies; a mere lock file would
block resuming for ever. The folder must not be on a network file system, where SQLite's locks do
not work.

Private values are kept only as salted digests, which confirm no guess without the folder's salt.
Random streams are named after the unsalted digests, which never leave the process.

The features of all trials may exceed the memory. So the parts that most of an audit needs (status,
claim, seconds, digests of table and features) are read without them. Features are read as a matrix
of some trials for one attack, when it is fitted or scored.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import re
import secrets
import sqlite3
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from itertools import starmap
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from dpaudit.errors import AttackError, RunFolderError
from dpaudit.files import parse_json, write_whole
from dpaudit.formatting import clipped, one_line, printable, visible
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
        role: The role.
        store: The run folder.
    """

    def __init__(self, role: Role, store: RunFolder) -> None:
        self._role, self._store = role, store

    def __getitem__(self, trial: Trial) -> StoredOutcome:
        outcome = self._store.read(trial) if trial.role is self._role else None
        if outcome is None:
            raise KeyError(trial)
        return outcome

    def __iter__(self) -> Iterator[Trial]:
        return (outcome.trial for outcome in self.stream())

    def __len__(self) -> int:
        return self._store.count(self._role)

    def stream(self) -> Iterator[StoredOutcome]:
        """All outcomes, one by one."""
        return self._store.read_all(self._role)

    def vectors(self, trials: Iterable[Trial]) -> Iterator[FloatArray]:
        """The features of finished trials, one by one."""
        return self._store.read_features(trials)

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
        return StoredFeatures(trials, place, self.vectors, left_out)


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


_AUDIT = """
CREATE TABLE IF NOT EXISTS audit (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    spec_json TEXT NOT NULL,
    versions_json TEXT NOT NULL
);
"""
_COLUMNS: Final = f"{SMALL_COLUMNS}, features"
_PLACES: Final = ", ".join("?" for _ in _COLUMNS.split(","))
_INSERT: Final = f"INSERT OR IGNORE INTO trial ({_COLUMNS}) VALUES ({_PLACES})"
STORE_FILE = "trials.sqlite"
"""Name of the file in a run folder that has its trials."""
LOG_FILE = "workers.log"
"""Name of the file in a run folder for what generators print and raise: never to be shared."""

SYNCHRONOUS = "FULL"
"""SQLite's setting: a commit survives a power cut, not only the end of the program."""
_DIGESTED: Final = {
    "data": "the table",
    "schema": "the schema",
    "target record": "the target",
    "target replacement": "the record that replaces the target",
}
"""Parts of a specification that may be stored as digests, by name, in words."""
ABSENT = "not there"
"""The version entry of software that a run does not use."""
BUSY_SECONDS = 60.0
"""The run fails if another program, such as a backup, locks the store for longer than this."""


class RunFolder:
    """A run folder, opened and locked for one audit.

    Args:
        path: The folder; created if it does not exist.
        spec: What is audited, as JSON; a folder belongs to one specification. The folder keeps
            only salted digests of values marked `Private`.
        versions: Versions of installed software; kept with the specification.

    Raises:
        RunFolderError: If the folder cannot be written, another process holds it, or it holds an
            audit with another specification (the message names the field) or other versions.
    """

    def __init__(self, path: Path, *, spec: Mapping[str, Any], versions: Mapping[str, str]) -> None:
        self.path = path
        self.log = path / LOG_FILE
        self.last_failure: Outcome | None = None  # to be shown; its message is never stored
        self._logged = set[str]()
        with ExitStack() as opened:
            opened.enter_context(_lock(path))
            with self._folder_errors("hold a run", "give another `out`"):
                _keep_private(path)
                self._db = sqlite3.connect(
                    path / STORE_FILE, isolation_level=None, timeout=BUSY_SECONDS
                )
                opened.enter_context(closing(self._db))
                self._db.execute("PRAGMA journal_mode=WAL")
                self._db.execute(f"PRAGMA synchronous={SYNCHRONOUS}")
                self._db.executescript(_AUDIT + TABLE)
                self._require_columns()
                used = self._holds_audit()
                self.salt = salt_of(path) if used else new_salt(path)
                self._require_same_audit(self.salt.sealed(spec), versions)
                self._files = _identities(path)
            self._opened = opened.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the store and unlocks the folder."""
        self._opened.close()

    @contextmanager
    def _folder_errors(self, what: str, advice: str) -> Iterator[None]:
        """Turns errors of SQLite, files and damaged rows into a `RunFolderError`."""
        try:
            yield
        except (sqlite3.Error, OSError, ValueError, TypeError) as error:
            reason = one_line(str(error))
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
                advice = "end the program that uses it, then run the same command again"
            raise RunFolderError(f"{self.path} cannot {what}: {reason}; {advice}") from error

    def _require_columns(self) -> None:
        """Refuses a folder whose trials have no digest of their table.

        Raises:
            ValueError: If the column is missing.
        """
        columns = {name for _, name, *_ in self._db.execute("PRAGMA table_info(trial)")}
        if "table_hash" not in columns:
            raise ValueError("an earlier dpaudit began it")

    def _holds_audit(self) -> bool:
        """Whether the store holds an audit. Reads all of it, to find damage before a run.

        Raises:
            RunFolderError: If the store is damaged.
        """
        with self._read_errors():
            [[verdict], *_] = self._db.execute("PRAGMA integrity_check(1)").fetchall()
            if verdict != "ok":
                raise ValueError(verdict)
            trials = 0
            for *row, blob in self._db.execute(f"SELECT {SMALL_COLUMNS}, features FROM trial"):
                vector_of(outcome_of(row), blob)
                trials += 1
            [audits] = self._db.execute("SELECT COUNT(*) FROM audit").fetchone()
            if trials and not audits:
                raise ValueError("its specification is gone")
        return bool(audits)

    def ensure_kept(self) -> None:
        """Makes sure that saved trials are still in the folder.

        Raises:
            RunFolderError: If the store was deleted or replaced while it was open.
        """
        if _identities(self.path) != self._files:
            raise RunFolderError(
                f"{self.path / STORE_FILE} was deleted or replaced while the run used it, so its "
                "trials are lost: run the same command again, and let nothing clean that folder up"
            )

    def _require_same_audit(self, spec: Mapping[str, Any], versions: Mapping[str, str]) -> None:
        """Stores the specification in a new folder; refuses another one in a used folder."""
        text = json.dumps(spec, sort_keys=True)
        self._db.execute(
            "INSERT OR IGNORE INTO audit VALUES (1, ?, ?)", (text, json.dumps(dict(versions)))
        )
        stored, stored_versions = self._db.execute(
            "SELECT spec_json, versions_json FROM audit"
        ).fetchone()
        there, here, installed = json.loads(stored), json.loads(text), json.loads(stored_versions)
        if there == here:
            self._compare_versions(installed, versions)
            return
        differing = list(dict.fromkeys(starmap(_describe_change, _list_changes(there, here))))[:3]
        other = [name for name in changed_keys(installed, versions) if name in installed]
        differing += [
            f"{name} is {installed[name]} there and {versions.get(name, ABSENT)} here"
            for name in other[:3]
        ]
        raise RunFolderError(
            f"{self.path} holds another audit: {'; '.join(differing)}. Give another `out`: adding "
            "to a run after its result was seen would void its confidence level"
        )

    def _compare_versions(self, there: Mapping[str, str], here: Mapping[str, str]) -> None:
        """Refuses other versions of libraries: one part of a run could differ from the rest."""
        changed = changed_keys(there, here)
        if changed:
            name = changed[0]
            raise RunFolderError(
                f"{self.path} was run with {name} {there.get(name, ABSENT)}, this is "
                f"{here.get(name, ABSENT)}: install that version to resume it, or give another "
                "`out`"
            )

    def save(self, *outcomes: Outcome) -> None:
        """Writes outcomes durably, all or none; a trial that is already stored stays as it is.

        Errors of the generator go to the log, with one traceback for each kind of error.

        Raises:
            RunFolderError: If the outcomes cannot be written.
        """
        self.ensure_kept()
        with self._folder_errors("take another trial", "fix that and run the same command again"):
            with self._db:  # commits, or rolls back
                self._db.execute("BEGIN IMMEDIATE")
                self._db.executemany(_INSERT, map(row_of, outcomes))
            for outcome in outcomes:
                if outcome.status is not TrialStatus.FINISHED:
                    self.last_failure = outcome
                if outcome.message:
                    self._log(outcome)

    def _log(self, outcome: Outcome) -> None:
        """Logs a failure, with its traceback unless the same error is in the log."""
        with open(self.log, "a", encoding="utf-8", opener=_open_private) as log:
            log.write(f"{printable(f'{outcome.trial.id} failed: {outcome.message}')}\n")
            if outcome.error not in self._logged:
                self._logged.add(outcome.error)
                log.write(f"{textwrap.indent(visible(outcome.traceback), '  ')}\n")

    def finished(self, trials: Iterable[Trial]) -> set[Trial]:
        """The trials among these that have an outcome here.

        Raises:
            RunFolderError: If the file is damaged.
        """
        with self._read_errors():
            return {trial for trial in trials if self._select(trial, "1") is not None}

    def count(self, role: Role, *, failed: bool = False) -> int:
        """Number of stored trials of a role, or of those that failed.

        Raises:
            RunFolderError: If the file is damaged.
        """
        with self._read_errors():
            [trials] = self._db.execute(
                "SELECT COUNT(*) FROM trial WHERE role = ? AND (status != ? OR ?)",
                (role.value, TrialStatus.FINISHED.value, not failed),
            ).fetchone()
        return int(trials)

    def outcomes(self, role: Role) -> StoredOutcomes:
        """The outcomes of one role, read on access, while the folder is open."""
        return StoredOutcomes(role, self)

    def outcome(self, trial: Trial) -> Outcome:
        """The whole outcome of one trial, with its features.

        Raises:
            KeyError: If the trial has no outcome.
            RunFolderError: If the file is damaged.
        """
        end = self.outcomes(trial.role)[trial]
        return Outcome(
            trial=trial,
            status=end.status,
            error=end.error,
            rows=end.rows,
            claimed=end.claimed,
            seconds=end.seconds,
            attempts=end.attempts,
            table=end.table,
            features=next(self.read_features([trial])) if end.finished else None,
        )

    def _select(self, trial: Trial, columns: str) -> Any:
        """Selects columns of one trial; None if it has no outcome."""
        return self._db.execute(
            f"SELECT {columns} FROM trial WHERE role = ? AND world = ? AND number = ?",
            (trial.role.value, trial.world.value, trial.number),
        ).fetchone()

    def read(self, trial: Trial) -> StoredOutcome | None:
        """How a trial ended; None if it has no outcome."""
        with self._read_errors():
            row = self._select(trial, SMALL_COLUMNS)
            return None if row is None else outcome_of(row)

    def read_all(self, role: Role) -> Iterator[StoredOutcome]:
        """How the trials of a role ended, by world and number."""
        with self._read_errors():
            for row in self._db.execute(
                f"SELECT {SMALL_COLUMNS} FROM trial WHERE role = ? ORDER BY world, number",
                (role.value,),
            ):
                yield outcome_of(row)

    def read_features(self, trials: Iterable[Trial]) -> Iterator[FloatArray]:
        """Reads the features of finished trials, one by one."""
        for trial in trials:
            with self._read_errors():
                row = self._select(trial, f"{SMALL_COLUMNS}, features")
                if row is None:
                    raise ValueError(f"trial {trial.id} is gone")
                *small, blob = row
                vector = vector_of(outcome_of(small), blob)
                if vector is None:
                    raise ValueError(f"trial {trial.id} has no features")
            yield vector

    def seconds(self, role: Role) -> float:
        """The total wall time of the stored trials of a role.

        Raises:
            RunFolderError: If the file is damaged.
        """
        with self._read_errors():
            [total] = self._db.execute(
                "SELECT TOTAL(seconds) FROM trial WHERE role = ?", (role.value,)
            ).fetchone()
        return float(total)

    def _read_errors(self) -> AbstractContextManager[None]:
        return self._folder_errors("be read", f"its {STORE_FILE} is damaged: give another `out`")


def changed_keys(there: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    """The keys, sorted, under which two JSON objects differ."""
    return [key for key in sorted({*there, *here}) if there.get(key) != here.get(key)]


def _list_changes(
    there: Mapping[str, Any], here: Mapping[str, Any], within: str = ""
) -> list[tuple[str, Any, Any]]:
    """Lists the differences of two JSON objects, down to their leaves: key, there, here."""
    changes = []
    for key in changed_keys(there, here):
        before, after, name = there.get(key), here.get(key), f"{within}{key}"
        if (
            isinstance(before, list)
            and isinstance(after, list)
            and _names(before) == _names(after) != []
        ):
            before, after = (
                {entry["name"]: entry for entry in entries} for entries in (before, after)
            )
        if isinstance(before, dict) and isinstance(after, dict) and SALTED not in {*before, *after}:
            changes += _list_changes(before, after, f"{name} ")
        else:
            changes.append((name, before, after))
    return changes


def _describe_change(key: str, was: Any, now: Any) -> str:
    """Describes a difference of two specifications for a reader, without digests."""
    if key.endswith((" source", " reached")):
        return "the code of the generator, of an attack or of what they import has changed"
    if key in _DIGESTED:
        return f"{_DIGESTED[key]} differs"
    return f"{key} is {_shortened(was)} there and {_shortened(now)} here"


def _names(value: Any) -> list[Any]:
    """The names in a list of attacks; empty for any other list."""
    return [entry["name"] for entry in value if isinstance(entry, dict) and "name" in entry]


def specification_of(path: Path) -> dict[str, Any]:
    """The specification of a run folder.

    Args:
        path: The run folder.

    Returns:
        The specification, as JSON, with salted digests in place of private values.

    Raises:
        RunFolderError: If the folder holds no run, or cannot be read.
    """
    file = path / STORE_FILE
    if not os.path.isfile(file):
        raise RunFolderError(f"{path} holds no {STORE_FILE}: give the run folder of an audit")
    try:
        with closing(sqlite3.connect(file)) as db:
            [text] = db.execute("SELECT spec_json FROM audit").fetchone()
        specification: dict[str, Any] = parse_json(text)
    except (sqlite3.Error, ValueError, TypeError) as error:
        reason = one_line(str(error))
        raise RunFolderError(f"{file} cannot be read: {reason}; it is damaged") from error
    return specification


def _identities(path: Path) -> list[tuple[int, int] | None]:
    """Device and inode of the store and its write-ahead log; None for a missing file."""
    identities: list[tuple[int, int] | None] = []
    for file in (path / STORE_FILE, path / f"{STORE_FILE}-wal"):
        try:
            status = file.stat()
            identities.append((status.st_dev, status.st_ino))
        except OSError:
            identities.append(None)
    return identities


def _keep_private(path: Path) -> None:
    """Makes the files of the store readable by their owner only."""
    store = path / STORE_FILE
    if not store.exists():  # else SQLite would create it for all to read
        os.close(os.open(store, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE))
    for file in path.glob(f"{STORE_FILE}*"):  # including a write-ahead log that a crash left
        if file.is_file():
            file.chmod(PRIVATE_FILE)


def _lock(path: Path) -> IO[bytes]:
    """Makes the run folder if necessary, and locks it; closing the file unlocks it."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = open(path / "lock", "ab", opener=_open_private)  # noqa: SIM115 - held by the caller
    except OSError as error:
        reason = error.strerror or str(error)
        raise RunFolderError(
            f"run folder {path} cannot be written: {reason}; give another `out`"
        ) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise RunFolderError(
            f"another process is using {path}: wait for it, or give another `out`"
        ) from None
    except OSError as error:
        lock.close()
        raise RunFolderError(
            f"run folder {path} cannot be locked: {error.strerror}; give an `out` on a local disk"
        ) from None
    return lock


def _open_private(name: str, flags: int) -> int:
    """An `opener` for files that only their owner may read."""
    return os.open(name, flags, PRIVATE_FILE)


def _shortened(value: Any) -> str:
    named = _names(value) if isinstance(value, list) else []
    return clipped(", ".join(named) or json.dumps(value), 60)


SALT_FILE = "salt"
"""Name of the file in a run folder that has its salt."""
SALTED = "salted_sha256"
"""Key of a digest in a stored specification."""
PRIVATE_FILE = 0o600
"""Permissions of files that only the owner of a run folder may read."""


class Private(NamedTuple):
    """A value of a specification that reveals something about records.

    Attributes:
        value: The value, as JSON.
        public: Its public part.
    """

    value: Any
    public: Mapping[str, Any] = {}


class Salt(NamedTuple):
    """The salt of one run folder.

    Attributes:
        text: 64 hexadecimal digits.
    """

    text: str

    def digest(self, value: Any) -> str:
        """The salted digest of a value, as JSON: HMAC-SHA256, hexadecimal."""
        text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
        return hmac.digest(bytes.fromhex(self.text), text.encode(), "sha256").hex()

    def sealed(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """A specification with every private value replaced by its salted digest."""
        return {key: self._seal(value) for key, value in spec.items()}

    def _seal(self, value: Any) -> Any:
        if isinstance(value, Private):
            return {**value.public, SALTED: self.digest(value.value)}
        return self.sealed(value) if isinstance(value, Mapping) else value


def salt_of(folder: Path) -> Salt:
    """The salt of a run folder.

    Raises:
        RunFolderError: If it is lost or damaged.
    """
    try:
        text = (folder / SALT_FILE).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        text = ""
    if not re.fullmatch("[0-9a-f]{64}", text):
        raise RunFolderError(
            f"{folder} lacks its file {SALT_FILE!r}, so nothing shows that it belongs to this "
            "audit: put that file back, or give another `out`"
        )
    return Salt(text)


def new_salt(folder: Path) -> Salt:
    """Makes the salt of a new run folder.

    Raises:
        OSError: If it cannot be written.
    """
    salt = Salt(secrets.token_hex(32))
    write_whole(folder / SALT_FILE, f"{salt.text}\n", mode=PRIVATE_FILE)
    return salt
