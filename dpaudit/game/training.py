"""Runs trials: trains shadow models, samples them, keeps the attacks' features, drops the rest.

A fitted model's disclosures, in addition to its synthetic rows, are taken before it is dropped.
"""

from __future__ import annotations

import gc
import pickle
import sys
from collections.abc import Collection, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Final, NamedTuple, cast

import numpy as np
import pandas as pd

from dpaudit.errors import ClaimError, RowCountError, TrialError
from dpaudit.formatting import whole_traceback
from dpaudit.game.features import NOTHING, digest_of, features_of_table, features_of_values
from dpaudit.game.meter import PRECISION, CallCost, metered, peak_memory
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
from dpaudit.plugins.access import COSTS, Disclosed, Disclosure
from dpaudit.plugins.adapt import train
from dpaudit.plugins.foreign import patches_apart
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
    accept_stack,
    accept_values,
    release_facts,
    units_together,
    with_units,
)
from dpaudit.seeds import rng_of, seeded_globals


def run_trial(payload: Payload, trial: Trial) -> Outcome:
    """Runs one trial on its own; see `run_batch`."""
    return run_batch(payload, [trial])[0]


def run_batch(payload: Payload, trials: Sequence[Trial]) -> list[Outcome]:
    """Runs trials of one role; any error of the generator is their outcome.

    A `BatchGenerator` trains their models together; if that fails, one at a time, to find the trial
    that made it fail. Where an attack sees what trainings cost, each model is trained alone, after
    one of each world that is dropped: the first ones of a process load modules and fill caches.

    A replay trains the same model the other way: `fit` on the trial's own table,
    alone. It shows whether a model trained with others depends on them, or on the row that it
    should lack.

    Args:
        payload: The run.
        trials: Which trials; models of one shape (`BatchGenerator.batch_key`) that are asked for
            one number of rows.

    Returns:
        The outcomes in the order of the trials: features, or why there are none.

    Raises:
        AttackError: If an attack fails on a valid table.
    """
    start = perf_counter()
    try:
        with patches_apart():
            generator = pickle.loads(payload.generators[trials[0].role])
            alone = trials[0].role is Role.REPLAY or payload.is_timed
            together = not alone and trains_many(generator)
    except BaseException as error:  # noqa: BLE001 - a worker is sent no Ctrl-C: it is the generator's
        return [_failed(trial, error, start) for trial in trials]
    if together:
        return _together(payload, trials, generator)
    if len(trials) == 1:
        if payload.is_timed:
            _warm_up(payload, trials[0].role)
        return [_alone(payload, trials[0], generator)]
    return [run_trial(payload, trial) for trial in trials]


def _together(
    payload: Payload, trials: Sequence[Trial], generator: BatchGenerator
) -> list[Outcome]:
    start, game = perf_counter(), payload.game
    schema, n_rows = game.view.schema, game.rows_requested(trials[0].world)
    try:
        with seeded_globals(payload.seed(trials[0], "globals")), patches_apart():
            models = generator.fit_many(game.data.copy(), [payload.job(trial) for trial in trials])
            raw = models.sample_many(n_rows, [payload.seed(trial, "sample") for trial in trials])
        values = accept_stack(raw, schema, n_rows, models=len(trials))
    except BaseException as error:  # noqa: BLE001 - as above
        if len(trials) == 1:
            return [_failed(trials[0], error, start)]
        return [run_trial(payload, trial) for trial in trials]
    claims: dict[int, ModelClaim | None] = {}
    shown: list[Disclosed] = []
    failed: dict[int, Outcome] = {}
    for position, trial in enumerate(trials):
        try:
            accept_values(values[position], schema)
            claimed = _claimed(models[position], game.view)
            shown.append(disclosed(models[position], payload.seen, game.view))
            claims[position] = claimed
        except BaseException as error:  # noqa: BLE001 - as above
            failed[position] = _failed(trial, error, start)
    if failed:
        values = values[list(claims)]
    vectors = features_of_values(values, payload.attacks, game.view, shown) if claims else []
    digests = [digest_of(own) for own in values]
    seconds = (perf_counter() - start) / len(trials)
    ended = failed | {
        position: Outcome(
            trial=trials[position],
            status=TrialStatus.FINISHED,
            table=digest,
            features=vector,
            claimed=claimed,
        )
        for (position, claimed), digest, vector in zip(
            claims.items(), digests, vectors, strict=True
        )
    }
    return [replace(ended[position], seconds=seconds) for position in range(len(trials))]


