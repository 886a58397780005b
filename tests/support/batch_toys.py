"""Generators and attacks that take many models at once, and small games to run them in."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pandas as pd

from dpaudit.game.engine import run_trials
from dpaudit.game.pool import LocalEngine
from dpaudit.game.store import RunFolder
from dpaudit.game.target import choose_target
from dpaudit.game.trial import Outcome, Payload, Role, Trial
from dpaudit.game.worlds import TargetGame, build_game
from dpaudit.model.claim import Neighbours, PrivacyClaim
from dpaudit.model.column import Column, Kind
from dpaudit.model.encoding import table_of
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import (
    BoolArray,
    FeatureName,
    FloatArray,
    GameView,
    Job,
    Scorer,
    World,
)

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
) -> TargetGame:
    replacement = data.iloc[[5]].reset_index(drop=True)  # the game does not mind its copy
    return build_game(
        data,
        schema,
        choose_target("row:3", data, schema),
        n_rows=ROWS,
        neighbours=neighbours,
        replacement=replacement if neighbours is Neighbours.REPLACE_ONE else None,
    )


def payload(generator: object, *attacks: Any, game: TargetGame | None = None) -> Payload:
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
    game: TargetGame | None = None,
    trial_timeout: float | None = None,
) -> dict[Trial, Outcome]:
    with RunFolder(path, spec={}, versions={}) as folder:
        whole = generator if together else None
        shared = payload(generator, *attacks, game=game)
        run_trials(
            trials,
            shared,
            folder,
            engine=LocalEngine(jobs),
            generator=whole,
            trial_timeout=trial_timeout,
        )
        return {t: folder.outcome(t) for role in Role for t in folder.outcomes(role)}


def features(outcomes: dict[Trial, Outcome] | Sequence[Outcome]) -> dict[Trial, bytes]:
    values = outcomes.values() if isinstance(outcomes, dict) else outcomes
    return {o.trial: o.features.tobytes() for o in values if o.features is not None}
