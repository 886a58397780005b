"""Runs trials: trains shadow models, samples them, keeps the attacks' features, drops the rest.

What a model discloses in addition to its synthetic rows is taken before the model is dropped.
"""

from __future__ import annotations

import gc
import pickle
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, Final, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.errors import ClaimError, RowCountError, TrialError
from dpaudit.formatting import whole_traceback
from dpaudit.game.features import (
    NOTHING,
    SeenTable,
    digest_of,
    features_of_table,
    features_of_tables,
)
from dpaudit.game.meter import PRECISION, CallCost, measure_cost, peak_memory
from dpaudit.game.trial import (
    ModelClaim,
    Outcome,
    Payload,
    Role,
    Trial,
    TrialStatus,
    message_of,
    reason_of,
)
from dpaudit.model.claim import ConcentratedClaim, CurveClaim, GaussianClaim, Promise
from dpaudit.model.encoding import values_of_table
from dpaudit.model.linked_tables import LinkedTables
from dpaudit.model.schema import Schema, canonical_table
from dpaudit.plugins.access import COSTS, Disclosed, Disclosure
from dpaudit.plugins.foreign import patches_apart
from dpaudit.plugins.named import train
from dpaudit.plugins.protocols import (
    BatchGenerator,
    FloatArray,
    GameView,
    Generator,
    Model,
    World,
    trains_many,
)
from dpaudit.plugins.release import (
    accept,
    accept_columns,
    accept_stack,
    accept_values,
    release_facts,
    units_together,
    with_units,
)
from dpaudit.seeds import globals_restored, rng_of, seed_globals, seeded_globals


def run_trial(payload: Payload, trial: Trial) -> Outcome:
    """Runs one trial on its own; see `run_batch`."""
    return run_batch(payload, [trial])[0]


def run_batch(payload: Payload, trials: Sequence[Trial]) -> list[Outcome]:
    """Runs trials of one role; any error of the generator is their outcome.

    A `BatchGenerator` trains their models together; if that fails, one at a time, to find the trial
    that made it fail. Other generators train one model after another, each as if it were alone. If
    an attack sees what trainings cost, a model of each world has been trained and dropped before:
    the first trainings of a process load modules and fill caches.

    A replay trains the same model in the other way: `fit` alone, on the trial's own table. It shows
    whether a model trained with others depends on them, or on the row that it should lack.

    Args:
        payload: The run.
        trials: The trials; those of a `BatchGenerator` have models of one shape
            (`BatchGenerator.batch_key`) and one number of requested rows.

    Returns:
        The outcomes in the order of the trials: features, or the reason of the failure.

    Raises:
        AttackError: If an attack fails on a valid table.
    """
    start = perf_counter()
    try:
        with patches_apart():
            generator = pickle.loads(payload.generators[trials[0].role])
            is_alone = trials[0].role is Role.REPLAY or payload.is_timed
            is_batched = not is_alone and trains_many(generator)
    except BaseException as error:  # noqa: BLE001 - workers get no Ctrl-C: the generator raised it
        return [_failed_outcome(trial, error, start) for trial in trials]
    if is_batched:
        return _run_together(payload, trials, generator)
    if not payload.is_timed:
        return _run_in_turn(payload, trials, generator)
    if len(trials) > 1:
        return [run_trial(payload, trial) for trial in trials]
    _warm_up(payload, trials[0].role)
    return _run_in_turn(payload, trials, generator)


def _run_together(
    payload: Payload, trials: Sequence[Trial], generator: BatchGenerator
) -> list[Outcome]:
    """Runs trials whose models are trained together; one at a time if that fails."""
    start, game = perf_counter(), payload.game
    schema, n_rows = game.view.schema, game.rows_requested(trials[0].world)
    try:
        with seeded_globals(payload.seed(trials[0], "globals")), patches_apart():
            table = schema.handed(game.data.copy())
            models = generator.fit_many(table, [payload.job(trial) for trial in trials])
            raw = models.sample_many(n_rows, [payload.seed(trial, "sample") for trial in trials])
        values = accept_stack(raw, schema, n_rows, models=len(trials))
    except BaseException as error:  # noqa: BLE001 - as above
        if len(trials) == 1:
            return [_failed_outcome(trials[0], error, start)]
        return [run_trial(payload, trial) for trial in trials]
    releases: dict[int, _Release] = {}
    failed: dict[int, Outcome] = {}
    for position, trial in enumerate(trials):
        try:
            accept_values(values[position], schema)
            with patches_apart():
                promise = getattr(models[position], "claim", None)
            claimed = _claim_for(promise, game.view)
            disclosures = disclosed(models[position], payload.seen, game.view)
            seen = SeenTable(values[position], disclosed=disclosures)
            releases[position] = _Release(trial, seen, digest_of(values[position]), claimed)
        except BaseException as error:  # noqa: BLE001 - as above
            failed[position] = _failed_outcome(trial, error, start)
    outcomes = _outcomes_of(payload, [*releases.values()])
    ended = failed | dict(zip(releases, outcomes, strict=True))
    seconds = (perf_counter() - start) / len(trials)
    return [replace(ended[position], seconds=seconds) for position in range(len(trials))]