def _alone(payload: Payload, trial: Trial, generator: Generator) -> Outcome:
    torch_was_loaded = "torch" in sys.modules
    outcome = _trained(payload, trial, generator)
    if not torch_was_loaded and "torch" in sys.modules:
        # Torch came in while training, so its first draws were not seeded: run it again.
        leave_torch_one_thread()
        outcome = run_trial(payload, trial)
    return outcome


_warm: set[tuple[int, str, Role]] = set()
"""Roles of audits that this process has trained models for."""
_NOBODYS: Final = -1
"""The number of a trial whose outcome is dropped."""


def _warm_up(payload: Payload, role: Role) -> None:
    """Trains a model of each world and drops it, unless this process has done so.

    Both worlds: what is compiled for a number of rows is then there for both.
    """
    audit = (payload.root, payload.audit, role)
    if audit in _warm:
        return
    _warm.add(audit)
    for world in World:
        with patches_apart():
            generator = pickle.loads(payload.generators[role])
        _trained(payload, Trial(role, world, _NOBODYS), generator)
    gc.collect()
    gc.freeze()  # else the collection before each training goes through every module


class TimedModel(NamedTuple):
    """A trial, and what a larger table of its model takes.

    Attributes:
        outcome: How the trial ended.
        memory: Peak memory of this process and its descendants in bytes, before the larger table;
            None if unknown.
        more: Seconds by which sampling the larger table and its features take longer than those of
            the trial; None if there is none, or the model does not give it.
    """

    outcome: Outcome
    memory: int | None = None
    more: float | None = None


def run_timed(payload: Payload, trial: Trial, *, larger: int | None) -> TimedModel:
    """Runs a trial on its own, then asks its model for a larger table too.

    Args:
        payload: The run.
        trial: Which trial.
        larger: Rows of the larger table; None for none.

    Raises:
        AttackError: If an attack fails on a valid table.
    """
    start = perf_counter()
    try:
        with patches_apart():
            kept = _Keeping(pickle.loads(payload.generators[trial.role]))
    except BaseException as error:  # noqa: BLE001 - as above
        return TimedModel(_failed(trial, error, start))
    outcome = _alone(payload, trial, kept)
    memory = peak_memory()
    if outcome.status is not TrialStatus.FINISHED or larger is None:
        return TimedModel(outcome, memory)
    usual = _sampling_seconds(payload, trial, kept.model, payload.game.rows_requested(trial.world))
    more = _sampling_seconds(payload, trial, kept.model, larger)
    if usual is None or more is None:
        return TimedModel(outcome, memory)
    return TimedModel(outcome, memory, more=max(0.0, more - usual))


class _Keeping:
    """A generator that keeps the model that it trained last."""

    model: Model

    def __init__(self, generator: Generator) -> None:
        self._generator = generator

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> Model:
        self.model = train(self._generator, data, seed=seed)
        return self.model


def _sampling_seconds(payload: Payload, trial: Trial, model: Model, rows: int) -> float | None:
    """Seconds that a table of so many rows and its features take; None if the model fails."""
    start, view, written = perf_counter(), replace(payload.game.view, n_rows=rows), None
    try:
        with seeded_globals(payload.seed(trial, "globals")), patches_apart():
            raw = model.sample(rows, seed=payload.seed(trial, "sample"))
        table = accept(raw, view.schema, rows)
        shown = {**disclosed(model, payload.seen, view), **NO_COST}
        if payload.sees_release:
            with patches_apart():
                written = release_facts(raw, table, view.schema)
    except BaseException:  # noqa: BLE001 - as above
        return None
    features_of_table(table, payload.attacks, view, shown, written=written)
    return perf_counter() - start


def _made(
    payload: Payload, trial: Trial, generator: Generator
) -> tuple[Model, pd.DataFrame, Disclosed]:
    """Trains a model on the trial's table and samples it; any error is the trial's outcome.

    Returns:
        The model, its synthetic table as it came, and what both cost if an attack sees that.
    """
    game, seed = payload.game, payload.seed(trial, "sample")
    n_rows = game.rows_requested(trial.world)
    meter = _Meter(generator) if payload.is_timed else None
    trained = meter or generator
    table = game.view.schema.handed(game.table(trial.world, trial.number))
    model = train(trained, table, seed=payload.seed(trial, "fit"))
    if meter is None:
        return model, model.sample(n_rows, seed=seed), NOTHING
    raw, sampling = metered(lambda: model.sample(n_rows, seed=seed))
    noise = rng_of(payload.seed(trial, "cost"), "noise").random(len(COSTS))
    cost = np.array([*meter.training, *sampling]) + noise * PRECISION
    return model, raw, {Disclosure.COST: cost}


