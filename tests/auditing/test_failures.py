"""Whether a trial finished and how many rows came are observations like any other."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpaudit
from dpaudit.auditing.entry import audit_by_keywords
from dpaudit.auditing.games import audit_settings
from dpaudit.auditing.two_worlds.attacking import HowTrialsEnd, ending, features_of_ending
from dpaudit.auditing.two_worlds.controls import control_settings, first_control_settings
from dpaudit.auditing.two_worlds.findings import all_failed_alike, cannot_prove
from dpaudit.auditing.two_worlds.plan import highest_provable
from dpaudit.bounds import auc
from dpaudit.errors import GeneratorError
from dpaudit.game.flight import TrialProgress
from dpaudit.game.store import STORE_FILE
from dpaudit.game.trial import Outcome, Role, Trial, TrialStatus
from dpaudit.model.claim import Neighbours, PrivacyClaim
from dpaudit.plugins.protocols import World
from dpaudit.results.verdict import DIFFERENT_SEEDS, Verdict
from samples import QUICK_ATTACKS

FAST: dict[str, Any] = {
    "attacks": QUICK_ATTACKS,
    "shadow_models": 100,
    "epsilon": 1.0,
    "jobs": 1,
}
RULES: tuple[dict[str, Any], ...] = (
    {},
    {"multiplicity": "select"},
    {"sequential": True},
    {"sequential": True, "multiplicity": "select"},
    {"attacks": QUICK_ATTACKS[1:]},
)


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"age": rng.integers(20, 60, 40), "income": rng.normal(30, 5, 40)})
    table.loc[7] = [88, 99.0]
    return table


def noise(n_rows: int, seed: int) -> pd.DataFrame:
    """Synthetic records that show nothing."""
    rng = np.random.default_rng(seed)
    rows = {"age": rng.integers(20, 60, n_rows), "income": rng.normal(30, 5, n_rows)}
    return pd.DataFrame(rows)


def has_target(data: pd.DataFrame) -> bool:
    return bool(data["age"].max() == 88)


class Fails:
    """Raises with one probability if the target is there and with another if it is not."""

    def __init__(self, with_target: float, without: float) -> None:
        self.rates = (without, with_target)

    def __call__(self, data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
        if np.random.default_rng([seed, 1]).random() < self.rates[has_target(data)]:
            raise RuntimeError("no")
        return noise(n_rows, seed)


class Rows:
    """Returns one or another number of rows more than was asked for."""

    def __init__(self, with_target: int, without: int) -> None:
        self.more = (without, with_target)

    def __call__(self, data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
        return noise(n_rows + self.more[has_target(data)], seed)


@pytest.mark.parametrize(
    ("leak", "rules"),
    [
        *(pytest.param(Fails(1.0, 0.0), rules, marks=pytest.mark.ci) for rules in RULES),
        pytest.param(Fails(0.0, 0.75), RULES[-1], marks=pytest.mark.ci),
        pytest.param(Rows(1, 0), RULES[0], marks=pytest.mark.ci),
        pytest.param(Rows(0, -1), RULES[1], marks=pytest.mark.ci),
        (Rows(1, -1), RULES[2]),
    ],
)
def test_failing_or_another_number_of_rows_in_one_world_is_a_violation(
    table: pd.DataFrame, leak: Any, rules: dict[str, Any]
) -> None:
    result = audit_by_keywords(leak.__call__, table, **{**FAST, **rules})
    assert result.verdict is Verdict.VIOLATION
    assert result.attack == "trial outcomes"
    assert not any("instead of" in check.detail for check in result.checks)
    if not rules.get("sequential"):
        assert "(the trial itself)" in result.reasons[1]


@pytest.mark.parametrize(
    ("rate", "rules"),
    [
        pytest.param(0.1, RULES[0], marks=pytest.mark.ci),
        (0.8, RULES[4]),
        pytest.param(0.8, RULES[1], marks=pytest.mark.ci),
        pytest.param(0.8, RULES[2], marks=pytest.mark.ci),
    ],
)
def test_failing_alike_in_both_worlds_is_no_violation_and_costs_power(
    table: pd.DataFrame, rate: float, rules: dict[str, Any]
) -> None:
    sound = audit_by_keywords(Fails(0, 0).__call__, table, **{**FAST, **rules})
    result = audit_by_keywords(Fails(rate, rate).__call__, table, **{**FAST, **rules})
    assert result.verdict in (Verdict.CONSISTENT, Verdict.INCONCLUSIVE)
    assert result.max_provable_epsilon is not None
    assert sound.max_provable_epsilon is not None
    assert result.max_provable_epsilon < sound.max_provable_epsilon
    if rate > 0.5:
        assert result.verdict is Verdict.INCONCLUSIVE


@pytest.mark.ci
@pytest.mark.parametrize("audits", [8])
def test_a_leak_through_failing_that_keeps_the_claim_is_no_violation(
    table: pd.DataFrame, audits: int
) -> None:
    honest = Fails(np.e / (1 + np.e), 1 / (1 + np.e))  # randomised response at epsilon 1
    verdicts = Counter(
        audit_by_keywords(honest.__call__, table, **FAST, seed=seed).verdict
        for seed in range(audits)
    )
    assert verdicts[Verdict.VIOLATION] <= 1  # more than one by chance: P < 0.06


def test_a_generator_that_always_fails_stops_before_the_controls(
    table: pd.DataFrame, tmp_path: Path
) -> None:
    events: list[TrialProgress] = []
    why = "wrong row count: 43 rows instead of 40"
    with pytest.raises(GeneratorError, match=why):
        audit_by_keywords(Rows(3, 3).__call__, table, out=tmp_path, progress=events.append, **FAST)
    assert {event.role for event in events} == {Role.AUDIT}
    with closing(sqlite3.connect(tmp_path / STORE_FILE)) as store:
        [count] = store.execute("SELECT COUNT(*) FROM trial").fetchone()
    assert count <= 18
    with pytest.raises(GeneratorError, match=why):
        audit_by_keywords(Rows(3, 3).__call__, table, out=tmp_path, **FAST)


def test_a_model_of_each_world_is_trained_before_the_controls(table: pd.DataFrame) -> None:
    roles: list[str] = []
    audit_by_keywords("null", table, progress=lambda event: roles.append(event.role), **FAST)
    assert roles.index(Role.AUDIT) < roles.index(Role.NULL_CONTROL)


@pytest.mark.ci
def test_failures_are_counted_over_all_runs_of_a_folder(
    table: pd.DataFrame, tmp_path: Path
) -> None:
    def stop(event: TrialProgress) -> None:
        if event.role is Role.AUDIT and event.done > 50:
            raise KeyboardInterrupt

    leak = Fails(0.3, 0.3).__call__
    with pytest.raises(dpaudit.DpauditError):
        audit_by_keywords(leak, table, out=tmp_path, progress=stop, **FAST)
    last: list[TrialProgress] = []
    result = audit_by_keywords(leak, table, out=tmp_path, progress=last.append, **FAST)
    counted = [event.failed for event in last if event.role is Role.AUDIT]
    assert counted[-1] == sum(result.failures.values())


@pytest.mark.parametrize("models", [*range(20, 122, 6), 238, 240, 400])
def test_controls_cost_at_most_half_the_audit_unless_it_is_small(models: int) -> None:
    settings = audit_settings(shadow_models=models)
    first = first_control_settings(settings)
    assert 2 * first.game.shadow_models <= (models if models < 56 else models / 2)
    assert first.game.shadow_models >= min(14, models // 2 - 1)
    claim = PrivacyClaim(epsilon=1.0)
    assert highest_provable(first, claim) > 0  # else its controls could neither fail nor pass
    full = control_settings(settings)
    assert (full.game.per_world, full.confidence, full.game.is_full) == (30, 0.999, True)


@pytest.mark.ci
def test_small_controls_say_so_and_one_that_does_not_pass_is_run_in_full(
    table: pd.DataFrame,
) -> None:
    class SeesNothing:
        """An attack that the positive control must expose."""

        def check(self, game: Any) -> None: ...

        def feature_names(self, game: Any) -> tuple[dpaudit.FeatureName, ...]:
            return (dpaudit.FeatureName("age", "nothing"),)

        def features(self, table: pd.DataFrame, game: Any) -> Any:
            return np.zeros(1)

        def fit(self, features: Any, member: Any, *, seed: int) -> Any:
            return lambda rows: rows[:, 0]

    counts: Counter[str] = Counter()
    small = {**FAST, "shadow_models": 28}
    result = audit_by_keywords("null", table, **small)
    assert result.controls is not None
    assert "14 models instead of the 60 of a full control" in result.controls.null.detail
    small["attacks"] = (SeesNothing(),)
    result = audit_by_keywords(
        "null", table, progress=lambda event: counts.update([event.role]), **small
    )
    assert result.verdict is Verdict.INCONCLUSIVE
    assert counts[Role.POSITIVE_CONTROL] > 60
    assert result.controls is not None
    missed = result.controls.positive
    assert not missed.passed
    assert "the attack does not see copies of this target" in missed.detail
    assert missed.detail in result.reasons
    assert "positive control missed" in str(result)
    [seeds] = [one for one in result.checks if one.name == DIFFERENT_SEEDS]
    assert seeds.passed  # tables are compared, not the one constant feature


class SeesOrder:
    """A specialised attack: whether ages ascend, which no copy of the target shows."""

    def check(self, game: Any) -> None: ...

    def feature_names(self, game: Any) -> tuple[dpaudit.FeatureName, ...]:
        return (dpaudit.FeatureName("age", "ascends"),)

    def features(self, table: pd.DataFrame, game: Any) -> Any:
        return np.array([float(table["age"].is_monotonic_increasing)])

    def fit(self, features: Any, member: Any, *, seed: int) -> Any:
        return lambda rows: rows[:, 0]


@dataclass
class SortsWith:
    """Gives random ages; sorted ones if the target is among the data."""

    leaks: bool

    def __call__(self, data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
        ages = np.random.default_rng(seed).integers(0, 90, n_rows)
        made = data.iloc[np.zeros(n_rows, dtype=int)].reset_index(drop=True)
        seen = self.leaks and len(data) == 40
        return made.assign(age=np.sort(ages) if seen else ages)


def test_an_attack_that_sees_no_copies_proves_the_leak_that_it_sees(table: pd.DataFrame) -> None:
    given = {**FAST, "shadow_models": 60, "attacks": (SeesOrder(),), "epsilon": 1.0}
    leaking = audit_by_keywords(SortsWith(True), table, **given)
    assert leaking.verdict is Verdict.VIOLATION
    assert leaking.proved is not None
    assert leaking.proved > 2
    honest = audit_by_keywords(SortsWith(False), table, **given)
    assert honest.verdict is Verdict.INCONCLUSIVE
    assert honest.proved == 0


def failed(world: World, number: int, error: str = "RuntimeError", rows: Any = None) -> Outcome:
    trial = Trial(Role.AUDIT, world, number)
    return Outcome(trial=trial, status=TrialStatus.FAILED, error=error, rows=rows)


def test_all_failed_alike() -> None:
    alike = [failed(world, number) for world in World for number in range(8)]
    assert all_failed_alike(alike)
    other = [failed(World.IN, n, "KeyError") for n in range(8)]
    assert not all_failed_alike([*other, *(failed(World.OUT, n) for n in range(8))])
    counts = [failed(world, n, f"wrong row count: {n}", n) for world in World for n in range(8)]
    assert not all_failed_alike(counts)
    done = Outcome(trial=Trial(Role.AUDIT, World.IN, 9), status=TrialStatus.FINISHED)
    assert not all_failed_alike([*alike, done])


def test_when_nothing_can_be_proved_any_more() -> None:
    settings = audit_settings(shadow_models=60, multiplicity="bonferroni")
    claim = PrivacyClaim(epsilon=1.0)
    ends = [failed(world, number) for world in World for number in range(12)]
    scored = {end.trial for end in ends}
    assert cannot_prove(ends, settings, claim, scored=scored)
    assert not cannot_prove(ends, settings, claim, scored=set())
    assert not cannot_prove(ends[:5], settings, claim, scored=scored)  # of world in alone
    apart = [failed(world, n, world) for world in World for n in range(12)]
    assert not cannot_prove(apart, settings, claim, scored=scored)
    noisy = [failed(w, n, "wrong row count: 7 rows", n) for w in World for n in range(12)]
    assert not cannot_prove(noisy, settings, claim, scored=scored)
    small = audit_settings(shadow_models=20)
    hard = PrivacyClaim(epsilon=9.0, neighbours=Neighbours.ADD_REMOVE)
    assert not cannot_prove(ends, small, hard, scored=scored)  # nor could it without failures


def test_the_attack_on_endings_knows_rows_and_ways_of_failing_apart() -> None:
    rng = np.random.default_rng(0)
    ways = {World.IN: ("KeyError", None), World.OUT: ("wrong row count: 7 rows", 7)}
    ends = [failed(world, n, *ways[world]) for world in World for n in range(50)]
    features = np.array([features_of_ending(end, requested=40) for end in ends])
    member = np.array([end.trial.world is World.IN for end in ends])
    scorer = HowTrialsEnd().fit(features, member, seed=0)
    assert auc(scorer(features), member) == 1.0
    shuffled = rng.permutation(member)  # null test: nothing to learn for trials not fitted on
    half = rng.permutation(len(ends))[:50]
    rest = np.setdiff1d(np.arange(len(ends)), half)
    guess = HowTrialsEnd().fit(features[half], shuffled[half], seed=0)
    assert abs(auc(guess(features[rest]), shuffled[rest]) - 0.5) < 0.25
    assert ending(ends[0]) != ending(ends[-1])
    assert ending(failed(World.IN, 0, "wrong row count: 3 rows", 3)).way == (
        ending(failed(World.IN, 0, "wrong row count: 4 rows", 4)).way
    )
