"""Batches through the engine: workers, resuming, PATE-GANs, and audits that find them out."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pandas as pd
import pytest

import batch_toys
import dpaudit
from batch_toys import (
    SCHEMA,
    TABLE,
    TRIALS,
    Mean,
    Means,
    Model,
    Models,
    Together,
    features,
    game_of,
    payload,
    played,
    seed_of,
)
from dpaudit.auditing.entry import audit_by_keywords
from dpaudit.game.engine import run_trials
from dpaudit.game.flight import TrialProgress
from dpaudit.game.pool import LocalEngine, kill_workers
from dpaudit.game.store import RunFolder
from dpaudit.game.training import run_batch, run_trial
from dpaudit.game.trial import Role, TrialStatus
from dpaudit.game.worlds import TargetGame
from dpaudit.model.claim import Neighbours
from dpaudit.model.encoding import values_of_table
from dpaudit.plugins.protocols import (
    FloatArray,
    GameView,
    Job,
)
from dpaudit_generators.pate_gan import Bounds, PateGan, PateGanMarginals
from samples import PEOPLE, QUICK_ATTACKS, people

# Workers can import neither file.
cloudpickle.register_pickle_by_value(batch_toys)
cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture(scope="module", autouse=True)
def _no_worker_is_left() -> Iterator[None]:
    yield
    kill_workers()


@dataclass
class Picky(Together):
    """Raises, or kills its worker, at some seeds."""

    refuses: int | None = None
    kills: int | None = None

    def model(self, data: pd.DataFrame, job: Job) -> Model:
        if job.seed == self.refuses:
            raise ValueError("not this one")
        if job.seed == self.kills:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().model(data, job)


def test_workers_batches_and_resuming_do_not_matter(tmp_path: Path) -> None:
    alone = features(played(tmp_path / "alone", Together(), jobs=1, together=False))
    assert len(alone) == len(TRIALS)
    for jobs in (1, 2):
        assert features(played(tmp_path / f"{jobs}", Together(), TRIALS[::-1], jobs=jobs)) == alone
    played(tmp_path / "resumed", Together(models_at_once=2), TRIALS[1:6])
    assert features(played(tmp_path / "resumed", Together(models_at_once=9))) == alone


def test_progress_counts_trials(tmp_path: Path) -> None:
    seen: list[TrialProgress] = []
    with RunFolder(tmp_path, spec={}, versions={}) as folder:
        run_trials(
            TRIALS,
            payload(Together()),
            folder,
            engine=LocalEngine(2),
            generator=Together(),
            on_progress=seen.append,
        )
    assert [p.done for p in seen] == list(range(len(TRIALS) + 1))


@pytest.mark.ci
def test_a_trial_that_fails_or_kills_takes_no_other_with_it(tmp_path: Path) -> None:
    refused, killer = TRIALS[2], TRIALS[9]
    generator = Picky(refuses=seed_of(refused), kills=seed_of(killer))
    outcomes = played(tmp_path / "picky", generator)
    assert outcomes[refused].status is TrialStatus.FAILED
    assert outcomes[refused].error.startswith("ValueError at test_batches_in_workers.py:")
    assert outcomes[killer].status is TrialStatus.CRASHED
    assert outcomes[killer].attempts == 3
    assert outcomes[killer].error.startswith("its worker process died in each of 3 attempts (sig")
    calm = features(played(tmp_path / "calm", Together()))
    assert features(outcomes) == {t: calm[t] for t in TRIALS if t not in (refused, killer)}


class Paid(Means):
    """Means of the columns of the PATE-GANs' table."""

    def features(self, table: pd.DataFrame, game: GameView) -> FloatArray:
        return self.features_many(values_of_table(table, game.schema)[None], game)[0]

    def features_many(self, values: FloatArray, game: GameView) -> FloatArray:
        return np.nan_to_num(values).mean(axis=1)


def pate_gan_game(neighbours: Neighbours) -> TargetGame:
    return game_of(people(40), PEOPLE, neighbours=neighbours)


