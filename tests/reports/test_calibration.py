"""The calibration study: it runs, the committed numbers hold, and the pages say what they say."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.bounds import guarantee_of
from dpaudit.model.claim import GaussianClaim
from dpaudit.seeds import Stream
from reports.calibration import audits, cells, honest, pages, paths, run
from reports.calibration.failing import Failing, How
from reports.calibration.mechanisms import Shifted
from reports.calibration.pipeline import fixed_on, worlds_of
from reports.calibration.simulations import TradeOffs
from reports.calibration.strength import DECIDING

ROOT = Path(__file__).resolve().parents[2]
STUDY = ROOT / "reports" / "calibration"
PATHS = STUDY / "results" / "paths.json"
AUDITS = STUDY / "results" / "audits.json"
DEFAULTS = STUDY / "results" / "defaults.json"


@pytest.fixture(scope="module")
def committed() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((STUDY / "results" / "rules.json").read_text())
    return found


def significantly_above(cells: list[dict[str, Any]], *, ours: bool) -> list[dict[str, Any]]:
    return [cell for cell in cells if cell["ours"] is ours and cell["low"] > cell["nominal"]]


@pytest.mark.slow
def test_a_quick_study_flags_as_seldom_as_admitted(tmp_path: Path) -> None:
    run.main(["rules", "pages", "--quick", "--out", str(tmp_path)])
    found = json.loads((tmp_path / "rules.json").read_text())
    cells = found["cells"]
    assert significantly_above(cells, ours=True) == []
    assert {cell["rule"] for cell in significantly_above(cells, ours=False)} >= {
        "joint_beta",
        "Gaussian (GDP) estimate on other mechanisms",
        "largest ratio over thresholds, no interval",
    }
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {"rules.json", "rates.svg", "tightness.svg", "speed.svg"}
    assert pages.worst(cells) in pages.readme(found)


def test_no_rule_of_ours_exceeds_its_level(committed: dict[str, Any]) -> None:
    assert significantly_above(committed["cells"], ours=True) == []
    enumerated = [cell for cell in committed["cells"] if not cell["draws"] and cell["ours"]]
    assert max(cell["rate"] / cell["nominal"] for cell in enumerated) > 0.9, "nothing is tight"


def test_every_rule_of_other_tools_that_the_docs_name_violates(committed: dict[str, Any]) -> None:
    violated = {cell["rule"] for cell in significantly_above(committed["cells"], ours=False)}
    assert {
        "all of alpha for each rate",
        "best of ten attacks, uncorrected (clopper_pearson)",
        "best threshold on the test data (Clopper-Pearson)",
        "Clopper-Pearson looked at every 10 pairs",
        "DKW band with Delta-Siege's constant",
    } <= violated


def test_bounds_are_as_tight_as_promised(committed: dict[str, Any]) -> None:
    tightness = {
        (one["rule"], one["where"], one["fitted"], one["scored"]): one["tightness"]
        for one in committed["tightness"]
    }
    preset = "exact, preset threshold"
    assert tightness[preset, "randomised response ε 1", 0, 800] >= 0.84
    assert tightness[preset, "randomised response ε 2", 0, 800] >= 0.87
    assert tightness[DECIDING, "Laplace count ε 1", 532, 798] >= 0.72


def test_the_sequential_proof_comes_as_soon_as_promised(committed: dict[str, Any]) -> None:
    mean = {one["epsilon"]: one["mean"] for one in committed["speed"] if one["nominal"] == 0.05}
    assert max(mean[10.0], mean[5.0]) <= 14
    assert mean[3.0] <= 25
    assert mean[2.0] <= 85


def test_the_pages_say_what_was_measured(committed: dict[str, Any]) -> None:
    simulated, audited, defaults = (
        json.loads(file.read_text()) for file in (PATHS, AUDITS, DEFAULTS)
    )
    page = pages.readme(committed, simulated, audited, defaults)
    assert (STUDY / "README.md").read_text() == page
    for found in (audited, defaults):
        assert audits.problems(found) == []
    docs = (ROOT / "docs" / "calibration.md").read_text()
    assert pages.worst(committed["cells"]) in docs
    assert pages.every_path(simulated) in docs
    above = sum(case["above"] for case in defaults["cases"].values())
    run = sum(len(case["bounds"]) for case in defaults["cases"].values())
    assert f"Of {run:,} default audits" in docs
    assert f"{above} proved more than is true" in docs


def test_a_rule_above_its_level_is_flagged() -> None:
    cell = {"rule": "bold", "ours": False, "where": "here", "n": 25, "rate": 0.2, "draws": 0}
    cells = [cell | {"nominal": 0.05, "low": 0.2, "high": 0.2}]
    assert "| bold | 20.0 % | enumerated | here, n 25 | – | **no** |" in pages.worst(cells)
    honest = [cells[0] | {"rate": 0.04, "low": 0.04, "high": 0.04}]
    assert "| bold | 4.00 % | enumerated | here, n 25 | – | yes |" in pages.worst(honest)


def test_what_too_few_draws_leave_open_does_not_hold() -> None:
    def shown(violations: int, draws: int) -> str:
        one = cells.simulated(
            "bold", ours=True, where="here", n=25, nominal=0.05, violations=violations, draws=draws
        )
        assert one.low <= one.nominal, "no lower limit is above nominal"
        return cells.shown([one.record()])

    assert shown(18, 200) == "not shown"  # 9 %
    assert shown(10, 200) == "not shown"  # 5 %
    assert shown(150, 3000) == "yes"
    assert shown(165, 3000) == "not shown"


def simulated_paths(out: Path, *options: str) -> dict[str, Any]:
    run.main(["paths", "--quick", "--jobs", "1", "--out", str(out), *options])
    found: dict[str, Any] = json.loads((out / "paths.json").read_text())
    return found


@pytest.mark.ci
def test_a_quick_run_has_every_path_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = simulated_paths(tmp_path)
    assert {case["path"] for case in found["cases"].values()} == set(paths.PATHS)
    for case in found["cases"].values():
        assert case["honest"]["audits"] == 1
        assert case["leaking"]["audits"] == int(case["stated"] is not None)
    assert "| sequential | randomised response | 1 |" in pages.every_path(found)
    monkeypatch.setattr(paths, "run_task", None)  # nothing is left to run
    assert simulated_paths(tmp_path) == found


def test_a_path_is_run_alone_and_again_and_another_stated_leak_is_simulated(tmp_path: Path) -> None:
    found = simulated_paths(tmp_path, "--path", "hold-out", "--path", "mu")
    assert {case["path"] for case in found["cases"].values()} == {"hold-out", "mu"}
    name = "hold-out: randomised response"
    done = found["cases"][name]
    done["stated"], done["honest"]["above"] = 1.01, 99
    (tmp_path / "paths.json").write_text(json.dumps(found))
    again = simulated_paths(tmp_path, "--path", "hold-out")["cases"]
    assert again[name]["stated"] == pytest.approx(2.33, abs=0.01)
    assert again[name]["honest"]["above"] == 99, "what is complete stays"
    assert again["mu: randomised response"] == found["cases"]["mu: randomised response"]
    anew = simulated_paths(tmp_path, "--path", "hold-out", "--again")["cases"]
    assert anew[name]["honest"]["above"] <= 1


def test_every_path_was_simulated_often_enough_and_flags_seldom_enough() -> None:
    found = json.loads(PATHS.read_text())
    assert paths.problems(found) == []
    for name in (
        "default: randomised response",
        "select: randomised response",
        "hold-out: randomised response",
        "sequential: randomised response",
        "released: randomised response",
        "many records: randomised response",
        "one run in turn: randomised response",
        "mu: Gaussian count",
        "rho: Gaussian count",
        "curve: Gaussian count",
        "released table with coins: randomised response",
        "failures, default: an exception",
    ):
        audits = found["cases"][name]["honest"]["audits"]
        assert audits >= (paths.FULL.failing if paths.CASES[name].fails else paths.FULL.honest)


def test_the_page_says_which_cells_were_not_run() -> None:
    found = json.loads(PATHS.read_text())
    del found["cases"]["hold-out: randomised response"]
    rules = json.loads((STUDY / "results" / "rules.json").read_text())
    left = pages.readme(rules, found).partition("Left to run")[2]
    assert "hold-out: randomised response" in left.partition("\n")[0]


def test_a_path_that_flags_too_often_is_a_problem() -> None:
    counts = {"audits": 3000, "above": 200}
    case = {"path": "here", "mechanism": "honest", "honest": counts}
    assert len(paths.problems({"cases": {"one": case}})) == 1
    counts["above"] = 150
    assert paths.problems({"cases": {"one": case}}) == []


@pytest.mark.parametrize("how", list(How))
def test_mechanisms_that_fail_keep_their_epsilon_exactly(how: How) -> None:
    rng, draws = np.random.default_rng(3), 20_000
    worlds = []
    for world in (True, False):
        shown = Failing(how, 1.0).shown(np.full(draws, world), rng)
        seen = [
            str(failed or (score if how is How.EITHER else "a table"))
            for score, failed in zip(shown.scores, shown.failures, strict=True)
        ]
        worlds.append(dict(zip(*np.unique(seen, return_counts=True), strict=True)))
    inside, outside = worlds
    losses = [abs(math.log(inside[one] / outside[one])) for one in inside]
    assert inside.keys() == outside.keys()
    assert max(losses) == pytest.approx(1.0, abs=0.1)


def test_a_limit_on_mu_exceeds_where_the_study_says_so() -> None:
    claim = GaussianClaim(mu=1.0)
    path, guarantee = TradeOffs(claim=claim), guarantee_of(claim)
    found = set()
    for seed in range(4):
        rng = Stream(seed, "simulated", "trials").rng()
        member = worlds_of(path.settings, rng)
        mechanism = Shifted(1.7)
        one = fixed_on(
            mechanism.seen(member, rng),
            member,
            2 * path.settings.game.fitted,
            path.settings,
            guarantee,
            rng,
        )
        exceeds = one.bound(guarantee, confidence=0.95) > claim.value
        assert path.exceeds(mechanism, claim.value, seed) == exceeds
        found.add(exceeds)
    assert found == {True, False}


def test_an_audit_that_is_simulated_catches_what_leaks() -> None:
    for name in ("default: randomised response", "sequential: randomised response"):
        case = paths.CASES[name]
        assert case.run(range(3), 5.0) == 3
        assert case.run(range(3), 0.1) == 0


def released(name: str, count: float, truth: dpaudit.PrivacyClaim) -> tuple[np.ndarray, np.ndarray]:
    """Values and their shares, of many draws; numbers are rounded to tenths."""
    draw = {**{key: one[0] for key, one in audits.MECHANISMS.items()}, "leak": honest.leak}[name]
    rng = np.random.default_rng(5)
    drawn = np.round([draw(count, truth, rng) for _ in range(40_000)], 1)
    values, counts = np.unique(drawn, return_counts=True)
    return values, counts / len(drawn)


def hockey_stick(name: str, truth: dpaudit.PrivacyClaim, epsilon: float) -> float:
    """The delta that a mechanism has at an epsilon, the larger one of both directions."""
    worlds = [dict(zip(*released(name, count, truth), strict=True)) for count in (0.0, 1.0)]

    def excess(first: dict[float, float], second: dict[float, float]) -> float:
        return sum(max(0.0, p - math.exp(epsilon) * second.get(v, 0.0)) for v, p in first.items())

    return max(excess(*worlds), excess(*reversed(worlds)))


@pytest.mark.parametrize(
    ("name", "truth"),
    [
        ("randomised response", dpaudit.PrivacyClaim(epsilon=1.0)),
        ("geometric count", dpaudit.PrivacyClaim(epsilon=1.0)),
        ("report noisy max", dpaudit.PrivacyClaim(epsilon=1.0)),
        ("leak", dpaudit.PrivacyClaim(epsilon=1.0, delta=0.1)),
        ("Gaussian count", dpaudit.PrivacyClaim(epsilon=1.0, delta=0.1)),
    ],
)
def test_the_mechanisms_keep_their_claims_exactly(name: str, truth: dpaudit.PrivacyClaim) -> None:
    assert hockey_stick(name, truth, truth.epsilon) == pytest.approx(truth.delta, abs=0.02)
    assert hockey_stick(name, truth, 0.7 * truth.epsilon) > truth.delta + 0.03


@pytest.mark.slow
def test_a_quick_run_of_whole_audits_has_every_path_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["audits", "--quick", "--jobs", "1", "--out", str(tmp_path)]
    run.main(command)
    written = (tmp_path / "audits.json").read_text()
    found = json.loads(written)
    assert {case["path"] for case in found["cases"].values()} == {
        c.path for c in audits.CASES.values()
    }
    counts = {name: len(case["bounds"]) for name, case in found["cases"].items()}
    assert counts == dict.fromkeys(counts, 1)
    [code] = {code for case in found["cases"].values() for code in case["codes"]}
    assert f"code of digest `{code}`" in "".join(pages.whole(found))
    assert "| every path | all of them |" in "".join(pages.whole(found))
    assert audits.problems(found) == [f"{sum(counts.values())} audits: at least 1000 show anything"]
    monkeypatch.setattr(dpaudit, "audit", None)  # nothing is left to run
    run.main(command)
    assert (tmp_path / "audits.json").read_text() == written


def test_the_study_has_a_thousand_audits_of_six_mechanisms_on_every_path() -> None:
    assert audits.FULL.audits * len(audits.CASES) >= audits.AT_LEAST
    assert len(audits.MECHANISMS) >= 6
    assert {case.path for case in audits.CASES.values()} >= {
        "default",
        "select",
        "sequential",
        "one run",
        "failures in one world",
        "fitted claims",
        "delta 0.1",
    }


@pytest.mark.ci
def test_the_study_of_default_audits_has_two_thousand_of_every_kind_of_mechanism(
    tmp_path: Path,
) -> None:
    assert audits.DEFAULTS.audits * len(audits.DEFAULT_CASES) >= 2 * audits.AT_LEAST
    assert {case.mechanism for case in audits.DEFAULT_CASES} == {
        *audits.MECHANISMS,
        *(case.mechanism for case in audits.CASES.values() if "failures" in case.path),
        "constant output",
        "noisy marginals",
        "reference PATE-GAN",
    }
    run.main(["defaults", "--quick", "--jobs", "1", "--out", str(tmp_path)])
    found = json.loads((tmp_path / "defaults.json").read_text())
    assert {case["path"] for case in found["cases"].values()} == {audits.DEFAULT_ATTACKS}


def test_whole_audits_that_flag_honest_generators_are_a_problem() -> None:
    case = {"path": "here", "mechanism": "honest", "above": 30, "bounds": [1.0] * 300}
    found = {"shadow_models": 2, "nominal": 0.05, "cases": {"one": case}}
    assert len(audits.problems(found, at_least=300)) == 3  # the case, its path, all together
    found["cases"]["one"] = case | {"above": 15}
    assert audits.problems(found, at_least=300) == []


@pytest.mark.ci
def test_a_generator_that_reveals_more_than_it_claims_is_above() -> None:
    lie = audits.Case(
        path="here",
        mechanism="a lie",
        generator=honest.Counts(
            claim=dpaudit.PrivacyClaim(epsilon=0.1),
            mechanism=lambda count, _, rng: count + rng.normal(scale=0.1),
        ),
        truth=dpaudit.PrivacyClaim(epsilon=0.1),
        settings={"attacks": (honest.ReleasedMean(),)},
    )
    found = lie.run(0, audits.Size(audits=1, shadow_models=40))
    assert (found.above, found.verdict) == (True, "violation")
