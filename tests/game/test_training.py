"""One trial: whatever the generator does wrong is its outcome, with the reason."""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import cloudpickle
import numpy as np
import pandas as pd
import pytest

from dpaudit.errors import AttackError
from dpaudit.game.training import run_trial
from dpaudit.game.trial import Outcome, Payload, Role, Trial, TrialStatus
from dpaudit.game.worlds import TargetGame
from dpaudit.model.claim import Neighbours, PrivacyClaim
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.plugins.named import FunctionGenerator
from dpaudit.plugins.protocols import BoolArray, FeatureName, FloatArray, GameView, Scorer, World

# Otherwise functions of this file would be pickled by name and keep their state.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

SCHEMA = Schema(
    columns=(
        Column(name="x", kind=Kind.CONTINUOUS, lower=0, upper=1),
        Column(name="c", kind=Kind.CATEGORICAL, categories=("u", "v", "w")),
    )
)
TABLE = SCHEMA.canonical(pd.DataFrame({"x": [0.1, 0.2, 0.3], "c": ["u", "v", "w"]}))
ROWS = 4
FIRST = Trial(Role.AUDIT, World.IN, 0)
REPLAY = FIRST._replace(role=Role.REPLAY)


class Means:
    """An attack with one feature: the mean of x."""

    def check(self, game: GameView) -> None:
        del game

    def feature_names(self, game: GameView) -> tuple[FeatureName, ...]:
        del game
        return (FeatureName("x", "mean"),)

    def features(self, table: pd.DataFrame, game: GameView) -> FloatArray:
        del game
        return np.array([table["x"].mean()])

    def fit(self, features: FloatArray, member: BoolArray, *, seed: int) -> Scorer:
        raise NotImplementedError  # no trial needs it


def payload(generator: object, attack: object = None) -> Payload:
    view = GameView(
        schema=SCHEMA,
        others=TABLE.iloc[:2],
        target=TABLE.iloc[[2]].reset_index(drop=True),
        n_rows=ROWS,
        neighbours=Neighbours.ADD_REMOVE,
    )
    if not hasattr(generator, "fit"):
        generator = FunctionGenerator(generator)  # type: ignore[arg-type]
    pickled = cloudpickle.dumps(generator)
    return Payload(
        game=TargetGame(view=view, data=TABLE, missing={World.IN: (), World.OUT: (2,)}),
        generators={Role.AUDIT: pickled, Role.REPLAY: pickled},
        attacks=[attack or Means()],  # type: ignore[list-item]
        root=0,
        audit="test",
    )


def good(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
    del data
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"x": rng.random(n_rows), "c": rng.choice(["u", "v"], n_rows)})


def changed(change: Callable[[pd.DataFrame], Any]) -> Outcome:
    """The outcome of a trial whose generator returns a changed good table."""
    return run_trial(payload(lambda data, n, seed: change(good(data, n, seed))), FIRST)


def raising(error: BaseException) -> Outcome:
    def generate(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
        raise error

    return run_trial(payload(generate), FIRST)


def features_of(outcome: Outcome) -> FloatArray:
    assert outcome.status is TrialStatus.FINISHED, outcome.error
    assert outcome.features is not None
    return outcome.features


def test_a_good_trial_finishes_and_its_replay_is_the_same() -> None:
    outcome = run_trial(payload(good), FIRST)
    assert outcome.error == ""
    assert outcome.seconds > 0
    assert np.array_equal(features_of(outcome), features_of(run_trial(payload(good), REPLAY)))
    other = run_trial(payload(good), FIRST._replace(number=1))
    assert not np.array_equal(features_of(outcome), features_of(other))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda table: table.drop(columns="c"), "wrong columns"),
        (lambda table: table.assign(more=1), "wrong columns"),
        (lambda table: table[["x", "c", "c"]], "wrong columns"),
        (lambda table: table.iloc[:3], "wrong row count: 3 rows instead of 4"),
        (lambda table: table.iloc[:0], "wrong row count: 0 rows"),
        (lambda table: table.assign(x=[0.5, np.nan, 0.5, 0.5]), r"'x' has missing values"),
        (lambda table: table.assign(c=["u", None, "v", "u"]), r"'c' has missing values"),
        (lambda table: table.assign(x=[0.5, np.inf, 0.5, 0.5]), "'x' has infinite values"),
        (lambda table: table.assign(x=[0.5, -np.inf, 0.5, 0.5]), "'x' has infinite values"),
        (lambda table: table.assign(x=["a", "b", "c", "d"]), "x"),
        (lambda table: table.assign(x=[[1], [2], [3], [4]]), "x"),
        (lambda table: table.to_numpy(), "returned ndarray, not a pandas DataFrame"),
        (lambda table: None, "returned NoneType"),
    ],
)
def test_a_table_that_is_none_is_a_failed_trial(
    change: Callable[[pd.DataFrame], Any], reason: str
) -> None:
    outcome = changed(change)
    assert outcome.status is TrialStatus.FAILED
    assert outcome.features is None
    assert reason in outcome.error


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table[["c", "x"]],
        lambda table: table.set_index(pd.Index(list("zyxw"))),
        lambda table: table.assign(x=9.0, c="never seen"),  # evidence, not a failure
        lambda table: table.assign(c=table["c"].astype("category")),
    ],
)
def test_a_table_in_another_form_is_accepted(change: Callable[[pd.DataFrame], Any]) -> None:
    assert changed(change).status is TrialStatus.FINISHED


