"""Whole audits of generators with known answers, on a small table."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpaudit
from dpaudit.auditing.entry import audit_by_keywords, run_audit
from dpaudit.auditing.games import audit_settings
from dpaudit.auditing.two_worlds.plan import power
from dpaudit.auditing.two_worlds.spec import build_two_worlds
from dpaudit.errors import ClaimError, RegistryError, RunFolderError, SettingsError
from dpaudit.game.worlds import TargetGame
from dpaudit.model.claim import NoClaim, PrivacyClaim
from dpaudit.model.tables import load
from dpaudit.plugins.protocols import World
from dpaudit.plugins.registry import carry
from samples import QUICK_ATTACKS

FAST = {"attacks": QUICK_ATTACKS, "shadow_models": 60, "jobs": 1}
SETTINGS = {name: value for name, value in FAST.items() if name != "jobs"}
ONE_ATTACK = {**FAST, "attacks": QUICK_ATTACKS[:1], "shadow_models": 36}
"""As small as an audit can be and still be consistent at epsilon 1."""
FORESTS = {**FAST, "attacks": ("query-target",)}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        {
            "age": rng.integers(20, 60, 40),
            "income": rng.normal(30, 5, 40).round(2),
            "city": rng.choice(["Bern", "Ulm", "Graz"], 40),
            "ill": rng.integers(0, 2, 40),
        }
    )
    table.loc[7, ["age", "income"]] = [88, 99.0]
    return table


def test_copycat_is_a_violation_close_to_the_largest_provable(table: pd.DataFrame) -> None:
    result = audit_by_keywords("copycat", table, **FORESTS)
    assert result.verdict is dpaudit.Verdict.VIOLATION
    assert result.max_provable_epsilon is not None
    assert result.max_provable_epsilon - result.epsilon_lower_bound < 0.05
    assert (result.target.choice, result.target.row) == ("exposing", 7)
    assert result.leaks
    assert "rows equal to the target" in result.reasons[1]
    assert all((leak.separation or 0) > 0.4 for leak in result.leaks[:3])
    with pytest.raises(
        AssertionError, match=r"(?s)VIOLATION  claimed epsilon 1,.*bound     2\.\d+ .*seed      0"
    ):
        result.assert_no_violation()


def test_null_is_consistent_with_bound_0(table: pd.DataFrame) -> None:
    result = audit_by_keywords("null", table, **FAST)
    assert result.verdict is dpaudit.Verdict.CONSISTENT
    assert result.epsilon_lower_bound == 0
    assert result.leaks == ()
    result.assert_no_violation()


@pytest.mark.parametrize(
    ("epsilon", "models"), [(1.2, 60), pytest.param(1.0, 200, marks=pytest.mark.slow)]
)
def test_randomised_response_is_consistent_at_its_epsilon_and_not_below(
    table: pd.DataFrame, epsilon: float, models: int
) -> None:
    options = {**FAST, "shadow_models": models, "parameters": {"epsilon": epsilon}}
    honest = audit_by_keywords("randomised-response", table, **options)
    assert honest.verdict is dpaudit.Verdict.CONSISTENT
    lying = audit_by_keywords("randomised-response", table, epsilon=0.2, **options)
    assert lying.verdict is dpaudit.Verdict.VIOLATION
    assert f"generator's own: {epsilon:g}" in lying.claim.source


@pytest.mark.ci
def test_laplace_histogram_is_consistent(table: pd.DataFrame) -> None:
    options = {**FAST, "parameters": {"column": "city"}}
    assert audit_by_keywords("laplace-histogram", table, **options).verdict is (
        dpaudit.Verdict.CONSISTENT
    )


class _UnequalGame(TargetGame):
    """The published mistake: 4 rows asked for in one world, 5 in the other."""

    def rows_requested(self, world: World) -> int:
        return 5 if world is World.IN else 4


def test_a_game_that_asks_for_unequal_rows_fails_its_null_control(
    table: pd.DataFrame, tmp_path: Path
) -> None:
    settings = audit_settings(shadow_models=24, rows=4)
    audit = build_two_worlds("null", load(table, None), settings)
    carry(_UnequalGame)
    broken = _UnequalGame(**vars(audit.game))
    result = run_audit(replace(audit, game=broken), tmp_path, jobs=1)
    assert result.verdict is dpaudit.Verdict.INVALID
    assert not result.controls.null.passed
    assert result.bounds is None
    assert "differ in more than the record" in result.reasons[0]
    with pytest.raises(AssertionError, match="INVALID"):
        result.assert_no_violation()


def test_no_public_call_takes_a_number_of_rows_per_world(table: pd.DataFrame) -> None:
    with pytest.raises(dpaudit.InputError, match="`rows_in` is no setting of an audit"):
        audit_by_keywords("null", table, rows_in=5, rows_out=4)


def test_a_bare_function_is_audited(table: pd.DataFrame) -> None:
    def resample(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
        return data.sample(n_rows, replace=True, random_state=seed)

    result = audit_by_keywords(resample, table, epsilon=0.1, **{**FAST, "shadow_models": 100})
    assert result.verdict is dpaudit.Verdict.VIOLATION
    assert any(name in leak.column for leak in result.leaks for name in ("age", "income"))


def bootstrap(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
    return data.sample(n_rows, replace=True, random_state=seed % 2**32)


@pytest.mark.parametrize(
    ("game", "leak"),
    [
        ({}, 1.0),
        pytest.param({"records": 4, "shadow_models": 60}, 1.0, marks=pytest.mark.ci),
        ({"one_run": True}, 1.0),
    ],
    ids=["two worlds", "many records", "one run"],
)
def test_without_a_claim_epsilon_is_measured(
    table: pd.DataFrame, game: dict[str, Any], leak: float
) -> None:
    if "one_run" in game:
        given = {"jobs": 1, **game}
        table = pd.DataFrame(np.random.default_rng(2).normal(size=(300, 4)), columns=list("abcd"))
    else:
        given = {**FAST, **game}
    result = audit_by_keywords(bootstrap, table, delta=1e-5, **given)
    assert result.verdict is dpaudit.Verdict.MEASURED
    assert result.claim == NoClaim(delta=1e-5)
    assert result.epsilon_lower_bound == result.proved
    assert result.epsilon_lower_bound > leak
    assert (result.detectable_epsilon, result.detectable_gaussian) == (None, None)
    assert result.epsilon_lower_bound <= (result.max_provable_epsilon or 0.0)
    assert result.claimed_epsilon == float("inf")
    with pytest.raises(AssertionError, match=r"(?s)no claim was given.*MEASURED  empirical"):
        result.assert_no_violation()
    with pytest.raises(AssertionError, match=r"which is not below 0\.1"):
        result.assert_epsilon_below(0.1)
    result.assert_epsilon_below(result.epsilon_lower_bound + 1e-9)


def test_what_is_measured_is_what_a_claim_would_be_held_to(
    table: pd.DataFrame, tmp_path: Path
) -> None:
    few = {**SETTINGS, "shadow_models": 40}
    claimed = audit_by_keywords("copycat", table, epsilon=0.3, delta=1e-5, jobs=1, **few)
    own = build_two_worlds("copycat", load(table, None), audit_settings(delta=1e-5, **few))
    free = run_audit(replace(own, claim=NoClaim(delta=1e-5)), tmp_path, jobs=1)
    assert free.verdict is dpaudit.Verdict.MEASURED
    assert free.attacks == claimed.attacks
    assert free.proved == claimed.proved


def test_a_generator_that_ignores_its_data_measures_0(table: pd.DataFrame) -> None:
    result = audit_by_keywords(constant, table, **ONE_ATTACK)
    assert (result.verdict, result.proved) == (dpaudit.Verdict.MEASURED, 0.0)
    assert result.probes is None
    assert "probe" not in str(result)
    assert not result.proves_leak
    result.assert_epsilon_below(0.5)


def test_models_that_claim_are_held_to_it(table: pd.DataFrame) -> None:
    result = audit_by_keywords(ClaimingModels(), table, **FAST)
    assert isinstance(result.claim, PrivacyClaim)
    assert result.claim.epsilon == 0.5
    assert result.claim.source.startswith("no claim was given; largest that a fitted model claimed")
    assert result.verdict is dpaudit.Verdict.VIOLATION


def test_what_stops_at_a_claim_needs_one(table: pd.DataFrame) -> None:
    with pytest.raises(ClaimError, match="`sequential` needs a claim, and none was given"):
        audit_by_keywords(bootstrap, table, sequential=True, **FAST)
    with pytest.raises(ClaimError, match="a replay needs a claim, and none was given"):
        dpaudit.replay(bootstrap, table)


def constant(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
    noise = np.random.default_rng(seed).normal(30, 5, n_rows)
    return pd.DataFrame({"age": 30, "income": noise, "city": "Bern", "ill": 0})


class ClaimingModels:
    """Claims nothing itself; its models release their data and claim an epsilon of 0.5."""

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> ClaimingModels:
        self.data, self.claim = data, PrivacyClaim(epsilon=0.5)
        return self

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        return self.data.sample(n, replace=True, random_state=0)


def test_a_class_is_refused_with_the_remedy(table: pd.DataFrame) -> None:
    with pytest.raises(RegistryError, match="hand in an instance"):
        audit_by_keywords(_Seedless, table, epsilon=1)


class _Seedless:
    """Draws from the system's entropy, as production noise must."""

    claim = PrivacyClaim(epsilon=1.0)
    seedable = False

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> _Seedless:
        self.columns = {name: data[name].iloc[0] for name in data}
        return self

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        noise = np.frombuffer(os.urandom(8 * n), dtype=np.uint64) % 60
        return pd.DataFrame({**self.columns, "age": 20 + noise.astype(int)}, index=range(n))