class _Meter:
    """A generator that measures what its last training cost, without the copy of the table."""

    training: CallCost

    def __init__(self, generator: Generator) -> None:
        self._generator = generator

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> Model:
        model, self.training = metered(lambda: self._generator.fit(data, seed=seed))
        return cast(Model, self._generator) if model is None else model


def leave_torch_one_thread() -> None:
    """Takes back the threads that a generator gave torch, if it is loaded."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.get_num_threads() != 1:
        torch.set_num_threads(1)


def _trained(payload: Payload, trial: Trial, generator: Generator) -> Outcome:
    start, game = perf_counter(), payload.game
    schema, n_rows = game.view.schema, game.rows_requested(trial.world)
    written = None
    try:
        with seeded_globals(payload.seed(trial, "globals")), patches_apart():
            model, raw, cost = _made(payload, trial, generator)
            raw = units_together(raw, schema)
        table = accept(raw, schema, n_rows)
        claimed = _claimed(model, game.view)
        shown = {**disclosed(model, payload.seen, game.view), **cost}
        values = values_of_table(table, schema)
        together = trains_many(generator) and not payload.is_timed
        if together:  # a replay: bit-identical to its trial
            accept_values(values, schema)
        elif payload.sees_release:
            with patches_apart():
                written = release_facts(raw, table, schema)
    except BaseException as error:  # noqa: BLE001 - as above
        return _failed(trial, error, start)
    if not together:
        seen = with_units(table, raw, schema)
        features = features_of_table(
            seen, payload.attacks, game.view, shown, written=written, values=values
        )
    else:
        [features] = features_of_values(values[None], payload.attacks, game.view, [shown])
    return Outcome(
        trial=trial,
        status=TrialStatus.FINISHED,
        table=digest_of(values, table),
        features=features,
        claimed=claimed,
        seconds=perf_counter() - start,
    )


def _failed(trial: Trial, error: BaseException, start: float) -> Outcome:
    return Outcome(
        trial=trial,
        status=TrialStatus.FAILED,
        error=reason_of(error),
        rows=error.rows if isinstance(error, RowCountError) else None,
        message=message_of(error),
        traceback=whole_traceback(error),
        seconds=perf_counter() - start,
    )


def _claimed(model: object, game: GameView) -> ModelClaim | None:
    """The claim of a fitted model for the neighbours of the game; None if nothing follows."""
    with patches_apart():
        claim: Promise | None = getattr(model, "claim", None)
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
"""Records other than the target that a discriminator scores, at equal distances in the table."""
_METHODS: Final = {
    Disclosure.DISCRIMINATOR: "discriminate",
    Disclosure.PARAMETERS: "parameters",
    Disclosure.RELEASED: "released",
}
NO_COST: Final[Disclosed] = {Disclosure.COST: np.zeros(len(COSTS))}
"""Stands for what was not measured."""


def disclosed(model: object, seen: Collection[Disclosure], game: GameView) -> Disclosed:
    """Asks a model for its disclosures to attacks; any error of it is the trial's outcome.

    The records that a discriminator scores are the same in both worlds.

    Args:
        model: The fitted model.
        seen: What attacks see.
        game: Names the target, other records and released facts.

    Returns:
        What attacks see and no more, without what is measured.

    Raises:
        TrialError: If the model lacks a method, or gives numbers of another shape or not finite.
    """
    return {one: _asked(model, one, game) for one in _METHODS if one in seen}


def _asked(model: object, what: Disclosure, game: GameView) -> FloatArray:
    name = _METHODS[what]
    method = getattr(model, name, None)
    if not callable(method):
        raise TrialError(f"the model has no method {name}, which its generator says it has")
    arguments, length = [], None
    if what is Disclosure.DISCRIMINATOR:
        rows = _scored(game)
        arguments, length = [rows], len(rows)
    elif what is Disclosure.RELEASED:
        length = len(game.released_facts)
    with patches_apart():
        values = np.array(method(*arguments), dtype=np.float64)
    if values.ndim != 1 or length not in (None, len(values)):
        wanted = "a flat array" if length is None else f"{length} numbers"
        raise TrialError(f"{name} must give {wanted}, it gave shape {values.shape}")
    if not np.isfinite(values).all():
        raise TrialError(f"{name} gave numbers that are not finite")
    return values


def _scored(game: GameView) -> pd.DataFrame:
    """The target and other records."""
    others = game.others
    chosen = np.unique(np.linspace(0, len(others) - 1, min(COMPARED, len(others))).astype(int))
    return game.schema.canonical(pd.concat([game.target, others.iloc[chosen]]))