class MuteError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("cannot say")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("no\nsuch  thing"), "ValueError"),
        (SystemExit(3), "SystemExit"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (pytest.fail.Exception("like a test"), "Failed"),
        (MuteError(), "MuteError"),
        (OSError("file \udcff"), "OSError"),
        (RuntimeError("x" * 5000), "RuntimeError"),
    ],
)
def test_of_whatever_is_raised_the_type_is_the_reason(error: BaseException, reason: str) -> None:
    outcome = raising(error)
    assert outcome.status is TrialStatus.FAILED
    assert re.fullmatch(rf"{reason} at test_training\.py:\d+ in generate", outcome.error)


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (
            pd.DataFrame({"x": [1.0], "Jane Doe": ["a"]}),
            "wrong columns: column 'c' is missing; 1 unknown",
        ),
        (
            pd.DataFrame({"x": ["Jane Doe"] * 4, "c": ["a"] * 4}),
            "column 'x' holds values that are not",
        ),
    ],
)
def test_a_reason_shows_no_value_of_the_table(table: pd.DataFrame, reason: str) -> None:
    outcome = changed(lambda _: table)
    assert outcome.error.startswith(reason)
    assert "Jane" not in outcome.error
    assert ("'Jane Doe'" in outcome.message) is ("unknown" in reason)


def test_a_fit_that_returns_no_model_is_a_failed_trial() -> None:
    generator = SimpleNamespace(fit=lambda data, seed: 7)
    assert (
        run_trial(payload(generator), FIRST).error == "fit returned int, which has no method sample"
    )


