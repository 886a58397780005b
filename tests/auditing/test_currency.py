"""Audits of claims in mu, rho and a privacy curve: verdict, record, report, command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import dpaudit
from dpaudit import AuditResult
from dpaudit.auditing.entry import audit_by_keywords
from dpaudit.auditing.games import audit_settings
from dpaudit.auditing.two_worlds.plan import needed_shadow_models, power
from dpaudit.bounds import guarantee_of
from dpaudit.cli.main import app
from dpaudit.errors import ClaimError, SettingsError
from dpaudit.model.claim import ConcentratedClaim, CurveClaim, DeltaClaim, GaussianClaim
from dpaudit.probe import probe
from dpaudit.report.render import render_html, render_markdown
from samples import QUICK_ATTACKS

FAST: dict[str, Any] = {"attacks": QUICK_ATTACKS[1:], "shadow_models": 60, "jobs": 1}
POINTS = ((0.5, 1e-3), (1.0, 1e-5))


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    table = pd.DataFrame({name: [0] * 39 + [1] for name in ("a", "b", "c")})
    table["b"] = np.tile([0, 1], 20)
    return table


@pytest.fixture(scope="module")
def many() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return pd.DataFrame({"a": rng.normal(30, 5, 240), "b": rng.integers(20, 60, 240)})


@pytest.fixture(scope="module")
def of_mu(table: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> AuditResult:
    folder = tmp_path_factory.mktemp("audit") / "run"
    return audit_by_keywords("copycat", table, mu=0.5, target=39, out=folder, **FAST)


def test_a_gross_leak_violates_mu(of_mu: AuditResult) -> None:
    assert of_mu.verdict is dpaudit.Verdict.VIOLATION
    assert of_mu.claim == GaussianClaim(mu=0.5, source="set for this audit (generator's own: 1)")
    assert of_mu.reach is not None
    assert (of_mu.reach.quantity, of_mu.reach.claimed) == ("mu", 0.5)
    assert of_mu.proved is not None
    assert of_mu.reach.max_provable is not None
    assert 2.5 < of_mu.proved <= of_mu.reach.max_provable
    assert of_mu.max_provable_epsilon is None
    assert of_mu.epsilon_lower_bound == 0
    assert of_mu.claimed_epsilon == np.inf
    assert of_mu.reasons[0].startswith("violates 0.5-Gaussian DP: at 95 % confidence the true mu")
    assert str(of_mu).startswith("VIOLATION  claimed mu 0.5, empirical mu at least ")
    assert "--set mu=0.5" in of_mu.reproduce
    assert of_mu.controls is not None
    assert of_mu.controls.positive.passed


def test_the_record_of_mu_is_read_back(of_mu: AuditResult) -> None:
    document = json.loads(of_mu.to_json())
    assert document["claim"]["mu"] == 0.5
    assert "epsilon" not in document["claim"]
    assert of_mu.folder is not None
    assert AuditResult.load(of_mu.folder) == of_mu


def test_reports_speak_of_mu(of_mu: AuditResult) -> None:
    page, text = render_html(of_mu), render_markdown(of_mu)
    for report in (page, text):
        assert "Gaussian differential privacy with mu 0.5" in report
        assert "lower bounds on mu" in report
    assert "Claimed and empirical mu" in page
    assert "| Quantity | Mu | Meaning |" in text


def test_a_failing_test_says_mu(of_mu: AuditResult) -> None:
    said = r"(?s)claimed mu 0\.5, empirical mu at least.*claim     0\.5-Gaussian DP"
    with pytest.raises(AssertionError, match=said):
        of_mu.assert_no_violation()


@pytest.mark.parametrize(
    ("stated", "noun"),
    [
        pytest.param({"rho": 0.1}, "rho", marks=pytest.mark.ci),
        pytest.param({"curve": POINTS}, "curve factor", marks=pytest.mark.ci),
    ],
)
def test_gross_leaks_violate_rho_and_curves(
    table: pd.DataFrame, stated: dict[str, Any], noun: str
) -> None:
    result = audit_by_keywords("copycat", table, target=39, **stated, **FAST)
    assert result.verdict is dpaudit.Verdict.VIOLATION
    assert f"the true {noun} is at least" in result.reasons[0]
    assert noun in render_markdown(result)
    assert AuditResult.to_document(result)["reach"]["quantity"] == result.claim.quantity


@pytest.mark.ci
def test_a_generator_that_keeps_its_mu_is_not_flagged(table: pd.DataFrame) -> None:
    schema = dpaudit.Schema.infer(table)
    result = audit_by_keywords("gaussian-marginals", table, schema=schema, target=39, **FAST)
    assert isinstance(result.claim, GaussianClaim)
    assert result.claim.mu == 0.45
    assert result.verdict in (dpaudit.Verdict.INCONCLUSIVE, dpaudit.Verdict.CONSISTENT)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"mu": 1.0, "rho": 1.0}, "`mu` and `rho` state one claim each"),
        ({"mu": 1.0, "delta": 0.1}, "`delta` belongs to `epsilon`"),
    ],
)
def test_one_claim_is_stated(given: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        audit_settings(**given)


def test_what_bounds_epsilon_alone_refuses_other_claims(
    table: pd.DataFrame, many: pd.DataFrame
) -> None:
    with pytest.raises(SettingsError, match=r"bounds epsilon alone, and the claim is 1-zCDP"):
        audit_by_keywords("null", many, rho=1.0, records=4)
    with pytest.raises(SettingsError, match=r"probe bounds epsilon alone"):
        probe("gaussian-marginals", table)
    with pytest.raises(ClaimError, match="which has no delta: leave out `delta`"):
        audit_by_keywords("gaussian-marginals", table, delta=1e-5)


@pytest.mark.parametrize(
    ("stated", "noun"),
    [
        pytest.param({"mu": 0.5}, "mu", marks=pytest.mark.ci),
        pytest.param({"rho": 0.1}, "rho", marks=pytest.mark.slow),
        pytest.param({"curve": POINTS}, "curve factor", marks=pytest.mark.ci),
    ],
)
def test_sequential_audits_stop_at_a_gross_leak_of_any_claim(
    table: pd.DataFrame, stated: dict[str, Any], noun: str, tmp_path: Path
) -> None:
    settings = {**FAST, "shadow_models": 400, "probe": False, "seed": len(noun)}
    result = audit_by_keywords(
        "copycat", table, target=39, sequential=True, out=tmp_path, **stated, **settings
    )
    assert result.verdict is dpaudit.Verdict.VIOLATION
    assert f"the true {noun} is at least" in result.reasons[0]
    assert sum(result.shadow_models.values()) <= 64
    assert result.bounds["exact"] is None
    assert result.bounds["sequential"] == result.proved
    assert "lower bounds on" in render_markdown(result)
    found = json.loads(
        CliRunner().invoke(app, ["report", str(tmp_path), "--bounds", "--json"]).output
    )
    assert [(one["method"], one["value"]) for one in found["bounds"]] == [
        ("sequential", result.proved)
    ]


@pytest.mark.ci
def test_at_the_cap_a_sequential_audit_of_mu_has_both_bounds(table: pd.DataFrame) -> None:
    result = audit_by_keywords("null", table, target=39, mu=0.5, sequential=True, **FAST)
    assert result.verdict in (dpaudit.Verdict.CONSISTENT, dpaudit.Verdict.INCONCLUSIVE)
    assert result.bounds["sequential"] == result.bounds["exact"] == result.proved == 0.0


@pytest.mark.parametrize(
    ("stated", "noun"),
    [
        ({"mu": 0.2}, "mu"),
        pytest.param({"rho": 0.01}, "rho", marks=pytest.mark.slow),
        pytest.param({"curve": ((0.3, 1e-3),)}, "curve factor", marks=pytest.mark.ci),
    ],
)
def test_one_run_proves_a_gross_leak_of_any_claim(
    many: pd.DataFrame, stated: dict[str, Any], noun: str, tmp_path: Path
) -> None:
    def resample(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
        return data.sample(n_rows, replace=n_rows > len(data), random_state=seed)

    settings: dict[str, Any] = {"one_run": True, "canaries": 100, "jobs": 1, "seed": len(noun)}
    result = audit_by_keywords(resample, many, out=tmp_path, **stated, **settings)
    assert result.verdict is dpaudit.Verdict.VIOLATION
    assert f"the true {noun} is at least" in result.reasons[0]
    document = json.loads(result.to_json())
    assert document["bounds"]["one_run_in_turn"] == document["proved"]
    assert document["game"]["gaussian_estimate"] is None
    assert document["game"]["guesses"] in (12, 50)
    assert document["reach"]["max_provable"] >= document["proved"]
    assert "One training, many canaries" in render_html(result)
    found = json.loads(
        CliRunner().invoke(app, ["report", str(tmp_path), "--bounds", "--json"]).output
    )
    assert max(one["value"] for one in found["bounds"]) == document["proved"]


def test_one_run_of_a_null_generator_proves_nothing_about_mu(many: pd.DataFrame) -> None:
    result = audit_by_keywords("null", many, mu=0.5, one_run=True, canaries=100, jobs=1)
    assert result.verdict in (dpaudit.Verdict.CONSISTENT, dpaudit.Verdict.INCONCLUSIVE)
    assert result.proved == 0.0


@pytest.mark.parametrize(
    "claim",
    [
        GaussianClaim(mu=0.45),
        pytest.param(ConcentratedClaim(rho=0.1), marks=pytest.mark.ci),
        CurveClaim(points=POINTS),
    ],
)
def test_larger_audits_prove_more(claim: Any) -> None:
    usual = power(audit_settings(), claim)
    larger = power(audit_settings(shadow_models=1000), claim)
    assert usual.detectable is not None
    assert larger.detectable is not None
    assert claim.value < larger.detectable < usual.detectable < usual.max_provable
    assert usual.max_provable < larger.max_provable


def test_needed_shadow_models_reach_the_power() -> None:
    claim, settings = GaussianClaim(mu=0.3), audit_settings()
    error = guarantee_of(claim).balanced_error(1.2)
    assert error == pytest.approx(0.2743, abs=1e-3)  # Phi(-0.6)
    needed = needed_shadow_models(claim, 1.2, settings)
    assert needed is not None
    detected = power(audit_settings(shadow_models=needed), claim).detectable
    assert detected == pytest.approx(1.2, abs=0.05)


def test_the_command_line_plans_in_mu(tmp_path: Path) -> None:
    runner = CliRunner()
    said = runner.invoke(app, ["audit", "--plan", "--set", "mu=0.45"])
    assert said.exit_code == 0
    assert "claim     0.45-Gaussian DP" in said.output
    assert " detects mu " in said.output
    file = tmp_path / "curve.json"
    file.write_text(json.dumps(POINTS))
    planned = runner.invoke(app, ["audit", "--plan", "--set", f"curve={file}", "--json"])
    document = json.loads(planned.output)
    assert document["quantity"] == "factor"
    points = [(one["epsilon"], one["delta"]) for one in document["claim"]["points"]]
    assert points == [tuple(point) for point in POINTS]
    assert document["asked"]["detectable"] > 1
    refused = runner.invoke(app, ["audit", "--plan", "--set", "mu=1", "--set", "rho=1"])
    assert refused.exit_code == 2


def test_one_run_is_planned_in_mu() -> None:
    words = ["audit", "--plan", "--one-run", "--set", "mu=0.3", "--detect", "1.2", "--json"]
    document = json.loads(CliRunner().invoke(app, words).output)
    assert document["quantity"] == "mu"
    assert document["asked"]["max_provable"] == pytest.approx(0.96, abs=0.01)
    assert document["asked"]["scored"] == 50
    assert 0.3 < document["asked"]["detectable"] < 1.6
    assert 100 < document["needed"] < 400


def test_bounds_of_a_finished_run_are_on_mu(of_mu: AuditResult) -> None:
    runner, folder = CliRunner(), str(of_mu.folder)
    found = json.loads(runner.invoke(app, ["report", folder, "--bounds", "--json"]).output)
    assert found["quantity"] == "mu"
    assert found["bounds"][0]["value"] == of_mu.proved
    assert runner.invoke(app, ["report", folder, "--bounds"]).output.startswith(
        "BOUNDS  mu at least "
    )
    assert runner.invoke(app, ["report", folder, "--bounds", "--delta", "0.1"]).exit_code == 2


class ShowsRarely:
    """A generator that shows whether the last record is there, with a known chance: delta .4."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> ShowsRarely:
        is_there = bool((data["a"] == 1).any())
        self.shown = int(is_there and np.random.default_rng(seed).random() < 0.4)
        return self

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        coins = np.random.default_rng(seed).integers(0, 2, (n, 2))
        return pd.DataFrame({"a": [self.shown] * n, "b": coins[:, 0], "c": coins[:, 1]})


