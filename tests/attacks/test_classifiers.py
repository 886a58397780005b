from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from dpaudit.errors import SettingsError
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import Attack, BoolArray, FloatArray
from dpaudit_attacks.classifiers import SCREENED, separation, train
from dpaudit_attacks.form import TableForm
from dpaudit_attacks.groundhog import Ensemble, Histogram
from dpaudit_attacks.queries import TargetQueries
from samples import game_view

NAMES = ["random-forest", "logistic-regression", "gradient-boosting"]


def models(
    *, n: int = 400, f: int = 20, shifted: int = 0, by: float = 0.0, seed: int = 0
) -> tuple[FloatArray, BoolArray]:
    """Features [n, f] of which the first `shifted` differ between the worlds by `by` deviations."""
    rng = np.random.default_rng(seed)
    member = rng.permutation(np.arange(n) % 2 == 1)
    features = rng.normal(size=(n, f))
    features[:, :shifted] += by * member[:, None]
    return features, member


def held_out_auc(name: str, features: FloatArray, member: BoolArray) -> float:
    part = len(member) * 2 // 5
    scores = train(name, features[:part], member[:part], seed=1)(features[part:])
    assert scores.shape == (len(member) - part,)
    assert ((scores >= 0) & (scores <= 1)).all()
    return float(roc_auc_score(member[part:], scores))


def test_separation_agrees_with_the_auc() -> None:
    features, member = models(n=60, f=6, shifted=3, by=1.0)
    features[:, ::2] = features[:, ::2].round()  # ties
    features[:, 5] = 7.0
    expected = [abs(roc_auc_score(member, column) - 0.5) for column in features.T]
    assert separation(features, member) == pytest.approx(expected)
    assert separation(features, member)[5] == 0


@pytest.mark.parametrize("name", NAMES)
def test_a_shifted_feature_is_found(name: str) -> None:
    assert held_out_auc(name, *models(shifted=1, by=3.0)) > 0.9


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_found_where_there_is_nothing(name: str) -> None:
    found = [held_out_auc(name, *models(f=100, seed=seed)) for seed in range(4)]
    assert np.mean(found) == pytest.approx(0.5, abs=0.08)  # 4 standard errors
    assert len(set(found)) == 4


def test_the_forest_finds_one_informative_feature_among_thousands() -> None:
    # Default settings (no screen, the square root of the features at each split) end near .65.
    assert held_out_auc("random-forest", *models(f=4096, shifted=1, by=2.3)) > 0.85


def test_the_forest_sees_the_best_features_only() -> None:
    features, member = models(n=100, f=200, shifted=5, by=0.8)
    scorer = train("random-forest", features, member, seed=1)
    best = np.argsort(separation(features, member))[-SCREENED:]
    others = np.zeros_like(features)
    others[:, best] = features[:, best]
    assert (scorer(others) == scorer(features)).all()
    others[:, best[-5:]] = 0
    assert (scorer(others) != scorer(features)).any()


def test_the_forest_tells_large_neighbouring_numbers_apart() -> None:
    features, member = models(f=3)
    features[:, 1] = 1e9 + member  # the same number in float32
    assert held_out_auc("random-forest", features, member) == 1.0


@pytest.mark.parametrize("name", NAMES)
def test_the_seed_decides_everything(name: str) -> None:
    features, member = models(shifted=3, by=0.5)
    first, again, other = (train(name, features, member, seed=s)(features) for s in (5, 5, 6))
    assert (first == again).all()
    if name == "random-forest":
        assert (first != other).any()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [1, 3, pytest.param(4096, marks=pytest.mark.ci)])
def test_degenerate_features_are_no_trouble(name: str, width: int) -> None:
    features, member = models(n=40, f=width)
    constant = np.full_like(features, 3.0)
    assert (train(name, constant, member, seed=1)(features) == 0.5).all()
    if width > 1:
        constant[:, 0] = member  # one informative, the rest constant
        constant[:, 1] = member  # and its duplicate
        scores = train(name, constant, member, seed=1)(constant)
        assert roc_auc_score(member, scores) == 1.0
    assert np.isfinite(train(name, features, member, seed=1)(features)).all()


@pytest.mark.parametrize("name", NAMES)
def test_scorers_survive_pickling(name: str) -> None:
    features, member = models(n=60, f=4)
    scorer = train(name, features, member, seed=1)
    assert (pickle.loads(pickle.dumps(scorer))(features) == scorer(features)).all()


def test_bad_requests_are_refused() -> None:
    features, member = models(n=10)
    with pytest.raises(SettingsError, match="did you mean 'logistic-regression'"):
        train("logistic-regresion", features, member, seed=1)
    with pytest.raises(
        SettingsError, match="unknown classifier 'zzz'; there are: chosen, random-forest"
    ):
        train("zzz", features, member, seed=1)
    with pytest.raises(SettingsError, match="models of one world only"):
        train("random-forest", features, np.ones(10, dtype=np.bool_), seed=1)


SCHEMA = Schema(
    columns=(
        Column(name="age", kind=Kind.INTEGER, lower=0, upper=99),
        Column(name="pay", kind=Kind.CONTINUOUS, lower=0.0, upper=1.0),
        Column(name="sex", kind=Kind.BINARY, categories=("F", "M")),
    )
)


def play(attack: Attack, *, copies: int, trials: int = 60) -> float:
    """Held-out AUC against a generator that inserts the target `copies` times in world "in"."""
    target = SCHEMA.canonical(pd.DataFrame({"age": [99], "pay": [0.99], "sex": ["M"]}))
    features, member = [], np.arange(trials) % 2 == 1
    game = game_view(SCHEMA, target, n_rows=50)
    for trial in range(trials):
        rng = np.random.default_rng(trial)
        table = pd.DataFrame(
            {
                "age": rng.integers(0, 90, 50),
                "pay": rng.random(50) * 0.9,
                "sex": rng.choice(["F", "M"], 50),
            }
        )
        if member[trial] and copies:
            table = pd.concat([table[copies:], *[target] * copies], ignore_index=True)
        features.append(attack.features(SCHEMA.canonical(table), game))
    matrix, part = np.array(features), trials // 2
    scorer = attack.fit(matrix[:part], member[:part], seed=1)
    return float(roc_auc_score(member[part:], scorer(matrix[part:])))


@pytest.mark.parametrize("attack", [Ensemble(), Histogram(), TargetQueries(), TableForm()])
def test_attacks_catch_a_generator_that_inserts_the_target(attack: Attack) -> None:
    assert play(attack, copies=5) > 0.95


@pytest.mark.parametrize(
    "attack",
    [
        TargetQueries(),
        *(
            pytest.param(one, marks=pytest.mark.ci)
            for one in (Ensemble(), Histogram(), TableForm())
        ),
    ],
)
def test_attacks_are_blind_where_the_worlds_do_not_differ(attack: Attack) -> None:
    # 300 models are scored: the standard error of the AUC under the null is .033.
    assert play(attack, copies=0, trials=600) == pytest.approx(0.5, abs=0.12)