@pytest.mark.parametrize(
    ("bounds", "neighbours"),
    [
        pytest.param(
            bounds,
            neighbours,
            marks=[pytest.mark.ci] if (bounds == "private") == (neighbours != "add-remove") else [],
        )
        for bounds in ("schema", "private", "data")
        for neighbours in Neighbours
    ],
)
def test_pate_gans_of_a_batch_are_those_of_fit(neighbours: Neighbours, bounds: str) -> None:
    given: dict[str, Any] = {"teachers": 8, "rounds": 4, "epsilon": 8.0}
    gan = PateGan(schema=PEOPLE, bounds=Bounds(bounds), **given)
    shared = payload(gan, Paid(), game=pate_gan_game(neighbours))
    whole = run_batch(shared, TRIALS[:6])
    assert len(set(features(whole).values())) == 6
    for outcome in whole:
        assert outcome.status is TrialStatus.FINISHED, outcome.error
        for role in (Role.AUDIT, Role.REPLAY):
            again = run_trial(shared, outcome.trial._replace(role=role))
            assert np.array_equal(again.features, outcome.features)
            assert again.claimed == outcome.claimed


def test_marginals_with_teachers_are_those_of_fit() -> None:
    gan = PateGanMarginals(schema=PEOPLE, teachers=8, rounds=4, epsilon=8.0)
    shared = payload(gan, Paid(), game=pate_gan_game(Neighbours.ADD_REMOVE))
    whole = run_batch(shared, TRIALS[:6])
    assert len(set(features(whole).values())) == 6
    for outcome in whole:
        assert outcome.status is TrialStatus.FINISHED, outcome.error
        again = run_trial(shared, outcome.trial._replace(role=Role.REPLAY))
        assert np.array_equal(again.features, outcome.features)


@pytest.mark.ci
@pytest.mark.parametrize("neighbours", [Neighbours.ADD_REMOVE, Neighbours.REPLACE_ONE])
def test_pate_gans_do_not_depend_on_workers_or_batches(
    tmp_path: Path, neighbours: Neighbours
) -> None:
    gan = PateGanMarginals(schema=PEOPLE, teachers=8, rounds=4, epsilon=8.0)
    options: dict[str, Any] = {"attacks": [Paid()], "game": pate_gan_game(neighbours)}
    two = features(played(tmp_path / "two", gan, jobs=2, **options))
    assert len(set(two.values())) == len(TRIALS)
    played(tmp_path / "resumed", gan, TRIALS[::3], jobs=2, **options)
    assert features(played(tmp_path / "resumed", gan, jobs=2, **options)) == two
    assert features(played(tmp_path / "alone", gan, jobs=1, together=False, **options)) == two


# Whole audits.


class OfItsBatch(Together):
    """Its models know how many there are."""

    def fit_many(self, data: pd.DataFrame, jobs: Sequence[Job]) -> Models:
        models = super().fit_many(data, jobs)
        return Models([replace(model, mean=model.mean / len(jobs)) for model in models.models])


class OfTheDroppedRow(Together):
    """Its models are all trained on all records."""

    def model(self, data: pd.DataFrame, job: Job) -> Model:
        return super().model(data, job._replace(dropped_rows=()))


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        pytest.param(
            Together, "models trained together are those that fit gives", marks=pytest.mark.ci
        ),
        pytest.param(
            OfItsBatch,
            "a model of world in that was trained together with others is not the model",
            marks=pytest.mark.ci,
        ),
        (OfTheDroppedRow, "a model of world out that was trained together with others"),
    ],
)
def test_a_batch_that_breaks_its_contract_makes_an_invalid_audit(
    kind: type[Together], told: str
) -> None:
    result = audit_by_keywords(
        kind(),
        TABLE,
        schema=SCHEMA,
        epsilon=1,
        target=3,
        attacks=[QUICK_ATTACKS[1], Mean()],  # the mean of numbers differs whatever the seeds are
        shadow_models=24,
        jobs=2,
    )
    checks = {check["name"]: check for check in result.to_document()["checks"]}
    replay = checks["same seed, same table"]
    assert told in replay["detail"]
    assert replay["passed"] is (kind is Together)
    assert (result.verdict is dpaudit.Verdict.INVALID) is (kind is not Together)
