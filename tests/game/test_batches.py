"""Models trained together give what each gives alone; whatever goes wrong is one trial's."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loky import get_reusable_executor

import dpaudit
from dpaudit.errors import AttackError
from dpaudit.game import batches
from dpaudit.game.batches import make_batches
from dpaudit.game.engine import run_trials
from dpaudit.game.progress import TrialProgress
from dpaudit.game.store import RunFolder
from dpaudit.game.target import choose_target
from dpaudit.game.training import run_batch, run_trial
from dpaudit.game.trial import Outcome, Payload, Role, Trial, TrialStatus
from dpaudit.game.worlds import Game, build_game
from dpaudit.model.claim import Neighbours, PrivacyClaim
from dpaudit.model.column import Column, Kind
from dpaudit.model.encoding import table_of, values_of_table
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import (
    BatchAttack,
    BatchGenerator,
    BoolArray,
    FeatureName,
    FloatArray,
    GameView,
    Job,
    Scorer,
    World,
)
from dpaudit_generators.pate_gan import Bounds, PateGan
from samples import PEOPLE, people

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import this file

SCHEMA = Schema(
    columns=(
        Column(name="x", kind=Kind.CONTINUOUS, lower=0, upper=1),
        Column(name="gap", kind=Kind.INTEGER, lower=0, upper=9, missing=True),
        Column(name="town", kind=Kind.CATEGORICAL, categories=("a", "b", "c"), missing=True),
        Column(name="flag", kind=Kind.BINARY, categories=(0, 1)),
    )
)
TABLE = SCHEMA.canonical(
    pd.DataFrame(
        {
            "x": np.linspace(0.1, 0.9, 12),
            "gap": [1.0, np.nan, 2.0, 3.0] * 3,
            "town": ["a", "b", None, "c"] * 3,
            "flag": [0, 1] * 6,
        }
    )
)
ROWS = 5
TRIALS = [Trial(Role.AUDIT, world, number) for number in range(6) for world in World]


def seed_of(trial: Trial) -> int:
    return trial.seed("fit", root=0, audit="test")


@dataclass
class Model:
    """Uniform numbers around the mean of the table trained on."""

    mean: float
    seed: int | None
    claim: PrivacyClaim | None = None

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        return table_of(Models([self]).sample_many(n, [seed])[0], SCHEMA)


@dataclass
class Models:
    """Models in a batch; `spoil` changes the values of all."""

    models: list[Model]
    spoil: Callable[[FloatArray], Any] = lambda values: values

    def __len__(self) -> int:
        return len(self.models)

    def __getitem__(self, index: int) -> Model:
        return self.models[index]

    def sample_many(self, n: int, seeds: Sequence[int | None]) -> FloatArray:
        made = []
        for model, seed in zip(self.models, seeds, strict=True):
            assert model.seed is not None
            assert seed is not None
            rng = np.random.default_rng([model.seed, seed])
            columns = [model.mean * rng.random(n), rng.integers(0, 10, n), rng.integers(-1, 3, n)]
            made.append(np.stack([*columns, rng.integers(0, 2, n)], axis=-1))
        return self.spoil(np.stack(made))  # type: ignore[no-any-return]


@dataclass
class Together:
    """A toy that keeps the contract of a `BatchGenerator`; the others do worse."""

    models_at_once: int = 4
    spoil: Callable[[FloatArray], Any] = lambda values: values

    def batch_key(self, job: Job) -> Hashable:
        del job
        return ()

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> Model:
        return self.fit_many(data, [Job(World.IN, 0, (), seed)])[0]

    def fit_many(self, data: pd.DataFrame, jobs: Sequence[Job]) -> Models:
        return Models([self.model(data, job) for job in jobs], self.spoil)

    def model(self, data: pd.DataFrame, job: Job) -> Model:
        own = data["x"].drop(index=list(job.dropped_rows))
        return Model(float(own.mean()), job.seed)


class Mean:
    """An attack with one feature for each number."""

    def check(self, game: GameView) -> None:
        del game

    def feature_names(self, game: GameView) -> tuple[FeatureName, ...]:
        del game
        return FeatureName("x", "mean"), FeatureName("flag", "mean")

    def features(self, table: pd.DataFrame, game: GameView) -> FloatArray:
        del game
        return np.array([table["x"].mean(), table["flag"].astype(float).mean()])

    def fit(self, features: FloatArray, member: BoolArray, *, seed: int) -> Scorer:
        del features, member, seed
        return lambda features: features[:, 0]


@dataclass
class Means(Mean):
    """The same, of many tables at once."""

    sizes: list[int] = field(default_factory=list)

    def features_many(self, values: FloatArray, game: GameView) -> FloatArray:
        del game
        self.sizes.append(len(values))
        return np.stack([values[:, :, 0].mean(axis=1), values[:, :, 3].mean(axis=1)], axis=-1)


def game_of(
    data: pd.DataFrame = TABLE,
    schema: Schema = SCHEMA,
    *,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
) -> Game:
    replacement = data.iloc[[5]].reset_index(drop=True)  # the game does not mind its copy
    return build_game(
        data,
        schema,
        choose_target("row:3", data, schema),
        n_rows=ROWS,
        neighbours=neighbours,
        replacement=replacement if neighbours is Neighbours.REPLACE_ONE else None,
    )


def payload(generator: object, *attacks: Any, game: Game | None = None) -> Payload:
    pickled = cloudpickle.dumps(generator)
    return Payload(
        game=game or game_of(),
        generators={Role.AUDIT: pickled, Role.REPLAY: pickled},
        attacks=attacks or [Mean(), Means()],
        root=0,
        audit="test",
    )


def played(
    path: Path,
    generator: object,
    trials: Sequence[Trial] = TRIALS,
    *,
    jobs: int = 2,
    together: bool = True,
    attacks: Sequence[Any] = (),
    game: Game | None = None,
) -> dict[Trial, Outcome]:
    with RunFolder(path, spec={}, versions={}) as folder:
        whole = generator if together else None
        shared = payload(generator, *attacks, game=game)
        run_trials(trials, shared, folder, jobs=jobs, generator=whole)
        return {t: o for role in Role for t, o in folder.outcomes(role).items()}


def features(outcomes: dict[Trial, Outcome] | Sequence[Outcome]) -> dict[Trial, bytes]:
    values = outcomes.values() if isinstance(outcomes, dict) else outcomes
    return {o.trial: o.features.tobytes() for o in values if o.features is not None}


@pytest.fixture(scope="module", autouse=True)
def _no_worker_is_left() -> Iterator[None]:
    yield
    get_reusable_executor(reuse=True).shutdown(wait=True, kill_workers=True)


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
        monkeypatch.setattr(batches, "MEMORY", bytes_)
        assert max(lengths(12, at_once=8, workers=1)) == size


def test_worlds_that_ask_for_other_numbers_of_rows_are_not_mixed() -> None:
    class Unequal(Game):
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
        (3, 2, "column 'flag' has values that are no position of a category"),
        (2, np.nan, "column 'town' has values that are no position of a category"),
        (2, 0.5, "column 'town' has values that are no position of a category"),
        (2, -2, "column 'town' has values that are no position of a category"),
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
    assert [o.claimed_epsilon for o in outcomes] == [1, 2, None, 4, 5, 6]
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
    assert [o.error for o in outcomes] == ["ZeroDivisionError: division by zero"] * 2


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


# Through the engine.


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
            jobs=2,
            generator=Together(),
            on_progress=seen.append,
        )
    assert [p.done for p in seen] == list(range(len(TRIALS) + 1))


def test_a_trial_that_fails_or_kills_takes_no_other_with_it(tmp_path: Path) -> None:
    refused, killer = TRIALS[2], TRIALS[9]
    generator = Picky(refuses=seed_of(refused), kills=seed_of(killer))
    outcomes = played(tmp_path / "picky", generator)
    assert outcomes[refused].status is TrialStatus.FAILED
    assert outcomes[refused].error == "ValueError: not this one"
    assert outcomes[killer].status is TrialStatus.CRASHED
    assert outcomes[killer].attempts == 3
    calm = features(played(tmp_path / "calm", Together()))
    assert features(outcomes) == {t: calm[t] for t in TRIALS if t not in (refused, killer)}


class Paid(Means):
    """Means of the columns of the PATE-GANs' table."""

    def features(self, table: pd.DataFrame, game: GameView) -> FloatArray:
        return self.features_many(values_of_table(table, game.schema)[None], game)[0]

    def features_many(self, values: FloatArray, game: GameView) -> FloatArray:
        return np.nan_to_num(values).mean(axis=1)