def test_a_generator_cannot_change_the_game() -> None:
    def spoiling(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
        table = good(data, n_rows, seed).assign(x=data["x"].max())
        data.loc[:, "x"] = 0.0
        del data["c"]
        return table

    shared = payload(spoiling)
    first = features_of(run_trial(shared, FIRST))
    assert np.array_equal(first, features_of(run_trial(shared, REPLAY)))
    pd.testing.assert_frame_equal(shared.game.table(World.IN, 0), TABLE)


CALLS: list[int] = []


def counting(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
    CALLS.append(1)
    return good(data, n_rows, seed).assign(x=float(len(CALLS)))


def test_global_state_does_not_pass_from_one_trial_to_the_next() -> None:
    shared = payload(counting)
    for number in range(3):
        assert features_of(run_trial(shared, FIRST._replace(number=number))) == [1.0]


@pytest.mark.parametrize("library", ["numpy", "random", "torch"])
def test_global_randomness_is_seeded_and_put_back(library: str) -> None:
    def drawing(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
        if library == "torch":
            import torch

            drawn = torch.rand(n_rows).double().numpy()
        elif library == "numpy":
            drawn = np.random.random(n_rows)  # noqa: NPY002 - as third-party generators do
        else:
            drawn = np.array([random.uniform(0, 1) for _ in range(n_rows)])
        return good(data, n_rows, seed).assign(x=drawn)

    shared = payload(drawing)
    state = random.getstate()
    first = features_of(run_trial(shared, FIRST))
    random.random()  # noqa: TID251 - somebody else draws in between
    assert np.array_equal(first, features_of(run_trial(shared, REPLAY)))
    other = features_of(run_trial(shared, FIRST._replace(number=1)))
    assert not np.array_equal(first, other)
    random.setstate(state)


@pytest.mark.parametrize("fails", [False, True])
def test_torch_that_comes_in_while_training_is_seeded_too(
    monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    """A stand-in for torch whose global generator counts up from its seed."""
    state = [0.5]
    stand_in = SimpleNamespace(
        random=SimpleNamespace(
            get_rng_state=lambda: state[0], set_rng_state=lambda old: state.__setitem__(0, old)
        ),
        manual_seed=lambda seed: state.__setitem__(0, float(seed)),
        get_num_threads=lambda: 1,
    )

    class Lazy:
        def fit(self, data: pd.DataFrame, *, seed: int) -> Lazy:
            sys.modules.setdefault("torch", stand_in)  # type: ignore[arg-type]
            return self

        def sample(self, n: int, *, seed: int) -> pd.DataFrame:
            state[0] += 1
            if fails and state[0] == 1.5:
                raise ValueError("only without a seed")
            return good(TABLE, n, seed).assign(x=state[0])

        def __reduce__(self) -> tuple[Any, ...]:
            return (lambda: lazy), ()

    lazy = Lazy()
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    shared = payload(good)
    monkeypatch.setattr("dpaudit.game.training.pickle.loads", lambda blob: lazy)
    first = features_of(run_trial(shared, FIRST))
    assert np.array_equal(first, features_of(run_trial(shared, REPLAY)))
    assert state == [0.5 + 1]  # what the first, unseeded attempt left
    del sys.modules["torch"]  # the real one comes back with the patch undone


@dataclass
class Claiming:
    claim: Any

    def fit(self, data: pd.DataFrame, *, seed: int) -> Claiming:
        return self

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        return good(TABLE, n, seed)


def test_the_claim_of_a_fitted_model_is_kept() -> None:
    assert run_trial(payload(Claiming(PrivacyClaim(epsilon=0.25))), FIRST).claimed == (0.25, 0.0)
    assert run_trial(payload(Claiming(None)), FIRST).claimed is None
    assert run_trial(payload(Claiming("strong")), FIRST).status is TrialStatus.FAILED


def test_the_claim_of_a_fitted_model_is_restated_for_the_neighbours_of_the_game() -> None:
    def claimed(claim: PrivacyClaim, neighbours: Neighbours) -> float | None:
        shared = payload(Claiming(claim))
        view = replace(shared.game.view, neighbours=neighbours)
        lacks_in = () if neighbours is Neighbours.ADD_REMOVE else (1,)
        game = TargetGame(view=view, data=TABLE, missing={World.IN: lacks_in, World.OUT: (2,)})
        made = run_trial(replace(shared, game=game), FIRST).claimed
        return None if made is None else made.epsilon

    of_two = PrivacyClaim(epsilon=0.25, neighbours=Neighbours.REPLACE_ONE)
    assert claimed(PrivacyClaim(epsilon=0.25), Neighbours.REPLACE_ONE) == 0.5
    assert claimed(of_two, Neighbours.REPLACE_ONE) == 0.25
    assert claimed(of_two, Neighbours.ADD_REMOVE) is None  # nothing follows that way round


class Bad(Means):
    def __init__(self, features: Any) -> None:
        self.given = features

    def features(self, table: pd.DataFrame, game: GameView) -> FloatArray:
        if self.given is None:
            raise ValueError("mine")
        return np.asarray(self.given)


@pytest.mark.parametrize(
    ("features", "reason"),
    [
        (None, r"Bad failed: ValueError at \S+ in features: mine"),
        ([np.nan], "finite"),
        ([[1.0]], "flat"),
    ],
)
def test_an_attack_that_fails_is_nobodys_outcome(features: Any, reason: str) -> None:
    with pytest.raises(AttackError, match=reason):
        run_trial(payload(good, Bad(features)), FIRST)
