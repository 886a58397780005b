"""Models trained together give what each gives alone; whatever goes wrong is one trial's."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batch_toys import (
    ROWS,
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
)
from dpaudit.errors import AttackError
from dpaudit.game import flight
from dpaudit.game.flight import make_batches
from dpaudit.game.training import run_batch, run_trial
from dpaudit.game.trial import Role, Trial, TrialStatus
from dpaudit.game.worlds import TargetGame
from dpaudit.model.claim import Neighbours, PrivacyClaim
from dpaudit.plugins.protocols import (
    BatchAttack,
    BatchGenerator,
    FloatArray,
    GameView,
    Job,
    World,
)


def test_the_toys_are_what_they_stand_for() -> None:
    assert isinstance(Together(), BatchGenerator)
    assert isinstance(Means(), BatchAttack)
    assert not isinstance(Mean(), BatchAttack)


# Making batches.


def lengths(n: int, *, at_once: int, workers: int) -> list[int]:
    trials = [Trial(Role.AUDIT, World.IN, number) for number in range(n)]
    generator = Together(models_at_once=at_once)
    return [
        len(batch) for batch in make_batches(trials, payload(generator), generator, workers=workers)
    ]


def test_batches_keep_every_worker_busy() -> None:
    assert sorted(lengths(400, at_once=32, workers=2)) == [28] * 6 + [29] * 8
    assert lengths(100, at_once=32, workers=2) == [25] * 4
    assert lengths(6, at_once=32, workers=2) == [3, 3]
    assert lengths(1, at_once=32, workers=8) == [1]
    assert lengths(5, at_once=0, workers=2) == [1] * 5


@given(
    st.lists(st.sampled_from(TRIALS), min_size=1, unique=True),
    st.integers(1, 9),
    st.integers(1, 5),
    st.integers(1, 3),
)
def test_every_trial_is_in_one_batch_of_its_key(
    trials: list[Trial], at_once: int, workers: int, keys: int
) -> None:
    class Keyed(Together):
        def batch_key(self, job: Job) -> Hashable:
            assert job.dropped_rows == (() if job.world is World.IN else (3,))
            return job.index % keys

    generator = Keyed(models_at_once=at_once)
    found = make_batches(trials, payload(Together()), generator, workers=workers)
    assert sorted(t for batch in found for t in batch) == sorted(trials)
    for batch in found:
        assert 1 <= len(batch) <= min(at_once, -(-len(trials) // workers))
        assert len({trial.number % keys for trial in batch}) == 1
        assert sorted(batch, key=trials.index) == list(batch)


def test_batches_fit_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    of_one = 8 * ROWS * (1 + 2 + 4 + 2 + 4)  # encoded, and as values
    for bytes_, size in ((3 * of_one, 3), (4 * of_one - 1, 3), (of_one - 1, 1)):
        monkeypatch.setattr(flight, "MEMORY", bytes_)
        assert max(lengths(12, at_once=8, workers=1)) == size


def test_worlds_that_ask_for_other_numbers_of_rows_are_not_mixed() -> None:
    class Unequal(TargetGame):
        def rows_requested(self, world: World) -> int:
            return ROWS + (world is World.IN)

    game = Unequal(**vars(game_of()))
    found = make_batches(TRIALS, payload(Together(), game=game), Together(), workers=1)
    assert all(len({trial.world for trial in batch}) == 1 for batch in found)
    outcomes = [o for batch in found for o in run_batch(payload(Together(), game=game), batch)]
    assert all(outcome.status is TrialStatus.FINISHED for outcome in outcomes)


class Unsure(Together):
    def batch_key(self, job: Job) -> Hashable:
        raise ValueError("cannot say")


class Unhashable(Together):
    def batch_key(self, job: Job) -> Hashable:
        return []  # type: ignore[return-value]


@pytest.mark.parametrize("generator", [object(), None, Unsure(), Unhashable()])
def test_what_cannot_be_trained_together_is_run_alone(generator: object) -> None:
    assert make_batches(TRIALS, payload(Together()), generator, workers=2) == [(t,) for t in TRIALS]


# Running.


@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_a_batch_gives_what_its_trials_give_alone_and_replayed(neighbours: Neighbours) -> None:
    shared = payload(Together(), game=game_of(neighbours=neighbours))
    whole = run_batch(shared, TRIALS)
    assert [outcome.trial for outcome in whole] == TRIALS
    assert len(set(features(whole).values())) == len(TRIALS)
    for outcome in whole:
        again = outcome.trial._replace(role=Role.REPLAY)
        for alone in (run_trial(shared, outcome.trial), run_trial(shared, again)):
            assert np.array_equal(alone.features, outcome.features)


def test_an_attack_on_many_tables_sees_them_at_once() -> None:
    attack = Means()
    outcomes = run_batch(payload(Together(), attack), TRIALS)
    assert attack.sizes == [len(TRIALS)]
    [one] = {o.seconds for o in outcomes}
    assert one > 0
    plain = run_batch(payload(Together(), Mean()), TRIALS)
    for many, single in zip(outcomes, plain, strict=True):
        np.testing.assert_allclose(many.features, single.features, rtol=1e-12)


def at_third(row: int, column: int, value: float) -> Callable[[FloatArray], FloatArray]:
    def spoil(values: FloatArray) -> FloatArray:
        third = np.flatnonzero(values[:, 0, 0] == values[:, 0, 0].max())  # one, whatever the batch
        values[third, row, column] = value
        return values

    return spoil


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        (0, np.nan, "column 'x' has missing values (NaN)"),
        (0, np.inf, "column 'x' has infinite values"),
        (1, -np.inf, "column 'gap' has infinite values"),
        (3, -1, "column 'flag' has missing values (NaN)"),
        (3, 2, "column 'flag' has values that are not positions of a category"),
        (2, np.nan, "column 'town' has values that are not positions of a category"),
        (2, 0.5, "column 'town' has values that are not positions of a category"),
        (2, -2, "column 'town' has values that are not positions of a category"),
    ],
)
def test_bad_values_are_the_failure_of_their_trial(column: int, value: float, reason: str) -> None:
    calm = features(run_batch(payload(Together()), TRIALS))
    outcomes = run_batch(payload(Together(spoil=at_third(2, column, value))), TRIALS)
    [bad] = [outcome for outcome in outcomes if outcome.status is TrialStatus.FAILED]
    assert bad.error == reason
    assert features(outcomes) == {t: f for t, f in calm.items() if t != bad.trial}


@pytest.mark.parametrize(
    ("column", "value"), [(0, 17.0), (0, -3.0), (1, np.nan), (1, 1.5), (2, -1)]
)
def test_values_beyond_the_schema_are_evidence(column: int, value: float) -> None:
    outcomes = run_batch(payload(Together(spoil=at_third(2, column, value))), TRIALS)
    assert all(outcome.status is TrialStatus.FINISHED for outcome in outcomes)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda values: values[:, :4], "wrong row count: 4 rows instead of 5"),
        (lambda values: values[:, :, :3], "values of shape (1, 5, 3), not (1, 5, 4)"),
        (lambda values: values[0], "values of shape (5, 4), not (1, 5, 4)"),
        (lambda values: values.tolist(), "returned list, not a numpy array of numbers"),
        (lambda values: values.astype(object), "returned ndarray, not a numpy array of numbers"),
        (lambda values: None, "returned NoneType"),
    ],
)
def test_a_stack_that_is_none_fails_every_trial(
    spoil: Callable[[FloatArray], Any], reason: str
) -> None:
    for outcome in run_batch(payload(Together(spoil=spoil)), TRIALS[:3]):
        assert outcome.status is TrialStatus.FAILED
        assert reason in outcome.error


class Claiming(Together):
    def model(self, data: pd.DataFrame, job: Job) -> Model:
        claim: Any = "strong" if job.index == 2 else PrivacyClaim(epsilon=1 + job.index)
        return replace(super().model(data, job), claim=claim)


def test_each_model_has_a_claim_of_its_own() -> None:
    outcomes = run_batch(payload(Claiming()), TRIALS[::2])
    assert [o.claimed and o.claimed.epsilon for o in outcomes] == [1, 2, None, 4, 5, 6]
    assert [o.status is TrialStatus.FAILED for o in outcomes] == [
        number == 2 for number in range(6)
    ]


class Spoiling(Together):
    def fit_many(self, data: pd.DataFrame, jobs: Sequence[Job]) -> Models:
        models = super().fit_many(data, jobs)
        data.loc[:, "x"] = 0.0
        del data["town"]
        return models


def test_a_batch_cannot_change_the_game() -> None:
    shared = payload(Spoiling())
    first = features(run_batch(shared, TRIALS))
    assert features(run_batch(shared, TRIALS)) == first
    pd.testing.assert_frame_equal(shared.game.data, TABLE)


class Unpicklable(Together):
    def __reduce__(self) -> tuple[Any, ...]:
        return (lambda: 1 / 0), ()


def test_a_generator_that_does_not_unpickle_fails_its_trials() -> None:
    outcomes = run_batch(payload(Unpicklable()), TRIALS[:2])
    for outcome in outcomes:
        assert outcome.error.startswith("ZeroDivisionError at test_batches.py:")


@pytest.mark.parametrize(
    "many",
    [
        lambda values: values[:, :, 0] / 0.0,
        lambda values: values[:, 0, 0],
        lambda values: values[1:, :, 0],
        lambda values: 1 / 0,
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_an_attack_that_fails_on_many_is_nobodys_outcome(many: Callable[[FloatArray], Any]) -> None:
    class Bad(Means):
        def features_many(self, values: FloatArray, game: GameView) -> FloatArray:
            return many(values)  # type: ignore[no-any-return]

    with pytest.raises(AttackError, match="attack Bad"):
        run_batch(payload(Together(), Bad()), TRIALS[:3])
