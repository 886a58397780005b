"""Whole audits of units: exact answers, planted leaks, honest twins, and what is refused."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpaudit
from dpaudit.auditing.entry import audit_by_keywords, run_audit
from dpaudit.auditing.games import audit_settings, audited_table, build_spec
from dpaudit.errors import ClaimError, SettingsError
from dpaudit.game.training import _claim_for
from dpaudit.game.trial import Role, Trial, TrialEnd, TrialStatus
from dpaudit.model.claim import (
    Claim,
    ConcentratedClaim,
    CurveClaim,
    GaussianClaim,
    Neighbours,
    NoClaim,
    PrivacyClaim,
)
from dpaudit.model.column import Column, Kind, Unit
from dpaudit.model.gaussian import gaussian_delta
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import World
from reports.units.mechanisms import LEAKS, ROW_SCHEMA, SCHEMA, ByRow, visits
from samples import QUICK_ATTACKS

FAST: dict[str, Any] = {"attacks": QUICK_ATTACKS, "jobs": 1}
"""Small audits of the attacks that cost little."""
BINARY = Schema(
    columns=(Column(name="ill", kind=Kind.BINARY, categories=(0, 1)),),
    label="ill",
    unit=Unit(column="patient"),
)


def with_unit_of(rows: int) -> pd.DataFrame:
    """A table whose patient 0 has so many rows, all ill."""
    others = np.arange(40)
    patients = [*([0] * rows), *(others + 1)]
    return pd.DataFrame({"patient": patients, "ill": [*([1] * rows), *(others % 2)]})


@pytest.mark.parametrize("rows", [1, 3, 10])
def test_group_privacy_is_exact_for_laplace_and_holds_for_gaussian_noise(rows: int) -> None:
    """Laplace noise moved by k scales costs exactly k epsilon; Gaussian noise is k mu-GDP."""
    per_row = PrivacyClaim(epsilon=0.4)
    assert per_row.of_group(rows).epsilon == pytest.approx(0.4 * rows)
    grid = np.linspace(-50, 50, 10_001)
    loss = 0.4 * (np.abs(grid) - np.abs(grid - rows))
    assert loss.max() == pytest.approx(per_row.of_group(rows).epsilon)

    mu = 0.5
    assert GaussianClaim(mu=mu).of_group(rows).mu == rows * mu
    for epsilon in (0.2, 0.5, 1.0):
        claim = PrivacyClaim(epsilon=epsilon, delta=gaussian_delta(epsilon, mu)).of_group(rows)
        exact = gaussian_delta(claim.epsilon, rows * mu)
        assert exact <= claim.delta * (1 + 1e-12)
        if rows == 1:
            assert exact == pytest.approx(claim.delta)
    # rho of a Gaussian shift is mu^2 / 2, and k rows shift k times as far.
    assert ConcentratedClaim(rho=mu**2 / 2).of_group(rows).rho == pytest.approx(
        (rows * mu) ** 2 / 2
    )
    curve = CurveClaim(points=((1.0, 1e-5),)).of_group(rows)
    assert curve.points == (tuple(_of(PrivacyClaim(epsilon=1.0, delta=1e-5).of_group(rows))),)


def _of(claim: PrivacyClaim) -> tuple[float, float]:
    return claim.epsilon, claim.delta


def test_a_group_of_two_is_what_a_replaced_row_costs() -> None:
    claim = PrivacyClaim(epsilon=1.0, delta=1e-5)
    replaced = claim.under(Neighbours.REPLACE_ONE)
    assert _of(claim.of_group(2)) == _of(replaced) == (2.0, (1 + math.e) * 1e-5)
    assert PrivacyClaim(epsilon=400.0, delta=0.5).of_group(10).delta < 1.0


LAPLACE = {1: 1.0, 3: 1.0, 10: 0.5}
"""Epsilon per row by the number of rows: small claims need few models to contradict them."""


K_ROWS = pytest.mark.parametrize(
    "rows", [pytest.param(1, marks=pytest.mark.ci), 3, pytest.param(10, marks=pytest.mark.ci)]
)


def audited_by_unit(
    generator: str, rows: int, *, claim: dict[str, float], noise: dict[str, float]
) -> dpaudit.AuditResult:
    """An audit of the unit with so many rows, of counts with noise meant for one row."""
    return audit_by_keywords(
        generator,
        with_unit_of(rows),
        schema=BINARY,
        parameters=noise,
        access="released",
        target="unit:0",
        shadow_models=120,
        jobs=1,
        **claim,
    )


@pytest.mark.ci
@K_ROWS
def test_a_claim_per_unit_of_laplace_counts_is_kept_and_one_per_row_is_not(rows: int) -> None:
    per_row = LAPLACE[rows]
    noise = {"epsilon": per_row}
    whole = {"epsilon": rows * per_row}
    kept = audited_by_unit("laplace-histogram", rows, claim=whole, noise=noise)
    assert kept.verdict is not dpaudit.Verdict.VIOLATION
    if rows > 1:
        found = audited_by_unit("laplace-histogram", rows, claim=noise, noise=noise)
        assert found.verdict is dpaudit.Verdict.VIOLATION
        assert found.proved is not None
        assert found.proved <= rows * per_row
        assert found.claim.unit == "patient"


@pytest.mark.ci
@K_ROWS
def test_a_claim_per_unit_of_gaussian_counts_is_kept_and_one_per_row_is_not(rows: int) -> None:
    noise = {"mu": 0.8}
    whole = {"mu": rows * 0.8}
    kept = audited_by_unit("gaussian-marginals", rows, claim=whole, noise=noise)
    assert kept.verdict is not dpaudit.Verdict.VIOLATION
    if rows > 1:
        found = audited_by_unit("gaussian-marginals", rows, claim=noise, noise=noise)
        assert found.verdict is dpaudit.Verdict.VIOLATION


@pytest.mark.parametrize(
    "name", ["noise", *(pytest.param(name, marks=pytest.mark.ci) for name in list(LEAKS)[1:])]
)
def test_a_leak_over_ten_rows_is_proved_and_its_honest_twin_is_not(name: str) -> None:
    """The attacked patient is found by the facts of all its rows."""
    settings: dict[str, Any] = {"schema": SCHEMA, "shadow_models": 60, **FAST}
    leaky = audit_by_keywords(LEAKS[name](), visits(0), **settings)
    assert leaky.verdict is dpaudit.Verdict.VIOLATION
    assert (leaky.target.choice, leaky.target.row, leaky.target.rows_of_unit) == ("exposing", 0, 10)
    honest = audit_by_keywords(LEAKS[name](honest=True), visits(0), **settings)
    assert honest.verdict is not dpaudit.Verdict.VIOLATION


@pytest.mark.parametrize("name", [pytest.param("suppression", marks=pytest.mark.ci), "total"])
def test_no_single_row_shows_such_a_leak(name: str) -> None:
    """Without one of the ten rows the model is the same."""
    table = visits(0)
    whole = LEAKS[name]().fit(table, seed=3)
    for row in range(10):
        one_less = LEAKS[name]().fit(table.drop(index=row), seed=3)
        assert one_less.limit == whole.limit
        assert one_less.shares.tolist() == whole.shares.tolist()
    without = LEAKS[name]().fit(table.iloc[10:], seed=3)
    assert (without.limit, without.shares.tolist()) != (whole.limit, whole.shares.tolist())
    found = audit_by_keywords(
        ByRow(generator=LEAKS[name]()),
        table,
        schema=ROW_SCHEMA,
        target="row:0",
        shadow_models=36,
        **FAST,
    )
    assert found.verdict is not dpaudit.Verdict.VIOLATION


@pytest.mark.ci
def test_a_sequential_audit_and_a_replaced_unit() -> None:
    for settings in ({"sequential": True}, {"neighbours": "replace-one", "epsilon": 1.0}):
        found = audit_by_keywords(
            LEAKS["suppression"](), visits(0), schema=SCHEMA, shadow_models=60, **settings, **FAST
        )
        assert found.verdict is dpaudit.Verdict.VIOLATION, settings


STEPS = Schema(
    columns=(Column(name="step", kind=Kind.CATEGORICAL, categories=tuple("ABCDEFGHIJ")),),
    unit=Unit(column="patient", max_rows=10),
)


@dataclass(frozen=True)
class Ordered:
    """Releases patients with every step once, in random order: of one, in that of patient 0.

    Rows of five patients take turns, so that only the released patient shows which belong together.
    """

    releases: bool
    own: tuple[str, ...] = ()

    @property
    def claim(self) -> Claim:
        return PrivacyClaim(epsilon=1.0, unit="patient")

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> Ordered:
        return replace(self, own=tuple(data.loc[data["patient"] == 0, "step"]))

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        rng = np.random.default_rng(seed)
        steps = np.array([rng.permutation(list("ABCDEFGHIJ")) for _ in range(5)])
        if self.own:
            steps[0] = self.own
        turns = rng.permutation(5)
        table = pd.DataFrame({"step": steps[turns].T.ravel(), "patient": np.tile(turns, 10)})
        return table if self.releases else table.drop(columns="patient")


@pytest.mark.parametrize("releases", [True, pytest.param(False, marks=pytest.mark.ci)])
def test_order_within_a_unit_is_seen_where_units_are_released(releases: bool) -> None:
    """Both worlds release the same rows, in the same numbers for each patient."""
    rng = np.random.default_rng(3)
    steps = [rng.permutation(list("ABCDEFGHIJ")) for _ in range(20)]
    table = pd.DataFrame({"patient": np.repeat(range(20), 10), "step": np.concatenate(steps)})
    found = audit_by_keywords(
        Ordered(releases), table, schema=STEPS, rows=50, target="unit:0", shadow_models=60, **FAST
    )
    assert (found.verdict is dpaudit.Verdict.VIOLATION) == releases


@dataclass(frozen=True)
class Claiming:
    """Draws from its schema alone, and claims something."""

    claim: Claim | None

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> Any:
        assert "patient" in data
        return LEAKS["total"](honest=True).fit(data, seed=seed)


SMALL: dict[str, Any] = {"attacks": QUICK_ATTACKS, "shadow_models": 20}


def spec_of(claim: Claim | None, **settings: Any) -> Any:
    schema = settings.pop("schema", SCHEMA)
    chosen = audit_settings(**({} if "one_run" in settings else SMALL), **settings)
    return build_spec(Claiming(claim), audited_table(visits(0), schema, chosen), chosen)


@pytest.mark.parametrize(
    ("claim", "says"),
    [
        (
            PrivacyClaim(epsilon=0.5),
            "claims (0.5, 0)-DP per row, which says less about a patient with 10 rows: group "
            "privacy allows (5, 0)-DP (10 times epsilon); state the claim per patient, such as "
            "`epsilon=5`, or audit rows without `unit`",
        ),
        (
            PrivacyClaim(epsilon=0.1, delta=1e-6),
            "group privacy allows (1, 1.6338e-05)-DP (10 times epsilon, and delta times 1 + "
            "e^epsilon + ... + e^(9 epsilon)); state the claim per patient, such as `epsilon=1` "
            "and `delta=1.6338e-05`",
        ),
        (GaussianClaim(mu=0.5), "group privacy allows 5-Gaussian DP (10 times mu); state"),
        (ConcentratedClaim(rho=0.5), "group privacy allows 50-zCDP (10² times rho); state"),
        (CurveClaim(points=((1.0, 0.0),)), "such as `curve` with these points"),
        (
            PrivacyClaim(epsilon=1, unit="doctor"),
            "claims (1, 0)-DP per doctor, and this audit is per patient",
        ),
    ],
)
def test_a_claim_of_the_generator_for_another_unit_is_refused(claim: Claim, says: str) -> None:
    with pytest.raises(ClaimError) as caught:
        spec_of(claim)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    stated = spec_of(claim, epsilon=3.0).claim
    assert (stated.epsilon, stated.unit) == (3.0, "patient")


def test_a_claim_per_unit_is_refused_in_an_audit_of_rows() -> None:
    claim = PrivacyClaim(epsilon=1.0, unit="patient")
    with pytest.raises(ClaimError, match="per patient, and this audit is of single rows"):
        spec_of(claim, schema=ROW_SCHEMA)
    assert spec_of(claim).claim == claim
    assert spec_of(None).claim == NoClaim(unit="patient")


def test_the_claim_of_the_caller_says_its_unit() -> None:
    plain = replace(SCHEMA, unit=None)
    found = spec_of(None, schema=plain, epsilon=2.0, unit="patient", max_rows_per_unit=10)
    assert found.claim.unit == "patient"
    assert found.table.schema == SCHEMA
    assert "--set unit=patient --set max-rows-per-unit=10" in found.reproduce
    assert "unit=" not in spec_of(None, epsilon=2.0).reproduce
    stated = dpaudit.StatedClaim.of(PrivacyClaim(epsilon=2.0, unit="patient"))
    assert stated.unit == "patient"
    assert stated.is_stated
    assert not dpaudit.StatedClaim(unit="patient").is_stated


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"target": "vulnerable"}, "compares rows, not units"),
        ({"unit": "doctor"}, "the schema's unit is 'patient' with at most 10 rows, not 'doctor'"),
        ({"max_rows_per_unit": 3}, "`max_rows_per_unit` needs `unit`"),
    ],
)
def test_what_does_not_go_together_is_refused(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        spec_of(None, epsilon=1.0, **settings)


def test_a_worst_case_has_no_units() -> None:
    chosen = audit_settings(worst_case="opposite")
    with pytest.raises(SettingsError, match="a worst case has single rows and no units"):
        audited_table(None, SCHEMA, chosen)


def test_a_pair_of_the_caller_differs_in_a_unit(tmp_path: Path) -> None:
    path = tmp_path / "without.csv"
    table = visits(0)
    table[table["patient"] != 7].to_csv(path, index=False)
    spec = spec_of(None, epsilon=1.0, neighbours_file=str(path))
    assert spec.target.rows == tuple(np.flatnonzero(table["patient"] == 7).tolist())
    assert len(spec.game.table(World.OUT, 0)) == len(table) - len(spec.target.rows)


def test_a_claim_of_a_fitted_model_counts_if_it_is_for_the_unit() -> None:
    view = spec_of(None).game.view
    loud = Claiming(PrivacyClaim(epsilon=9.0))
    assert _claim_for(loud.claim, view) is None
    mine = Claiming(PrivacyClaim(epsilon=9.0, unit="patient"))
    found = _claim_for(mine.claim, view)
    assert found is not None
    assert found.epsilon == 9.0
    small = spec_of(PrivacyClaim(epsilon=1.0, unit="patient"))
    trial = Trial(Role.AUDIT, World.IN, 0)
    ended = TrialEnd(trial=trial, status=TrialStatus.FINISHED, claimed=found)
    largest = small.effective_claim([ended])
    assert (largest.value, largest.unit) == (9.0, "patient")


def test_the_replacement_of_a_unit_is_of_the_same_unit_and_new_in_every_row() -> None:
    game = spec_of(None, epsilon=1.0, neighbours="replace-one").game
    inside, outside = (game.table(world, 0) for world in World)
    assert inside["patient"].tolist() == outside["patient"].tolist()
    differ = (inside.drop(columns="patient") != outside.drop(columns="patient")).any(axis=1)
    assert np.flatnonzero(differ).tolist() == list(range(10))


def test_results_name_the_unit(tmp_path: Path) -> None:
    spec = spec_of(None, epsilon=1.0)
    result = run_audit(spec, tmp_path / "run", jobs=1)
    document = json.loads((tmp_path / "run" / "result.json").read_text())
    assert document["claim"]["unit"] == "patient"
    assert document["target"]["rows_of_unit"] == 10
    assert document["data"]["units"] == 41
    report = (tmp_path / "run" / "report.md").read_text()
    assert "all rows of one patient" in report
    text = " ".join(str(dpaudit.AuditResult.load(tmp_path / "run")).split())
    assert "add or remove all rows of one patient" in text
    assert "10 rows of one patient (from row 0), the most exposed unit" in text
    assert result.claim.unit == "patient"


def test_a_unit_for_every_row_is_said_to_be_a_row() -> None:
    table = with_unit_of(1)
    found = audit_by_keywords(
        "null", table, schema=BINARY, epsilon=1.0, shadow_models=20, attacks=QUICK_ATTACKS[:1]
    )
    said = "every patient has one row, so this equals an audit of rows"
    assert said in " ".join(str(found).split())
