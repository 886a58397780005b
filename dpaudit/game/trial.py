"""One trial: train one shadow model in one world, sample it, take the attacks' features."""

from __future__ import annotations

import pickle
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

import numpy as np
import pandas as pd

from dpaudit.adapt import train
from dpaudit.claim import Neighbours, PrivacyClaim
from dpaudit.errors import AttackError, ClaimError, SchemaError, TrialError
from dpaudit.game.playable import Playable
from dpaudit.protocols import FloatArray, GameView, Generator, World
from dpaudit.schema import Schema, as_numbers
from dpaudit.seeds import Stream, seeded_globals


class Role(StrEnum):
    """What a trial is played for."""

    NULL_CONTROL = "null-control"
    POSITIVE_CONTROL = "positive-control"
    AUDIT = "audit"
    REPLAY = "replay"
    ONE_RUN = "one-run"


class Trial(NamedTuple):
    """Names one trial; its random streams follow from the name."""

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


class TakesFeatures(Protocol):
    """The part of an attack that sees a synthetic table, and so runs in the trial."""

    def features(self, table: pd.DataFrame, game: GameView) -> FloatArray:
        """Features [f] of one synthetic table in canonical form (`Schema.canonical`)."""
        ...


class Status(StrEnum):
    """How a trial ended."""

    FINISHED = "finished"
    FAILED = "failed"
    CRASHED = "crashed"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a trial gave.

    Attributes:
        trial: Which one.
        status: How it ended.
        features: Features of all attacks, concatenated [f]; None unless finished.
        error: Why it failed, in one line; empty if it finished.
        claimed_epsilon: Epsilon that the fitted model itself claims, if it claims one.
        seconds: Wall time of training, sampling and features.
        attempts: How often it was started.
    """

    trial: Trial
    status: Status
    features: FloatArray | None = None
    error: str = ""
    claimed_epsilon: float | None = None
    seconds: float = 0.0
    attempts: int = 1


@dataclass(frozen=True, kw_only=True)
class Payload:
    """What a worker needs to play any trial of a run.

    Attributes:
        game: What is played.
        generators: One pickled generator per role; each trial unpickles a fresh one, so that no
            state passes from one shadow model to the next.
        attacks: Take features of every synthetic table.
        root: Root seed.
        audit: Identifies the audit in the names of random streams.
    """

    game: Playable
    generators: dict[Role, bytes]
    attacks: Sequence[TakesFeatures]
    root: int
    audit: str


def play(payload: Payload, trial: Trial) -> Outcome:
    """Plays one trial; whatever the generator does wrong is its outcome.

    Args:
        payload: The run.
        trial: Which trial.

    Returns:
        The outcome: features, or why there are none.

    Raises:
        AttackError: If an attack fails on a valid table.
    """
    torch_was_loaded = "torch" in sys.modules
    outcome = _played(payload, trial)
    if not torch_was_loaded and "torch" in sys.modules:
        # Torch came in while training, so its first draws were not seeded: play it again.
        outcome = _played(payload, trial)
    return outcome


def _played(payload: Payload, trial: Trial) -> Outcome:
    start = time.perf_counter()
    try:
        synthetic = _synthesise(payload, trial)
    except BaseException as error:  # noqa: BLE001 - a worker is sent no Ctrl-C: it is the generator's
        return Outcome(
            trial=trial,
            status=Status.FAILED,
            error=_reason(error),
            seconds=time.perf_counter() - start,
        )
    features = take_features(synthetic.table, payload)
    return Outcome(
        trial=trial,
        status=Status.FINISHED,
        features=features,
        claimed_epsilon=synthetic.claimed_epsilon,
        seconds=time.perf_counter() - start,
    )


def _reason(error: BaseException) -> str:
    """Why a trial failed: one line of text that any store and any terminal can hold."""
    name = type(error).__name__
    try:
        text = str(error) if isinstance(error, TrialError) else f"{name}: {error}"
    except Exception:  # noqa: BLE001 - the generator's exception cannot say what it is
        text = name
    printable = text.encode("utf-8", "backslashreplace").decode()
    return " ".join(printable.split())[:300]


def accept(table: object, schema: Schema, n_rows: int) -> pd.DataFrame:
    """Checks what a generator returned and brings it into canonical form.

    Values outside the schema's bounds or categories are allowed (they are evidence); a table that
    cannot be read as one of `n_rows` records with the schema's columns is not.

    Args:
        table: What `sample` returned.
        schema: The schema.
        n_rows: Rows that were requested.

    Returns:
        The canonical table.

    Raises:
        TrialError: If it is not such a table; says how.
    """
    if not isinstance(table, pd.DataFrame):
        raise TrialError(f"sample returned {type(table).__name__}, not a pandas DataFrame")
    problems = schema.column_problems(table)
    if problems:
        raise TrialError(f"wrong columns: {'; '.join(problems[:3])}")
    if len(table) != n_rows:
        raise TrialError(f"wrong row count: {len(table)} rows instead of {n_rows}")
    for column in schema.columns:
        values = table[column.name]
        if not column.missing and values.isna().any():
            raise TrialError(f"column {column.name!r} has missing values (NaN)")
        if column.kind.numeric and np.isinf(as_numbers(values)).any():
            raise TrialError(f"column {column.name!r} has infinite values")
    return schema.canonical(table)


class _Synthetic(NamedTuple):
    table: pd.DataFrame
    claimed_epsilon: float | None


def _synthesise(payload: Payload, trial: Trial) -> _Synthetic:
    game = payload.game
    n_rows = game.rows_requested(trial.world)
    seeds = {
        purpose: trial.seed(purpose, root=payload.root, audit=payload.audit)
        for purpose in ("fit", "sample", "globals")
    }
    generator: Generator = pickle.loads(payload.generators[trial.role])
    with seeded_globals(seeds["globals"]):
        model = train(generator, game.table(trial.world, trial.number), seed=seeds["fit"])
        raw = model.sample(n_rows, seed=seeds["sample"])
    try:
        table = accept(raw, game.view.schema, n_rows)
    except SchemaError as error:
        raise TrialError(str(error)) from None
    return _Synthetic(table, _claimed_epsilon(model, game.view.neighbours))


def _claimed_epsilon(model: object, neighbours: Neighbours) -> float | None:
    """What a fitted model itself claims for the neighbours played; None if nothing follows."""
    claim: PrivacyClaim | None = getattr(model, "claim", None)
    if claim is None:
        return None
    try:
        return float(claim.under(neighbours).epsilon)
    except ClaimError:
        return None


def take_features(table: pd.DataFrame, payload: Payload) -> FloatArray:
    """The features of all attacks of one canonical table, concatenated.

    Raises:
        AttackError: If an attack raises, or gives something that is not finite.
    """
    parts = []
    for attack in payload.attacks:
        name = type(attack).__name__
        try:
            part = np.asarray(attack.features(table, payload.game.view), dtype=np.float64)
        except Exception as error:
            raise AttackError(f"attack {name} failed: {type(error).__name__}: {error}") from error
        if part.ndim != 1 or not np.isfinite(part).all():
            raise AttackError(f"attack {name} must give a flat array of finite features")
        parts.append(part)
    return np.concatenate(parts)