@pytest.mark.parametrize(
    ("delta", "is_violated"),
    [(0.05, True), pytest.param(0.4, False, marks=pytest.mark.ci)],
)
def test_delta_is_bounded_at_the_claimed_epsilon(
    table: pd.DataFrame, tmp_path: Path, delta: float, is_violated: bool
) -> None:
    given: dict[str, Any] = {**FAST, "shadow_models": 160, "target": 39, "out": tmp_path / "run"}
    schema = dpaudit.Schema.infer(table)
    result = audit_by_keywords(
        ShowsRarely(), table, schema=schema, epsilon=1.0, delta=delta, bound="delta", **given
    )
    assert result.claim == DeltaClaim(at_epsilon=1.0, delta=delta, source="set for this audit")
    assert (result.verdict is dpaudit.Verdict.VIOLATION) == is_violated, str(result)
    assert result.proved is not None
    assert result.proved <= 0.4
    assert result.reach is not None
    assert result.reach.quantity == "delta"
    assert "--set bound=delta" in result.reproduce
    assert AuditResult.load(tmp_path / "run") == result
    if is_violated:
        assert result.proved > 0.1
        assert str(result).startswith("VIOLATION  claimed delta 0.05, empirical delta at least ")
        assert "(1, 0.05)-differential privacy" in render_markdown(result)


def test_a_bound_on_delta_needs_a_claim_in_epsilon_and_delta(table: pd.DataFrame) -> None:
    with pytest.raises(SettingsError, match="needs a claim in epsilon and delta"):
        audit_by_keywords("copycat", table, mu=0.5, bound="delta", target=39, **FAST)
    with pytest.raises(SettingsError, match="leave out `bound`"):
        dpaudit.replay(ShowsRarely(), table, epsilon=1.0, bound="delta", target="row:39")