@pytest.mark.ci
def test_a_generator_that_cannot_be_seeded_is_audited(table: pd.DataFrame) -> None:
    result = audit_by_keywords(_Seedless(), table, **FAST)
    assert result.verdict is dpaudit.Verdict.CONSISTENT
    assert result.generator.seedable is False
    assert any("secure noise" in check.detail for check in result.checks)


def test_a_constant_generator_is_consistent(table: pd.DataFrame) -> None:
    row = table.iloc[[0]]

    def constant(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
        return pd.concat([row] * n_rows)

    result = audit_by_keywords(constant, table, epsilon=1, **ONE_ATTACK)
    assert result.verdict is dpaudit.Verdict.CONSISTENT
    assert result.epsilon_lower_bound == 0
    assert any("constant" in reason for reason in result.reasons)


def test_an_output_that_ignores_the_seed_is_named_and_not_a_column(table: pd.DataFrame) -> None:
    def frozen(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
        return data.iloc[np.arange(n_rows) % len(data)].reset_index(drop=True)

    result = audit_by_keywords(frozen, table, epsilon=1, **FAST)
    assert result.verdict is dpaudit.Verdict.VIOLATION
    assert result.reasons[1] == "the leak is in the whole output, which the seed does not change"


def test_replace_one_plays_tables_of_equal_size_and_restates_the_claim(table: pd.DataFrame) -> None:
    few = {**FAST, "shadow_models": 24}
    result = audit_by_keywords("randomised-response", table, neighbours="replace-one", **few)
    assert result.claim.neighbours is dpaudit.Neighbours.REPLACE_ONE
    assert result.claim.epsilon == 2.0


def test_too_few_models_for_the_claim_is_inconclusive_and_fails_a_test(table: pd.DataFrame) -> None:
    result = audit_by_keywords("null", table, epsilon=8, **{**ONE_ATTACK, "shadow_models": 24})
    assert result.verdict is dpaudit.Verdict.INCONCLUSIVE
    with pytest.raises(AssertionError, match="INCONCLUSIVE"):
        result.assert_no_violation()
    result.assert_no_violation(on_inconclusive="pass")


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.ci)])
def test_same_call_same_document_and_another_seed_another(
    table: pd.DataFrame, tmp_path: Path, jobs: int
) -> None:
    few = {**ONE_ATTACK, "shadow_models": 24}
    first = audit_by_keywords(
        "randomised-response", table, out=tmp_path / "a", **{**few, "jobs": jobs}
    )
    again = audit_by_keywords("randomised-response", table, **few)
    other = audit_by_keywords("randomised-response", table, seed=1, **few)
    assert replace(first, seconds=0.0) == replace(again, seconds=0.0)
    assert first.scores != other.scores
    stored = json.loads((tmp_path / "a" / "result.json").read_text())
    assert stored == json.loads(first.to_json())
    with pytest.raises(RunFolderError, match="seed is 0 there and 1 here"):
        audit_by_keywords("randomised-response", table, seed=1, out=tmp_path / "a", **few)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shadow_models": 31}, "must be even"),
        ({"rows": 0}, "at least 1"),
        ({"confidence": 1.0}, "confidence"),
        ({"seed": -1}, "seed"),
        ({"attacks": ("groundhog", "groundhog")}, "named twice"),
        ({"attacks": ()}, "at least one attack"),
        ({"attacks": ("query-absolute",)}, "income"),
        ({"jobs": 0}, "jobs"),
    ],
)
def test_senseless_settings_are_refused(
    table: pd.DataFrame, options: dict[str, object], message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        audit_by_keywords("null", table, **{**FAST, **options})  # type: ignore[arg-type]


class _ClaimingModel:
    """What a data-dependent accountant prints: a claim that differs between the worlds."""

    def __init__(self, claim: PrivacyClaim) -> None:
        self.claim = claim

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        values = {"age": 30, "income": 30.0, "city": "Ulm", "ill": 0}
        noise = np.random.default_rng(seed).normal(30, 1, n)
        return pd.DataFrame(values | {"income": noise}, index=range(n))


class _DataDependent:
    claim = PrivacyClaim(epsilon=1.0, source="before training")

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> _ClaimingModel:
        return _ClaimingModel(PrivacyClaim(epsilon=2.0 if len(data) == 40 else 3.0))


def test_a_data_dependent_claim_counts_as_the_larger_of_both_worlds(table: pd.DataFrame) -> None:
    few = {**ONE_ATTACK, "shadow_models": 24}
    result = audit_by_keywords(_DataDependent(), table, **few)
    assert result.claimed_epsilon == 3.0
    assert "in either world" in result.claim.source
    stated = audit_by_keywords(_DataDependent(), table, epsilon=1.5, **few)
    assert stated.claimed_epsilon == 1.5


class _FailsSometimes:
    """(0, 0.3)-DP: shows the target with probability 0.3 and says so once it is fitted."""

    claim = PrivacyClaim(epsilon=0.4, delta=1e-5, source="before training")

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> _ClaimingModel:
        rng = np.random.default_rng(seed)
        model = _ClaimingModel(PrivacyClaim(epsilon=0.5, delta=0.3))
        if rng.random() < 0.3 and data["age"].max() == 88:
            model.sample = lambda n, *, seed: data.sample(  # type: ignore[method-assign]
                n, replace=True, random_state=seed
            ).assign(age=88)
        return model


@pytest.mark.parametrize(
    ("models", "sequential"),
    [(40, False), pytest.param(120, True, marks=pytest.mark.ci)],
)
def test_a_fitted_claim_counts_with_its_delta_for_verdict_and_power(
    table: pd.DataFrame, models: int, sequential: bool
) -> None:
    options = {**FAST, "shadow_models": models, "sequential": sequential}
    honest = audit_by_keywords(_FailsSometimes(), table, **options)
    assert (honest.claim.epsilon, honest.claim.delta) == (0.5, 0.3)
    assert honest.verdict is not dpaudit.Verdict.VIOLATION
    expected = power(
        audit_settings(**{k: v for k, v in options.items() if k != "jobs"}), honest.claim
    )
    assert honest.detectable_epsilon == expected.detectable
    assert honest.max_provable_epsilon == expected.max_provable


@pytest.mark.ci
@pytest.mark.parametrize("sequential", [False, True])
def test_held_to_less_than_its_fitted_claim_it_is_a_violation(
    table: pd.DataFrame, sequential: bool
) -> None:
    options = {**FAST, "shadow_models": 120, "sequential": sequential}
    own = {"epsilon": 0.4, "delta": 1e-5}
    assert audit_by_keywords(_FailsSometimes(), table, **options, **own).verdict is (
        dpaudit.Verdict.VIOLATION
    )