def _run_in_turn(
    payload: Payload, trials: Sequence[Trial], generator: Generator | None
) -> list[Outcome]:
    """Runs trials whose models are trained one after another, with features of all at once.

    The given generator trains the first model; each other one has a generator loaded for it.
    """
    with globals_restored():
        ends = [
            _release_with_torch_seeded(payload, trial, None if place else generator)
            for place, trial in enumerate(trials)
        ]
    outcomes = iter(_outcomes_of(payload, [end for end in ends if isinstance(end, _Release)]))
    return [next(outcomes) if isinstance(end, _Release) else end for end in ends]


class _Release(NamedTuple):
    """A synthetic table whose features have not been computed yet.

    Attributes:
        trial: The trial.
        seen: What attacks see of its model.
        digest: Its digest.
        claimed: What the model itself claims.
        seconds: Wall time of training and sampling; 0 if that is not known by trial.
    """

    trial: Trial
    seen: SeenTable
    digest: bytes
    claimed: ModelClaim | None
    seconds: float = 0.0


def _outcomes_of(payload: Payload, releases: Sequence[_Release]) -> list[Outcome]:
    """The outcomes of trials whose tables are there."""
    start = perf_counter()
    seen = [release.seen for release in releases]
    features = features_of_tables(seen, payload.attacks, payload.game.view)
    seconds = (perf_counter() - start) / max(1, len(releases))
    return [
        Outcome(
            trial=release.trial,
            status=TrialStatus.FINISHED,
            table=release.digest,
            features=vector,
            claimed=release.claimed,
            seconds=release.seconds + seconds,
        )
        for release, vector in zip(releases, features, strict=True)
    ]


def _release_with_torch_seeded(
    payload: Payload, trial: Trial, generator: Generator | None = None
) -> _Release | Outcome:
    """Trains and samples; a second time if the generator was the first to import torch."""
    torch_was_loaded = "torch" in sys.modules
    release = _release_of(payload, trial, generator)
    if not torch_was_loaded and "torch" in sys.modules:
        # Torch was imported while training, so its first draws were not seeded: train again.
        leave_torch_one_thread()
        with globals_restored():
            release = _release_of(payload, trial)
    return release


_warm: set[tuple[int, str, Role]] = set()
"""Roles of audits for which this process has trained and dropped models."""
_DROPPED: Final = -1
"""The number of a trial whose outcome is dropped."""


def _warm_up(payload: Payload, role: Role) -> None:
    """Trains a model of each world and drops it, unless this process has done so.

    Both worlds, so that code compiled for a number of rows is ready for both.
    """
    audit = (payload.root, payload.audit, role)
    if audit in _warm:
        return
    _warm.add(audit)
    for world in World:
        _run_in_turn(payload, [Trial(role, world, _DROPPED)], None)
    gc.collect()
    gc.freeze()  # else the collection before each training would visit every module


class TimedModel(NamedTuple):
    """A trial, and the further cost of a larger table from its model.

    Attributes:
        outcome: How the trial ended.
        memory: Peak memory of this process and its descendants in bytes, before the larger table;
            None if unknown.
        more: Further seconds that the larger table and its features take, compared with those of
            the trial; None without a larger table, or if the model fails to give one.
    """

    outcome: Outcome
    memory: int | None = None
    more: float | None = None