def pate_gan_game(neighbours: Neighbours) -> Game:
    return game_of(people(40), PEOPLE, neighbours=neighbours)


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("bounds", ["schema", "private", "data"])
def test_pate_gans_of_a_batch_are_those_of_fit(neighbours: Neighbours, bounds: str) -> None:
    gan = PateGan(schema=PEOPLE, teachers=8, rounds=4, epsilon=8.0, bounds=Bounds(bounds))
    shared = payload(gan, Paid(), game=pate_gan_game(neighbours))
    whole = run_batch(shared, TRIALS[:6])
    assert len(set(features(whole).values())) == 6
    for outcome in whole:
        assert outcome.status is TrialStatus.FINISHED, outcome.error
        for role in (Role.AUDIT, Role.REPLAY):
            again = run_trial(shared, outcome.trial._replace(role=role))
            assert np.array_equal(again.features, outcome.features)
            assert again.claimed_epsilon == outcome.claimed_epsilon


@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_pate_gans_do_not_depend_on_workers_or_batches(
    tmp_path: Path, neighbours: Neighbours
) -> None:
    gan = PateGan(schema=PEOPLE, teachers=8, rounds=4, epsilon=8.0)
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
        (Together, "models trained together are those that fit gives"),
        (OfItsBatch, "a model of world in that was trained together with others is not the model"),
        (OfTheDroppedRow, "a model of world out that was trained together with others"),
    ],
)
def test_a_batch_that_breaks_its_contract_makes_an_invalid_audit(
    kind: type[Together], told: str
) -> None:
    result = dpaudit.audit(
        kind(),
        TABLE,
        schema=SCHEMA,
        epsilon=1,
        target=3,
        attacks=["query-target", Mean()],  # the mean of numbers differs whatever the seeds are
        shadow_models=20,
        jobs=2,
    )
    checks = {check["name"]: check for check in result.to_document()["checks"]}
    replay = checks["same seed, same table"]
    assert told in replay["detail"]
    assert replay["passed"] is (kind is Together)
    assert (result.verdict is dpaudit.Verdict.INVALID) is (kind is not Together)
