"""What an audit holds in memory, and how often it reads, as its trials grow in number and size."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpaudit.auditing.games import audit_settings
from dpaudit.auditing.two_worlds import attacking
from dpaudit.auditing.two_worlds.attacking import Evaluation, Part, attack_all
from dpaudit.auditing.two_worlds.findings import attribute
from dpaudit.auditing.two_worlds.spec import TwoWorldSpec, build_two_worlds, plan_trials
from dpaudit.bounds import Counts, Direction, Threshold
from dpaudit.game.store import RunFolder
from dpaudit.game.trial import Outcome, Role, TrialStatus
from dpaudit.model.tables import load
from dpaudit.plugins.protocols import BoolArray, FeatureName, FloatArray, GameView, Scorer, World

ATTACKS, FEATURES, PER_WORLD = 10, 1500, 60
TABLE = pd.DataFrame({"x": np.linspace(0.0, 1.0, 20), "k": np.arange(20)})


@dataclass
class Wide:
    """An attack of many features; it scores by the first of them."""

    def check(self, game: GameView) -> None: ...

    def feature_names(self, game: GameView) -> tuple[FeatureName, ...]:
        return tuple(FeatureName("x", str(number)) for number in range(FEATURES))

    def features(self, table: Any, game: GameView) -> FloatArray:
        return np.zeros(FEATURES)

    def fit(self, features: FloatArray, member: BoolArray, *, seed: int) -> Scorer:
        return lambda rows: rows[:, 0]


def spec(**settings: Any) -> TwoWorldSpec:
    kinds = [type(f"Wide{number}", (Wide,), {}) for number in range(ATTACKS)]
    # a combination of all attacks holds the features of all
    chosen = {"shadow_models": 2 * PER_WORLD, "rows": 5, "multiplicity": "bonferroni"} | settings
    return build_two_worlds(
        "null", load(TABLE, None), audit_settings(attacks=tuple(kind() for kind in kinds), **chosen)
    )


def filled(path: Path, audit: TwoWorldSpec) -> RunFolder:
    rng = np.random.default_rng(0)
    folder = RunFolder(path, spec=audit.stored_specification, versions={})
    for trial in plan_trials(audit, Role.AUDIT, audit.settings).trials():
        features = rng.normal(size=ATTACKS * FEATURES) + (trial.world is World.IN)
        folder.save(Outcome(trial=trial, status=TrialStatus.FINISHED, features=features))
    return folder


def peak_of(run: Callable[[], Any]) -> tuple[Any, int]:
    """What a function gives, and the most bytes that it held at a time."""
    tracemalloc.start()
    try:
        return run(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.ci
def test_an_attack_holds_its_own_features_of_one_part_alone(tmp_path: Path) -> None:
    audit = spec()
    stored = 2 * PER_WORLD * ATTACKS * FEATURES * 8
    with filled(tmp_path, audit) as folder:
        attacked, peak = peak_of(
            lambda: attack_all(
                audit, folder.outcomes(Role.AUDIT), Role.AUDIT, audit.settings, audit.claim
            )
        )
    assert len(attacked) == ATTACKS
    assert peak < stored / 3


def test_many_trials_are_scored_and_explained_some_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    member = np.arange(4000) < 2000
    scored = Part(rng.normal(size=(4000, 200)) + 0.3 * member[:, None], member)
    evaluation = Evaluation(
        counts=Counts(0, 0, 2000, 2000),
        threshold=Threshold(0.0, Direction.HIGHER),
        guesses=None,
        bounds={},
        auc=0.9,
        scores=scored.features[:].sum(axis=1),
        scorer=lambda rows: rows.sum(axis=1),
    )
    names = [FeatureName("x", str(number)) for number in range(200)]

    def explained() -> Any:
        return attribute(evaluation, scored, names, most=10, rng=np.random.default_rng(1))

    found, peak = peak_of(explained)
    assert peak < 2 * scored.features[:].nbytes
    monkeypatch.setattr(attacking, "SCORED_AT_ONCE", 10**6)
    assert explained() == found
    assert len(found) == 10