def run_timed(payload: Payload, trial: Trial, *, larger: int | None) -> TimedModel:
    """Runs a trial on its own, then asks its model for a larger table too.

    Args:
        payload: The run.
        trial: The trial.
        larger: Rows of the larger table; None to ask for no larger table.

    Raises:
        AttackError: If an attack fails on a valid table.
    """
    start = perf_counter()
    try:
        with patches_apart():
            generator = _KeepsModel(pickle.loads(payload.generators[trial.role]))
    except BaseException as error:  # noqa: BLE001 - as above
        return TimedModel(_failed_outcome(trial, error, start))
    [outcome] = _run_in_turn(payload, [trial], generator)
    memory = peak_memory()
    if outcome.status is not TrialStatus.FINISHED or larger is None:
        return TimedModel(outcome, memory)
    seconds = _sampling_seconds(
        payload, trial, generator.model, payload.game.rows_requested(trial.world)
    )
    larger_seconds = _sampling_seconds(payload, trial, generator.model, larger)
    if seconds is None or larger_seconds is None:
        return TimedModel(outcome, memory)
    return TimedModel(outcome, memory, more=max(0.0, larger_seconds - seconds))


class _KeepsModel:
    """A generator that keeps the last model it trained."""

    model: Model

    def __init__(self, generator: Generator) -> None:
        self._generator = generator

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> Model:
        self.model = train(self._generator, data, seed=seed)
        return self.model


def _sampling_seconds(payload: Payload, trial: Trial, model: Model, rows: int) -> float | None:
    """Seconds for a table of `rows` rows and its features; None if the model fails."""
    start, view, written = perf_counter(), replace(payload.game.view, n_rows=rows), None
    try:
        with seeded_globals(payload.seed(trial, "globals")), patches_apart():
            raw = model.sample(rows, seed=payload.seed(trial, "sample"))
        table = accept(raw, view.schema, rows)
        disclosures = {**disclosed(model, payload.seen, view), **NO_COST}
        if payload.sees_release:
            with patches_apart():
                columns = {name: table[name].to_numpy() for name in view.schema.names}
                written = release_facts(raw, columns, view.schema)
    except BaseException:  # noqa: BLE001 - as above
        return None
    features_of_table(table, payload.attacks, view, disclosures, written=written)
    return perf_counter() - start


def _train_and_sample(
    payload: Payload, trial: Trial, generator: Generator
) -> tuple[Model, pd.DataFrame, Disclosed]:
    """Trains a model on the trial's table and samples it; any error is the trial's outcome.

    Returns:
        The model, its synthetic table as released, and the cost of both if an attack sees it.
    """
    game, seed = payload.game, payload.seed(trial, "sample")
    n_rows = game.rows_requested(trial.world)
    meter = _Meter(generator) if payload.is_timed else None
    trained = meter or generator
    table = game.view.schema.handed(game.table(trial.world, trial.number))
    model = train(trained, table, seed=payload.seed(trial, "fit"))
    if meter is None:
        return model, model.sample(n_rows, seed=seed), NOTHING
    raw, sampling = measure_cost(lambda: model.sample(n_rows, seed=seed))
    noise = rng_of(payload.seed(trial, "cost"), "noise").random(len(COSTS))
    cost = np.array([*meter.training, *sampling]) + noise * PRECISION
    return model, raw, {Disclosure.COST: cost}


class _Meter:
    """A generator that measures what its last training cost, without the copy of the table."""

    training: CallCost

    def __init__(self, generator: Generator) -> None:
        self._generator = generator

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> Model:
        model, self.training = measure_cost(lambda: self._generator.fit(data, seed=seed))
        return cast(Model, self._generator) if model is None else model


def leave_torch_one_thread() -> None:
    """Sets torch back to one thread if it is loaded: a generator may have given it more."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.get_num_threads() != 1:
        torch.set_num_threads(1)


def _release_of(
    payload: Payload, trial: Trial, generator: Generator | None = None
) -> _Release | Outcome:
    """Trains a model on its own and samples it; any error is the outcome of the trial.

    Without a generator a fresh one is loaded.
    """
    start, game = perf_counter(), payload.game
    schema, n_rows = game.view.schema, game.rows_requested(trial.world)
    written = None
    try:
        seed = payload.seed(trial, "globals")
        if generator is None:
            seed_globals(seed)  # else it might draw from what the trial before has left
            with patches_apart():
                generator = pickle.loads(payload.generators[trial.role])
        seed_globals(seed)
        with patches_apart():
            model, raw, cost = _train_and_sample(payload, trial, generator)
            raw = units_together(raw, schema)
            promise = getattr(model, "claim", None)
        columns, values, table = _read(raw, schema, n_rows)
        claimed = _claim_for(promise, game.view)
        disclosures = {**disclosed(model, payload.seen, game.view), **cost}
        digest = digest_of(values, table)
        if trains_many(generator) and not payload.is_timed:  # a replay: bit-identical to its trial
            accept_values(values, schema)
            seen = SeenTable(values, disclosed=disclosures)
        else:
            if payload.sees_release:
                with patches_apart():
                    written = release_facts(raw, columns, schema)
            table = None if table is None else with_units(table, raw, schema)
            seen = SeenTable(values, table, written, disclosures)
    except BaseException as error:  # noqa: BLE001 - as above
        return _failed_outcome(trial, error, start)
    return _Release(trial, seen, digest, claimed, perf_counter() - start)


def _read(
    raw: object, schema: Schema, n_rows: int
) -> tuple[Mapping[str, npt.NDArray[Any]], FloatArray, pd.DataFrame | None]:
    """Reads what a generator returned, as `accept` does.

    A table of numbers needs no frame, which takes pandas longer than a fast mechanism.

    Returns:
        The columns of one table by name, the values [n, d], and the canonical table; None if
        nothing is lost in its values.
    """
    if isinstance(schema, LinkedTables):
        frame = accept(raw, schema, n_rows)
        return {}, values_of_table(frame, schema), frame
    columns = accept_columns(raw, schema, n_rows)
    if schema.unit is None and all(column.kind.numeric for column in schema.columns):
        return columns, np.stack([*columns.values()], axis=-1, dtype=np.float64), None
    table = canonical_table(columns)
    return columns, values_of_table(table, schema), table


def _failed_outcome(trial: Trial, error: BaseException, start: float) -> Outcome:
    """The outcome of a trial that ended with an error."""
    return Outcome(
        trial=trial,
        status=TrialStatus.FAILED,
        error=reason_of(error),
        rows=error.rows if isinstance(error, RowCountError) else None,
        message=message_of(error),
        traceback=whole_traceback(error),
        seconds=perf_counter() - start,
    )


def _claim_for(claim: Promise | None, game: GameView) -> ModelClaim | None:
    """The claim of a fitted model for the neighbours of the game; None if it implies none."""
    if claim is None or isinstance(claim, GaussianClaim | ConcentratedClaim | CurveClaim):
        return None  # only epsilon and delta are compared between models
    unit = game.schema.unit
    if claim.unit != (None if unit is None else unit.column):
        return None
    try:
        restated = claim.under(game.neighbours)
    except ClaimError:
        return None
    return ModelClaim(float(restated.epsilon), float(restated.delta))


COMPARED: Final = 256
"""Other records that a discriminator scores with the target, evenly spaced in the table."""
_METHODS: Final = {
    Disclosure.DISCRIMINATOR: "discriminate",
    Disclosure.PARAMETERS: "parameters",
    Disclosure.RELEASED: "released",
}
NO_COST: Final[Disclosed] = {Disclosure.COST: np.zeros(len(COSTS))}
"""The cost in place of one that was not measured."""


def disclosed(model: object, seen: Collection[Disclosure], game: GameView) -> Disclosed:
    """Asks a model for its disclosures to attacks; any error it raises is the trial's outcome.

    The records that a discriminator scores are the same in both worlds.

    Args:
        model: The fitted model.
        seen: The disclosures that attacks see.
        game: The target, other records and the names of released facts.

    Returns:
        The disclosures that attacks see, without those that are measured.

    Raises:
        TrialError: If the model lacks a method, or its numbers have another shape or are not
            finite.
    """
    return {kind: _ask(model, kind, game) for kind in _METHODS if kind in seen}


def _ask(model: object, kind: Disclosure, game: GameView) -> FloatArray:
    """Asks a model for one kind of disclosure, and checks its numbers."""
    name = _METHODS[kind]
    method = getattr(model, name, None)
    if not callable(method):
        raise TrialError(f"the model has no method {name}, which its generator says it has")
    arguments, length = [], None
    if kind is Disclosure.DISCRIMINATOR:
        rows = _rows_to_discriminate(game)
        arguments, length = [rows], len(rows)
    elif kind is Disclosure.RELEASED:
        length = len(game.released_facts)
    with patches_apart():
        values = np.array(method(*arguments), dtype=np.float64)
    if values.ndim != 1 or length not in (None, len(values)):
        wanted = "a flat array" if length is None else f"{length} numbers"
        raise TrialError(f"{name} must give {wanted}, it gave shape {values.shape}")
    if not np.isfinite(values).all():
        raise TrialError(f"{name} gave numbers that are not finite")
    return values


def _rows_to_discriminate(game: GameView) -> pd.DataFrame:
    """The target and other records, the same in both worlds."""
    others = game.others
    chosen = np.unique(np.linspace(0, len(others) - 1, min(COMPARED, len(others))).astype(int))
    return game.schema.canonical(pd.concat([game.target, others.iloc[chosen]]))
